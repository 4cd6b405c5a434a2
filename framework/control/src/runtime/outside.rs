//! Threads outside the schedule: made by raw system calls, inside libc, or before `main`.
//!
//! They run beside the logical threads and cannot be scheduled. What they do to objects that logical threads wait
//! for is posted here and taken up at the next choice; and as long as one of them lives, a state in which no logical
//! thread can run is not a deadlock yet. A run with such threads is marked as partly controlled.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use waylay_control_protocol::Statement;
pub(crate) use waylay_control_protocol::account::Beside;
use waylay_runtime::{Stacks, ending, inspect};
use waylay_runtime::outside::is_running;
pub(crate) use waylay_runtime::outside::{may_wait, waits};
use waylay_schedule::{EventKind, ThreadId};

use super::listing::for_each_entry;
use super::waiters::wake;
use super::{Runtime, SHARED, Token, mappings, watcher};
use crate::instrument::{Linux, edge};
use crate::sched::{Choice, Key, Shares, State};
use crate::sys;

/// Whether the program has started a process in this run: what processes share may then be changed from outside.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Threads wait for objects in memory that other processes may have, too, and that nobody here has to have started.
static SHARES: AtomicBool = AtomicBool::new(false);

/// Something that is not under control takes part in the run. The first that does is named.
pub(crate) fn takes_part(me: &mut Token, what: &Beside<'_>) {
    if me.run().note_uncontrolled() {
        inspect::note(me, &Statement::Beside(what.clone()));
    }
}

/// The program starts a process, by a function of this name: it runs beside the schedule.
pub(crate) fn process_starts(me: &mut Token, how: &str) {
    me.run().note_uncontrolled();
    if !STARTED.swap(true, Ordering::Relaxed) {
        let what = Beside::Other(format!("{how} starts a process").into());
        inspect::note(me, &Statement::Beside(what));
        wait_anew(me);
    }
}

/// Whoever waits for an object, or is about to, looks at it again: if processes share it, others than us end that wait from now on.
fn wait_anew(me: &mut Token) {
    let run = me.run();
    for &thread in &run.logicals {
        // SAFETY: threads in the list live as long as the run.
        let id = unsafe { (*thread).id };
        let known = run.sched.thread(id);
        if SHAREABLE.contains(&known.pending.kind) && matches!(known.state, State::Blocked | State::Ready) {
            run.sched.call_off(id);
        }
    }
}

/// Waits for what may lie in memory that processes share.
const SHAREABLE: [EventKind; 7] = [
    EventKind::BarrierWait,
    EventKind::CondWait,
    EventKind::FutexWait,
    EventKind::MutexLock,
    EventKind::RwReadLock,
    EventKind::RwWriteLock,
    EventKind::SemWait,
];

/// Nobody can run, or nothing changes: whether threads wait for objects in memory that other processes may have, too. They look
/// again, and wait for those processes from now on, as after a process was started.
#[cold]
pub(super) fn others_may_help(me: &mut Token) -> bool {
    if SHARES.load(Ordering::Relaxed) {
        return false;
    }
    let run = me.run();
    let waits = |thread: &_| -> Option<usize> {
        let thread: &waylay_scheduler::Thread = thread;
        let waits = thread.state == State::Blocked && SHAREABLE.contains(&thread.pending.kind);
        waits.then_some(thread.pending.object.0 as usize)
    };
    let awaited: Vec<usize> =
        (0..run.logicals.len()).filter_map(|thread| waits(run.sched.thread(ThreadId(thread as u32)))).collect();
    let is_in = |(first, last): (usize, usize)| awaited.iter().any(|at| (first..=last).contains(at));
    if awaited.is_empty() || !mappings::has(|line| mappings::shared(line).is_some_and(is_in)) {
        return false;
    }
    SHARES.store(true, Ordering::Relaxed);
    takes_part(me, &Beside::Other("other processes may have the memory in which threads wait".into()));
    wait_anew(me);
    true
}

/// Whether others than the threads of the run may end a wait, so that nobody can say that nothing ever changes.
pub(super) fn may_be_awaited(me: &mut Token) -> bool {
    SHARES.load(Ordering::Relaxed) || has_children() || others_may_help(me)
}

/// A function of this name makes libc start threads of its own.
pub(crate) fn threads_start(me: &mut Token, how: &str) {
    takes_part(me, &Beside::Other(format!("{how} makes libc start threads of its own").into()));
}

/// Whether the program has started a process in this run.
#[inline]
pub(super) fn has_started_processes() -> bool {
    STARTED.load(Ordering::Relaxed)
}

/// Whether objects that were made for several processes may be changed from outside.
#[inline]
pub(crate) fn may_share() -> bool {
    has_started_processes() || SHARES.load(Ordering::Relaxed)
}

/// Whether a process that the program has started may live: time passes for that one as it does.
pub(crate) fn has_children() -> bool {
    has_started_processes() && has_unknown_children()
}

/// The same, for processes that nobody saw start, too: by a call of the program's own, or before the run.
pub(super) fn has_unknown_children() -> bool {
    let options = (libc::WNOHANG | libc::WNOWAIT | libc::WEXITED | libc::__WALL) as usize;
    // SAFETY: nothing is written, and nobody is reaped.
    unsafe { sys::call(libc::SYS_waitid, [libc::P_ALL as usize, 0, 0, options, 0, 0]) != -(libc::ECHILD as isize) }
}

/// What was done to an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// It may be had again.
    Freed,
    /// Up to this many of its waiters were woken.
    Woken(u32),
}

/// Letters are short-lived; should the box ever be full, the oldest acts are done with the newest.
const LETTERS: usize = 256;
/// Real time between two looks while logical threads wait for outsiders.
const SLICE_NS: i64 = 1_000_000;
/// Looks without any letter after which a run is given up: whether the outsiders wait for the program, or the other way round, cannot
/// be seen from here.
const LOOKS: u32 = 3000;

struct Box {
    locked: AtomicBool,
    letters: UnsafeCell<([(Key, Act); LETTERS], usize)>,
}

// SAFETY: the letters are only touched while `locked` is held.
unsafe impl Sync for Box {}

static BOX: Box =
    Box { locked: AtomicBool::new(false), letters: UnsafeCell::new(([(Key(0), Act::Freed); LETTERS], 0)) };
/// Counts letters, for the one who waits for them.
static POSTED: AtomicU32 = AtomicU32::new(0);

impl Box {
    fn with<R>(&self, work: impl FnOnce(&mut [(Key, Act); LETTERS], &mut usize) -> R) -> R {
        // A handler that interrupted the holder and posts a letter itself would wait for ever.
        let mask = sys::swap_signal_mask(u64::MAX);
        while self.locked.swap(true, Ordering::Acquire) {
            sys::yield_now();
        }
        // SAFETY: the flag was false, so nobody else is inside.
        let (letters, count) = unsafe { &mut *self.letters.get() };
        let result = work(letters, count);
        self.locked.store(false, Ordering::Release);
        sys::swap_signal_mask(mask);
        result
    }
}

/// A run begins or ends.
pub(super) fn set_running(running: bool) {
    STARTED.store(false, Ordering::Relaxed);
    SHARES.store(false, Ordering::Relaxed);
    waylay_runtime::outside::set_running(running);
}

/// A thread outside the schedule did something to an object.
#[inline]
pub(crate) fn did(key: Key, act: Act) {
    if is_running() {
        post(key, act);
    }
}

#[cold]
fn post(key: Key, act: Act) {
    BOX.with(|letters, count| {
        if *count < LETTERS {
            letters[*count] = (key, act);
            *count += 1;
        }
    });
    SHARED.attention.store(true, Ordering::Release);
    POSTED.fetch_add(1, Ordering::Release);
    sys::futex_wake(&POSTED);
}

/// Does what the letters say.
#[cold]
pub(super) fn take_letters(me: &mut Token) {
    BOX.with(|letters, count| {
        for &(key, act) in &letters[..*count] {
            takes_part(me, &Beside::Other("a thread that is not under control wakes others".into()));
            edge::outsider(me);
            match act {
                Act::Freed => me.run().sched.freed(key, Shares::ALL),
                Act::Woken(number) => {
                    wake(me, key, number, Shares::ALL);
                }
            }
        }
        *count = 0;
    });
}

/// Nobody can run. Waits for outsiders, if there are any, to change that.
#[cold]
pub(super) fn ask_outsiders(me: &mut Token) -> Choice {
    let mut looks = 0;
    while looks < LOOKS {
        let seen = POSTED.load(Ordering::Acquire);
        take_letters(me);
        let choice = me.run().sched.choose();
        if choice != Choice::Deadlock {
            me.run().note_awaits(false);
            return choice;
        }
        if wait_in_a_circle(me) {
            return choice;
        }
        if others_may_help(me) {
            continue;
        }
        // As long as a child lives, what it shares with the program may change.
        let children = has_children();
        if !children && count_outsiders(me.run()) == 0 {
            return choice;
        }
        me.run().note_awaits(true);
        looks += u32::from(!children);
        let slice = libc::timespec { tv_sec: 0, tv_nsec: SLICE_NS };
        sys::futex_wait_for(&POSTED, seen, &slice);
    }
    takes_part(me, &Beside::Other("threads that are not under control".into()));
    let outsiders = count_outsiders(me.run()) as u32;
    inspect::tell(me, &Statement::Outsiders(outsiders));
    ending::give_up_waiting(me)
}

/// Whether threads under control wait for each other in a circle of mutexes and joins, which nobody else can open.
fn wait_in_a_circle(me: &mut Token) -> bool {
    let threads = me.run().logicals.len();
    (0..threads).any(|first| {
        let first = ThreadId(first as u32);
        let mut at = waits_for(me, first);
        // Who is in no circle may wait for those in one: no walk is longer than there are threads.
        for _ in 0..threads {
            match at {
                Some(thread) if thread != first => at = waits_for(me, thread),
                _ => break,
            }
        }
        at == Some(first)
    })
}

/// The thread whose end, or whose unlocking of a mutex, this one waits for.
fn waits_for(me: &mut Token, thread: ThreadId) -> Option<ThreadId> {
    let known = me.run().sched.thread(thread);
    let (event, waits) = (known.pending, known.state == State::Blocked);
    match event.kind {
        // SAFETY: the thread waits in the event, so its object exists.
        EventKind::MutexLock if waits => unsafe { Linux::holder(me, event) },
        EventKind::ThreadJoin if waits => event.object.0.checked_sub(1).map(|number| ThreadId(number as u32)),
        _ => None,
    }
}

/// Whether threads live that are not under control.
pub(crate) fn are_there(run: &Runtime) -> bool {
    count_outsiders(run) > 0
}

/// Kernel threads of the process that are neither logical threads nor the library's own.
fn count_outsiders(run: &Runtime) -> usize {
    let mut outsiders = 0;
    // A thread that finds out at its very end that nobody can run has finished, but is no outsider.
    let caller = sys::thread_id();
    let ours = [caller, watcher::kernel_id(), run.system.carrier.kernel_id];
    for_each_task(|task| {
        // SAFETY: threads in the list and in the pool live as long as the run.
        unsafe {
            // A finished thread whose kernel thread waits for the next routine is no outsider, joined or not.
            let unfinished = run.logicals.iter().filter(|&&thread| {
                (*thread).recyclable || run.sched.thread((*thread).id).state != State::Finished
            });
            let known = unfinished.chain(&run.system.pool).any(|&thread| (*thread).kernel_id == task);
            outsiders += usize::from(!known && !ours.contains(&task));
        }
    });
    outsiders
}

/// Kernel threads of the process.
pub(crate) fn kernel_threads() -> usize {
    let mut threads = 0;
    for_each_task(|_| threads += 1);
    threads
}

fn for_each_task(mut visit: impl FnMut(i32)) {
    for_each_entry(c"/proc/self/task", |name| {
        if let Some(task) = name.to_str().ok().and_then(|name| name.parse().ok()) {
            visit(task);
        }
    });
}
