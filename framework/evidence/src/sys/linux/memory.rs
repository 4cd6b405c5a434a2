//! Copying another process's memory.

use std::io;

use crate::identity::{ProcessId, ThreadId};

use super::procfs;

/// Copies exactly `length` bytes out of a process.
pub fn read_memory(pid: ProcessId, address: u64, length: usize) -> io::Result<Vec<u8>> {
    let bytes = read_available(pid, address, length)?;
    if bytes.len() < length {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the memory ends early"));
    }
    Ok(bytes)
}

/// Copies up to `length` bytes, fewer if an unmapped or unreadable page comes first.
pub(super) fn read_available(pid: ProcessId, address: u64, length: usize) -> io::Result<Vec<u8>> {
    let first = ThreadId(pid.0);
    read_through(first, address, length).or_else(|error| {
        let other = procfs::living_task(pid);
        let first_ended = error.raw_os_error() == Some(libc::ESRCH) && other != first;
        if first_ended { read_through(other, address, length) } else { Err(error) }
    })
}

fn read_through(thread: ThreadId, address: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::with_capacity(length);
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
    // SAFETY: `local` describes the spare capacity of `bytes`, which nothing else uses during the call; the
    // remote address is checked by the kernel and belongs to another process.
    let copied = unsafe { libc::process_vm_readv(thread.0 as libc::pid_t, &local, 1, &remote, 1, 0) };
    let copied = usize::try_from(copied).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has written `copied` bytes, never more than `length`, from the start of the buffer.
    unsafe { bytes.set_len(copied.min(length)) };
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_reads_back() {
        let value = *b"what a process was doing";
        let pid = ProcessId(std::process::id());
        let copy = read_memory(pid, value.as_ptr() as u64, value.len()).expect("readable");
        assert_eq!(copy, value);
        assert!(read_memory(pid, 8, 8).is_err());
    }
}
