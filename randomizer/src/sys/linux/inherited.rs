//! Descriptors that whoever started us left open.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, RawFd};

use waylay_page::{Page, SharedHandle};

/// Checks that a number is an open descriptor, and keeps it from programs that we start.
fn claim(raw: RawFd) -> io::Result<()> {
    // SAFETY: plain call on a number; a number that is no descriptor is an error.
    if unsafe { libc::fcntl(raw, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The page behind an inherited descriptor.
///
/// # Safety
///
/// Nothing else in this process owns the descriptor.
pub(crate) unsafe fn attach_page(raw: RawFd) -> Result<Page, String> {
    claim(raw).map_err(|error| error.to_string())?;
    // SAFETY: open, as just seen; the rest is passed on to our caller.
    Page::attach(unsafe { SharedHandle::from_raw(raw) }).map_err(|error| error.to_string())
}

/// The pipe for statistics behind an inherited descriptor; writing to it never blocks.
///
/// # Safety
///
/// Nothing else in this process owns the descriptor.
pub(crate) unsafe fn inherit_stats(raw: RawFd) -> io::Result<File> {
    claim(raw)?;
    // SAFETY: plain call on an open descriptor.
    if unsafe { libc::fcntl(raw, libc::F_SETFL, libc::O_NONBLOCK) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: open, as just seen; the rest is passed on to our caller.
    Ok(unsafe { File::from_raw_fd(raw) })
}
