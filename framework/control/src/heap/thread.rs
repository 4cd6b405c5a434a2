//! What each thread has of its own: three words of thread-local storage, zero at birth, no destructor.
//!
//! `thread_local!` in a shared library goes through `__tls_get_addr`, a call that costs more than the rest
//! of the fast path. A library that is loaded with the program may use the initial-exec model instead: one
//! load of an offset and one addition. Stable Rust has no attribute for it, so the storage is declared in
//! assembly.

use std::cell::Cell;

/// Zeroed when the thread begins.
#[repr(C)]
pub(super) struct Thread {
    /// Bytes that may still be allocated before the next sample. Zero makes a fresh thread stop at its
    /// first allocation and draw its first countdown.
    left: Cell<u64>,
    /// State of the thread's random numbers, zero until seeded.
    pub(super) random: Cell<u64>,
    /// Whose memory this thread allocates.
    pub(super) tag: Cell<u32>,
}

/// A countdown that never runs out.
pub(super) const NEVER: u64 = u64::MAX;

impl Thread {
    /// Counts an allocation. False, with nothing counted, when a sample point lies within it.
    #[inline(always)]
    pub(super) fn spend(&self, size: usize) -> bool {
        match self.left.get().checked_sub(size as u64) {
            Some(left) => {
                self.left.set(left);
                true
            }
            None => false,
        }
    }

    /// Sets the countdown and returns what it was.
    pub(super) fn set_left(&self, bytes: u64) -> u64 {
        self.left.replace(bytes)
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
std::arch::global_asm!(
    ".pushsection .tbss.waylay_heap_thread, \"awT\", %nobits",
    ".globl waylay_heap_thread",
    ".hidden waylay_heap_thread",
    ".type waylay_heap_thread, %tls_object",
    ".size waylay_heap_thread, {size}",
    ".balign 16",
    "waylay_heap_thread:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<Thread>(),
);

/// The storage of the calling thread.
///
/// # Safety
///
/// The reference must not leave the calling thread.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn current<'a>() -> &'a Thread {
    let address: *const Thread;
    // SAFETY: reads the offset that the loader has filled in and the thread pointer, both constant for the
    // life of the thread. The storage is `size_of::<Thread>()` bytes, aligned, and zero is a valid `Thread`.
    unsafe {
        std::arch::asm!(
            "mov {address}, qword ptr [rip + waylay_heap_thread@GOTTPOFF]",
            "add {address}, qword ptr fs:[0]",
            address = out(reg) address,
            options(pure, nomem, nostack),
        );
        &*address
    }
}

/// The storage of the calling thread.
///
/// # Safety
///
/// The reference must not leave the calling thread.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) unsafe fn current<'a>() -> &'a Thread {
    let address: *const Thread;
    // SAFETY: as on x86-64.
    unsafe {
        std::arch::asm!(
            "adrp {offset}, :gottprel:waylay_heap_thread",
            "ldr {offset}, [{offset}, :gottprel_lo12:waylay_heap_thread]",
            "mrs {address}, tpidr_el0",
            "add {address}, {address}, {offset}",
            offset = out(reg) _,
            address = out(reg) address,
            options(pure, nomem, nostack),
        );
        &*address
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
thread_local! {
    static THREAD: Thread =
        const { Thread { left: Cell::new(0), random: Cell::new(0), tag: Cell::new(0) } };
}

/// The storage of the calling thread.
///
/// # Safety
///
/// The reference must not leave the calling thread.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub(super) unsafe fn current<'a>() -> &'a Thread {
    // SAFETY: the storage has no destructor, so it lives as long as the thread, and the caller keeps the
    // reference there.
    THREAD.with(|thread| unsafe { &*std::ptr::from_ref(thread) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_its_own_and_begins_at_zero() {
        // SAFETY: used on this thread only.
        let here = unsafe { current() };
        here.set_left(100);
        here.tag.set(5);
        std::thread::spawn(|| {
            // SAFETY: used on this thread only.
            let there = unsafe { current() };
            assert_eq!((there.set_left(7), there.random.get(), there.tag.get()), (0, 0, 0));
        })
        .join()
        .expect("thread");
        assert_eq!((here.set_left(0), here.tag.replace(0)), (100, 5));
    }

    #[test]
    fn spending_stops_at_a_sample_point_and_not_before() {
        let thread = Thread { left: Cell::new(100), random: Cell::new(0), tag: Cell::new(0) };
        assert!(thread.spend(60));
        assert!(thread.spend(0));
        assert!(!thread.spend(41));
        assert!(!thread.spend(usize::MAX));
        assert!(thread.spend(40));
        assert!(!thread.spend(1));
    }
}
