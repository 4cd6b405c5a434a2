//! Threads that outlive their routine, for the next routine: creating and ending kernel threads would cost more than
//! a whole schedule.
//!
//! A recycled thread must look new to the program: destructors of thread-local variables and keys have run, keys are
//! null, and thread-local variables have their initial values. libc's own variables stay (they hold the allocator's
//! cache), and so do ours.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

use super::logical::Logical;
use super::{Runtime, Token, outside, robust};
use crate::interpose::keys;
use crate::real::Real;
use crate::{snapshot, sys};

/// One module's thread-local variables in one thread: where they are and what they start as.
#[derive(Debug)]
struct Block {
    at: *mut u8,
    image: *const u8,
    image_len: usize,
    len: usize,
}

/// What has to be reset in one thread; right as long as no module comes or goes.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    list: Vec<Block>,
    generation: u64,
}

/// Counts module loads and unloads as of the last look; 0 is before the first.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Notices modules that were loaded or unloaded. Called between runs.
pub(super) fn notice_modules() {
    let mut generation = 0u64;
    // SAFETY: the callback gets a pointer to the local.
    unsafe { libc::dl_iterate_phdr(Some(count_loads), (&raw mut generation).cast()) };
    GENERATION.store(generation, Ordering::Relaxed);
}

unsafe extern "C" fn count_loads(info: *mut libc::dl_phdr_info, _: usize, to: *mut c_void) -> c_int {
    // SAFETY: libc passes a valid record, and we passed the destination.
    unsafe { *to.cast::<u64>() = 1 + (*info).dlpi_adds + (*info).dlpi_subs };
    1
}

/// Does ahead what a thread would do when it first allocates, and notes what has to be reset when it is used again.
///
/// # Safety
/// `me` is the calling thread, which has run nothing yet.
pub(super) unsafe fn warm(me: *mut Logical) {
    /// Small enough for the allocator's cache, which is what gets made.
    const SIZE: usize = 64;
    // SAFETY: by the caller's promise.
    unsafe {
        libc::free(core::hint::black_box(libc::malloc(SIZE)));
        note_blocks(me);
        let (mut head, mut length) = (0usize, 0usize);
        let args = [0, &raw mut head as usize, &raw mut length as usize, 0, 0, 0];
        sys::call(libc::SYS_get_robust_list, args);
        (*me).robust_list = head as *mut c_void;
    }
}

unsafe fn note_blocks(me: *mut Logical) {
    let generation = GENERATION.load(Ordering::Relaxed);
    // SAFETY: the callback gets the list that it fills.
    unsafe {
        if (*me).blocks.generation != generation {
            (*me).blocks = Blocks { list: Vec::new(), generation };
            libc::dl_iterate_phdr(Some(note_block), (&raw mut (*me).blocks.list).cast());
        }
    }
}

/// Runs the destructors of the calling thread and gives it the look of a new one.
///
/// # Safety
/// Its routine has returned.
pub(super) unsafe fn renew(me: &mut Token) {
    // SAFETY: by the caller's promise; destructors are program code and run under control.
    unsafe {
        run_destructors();
        if snapshot::is_on() {
            if !robust::pass_on(me, outside::has_started_processes()) {
                snapshot::cannot_undo("has children, and ends a thread that holds a robust mutex that inherits priorities");
            }
            // A run of a program may load modules at any time.
            notice_modules();
        }
        note_blocks(me.thread());
        for block in &(*me.thread()).blocks.list {
            block.at.copy_from_nonoverlapping(block.image, block.image_len);
            block.at.add(block.image_len).write_bytes(0, block.len - block.image_len);
        }
        *libc::__errno_location() = 0;
    }
}

/// Runs the destructors of the calling thread, as libc would at its end.
///
/// # Safety
/// The calling thread has no more use for its variables.
pub(super) unsafe fn run_destructors() {
    // SAFETY: by the caller's promise.
    unsafe {
        call_thread_local_destructors();
        keys::run_destructors();
    }
}

/// Destructors registered through `__cxa_thread_atexit_impl`, which is how C++ and Rust do it.
unsafe fn call_thread_local_destructors() {
    static REAL: Real = Real::versioned(c"__call_tls_dtors", c"GLIBC_PRIVATE");
    // SAFETY: glibc's function without arguments; it works on the calling thread's list.
    unsafe {
        let function: unsafe extern "C-unwind" fn() = core::mem::transmute(REAL.address());
        function();
    }
}

#[repr(C)]
struct TlsIndex {
    module: usize,
    offset: usize,
}

unsafe extern "C" {
    fn __tls_get_addr(index: *const TlsIndex) -> *mut c_void;
}

unsafe extern "C" fn note_block(info: *mut libc::dl_phdr_info, _: usize, to: *mut c_void) -> c_int {
    // SAFETY: libc passes a valid record, and we passed the destination.
    unsafe {
        let module = (*info).dlpi_tls_modid;
        if module == 0 || is_exempt(CStr::from_ptr((*info).dlpi_name).to_bytes()) {
            return 0;
        }
        let headers = core::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum as usize);
        let Some(header) = headers.iter().find(|header| header.p_type == libc::PT_TLS) else { return 0 };
        // Memory for a module that was loaded late comes with the first touch; this is it, so that the list stays
        // complete.
        let at = __tls_get_addr(&TlsIndex { module, offset: 0 }).cast::<u8>();
        (*to.cast::<Vec<Block>>()).push(Block {
            at,
            image: ((*info).dlpi_addr + header.p_vaddr) as *const u8,
            image_len: header.p_filesz as usize,
            len: header.p_memsz as usize,
        });
    }
    0
}

fn is_exempt(name: &[u8]) -> bool {
    const EXEMPT: [&[u8]; 3] = [b"/libc.so.6", b"/ld-linux-x86-64.so.2", b"/libwaylay_control.so"];
    EXEMPT.iter().any(|exempt| name.ends_with(exempt))
}

/// Forgets the threads of a run in which all but the main one have finished.
pub(super) fn forget_threads(run: &mut Runtime) {
    let pool = &mut run.system.pool;
    for &thread in run.logicals.iter().filter(|&&thread| thread != run.main) {
        // SAFETY: every thread but the main one has finished; those in the pool wait there, the others are gone and
        // nobody has a pointer to them once the tables are cleared.
        unsafe {
            if !(*thread).recyclable {
                drop(Box::from_raw(thread));
            } else if !(*thread).pooled {
                (*thread).pooled = true;
                pool.push(thread);
            }
        }
    }
    // The first comes out first: a thread of the next run has the stack that the thread with its number had in this one, and
    // would have in a process that begins with it.
    pool.sort_unstable_by_key(|&thread| {
        // SAFETY: threads in the pool live until the process ends.
        core::cmp::Reverse(unsafe { (*thread).made })
    });
    run.logicals.clear();
    run.system.handles.clear();
}
