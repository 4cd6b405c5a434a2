//! Accesses to memory.
//!
//! The return address names the code, and Rust cannot ask for it: each function is three instructions of assembly that
//! look at the level, and pass the address on.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};

use waylay_control_protocol::Level;
use waylay_schedule::EventKind;

use crate::instrument::access::{Access, atomic, plain};
use crate::instrument::{LEVEL, reports};

extern "C" fn reads<const BYTES: usize>(address: usize, code: usize) {
    plain(Access::reported(EventKind::PlainRead, address, BYTES, code));
}

extern "C" fn writes<const BYTES: usize>(address: usize, code: usize) {
    plain(Access::reported(EventKind::PlainWrite, address, BYTES, code));
}

extern "C" fn volatile_reads<const BYTES: usize>(address: usize, code: usize) {
    atomic(Access::reported(EventKind::AtomicLoad, address, BYTES, code));
}

extern "C" fn volatile_writes<const BYTES: usize>(address: usize, code: usize) {
    atomic(Access::reported(EventKind::AtomicStore, address, BYTES, code));
}

extern "C" fn reads_range(address: usize, bytes: usize, code: usize) {
    plain(Access::reported(EventKind::PlainRead, address, bytes, code));
}

extern "C" fn writes_range(address: usize, bytes: usize, code: usize) {
    plain(Access::reported(EventKind::PlainWrite, address, bytes, code));
}

/// Defines functions that pass on to `$to` with the return address in `$register`, from level `$level` on.
macro_rules! reported {
    ($level:ident, $register:literal, $to:expr; $($name:ident)+) => {$(
        /// # Safety
        /// Called by the code that a compiler made.
        #[unsafe(naked)]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name() {
            naked_asm!(
                "cmp dword ptr [rip + {level}], {least}",
                "jae 2f",
                "ret",
                "2:",
                concat!("mov ", $register, ", qword ptr [rsp]"),
                "jmp {to}",
                level = sym LEVEL,
                least = const Level::$level as u32,
                to = sym $to,
            )
        }
    )+};
}

reported! { Memory, "rsi", reads::<1>; __tsan_read1 }
reported! { Memory, "rsi", reads::<2>; __tsan_read2 __tsan_unaligned_read2 }
reported! { Memory, "rsi", reads::<4>; __tsan_read4 __tsan_unaligned_read4 }
reported! { Memory, "rsi", reads::<8>; __tsan_read8 __tsan_unaligned_read8 __tsan_vptr_read }
reported! { Memory, "rsi", reads::<16>; __tsan_read16 __tsan_unaligned_read16 }
reported! { Memory, "rsi", writes::<1>; __tsan_write1 __tsan_read_write1 }
reported! { Memory, "rsi", writes::<2>; __tsan_write2 __tsan_unaligned_write2 __tsan_read_write2 __tsan_unaligned_read_write2 }
reported! { Memory, "rsi", writes::<4>; __tsan_write4 __tsan_unaligned_write4 __tsan_read_write4 __tsan_unaligned_read_write4 }
reported! { Memory, "rsi", writes::<8>; __tsan_write8 __tsan_unaligned_write8 __tsan_read_write8 __tsan_unaligned_read_write8 __tsan_vptr_update }
reported! { Memory, "rsi", writes::<16>; __tsan_write16 __tsan_unaligned_write16 __tsan_read_write16 __tsan_unaligned_read_write16 }
reported! { Memory, "rdx", reads_range; __tsan_read_range }
reported! { Memory, "rdx", writes_range; __tsan_write_range }

reported! { Atomics, "rsi", volatile_reads::<1>; __tsan_volatile_read1 }
reported! { Atomics, "rsi", volatile_reads::<2>; __tsan_volatile_read2 __tsan_unaligned_volatile_read2 }
reported! { Atomics, "rsi", volatile_reads::<4>; __tsan_volatile_read4 __tsan_unaligned_volatile_read4 }
reported! { Atomics, "rsi", volatile_reads::<8>; __tsan_volatile_read8 __tsan_unaligned_volatile_read8 }
reported! { Atomics, "rsi", volatile_reads::<16>; __tsan_volatile_read16 __tsan_unaligned_volatile_read16 }
reported! { Atomics, "rsi", volatile_writes::<1>; __tsan_volatile_write1 }
reported! { Atomics, "rsi", volatile_writes::<2>; __tsan_volatile_write2 __tsan_unaligned_volatile_write2 }
reported! { Atomics, "rsi", volatile_writes::<4>; __tsan_volatile_write4 __tsan_unaligned_volatile_write4 }
reported! { Atomics, "rsi", volatile_writes::<8>; __tsan_volatile_write8 __tsan_unaligned_volatile_write8 }
reported! { Atomics, "rsi", volatile_writes::<16>; __tsan_volatile_write16 __tsan_unaligned_volatile_write16 }

/// Functions that do what libc's of a similar name do, and report both blocks. The code is not told: two copies of one
/// block in different places count as one place.
mod blocks {
    use super::*;

    fn read(address: *const c_void, bytes: usize) {
        report(EventKind::PlainRead, address, bytes);
    }

    fn write(address: *const c_void, bytes: usize) {
        report(EventKind::PlainWrite, address, bytes);
    }

    fn report(kind: EventKind, address: *const c_void, bytes: usize) {
        if reports(Level::Memory) && bytes > 0 {
            plain(Access::reported(kind, address as usize, bytes, address as usize));
        }
    }

    /// # Safety
    /// As for `memcpy`.
    #[cfg_attr(not(test), unsafe(no_mangle))]
    unsafe extern "C" fn __tsan_memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void {
        read(from, bytes);
        write(to, bytes);
        // SAFETY: by the caller's promise. Overlapping blocks are a fault of the program that the real function
        // tolerates more or less; this one does.
        unsafe { libc::memmove(to, from, bytes) }
    }

    /// # Safety
    /// As for `memmove`.
    #[cfg_attr(not(test), unsafe(no_mangle))]
    unsafe extern "C" fn __tsan_memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void {
        read(from, bytes);
        write(to, bytes);
        // SAFETY: by the caller's promise.
        unsafe { libc::memmove(to, from, bytes) }
    }

    /// # Safety
    /// As for `memset`.
    #[cfg_attr(not(test), unsafe(no_mangle))]
    unsafe extern "C" fn __tsan_memset(to: *mut c_void, byte: c_int, bytes: usize) -> *mut c_void {
        write(to, bytes);
        // SAFETY: by the caller's promise.
        unsafe { libc::memset(to, byte, bytes) }
    }
}
