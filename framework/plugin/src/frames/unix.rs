//! Frames by the unwinder that Rust links anyway.

use std::ffi::{c_int, c_void};

#[repr(C)]
struct UnwindContext {
    _opaque: [u8; 0],
}

const NO_REASON: c_int = 0;
const END_OF_STACK: c_int = 5;

type Visit = extern "C" fn(*mut UnwindContext, *mut c_void) -> c_int;

unsafe extern "C" {
    fn _Unwind_Backtrace(visit: Visit, argument: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut UnwindContext) -> usize;
    fn _Unwind_FindEnclosingFunction(address: *const c_void) -> *const c_void;
}

struct Filling<'a> {
    addresses: &'a mut [usize],
    count: usize,
}

extern "C" fn visit(context: *mut UnwindContext, argument: *mut c_void) -> c_int {
    // SAFETY: `argument` is the `Filling` of the call of `_Unwind_Backtrace` below, which is still running and does
    // not touch it meanwhile.
    let filling = unsafe { &mut *argument.cast::<Filling<'_>>() };
    let Some(slot) = filling.addresses.get_mut(filling.count) else { return END_OF_STACK };
    // SAFETY: the unwinder passes a context that is valid during this call.
    *slot = unsafe { _Unwind_GetIP(context) };
    filling.count += 1;
    NO_REASON
}

/// Fills in return addresses, innermost first, and says how many.
pub(super) fn fill(addresses: &mut [usize]) -> usize {
    let mut filling = Filling { addresses, count: 0 };
    // SAFETY: `visit` neither unwinds nor keeps its argument, and `filling` outlives the call.
    unsafe { _Unwind_Backtrace(visit, (&raw mut filling).cast()) };
    filling.count
}

/// The start of the function that a return address leads back into; null if it is not known.
pub(super) fn function_of(return_address: usize) -> *const () {
    // The call is before the address that it returns to, which may be in the next function already.
    let call = std::ptr::without_provenance(return_address.wrapping_sub(1));
    // SAFETY: the unwinder looks the address up in its tables and does not read through it.
    unsafe { _Unwind_FindEnclosingFunction(call) }.cast()
}
