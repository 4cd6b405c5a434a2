//! Timers of the program in virtual time.
//!
//! A timer that is set has a thread of ours in the run, its *sleeper*: it sleeps until the moment has come, so that the
//! strategy decides when that is, as for every other timeout; then it does what the timer is for, and sleeps again if the
//! timer has an interval. Setting a timer anew, or stopping it, wakes the sleeper, which finds that it is not wanted any
//! more and ends. A timer that only shows what is left (`SIGEV_NONE`) needs none.
//!
//! A timer whose signal would end the process is a watchdog: an hour that a strategy lets pass in no time is not the hour
//! that the program feared. Its signal waits until the program handles it, and a program that waits for nothing else is
//! deadlocked.

use core::ffi::c_void;

use waylay_schedule::{Event, EventKind};

use super::logical::{Logical, Routine};
use super::signals::{self, Origin};
use super::{Token, create, descriptors_changed, sleep, step};
use crate::me::{Unmanaged, as_program, me};
use crate::sched::Moment;
use crate::sys;

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// A signal for the process, or for the thread with that number, with a value or without.
    Signal { signal: i32, to: Option<i32>, value: Option<usize> },
    /// A call on a thread of its own with such a stack: `function(value)`.
    Call(unsafe extern "C-unwind" fn(usize), usize, Stack),
    /// A count of ends that can be read from a descriptor: our own copy of it, so that it stays what it is.
    Descriptor(i32),
    /// Nothing: the program looks what is left.
    Nothing,
}

/// The stack of a thread that a timer starts; 0 is what threads have that ask for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stack {
    size: usize,
    guard: Option<usize>,
}

impl Stack {
    /// The one that attributes ask for, if there are any. They are not used later: the program may destroy them.
    ///
    /// # Safety
    /// They are initialised, or null.
    pub(crate) unsafe fn asked_for(attributes: *const libc::pthread_attr_t) -> Stack {
        if attributes.is_null() {
            return Stack::default();
        }
        let (mut size, mut guard) = (0, 0);
        // SAFETY: by the caller's promise.
        unsafe {
            libc::pthread_attr_getstacksize(attributes, &raw mut size);
            libc::pthread_attr_getguardsize(attributes, &raw mut guard);
        }
        Stack { size, guard: Some(guard) }
    }
}

/// Creates a detached thread of ours. Returns libc's error number, 0 for success.
///
/// # Safety
/// `routine` may be called with `argument`.
unsafe fn detached(me: &mut Token, stack: Stack, routine: Routine, argument: *mut c_void) -> i32 {
    let mut attributes = core::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let attributes = attributes.as_mut_ptr();
    let mut handle = 0;
    // SAFETY: by the caller's promise; attributes are initialised first and destroyed last.
    unsafe {
        libc::pthread_attr_init(attributes);
        libc::pthread_attr_setdetachstate(attributes, libc::PTHREAD_CREATE_DETACHED);
        if stack.size > 0 {
            libc::pthread_attr_setstacksize(attributes, stack.size);
        }
        if let Some(guard) = stack.guard {
            libc::pthread_attr_setguardsize(attributes, guard);
        }
        let error = create(me, &raw mut handle, attributes, routine, argument);
        libc::pthread_attr_destroy(attributes);
        error
    }
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
    /// When it came to its end first since the program was told, if the signal is still on its way.
    untold: Option<Moment>,
    /// How often it had come to its end again when the program was told.
    overruns: u64,
}

struct Order {
    timer: *mut Timer,
    set: u64,
}

impl Timer {
    /// A timer that is not set.
    pub(crate) const fn new(purpose: Purpose) -> Timer {
        Timer { purpose, set: 0, deadline: None, interval: 0, sleeper: core::ptr::null_mut(), untold: None, overruns: 0 }
    }

    /// How often it had come to its end again when the program was told that it did.
    pub(crate) fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Nanoseconds until it ends, 0 if it is not set, and its interval.
    pub(crate) fn left(&self, me: &mut Token) -> (u64, u64) {
        let now = me.run().sched.clock.now();
        let left = self.deadline.map_or(0, |deadline| match self.purpose {
            // Nobody is told of its end.
            Purpose::Nothing if deadline <= now => match (now.0 - deadline.0).checked_rem(self.interval) {
                Some(since) => self.interval - since,
                None => 0,
            },
            _ => deadline.0.saturating_sub(now.0).max(1),
        });
        (left, if self.deadline.is_some() { self.interval } else { 0 })
    }
}

/// Sets a timer, or stops it when there is no deadline. Returns libc's error number, 0 for success.
///
/// # Safety
/// The timer lives for good.
pub(crate) unsafe fn set(
    me: &mut Token,
    timer: *mut Timer,
    deadline: Option<Moment>,
    interval: u64,
) -> i32 {
    // SAFETY: by the caller's promise; a sleeper that is remembered has not ended.
    unsafe {
        (*timer).set += 1;
        (*timer).deadline = deadline;
        (*timer).interval = interval;
        (*timer).untold = None;
        set_alarm(me, timer);
        let before = core::mem::replace(&mut (*timer).sleeper, core::ptr::null_mut());
        if !before.is_null() {
            me.run().sched.interrupt((*before).id);
        }
        if deadline.is_none() || matches!((*timer).purpose, Purpose::Nothing) {
            return 0;
        }
        let order = Box::into_raw(Box::new(Order { timer, set: (*timer).set }));
        let stack = if let Purpose::Call(_, _, stack) = (*timer).purpose { stack } else { Stack::default() };
        let error = detached(me, stack, sleeper, order.cast());
        if error != 0 {
            (*timer).deadline = None;
            drop(Box::from_raw(order));
        }
        error
    }
}

/// Whether a thread of the run is the sleeper of a timer, which gets no signal that is for the process.
///
/// # Safety
/// The thread exists.
pub(super) unsafe fn is_sleeper(thread: *mut Logical) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { (*thread).routine.is_some_and(|routine| routine as *const () == sleeper as *const ()) }
}

/// The life of a sleeper. It is entered as program code is.
extern "C-unwind" fn sleeper(order: *mut c_void) -> *mut c_void {
    let running = me();
    let inside = Unmanaged::enter_from(running);
    // SAFETY: the creator passed an order; a thread that runs has the token; timers live for good.
    unsafe {
        let me = Token::held_by(running);
        let Order { timer, set } = *Box::from_raw(order.cast::<Order>());
        let wanted = move || (*timer).set == set;
        if wanted() {
            (*timer).sleeper = running;
        }
        while wanted() && let Some(deadline) = (*timer).deadline {
            sleep(me, deadline);
            // It may have been put off meanwhile.
            let Some(deadline) = (*timer).deadline.filter(|_| wanted()) else { break };
            let now = me.run().sched.clock.now();
            if now < deadline {
                continue;
            }
            let missed = (now.0 - deadline.0).checked_div((*timer).interval);
            (*timer).deadline = missed.map(|missed| after(deadline, missed + 1, (*timer).interval));
            if (*timer).deadline.is_none() {
                // The function that it calls may end the thread, or set the timer anew.
                (*timer).sleeper = core::ptr::null_mut();
            }
            if (*timer).untold.is_none() {
                act(me, timer, deadline);
            }
            if wanted() {
                set_alarm(me, timer);
            }
        }
        if wanted() {
            (*timer).sleeper = core::ptr::null_mut();
        }
    }
    drop(inside);
    core::ptr::null_mut()
}

/// One call of a timer that goes on.
extern "C-unwind" fn calls(call: *mut c_void) -> *mut c_void {
    // SAFETY: the creator passed a function of the program's and the value for it.
    unsafe {
        let (function, value) = *Box::from_raw(call.cast::<(unsafe extern "C-unwind" fn(usize), usize)>());
        function(value);
    }
    core::ptr::null_mut()
}

/// The moment that lies so many intervals behind another.
fn after(moment: Moment, intervals: u64, length: u64) -> Moment {
    Moment(moment.0.saturating_add(intervals.saturating_mul(length)))
}

/// What has a signal to send interrupts whoever waits for longer.
unsafe fn set_alarm(me: &mut Token, timer: *mut Timer) {
    // SAFETY: called with the token; timers live for good.
    unsafe {
        if let Purpose::Signal { .. } = (*timer).purpose {
            me.run().sched.set_alarm(timer as usize, (*timer).deadline);
        }
    }
}

/// The program is told that a timer came to its end. How often it did so again meanwhile.
///
/// # Safety
/// The timer was made by [`Timer::new`] and lives for good.
pub(super) unsafe fn told(me: &mut Token, timer: *mut Timer) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe {
        let Some(first) = (*timer).untold.take() else { return 0 };
        let passed = me.run().sched.clock.now().0.saturating_sub(first.0);
        (*timer).overruns = passed.checked_div((*timer).interval).unwrap_or(0);
        if (*timer).interval > 0 && (*timer).deadline.is_some() {
            (*timer).deadline = Some(after(first, (*timer).overruns + 1, (*timer).interval));
            set_alarm(me, timer);
        }
        (*timer).overruns
    }
}

unsafe fn act(me: &mut Token, timer: *mut Timer, end: Moment) {
    // SAFETY: the calling thread has the token.
    unsafe {
        match (*timer).purpose {
            Purpose::Signal { signal, to, value } => {
                let set = (*timer).set;
                step(me, Event::local(EventKind::SignalSend));
                if (*timer).set != set {
                    // Stopped, or set anew, before it could be told.
                    return;
                }
                let origin = value.map_or(Origin::Process, |value| Origin::Timer(value, timer));
                if value.is_some() {
                    (*timer).untold = Some(end);
                }
                signals::send(me, signal, to, origin);
            }
            // Nothing comes behind the last call, which has the sleeper's thread for its own.
            Purpose::Call(function, value, _) if (*timer).deadline.is_none() => as_program(me, || function(value)),
            // Calls may wait for each other, and each may end its thread.
            Purpose::Call(function, value, stack) => {
                let call = Box::into_raw(Box::new((function, value)));
                if detached(me, stack, calls, call.cast()) != 0 {
                    drop(Box::from_raw(call));
                }
            }
            Purpose::Descriptor(descriptor) => {
                let one = 1u64;
                let args = [descriptor as usize, &raw const one as usize, size_of_val(&one), 0, 0, 0];
                sys::call(libc::SYS_write, args);
                descriptors_changed(me);
            }
            Purpose::Nothing => {}
        }
    }
}
