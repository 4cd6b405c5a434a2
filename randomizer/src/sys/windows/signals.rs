//! Ctrl-C, Ctrl-Break and the end of the console: only a flag is set here; a window is always closed in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::Win32::System::Threading::ExitProcess;
use windows_sys::core::BOOL;

static STOP: AtomicBool = AtomicBool::new(false);

/// When the console closes the process is ended as soon as the handler returns: the time to finish in order.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Runs on a thread of its own that the system makes for it.
unsafe extern "system" fn on_event(event: u32) -> BOOL {
    let again = STOP.swap(true, Ordering::Release);
    match event {
        CTRL_C_EVENT | CTRL_BREAK_EVENT if again => {
            // The second time means at once. The watchdog resumes what is suspended.
            // SAFETY: ends this process.
            unsafe { ExitProcess(130) }
        }
        CTRL_C_EVENT | CTRL_BREAK_EVENT => {}
        // The console closes, the user leaves, the machine stops.
        _ => std::thread::sleep(LAST_WORDS),
    }
    1
}

/// Makes the events that end a program set a flag.
pub(crate) fn install_signals() -> &'static AtomicBool {
    // SAFETY: the handler is a static function.
    unsafe { SetConsoleCtrlHandler(Some(on_event), 1) };
    &STOP
}

/// Console events reach a child of ours by themselves.
pub(crate) fn stop_request() -> Option<i32> {
    None
}

/// There is no Ctrl-Z that stops a process.
pub(crate) fn stop_here_if_asked() {}
