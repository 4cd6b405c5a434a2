//! Memory for code, within reach of a jump from a module.

use core::ffi::c_void;

use windows_sys::Win32::System::Diagnostics::Debug::FlushInstructionCache;
use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, PAGE_EXECUTE_READ, PAGE_EXECUTE_READWRITE, PAGE_READWRITE,
    VirtualAlloc, VirtualFree, VirtualProtect,
};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::loaded::Loaded;

/// A piece of it; given out from the beginning on, never taken back one by one.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) at: usize,
    len: usize,
    used: usize,
}

impl Memory {
    /// Free memory as near as can be had, of which the first `kept` bytes are not given out. It is writable.
    pub(super) fn near(module: &Loaded, len: usize, kept: usize) -> Option<Memory> {
        /// Windows gives out addresses in multiples of this.
        const GRAIN: usize = 1 << 16;
        const STEP: usize = 1 << 20;
        const REACH: usize = 1 << 30;
        let len = len + kept;
        for distance in (GRAIN..REACH).step_by(STEP) {
            let before = (module.base & !(GRAIN - 1)).checked_sub(distance + len.next_multiple_of(GRAIN));
            let after = (module.base + module.size).next_multiple_of(GRAIN) + distance;
            for place in [before, Some(after)].into_iter().flatten() {
                // SAFETY: takes free addresses only.
                let at = unsafe {
                    VirtualAlloc(place as *const c_void, len, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE)
                };
                if !at.is_null() {
                    return Some(Memory { at: at as usize, len, used: kept });
                }
            }
        }
        None
    }

    /// Where the next code will be put.
    pub(super) fn next(&self) -> usize {
        self.at + self.used
    }

    /// Puts code at a place that is no less than the next; false when there is no room.
    pub(super) fn put(&mut self, at: usize, code: &[u8]) -> bool {
        let used = at - self.at + code.len();
        if at < self.next() || used > self.len {
            return false;
        }
        // SAFETY: inside our memory, which is writable and which nobody executes yet.
        unsafe { (at as *mut u8).copy_from_nonoverlapping(code.as_ptr(), code.len()) };
        self.used = used;
        true
    }

    /// From now on it is code.
    pub(super) fn close(&self) -> bool {
        let mut before = 0;
        // SAFETY: memory of ours.
        unsafe {
            FlushInstructionCache(GetCurrentProcess(), self.at as *const c_void, self.len);
            VirtualProtect(self.at as *const c_void, self.len, PAGE_EXECUTE_READ, &mut before) != 0
        }
    }

    /// Gives it back.
    pub(super) fn release(self) {
        // SAFETY: memory of ours, which nobody executes.
        unsafe { VirtualFree(self.at as *mut c_void, 0, MEM_RELEASE) };
    }
}

/// Calls `write` while code can be written, or does not; says whether it did. Everything is as it was afterwards.
///
/// # Safety
/// Code is there, which no thread is in the middle of where `write` changes it.
pub(super) unsafe fn with_code_open((start, end): (usize, usize), write: impl FnOnce()) -> bool {
    let (place, length, mut before) = (start as *mut c_void, end - start, 0);
    // SAFETY: by the caller's promise; the pages stay executable.
    unsafe {
        if VirtualProtect(place, length, PAGE_EXECUTE_READWRITE, &mut before) == 0 {
            return false;
        }
        write();
        VirtualProtect(place, length, before, &mut before);
        FlushInstructionCache(GetCurrentProcess(), place, length);
    }
    true
}
