//! Saving every register of the processor from within assembly: pieces that all stubs have in common.

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
