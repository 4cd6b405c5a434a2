//! Timers: `alarm`, interval timers, POSIX timers and timer descriptors.
//!
//! Those that count real or monotonic time count virtual time here. Those that count processor time cannot, and neither can
//! any when clocks are left real: they go to the kernel, and such runs are marked as partly controlled.

use core::cell::UnsafeCell;
use core::ffi::c_void;

use libc::{EINVAL, c_int, c_uint, clockid_t, itimerspec, itimerval, sigevent, timespec, timeval};

use super::clock::{is_length, is_virtual, moment_of, nanoseconds, timespec_of};
use super::{fail, interpose, signal};
use crate::me::Unmanaged;
use crate::runtime::Token;
use crate::runtime::outside::{Beside, takes_part};
use crate::runtime::timers::{self, Purpose, Stack, Timer};
use crate::sys;

/// Every timer of the program, and how many it has made.
struct Timers(UnsafeCell<(Vec<Entry>, usize)>);

// SAFETY: only the holder of the token looks inside.
unsafe impl Sync for Timers {}

static TIMERS: Timers = Timers(UnsafeCell::new((Vec::new(), 0)));

#[derive(Clone, Copy)]
struct Entry {
    handle: Handle,
    /// Absolute times are those of this clock.
    clock: clockid_t,
    timer: *mut Timer,
}

/// What the program calls a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handle {
    /// The one of `alarm` and `setitimer`.
    Alarm,
    Made(usize),
    Descriptor(c_int),
}

/// What the program calls its first timer: no address, and no number of the kernel's, which are small.
const FIRST_HANDLE: usize = 0x5741_0000;

/// All timers, and how many were made.
fn timers_of(_me: &mut Token) -> &mut (Vec<Entry>, usize) {
    // SAFETY: only the running thread touches them, which has the token and lends it for as long.
    unsafe { &mut *TIMERS.0.get() }
}

fn find(me: &mut Token, handle: Handle) -> Option<Entry> {
    timers_of(me).0.iter().find(|entry| entry.handle == handle).copied()
}

fn add(me: &mut Token, handle: Handle, clock: clockid_t, purpose: Purpose) -> *mut Timer {
    let timer = Box::into_raw(Box::new(Timer::new(purpose)));
    forget(me, handle);
    timers_of(me).0.push(Entry { handle, clock, timer });
    timer
}

fn forget(me: &mut Token, handle: Handle) {
    timers_of(me).0.retain(|entry| entry.handle != handle);
}

/// Forgets the timers of the run before.
pub(crate) fn begin_run(me: &mut Token) {
    let (all, made) = timers_of(me);
    all.clear();
    *made = 0;
}

fn alarm_timer(me: &mut Token) -> *mut Timer {
    let purpose = Purpose::Signal { signal: libc::SIGALRM, to: None, value: None };
    match find(me, Handle::Alarm) {
        Some(entry) => entry.timer,
        None => add(me, Handle::Alarm, libc::CLOCK_REALTIME, purpose),
    }
}

fn counts_time(clock: clockid_t) -> bool {
    matches!(
        clock,
        libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC | libc::CLOCK_BOOTTIME | libc::CLOCK_TAI
            | libc::CLOCK_REALTIME_ALARM | libc::CLOCK_BOOTTIME_ALARM
    )
}

/// A timer of the kernel's takes part in the run.
fn is_real(me: &mut Token, how: &str) {
    signal::may_come(me);
    takes_part(me, &Beside::Other(format!("{how} sets a timer of the kernel").into()));
}

fn timeval_of(nanoseconds: u64) -> timeval {
    let time = timespec_of(nanoseconds);
    // Rounded up: what is set and shows nothing would look as if it were not set.
    let micros = (time.tv_nsec + 999) / 1000;
    timeval { tv_sec: time.tv_sec + micros / 1_000_000, tv_usec: micros % 1_000_000 }
}

fn of_timeval(time: &timeval) -> u64 {
    nanoseconds(&timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_usec * 1000 })
}

unsafe fn spec_of(me: &mut Token, timer: *mut Timer) -> itimerspec {
    // SAFETY: timers live for good.
    let (left, interval) = unsafe { (*timer).left(me) };
    itimerspec { it_interval: timespec_of(interval), it_value: timespec_of(left) }
}

/// Sets a timer as `timer_settime` does, whose clock shows the time.
unsafe fn set_by(
    me: &mut Token,
    entry: Entry,
    absolute: bool,
    new: *const itimerspec,
    old: *mut itimerspec,
) -> c_int {
    // SAFETY: the caller of libc's function vouches for the records, ours for the rest.
    unsafe {
        if new.is_null() || !is_length(&(*new).it_value) || !is_length(&(*new).it_interval) {
            return fail(EINVAL);
        }
        if !old.is_null() {
            *old = spec_of(me, entry.timer);
        }
        let first = nanoseconds(&(*new).it_value);
        let deadline = (first > 0).then(|| match absolute {
            true => moment_of(me, entry.clock, &(*new).it_value),
            false => me.run().sched.clock.after(first),
        });
        match timers::set(me, entry.timer, deadline, nanoseconds(&(*new).it_interval)) {
            0 => 0,
            error => fail(error),
        }
    }
}

/// What a timer is made for; none when that cannot be done here.
unsafe fn purpose_of(event: *const sigevent, handle: usize) -> Option<Purpose> {
    // SAFETY: the caller of libc's function vouches for the record.
    unsafe {
        if event.is_null() {
            return Some(Purpose::Signal { signal: libc::SIGALRM, to: None, value: Some(handle) });
        }
        let (signal, value) = ((*event).sigev_signo, (*event).sigev_value.sival_ptr as usize);
        let valid = (1..=64).contains(&signal);
        match (*event).sigev_notify {
            libc::SIGEV_SIGNAL if valid => Some(Purpose::Signal { signal, to: None, value: Some(value) }),
            libc::SIGEV_THREAD_ID if valid => {
                Some(Purpose::Signal { signal, to: Some((*event).sigev_notify_thread_id), value: Some(value) })
            }
            // The function stands where the number of the thread would.
            libc::SIGEV_THREAD => {
                let function = (&raw const (*event).sigev_notify_thread_id).cast::<usize>().read_unaligned();
                (function != 0).then(|| {
                    let call = core::mem::transmute::<usize, unsafe extern "C-unwind" fn(usize)>(function);
                    Purpose::Call(call, value, Stack::asked_for(attributes_of(event)))
                })
            }
            libc::SIGEV_NONE => Some(Purpose::Nothing),
            _ => None,
        }
    }
}

/// What the threads of a `SIGEV_THREAD` are to be like: it stands behind the function.
unsafe fn attributes_of(event: *const sigevent) -> *const libc::pthread_attr_t {
    // SAFETY: the caller of libc's function vouches for the record, which has 64 bytes.
    unsafe {
        let behind = (&raw const (*event).sigev_notify_thread_id).cast::<usize>().add(1);
        behind.read_unaligned() as *const libc::pthread_attr_t
    }
}

fn made(me: &mut Token, timer: *mut c_void) -> Option<Entry> {
    find(me, Handle::Made(timer as usize))
}

interpose! {
    fn alarm(seconds: c_uint) -> c_uint, |me| {
        if !is_virtual(me) {
            is_real(me, "alarm");
            return real::alarm(seconds);
        }
        let timer = alarm_timer(me);
        let (left, _) = (*timer).left(me);
        let deadline = (seconds > 0).then(|| me.run().sched.clock.after(u64::from(seconds) * 1_000_000_000));
        timers::set(me, timer, deadline, 0);
        left.div_ceil(1_000_000_000) as c_uint
    }

    fn ualarm(first: c_uint, interval: c_uint) -> c_uint, |me| {
        if !is_virtual(me) {
            is_real(me, "ualarm");
            return real::ualarm(first, interval);
        }
        if first >= 1_000_000 || interval >= 1_000_000 {
            return fail(EINVAL) as c_uint;
        }
        let timer = alarm_timer(me);
        let (left, _) = (*timer).left(me);
        let deadline = (first > 0).then(|| me.run().sched.clock.after(u64::from(first) * 1_000));
        timers::set(me, timer, deadline, u64::from(interval) * 1_000);
        left.div_ceil(1_000) as c_uint
    }

    fn setitimer(which: c_int, new: *const itimerval, old: *mut itimerval) -> c_int, |me| {
        if !is_virtual(me) || which != libc::ITIMER_REAL {
            let result = real::setitimer(which, new, old);
            if result == 0 {
                is_real(me, "setitimer");
            }
            return result;
        }
        let valid = |time: timeval| time.tv_sec >= 0 && (0..1_000_000).contains(&time.tv_usec);
        if new.as_ref().is_some_and(|new| !valid(new.it_value) || !valid(new.it_interval)) {
            return fail(EINVAL);
        }
        let timer = alarm_timer(me);
        let (left, interval) = (*timer).left(me);
        if !old.is_null() {
            *old = itimerval { it_interval: timeval_of(interval), it_value: timeval_of(left) };
        }
        if !new.is_null() {
            let first = of_timeval(&(*new).it_value);
            let deadline = (first > 0).then(|| me.run().sched.clock.after(first));
            timers::set(me, timer, deadline, of_timeval(&(*new).it_interval));
        }
        0
    }

    fn getitimer(which: c_int, old: *mut itimerval) -> c_int, |me| {
        if !is_virtual(me) || which != libc::ITIMER_REAL {
            return real::getitimer(which, old);
        }
        let (left, interval) = (*alarm_timer(me)).left(me);
        *old = itimerval { it_interval: timeval_of(interval), it_value: timeval_of(left) };
        0
    }

    fn timer_create(clock: clockid_t, event: *mut sigevent, timer: *mut *mut c_void) -> c_int, |me| {
        let handle = FIRST_HANDLE + timers_of(me).1;
        let purpose = if is_virtual(me) && counts_time(clock) { purpose_of(event, handle) } else { None };
        let Some(purpose) = purpose else {
            let result = real::timer_create(clock, event, timer);
            if result == 0 {
                is_real(me, "timer_create");
            }
            return result;
        };
        timers_of(me).1 += 1;
        add(me, Handle::Made(handle), clock, purpose);
        *timer = handle as *mut c_void;
        0
    }

    fn timer_settime(timer: *mut c_void, flags: c_int, new: *const itimerspec, old: *mut itimerspec) -> c_int, |me| {
        let Some(ours) = made(me, timer) else { return real::timer_settime(timer, flags, new, old) };
        set_by(me, ours, flags & libc::TIMER_ABSTIME != 0, new, old)
    }

    fn timer_gettime(timer: *mut c_void, old: *mut itimerspec) -> c_int, |me| {
        let Some(ours) = made(me, timer) else { return real::timer_gettime(timer, old) };
        *old = spec_of(me, ours.timer);
        0
    }

    fn timer_getoverrun(timer: *mut c_void) -> c_int, |me| {
        let Some(ours) = made(me, timer) else { return real::timer_getoverrun(timer) };
        c_int::try_from((*ours.timer).overruns()).unwrap_or(c_int::MAX)
    }

    fn timer_delete(timer: *mut c_void) -> c_int, |me| {
        let Some(ours) = made(me, timer) else { return real::timer_delete(timer) };
        timers::set(me, ours.timer, None, 0);
        forget(me, Handle::Made(timer as usize));
        0
    }

    fn timerfd_create(clock: clockid_t, flags: c_int) -> c_int, |me| {
        if !is_virtual(me) || !counts_time(clock) {
            is_real(me, "timerfd_create");
            return real::timerfd_create(clock, flags);
        }
        // What is read is the same, the number of ends since the last time; and so are the flags.
        let _unmanaged = Unmanaged::enter();
        let descriptor = libc::eventfd(0, flags);
        let copy = if descriptor < 0 { -1 } else { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        if copy < 0 {
            return descriptor;
        }
        add(me, Handle::Descriptor(descriptor), clock, Purpose::Descriptor(copy));
        descriptor
    }

    fn timerfd_settime(fd: c_int, flags: c_int, new: *const itimerspec, old: *mut itimerspec) -> c_int, |me| {
        const ABSOLUTE: c_int = 1;
        let Some(ours) = find(me, Handle::Descriptor(fd)) else { return real::timerfd_settime(fd, flags, new, old) };
        // Ends that were not read belong to the time before.
        let mut count = 0u64;
        let mut set = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        if sys::call(libc::SYS_poll, [&raw mut set as usize, 1, 0, 0, 0, 0]) == 1 {
            sys::call(libc::SYS_read, [fd as usize, &raw mut count as usize, 8, 0, 0, 0]);
        }
        set_by(me, ours, flags & ABSOLUTE != 0, new, old)
    }

    fn timerfd_gettime(fd: c_int, old: *mut itimerspec) -> c_int, |me| {
        let Some(ours) = find(me, Handle::Descriptor(fd)) else { return real::timerfd_gettime(fd, old) };
        *old = spec_of(me, ours.timer);
        0
    }
}
