//! Handles that whoever started us left open.

use std::fs::File;
use std::io;
use std::os::windows::io::FromRawHandle;

use waylay_page::{Page, SharedHandle};
use windows_sys::Win32::Foundation::{HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation};
use windows_sys::Win32::System::Pipes::{PIPE_NOWAIT, SetNamedPipeHandleState};

/// Checks that a number is an open handle, and keeps it from programs that we start.
fn claim(raw: i32) -> io::Result<HANDLE> {
    let handle = raw as isize as HANDLE;
    // SAFETY: plain call on a number; a number that is no handle is an error.
    if unsafe { SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(handle)
}

/// The page behind an inherited handle.
///
/// # Safety
///
/// Nothing else in this process owns the handle.
pub(crate) unsafe fn attach_page(raw: i32) -> Result<Page, String> {
    claim(raw).map_err(|error| error.to_string())?;
    // SAFETY: open, as just seen; the rest is passed on to our caller.
    Page::attach(unsafe { SharedHandle::from_raw(raw) }).map_err(|error| error.to_string())
}

/// The pipe for statistics behind an inherited handle; writing to it never blocks.
///
/// # Safety
///
/// Nothing else in this process owns the handle.
pub(crate) unsafe fn inherit_stats(raw: i32) -> io::Result<File> {
    let handle = claim(raw)?;
    // SAFETY: an open handle and a mode that lives across the call.
    if unsafe { SetNamedPipeHandleState(handle, &PIPE_NOWAIT, std::ptr::null(), std::ptr::null()) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: open, as just seen; the rest is passed on to our caller.
    Ok(unsafe { File::from_raw_handle(handle) })
}
