//! The context of a suspended logical thread and the switch between two of them.
//!
//! A suspended thread is a stack pointer and an FS base. Everything that the System V ABI asks a callee to keep
//! (rbx, rbp, r12-r15, the SSE and x87 control words) lies on its stack at that pointer, in the order of
//! [`Frame`]. The FS base is the identity of a thread for libc: `pthread_self`, errno, malloc's cache and every
//! thread-local variable follow it, so a fiber that carries the FS base of its home thread *is* that thread for
//! everything but the kernel.

use core::arch::{asm, global_asm};

/// What is left of a logical thread while something else executes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Context {
    stack_pointer: *mut Frame,
    fs_base: u64,
}

/// The registers at the stack pointer of a suspended thread, lowest address first.
#[repr(C)]
struct Frame {
    mxcsr: u32,
    x87_control: u32,
    r15: u64,
    r14: u64,
    r13: u64,
    r12: u64,
    rbx: u64,
    rbp: u64,
    return_address: u64,
    /// Return address of the entry function's caller: zero ends every backtrace here.
    end_of_stack: u64,
}

// With a 16-aligned top, popping all but the last word leaves the stack misaligned by 8, as after a call.
const _: () = assert!(size_of::<Frame>() == 72);

impl Context {
    /// A context that has not been saved yet; switching *from* it fills it in.
    pub(crate) const fn empty() -> Self {
        Self { stack_pointer: core::ptr::null_mut(), fs_base: 0 }
    }

    /// A context that starts `entry` on a fresh stack with thread identity `fs_base`.
    ///
    /// # Safety
    /// `top` is the 16-aligned upper end of a writable stack that outlives the context, and `entry` never returns.
    pub(crate) unsafe fn starting(top: *mut u8, entry: extern "C" fn() -> !, fs_base: u64) -> Self {
        let frame = top.wrapping_sub(size_of::<Frame>()).cast::<Frame>();
        let (mxcsr, x87_control) = control_words();
        // SAFETY: the caller vouches for the stack below `top`; the frame lies inside it.
        unsafe {
            frame.write(Frame {
                mxcsr,
                x87_control,
                r15: 0,
                r14: 0,
                r13: 0,
                r12: 0,
                rbx: 0,
                rbp: 0,
                return_address: entry as usize as u64,
                end_of_stack: 0,
            });
        }
        Self { stack_pointer: frame, fs_base }
    }

    /// Where the stack of the suspended thread ends: what lies below is free.
    pub(crate) fn stack_pointer(&self) -> usize {
        self.stack_pointer as usize
    }

    /// The thread identity that a switch to this context installs.
    pub(crate) fn fs_base(&self) -> u64 {
        self.fs_base
    }

    /// Sets the thread identity that a switch *to* this context installs.
    pub(crate) fn set_fs_base(&mut self, fs_base: u64) {
        self.fs_base = fs_base;
    }
}

/// Saves the running context into `from` and continues `to`. Returns when something switches back to `from`.
///
/// # Safety
/// `to` was saved by an earlier switch or made by [`Context::starting`], nobody else is executing it, and both
/// pointers stay valid until the switch has happened. The processor must have FSGSBASE enabled.
#[inline(always)]
pub(crate) unsafe fn switch(from: *mut Context, to: *const Context) {
    // SAFETY: the assembly keeps exactly what the ABI asks a callee to keep; the rest is the caller's promise.
    unsafe { waylay_control_switch(from, to) }
}

/// The FS base of the running thread.
pub(crate) fn fs_base() -> u64 {
    let base: u64;
    // SAFETY: word 0x10 of the thread control block holds its own address on x86-64 (variant II TLS).
    unsafe { asm!("mov {}, fs:0x10", out(reg) base, options(nostack, preserves_flags, readonly)) };
    base
}

fn control_words() -> (u32, u32) {
    let mut words = [0u32; 2];
    // SAFETY: stores eight bytes into a local of eight bytes.
    unsafe { asm!("stmxcsr [{0}]", "fnstcw [{0} + 4]", in(reg) words.as_mut_ptr(), options(nostack)) };
    (words[0], words[1])
}

unsafe extern "C" {
    fn waylay_control_switch(from: *mut Context, to: *const Context);
}

global_asm!(
    ".text",
    ".p2align 4",
    ".hidden waylay_control_switch",
    ".globl waylay_control_switch",
    ".type waylay_control_switch,@function",
    "waylay_control_switch:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_adjust_cfa_offset 8",
    "push rbx",
    ".cfi_adjust_cfa_offset 8",
    "push r12",
    ".cfi_adjust_cfa_offset 8",
    "push r13",
    ".cfi_adjust_cfa_offset 8",
    "push r14",
    ".cfi_adjust_cfa_offset 8",
    "push r15",
    ".cfi_adjust_cfa_offset 8",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "stmxcsr [rsp]",
    "fnstcw [rsp + 4]",
    "mov [rdi], rsp",
    "mov rsp, [rsi]",
    "mov rax, [rsi + 8]",
    "wrfsbase rax",
    "ldmxcsr [rsp]",
    "fldcw [rsp + 4]",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "pop r15",
    ".cfi_adjust_cfa_offset -8",
    "pop r14",
    ".cfi_adjust_cfa_offset -8",
    "pop r13",
    ".cfi_adjust_cfa_offset -8",
    "pop r12",
    ".cfi_adjust_cfa_offset -8",
    "pop rbx",
    ".cfi_adjust_cfa_offset -8",
    "pop rbp",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size waylay_control_switch, . - waylay_control_switch",
);
