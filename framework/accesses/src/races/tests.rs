//! Two threads and what orders them, or does not: which of their accesses race.

use super::*;

const MAIN: ThreadId = ThreadId(0);
const ONE: ThreadId = ThreadId(1);
const TWO: ThreadId = ThreadId(2);

/// A scene with two threads; accesses are of four bytes, by patched code unless said otherwise.
fn scene() -> Races {
    let mut races = Races::default();
    races.order.spawned(MAIN, ONE);
    races.order.spawned(MAIN, TWO);
    races
}

fn deed(thread: ThreadId, code: usize, address: usize, reads: bool, writes: bool) -> Deed {
    Deed {
        thread,
        code,
        address,
        bytes: 4,
        reads,
        writes,
        atomic: false,
        certain: false,
        compiled: false,
        frees: false,
        promise: Promise::ALL,
    }
}

fn read(races: &mut Races, thread: ThreadId, code: usize, address: usize) -> Option<(usize, usize)> {
    codes(races.note(deed(thread, code, address, true, false), |_, _| false))
}

fn write(races: &mut Races, thread: ThreadId, code: usize, address: usize) -> Option<(usize, usize)> {
    codes(races.note(deed(thread, code, address, false, true), |_, _| false))
}

fn atomic(races: &mut Races, thread: ThreadId, code: usize, address: usize) -> Option<(usize, usize)> {
    let deed = Deed { atomic: true, certain: true, ..deed(thread, code, address, true, true) };
    codes(races.note(deed, |_, _| false))
}

fn codes(race: Option<Race>) -> Option<(usize, usize)> {
    race.map(|race| (race.first.code, race.second.code))
}

fn free(races: &mut Races, thread: ThreadId, code: usize, block: (usize, usize)) -> Option<(usize, usize)> {
    codes(races.free(Deed::free(thread, code, block), |_, _| false))
}

#[test]
fn who_frees_races_with_who_reads() {
    let mut races = scene();
    assert_eq!(read(&mut races, ONE, 10, 64 + 4000), None);
    assert_eq!(free(&mut races, TWO, 20, (64, 4000)), None, "in front of what is read");
    assert_eq!(free(&mut races, TWO, 21, (64, 8000)), Some((10, 21)));
    assert_eq!(read(&mut races, ONE, 11, 800), Some((21, 11)), "what nobody had touched");
    assert_eq!(atomic(&mut races, ONE, 12, 1600), Some((21, 12)), "nor does an atomic survive");
    assert_eq!(read(&mut races, TWO, 22, 800), None, "its own");
    races.allocated(Block { start: 64, bytes: 8000, thread: 1, code: 5 });
    assert_eq!(read(&mut races, ONE, 13, 808), None, "another block");
}

#[test]
fn the_last_owner_frees_in_order() {
    let mut races = scene();
    read(&mut races, ONE, 10, 72);
    atomic(&mut races, ONE, 11, 64);
    atomic(&mut races, TWO, 21, 64);
    assert_eq!(free(&mut races, TWO, 22, (64, 32)), None, "a count of owners");
    races.order.locked(ONE, 8, Way::Exclusive);
    write(&mut races, ONE, 12, 160);
    races.order.unlocked(ONE, 8);
    races.order.locked(TWO, 8, Way::Exclusive);
    races.order.unlocked(TWO, 8);
    assert_eq!(free(&mut races, TWO, 23, (160, 32)), None, "a lock");
    write(&mut races, TWO, 24, 256);
    races.order.joined(MAIN, TWO);
    assert_eq!(free(&mut races, MAIN, 1, (256, 32)), None, "the end of a thread");
}

#[test]
fn two_that_nothing_orders_race_and_two_readers_do_not() {
    let mut races = scene();
    assert_eq!(read(&mut races, ONE, 10, 64), None);
    assert_eq!(read(&mut races, TWO, 20, 64), None);
    assert_eq!(write(&mut races, TWO, 21, 68), None, "a neighbour in the word");
    assert_eq!(write(&mut races, TWO, 22, 64), Some((10, 22)));
    assert_eq!(write(&mut races, ONE, 11, 64), Some((22, 11)), "the latest of several");
}

#[test]
fn locks_joins_and_hand_overs_order() {
    let mut races = scene();
    races.order.locked(ONE, 8, Way::Exclusive);
    assert_eq!(write(&mut races, ONE, 10, 64), None);
    races.order.unlocked(ONE, 8);
    races.order.locked(TWO, 8, Way::Exclusive);
    assert_eq!(write(&mut races, TWO, 20, 64), None);
    let set = races.order.held(TWO);
    assert_eq!(races.locks(set).collect::<Vec<_>>(), [(8, Way::Exclusive)]);
    races.order.unlocked(TWO, 8);
    races.order.joined(MAIN, TWO);
    assert_eq!(write(&mut races, MAIN, 1, 64), None);
    assert_eq!(write(&mut races, ONE, 11, 64), Some((1, 11)), "one was not joined");
}

#[test]
fn two_readers_of_a_lock_do_not_order_each_other_but_a_writer() {
    let mut races = scene();
    races.order.locked(ONE, 8, Way::Shared);
    assert_eq!(write(&mut races, ONE, 10, 64), None);
    races.order.unlocked(ONE, 8);
    races.order.locked(TWO, 8, Way::Shared);
    assert_eq!(read(&mut races, TWO, 20, 64), Some((10, 20)), "both may hold it at once");
    races.order.unlocked(TWO, 8);
    races.order.locked(MAIN, 8, Way::Exclusive);
    assert_eq!(write(&mut races, MAIN, 1, 64), None);
}

#[test]
fn atomics_order_and_moves_to_their_words_do_too() {
    let mut races = scene();
    races.deliberate.insert(20, ());
    assert_eq!(write(&mut races, ONE, 10, 128), None);
    assert_eq!(read(&mut races, TWO, 20, 64), None);
    assert_eq!(atomic(&mut races, ONE, 11, 64), None);
    assert_eq!(read(&mut races, TWO, 20, 64), None);
    assert_eq!(read(&mut races, TWO, 21, 128), None, "published");
    assert_eq!(write(&mut races, ONE, 12, 128), Some((21, 12)), "not published");
}

#[test]
fn a_move_that_meets_an_atomic_is_asked_about() {
    let mut races = scene();
    assert_eq!(read(&mut races, TWO, 20, 64), None);
    assert_eq!(atomic(&mut races, ONE, 11, 64), Some((20, 11)));
    assert_eq!(write(&mut races, TWO, 21, 64), Some((11, 21)), "from either side");
    assert_eq!(atomic(&mut races, ONE, 12, 64), Some((21, 12)));
    let runtime = Deed { certain: false, atomic: true, ..deed(ONE, 13, 72, true, true) };
    assert_eq!(races.note(runtime, |_, _| false), None);
    assert_eq!(write(&mut races, TWO, 22, 72), None, "what a runtime does decides nothing");
}

#[test]
fn a_store_that_turns_out_to_be_atomic_has_published() {
    let mut races = scene();
    assert_eq!(write(&mut races, ONE, 10, 128), None);
    assert_eq!(write(&mut races, ONE, 11, 64), None);
    assert_eq!(write(&mut races, ONE, 12, 136), None);
    let waits = Deed { atomic: true, ..deed(TWO, 20, 64, true, false) };
    assert_eq!(races.note(waits, |_, _| false), None);
    assert_eq!(read(&mut races, TWO, 21, 128), None, "before the store");
    assert_eq!(read(&mut races, TWO, 22, 136), Some((12, 22)), "after it");
}

#[test]
fn what_a_compiler_calls_plain_races_with_atomics() {
    let mut races = scene();
    let compiled =
        |thread, code, writes: bool| Deed { compiled: true, ..deed(thread, code, 64, !writes, writes) };
    assert_eq!(atomic(&mut races, ONE, 10, 64), None);
    assert_eq!(codes(races.note(compiled(TWO, 20, false), |_, _| false)), Some((10, 20)));
    assert_eq!(codes(races.note(compiled(TWO, 21, true), |_, _| false)), Some((10, 21)));
}

/// Publishes through a flag at 64 and reads what was published; patched or compiled on either side.
fn published(stores: (bool, i32), loads: (bool, i32)) -> bool {
    let mut races = scene();
    let flag = |thread, code, reads: bool, (compiled, order)| Deed {
        atomic: true,
        certain: true,
        compiled,
        promise: if compiled { Promise::of_compiler(order) } else { Promise::ALL },
        ..deed(thread, code, 64, reads, !reads)
    };
    assert_eq!(write(&mut races, ONE, 10, 128), None);
    assert_eq!(races.note(flag(ONE, 11, false, stores), |_, _| false), None);
    assert_eq!(races.note(flag(TWO, 20, true, loads), |_, _| false), None);
    read(&mut races, TWO, 21, 128).is_none()
}

#[test]
fn what_a_compiler_says_about_orders_counts_and_what_nobody_says_does_not() {
    let (relaxed, acquire, release) = (0, 2, 3);
    assert!(published((true, release), (true, acquire)));
    assert!(!published((true, relaxed), (true, acquire)) && !published((true, release), (true, relaxed)));
    assert!(published((true, relaxed), (false, 0)) && published((false, 0), (true, relaxed)), "patched code");
}

#[test]
fn a_flag_that_is_known_to_be_atomic_publishes() {
    let mut races = scene();
    for code in [11, 20] {
        races.deliberate.insert(code, ());
    }
    assert_eq!(write(&mut races, ONE, 10, 128), None);
    assert_eq!(write(&mut races, ONE, 11, 64), None);
    assert_eq!(read(&mut races, TWO, 20, 64), None);
    assert_eq!(read(&mut races, TWO, 21, 128), None);
}

#[test]
fn what_is_known_is_passed_over() {
    let mut races = scene();
    let mut asked = 0;
    for (thread, code) in [(ONE, 10), (TWO, 20), (ONE, 10), (TWO, 20)] {
        let race = races.note(deed(thread, code, 64, false, true), |one, other| {
            asked += 1;
            (one, other) == (10, 20)
        });
        assert_eq!(race, None);
    }
    assert_eq!(asked, 1, "the answer is remembered");
    assert_eq!(write(&mut races, TWO, 21, 64), Some((10, 21)));
}

#[test]
fn memory_that_is_allocated_again_has_no_past() {
    let mut races = scene();
    races.allocated(Block { start: 64, bytes: 32, thread: 1, code: 5 });
    assert_eq!(write(&mut races, ONE, 10, 72), None);
    races.allocated(Block { start: 56, bytes: 24, thread: 2, code: 6 });
    assert_eq!(write(&mut races, TWO, 20, 72), None);
    assert_eq!(races.block_of(79).map(|block| (block.start, block.code)), Some((56, 6)));
    assert_eq!(races.block_of(80), None);
    races.order.hand_over(TWO, 72);
    races.allocated(Block { start: 64, bytes: 32, thread: 1, code: 5 });
    races.order.take_over(ONE, 72);
    assert_eq!(write(&mut races, TWO, 20, 72), None);
    assert_eq!(
        write(&mut races, ONE, 11, 72),
        Some((20, 11)),
        "nothing was handed over through the new block"
    );
    let visits = races.visits.len();
    races.allocated(Block { start: 0, bytes: 1 << 40, thread: 0, code: 0 });
    assert_eq!(write(&mut races, ONE, 11, 72), None);
    assert_eq!(races.visits.len(), visits, "places are used again");
}

#[test]
fn threads_may_get_the_stack_of_one_that_is_gone() {
    let mut races = scene();
    assert_eq!(write(&mut races, ONE, 10, 64), None);
    races.order.ended(ONE);
    races.order.spawned(TWO, ThreadId(3));
    assert_eq!(write(&mut races, ThreadId(3), 30, 64), None);
    assert_eq!(write(&mut races, TWO, 20, 64), Some((30, 20)), "and nobody else is ordered by that");
}

#[test]
fn a_word_that_many_touch_stays_small() {
    let mut races = scene();
    for code in 0..1000 {
        races.order.hand_over(ONE, 8);
        assert_eq!(read(&mut races, ONE, code, 64), None);
    }
    assert!(races.visits.len() <= MOST_VISITS + 2);
    assert_eq!(write(&mut races, TWO, 5000, 64), Some((999, 5000)));
}
