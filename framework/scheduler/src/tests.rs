//! The scheduler without any thread: a scripted strategy says who runs, and the choices are looked at.

use core::sync::atomic::AtomicU64;

use waylay_control_protocol::Stretch;
use waylay_schedule::{Event, EventKind, ObjectId, RandomWalk, Run, RunParameters, Strategy, ThreadId};

use super::recording::Recording;
use super::scheduler::{Choice, Scheduler, TimeoutPolicy};
use super::thread::{Acquire, Key, Outcome, Shares, State};

/// A scheduler with `threads` threads; the record is leaked, which a test can afford.
fn scheduler(threads: u32, policy: TimeoutPolicy) -> Scheduler {
    let memory = Box::leak(vec![Stretch { thread: 0, first: 0, steps: 0 }; 1000].into_boxed_slice());
    let count = Box::leak(Box::new(AtomicU64::new(0)));
    // SAFETY: leaked, so valid for ever, and used by this recording only.
    let recording = unsafe { Recording::into(memory.as_mut_ptr(), memory.len(), count) };
    let mut strategy = RandomWalk::new();
    strategy.begin(Run::default(), &RunParameters::of("random"));
    let mut scheduler = Scheduler::new(strategy.into(), policy, recording);
    for _ in 0..threads {
        scheduler.add_thread();
    }
    scheduler
}

const MUTEX: Key = Key(0x40);
const CONDITION: Key = Key(0x80);

fn lock() -> Event {
    Event::new(EventKind::MutexLock, ObjectId(MUTEX.0 as u64))
}

fn run(choice: Choice) -> ThreadId {
    match choice {
        Choice::Run(thread) => thread,
        other => panic!("{other:?}"),
    }
}

/// Lets the walk go on until `thread` is the one that runs.
fn until_runs(scheduler: &mut Scheduler, thread: ThreadId) {
    for _ in 0..1000 {
        if scheduler.step(Event::local(EventKind::Yield)) == thread {
            return;
        }
    }
    panic!("{thread} is never chosen");
}

#[test]
fn nobody_left_to_run_is_a_deadlock_and_nobody_left_at_all_is_the_end() {
    let mut scheduler = scheduler(2, TimeoutPolicy::Idle);
    let other = run(scheduler.wait(lock(), MUTEX, Shares::ALL, None, None));
    assert_eq!(other, ThreadId(1));
    assert_eq!(scheduler.wait(lock(), MUTEX, Shares::ALL, None, None), Choice::Deadlock);
    scheduler.freed(MUTEX, Shares::ALL);
    run(scheduler.choose());
    run(scheduler.finish());
    assert_eq!(scheduler.finish(), Choice::Finished);
}

#[test]
fn what_one_takes_another_that_announced_it_waits_for() {
    let mut scheduler = scheduler(2, TimeoutPolicy::Idle);
    until_runs(&mut scheduler, ThreadId(1));
    // Thread 1 announces the lock until the walk prefers thread 0, which then takes the mutex first.
    while scheduler.step_acquire(lock(), MUTEX, Shares::ALL, None) == ThreadId(1) {}
    scheduler.taken(MUTEX, Shares::ALL);
    assert_eq!(scheduler.thread(ThreadId(1)).state, State::Blocked);
    for _ in 0..100 {
        assert_eq!(scheduler.step(Event::local(EventKind::Yield)), ThreadId(0));
    }
    scheduler.freed(MUTEX, Shares::ALL);
    until_runs(&mut scheduler, ThreadId(1));
    assert_eq!(scheduler.take_outcome(ThreadId(1)), Outcome::Woken);
}

#[test]
fn readers_do_not_stop_readers() {
    const READ: Shares = Shares(1);
    const WRITE: Shares = Shares(2);
    let mut scheduler = scheduler(3, TimeoutPolicy::Idle);
    until_runs(&mut scheduler, ThreadId(1));
    while scheduler.step_acquire(lock(), MUTEX, READ, None) != ThreadId(2) {
        until_runs(&mut scheduler, ThreadId(1));
    }
    while scheduler.step_acquire(lock(), MUTEX, WRITE, None) != ThreadId(0) {
        until_runs(&mut scheduler, ThreadId(2));
    }
    scheduler.taken(MUTEX, WRITE);
    assert_eq!(scheduler.thread(ThreadId(1)).state, State::Ready);
    assert_eq!(scheduler.thread(ThreadId(2)).state, State::Blocked);
}

#[test]
fn a_woken_waiter_still_has_to_wait_for_its_mutex() {
    fn is_held(_: Key) -> bool {
        false
    }
    let then = Acquire { event: lock(), key: MUTEX, is_free: is_held };
    let mut scheduler = scheduler(2, TimeoutPolicy::Choice);
    until_runs(&mut scheduler, ThreadId(1));
    let event = Event::cond_wait(ObjectId(CONDITION.0 as u64), ObjectId(MUTEX.0 as u64));
    assert_eq!(run(scheduler.wait(event, CONDITION, Shares::ALL, None, Some(then))), ThreadId(0));
    assert_eq!(scheduler.wake(CONDITION, 1, Shares::ALL), 1);
    assert_eq!(scheduler.wake(CONDITION, 1, Shares::ALL), 0);
    let waiter = scheduler.thread(ThreadId(1));
    assert_eq!((waiter.state, waiter.pending.kind), (State::Blocked, EventKind::MutexLock));
    scheduler.freed(MUTEX, Shares::ALL);
    until_runs(&mut scheduler, ThreadId(1));
    assert_eq!(scheduler.take_outcome(ThreadId(1)), Outcome::Woken);
}

#[test]
fn idle_deadlines_come_in_their_order_and_move_the_clock() {
    let mut scheduler = scheduler(2, TimeoutPolicy::Idle);
    let (soon, late) = (scheduler.clock.after(1_000), scheduler.clock.after(9_000));
    let other = run(scheduler.sleep(late));
    assert_eq!(other, ThreadId(1));
    assert_eq!(run(scheduler.sleep(soon)), ThreadId(1));
    assert_eq!(scheduler.clock.now(), soon);
    assert_eq!(scheduler.take_outcome(ThreadId(1)), Outcome::TimedOut);
    assert_eq!(run(scheduler.finish()), ThreadId(0));
    assert_eq!(scheduler.clock.now(), late);
}

#[test]
fn a_deadline_of_choice_may_come_before_others_are_done() {
    let mut scheduler = scheduler(2, TimeoutPolicy::Choice);
    until_runs(&mut scheduler, ThreadId(1));
    let deadline = scheduler.clock.after(3_600_000_000_000);
    let mut next = run(scheduler.wait(lock(), MUTEX, Shares::ALL, Some(deadline), None));
    while next != ThreadId(1) {
        next = scheduler.step(Event::local(EventKind::Yield));
    }
    assert_eq!(scheduler.take_outcome(ThreadId(1)), Outcome::TimedOut);
    assert!(scheduler.clock.now() >= deadline);
    // The line is left: what is freed later concerns nobody.
    assert_eq!(scheduler.waiting_on(MUTEX), 0);
}

#[test]
fn the_longer_of_two_sleeps_that_ends_first_is_told() {
    let mut scheduler = scheduler(2, TimeoutPolicy::Choice);
    until_runs(&mut scheduler, ThreadId(1));
    let late = scheduler.clock.after(3_600_000_000_000);
    let mut next = run(scheduler.sleep(late));
    // Nobody is ready when both sleep, but the other's time comes first.
    for _ in 0..1000 {
        if next == ThreadId(1) {
            assert!(scheduler.takes_first_hurry());
            assert!(!scheduler.takes_first_hurry(), "told once");
            return;
        }
        assert!(!scheduler.takes_first_hurry(), "the shorter sleep ended first");
        next = run(scheduler.sleep(scheduler.clock.after(1)));
    }
    panic!("the longer sleep never ends first");
}

#[test]
fn time_waits_for_a_thread_that_is_away() {
    let mut scheduler = scheduler(2, TimeoutPolicy::Idle);
    let away = Event::new(EventKind::BlockingReturn, ObjectId::UNKNOWN);
    assert_eq!(run(scheduler.leave(away)), ThreadId(1));
    let deadline = scheduler.clock.after(1_000);
    assert_eq!(scheduler.sleep(deadline), Choice::Idle);
    scheduler.arrive(ThreadId(0));
    assert_eq!(run(scheduler.choose()), ThreadId(0));
    assert!(scheduler.clock.now() < deadline);
}

#[test]
fn requeued_waiters_are_woken_at_their_new_place() {
    let mut scheduler = scheduler(3, TimeoutPolicy::Idle);
    let event = Event::new(EventKind::FutexWait, ObjectId(CONDITION.0 as u64));
    run(scheduler.wait(event, CONDITION, Shares::ALL, None, None));
    run(scheduler.wait(event, CONDITION, Shares::ALL, None, None));
    assert_eq!(scheduler.requeue(CONDITION, MUTEX, 1), 1);
    assert_eq!((scheduler.waiting_on(CONDITION), scheduler.waiting_on(MUTEX)), (1, 1));
    assert_eq!(scheduler.wake(MUTEX, u32::MAX, Shares::ALL), 1);
    assert_eq!(scheduler.wake(CONDITION, u32::MAX, Shares::ALL), 1);
}

mod flushers {
    use core::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    static LEFT: AtomicU32 = AtomicU32::new(0);

    fn oldest() -> Event {
        Event::access(EventKind::StoreFlush, 0x1000, 4)
    }

    fn flush(owner: ThreadId) -> Option<Event> {
        assert_eq!(owner, ThreadId::MAIN);
        (LEFT.fetch_sub(1, Ordering::Relaxed) > 1).then(oldest)
    }

    #[test]
    fn stores_are_flushed_by_steps_that_no_thread_makes() {
        let mut scheduler = scheduler(2, TimeoutPolicy::Idle);
        until_runs(&mut scheduler, ThreadId::MAIN);
        LEFT.store(3, Ordering::Relaxed);
        assert_eq!(scheduler.stores_wait(ThreadId::MAIN, oldest(), flush), Some(ThreadId(2)));
        assert_eq!(scheduler.flushes_for(ThreadId(2)), Some(ThreadId::MAIN));
        let mut chosen = 0;
        while LEFT.load(Ordering::Relaxed) > 0 {
            // Only threads are ever told to run, and nobody waits for what flushes.
            let next = scheduler.step(Event::local(EventKind::Yield));
            assert!(next.0 < 2 && scheduler.live() == 2, "{next}");
            chosen += 1;
        }
        assert_eq!(scheduler.thread(ThreadId(2)).steps, 3);
        let of_threads: u64 = (0..2).map(|thread| scheduler.thread(ThreadId(thread)).steps).sum();
        assert!(
            of_threads >= chosen && scheduler.steps == of_threads + 3,
            "{} {of_threads}",
            scheduler.steps
        );
        // The same flusher serves the thread's later stores, and ends with it.
        until_runs(&mut scheduler, ThreadId::MAIN);
        LEFT.store(1, Ordering::Relaxed);
        assert_eq!(scheduler.stores_wait(ThreadId::MAIN, oldest(), flush), None);
        scheduler.no_store_waits(ThreadId::MAIN);
        assert_eq!(run(scheduler.finish()), ThreadId(1));
        assert_eq!(scheduler.finish(), Choice::Finished);
        assert_eq!(LEFT.load(Ordering::Relaxed), 1, "what is drained is not flushed");
    }
}
