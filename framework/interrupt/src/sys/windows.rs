//! Windows: a handler in front of the one of `ctrlc`, which makes the end of a console wait for an end in order.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, TerminateProcess};
use windows_sys::core::BOOL;

use crate::requests;

/// What is done about a wish that was counted, and how long the end of a console waits.
static MANNER: OnceLock<(fn(), Duration)> = OnceLock::new();
/// Whether the handler of `ctrlc` is behind ours, and has a thread.
static HAS_NEXT: AtomicBool = AtomicBool::new(false);

/// Nobody sends signals here.
pub(crate) fn disregard(_group: u32) {}

/// Nobody sends signals here.
pub(crate) fn regard(_group: u32) {}

/// Nobody sends signals here.
pub(crate) fn take_disregarded() -> Option<i32> {
    None
}

/// Runs on a thread of its own that the system makes for it. Zero has the system call the handler that was installed before.
unsafe extern "system" fn on_event(event: u32) -> BOOL {
    requests::count();
    let Some((act, grace)) = MANNER.get() else { return 1 };
    match event {
        CTRL_C_EVENT | CTRL_BREAK_EVENT if HAS_NEXT.load(Ordering::Acquire) => return 0,
        CTRL_C_EVENT | CTRL_BREAK_EVENT => act(),
        // The console closes, the user leaves, the machine stops: the process is ended as soon as we return.
        _ => std::thread::sleep(*grace),
    }
    1
}

/// Has the first wish counted, `act` called after each Ctrl-C, and the end of a console wait.
pub(crate) fn watch(act: fn(), grace: Duration) {
    let _ = MANNER.set((act, grace));
    // What comes before ours is installed has not been counted.
    let late = move || {
        requests::request();
        act();
    };
    HAS_NEXT.store(ctrlc::set_handler(late).is_ok(), Ordering::Release);
    // SAFETY: the handler is a static function. The last that is installed is called first.
    unsafe { SetConsoleCtrlHandler(Some(on_event), 1) };
}

/// Leaves without running anything.
pub(crate) fn end_at_once(code: u8) -> ! {
    // SAFETY: ends this process.
    unsafe { TerminateProcess(GetCurrentProcess(), code.into()) };
    // It has ended before that returned.
    std::process::abort()
}
