//! The call stack of an allocation, as return addresses.
//!
//! The system unwinder reads unwind tables, so frames need no frame pointer; since glibc 2.35 it finds
//! them without a lock. It is most of what a sample costs: two microseconds when samples are frequent, twice
//! that when its tables have left the caches in between.

use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use waylay_leaks::region::FRAMES;

/// One more than the region keeps, so that it knows when something was cut off.
const CAPACITY: usize = FRAMES + 1;

/// Where this library's code lies. Frames inside it are ours and not part of anybody's stack.
static OWN_START: AtomicUsize = AtomicUsize::new(0);
static OWN_END: AtomicUsize = AtomicUsize::new(0);

/// Return addresses, innermost first.
pub(super) struct Stack {
    frames: [u64; CAPACITY],
    depth: usize,
}

impl Stack {
    /// The stack of the calling thread from the first frame outside this library.
    #[inline(always)]
    pub(super) fn capture() -> Stack {
        let mut stack = Stack { frames: [0; CAPACITY], depth: 0 };
        // SAFETY: the callback has the type the unwinder calls, and the pointer is good until it returns.
        unsafe { _Unwind_Backtrace(add_frame, std::ptr::from_mut(&mut stack).cast()) };
        stack
    }

    pub(super) fn frames(&self) -> &[u64] {
        &self.frames[..self.depth]
    }
}

/// Finds out where this library's code lies.
pub(super) fn locate_own_code() {
    // SAFETY: the callback has the type that is called, and uses no data.
    unsafe { libc::dl_iterate_phdr(Some(note_own_segment), std::ptr::null_mut()) };
}

unsafe extern "C" fn note_own_segment(object: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    let here = add_frame as *const () as usize;
    // SAFETY: the loader passes a description of a loaded object with `dlpi_phnum` headers.
    let (base, headers) = unsafe {
        let object = &*object;
        let headers = std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum));
        (object.dlpi_addr as usize, headers)
    };
    for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD) {
        let start = base.wrapping_add(header.p_vaddr as usize);
        let end = start.wrapping_add(header.p_memsz as usize);
        if (start..end).contains(&here) {
            OWN_START.store(start, Relaxed);
            OWN_END.store(end, Relaxed);
            return 1;
        }
    }
    0
}

unsafe extern "C" fn add_frame(context: *mut c_void, stack: *mut c_void) -> c_int {
    const NO_REASON: c_int = 0;
    const NORMAL_STOP: c_int = 4;
    let mut at_instruction: c_int = 0;
    // SAFETY: the unwinder passes its context, and the stack we gave it.
    let (address, stack) =
        unsafe { (_Unwind_GetIPInfo(context, &mut at_instruction), &mut *stack.cast::<Stack>()) };
    if address == 0 {
        return NORMAL_STOP;
    }
    let own = OWN_START.load(Relaxed)..OWN_END.load(Relaxed);
    if stack.depth == 0 && own.contains(&address) {
        return NO_REASON;
    }
    // A frame interrupted by a signal has the address of its next instruction, not of a return. All
    // entries mean the same to whoever subtracts one.
    stack.frames[stack.depth] = address as u64 + u64::from(at_instruction != 0);
    stack.depth += 1;
    if stack.depth == CAPACITY { NORMAL_STOP } else { NO_REASON }
}

// From libgcc_s or libunwind, which the Rust runtime links.
unsafe extern "C" {
    fn _Unwind_Backtrace(
        trace: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut c_void, at_instruction: *mut c_int) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn deep(levels: usize) -> Stack {
        if levels == 0 { Stack::capture() } else { std::hint::black_box(deep(levels - 1)) }
    }

    #[test]
    fn a_stack_has_frames_and_stops_at_its_capacity() {
        // In a test everything is one executable, so nothing is known to be ours and nothing is skipped.
        assert!(Stack::capture().frames().len() > 3);
        assert_eq!(deep(100).frames().len(), CAPACITY);
        assert!(deep(1).frames().iter().all(|frame| *frame != 0));
    }
}
