//! A page that a host uses as it should is believed; one that anything wrote over is not.

use std::collections::BTreeMap;

use proptest::prelude::*;
use waylay_host::plan::WorkerPlan;

use super::*;

const WORKERS: usize = 2;

/// One test with two workers, the first at its tenth iteration.
fn scene() -> (Page, Witness) {
    let clock = Clock::calibrate();
    let page = Page::create(&clock).unwrap();
    let worker = |slot| WorkerPlan { slot, first_iteration: 10, iterations: None, repeat: false };
    let test = TestPlan {
        plugin: 0,
        name: "t".to_owned(),
        params: BTreeMap::new(),
        workers: (0..WORKERS).map(worker).collect(),
        contained: None,
        combiner: None,
    };
    let witness = Witness::new(&clock, 1, &[test], false).unwrap();
    let layout = page.layout();
    HostPhase::Running.store(&layout.header.phase);
    TestPhase::Running.store(&layout.tests[0].phase);
    layout.tests[0].phase_at.store(clock.now().0, Ordering::Relaxed);
    for slot in &layout.workers[..WORKERS] {
        slot.iteration.store(20, Ordering::Relaxed);
        slot.finished.store(10, Ordering::Relaxed);
        slot.entered_at.store(clock.now().0, Ordering::Relaxed);
        WorkerState::Running.store(&slot.state);
    }
    (page, witness)
}

#[test]
fn what_a_host_does_is_believed() {
    let (page, mut witness) = scene();
    assert_eq!(witness.observe(&page), Ok(()));
    assert_eq!(witness.believed().workers[1].finished.load(Ordering::Relaxed), 10);
    page.layout().workers[1].finished.store(11, Ordering::Relaxed);
    page.layout().workers[1].iteration.store(21, Ordering::Relaxed);
    WorkerState::Done.store(&page.layout().workers[1].state);
    HostPhase::Cancelling.store(&page.layout().header.phase);
    assert_eq!(witness.observe(&page), Ok(()));
    assert_eq!(witness.believed().workers[1].finished.load(Ordering::Relaxed), 11);
}

/// Each of these words is written over once, after a look at which everything was right.
#[test]
fn every_word_that_is_written_over_is_seen_and_nothing_of_it_is_kept() {
    type Damage = (&'static str, fn(&Layout));
    let damages: [Damage; 18] = [
        ("phase is 77", |page| page.header.phase.store(77, Ordering::Relaxed)),
        ("phase is 1 after Running", |page| HostPhase::Loading.store(&page.header.phase)),
        ("border", |page| page.header.magic.store(0, Ordering::Relaxed)),
        ("the command to the host is 2", |page| page.header.command.store(2, Ordering::Relaxed)),
        ("begin", |page| page.header.go.store(9, Ordering::Relaxed)),
        ("keeps the randomizer away is 1", |page| page.header.quiesce.store(1, Ordering::Relaxed)),
        ("ends the randomizer is 7", |page| page.header.ending.store(7, Ordering::Relaxed)),
        ("debugger", |page| page.header.kept.store(1, Ordering::Relaxed)),
        ("plugin 5 of 1", |page| page.header.loading.store(5, Ordering::Relaxed)),
        ("the phase is 10", |page| page.tests[0].phase.store(10, Ordering::Relaxed)),
        ("we wrote 0", |page| page.tests[0].command.store(1, Ordering::Relaxed)),
        ("state is 6", |page| page.workers[0].state.store(6, Ordering::Relaxed)),
        ("state is 5", |page| WorkerState::Waiting.store(&page.workers[0].state)),
        ("test is number 3", |page| page.workers[1].test.store(3, Ordering::Relaxed)),
        ("iterations: 9 after 10", |page| page.workers[0].finished.store(9, Ordering::Relaxed)),
        ("iterations: 177", |page| {
            page.workers[0].finished.store(17_700_000_000_000_000_000, Ordering::Relaxed)
        }),
        ("outside of the host's life", |page| page.workers[0].entered_at.store(1, Ordering::Relaxed)),
        ("nobody uses", |page| page.workers[1].reserved.store(1, Ordering::Relaxed)),
    ];
    for (expected, damage) in damages {
        let (page, mut witness) = scene();
        assert_eq!(witness.observe(&page), Ok(()));
        damage(page.layout());
        let Err(Contradiction(told)) = witness.observe(&page) else { panic!("{expected}: believed") };
        assert!(told.contains(expected), "{expected}: {told}");
        assert_eq!(witness.believed().workers[0].finished.load(Ordering::Relaxed), 10, "{expected}");
        assert_eq!(HostPhase::load(&witness.believed().header.phase), HostPhase::Running, "{expected}");
    }
}

#[test]
fn what_we_wrote_ourselves_is_expected() {
    let (page, mut witness) = scene();
    witness.orders.borrow_mut().command = Some(Command::Cancel);
    witness.orders.borrow_mut().cancelled.insert(0);
    assert!(witness.observe(&page).is_err());
    Command::Cancel.store(&page.layout().header.command);
    Command::Cancel.store(&page.layout().tests[0].command);
    assert_eq!(witness.observe(&page), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Any 4 KiB of garbage anywhere in the page: looking at it never panics, and what was believed stays or is possible.
    #[test]
    fn garbage_anywhere_is_survived(at in 0..size_of::<Layout>() / 8 - 512, seed in any::<u64>()) {
        let (page, mut witness) = scene();
        prop_assert_eq!(witness.observe(&page), Ok(()));
        let words = std::ptr::from_ref(page.layout()).cast::<AtomicU64>();
        let mut value = seed | 1;
        for word in at..at + 512 {
            value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            // SAFETY: inside the page, which is a whole number of words, and any bytes are valid there.
            unsafe { (*words.add(word)).store(value, Ordering::Relaxed) };
        }
        let seen = witness.observe(&page);
        let _ = page.layout().pending().count();
        let believed = witness.believed().workers[0].finished.load(Ordering::Relaxed);
        prop_assert!(believed == 10, "{believed} {seen:?}");
    }
}
