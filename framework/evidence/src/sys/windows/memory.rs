//! Copying another process's memory.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};

use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEMORY_BASIC_INFORMATION, PAGE_GUARD, PAGE_NOACCESS, VirtualQueryEx,
};

use crate::identity::ProcessId;

use super::process::open;

/// Copies exactly `length` bytes out of a process.
pub fn read_memory(pid: ProcessId, address: u64, length: usize) -> io::Result<Vec<u8>> {
    read_through(&open(pid)?, address, length)
}

/// Copies exactly `length` bytes.
pub(super) fn read_through(process: &OwnedHandle, address: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::with_capacity(length);
    let mut copied = 0;
    // SAFETY: the spare capacity is ours to fill; the remote address is checked by the system.
    let done = unsafe {
        let to = bytes.as_mut_ptr().cast();
        ReadProcessMemory(process.as_raw_handle(), address as *const _, to, length, &mut copied)
    };
    if done == 0 || copied < length {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system has written `length` bytes from the start of the buffer.
    unsafe { bytes.set_len(length) };
    Ok(bytes)
}

/// The first readable range at or above an address, and inside the same reservation: a stack's guard pages are at its
/// lower end, so an overflown stack begins above them.
pub(super) fn readable_from(process: &OwnedHandle, address: u64) -> Option<(u64, u64)> {
    let mut at = address;
    let mut reservation = None;
    loop {
        let mut info = MEMORY_BASIC_INFORMATION::default();
        let size = size_of::<MEMORY_BASIC_INFORMATION>();
        // SAFETY: the place for the answer is valid and as large as said.
        if unsafe { VirtualQueryEx(process.as_raw_handle(), at as *const _, &mut info, size) } == 0 {
            return None;
        }
        if *reservation.get_or_insert(info.AllocationBase) != info.AllocationBase {
            return None;
        }
        let end = info.BaseAddress as u64 + info.RegionSize as u64;
        let hidden = info.Protect & (PAGE_GUARD | PAGE_NOACCESS) != 0;
        if info.State == MEM_COMMIT && !hidden {
            return Some((at, end));
        }
        at = end;
    }
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
        let (start, end) =
            readable_from(&open(pid).expect("ourselves"), value.as_ptr() as u64).expect("a stack");
        assert!(start == value.as_ptr() as u64 && end > start);
    }
}
