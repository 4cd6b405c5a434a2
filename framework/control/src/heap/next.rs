//! The allocator behind us: whatever `malloc` would be if this library were not there.
//!
//! Usually that is glibc, but it may be a sanitizer's runtime or another allocator the program is linked
//! with. Calls must go to that one and not past it, because it also hands out memory (`strdup`, `new`)
//! that ends up in our `free`.
//!
//! The functions are looked up at the first call of any of them, which the loader itself makes while the
//! process has one thread. Should the lookup allocate (old glibc does), that call goes to glibc directly.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU8};

/// Whether the functions have been looked up: [`BEFORE`], [`DURING`] or [`AFTER`].
static LOOKUP: AtomicU8 = AtomicU8::new(BEFORE);
const BEFORE: u8 = 0;
const DURING: u8 = 1;
const AFTER: u8 = 2;

/// Defines a function that jumps to the next one of its name. Until the lookup the jump goes to `first`,
/// which looks up and tries again, or to glibc's own function when it is called from within the lookup.
macro_rules! next {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty, glibc: $glibc:expr;)*) => {
        $(
            /// Calls the next function of this name.
            ///
            /// # Safety
            ///
            /// As that function demands.
            #[inline(always)]
            pub(super) unsafe fn $name($($argument: $type),*) -> $result {
                // SAFETY: the pointer is `first` or a function of this name, so of this type.
                let function = unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(
                        $name::NEXT.load(Relaxed),
                    )
                };
                // SAFETY: the caller's.
                unsafe { function($($argument),*) }
            }

            mod $name {
                use super::*;

                pub(super) static NEXT: AtomicPtr<c_void> = AtomicPtr::new(first as *mut c_void);

                pub(super) unsafe extern "C" fn first($($argument: $type),*) -> $result {
                    let known = look_up_all();
                    // SAFETY: the caller's; glibc's function is of the same kind, and `NEXT` is no longer
                    // `first` once the lookup is done.
                    unsafe { if known { super::$name($($argument),*) } else { $glibc($($argument),*) } }
                }
            }
        )*

        /// Looks up everything, once. False while that is going on further up this stack.
        #[cold]
        fn look_up_all() -> bool {
            if let Err(state) = LOOKUP.compare_exchange(BEFORE, DURING, AcqRel, Acquire) {
                return state == AFTER;
            }
            $(
                let name = concat!(stringify!($name), "\0");
                if let Some(function) = CStr::from_bytes_with_nul(name.as_bytes()).ok().and_then(look_up) {
                    $name::NEXT.store(function, Relaxed);
                } else {
                    let glibc: unsafe extern "C" fn($($type),*) -> $result = $glibc;
                    $name::NEXT.store(glibc as *mut c_void, Relaxed);
                }
            )*
            LOOKUP.store(AFTER, Release);
            true
        }
    };
}

next! {
    fn malloc(size: usize) -> *mut c_void, glibc: __libc_malloc;
    fn calloc(count: usize, size: usize) -> *mut c_void, glibc: __libc_calloc;
    fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void, glibc: __libc_realloc;
    fn free(pointer: *mut c_void) -> (), glibc: __libc_free;
    fn memalign(alignment: usize, size: usize) -> *mut c_void, glibc: __libc_memalign;
    fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void, glibc: __libc_memalign;
    fn valloc(size: usize) -> *mut c_void, glibc: __libc_valloc;
    fn pvalloc(size: usize) -> *mut c_void, glibc: __libc_pvalloc;
    fn posix_memalign(result: *mut *mut c_void, alignment: usize, size: usize) -> c_int, glibc: glibc_posix_memalign;
    fn malloc_usable_size(pointer: *mut c_void) -> usize, glibc: libc::malloc_usable_size;
}

/// Whether memory comes from glibc and not from a sanitizer or another allocator.
pub(super) fn is_glibc() -> bool {
    look_up_all();
    free::NEXT.load(Relaxed) == __libc_free as *mut c_void
        && malloc::NEXT.load(Relaxed) == __libc_malloc as *mut c_void
}

/// The next function of a name, after this library in lookup order.
pub(super) fn look_up(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is a C string.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!function.is_null()).then_some(function)
}

/// `posix_memalign` has no second name in glibc.
unsafe extern "C" fn glibc_posix_memalign(result: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    // SAFETY: the alignment is a power of two; `result` is the caller's.
    unsafe {
        let pointer = __libc_memalign(alignment, size);
        if pointer.is_null() {
            return libc::ENOMEM;
        }
        result.write(pointer);
    }
    0
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(pointer: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_free(pointer: *mut c_void);
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    fn __libc_valloc(size: usize) -> *mut c_void;
    fn __libc_pvalloc(size: usize) -> *mut c_void;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_functions_work() {
        // SAFETY: each block is allocated and freed once, by functions of one allocator.
        unsafe {
            let block = realloc(malloc(100), 200);
            assert!(!block.is_null() && malloc_usable_size(block) >= 200);
            free(block);
            for block in [calloc(3, 7), memalign(64, 10), aligned_alloc(256, 256), valloc(10), pvalloc(10)] {
                assert!(!block.is_null());
                free(block);
            }
            let mut block = std::ptr::null_mut();
            assert_eq!(posix_memalign(&mut block, 128, 100), 0);
            assert_eq!(block.addr() % 128, 0);
            free(block);
        }
    }

    #[test]
    fn our_own_posix_memalign_checks_like_the_real_one() {
        let mut block = std::ptr::null_mut();
        // SAFETY: `block` receives the result, and is freed by the allocator it came from.
        unsafe {
            assert_eq!(glibc_posix_memalign(&mut block, 3, 100), libc::EINVAL);
            assert_eq!(glibc_posix_memalign(&mut block, 4, 100), libc::EINVAL);
            assert_eq!(glibc_posix_memalign(&mut block, 64, usize::MAX / 2), libc::ENOMEM);
            assert_eq!(glibc_posix_memalign(&mut block, 64, 100), 0);
            __libc_free(block);
        }
    }
}
