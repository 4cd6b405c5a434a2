//! Signals that the run itself sends: between threads, to the process, and from timers.
//!
//! A signal is kept until the thread that gets it runs, which then raises it on itself: handlers run on the right kernel
//! thread, at a point that the schedule decides, and never beside the thread that has the token. If the thread waits, the wait
//! is broken off for the handler; what becomes of the call then is the caller's business, and [`Handled`] tells it what it
//! has to know. Standard signals are kept once, real-time signals as often as they are sent, as the kernel does.

use core::sync::atomic::{AtomicU64, Ordering};

use super::descriptors::descriptors_changed;
use super::handover::{demote_me, in_handlers};
use super::logical::{Logical, Place};
use super::{TICK_SIGNALS, Token, timers};
use crate::instrument::edge;
use crate::sched::State;
use crate::{snapshot, sys};

/// What handlers that ran during a wait mean for the call that waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Handled {
    /// None ran.
    #[default]
    Nothing,
    /// The first that ran wants calls to begin again where they can (`SA_RESTART`).
    Restarts,
    /// The first that ran wants calls to fail.
    Fails,
}

/// Who sent a signal, as the program sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// `kill`.
    Process,
    /// `pthread_kill`.
    Thread,
    /// `sigqueue`, with its value.
    Queue(usize),
    /// A timer, with its value.
    Timer(usize, *mut timers::Timer),
}

/// A signal on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    signal: i32,
    /// Null while no thread takes it.
    to: *mut Logical,
    /// It is for the process: if the thread that was to take it does not, another one does.
    for_process: bool,
    origin: Origin,
}

/// The kernel's first signal of which more than one can be pending.
const FIRST_REAL_TIME: i32 = 32;

/// The kernel's bit for a signal.
pub(crate) fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// What the process does when a signal comes, as the kernel has it.
struct Action {
    handler: usize,
    flags: usize,
}

impl Action {
    fn of(signal: i32) -> Option<Action> {
        // Handler, flags, restorer, mask.
        let mut action = [0usize; 4];
        let args = [signal as usize, 0, &raw mut action as usize, size_of::<u64>(), 0, 0];
        // SAFETY: the kernel writes no more than that, and changes nothing without a new action.
        let error = unsafe { sys::call(libc::SYS_rt_sigaction, args) };
        (error == 0).then_some(Action { handler: action[0], flags: action[1] })
    }

    fn is_handler(&self) -> bool {
        self.handler != libc::SIG_DFL && self.handler != libc::SIG_IGN
    }

    fn is_nothing(&self, signal: i32) -> bool {
        const HARMLESS: [i32; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
        self.handler == libc::SIG_IGN || self.handler == libc::SIG_DFL && HARMLESS.contains(&signal)
    }
}

/// What a handler of this signal means for a call that it interrupts.
fn handled_by(signal: i32) -> Handled {
    match Action::of(signal) {
        Some(action) if action.is_handler() && action.flags & libc::SA_RESTART as usize != 0 => Handled::Restarts,
        Some(action) if action.is_handler() => Handled::Fails,
        _ => Handled::Nothing,
    }
}

/// What the first handler of these signals, which are about to run, means for a call.
pub(crate) fn handled_by_any(signals: u64) -> Handled {
    (1..=64)
        .filter(|&signal| signals & bit(signal) != 0)
        .map(handled_by)
        .find(|&handled| handled != Handled::Nothing)
        .unwrap_or_default()
}

/// Whether the program has a handler for a signal.
fn is_handled(signal: i32) -> bool {
    Action::of(signal).is_some_and(|action| action.is_handler())
}

/// Whether the process has no action of its own for a signal whose default is its end.
fn would_end_process(signal: i32) -> bool {
    const STOPS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    let ends = |action: Action| !action.is_handler() && !action.is_nothing(signal) && !STOPS.contains(&signal);
    Action::of(signal).is_some_and(ends)
}

/// Signals that the kernel keeps for the calling kernel thread or for the process.
pub(crate) fn kernel_pending() -> u64 {
    let mut pending = 0u64;
    // SAFETY: the kernel writes eight bytes, the size passed.
    unsafe { sys::call(libc::SYS_rt_sigpending, [&raw mut pending as usize, size_of::<u64>(), 0, 0, 0, 0]) };
    pending
}

/// Signals that would reach the running thread but for its mask.
pub(crate) fn pending(me: &mut Token) -> u64 {
    // SAFETY: who has the token lives.
    unsafe { kernel_pending() | (*me.thread()).pending_signals | me.run().system.held }
}

/// Notes a signal for a thread, or for the process while no thread takes it, and breaks the thread's wait off for it.
///
/// # Safety
/// The thread has not finished.
unsafe fn post(me: &mut Token, to: *mut Logical, signal: i32, for_process: bool, origin: Origin) {
    // SAFETY: by the caller's promise.
    unsafe {
        // It belongs to whoever takes it first, and a thread that was waiting may have what it wants by now.
        let is_anybodys = to.is_null() || for_process && (*to).accepts & bit(signal) != 0;
        if is_anybodys && is_kept(signal) {
            return give_to_kernel(me, signal, origin);
        }
        if !to.is_null() && me.run().sched.thread((*to).id).state == State::Away {
            // It sits in the kernel on its own kernel thread, where the signal belongs.
            return raise(me, to, signal, origin);
        }
        let runtime = me.run();
        let known = if to.is_null() { &raw mut runtime.system.held } else { &raw mut (*to).pending_signals };
        if *known & bit(signal) == 0 || signal >= FIRST_REAL_TIME {
            runtime.system.sent.push(Sent { signal, to, for_process, origin });
        }
        *known |= bit(signal);
        if to.is_null() {
            return;
        }
        let id = (*to).id;
        if (*to).accepts & bit(signal) != 0 {
            runtime.sched.interrupt(id);
        } else if (*to).mask & bit(signal) == 0 {
            runtime.sched.interrupt_for_signal(id);
        } else if is_kept(signal) && runtime.system.watches.iter().any(|watch| watch.is_of(to)) {
            runtime.sched.interrupt(id);
        }
    }
}

/// Signals that the carrier never blocks: faults of the code that runs there, and those that libc and the library itself use.
const NEVER_KEPT: u64 = 0b11 << 31
    | 1 << (libc::SIGSEGV - 1)
    | 1 << (libc::SIGBUS - 1)
    | 1 << (libc::SIGFPE - 1)
    | 1 << (libc::SIGILL - 1)
    | 1 << (libc::SIGTRAP - 1)
    | 1 << (libc::SIGSYS - 1)
    | 1 << (libc::SIGABRT - 1)
    | TICK_SIGNALS;

/// Signals that the kernel keeps for the process while every thread blocks them, because that is where they are looked for: by
/// descriptors that read them (`signalfd`), by `poll` and `epoll` on behalf of these, and by threads that wait in the kernel.
/// The first descriptor is often made before the first thread, when there is no run yet.
static KEPT: AtomicU64 = AtomicU64::new(0);

/// Signals that the kernel keeps.
pub(super) fn kept_by_kernel() -> u64 {
    KEPT.load(Ordering::Relaxed)
}

fn is_kept(signal: i32) -> bool {
    kept_by_kernel() & bit(signal) != 0
}

/// From now on the kernel keeps these signals; no run has begun, or the calling thread is none of it.
pub(crate) fn kernel_will_keep(signals: u64) {
    KEPT.fetch_or(signals & !NEVER_KEPT, Ordering::Relaxed);
}

/// From now on the kernel keeps these signals for the process, those on their way included.
pub(crate) fn kernel_keeps(me: &mut Token, signals: u64) {
    kernel_will_keep(signals);
    let signals = signals & !NEVER_KEPT;
    // SAFETY: who has the token lives.
    if unsafe { (*me.thread()).place } == Place::Carrier {
        // No thread of the program's: the kernel would deliver there what all of them block.
        sys::block_signals(signals);
    }
    let system = &mut me.run().system;
    let waiting = system.held & signals;
    system.held &= !waiting;
    let readable: Vec<Sent> =
        system.sent.extract_if(.., |sent| sent.to.is_null() && waiting & bit(sent.signal) != 0).collect();
    for Sent { signal, origin, .. } in readable {
        give_to_kernel(me, signal, origin);
    }
}

/// Gives a signal to the kernel, which keeps it because every thread blocks it, and wakes those who can take it from there.
fn give_to_kernel(me: &mut Token, signal: i32, origin: Origin) {
    snapshot::cannot_undo("sends a signal");
    Info::of(me, signal, origin).raise_for_process();
    descriptors_changed(me);
    let run = me.run();
    for &thread in &run.logicals {
        // SAFETY: threads of the run exist until it ends.
        let (id, waits) =
            unsafe { ((*thread).id, (*thread).accepts & bit(signal) != 0 && !run.has_finished(thread)) };
        if waits && run.sched.thread(id).state != State::Away {
            run.sched.interrupt(id);
        }
    }
}

/// The running thread sends a signal to another one, or to itself.
///
/// # Safety
/// The thread has not finished.
pub(crate) unsafe fn send_to_thread(me: &mut Token, to: *mut Logical, signal: i32, origin: Origin) {
    // SAFETY: by the caller's promise.
    unsafe {
        edge::signals(me, to);
        if me.run().sched.thread((*to).id).state == State::Away {
            // It sits in the kernel on its own kernel thread, where the signal belongs.
            return raise(me, to, signal, origin);
        }
        let blocked = (*to).mask & bit(signal) != 0;
        if !blocked && Action::of(signal).is_some_and(|action| action.is_nothing(signal)) {
            return;
        }
        post(me, to, signal, false, origin);
        if to == me.thread() {
            raise_pending(me);
        }
    }
}

/// The running thread sends a signal to the process; false when that is the kernel's business: when it would end the process
/// or do nothing, and when nobody handles it or waits for it.
pub(crate) fn send_to_process(me: &mut Token, signal: i32, origin: Origin) -> bool {
    // SAFETY: who has the token lives.
    unsafe {
        let awaited = me.run().logicals.iter().any(|&thread| (*thread).accepts & bit(signal) != 0);
        // The kernel keeps what every thread blocks; but the carrier, which is no thread of the program's, blocks nothing.
        let run = me.run();
        let kept = (is_kept(signal) || run.system.carrier.is_running()) && run.logicals.iter().all(|&thread| {
            run.has_finished(thread) || timers::is_sleeper(thread) || (*thread).mask & bit(signal) != 0
        });
        if !awaited && !kept && !is_handled(signal) {
            return false;
        }
        send(me, signal, None, origin);
        if (*me.thread()).pending_signals & !(*me.thread()).mask != 0 {
            raise_pending(me);
        }
    }
    true
}

/// Whether a thread takes a signal that is for the process: it does not block it, or waits for it. One that waits takes one
/// signal; what comes before it has done so is for others who wait, or for its next wait.
unsafe fn takes_for_process(thread: *mut Logical, signal: i32) -> bool {
    // SAFETY: called with the token; the thread exists.
    unsafe {
        let accepts = (*thread).accepts;
        let waits = accepts & bit(signal) != 0 && (*thread).pending_signals & accepts == 0;
        (waits || (*thread).mask & bit(signal) == 0) && !timers::is_sleeper(thread)
    }
}

/// Sends a signal to the thread with that number; or to the first that does not block it, or waits for it; or, if there is none,
/// keeps it until one of them wants it.
pub(super) fn send(me: &mut Token, signal: i32, to: Option<i32>, origin: Origin) {
    // SAFETY: threads that have not finished exist.
    unsafe {
        let runtime = me.run();
        let takes = |thread: *mut Logical| match to {
            Some(number) => (*thread).kernel_id == number,
            None => takes_for_process(thread, signal),
        };
        let mut alive = runtime.logicals.iter().copied().filter(|&thread| !runtime.has_finished(thread));
        let target = alive.find(|&thread| takes(thread));
        let waits = target.is_some_and(|target| (*target).accepts & bit(signal) != 0);
        if target.is_some_and(|target| (*target).mask & bit(signal) == 0) && !waits && would_end_process(signal) {
            runtime.system.overdue.push((signal, origin));
            return;
        }
        match target {
            Some(target) => {
                edge::signals(me, target);
                let away = me.run().sched.thread((*target).id).state == State::Away;
                if away || waits || !Action::of(signal).is_some_and(|action| action.is_nothing(signal)) {
                    post(me, target, signal, to.is_none(), origin);
                }
            }
            None => post(me, core::ptr::null_mut(), signal, true, origin),
        }
    }
}

/// The program may handle signals now that it did not handle before: those that timers were to bring are on their way.
pub(crate) fn actions_changed(me: &mut Token) {
    for (signal, origin) in core::mem::take(&mut me.run().system.overdue) {
        send(me, signal, None, origin);
    }
}

/// Gives signals that nobody wanted to the calling thread, which does not block them any more or is about to wait for them.
pub(crate) fn take_held(me: &mut Token, blocked: u64) {
    // SAFETY: who has the token lives.
    unsafe {
        actions_changed(me);
        let thread = me.thread();
        let runtime = me.run();
        let held = runtime.system.held & !blocked;
        if held != 0 {
            runtime.system.held &= !held;
            (*thread).pending_signals |= held;
            let sent = &mut runtime.system.sent;
            sent.iter_mut()
                .filter(|sent| sent.to.is_null() && held & bit(sent.signal) != 0)
                .for_each(|sent| sent.to = thread);
        }
        if (*me.thread()).pending_signals & !blocked != 0 {
            raise_pending(me);
        }
    }
}

/// Gives one of these signals to the calling thread, which is about to wait for them, if nobody wanted it before and none that
/// is for the thread itself is there. The others stay for whoever waits next.
pub(crate) fn take_one_held(me: &mut Token, set: u64) {
    // SAFETY: who has the token lives.
    unsafe {
        actions_changed(me);
        let thread = me.thread();
        let runtime = me.run();
        let held = runtime.system.held & set;
        if held != 0 && (kernel_pending() | (*thread).pending_signals) & set == 0 {
            let signal = held.trailing_zeros() as i32 + 1;
            let is_it = |sent: &Sent| sent.to.is_null() && sent.signal == signal;
            if let Some(sent) = runtime.system.sent.iter_mut().find(|sent| is_it(sent)) {
                sent.to = thread;
                (*thread).pending_signals |= bit(signal);
            }
            if !runtime.system.sent.iter().any(is_it) {
                runtime.system.held &= !bit(signal);
            }
        }
        if (*me.thread()).pending_signals & set != 0 {
            raise_pending(me);
        }
    }
}

/// Raises the signals that others sent to the running thread.
#[cold]
pub(crate) fn raise_pending(me: &mut Token) {
    // SAFETY: the thread has the token; the handler runs before the system call returns, on the thread's own kernel
    // thread, or later if the thread blocks the signal.
    unsafe {
        if snapshot::is_on() && (*me.thread()).pending_signals & !(*me.thread()).mask == 0 {
            return;
        }
        demote_me(me);
        // A handler may wait for things of its own; what the thread was doing goes on behind it.
        let before = me.run().sched.begin_handlers();
        for signal in 1..=64 {
            if (*me.thread()).pending_signals & bit(signal) == 0 {
                continue;
            }
            (*me.thread()).pending_signals &= !bit(signal);
            while let Some(sent) = take_sent(me, signal) {
                let first = core::mem::take(&mut (*me.thread()).handled);
                let blocked = (*me.thread()).mask & bit(signal) != 0;
                let handled = if blocked { Handled::Nothing } else { handled_by(signal) };
                let (thread, info) = (me.thread(), Info::of(me, signal, sent.origin));
                in_handlers(me, bit(signal), || info.raise(thread));
                (*me.thread()).handled = if first == Handled::Nothing { handled } else { first };
            }
        }
        me.run().sched.end_handlers(before);
    }
}

fn take_sent(me: &mut Token, signal: i32) -> Option<Sent> {
    let thread = me.thread();
    let sent = &mut me.run().system.sent;
    let place = sent.iter().position(|sent| sent.to == thread && sent.signal == signal)?;
    Some(sent.remove(place))
}

/// A thread is gone, and so are the signals that were for it alone. Another takes those that are for the process.
pub(super) fn forget(me: &mut Token, thread: *mut Logical) {
    // SAFETY: threads in the list live as long as the run.
    unsafe {
        let runtime = me.run();
        let (left, others) = core::mem::take(&mut runtime.system.sent).into_iter().partition(|sent| sent.to == thread);
        runtime.system.sent = others;
        let left: Vec<Sent> = left;
        for Sent { signal, origin, .. } in left.into_iter().filter(|sent| sent.for_process) {
            let runtime = me.run();
            let alive = |other: &*mut Logical| *other != thread && !runtime.has_finished(*other);
            let takes = |other: &*mut Logical| alive(other) && takes_for_process(*other, signal);
            let target = runtime.logicals.iter().copied().find(takes);
            post(me, target.unwrap_or(core::ptr::null_mut()), signal, true, origin);
        }
    }
}

/// Sends a signal to a thread's kernel thread, as if it came from its origin.
///
/// # Safety
/// The thread has a kernel thread.
unsafe fn raise(me: &mut Token, to: *mut Logical, signal: i32, origin: Origin) {
    let info = Info::of(me, signal, origin);
    // SAFETY: by the caller's promise.
    unsafe { info.raise(to) };
}

/// As the kernel lays it out: number, error, code, a gap; process and user, or a timer's number and overruns; the value.
#[repr(C)]
struct Info {
    numbers: [i32; 4],
    sender: [i32; 2],
    value: usize,
    rest: [u64; 12],
}

impl Info {
    /// What comes with a signal.
    fn of(me: &mut Token, signal: i32, origin: Origin) -> Info {
        const TIMER: i32 = -2;
        const QUEUE: i32 = -1;
        let process = sys::process_id();
        // SAFETY: takes no pointer.
        let user = unsafe { sys::call(libc::SYS_getuid, [0; 6]) } as i32;
        let (code, sender, value) = match origin {
            Origin::Thread => (libc::SI_TKILL, [process, user], 0),
            Origin::Process => (libc::SI_USER, [process, user], 0),
            Origin::Queue(value) => (QUEUE, [process, user], value),
            // SAFETY: timers live for good.
            Origin::Timer(value, timer) => (TIMER, [0, unsafe { timers::told(me, timer) } as i32], value),
        };
        Info { numbers: [signal, 0, code, 0], sender, value, rest: [0; 12] }
    }

    /// Sends it to the process.
    fn raise_for_process(&self) {
        let info = core::ptr::from_ref(self) as usize;
        let args = [sys::process_id() as usize, self.numbers[0] as usize, info, 0, 0, 0];
        // SAFETY: the kernel reads 128 bytes, which is what the record has.
        unsafe {
            if sys::call(libc::SYS_rt_sigqueueinfo, args) == -(libc::EPERM as isize) {
                // What `kill` sends, only `kill` may send, but for the process' first thread.
                sys::call(libc::SYS_kill, args);
            }
        }
    }

    /// Sends it to a thread.
    ///
    /// # Safety
    /// The thread has a kernel thread.
    unsafe fn raise(&self, to: *mut Logical) {
        let (process, signal) = (sys::process_id(), self.numbers[0]);
        // SAFETY: the kernel reads 128 bytes, which is what the record has.
        unsafe {
            let info = core::ptr::from_ref(self) as usize;
            let args = [process as usize, (*to).kernel_id as usize, signal as usize, info, 0, 0];
            if sys::call(libc::SYS_rt_tgsigqueueinfo, args) == -(libc::EPERM as isize) {
                // For another kernel thread the kernel writes these records itself.
                sys::call(libc::SYS_tgkill, args);
            }
        }
    }
}
