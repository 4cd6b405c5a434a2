//! Libraries that are loaded later.
//!
//! The loader holds a lock of its own while it runs constructors, so a thread that loads is not preempted.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::Ordering;

use super::{ON, patch_new_modules};
use crate::instrument::access;
use crate::me::{Unmanaged, me};

crate::real::real! {
    dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
}

/// The real function finds out who called it, to search that module's folders: where nothing is patched it is jumped to,
/// so that it does. Where something is, names without a folder are not searched for in folders that a library names.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(export_name = "dlopen"))]
unsafe extern "C-unwind" fn dlopen_patched() {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {real}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "cmp byte ptr [rip + {on}], 0",
        "jne {ours}",
        "jmp rax",
        real = sym real_dlopen,
        on = sym ON,
        ours = sym load,
    )
}

extern "C" fn real_dlopen() -> *mut c_void {
    static REAL: crate::real::Real = crate::real::Real::new(c"dlopen");
    REAL.address()
}

/// # Safety
/// As for libc's function.
unsafe extern "C-unwind" fn load(file: *const c_char, mode: c_int) -> *mut c_void {
    let thread = me();
    // SAFETY: passed on; the thread is the calling one.
    unsafe {
        if !thread.is_null() {
            (*thread).unpreemptible += 1;
        }
        let handle = dlopen(file, mode);
        if !handle.is_null() && ON.load(Ordering::Relaxed) {
            let _inside = Unmanaged::enter();
            // What a test loads in a run is its own affair.
            let asked = (thread.is_null() && !file.is_null()).then(|| CStr::from_ptr(file));
            if let Some(first) = patch_new_modules(asked)
                && !thread.is_null()
            {
                access::modules_loaded(first);
            }
        }
        if !thread.is_null() {
            (*thread).unpreemptible -= 1;
        }
        handle
    }
}
