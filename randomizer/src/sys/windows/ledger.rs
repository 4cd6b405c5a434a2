//! Which threads are suspended by us, written down where a second process reads it.
//!
//! An entry is made before the thread is suspended and cleared after it was resumed. Whoever dies in between leaves an
//! entry for a thread whose count it may or may not have raised; lowering a count that is zero changes nothing.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_ALL_ACCESS, MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile, PAGE_READWRITE,
    UnmapViewOfFile,
};

use crate::identity::ThreadId;

/// Threads that one window can hold.
pub(super) const ENTRIES: usize = 4096;

/// The shared memory. Zero is a valid value of everything in it.
#[repr(C)]
struct Layout {
    /// Not zero once a watchdog waits.
    watched: AtomicU32,
    /// Suspended threads; zero is no thread.
    threads: [AtomicU32; ENTRIES],
}

/// The ledger, mapped.
#[derive(Debug)]
pub(super) struct Ledger {
    section: OwnedHandle,
    view: NonNull<Layout>,
}

// SAFETY: the view belongs to no thread, and everything in it is an atomic.
unsafe impl Send for Ledger {}
// SAFETY: as above.
unsafe impl Sync for Ledger {}

impl Ledger {
    /// An empty one, inherited by the processes that we start.
    pub(super) fn create() -> io::Result<Ledger> {
        let inherited = SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: std::ptr::null_mut(),
            bInheritHandle: 1,
        };
        let size = size_of::<Layout>() as u32;
        // SAFETY: the attributes live across the call; no name is given.
        let section = super::process::own(unsafe {
            CreateFileMappingW(INVALID_HANDLE_VALUE, &inherited, PAGE_READWRITE, 0, size, std::ptr::null())
        })?;
        Ledger::map(section)
    }

    /// The one behind an inherited handle.
    ///
    /// # Safety
    ///
    /// `raw` must be the open handle of a ledger, owned by nothing else in this process.
    pub(super) unsafe fn inherit(raw: i32) -> io::Result<Ledger> {
        // SAFETY: passed on to our caller.
        Ledger::map(unsafe { OwnedHandle::from_raw_handle(raw as isize as HANDLE) })
    }

    fn map(section: OwnedHandle) -> io::Result<Ledger> {
        // SAFETY: a new view at an address that the system chooses.
        let view =
            unsafe { MapViewOfFile(section.as_raw_handle(), FILE_MAP_ALL_ACCESS, 0, 0, size_of::<Layout>()) };
        let view = NonNull::new(view.Value.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Ledger { section, view })
    }

    fn layout(&self) -> &Layout {
        // SAFETY: mapped with this size, page-aligned, until `drop`; any bytes are a valid layout.
        unsafe { self.view.as_ref() }
    }

    /// The handle's number; the same in a child.
    pub(super) fn raw(&self) -> i32 {
        self.section.as_raw_handle() as isize as i32
    }

    /// Writes down that a thread is about to be suspended. Entries are by place in the window.
    pub(super) fn enter(&self, place: usize, thread: ThreadId) {
        self.layout().threads[place].store(thread.0, Ordering::SeqCst);
    }

    /// Says that it was resumed.
    pub(super) fn clear(&self, place: usize) {
        self.layout().threads[place].store(0, Ordering::SeqCst);
    }

    /// What is written down, by place.
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, ThreadId)> {
        let loaded = self.layout().threads.iter().map(|word| word.load(Ordering::SeqCst));
        loaded.enumerate().filter(|(_, number)| *number != 0).map(|(place, number)| (place, ThreadId(number)))
    }

    /// Watchdog: says that it waits.
    pub(super) fn set_watched(&self) {
        self.layout().watched.store(1, Ordering::SeqCst);
    }

    /// Whether a watchdog waits.
    pub(super) fn is_watched(&self) -> bool {
        self.layout().watched.load(Ordering::SeqCst) != 0
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let address = MEMORY_MAPPED_VIEW_ADDRESS { Value: self.view.as_ptr().cast() };
        // SAFETY: mapped by `map`, unmapped once.
        unsafe { UnmapViewOfFile(address) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_entered_is_there_until_it_is_cleared() {
        let ledger = Ledger::create().expect("memory");
        ledger.enter(0, ThreadId(40));
        ledger.enter(7, ThreadId(44));
        assert_eq!(ledger.entries().collect::<Vec<_>>(), [(0, ThreadId(40)), (7, ThreadId(44))]);
        ledger.clear(0);
        assert_eq!(ledger.entries().collect::<Vec<_>>(), [(7, ThreadId(44))]);
        assert!(!ledger.is_watched());
    }
}
