//! Windows: a section without a file, inherited by handle. All of it counts as used from the first moment on, so room is
//! a sixteenth of what Linux has.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{
    HANDLE, HANDLE_FLAG_INHERIT, INVALID_HANDLE_VALUE, SetHandleInformation,
};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_ALL_ACCESS, MEMORY_BASIC_INFORMATION, MEMORY_MAPPED_VIEW_ADDRESS,
    MapViewOfFile, PAGE_READWRITE, UnmapViewOfFile, VirtualQuery,
};

/// Entries of a schedule.
pub(crate) const STRETCHES: usize = 1 << 20;
/// Sentences of the conversation with the strategy that are kept.
pub(crate) const NOTES: usize = 1 << 19;
/// Bytes for the records of a batch: nobody orders batches here.
pub(crate) const RECORDS: usize = 1 << 16;

/// A view of shared memory.
#[derive(Debug)]
pub(crate) struct Memory {
    at: *mut u8,
    section: Option<OwnedHandle>,
}

impl Memory {
    /// New memory, zeroed. The handle is inherited by processes that are started.
    pub(crate) fn create(size: usize) -> io::Result<Memory> {
        let inherited = SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: std::ptr::null_mut(),
            bInheritHandle: 1,
        };
        let (high, low) = ((size as u64 >> 32) as u32, size as u32);
        // SAFETY: the attributes live across the call; no name is given.
        let handle = unsafe {
            CreateFileMappingW(INVALID_HANDLE_VALUE, &inherited, PAGE_READWRITE, high, low, std::ptr::null())
        };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, owned by nobody else.
        let section = unsafe { OwnedHandle::from_raw_handle(handle) };
        Ok(Memory { at: map(section.as_raw_handle())?, section: Some(section) })
    }

    /// The memory behind an inherited handle; none when it is not of this size. Processes that this one starts do not
    /// inherit it.
    pub(crate) fn open(raw: i32, size: usize) -> io::Result<Option<Memory>> {
        let handle = raw as isize as HANDLE;
        let at = map(handle)?;
        let memory = Memory { at, section: None };
        let mut found = MEMORY_BASIC_INFORMATION::default();
        // SAFETY: the handle is open, since it could be mapped; the answer fits the place it is given.
        unsafe {
            SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0);
            VirtualQuery(at.cast(), &mut found, size_of::<MEMORY_BASIC_INFORMATION>());
        }
        // The system rounds up to whole pages.
        const PAGE: usize = 4096;
        Ok((found.RegionSize == size.next_multiple_of(PAGE)).then_some(memory))
    }

    /// Where it is.
    pub(crate) fn at(&self) -> *mut u8 {
        self.at
    }

    /// The number of the handle, on the side that created the memory. Handles have 32 significant bits on every Windows.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        self.section.as_ref().map(|section| section.as_raw_handle() as isize as i32)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` and unmapped once.
        unsafe { UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: self.at.cast() }) };
    }
}

/// A view of the whole section.
fn map(section: HANDLE) -> io::Result<*mut u8> {
    // SAFETY: a new view at an address that the system chooses.
    let view = unsafe { MapViewOfFile(section, FILE_MAP_ALL_ACCESS, 0, 0, 0) };
    if view.Value.is_null() { Err(io::Error::last_os_error()) } else { Ok(view.Value.cast()) }
}
