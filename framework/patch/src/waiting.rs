//! Loops that do nothing but wait for another thread: they load from a place that they do not change, and go back.
//!
//! An atomic load is an ordinary MOV, which says nothing; in such a loop it cannot be anything else. A loop that works
//! carries something from one round to the next, in memory or in a register: a counter, a place, a sum. One that carries
//! nothing finds what it found in the round before, until another thread changes it.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register};

use crate::site::{self, Frame};

/// Instructions of a loop at most.
const LONGEST: usize = 24;

/// The loads of waiting loops of a function, by index, in order.
pub(crate) fn loads(function: &[Instruction], frame: Frame) -> Vec<usize> {
    let mut found = Vec::new();
    let mut factory = InstructionInfoFactory::new();
    for (last, branch) in function.iter().enumerate() {
        let backward = matches!(
            branch.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        ) && branch.op0_kind() == OpKind::NearBranch64
            && branch.near_branch64() <= branch.ip();
        if !backward {
            continue;
        }
        let target = branch.near_branch64();
        let Ok(first) = function[..=last].binary_search_by_key(&target, Instruction::ip) else { continue };
        if last - first < LONGEST {
            found.extend(
                loads_of(&function[first..=last], frame, &mut factory).iter().map(|place| first + place),
            );
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn loads_of(body: &[Instruction], frame: Frame, factory: &mut InstructionInfoFactory) -> Vec<usize> {
    let reads = |access| !matches!(access, OpAccess::None | OpAccess::NoMemAccess | OpAccess::Write);
    let writes = |access| {
        matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        )
    };
    let mut changed: Vec<Register> = Vec::new();
    for instruction in body {
        let goes_on = matches!(
            instruction.flow_control(),
            FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
        if !goes_on || site::synchronises(instruction).is_some_and(|kind| kind != site::Kind::Pause) {
            return Vec::new();
        }
        let info = factory.info(instruction);
        if info.used_memory().iter().any(|memory| writes(memory.access())) {
            return Vec::new();
        }
        let registers = info.used_registers().iter().filter(|used| writes(used.access()));
        changed.extend(registers.map(|used| used.register().full_register()));
    }
    // What a round reads and changes, but does not set first, comes from the round before.
    let mut set: Vec<Register> = Vec::new();
    for instruction in body {
        let info = factory.info(instruction);
        let of = |wanted: &dyn Fn(OpAccess) -> bool| {
            let used = info.used_registers().iter().filter(|used| wanted(used.access()));
            used.map(|used| used.register().full_register()).collect::<Vec<_>>()
        };
        if of(&reads).iter().any(|register| changed.contains(register) && !set.contains(register)) {
            return Vec::new();
        }
        set.extend(of(&writes));
    }
    let loads = body.iter().enumerate().filter(|(_, instruction)| site::accesses(instruction, frame));
    loads.map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    fn found(bytes: &[u8]) -> Vec<usize> {
        let function: Vec<_> =
            Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).into_iter().collect();
        loads(&function, Frame::default())
    }

    #[test]
    fn a_loop_that_looks_at_one_place_waits() {
        // 1: mov eax, [rdi]; test eax, eax; je 1b
        assert_eq!(found(&[0x8b, 0x07, 0x85, 0xc0, 0x74, 0xfa]), [0]);
        // 1: pause; cmp dword [rip], 0; jne 1b
        assert_eq!(found(&[0xf3, 0x90, 0x83, 0x3d, 0, 0, 0, 0, 0, 0x75, 0xf5]), [1]);
    }

    #[test]
    fn a_loop_that_walks_or_works_does_not() {
        // 1: mov al, [rdi]; inc rdi; test al, al; jne 1b
        assert!(found(&[0x8a, 0x07, 0x48, 0xff, 0xc7, 0x84, 0xc0, 0x75, 0xf7]).is_empty());
        // 1: add rax, [rdi]; dec ecx; jne 1b
        assert!(found(&[0x48, 0x03, 0x07, 0xff, 0xc9, 0x75, 0xf9]).is_empty());
        // 1: mov eax, [rdi]; mov [rsi], eax; test eax, eax; je 1b
        assert!(found(&[0x8b, 0x07, 0x89, 0x06, 0x85, 0xc0, 0x74, 0xf8]).is_empty());
    }
}
