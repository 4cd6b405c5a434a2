//! Frames by the system's own stack walk.

use std::ffi::{c_ulong, c_void};

#[link(name = "kernel32")]
unsafe extern "system" {
    fn RtlCaptureStackBackTrace(
        skip: c_ulong,
        count: c_ulong,
        frames: *mut *mut c_void,
        hash: *mut c_ulong,
    ) -> u16;
    fn RtlLookupFunctionEntry(address: u64, base: *mut u64, history: *mut c_void) -> *const RuntimeFunction;
}

/// What the unwind tables say of a function, relative to its module.
#[repr(C)]
struct RuntimeFunction {
    begin: u32,
    end: u32,
    unwind: u32,
}

/// Fills in return addresses, innermost first, and says how many.
pub(super) fn fill(addresses: &mut [usize]) -> usize {
    let room = c_ulong::try_from(addresses.len()).unwrap_or(c_ulong::MAX);
    // SAFETY: `addresses` has room for `room` pointers, which are as wide as `usize`; the hash may be null.
    let count =
        unsafe { RtlCaptureStackBackTrace(0, room, addresses.as_mut_ptr().cast(), std::ptr::null_mut()) };
    usize::from(count)
}

/// The start of the function that a return address leads back into; null if it is not known.
pub(super) fn function_of(return_address: usize) -> *const () {
    let mut base = 0;
    // SAFETY: the address is looked up, not read; `base` is written; the history may be null.
    let entry = unsafe {
        RtlLookupFunctionEntry(return_address.wrapping_sub(1) as u64, &raw mut base, std::ptr::null_mut())
    };
    // SAFETY: null, or an entry in the tables of a module that is loaded, since its code is on this stack.
    unsafe { entry.as_ref() }.map_or(std::ptr::null(), |function| {
        std::ptr::without_provenance((base + u64::from(function.begin)) as usize)
    })
}
