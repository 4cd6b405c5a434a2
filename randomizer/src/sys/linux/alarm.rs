//! Ends blocking waits of the calling thread every now and then.
//!
//! `waitpid` has no timeout. A timer that signals the thread gives it one; because it repeats, a signal that comes just
//! before the wait begins costs one interval and nothing more. It is set once and never touched again: on a virtual
//! machine setting a timer takes longer than stopping a thread.
//!
//! One wait cannot be ended. While a thread of the target is in exec, attaching to any other waits in the kernel until
//! the exec is through, and begins again after every signal. The exec in turn waits until all other threads are
//! gone, and those that we have attached to already are gone only when we have reaped them. So while we
//! attach, the signal handler itself reaps the dead of this window; those of earlier windows are reaped before.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{Ordering, compiler_fence};
use std::time::Duration;

use crate::identity::ThreadId;

/// Distance of the signals.
const PACE: Duration = Duration::from_millis(5);

/// A timer for the thread that made it.
#[derive(Debug)]
pub(super) struct Alarm(libc::timer_t);

thread_local! {
    /// The threads being attached to; null outside [`attaching`].
    static THREADS: Cell<*const ThreadId> = const { Cell::new(ptr::null()) };
    /// How many of them we have attached to so far.
    static ATTACHED: Cell<usize> = const { Cell::new(0) };
    /// How many we had attached to when the last signal came: a difference means that we are not stuck.
    static ATTACHED_BEFORE: Cell<usize> = const { Cell::new(0) };
    /// What the handler reaped last of all: the process's first thread ends after all others.
    static LAST_END: Cell<Option<(ThreadId, i32)>> = const { Cell::new(None) };
}

/// Attaches to one thread after the other until `attach` says no; those that die while it is stuck are reaped. Returns
/// the last one that was, with its status.
pub(super) fn attaching(
    threads: &[ThreadId],
    mut attach: impl FnMut(ThreadId) -> bool,
) -> Option<(ThreadId, i32)> {
    ATTACHED.set(0);
    compiler_fence(Ordering::SeqCst);
    THREADS.set(threads.as_ptr());
    for (index, thread) in threads.iter().enumerate() {
        // Published before the call that can get stuck; the handler runs on this thread, so the order of the program is
        // all it takes.
        ATTACHED.set(index);
        compiler_fence(Ordering::SeqCst);
        if !attach(*thread) {
            break;
        }
    }
    compiler_fence(Ordering::SeqCst);
    THREADS.set(ptr::null());
    LAST_END.take()
}

/// Runs in the tracing thread. Touches only plain thread-local cells, which only this thread uses, and makes system
/// calls; both are safe in a signal handler.
extern "C" fn on_signal(_signal: libc::c_int) {
    let (threads, attached) = (THREADS.get(), ATTACHED.get());
    if threads.is_null() || ATTACHED_BEFORE.replace(attached) != attached {
        return;
    }
    // SAFETY: errno is this thread's own; the interrupted code must find it unchanged.
    let errno = unsafe { *libc::__errno_location() };
    for index in 0..attached {
        // SAFETY: `attaching` is on the stack below us and borrows the threads, of which there are more than `attached`.
        reap_if_dead(unsafe { *threads.add(index) });
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Reaps a traced thread if it is dead. A wait reports the stops of traced threads whether or not it is asked to, so
/// this looks first and takes only what is not a stop.
fn reap_if_dead(thread: ThreadId) {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let look = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: the kernel fills at most one siginfo_t; a zeroed one is valid, and its process is 0 then.
    let (result, info) = unsafe {
        let result = libc::waitid(libc::P_PID, thread.0, info.as_mut_ptr(), look);
        (result, info.assume_init())
    };
    // SAFETY: the field is what waitid fills in, or zero.
    let found = result == 0 && unsafe { info.si_pid() } != 0;
    if !found || !matches!(info.si_code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED) {
        return;
    }
    let mut status = 0;
    let take = libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: `status` outlives the call.
    if unsafe { libc::waitpid(thread.0 as libc::pid_t, &mut status, take) } > 0 {
        LAST_END.set(Some((thread, status)));
    }
}

/// The signal of the timer. No library of ours uses it, and being real-time it has no meaning of its own.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 6
}

impl Alarm {
    /// A timer that signals the calling thread.
    pub(super) fn new() -> io::Result<Alarm> {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: a zeroed sigaction is valid (no flags, empty mask). Without SA_RESTART
            // the signal ends system calls, which is its purpose.
            unsafe {
                (*action.as_mut_ptr()).sa_sigaction = on_signal as *const () as libc::sighandler_t;
                libc::sigaction(signal(), action.as_ptr(), ptr::null_mut());
            }
        });
        let mut event = MaybeUninit::<libc::sigevent>::zeroed();
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: a zeroed sigevent is valid and then filled; both pointers live across the call.
        let result = unsafe {
            let event = &mut *event.as_mut_ptr();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal();
            event.sigev_notify_thread_id = libc::gettid();
            libc::timer_create(libc::CLOCK_MONOTONIC, event, &mut timer)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let alarm = Alarm(timer);
        let pace = libc::timespec { tv_sec: 0, tv_nsec: libc::c_long::from(PACE.subsec_nanos() as i32) };
        let setting = libc::itimerspec { it_interval: pace, it_value: pace };
        // SAFETY: the timer was just made; the setting lives across the call.
        let result = unsafe { libc::timer_settime(alarm.0, 0, &setting, ptr::null_mut()) };
        if result == 0 { Ok(alarm) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: made by timer_create and deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}
