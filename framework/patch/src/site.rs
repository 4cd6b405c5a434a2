//! What an instruction does to memory that others may see.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// Why an instruction is a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With a LOCK prefix.
    Lock,
    /// An exchange with memory, which locks by itself.
    Exchange,
    /// A full fence.
    Fence,
    /// The hint that a loop waits.
    Pause,
    /// A look at the processor's own counter of time.
    Counter,
    /// A call of the kernel without libc.
    Call,
    /// A load in a loop that does nothing but wait for the value to change.
    Wait,
    /// An ordinary access to memory that is not the function's own frame.
    Access,
}

/// What it does, in the words of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// Reads and writes at once.
    Atomic = 0,
    /// Orders.
    Fence = 1,
    /// Waits.
    Pause = 2,
    /// Reads.
    Read = 3,
    /// Writes.
    Write = 4,
    /// Reads and then writes, and another thread may come in between.
    ReadWrite = 5,
    /// Reads one place and writes another.
    Copy = 6,
    /// Reads the processor's counter.
    Counter = 7,
    /// Calls the kernel.
    Call = 8,
}

/// How a function uses its frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// It keeps RBP as its frame pointer.
    pub framed: bool,
    /// It computes addresses in its frame: others may be given them.
    pub leaks: bool,
}

/// Whether an instruction is a step at the atomics level, and why.
pub fn synchronises(instruction: &Instruction) -> Option<Kind> {
    match instruction.mnemonic() {
        _ if instruction.has_lock_prefix() => Some(Kind::Lock),
        Mnemonic::Xchg if touches_memory(instruction) => Some(Kind::Exchange),
        // The latter two wait for all that came before, stores included.
        Mnemonic::Mfence | Mnemonic::Cpuid | Mnemonic::Serialize => Some(Kind::Fence),
        Mnemonic::Pause => Some(Kind::Pause),
        _ => None,
    }
}

/// Whether an instruction reads the processor's own counter of time.
pub fn reads_counter(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Rdtsc | Mnemonic::Rdtscp)
}

/// Whether an instruction calls the kernel.
pub fn calls_kernel(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Syscall
}

/// Whether an instruction names the address that it accesses: string instructions do not.
pub fn has_address(instruction: &Instruction) -> bool {
    touches_memory(instruction)
}

fn touches_memory(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory)
}

/// Whether an instruction takes an address in the frame for other use than the stack's own.
pub fn leaks_frame(instruction: &Instruction, framed: bool) -> bool {
    let frame = |register| register == Register::RSP || framed && register == Register::RBP;
    if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register {
        return false;
    }
    let stack = matches!(instruction.op0_register(), Register::RSP | Register::RBP);
    match instruction.mnemonic() {
        Mnemonic::Lea => !stack && frame(instruction.memory_base()),
        Mnemonic::Mov => {
            !stack && instruction.op1_kind() == OpKind::Register && frame(instruction.op1_register())
        }
        _ => false,
    }
}

/// Whether an instruction is an ordinary access to memory that others may reach: not to a frame of which no address is
/// taken.
pub fn accesses(instruction: &Instruction, frame: Frame) -> bool {
    let plain = instruction.flow_control() == FlowControl::Next
        && !matches!(
            instruction.mnemonic(),
            Mnemonic::Lea | Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Push | Mnemonic::Pop
        );
    if !plain || instruction.is_invalid() {
        return false;
    }
    for operand in 0..instruction.op_count() {
        match instruction.op_kind(operand) {
            OpKind::Memory => {
                let base = instruction.memory_base();
                let own = base == Register::RSP || frame.framed && base == Register::RBP;
                let thread = matches!(instruction.memory_segment(), Register::FS | Register::GS);
                return (!own || frame.leaks) && !thread && instruction.memory_size().size() > 0;
            }
            OpKind::MemorySegRSI | OpKind::MemoryESRDI => return true,
            _ => {}
        }
    }
    false
}

/// What a site does; `factory` is reused because making one takes time.
pub fn effect(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> What {
    match synchronises(instruction) {
        // An addition of nothing to the own stack is how compilers write a fence. Anything else there is a variable of the
        // frame that others were given.
        Some(Kind::Lock) if instruction.memory_base() == Register::RSP && changes_nothing(instruction) => {
            return What::Fence;
        }
        Some(Kind::Lock | Kind::Exchange) => return What::Atomic,
        Some(Kind::Fence) => return What::Fence,
        Some(Kind::Pause) => return What::Pause,
        Some(Kind::Access | Kind::Wait | Kind::Counter | Kind::Call) | None => {}
    }
    if reads_counter(instruction) {
        return What::Counter;
    }
    if calls_kernel(instruction) {
        return What::Call;
    }
    let info = factory.info(instruction);
    let (mut reads, mut writes) = (false, false);
    for memory in info.used_memory() {
        match memory.access() {
            OpAccess::Read | OpAccess::CondRead => reads = true,
            OpAccess::Write | OpAccess::CondWrite => writes = true,
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => (reads, writes) = (true, true),
            _ => {}
        }
    }
    let copies = info.used_memory().len() > 1;
    match (reads, writes) {
        (true, true) if copies => What::Copy,
        (true, true) => What::ReadWrite,
        (_, true) => What::Write,
        _ => What::Read,
    }
}

/// Whether an instruction leaves the memory that it writes to as it was, whatever lies there.
fn changes_nothing(instruction: &Instruction) -> bool {
    let is_constant =
        instruction.op_count() == 2 && !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory);
    let all_ones = u64::MAX >> (64 - 8 * instruction.memory_size().size().clamp(1, 8));
    match instruction.mnemonic() {
        Mnemonic::Or | Mnemonic::Add | Mnemonic::Sub | Mnemonic::Xor => {
            is_constant && instruction.immediate(1) == 0
        }
        Mnemonic::And => is_constant && instruction.immediate(1) & all_ones == all_ones,
        _ => false,
    }
}

/// Whether it needs registers that a call may change and that are not saved in the short way: wide vectors, masks, the
/// stack of the old floating-point unit, or the direction of copies.
pub fn is_wide(instruction: &Instruction) -> bool {
    if instruction.mnemonic() == Mnemonic::Std || instruction.mnemonic() == Mnemonic::Popfq {
        return true;
    }
    // A tile, a mask, a vector of more than 128 bits or beyond the 16th.
    let wide = |register: Register| {
        register.is_ymm()
            || register.is_zmm()
            || register.is_k()
            || register.is_mm()
            || register.is_st()
            || register.is_tmm()
            || register.is_xmm() && register.number() > 15
    };
    instruction.fpu_stack_increment_info().increment() != 0
        || (0..instruction.op_count()).any(|operand| {
            instruction.op_kind(operand) == OpKind::Register && wide(instruction.op_register(operand))
        })
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    fn decode(bytes: &[u8]) -> Instruction {
        Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    #[test]
    fn what_synchronises_is_recognised() {
        let cases: [(&[u8], Option<Kind>, What); 12] = [
            (&[0xf0, 0x48, 0xff, 0x07], Some(Kind::Lock), What::Atomic), // lock inc qword [rdi]
            (&[0x87, 0x07], Some(Kind::Exchange), What::Atomic),         // xchg [rdi], eax
            (&[0x48, 0x87, 0xc3], None, What::Read),                     // xchg rbx, rax
            (&[0x0f, 0xae, 0xf0], Some(Kind::Fence), What::Fence),       // mfence
            (&[0x0f, 0xa2], Some(Kind::Fence), What::Fence),             // cpuid
            (&[0xf3, 0x90], Some(Kind::Pause), What::Pause),             // pause
            (&[0xf0, 0x83, 0x0c, 0x24, 0x00], Some(Kind::Lock), What::Fence), // lock or dword [rsp], 0
            (&[0xf0, 0x48, 0x83, 0x44, 0x24, 0xf8, 0x00], Some(Kind::Lock), What::Fence), // lock add qword [rsp-8], 0
            (&[0xf0, 0x83, 0x24, 0x24, 0xff], Some(Kind::Lock), What::Fence), // lock and dword [rsp], -1
            (&[0xf0, 0x83, 0x44, 0x24, 0x0c, 0x01], Some(Kind::Lock), What::Atomic), // lock add dword [rsp+12], 1
            (&[0xf0, 0xff, 0x44, 0x24, 0x0c], Some(Kind::Lock), What::Atomic), // lock inc dword [rsp+12]
            (&[0xf0, 0x01, 0x04, 0x24], Some(Kind::Lock), What::Atomic),       // lock add dword [rsp], eax
        ];
        let mut factory = InstructionInfoFactory::new();
        for (bytes, kind, what) in cases {
            assert_eq!(synchronises(&decode(bytes)), kind, "{bytes:x?}");
            if kind.is_some() {
                assert_eq!(effect(&decode(bytes), &mut factory), what, "{bytes:x?}");
            }
        }
    }

    #[test]
    fn looks_at_the_counter_are_recognised() {
        let mut factory = InstructionInfoFactory::new();
        let cases: [(&[u8], bool); 4] = [
            (&[0x0f, 0x31], true),        // rdtsc
            (&[0x0f, 0x01, 0xf9], true),  // rdtscp
            (&[0x0f, 0x33], false),       // rdpmc
            (&[0x0f, 0x01, 0xd0], false), // xgetbv
        ];
        for (bytes, counter) in cases {
            let instruction = decode(bytes);
            assert_eq!(reads_counter(&instruction), counter, "{bytes:x?}");
            assert_eq!(effect(&instruction, &mut factory) == What::Counter, counter, "{bytes:x?}");
            assert_eq!(synchronises(&instruction), None, "{bytes:x?}");
        }
    }

    #[test]
    fn accesses_to_the_own_frame_are_not_shared() {
        let cases: [(&[u8], bool, Option<What>); 9] = [
            (&[0x8b, 0x07], false, Some(What::Read)),             // mov eax, [rdi]
            (&[0x89, 0x07], false, Some(What::Write)),            // mov [rdi], eax
            (&[0x83, 0x07, 0x01], false, Some(What::ReadWrite)),  // add dword [rdi], 1
            (&[0x8b, 0x04, 0x24], false, None),                   // mov eax, [rsp]
            (&[0x8b, 0x45, 0xf8], true, None),                    // mov eax, [rbp-8], framed
            (&[0x8b, 0x45, 0xf8], false, Some(What::Read)),       // the same, not framed
            (&[0x64, 0x8b, 0x04, 0x25, 0, 0, 0, 0], false, None), // mov eax, fs:[0]
            (&[0x48, 0xa5], false, Some(What::Copy)),             // movsq
            (&[0xf3, 0x48, 0xab], false, Some(What::Write)),      // rep stosq
        ];
        let mut factory = InstructionInfoFactory::new();
        for (bytes, framed, what) in cases {
            let instruction = decode(bytes);
            assert_eq!(accesses(&instruction, Frame { framed, leaks: false }), what.is_some(), "{bytes:x?}");
            if let Some(what) = what {
                assert_eq!(effect(&instruction, &mut factory), what, "{bytes:x?}");
            }
        }
    }

    #[test]
    fn a_frame_whose_address_is_given_away_is_shared() {
        let load = decode(&[0x8b, 0x04, 0x24]); // mov eax, [rsp]
        assert!(accesses(&load, Frame { framed: false, leaks: true }));
        let cases: [(&[u8], bool); 6] = [
            (&[0x48, 0x8d, 0x7c, 0x24, 0x08], true), // lea rdi, [rsp+8]
            (&[0x48, 0x89, 0xe7], true),             // mov rdi, rsp
            (&[0x48, 0x8d, 0x7d, 0xf8], true),       // lea rdi, [rbp-8]
            (&[0x48, 0x8d, 0x65, 0xd8], false),      // lea rsp, [rbp-40]
            (&[0x48, 0x89, 0xe5], false),            // mov rbp, rsp
            (&[0x48, 0x8d, 0x47, 0x08], false),      // lea rax, [rdi+8]
        ];
        for (bytes, leaks) in cases {
            assert_eq!(leaks_frame(&decode(bytes), true), leaks, "{bytes:x?}");
        }
    }

    #[test]
    fn wide_registers_are_seen() {
        assert!(is_wide(&decode(&[0xc5, 0xfd, 0x6f, 0x07]))); // vmovdqa ymm0, [rdi]
        assert!(!is_wide(&decode(&[0xc5, 0xf9, 0x6f, 0x07]))); // vmovdqa xmm0, [rdi]
        assert!(is_wide(&decode(&[0xdb, 0x2f]))); // fld tbyte [rdi]
        assert!(!is_wide(&decode(&[0x0f, 0x28, 0x07]))); // movaps xmm0, [rdi]
    }
}
