//! Program code that ends its thread from within: where `pthread_exit`, and cancellation, come out when the kernel thread
//! has to stay.
//!
//! libc unwinds the stack up to the innermost place that asked to be told, as `pthread_cleanup_push` does in C: it calls
//! destructors and cleanup handlers on the way, and jumps there. We are such a place, the outermost one of a thread, and
//! go on as if its routine had returned.

use core::ffi::{c_int, c_void};

use super::logical::Routine;
use crate::real::{Real, dlvsym};
use crate::switch::fs_base;

/// What became of a routine.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// What it returned, if it did.
    pub(crate) result: *mut c_void,
    /// Not 0: the thread was ended from within, and whoever ended it noted its result.
    pub(crate) from_within: usize,
}

unsafe extern "C-unwind" {
    fn waylay_control_call_until_exit(
        routine: Routine,
        argument: *mut c_void,
        register: *const c_void,
        unregister: *const c_void,
    ) -> Ended;
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// Calls a routine on the calling thread.
///
/// # Safety
/// As for the routine; the calling thread is one of libc's.
pub(crate) unsafe fn call_until_exit(routine: Routine, argument: *mut c_void) -> Ended {
    static REGISTER: Real = Real::new(c"__pthread_register_cancel");
    static UNREGISTER: Real = Real::new(c"__pthread_unregister_cancel");
    // SAFETY: the two functions are libc's and take the buffer; the rest is the caller's promise.
    unsafe { waylay_control_call_until_exit(routine, argument, REGISTER.address(), UNREGISTER.address()) }
}

/// Makes the calling thread one that nobody has ended or asked to end; false if libc does not say how.
///
/// # Safety
/// The calling thread is one of libc's, runs no program code any more, and will be used for another routine.
pub(super) unsafe fn forget_end() -> bool {
    const ENABLE: c_int = 0;
    // SAFETY: libc describes its own fields to debuggers: bits, number and offset.
    unsafe {
        pthread_setcancelstate(ENABLE, core::ptr::null_mut());
        let name = c"_thread_db_pthread_cancelhandling".as_ptr();
        let field = dlvsym(libc::RTLD_DEFAULT, name, c"GLIBC_PRIVATE".as_ptr()).cast::<[u32; 3]>();
        if field.is_null() || (*field)[0] != 32 {
            return false;
        }
        *((fs_base() as usize + (*field)[2] as usize) as *mut u32) = 0;
    }
    true
}

// The buffer is libc's `__pthread_unwind_buf_t`: registers and the mark that no mask was saved (72 bytes), and four words
// for libc. `__sigsetjmp` returns a second time, which no compiled code of Rust may see.
core::arch::global_asm!(
    ".text",
    ".p2align 4",
    ".hidden waylay_control_call_until_exit",
    ".globl waylay_control_call_until_exit",
    ".type waylay_control_call_until_exit,@function",
    "waylay_control_call_until_exit:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "push rbx",
    ".cfi_offset rbx, -24",
    "push r12",
    ".cfi_offset r12, -32",
    "push r13",
    ".cfi_offset r13, -40",
    "push r14",
    ".cfi_offset r14, -48",
    "sub rsp, 112",
    "mov rbx, rdi",
    "mov r12, rsi",
    "mov r13, rdx",
    "mov r14, rcx",
    "mov rdi, rsp",
    "xor esi, esi",
    "call __sigsetjmp@PLT",
    "test eax, eax",
    "mov eax, 1",
    "jnz 2f",
    "mov rdi, rsp",
    "call r13",
    "mov rdi, r12",
    "call rbx",
    "mov r12, rax",
    "xor eax, eax",
    "2:",
    "mov ebx, eax",
    "mov rdi, rsp",
    "call r14",
    "mov rax, r12",
    "mov rdx, rbx",
    "add rsp, 112",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size waylay_control_call_until_exit, . - waylay_control_call_until_exit",
);
