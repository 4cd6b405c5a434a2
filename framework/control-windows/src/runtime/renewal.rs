//! What a kernel thread keeps from one logical thread to the next, and what modules do when a thread begins or ends.
//!
//! Windows calls the modules of a process at both, has slots that belong to a thread, and gives every thread a fresh copy
//! of static thread-local data. A kernel thread that is used again does that here, for the modules of the program; Windows'
//! own keep what they have.

use core::ffi::c_void;

use windows_sys::Win32::System::SystemServices::{DLL_THREAD_ATTACH, DLL_THREAD_DETACH};
use windows_sys::Win32::System::Threading::TlsSetValue;

use crate::interpose::changed_modules;

/// Slots that a process has.
const SLOTS: usize = 64 + 1024;

/// Slots of the thread that its logical thread wrote.
#[derive(Debug)]
pub(crate) struct Slots([u64; SLOTS / 64]);

impl Slots {
    pub(crate) const fn new() -> Slots {
        Slots([0; SLOTS / 64])
    }

    /// A slot was written.
    pub(crate) fn note(&mut self, slot: u32) {
        if let Some(word) = self.0.get_mut(slot as usize / 64) {
            *word |= 1 << (slot % 64);
        }
    }

    /// Takes all that were written.
    fn take(&mut self) -> impl Iterator<Item = u32> {
        let words = core::mem::take(&mut self.0);
        (0..SLOTS as u32).filter(move |slot| words[*slot as usize / 64] & 1 << (slot % 64) != 0)
    }
}

/// A thread begins, on a kernel thread that was used before.
///
/// # Safety
/// The calling thread is that kernel thread, under no control, and holds the token.
pub(super) unsafe fn begin() {
    for &module in changed_modules().iter() {
        // SAFETY: the module is loaded; nobody unloads a library meanwhile.
        unsafe {
            let module = Module(module as *mut u8);
            module.copy_static_data();
            module.call(DLL_THREAD_ATTACH);
        }
    }
}

/// A thread ends, and its kernel thread stays.
///
/// # Safety
/// As for [`begin`].
pub(super) unsafe fn end(slots: &mut Slots) {
    for &module in changed_modules().iter().rev() {
        // SAFETY: as above.
        unsafe { Module(module as *mut u8).call(DLL_THREAD_DETACH) };
    }
    for slot in slots.take() {
        // SAFETY: the program wrote the slot of this thread before.
        unsafe { TlsSetValue(slot, core::ptr::null()) };
    }
}

/// The begin of a loaded 64-bit module, with offsets of the PE format: the header's place, and in the header what kind of
/// module it is, its entry point, and the directory of thread-local data.
struct Module(*mut u8);

const HEADER: usize = 0x3c;
const CHARACTERISTICS: usize = 0x16;
const IS_LIBRARY: u16 = 0x2000;
const ENTRY: usize = 0x28;
const THREAD_DATA: usize = 0xd0;

/// The directory of thread-local data, as far as it is wanted here. All addresses are real ones.
#[repr(C)]
#[derive(Clone, Copy)]
struct Directory {
    begin: usize,
    end: usize,
    index: *const u32,
    callbacks: *const Option<Callback>,
    zeroes: u32,
}

type Callback = unsafe extern "system" fn(*mut c_void, u32, *mut c_void);

impl Module {
    unsafe fn word(&self, at: usize) -> usize {
        // SAFETY: inside the headers, by the caller's promise.
        unsafe { self.0.add(at).cast::<u32>().read_unaligned() as usize }
    }

    unsafe fn directory(&self) -> Option<Directory> {
        // SAFETY: by the caller's promise the structures are there.
        unsafe {
            let place = self.word(self.word(HEADER) + THREAD_DATA);
            (place != 0).then(|| self.0.add(place).cast::<Directory>().read_unaligned())
        }
    }

    /// Calls what Windows calls when a thread begins or ends.
    unsafe fn call(&self, reason: u32) {
        // SAFETY: by the caller's promise; these are the module's own functions, called as Windows calls them.
        unsafe {
            let mut callback = self.directory().map_or(core::ptr::null(), |directory| directory.callbacks);
            while !callback.is_null() {
                let Some(function) = callback.read_unaligned() else { break };
                function(self.0.cast(), reason, core::ptr::null_mut());
                callback = callback.add(1);
            }
            let header = self.word(HEADER);
            let kind = self.0.add(header + CHARACTERISTICS).cast::<u16>().read_unaligned();
            let entry = self.word(header + ENTRY);
            if kind & IS_LIBRARY != 0 && entry != 0 {
                let entry = core::mem::transmute::<*mut u8, Callback>(self.0.add(entry));
                entry(self.0.cast(), reason, core::ptr::null_mut());
            }
        }
    }

    /// Gives the calling thread a fresh copy of the module's static thread-local data.
    unsafe fn copy_static_data(&self) {
        // SAFETY: by the caller's promise; Windows gave the thread a block of this size for the module.
        unsafe {
            let Some(directory) = self.directory() else { return };
            let (from, bytes) = (directory.begin as *const u8, directory.end - directory.begin);
            if bytes + directory.zeroes as usize == 0 || directory.index.is_null() {
                return;
            }
            let block = blocks().add(directory.index.read_unaligned() as usize).read();
            if !block.is_null() {
                core::ptr::copy_nonoverlapping(from, block, bytes);
                core::ptr::write_bytes(block.add(bytes), 0, directory.zeroes as usize);
            }
        }
    }
}

/// The calling thread's blocks of thread-local data, by module.
fn blocks() -> *const *mut u8 {
    /// The offset in the thread environment block, which is part of the system's ABI.
    const BLOCKS: usize = 0x58;
    let blocks;
    // SAFETY: reads a field of the calling thread's block.
    unsafe {
        core::arch::asm!("mov {0}, gs:[{1}]", out(reg) blocks, const BLOCKS, options(nostack, preserves_flags, readonly));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_were_written_are_told_once() {
        let mut slots = Slots::new();
        for slot in [3, 63, 64, 1087, 3, 5000] {
            slots.note(slot);
        }
        assert_eq!(slots.take().collect::<Vec<_>>(), [3, 63, 64, 1087]);
        assert_eq!(slots.take().count(), 0);
    }
}
