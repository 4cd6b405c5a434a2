//! Timers of the program in virtual time.
//!
//! A timer that is set has a thread of ours in the run, its *sleeper*: it sleeps until the moment has come, so that the
//! strategy decides when that is, as for every other timeout; then it does what the timer is for, and sleeps again if the
//! timer has an interval. Setting a timer anew, or stopping it, wakes the sleeper, which finds that it is not wanted any
//! more and ends.
//!
//! A timer whose signal would end the process is a watchdog: an hour that a strategy lets pass in no time is not the hour
//! that the program feared. Its signal waits until the program handles it, and a program that waits for nothing else is
//! deadlocked.

use core::ffi::c_void;

use waylay_schedule::{Event, EventKind};

use super::logical::Logical;
use super::{create, descriptors_changed, interrupt, runtime, sleep, step};
use crate::instrument::edge;
use crate::me::{Unmanaged, as_program, me};
use crate::sched::{Moment, State};
use crate::sys;

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// A signal for the process, or for the thread with that number, with a value or without.
    Signal { signal: i32, to: Option<i32>, value: Option<usize> },
    /// A call on a thread of its own: `function(value)`.
    Call(unsafe extern "C-unwind" fn(usize), usize),
    /// A count of ends that can be read from a descriptor: our own copy of it, so that it stays what it is.
    Descriptor(i32),
    /// Nothing: the program looks what is left.
    Nothing,
}

/// One timer. Lives at a fixed address for as long as the process, because a sleeper may still hold it.
#[derive(Debug)]
pub(crate) struct Timer {
    purpose: Purpose,
    /// Counts how often it was set; a sleeper of an earlier time ends.
    set: u64,
    deadline: Option<Moment>,
    interval: u64,
    sleeper: *mut Logical,
}

struct Order {
    timer: *mut Timer,
    set: u64,
}

impl Timer {
    /// A timer that is not set.
    pub(crate) const fn new(purpose: Purpose) -> Timer {
        Timer { purpose, set: 0, deadline: None, interval: 0, sleeper: core::ptr::null_mut() }
    }

    /// Nanoseconds until it ends, 0 if it is not set, and its interval.
    ///
    /// # Safety
    /// The caller holds the token.
    pub(crate) unsafe fn left(&self) -> (u64, u64) {
        // SAFETY: by the caller's promise.
        let now = unsafe { (*runtime()).sched.clock.now() };
        let left = self.deadline.map_or(0, |deadline| deadline.0.saturating_sub(now.0).max(1));
        (left, if self.deadline.is_some() { self.interval } else { 0 })
    }
}

/// Sets a timer, or stops it when there is no deadline. Returns libc's error number, 0 for success.
///
/// # Safety
/// `me` executes the call and holds the token; the timer lives for good.
pub(crate) unsafe fn set(
    me: *mut Logical,
    timer: *mut Timer,
    deadline: Option<Moment>,
    interval: u64,
) -> i32 {
    // SAFETY: by the caller's promise; a sleeper that is remembered has not ended.
    unsafe {
        (*timer).set += 1;
        (*timer).deadline = deadline;
        (*timer).interval = interval;
        let before = core::mem::replace(&mut (*timer).sleeper, core::ptr::null_mut());
        if !before.is_null() {
            interrupt(before);
        }
        if deadline.is_none() {
            return 0;
        }
        let order = Box::into_raw(Box::new(Order { timer, set: (*timer).set }));
        let mut attributes = core::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let mut handle = 0;
        let error = create(me, &raw mut handle, attributes.as_ptr(), sleeper, order.cast());
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        if error != 0 {
            (*timer).deadline = None;
            drop(Box::from_raw(order));
        }
        error
    }
}

/// The life of a sleeper. It is entered as program code is.
extern "C-unwind" fn sleeper(order: *mut c_void) -> *mut c_void {
    let me = me();
    let inside = Unmanaged::enter_from(me);
    // SAFETY: the creator passed an order; a thread that runs has the token; timers live for good.
    unsafe {
        let Order { timer, set } = *Box::from_raw(order.cast::<Order>());
        let wanted = move || (*timer).set == set;
        if wanted() {
            (*timer).sleeper = me;
        }
        while wanted() && let Some(deadline) = (*timer).deadline {
            sleep(me, deadline);
            if !wanted() {
                break;
            }
            if (*runtime()).sched.clock.now() < deadline {
                continue;
            }
            let again = ((*timer).interval > 0).then(|| Moment(deadline.0.saturating_add((*timer).interval)));
            (*timer).deadline = again;
            act(me, (*timer).purpose);
        }
        if wanted() {
            (*timer).sleeper = core::ptr::null_mut();
        }
    }
    drop(inside);
    core::ptr::null_mut()
}

unsafe fn act(me: *mut Logical, purpose: Purpose) {
    // SAFETY: the calling thread has the token.
    unsafe {
        match purpose {
            Purpose::Signal { signal, to, value } => {
                step(me, Event::local(EventKind::SignalSend));
                send(me, signal, to, value);
            }
            Purpose::Call(function, value) => as_program(me, || function(value)),
            Purpose::Descriptor(descriptor) => {
                let one = 1u64;
                let args = [descriptor as usize, &raw const one as usize, size_of_val(&one), 0, 0, 0];
                sys::call(libc::SYS_write, args);
                descriptors_changed();
            }
            Purpose::Nothing => {}
        }
    }
}

/// Sends a signal to the thread with that number; or to the first that does not block it, or waits for it in the kernel;
/// or, if there is none, keeps it until one of them wants it.
unsafe fn send(me: *mut Logical, signal: i32, to: Option<i32>, value: Option<usize>) {
    let bit = 1u64 << (signal - 1);
    // SAFETY: called with the token; threads that have not finished exist.
    unsafe {
        let runtime = runtime();
        let is_sleeper = |thread: *mut Logical| {
            (*thread).routine.is_some_and(|routine| routine as *const () == sleeper as *const ())
        };
        let takes = |thread: *mut Logical| match to {
            Some(number) => (*thread).kernel_id == number,
            None => {
                let away = (*runtime).sched.thread((*thread).id).state == State::Away;
                let waits = away && (*thread).accepts & bit != 0;
                (waits || (*thread).mask & bit == 0) && !is_sleeper(thread)
            }
        };
        let mut alive = (*runtime).logicals.iter().copied().filter(|&thread| !(*runtime).has_finished(thread));
        let target = alive.find(|&thread| takes(thread));
        if target.is_some_and(|target| (*target).mask & bit == 0) && would_end_process(signal) {
            (*runtime).overdue |= bit;
            return;
        }
        target.into_iter().for_each(|target| edge::signals(me, target));
        (*runtime).sched.signals_may_come = true;
        let process = sys::call(libc::SYS_getpid, [0; 6]) as usize;
        match target {
            // It sits in the kernel on its own kernel thread, where the signal belongs.
            Some(target) if (*runtime).sched.thread((*target).id).state == State::Away => {
                queue(process, (*target).kernel_id, signal, value);
            }
            target => {
                (*runtime).values.retain(|(known, _)| *known != signal);
                (*runtime).values.extend(value.map(|value| (signal, value)));
                match target {
                    Some(target) => {
                        (*target).pending_signals |= bit;
                        interrupt(target);
                    }
                    None => (*runtime).held |= bit,
                }
            }
        }
    }
}

/// Whether the process has no action of its own for a signal whose default is its end.
fn would_end_process(signal: i32) -> bool {
    const HARMLESS: [i32; 8] = [
        libc::SIGCHLD,
        libc::SIGCONT,
        libc::SIGURG,
        libc::SIGWINCH,
        libc::SIGSTOP,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
    ];
    action_of(signal) == Some(libc::SIG_DFL) && !HARMLESS.contains(&signal)
}

/// Whether the program has a handler for a signal.
fn is_handled(signal: i32) -> bool {
    action_of(signal).is_some_and(|action| action != libc::SIG_DFL && action != libc::SIG_IGN)
}

fn action_of(signal: i32) -> Option<usize> {
    // As the kernel has it: handler, flags, restorer, mask.
    let mut action = [0usize; 4];
    // SAFETY: the kernel writes no more than that, and changes nothing without a new action.
    let error = unsafe {
        sys::call(libc::SYS_rt_sigaction, [signal as usize, 0, &raw mut action as usize, size_of::<u64>(), 0, 0])
    };
    (error == 0).then_some(action[0])
}

/// The program may handle signals now that it did not handle before: those that timers were to bring are on their way.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn actions_changed(me: *mut Logical) {
    // SAFETY: by the caller's promise.
    unsafe {
        let overdue = core::mem::take(&mut (*runtime()).overdue);
        for signal in (1..=64).filter(|signal| overdue & 1 << (signal - 1) != 0) {
            send(me, signal, None, None);
        }
    }
}

/// The running thread sends a signal to the process; false when that would end it, or when the kernel should have it for
/// another reason.
///
/// # Safety
/// `me` executes the call and holds the token.
pub(crate) unsafe fn send_to_process(me: *mut Logical, signal: i32) -> bool {
    if !is_handled(signal) {
        return false;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        send(me, signal, None, None);
        if (*me).pending_signals & !(*me).mask != 0 {
            super::raise_pending(me);
        }
    }
    true
}

/// Gives signals that nobody wanted to the calling thread, which does not block them any more or is about to wait for them.
///
/// # Safety
/// `me` executes the call and holds the token.
pub(crate) unsafe fn take_held(me: *mut Logical, blocked: u64) {
    // SAFETY: by the caller's promise.
    unsafe {
        actions_changed(me);
        let held = (*runtime()).held & !blocked;
        (*runtime()).held &= !held;
        (*me).pending_signals |= held;
        if (*me).pending_signals & !blocked != 0 {
            super::raise_pending(me);
        }
    }
}

/// Sends a signal to a kernel thread, as a timer does that has this value.
///
/// # Safety
/// None beyond that of a signal.
pub(super) unsafe fn queue(process: usize, thread: i32, signal: i32, value: Option<usize>) {
    /// As the kernel lays it out: number, error, code, a gap, the timer's number and overruns, the value.
    #[repr(C)]
    struct Info {
        numbers: [i32; 4],
        timer: [i32; 2],
        value: usize,
        rest: [u64; 12],
    }
    let Some(value) = value else {
        // SAFETY: takes no pointer.
        unsafe { sys::call(libc::SYS_tgkill, [process, thread as usize, signal as usize, 0, 0, 0]) };
        return;
    };
    let info = Info { numbers: [signal, 0, libc::SI_TIMER, 0], timer: [0; 2], value, rest: [0; 12] };
    let args = [process, thread as usize, signal as usize, &raw const info as usize, 0, 0];
    // SAFETY: the kernel reads 128 bytes, which is what the record has.
    unsafe { sys::call(libc::SYS_rt_tgsigqueueinfo, args) };
}
