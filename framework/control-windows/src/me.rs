//! Which logical thread is executing: one thread-local word, and the error number that belongs to it.
//!
//! The word is null in threads that the scheduler does not manage, and while a managed thread is inside the library: an
//! interposed function that finds null behaves as if the library were not there.
//!
//! It is a slot of the thread environment block, read with one load: `TlsGetValue` would overwrite the error number that
//! the program may be about to ask for.

use core::arch::asm;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use windows_sys::Win32::Foundation::{HANDLE, NTSTATUS};
use windows_sys::Win32::System::Threading::{
    FLS_OUT_OF_INDEXES, FlsAlloc, FlsSetValue, TLS_OUT_OF_INDEXES, TlsAlloc,
};

pub(crate) use waylay_runtime::program::as_program;

use crate::runtime::{Logical, Token};

/// Offsets in the thread environment block, which are part of the system's ABI: `TlsSlots` and `LastErrorValue`.
const SLOTS: usize = 0x1480;
const LAST_ERROR: usize = 0x68;
/// The ends of the thread's own stack in the same block: `StackBase`, the higher, and `StackLimit`.
pub(crate) const STACK_BASE: usize = 0x08;
pub(crate) const STACK_LIMIT: usize = 0x10;
/// Slots that lie in the block itself.
const DIRECT: u32 = 64;

/// Where the word is in the block; 0 until there is a slot. Read by assembly, too.
pub(crate) static OFFSET: AtomicUsize = AtomicUsize::new(0);

/// Reserves the slot. Says whether there is one: without it nobody can be managed.
pub(crate) fn reserve() -> bool {
    // SAFETY: plain call.
    let index = unsafe { TlsAlloc() };
    if index == TLS_OUT_OF_INDEXES || index >= DIRECT {
        return false;
    }
    OFFSET.store(SLOTS + index as usize * size_of::<usize>(), Ordering::Relaxed);
    // SAFETY: plain call; the function stays where it is, since the library is never unloaded.
    ENDS.store(unsafe { FlsAlloc(Some(at_end)) }, Ordering::Relaxed);
    true
}

/// A slot of the other kind, whose function Windows calls for a thread that ends.
static ENDS: AtomicU32 = AtomicU32::new(FLS_OUT_OF_INDEXES);

/// The calling thread is, or will be, a logical thread: its end is to be noticed.
pub(crate) fn watch_end() {
    let slot = ENDS.load(Ordering::Relaxed);
    if slot != FLS_OUT_OF_INDEXES {
        // SAFETY: a slot that was reserved for us; it holds no address.
        unsafe { FlsSetValue(slot, core::ptr::without_provenance(1)) };
    }
}

/// When a process ends, its other threads are ended first; then comes this, and then code of the program's modules for the
/// end of the thread and of the process. A step in there would hand the token to a thread that is no more.
unsafe extern "system" fn at_end(_: *const c_void) {
    // SAFETY: plain call.
    if unsafe { RtlDllShutdownInProgress() } != 0 {
        crate::interpose::at_unload();
    }
}

/// The logical thread that executes this call, or null.
#[inline]
pub(crate) fn me() -> *mut Logical {
    let offset = OFFSET.load(Ordering::Relaxed);
    if offset == 0 {
        return core::ptr::null_mut();
    }
    let value: *mut Logical;
    // SAFETY: reads a slot of the calling thread's block that was reserved for us and starts as null.
    unsafe {
        asm!("mov {0}, gs:[{1}]", out(reg) value, in(reg) offset, options(nostack, preserves_flags, readonly))
    };
    value
}

/// Makes `value` the logical thread of the calling thread.
#[inline]
pub(crate) fn set_me(value: *mut Logical) {
    let offset = OFFSET.load(Ordering::Relaxed);
    if offset != 0 {
        // SAFETY: writes the slot that was reserved for us.
        unsafe {
            asm!("mov gs:[{0}], {1}", in(reg) offset, in(reg) value, options(nostack, preserves_flags))
        };
    }
}

/// The stack of the calling thread: begin and end, of all that is reserved for it.
pub(crate) fn stack() -> (usize, usize) {
    /// `DeallocationStack` and `StackBase` in the block.
    const BEGIN: usize = 0x1478;
    const END: usize = 0x8;
    let (begin, end): (usize, usize);
    // SAFETY: reads two fields of the calling thread's block.
    unsafe {
        asm!("mov {0}, gs:[{1}]", out(reg) begin, const BEGIN, options(nostack, preserves_flags, readonly));
        asm!("mov {0}, gs:[{1}]", out(reg) end, const END, options(nostack, preserves_flags, readonly));
    }
    (begin, end)
}

/// What `GetLastError` would say.
#[inline]
fn last_error() -> u32 {
    let value: u32;
    // SAFETY: reads a field of the calling thread's block.
    unsafe {
        asm!("mov {0:e}, gs:[{1}]", out(reg) value, const LAST_ERROR, options(nostack, preserves_flags, readonly));
    }
    value
}

#[inline]
fn set_last_error(value: u32) {
    // SAFETY: writes a field of the calling thread's block.
    unsafe {
        asm!("mov gs:[{0}], {1:e}", const LAST_ERROR, in(reg) value, options(nostack, preserves_flags))
    };
}

/// The block of another thread, in which its identity is.
pub(crate) struct Block(usize);

impl Block {
    /// That of a thread of this process.
    pub(crate) fn of(thread: HANDLE) -> Option<Block> {
        /// The first word, the status, is four bytes and padding; then comes the address of the block.
        #[repr(C)]
        #[derive(Default)]
        struct Basic {
            status: i32,
            block: usize,
            rest: [usize; 4],
        }
        let mut basic = Basic::default();
        let size = size_of::<Basic>() as u32;
        // SAFETY: the answer is written into the local, which is as large as said.
        let status = unsafe {
            NtQueryInformationThread(thread, 0, (&raw mut basic).cast(), size, core::ptr::null_mut())
        };
        (status == 0 && basic.block != 0).then_some(Block(basic.block))
    }

    /// Whether an address lies in the stack of its thread.
    ///
    /// # Safety
    /// The thread is suspended.
    pub(crate) unsafe fn has_on_stack(&self, address: u64) -> bool {
        // SAFETY: fields of the block of a thread that has not ended.
        let end = |at: usize| unsafe { ((self.0 + at) as *const u64).read_volatile() };
        (end(STACK_LIMIT)..end(STACK_BASE)).contains(&address)
    }

    /// The logical thread that its thread executes, or null.
    ///
    /// # Safety
    /// The thread is suspended.
    pub(crate) unsafe fn identity(&self) -> *mut Logical {
        // SAFETY: a slot of the block of a thread that has not ended.
        unsafe { ((self.0 + OFFSET.load(Ordering::Relaxed)) as *const *mut Logical).read_volatile() }
    }
}

#[link(name = "ntdll")]
unsafe extern "system" {
    fn RtlDllShutdownInProgress() -> u8;
    fn NtQueryInformationThread(
        thread: HANDLE,
        class: i32,
        to: *mut c_void,
        size: u32,
        returned: *mut u32,
    ) -> NTSTATUS;
}

/// While it lives, the calling thread counts as unmanaged: what the library calls on its own account goes straight to
/// Windows. The error number that the program sees afterwards is the one it had, unless the operation set another with
/// [`fail`].
pub(crate) struct Inside(*mut Logical);

impl Inside {
    /// Enters the library as `me`.
    ///
    /// # Safety
    /// `me` executes the call.
    #[inline]
    pub(crate) unsafe fn enter(me: *mut Logical) -> Inside {
        set_me(core::ptr::null_mut());
        // SAFETY: by the caller's promise.
        unsafe { (*me).error = last_error() };
        Inside(me)
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the thread executes this, so it has not been taken down.
        set_last_error(unsafe { (*self.0).error });
        set_me(self.0);
    }
}

/// The error number that the program will see.
pub(crate) fn fail(me: &mut Token, error: u32) {
    // SAFETY: who has the token lives.
    unsafe { (*me.thread()).error = error };
}

/// Keeps what a real function left as error number for the program.
pub(crate) fn keep_error(me: &mut Token) {
    // SAFETY: who has the token lives.
    unsafe { (*me.thread()).error = last_error() };
}
