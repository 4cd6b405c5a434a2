//! Saving registers from within assembly, every one of the processor or those that arguments are passed in: pieces that all stubs
//! have in common.

/// The parts of the processor's state that are saved: old floating point, vectors of all widths, masks. Not protection keys:
/// those belong to the kernel thread.
pub const ALL_REGISTERS: u32 = 0xe7;

/// More than any processor needs for these: 64 + 512 + 256 + 64 + 512 + 1024 and what lies between.
pub const AREA: usize = 4096;

/// Assembly that saves [`ALL_REGISTERS`] at RSP, which has room for [`AREA`] and is aligned to 64 bytes. Changes RAX and RDX;
/// `{state}` is [`ALL_REGISTERS`].
#[macro_export]
macro_rules! save_registers {
    () => {
        // The instruction wants the header of what it writes to be clear.
        concat!(
            "xor eax, eax\n",
            "mov [rsp + 512], rax\n",
            "mov [rsp + 520], rax\n",
            "mov [rsp + 528], rax\n",
            "mov [rsp + 536], rax\n",
            "mov [rsp + 544], rax\n",
            "mov [rsp + 552], rax\n",
            "mov [rsp + 560], rax\n",
            "mov [rsp + 568], rax\n",
            "mov eax, {state}\n",
            "xor edx, edx\n",
            "xsavec64 [rsp]",
        )
    };
}

/// Assembly that restores what [`save_registers`](crate::save_registers) saved. Changes RAX and RDX.
#[macro_export]
macro_rules! restore_registers {
    () => {
        concat!("mov eax, {state}\n", "xor edx, edx\n", "xrstor64 [rsp]")
    };
}

/// Where [`enter_with_arguments`](crate::enter_with_arguments) keeps R11, from RSP on: a stub that goes on to a function which it
/// is told by a call writes its address there, and finds it in R11 afterwards.
pub const KEPT_R11: usize = 64;

/// Assembly for the begin of a function, as System V's callers see it: makes a frame of its own, with RBP, and keeps at RSP
/// what a function may be passed: the six words first (RDI, RSI, RDX, RCX, R8, R9), the number of vector registers (RAX),
/// R10, R11, and from 80 on the vector registers. RSP is aligned to 16 bytes then.
#[macro_export]
macro_rules! enter_with_arguments {
    () => {
        concat!(
            "push rbp\n",
            ".cfi_def_cfa_offset 16\n",
            ".cfi_offset rbp, -16\n",
            "mov rbp, rsp\n",
            ".cfi_def_cfa_register rbp\n",
            "sub rsp, 208\n",
            "mov [rsp], rdi\n",
            "mov [rsp + 8], rsi\n",
            "mov [rsp + 16], rdx\n",
            "mov [rsp + 24], rcx\n",
            "mov [rsp + 32], r8\n",
            "mov [rsp + 40], r9\n",
            "mov [rsp + 48], rax\n",
            "mov [rsp + 56], r10\n",
            "mov [rsp + 64], r11\n",
            "movaps [rsp + 80], xmm0\n",
            "movaps [rsp + 96], xmm1\n",
            "movaps [rsp + 112], xmm2\n",
            "movaps [rsp + 128], xmm3\n",
            "movaps [rsp + 144], xmm4\n",
            "movaps [rsp + 160], xmm5\n",
            "movaps [rsp + 176], xmm6\n",
            "movaps [rsp + 192], xmm7",
        )
    };
}

/// Assembly that takes back what [`enter_with_arguments`](crate::enter_with_arguments) kept, and leaves its frame: a jump to
/// a function is as if that had been called.
#[macro_export]
macro_rules! leave_with_arguments {
    () => {
        concat!(
            "mov rdi, [rsp]\n",
            "mov rsi, [rsp + 8]\n",
            "mov rdx, [rsp + 16]\n",
            "mov rcx, [rsp + 24]\n",
            "mov r8, [rsp + 32]\n",
            "mov r9, [rsp + 40]\n",
            "mov rax, [rsp + 48]\n",
            "mov r10, [rsp + 56]\n",
            "mov r11, [rsp + 64]\n",
            "movaps xmm0, [rsp + 80]\n",
            "movaps xmm1, [rsp + 96]\n",
            "movaps xmm2, [rsp + 112]\n",
            "movaps xmm3, [rsp + 128]\n",
            "movaps xmm4, [rsp + 144]\n",
            "movaps xmm5, [rsp + 160]\n",
            "movaps xmm6, [rsp + 176]\n",
            "movaps xmm7, [rsp + 192]\n",
            "leave\n",
            ".cfi_def_cfa rsp, 8",
        )
    };
}
