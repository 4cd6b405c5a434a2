//! Ctrl-C, Ctrl-Z and their relatives: only flags are set here; a window is always closed in order.
//!
//! These handlers are not those of `waylay-interrupt`, which the other commands have. A window lasts for seconds in which the
//! only thread sleeps or waits in the kernel while others are held; a signal has to break that wait (no SA_RESTART) and set its
//! flag on that very thread, before the call returns, and not when a further thread has its turn. And a command that we started
//! is sent on the signal that came, which `ctrlc` does not say.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);
static STOP_SIGNAL: AtomicI32 = AtomicI32::new(0);
static PAUSE: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(signal: libc::c_int) {
    STOP_SIGNAL.store(signal, Ordering::Relaxed);
    if STOP.swap(true, Ordering::Release) {
        // The second time means at once. The kernel resumes what is suspended.
        // SAFETY: `_exit` is safe in a signal handler.
        unsafe { libc::_exit(128 + signal) };
    }
}

extern "C" fn pause(_signal: libc::c_int) {
    PAUSE.store(true, Ordering::Release);
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeroed sigactions are valid; the handlers only touch atomics. A signal that was ignored when we were
    // started (nohup) stays so.
    unsafe {
        (*action.as_mut_ptr()).sa_sigaction = handler as *const () as libc::sighandler_t;
        libc::sigaction(signal, ptr::null(), old.as_mut_ptr());
        if old.assume_init().sa_sigaction != libc::SIG_IGN {
            libc::sigaction(signal, action.as_ptr(), ptr::null_mut());
        }
    }
}

/// Makes the signals that end a program set a flag, and the one that stops it another.
pub(crate) fn install_signals() -> &'static AtomicBool {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        handle(signal, stop);
    }
    handle(libc::SIGTSTP, pause);
    // Every stop of a traced thread would be a signal to us, of which nobody takes note.
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a zeroed sigaction is valid and means the default.
    unsafe {
        (*action.as_mut_ptr()).sa_flags = libc::SA_NOCLDSTOP;
        libc::sigaction(libc::SIGCHLD, action.as_ptr(), ptr::null_mut());
    }
    &STOP
}

/// The signal that asked us to stop and that a child of ours did not get by itself: the terminal sends SIGINT to both.
pub(crate) fn stop_request() -> Option<i32> {
    let signal = STOP_SIGNAL.load(Ordering::Relaxed);
    (signal != 0 && signal != libc::SIGINT).then_some(signal)
}

/// Stops this process if Ctrl-Z asked for it. Called between windows, so that no thread is held meanwhile.
pub(crate) fn stop_here_if_asked() {
    if PAUSE.load(Ordering::Relaxed) && PAUSE.swap(false, Ordering::Acquire) {
        // SAFETY: plain call; execution goes on here after SIGCONT.
        unsafe { libc::raise(libc::SIGSTOP) };
    }
}
