//! Linux: a memory file, inherited by descriptor. What is never written takes no memory, so room is generous.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Entries of a schedule.
pub(crate) const STRETCHES: usize = 1 << 24;
/// Sentences of the conversation with the strategy that are kept.
pub(crate) const NOTES: usize = 1 << 21;
/// Bytes for the records of a batch.
pub(crate) const RECORDS: usize = 1 << 26;

/// A mapping of shared memory.
#[derive(Debug)]
pub(crate) struct Memory {
    at: *mut u8,
    size: usize,
    descriptor: Option<OwnedFd>,
}

impl Memory {
    /// New memory, zeroed. The descriptor stays open across `exec`, and the memory keeps its size: if somebody cut it off,
    /// whoever looks at it would end with a bus error.
    pub(crate) fn create(size: usize) -> io::Result<Memory> {
        // SAFETY: the name is NUL-terminated.
        let fd = unsafe { libc::memfd_create(c"waylay-control".as_ptr(), libc::MFD_ALLOW_SEALING) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        let descriptor = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: plain call on our descriptor.
        if unsafe { libc::ftruncate(fd, size as libc::off_t) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: plain call on our descriptor.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Memory { at: map(fd, size)?, size, descriptor: Some(descriptor) })
    }

    /// The memory behind an inherited descriptor; none when it is not of this size.
    pub(crate) fn open(fd: RawFd, size: usize) -> io::Result<Option<Memory>> {
        // SAFETY: an all-zero stat is a valid value.
        let mut stat: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: writes into the local.
        if unsafe { libc::fstat(fd, &raw mut stat) } != 0 {
            return Err(io::Error::last_os_error());
        }
        if stat.st_size != size as libc::off_t {
            return Ok(None);
        }
        Ok(Some(Memory { at: map(fd, size)?, size, descriptor: None }))
    }

    /// Where it is.
    pub(crate) fn at(&self) -> *mut u8 {
        self.at
    }

    /// The descriptor, on the side that created the memory.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        self.descriptor.as_ref().map(AsRawFd::as_raw_fd)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and goes with us.
        unsafe { libc::munmap(self.at.cast(), self.size) };
    }
}

fn map(fd: RawFd, size: usize) -> io::Result<*mut u8> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping disturbs nothing.
    let at = unsafe { libc::mmap(core::ptr::null_mut(), size, prot, libc::MAP_SHARED, fd, 0) };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at.cast()) }
}
