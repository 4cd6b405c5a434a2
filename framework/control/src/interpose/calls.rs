//! Calls that pass through with a step before them: output and files.
//!
//! Their arguments are of no interest, and some take any number, so each is a few instructions that keep all argument
//! registers, let the scheduler decide, and jump to the function behind.

use core::arch::naked_asm;
use core::ffi::{c_char, c_void};
use core::sync::atomic::AtomicBool;

use waylay_patch::registers::KEPT_R11;
use waylay_patch::{enter_with_arguments, leave_with_arguments};

use super::{above, cancellation_point};
use crate::me::{Unmanaged, me};
use crate::real::Real;
use crate::runtime::{Token, calls};

unsafe extern "C" fn before(real: &'static Real, caller: usize) -> *mut c_void {
    calls::before_call(caller);
    real.address()
}

/// The same for calls that end a thread that was asked to end.
unsafe extern "C-unwind" fn before_ending_call(real: &'static Real, caller: usize) -> *mut c_void {
    calls::before_call(caller);
    let me = me();
    if !me.is_null() {
        let _inside = Unmanaged::enter_from(me);
        // SAFETY: a logical thread that runs program code has the token.
        unsafe { cancellation_point(Token::held_by(me)) };
    }
    real.address()
}

/// The same for calls that open a file by its name.
unsafe extern "C-unwind" fn before_opening(
    real: &'static Real,
    caller: usize,
    path: *const c_char,
) -> *mut c_void {
    // SAFETY: as this function's caller promises; a logical thread gave the path to libc.
    unsafe {
        let function = before_ending_call(real, caller);
        if !me().is_null() && above::is_hidden(path) { above::no_such_file as *mut c_void } else { function }
    }
}

/// Threads are asked to end whether or not such calls are steps. A byte, because assembly looks at it.
static ALWAYS: AtomicBool = AtomicBool::new(true);

macro_rules! passing {
    ($before:ident if $asked:path: $($name:ident)+) => {$(
        mod $name {
            use super::*;

            static REAL: Real = crate::real::real!(@make $name);

            /// # Safety
            /// As for libc's function of this name.
            #[unsafe(naked)]
            #[cfg_attr(not(test), unsafe(no_mangle))]
            unsafe extern "C-unwind" fn $name() {
                // The first half is for programs that run free, or whose calls are no steps.
                naked_asm!(
                    ".cfi_startproc",
                    "cmp byte ptr [rip + {steps}], 0",
                    "jne 2f",
                    "mov r11, qword ptr [rip + {real} + {at}]",
                    "test r11, r11",
                    "je 2f",
                    "jmp r11",
                    "2:",
                    enter_with_arguments!(),
                    "mov rdx, rdi",
                    "lea rdi, [rip + {real}]",
                    "mov rsi, [rbp + 8]",
                    "call {before}",
                    "mov [rsp + {r11}], rax",
                    leave_with_arguments!(),
                    "jmp r11",
                    ".cfi_endproc",
                    steps = sym $asked,
                    real = sym REAL,
                    at = const core::mem::offset_of!(Real, at),
                    before = sym $before,
                    r11 = const KEPT_R11,
                )
            }
        }
    )+};
}

passing! {
    before if calls::ARE_STEPS:
    printf fprintf vprintf vfprintf dprintf __printf_chk __fprintf_chk __dprintf_chk __vprintf_chk __vfprintf_chk
    puts putchar putc fputc fputs fwrite perror
    fopen fopen64 freopen freopen64 fdopen fclose fflush fread __fread_chk fgets __fgets_chk fgetc getc getchar getline ungetc fseek ftell rewind
    scanf fscanf __isoc99_scanf __isoc99_fscanf
    ftruncate ftruncate64 unlink rename remove mkdir rmdir access stat fstat lstat
}
passing! { before_ending_call if ALWAYS: openat openat64 __openat_2 __openat64_2 creat creat64 }
passing! { before_opening if ALWAYS: open open64 __open_2 __open64_2 }

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes every register that a function may change, and says where to go on.
    #[unsafe(naked)]
    extern "C" fn disturb() {
        naked_asm!(
            "xor edi, edi",
            "xor esi, esi",
            "xor edx, edx",
            "xor ecx, ecx",
            "xor r8d, r8d",
            "xor r9d, r9d",
            "xor r10d, r10d",
            "pxor xmm0, xmm0",
            "pxor xmm1, xmm1",
            "pxor xmm7, xmm7",
            "lea rax, [rip + {then}]",
            "ret",
            then = sym then,
        )
    }

    #[unsafe(naked)]
    extern "C" fn stub(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: f64, _: f64) -> f64 {
        naked_asm!(
            ".cfi_startproc",
            enter_with_arguments!(),
            "call {disturb}",
            "mov [rsp + {r11}], rax",
            leave_with_arguments!(),
            "jmp r11",
            ".cfi_endproc",
            disturb = sym disturb,
            r11 = const KEPT_R11,
        )
    }

    extern "C" fn then(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, x: f64, y: f64) -> f64 {
        (a + 10 * b + 100 * c + 1_000 * d + 10_000 * e + 100_000 * f) as f64 + x / y
    }

    #[test]
    fn a_function_behind_a_stub_gets_the_arguments_of_the_call() {
        // The stub goes on to a function with these arguments.
        assert_eq!(stub(1, 2, 3, 4, 5, 6, 1.0, 2.0), 654_321.5);
    }
}
