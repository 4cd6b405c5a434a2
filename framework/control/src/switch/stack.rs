//! Stacks of our own: where a home thread parks while its logical thread runs elsewhere.

use crate::sys;

/// A mapped stack with a guard page below it.
#[derive(Debug)]
pub(crate) struct Stack {
    base: *mut u8,
    len: usize,
}

const GUARD: usize = 4096;

impl Stack {
    /// Maps `len` usable bytes (a multiple of the page size), or `None` when the kernel refuses.
    pub(crate) fn map(len: usize) -> Option<Self> {
        let base = sys::map(len + GUARD)?;
        // SAFETY: the lowest page belongs to the mapping made above and nobody uses it yet.
        unsafe { sys::forbid(base, GUARD) };
        Some(Self { base, len: len + GUARD })
    }

    /// The upper end, page-aligned.
    pub(crate) fn top(&self) -> *mut u8 {
        self.base.wrapping_add(self.len)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and whoever drops the stack no longer runs on it.
        unsafe { sys::unmap(self.base, self.len) };
    }
}
