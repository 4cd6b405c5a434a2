//! Calls that pass through with a step before them: output and files.
//!
//! Their arguments are of no interest, and some take any number, so each is a few instructions that keep all argument
//! registers, let the scheduler decide, and jump to the function behind.

use core::arch::naked_asm;
use core::ffi::c_void;
use core::sync::atomic::AtomicBool;

use super::cancellation_point;
use crate::me::{Unmanaged, me};
use crate::real::Real;
use crate::runtime::{calls, Token};

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
                // The first half is for programs that run free, or whose calls are no steps. In the other, the frame is 16-aligned: the return address
                // and rbp, then seven words and, from 64 on, eight vector registers.
                naked_asm!(
                    ".cfi_startproc",
                    "cmp byte ptr [rip + {steps}], 0",
                    "jne 2f",
                    "mov r11, qword ptr [rip + {real} + {at}]",
                    "test r11, r11",
                    "je 2f",
                    "jmp r11",
                    "2:",
                    "push rbp",
                    ".cfi_def_cfa_offset 16",
                    ".cfi_offset rbp, -16",
                    "mov rbp, rsp",
                    ".cfi_def_cfa_register rbp",
                    "sub rsp, 192",
                    "mov [rsp], rdi",
                    "mov [rsp + 8], rsi",
                    "mov [rsp + 16], rdx",
                    "mov [rsp + 24], rcx",
                    "mov [rsp + 32], r8",
                    "mov [rsp + 40], r9",
                    "mov [rsp + 48], rax",
                    "movaps [rsp + 64], xmm0",
                    "movaps [rsp + 80], xmm1",
                    "movaps [rsp + 96], xmm2",
                    "movaps [rsp + 112], xmm3",
                    "movaps [rsp + 128], xmm4",
                    "movaps [rsp + 144], xmm5",
                    "movaps [rsp + 160], xmm6",
                    "movaps [rsp + 176], xmm7",
                    "lea rdi, [rip + {real}]",
                    "mov rsi, [rbp + 8]",
                    "call {before}",
                    "mov r11, rax",
                    "mov rdi, [rsp]",
                    "mov rsi, [rsp + 8]",
                    "mov rdx, [rsp + 16]",
                    "mov rcx, [rsp + 24]",
                    "mov r8, [rsp + 32]",
                    "mov r9, [rsp + 40]",
                    "mov rax, [rsp + 48]",
                    "movaps xmm0, [rsp + 64]",
                    "movaps xmm1, [rsp + 80]",
                    "movaps xmm2, [rsp + 96]",
                    "movaps xmm3, [rsp + 112]",
                    "movaps xmm4, [rsp + 128]",
                    "movaps xmm5, [rsp + 144]",
                    "movaps xmm6, [rsp + 160]",
                    "movaps xmm7, [rsp + 176]",
                    "leave",
                    ".cfi_def_cfa rsp, 8",
                    "jmp r11",
                    ".cfi_endproc",
                    steps = sym $asked,
                    real = sym REAL,
                    at = const core::mem::offset_of!(Real, at),
                    before = sym $before,
                )
            }
        }
    )+};
}

passing! {
    before if calls::ARE_STEPS:
    printf fprintf vprintf vfprintf dprintf __printf_chk __fprintf_chk __vprintf_chk __vfprintf_chk
    puts putchar putc fputc fputs fwrite perror
    fopen fopen64 freopen fdopen fclose fflush fread fgets fgetc getc getchar getline ungetc fseek ftell rewind
    scanf fscanf __isoc99_scanf __isoc99_fscanf
    ftruncate ftruncate64 unlink rename remove mkdir rmdir access stat fstat lstat
}
passing! { before_ending_call if ALWAYS: open open64 openat openat64 creat }
