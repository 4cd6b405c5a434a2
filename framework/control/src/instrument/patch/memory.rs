//! Memory for code, within reach of a jump from a module.

use super::loaded::Loaded;
use crate::sys;

/// Pages of code.
pub(super) const PAGE: usize = 4096;

/// A piece of it; given out from the beginning on, never taken back.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) at: usize,
    len: usize,
    used: usize,
}

impl Memory {
    /// Free memory as near as can be had, of which the first `kept` bytes are not given out. It is writable.
    pub(super) fn near(module: &Loaded, len: usize, kept: usize) -> Option<Memory> {
        const STEP: usize = 1 << 20;
        const REACH: usize = 1 << 30;
        // Behind the program is its heap, which grows: nothing may be in its way.
        const HEAP: usize = 512 << 20;
        let len = (len + kept).next_multiple_of(PAGE);
        let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE) as usize;
        let start = module.code.iter().map(|code| code.0).min()?;
        let behind = (HEAP..REACH).chain(STEP..HEAP);
        for (ahead, behind) in (STEP..REACH).step_by(STEP).zip(behind.step_by(STEP)) {
            let after = module.end.next_multiple_of(PAGE) + behind;
            let before = (start & !(PAGE - 1)).checked_sub(ahead + len);
            for place in [before, Some(after)].into_iter().flatten() {
                // SAFETY: takes free addresses only.
                let at = unsafe { sys::call(libc::SYS_mmap, [place, len, prot, flags, usize::MAX, 0]) };
                if at == place as isize {
                    return Some(Memory { at: place, len, used: kept });
                }
                if at > 0 {
                    // SAFETY: a mapping of ours, made a moment ago by a kernel that took the address for a hint.
                    unsafe { sys::unmap(at as *mut u8, len) };
                }
            }
        }
        None
    }

    /// Where the next code will be put.
    pub(super) fn next(&self) -> usize {
        self.at + self.used
    }

    /// Puts code there; false when there is no room.
    pub(super) fn put(&mut self, code: &[u8]) -> bool {
        if self.used + code.len() > self.len {
            return false;
        }
        // SAFETY: inside our memory, which is writable and which nobody executes yet.
        unsafe { ((self.at + self.used) as *mut u8).copy_from_nonoverlapping(code.as_ptr(), code.len()) };
        self.used += code.len().next_multiple_of(16);
        true
    }

    /// Allows writing beside executing, or forbids it.
    pub(super) fn open(&self, writable: bool) -> bool {
        // SAFETY: memory of ours.
        unsafe { sys::protect(self.at, self.len, protection(writable)) }
    }
}

/// Code that may be executed, and perhaps written.
pub(super) fn protection(writable: bool) -> i32 {
    libc::PROT_READ | libc::PROT_EXEC | if writable { libc::PROT_WRITE } else { 0 }
}
