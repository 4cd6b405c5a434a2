//! Windows.

use std::path::Path;

use windows_sys::Win32::System::Threading::{
    GetCurrentThread, SetThreadPriority, THREAD_PRIORITY_BELOW_NORMAL,
};

/// A command that makes a token that nobody guesses, in either shell: two numbers of 122 random bits. What PowerShell writes
/// with `>` is UTF-16.
pub(crate) const MAKE_TOKEN: &str = "powershell -Command \"Set-Content -Encoding ascii token \
     ([guid]::NewGuid().ToString('N') + [guid]::NewGuid().ToString('N'))\"";

/// Who may read a file is inherited from its folder here, and not looked at.
pub(crate) fn is_private(_path: &Path) -> bool {
    true
}

/// Files inherit who may read them.
#[cfg(test)]
pub(crate) fn make_private(_path: &Path) {}

/// Lets other threads go first: those that run campaigns.
pub(crate) fn step_back() {
    // SAFETY: a plain call with this thread's own handle. When it is refused, only a little speed is lost.
    unsafe { SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_BELOW_NORMAL) };
}
