//! Signal frames: what the kernel pushes when it calls a handler.
//!
//! A handler returns to a two-instruction trampoline that asks the kernel to restore everything. It is told
//! by its code, because not every C library describes it in its unwind tables.

use crate::crash::{GREGS_COUNT, GREGS_OFFSET, registers_from_gregs};
use crate::module::loaded::Located;
use crate::registers::Registers;
use crate::snapshot::StackMemory;

/// `mov $SYS_rt_sigreturn, %rax` in its two encodings, then `syscall`.
const CODE: [&[u8]; 2] = [&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05], &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05]];

pub(super) fn is_trampoline(located: &Located) -> bool {
    let Some(offset) = located.module.offset_of(located.address) else { return false };
    CODE.iter().any(|code| located.module.bytes[offset..].starts_with(code))
}

/// The registers at the moment of the signal. In the trampoline, the stack pointer points at the
/// `ucontext_t` that the kernel saved.
pub(super) fn interrupted(memory: &StackMemory, registers: &Registers) -> Option<Registers> {
    let context = registers.stack()?;
    let mut general = [0; GREGS_COUNT];
    for (index, value) in general.iter_mut().enumerate() {
        *value = memory.word(context.checked_add((GREGS_OFFSET + index * 8) as u64)?)?;
    }
    Some(registers_from_gregs(&general))
}
