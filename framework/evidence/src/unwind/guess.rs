//! Going on without unwind tables: frame pointers first, then anything that looks like a return address.

use crate::module::loaded::LoadedModules;
use crate::registers::Registers;
use crate::snapshot::StackMemory;
use crate::stack::Trust;
use crate::symbol::CodeAddress;

use super::Step;

/// How far a scan looks: one page of stack. Frames of code without tables are rarely larger, and every
/// further word is one more chance to find a stale address.
const SCAN_WORDS: u64 = 512;

pub(super) fn step(
    memory: &StackMemory,
    modules: &mut LoadedModules<'_>,
    address: CodeAddress,
    registers: &Registers,
) -> Option<Step> {
    let stack = registers.stack()?;
    // A call through a bad pointer: nothing was pushed but the return address.
    let jumped_astray = matches!(address, CodeAddress::Instruction(pc) if !modules.map().is_code(pc));
    if jumped_astray
        && let Some(pc) = memory.word(stack)
        && is_return_address(modules, pc)
    {
        return Some(Step::Caller {
            registers: caller(registers, pc, stack + 8, None),
            trust: Trust::FramePointer,
        });
    }
    if let Some(frame) = registers.get(Registers::FRAME_POINTER)
        && frame >= stack
        && frame % 8 == 0
        && let (Some(outer), Some(pc)) = (memory.word(frame), memory.word(frame + 8))
        && is_return_address(modules, pc)
    {
        let registers = caller(registers, pc, frame + 16, Some(outer));
        return Some(Step::Caller { registers, trust: Trust::FramePointer });
    }
    let first = stack.next_multiple_of(8);
    (0..SCAN_WORDS).map(|index| first + index * 8).find_map(|place| {
        let pc = memory.word(place)?;
        is_return_address(modules, pc)
            .then(|| Step::Caller { registers: caller(registers, pc, place + 8, None), trust: Trust::Scan })
    })
}

fn caller(registers: &Registers, pc: u64, stack: u64, frame: Option<u64>) -> Registers {
    let mut registers = *registers;
    registers.set(Registers::INSTRUCTION_POINTER, pc);
    registers.set(Registers::STACK_POINTER, stack);
    if let Some(frame) = frame {
        registers.set(Registers::FRAME_POINTER, frame);
    }
    registers
}

/// Whether a word is the address of an instruction that follows a call.
pub(super) fn is_return_address(modules: &mut LoadedModules<'_>, word: u64) -> bool {
    if word == 0 || !modules.map().is_code(word - 1) {
        return false;
    }
    let Some(located) = modules.find(word - 1) else { return false };
    let Some(last) = located.module.offset_of(located.address) else { return false };
    follows_call(&located.module.bytes[..=last])
}

/// Whether code ends with a call instruction: `call rel32`, or an indirect call in one of its lengths.
fn follows_call(code: &[u8]) -> bool {
    let back = |count: usize| code.len().checked_sub(count).map(|at| &code[at..]);
    if back(5).is_some_and(|call| call[0] == 0xe8) {
        return true;
    }
    (2..=7).any(|length| {
        let is_call =
            |call: &[u8]| call[0] == 0xff && (call[1] >> 3) & 7 == 2 && indirect_length(call[1]) == length;
        back(length).is_some_and(is_call)
    })
}

/// Length of `ff /2` by its addressing byte: register, memory, and 8- or 32-bit displacement, with one more
/// byte if an index register takes part.
fn indirect_length(addressing: u8) -> usize {
    let index = usize::from(addressing & 7 == 4);
    match addressing >> 6 {
        3 => 2,
        0 if addressing & 7 == 5 => 6,
        0 => 2 + index,
        1 => 3 + index,
        _ => 6 + index,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_recognised_by_what_precedes() {
        let calls: [&[u8]; 7] = [
            &[0x90, 0xe8, 1, 2, 3, 4],
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd4],
            &[0xff, 0x50, 0x18],
            &[0xff, 0x15, 1, 2, 3, 4],
            &[0xff, 0x94, 0x24, 1, 2, 3, 4],
            &[0xff, 0x54, 0x24, 0x08],
        ];
        for code in calls {
            assert!(follows_call(code), "{code:02x?}");
        }
        let others: [&[u8]; 4] = [&[0x90; 8], &[0xff, 0xe0], &[0x0f, 0x05], &[]];
        for code in others {
            assert!(!follows_call(code), "{code:02x?}");
        }
    }
}
