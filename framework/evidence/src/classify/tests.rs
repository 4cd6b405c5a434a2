//! The table of verdicts.

use super::*;

const INTERVAL: Duration = Duration::from_millis(100);
const GRACE: Duration = Duration::from_secs(1);

/// A thread as both samples see it: what it waits for, and what it used in between.
#[derive(Clone, Copy)]
struct Case {
    role: Role,
    state: SchedulerState,
    wait: Wait,
    cpu_ms: u64,
    wakeups: u64,
    place: &'static str,
    moved: bool,
}

const fn blocked(role: Role, wait: Wait, place: &'static str) -> Case {
    Case { role, state: SchedulerState::Sleeping, wait, cpu_ms: 0, wakeups: 2, place, moved: false }
}

const fn computing(role: Role, cpu_ms: u64) -> Case {
    Case { role, state: SchedulerState::Running, wait: Wait::No, cpu_ms, wakeups: 9, place: "", moved: true }
}

fn samples(cases: &[Case]) -> (Vec<ThreadSample>, Vec<ThreadSample>) {
    let sample = |index: usize, case: &Case, second: bool| ThreadSample {
        id: ThreadId(index as u32 + 1),
        role: case.role,
        state: case.state,
        wait: case.wait,
        cpu: Duration::from_millis(1000 + if second { case.cpu_ms } else { 0 }),
        wakeups: 50 + if second { case.wakeups } else { 0 },
        stack: vec![case.place.to_owned(), if case.moved && second { "later" } else { "own" }.to_owned()],
        place: (!case.place.is_empty()).then(|| case.place.to_owned()),
    };
    let take = |second| cases.iter().enumerate().map(|(index, case)| sample(index, case, second)).collect();
    (take(false), take(true))
}

fn verdict(cases: &[Case], iterations_elsewhere: u64, watched: Duration) -> Verdict {
    let (first, second) = samples(cases);
    classify(&Observation {
        first: &first,
        second: &second,
        interval: INTERVAL,
        returned: false,
        iterations_elsewhere,
        watched,
        grace: GRACE,
    })
}

#[test]
fn the_table() {
    use HangKind::{Deadlock, Livelock, Slow, Starvation};
    use Role::{Bystander, Overdue, SameTest};
    let lock = |role| blocked(role, Wait::ThreadUntimed, "pthread_mutex_lock");
    let table: [(&str, &[Case], u64, HangKind, bool); 15] = [
        ("two locks crosswise", &[lock(Overdue), lock(Overdue)], 0, Deadlock, true),
        ("waits for itself", &[lock(Overdue)], 0, Deadlock, true),
        ("waits for an idle helper", &[lock(Overdue), lock(SameTest)], 0, Deadlock, true),
        (
            "a helper sleeps",
            &[lock(Overdue), blocked(SameTest, Wait::Sleep, "nanosleep")],
            0,
            Deadlock,
            false,
        ),
        ("reads for ever", &[blocked(Overdue, Wait::InputUntimed, "read")], 0, Deadlock, false),
        ("spins", &[computing(Overdue, 98)], 0, Livelock, false),
        ("spins, never scheduled", &[computing(Overdue, 0)], 0, Livelock, false),
        ("waits for one that spins", &[lock(Overdue), computing(SameTest, 98)], 0, Livelock, false),
        (
            "polls",
            &[Case { wakeups: 90, cpu_ms: 1, moved: true, ..blocked(Overdue, Wait::Sleep, "nanosleep") }],
            0,
            Livelock,
            false,
        ),
        ("sleeps", &[blocked(Overdue, Wait::Sleep, "nanosleep")], 0, Slow, false),
        (
            "waits with a timeout",
            &[blocked(Overdue, Wait::ThreadTimed, "pthread_cond_timedwait")],
            0,
            Slow,
            false,
        ),
        (
            "is in the kernel",
            &[Case { state: SchedulerState::Uninterruptible, ..blocked(Overdue, Wait::No, "fsync") }],
            0,
            Slow,
            false,
        ),
        ("others get the lock", &[lock(Overdue), computing(SameTest, 90)], 40, Starvation, false),
        ("sleeps while others work", &[blocked(Overdue, Wait::Sleep, "nanosleep")], 40, Slow, false),
        ("another test spins", &[lock(Overdue), lock(Overdue), computing(Bystander, 98)], 0, Deadlock, true),
    ];
    for (what, cases, elsewhere, kind, at_once) in table {
        let early = verdict(cases, elsewhere, Duration::ZERO);
        assert_eq!(early.kind, kind, "{what}: {}", early.reason);
        let expected =
            if at_once { Certainty::Certain } else { Certainty::KeepWatching { remaining: GRACE } };
        assert_eq!(early.certainty, expected, "{what}");
        let late = verdict(cases, elsewhere, GRACE);
        assert_eq!((late.kind, late.certainty), (kind, Certainty::Certain), "{what}, after the grace period");
    }
}

#[test]
fn reasons_are_sentences_about_the_threads() {
    let lock = blocked(Role::Overdue, Wait::ThreadUntimed, "pthread_mutex_lock");
    let reason = verdict(&[lock, lock], 0, GRACE).reason;
    assert_eq!(reason, "both threads of the test wait in pthread_mutex_lock, no CPU was used in 100 ms");
    let read = blocked(Role::SameTest, Wait::InputUntimed, "read");
    let reason = verdict(&[lock, read], 0, GRACE).reason;
    assert_eq!(
        reason,
        "one thread waits in pthread_mutex_lock, one thread waits for input in read, no CPU was used in 100 ms"
    );
    let reason = verdict(&[lock], 1, GRACE).reason;
    assert_eq!(
        reason,
        "other workers of the test completed 1 iteration in 100 ms while the only thread concerned waits in \
         pthread_mutex_lock"
    );
}

#[test]
fn an_iteration_that_returned_was_slow_whatever_the_samples_say() {
    let (first, second) = samples(&[blocked(Role::Overdue, Wait::ThreadUntimed, "futex")]);
    let observation = Observation {
        first: &first,
        second: &second,
        interval: INTERVAL,
        returned: true,
        iterations_elsewhere: 3,
        watched: Duration::ZERO,
        grace: GRACE,
    };
    let verdict = classify(&observation);
    assert_eq!((verdict.kind, verdict.certainty), (HangKind::Slow, Certainty::Certain));
}

#[test]
fn a_poll_for_ever_stays_one_after_it_was_interrupted() {
    let (first, mut second) = samples(&[blocked(Role::Overdue, Wait::InputUntimed, "poll")]);
    second[0].wait = Wait::Sleep;
    let observation = Observation {
        first: &first,
        second: &second,
        interval: INTERVAL,
        returned: false,
        iterations_elsewhere: 0,
        watched: GRACE,
        grace: GRACE,
    };
    assert_eq!(classify(&observation).kind, HangKind::Deadlock);
}

#[test]
fn a_thread_that_vanished_leaves_nothing_to_decide() {
    let (first, _) = samples(&[blocked(Role::Overdue, Wait::ThreadUntimed, "futex")]);
    let observation = Observation {
        first: &first,
        second: &[],
        interval: INTERVAL,
        returned: false,
        iterations_elsewhere: 0,
        watched: Duration::ZERO,
        grace: GRACE,
    };
    assert_eq!(classify(&observation).kind, HangKind::Slow);
}
