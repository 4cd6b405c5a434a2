//! What the service needs of the operating system.

/// Lets other threads go first: those that run campaigns.
#[cfg(target_os = "linux")]
pub(crate) fn step_back() {
    // SAFETY: a plain call; 0 is this thread. When it is refused, nothing is lost but a little speed elsewhere.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
}

/// Lets other threads go first: those that run campaigns.
#[cfg(windows)]
pub(crate) fn step_back() {
    use windows_sys::Win32::System::Threading::{
        GetCurrentThread, SetThreadPriority, THREAD_PRIORITY_BELOW_NORMAL,
    };
    // SAFETY: a plain call with this thread's own handle. When it is refused, only a little speed is lost.
    unsafe { SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_BELOW_NORMAL) };
}
