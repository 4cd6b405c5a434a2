//! Atomic operations: a step, then the operation itself, sequentially consistent whatever order was asked for.
//!
//! Only one thread of the program runs at a time, so there is nothing weaker to observe. What the order promises about accesses
//! around it is told: the race detector takes the program by its word.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

use waylay_accesses::{Expects, Promise};
use waylay_control_protocol::Level;
use waylay_schedule::EventKind;

use crate::instrument::access::{Access, atomic, fences};
use crate::instrument::{delay, reports};

/// The number of the strongest order.
const SEQUENTIAL: i32 = 5;

/// Announces an operation. Operations of one kind on one object count as one place in the code.
#[inline(always)]
fn announce<T>(kind: EventKind, address: *const T, order: i32) {
    announce_if(kind, address, order, None);
}

#[inline(always)]
fn announce_if<T>(kind: EventKind, address: *const T, order: i32, expects: Option<Expects>) {
    if reports(Level::Atomics) {
        let access = Access::reported(kind, address as usize, size_of::<T>(), kind as usize);
        atomic(Access { promise: Promise::of_compiler(order), expects, ..access });
    }
}

macro_rules! exported {
    ($bits:literal, $what:literal, $($function:tt)+) => {
        #[cfg_attr(not(test), unsafe(export_name = concat!("__tsan_atomic", $bits, "_", $what)))]
        /// # Safety
        /// Called by the code that a compiler made: the pointers are valid and aligned.
        pub(super) unsafe extern "C" $($function)+
    };
}

macro_rules! combines {
    ($bits:literal, $value:ty, $atomic:ty; $($what:literal $name:ident;)+) => {$(
        exported! { $bits, $what, fn $name(at: *mut $value, with: $value, order: i32) -> $value {
            announce(EventKind::AtomicRmw, at, order);
            // SAFETY: by the caller's promise.
            unsafe { (*at.cast::<$atomic>()).$name(with, Ordering::SeqCst) }
        }}
    )+};
}

/// All operations on integers of one size that the processor has instructions for.
macro_rules! operations {
    ($bits:literal, $value:ty, $atomic:ty) => {
        use super::*;

        exported! { $bits, "load", fn load(at: *const $value, order: i32) -> $value {
            announce(EventKind::AtomicLoad, at, order);
            // SAFETY: by the caller's promise.
            unsafe { (*at.cast::<$atomic>()).load(Ordering::SeqCst) }
        }}
        exported! { $bits, "store", fn store(at: *mut $value, value: $value, order: i32) {
            // Compilers make an exchange of it, which does not wait.
            let exchanges = delay::is_on() && order == SEQUENTIAL;
            announce(if exchanges { EventKind::AtomicRmw } else { EventKind::AtomicStore }, at, order);
            // SAFETY: by the caller's promise.
            unsafe { (*at.cast::<$atomic>()).store(value, Ordering::SeqCst) }
        }}
        combines! { $bits, $value, $atomic;
            "exchange" swap;
            "fetch_add" fetch_add;
            "fetch_sub" fetch_sub;
            "fetch_and" fetch_and;
            "fetch_or" fetch_or;
            "fetch_xor" fetch_xor;
            "fetch_nand" fetch_nand;
        }
        // gcc asks for these two and passes what it expects by pointer; a weak one may fail for no reason and never does.
        exported! { $bits, "compare_exchange_strong",
            fn strong(at: *mut $value, expected: *mut $value, new: $value, order: i32, failure: i32) -> bool {
            // SAFETY: by the caller's promise.
            unsafe {
                let old = value(at, *expected, new, order, failure);
                let same = old == *expected;
                if !same {
                    *expected = old;
                }
                same
            }
        }}
        exported! { $bits, "compare_exchange_weak",
            fn weak(at: *mut $value, expected: *mut $value, new: $value, order: i32, failure: i32) -> bool {
            // SAFETY: by the caller's promise.
            unsafe { strong(at, expected, new, order, failure) }
        }}
    };
}

/// The one operation that differs between the sizes of general registers and twice that.
macro_rules! compares {
    ($bits:literal, $value:ty, $atomic:ty) => {
        exported! { $bits, "compare_exchange_val",
            fn value(at: *mut $value, expected: $value, new: $value, order: i32, failure: i32) -> $value {
            // What no word holds is an update that promises whatever either way would.
            let fits = size_of::<$value>() <= size_of::<u64>();
            let otherwise = Promise::of_compiler(failure);
            let expects = fits.then(|| Expects { value: expected as u64, otherwise });
            announce_if(EventKind::AtomicRmw, at, if fits { order } else { SEQUENTIAL }, expects);
            // SAFETY: by the caller's promise.
            let result = unsafe {
                (*at.cast::<$atomic>()).compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst)
            };
            result.unwrap_or_else(|old| old)
        }}
    };
}

mod bits8 {
    operations! { "8", u8, AtomicU8 }
    compares! { "8", u8, AtomicU8 }
}
mod bits16 {
    operations! { "16", u16, AtomicU16 }
    compares! { "16", u16, AtomicU16 }
}
mod bits32 {
    operations! { "32", u32, AtomicU32 }
    compares! { "32", u32, AtomicU32 }
}
mod bits64 {
    operations! { "64", u64, AtomicU64 }
    compares! { "64", u64, AtomicU64 }
}
mod bits128 {
    use crate::instrument::tsan::atomic::pair::AtomicPair;

    operations! { "128", u128, AtomicPair }
    compares! { "128", u128, AtomicPair }
}

/// Sixteen bytes, by the one instruction that changes so many at once.
mod pair {
    use core::arch::asm;
    use core::cell::UnsafeCell;
    use core::sync::atomic::Ordering;

    #[repr(C, align(16))]
    pub(super) struct AtomicPair(UnsafeCell<u128>);

    impl AtomicPair {
        pub(super) fn compare_exchange(
            &self,
            expected: u128,
            new: u128,
            _: Ordering,
            _: Ordering,
        ) -> Result<u128, u128> {
            let (mut low, mut high) = (expected as u64, (expected >> 64) as u64);
            // SAFETY: the pair is aligned by its type; rbx, which the compiler keeps for itself, is put back. It may give rbx to
            // an operand all the same, so that each has a register by name.
            unsafe {
                asm!(
                    "xchg rsi, rbx",
                    "lock cmpxchg16b xmmword ptr [rdi]",
                    "mov rbx, rsi",
                    in("rdi") self.0.get(),
                    inout("rsi") new as u64 => _,
                    in("rcx") (new >> 64) as u64,
                    inout("rax") low,
                    inout("rdx") high,
                    options(nostack),
                );
            }
            let old = u128::from(high) << 64 | u128::from(low);
            if old == expected { Ok(old) } else { Err(old) }
        }

        pub(super) fn load(&self, order: Ordering) -> u128 {
            self.compare_exchange(0, 0, order, order).unwrap_or_else(|old| old)
        }

        pub(super) fn store(&self, value: u128, order: Ordering) {
            self.swap(value, order);
        }

        fn update(&self, new: impl Fn(u128) -> u128, order: Ordering) -> u128 {
            let mut old = self.load(order);
            loop {
                match self.compare_exchange(old, new(old), order, order) {
                    Ok(old) => return old,
                    Err(now) => old = now,
                }
            }
        }

        pub(super) fn swap(&self, with: u128, order: Ordering) -> u128 {
            self.update(|_| with, order)
        }
        pub(super) fn fetch_add(&self, with: u128, order: Ordering) -> u128 {
            self.update(|old| old.wrapping_add(with), order)
        }
        pub(super) fn fetch_sub(&self, with: u128, order: Ordering) -> u128 {
            self.update(|old| old.wrapping_sub(with), order)
        }
        pub(super) fn fetch_and(&self, with: u128, order: Ordering) -> u128 {
            self.update(|old| old & with, order)
        }
        pub(super) fn fetch_or(&self, with: u128, order: Ordering) -> u128 {
            self.update(|old| old | with, order)
        }
        pub(super) fn fetch_xor(&self, with: u128, order: Ordering) -> u128 {
            self.update(|old| old ^ with, order)
        }
        pub(super) fn fetch_nand(&self, with: u128, order: Ordering) -> u128 {
            self.update(|old| !(old & with), order)
        }
    }
}

/// # Safety
/// None.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn __tsan_atomic_thread_fence(order: i32) {
    delay::fence(order == SEQUENTIAL);
    fences(Promise::of_compiler(order));
    fence(Ordering::SeqCst);
}

/// # Safety
/// None.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn __tsan_atomic_signal_fence(_order: i32) {
    compiler_fence(Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_means_what_its_name_says() {
        // SAFETY: all pointers are to locals.
        unsafe {
            let mut word = 5u32;
            assert_eq!(bits32::load(&raw const word, 0), 5);
            assert_eq!(bits32::fetch_add(&raw mut word, 3, 5), 5);
            assert_eq!(bits32::fetch_sub(&raw mut word, 1, 5), 8);
            assert_eq!(bits32::fetch_nand(&raw mut word, 6, 5), 7);
            assert_eq!(word, !6);
            assert_eq!(bits32::swap(&raw mut word, 12, 5), !6);
            assert_eq!(bits32::fetch_and(&raw mut word, 4, 5), 12);
            assert_eq!(bits32::fetch_or(&raw mut word, 3, 5), 4);
            assert_eq!(bits32::fetch_xor(&raw mut word, 1, 5), 7);
            assert_eq!(bits32::value(&raw mut word, 6, 9, 5, 5), 6);
            assert_eq!(bits32::value(&raw mut word, 6, 10, 5, 5), 9);
            let mut expected = 1;
            assert!(!bits32::strong(&raw mut word, &raw mut expected, 2, 5, 5));
            assert!(bits32::weak(&raw mut word, &raw mut expected, 2, 5, 5));
            assert_eq!((word, expected), (2, 9));
        }
    }

    #[test]
    fn pairs_are_changed_as_a_whole() {
        #[repr(align(16))]
        struct Aligned(u128);
        let big = u128::from(u64::MAX) + 5;
        let mut pair = Aligned(big);
        let at = &raw mut pair.0;
        // SAFETY: a local with the right alignment.
        unsafe {
            assert_eq!(bits128::load(at, 0), big);
            assert_eq!(bits128::fetch_add(at, 1, 0), big);
            assert_eq!(bits128::swap(at, 7, 0), big + 1);
            bits128::store(at, big, 0);
            assert_eq!(bits128::fetch_nand(at, 1, 0), big);
            assert_eq!(bits128::value(at, 0, 1, 0, 0), !(big & 1));
        }
    }
}
