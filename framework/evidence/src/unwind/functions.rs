//! One step by the function table of a Windows module (`.pdata` and `.xdata`, x64).
//!
//! Every function that touches the stack has an entry whose codes tell what its prologue did; undoing them in reverse
//! gives the caller. A function without an entry is a leaf: its return address is on top of the stack. Epilogues are
//! not described; they are recognised by their instructions, of which the ABI allows few.

use crate::module::loaded::Located;
use crate::module::pe::FunctionTable;
use crate::registers::Registers;
use crate::snapshot::StackMemory;

use super::tables::Outcome;

/// DWARF numbers of the registers in the processor's own order.
const DWARF: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
/// Registers that a call may destroy, by DWARF number: rax, rdx, rcx, r8 to r11.
const CALLER_SAVED: [u16; 7] = [0, 1, 2, 8, 9, 10, 11];
/// Entries may be chained; a damaged file must not make a circle.
const MOST_LINKS: usize = 32;

/// Where a function begins and ends and where its codes are, all from the image base.
#[derive(Clone, Copy)]
struct Entry {
    begin: u32,
    end: u32,
    codes: u32,
}

/// The frame being undone.
struct Frame<'a> {
    registers: Registers,
    stack: u64,
    memory: &'a StackMemory,
}

pub(super) fn step(
    located: &Located,
    table: &FunctionTable,
    exact: bool,
    registers: &Registers,
    memory: &StackMemory,
) -> Outcome {
    let Some(stack) = registers.stack() else { return Outcome::Unreadable };
    let Ok(place) = u32::try_from(located.address.wrapping_sub(table.image_base)) else {
        return Outcome::NoTables;
    };
    let mut frame = Frame { registers: *registers, stack, memory };
    let entries = located.module.slice(&table.part);
    let undone = match find(entries, place) {
        None => Some(()),
        Some(_) if exact && frame.finish_epilogue(located) => Some(()),
        Some(entry) => frame.undo(located, table, entry, place),
    };
    let Some(()) = undone else { return Outcome::Unreadable };
    let interrupted = frame.registers.instruction() != registers.instruction();
    if !interrupted {
        let Some(back) = memory.word(frame.stack) else { return Outcome::Unreadable };
        frame.registers.set(Registers::INSTRUCTION_POINTER, back);
        frame.stack += 8;
        CALLER_SAVED.iter().for_each(|number| frame.registers.forget(*number));
    }
    frame.registers.set(Registers::STACK_POINTER, frame.stack);
    match frame.registers.instruction() {
        Some(back) if !can_be_code(back, memory) => Outcome::Root,
        None => Outcome::Root,
        Some(_) if frame.stack <= stack && !interrupted => Outcome::NoTables,
        Some(_) => Outcome::Caller { registers: frame.registers, signal: interrupted },
    }
}

/// Above a thread's first function there is nothing, or whatever was on the stack before; and a stack holds no code.
fn can_be_code(address: u64, memory: &StackMemory) -> bool {
    address != 0 && !memory.contains(address)
}

fn entry_at(entries: &[u8], index: usize) -> Option<Entry> {
    let word = |at: usize| Some(u32::from_le_bytes(entries.get(at..at + 4)?.try_into().ok()?));
    Some(Entry { begin: word(index * 12)?, end: word(index * 12 + 4)?, codes: word(index * 12 + 8)? })
}

/// Entries are ordered by their beginning.
fn find(entries: &[u8], place: u32) -> Option<Entry> {
    let (mut low, mut high) = (0, entries.len() / 12);
    while low < high {
        let middle = low + (high - low) / 2;
        let entry = entry_at(entries, middle)?;
        if entry.begin <= place { low = middle + 1 } else { high = middle }
    }
    let entry = entry_at(entries, low.checked_sub(1)?)?;
    (place < entry.end).then_some(entry)
}

impl Frame<'_> {
    fn pop(&mut self) -> Option<u64> {
        let value = self.memory.word(self.stack)?;
        self.stack += 8;
        Some(value)
    }

    /// Undoes what the prologue did up to `place`. None if that needs memory that was not copied.
    fn undo(&mut self, located: &Located, table: &FunctionTable, entry: Entry, place: u32) -> Option<()> {
        let module = &located.module;
        let mut entry = entry;
        let mut reached = place - entry.begin;
        for _ in 0..MOST_LINKS {
            let at = module.offset_of(table.image_base + u64::from(entry.codes))?;
            let info = module.bytes.get(at..at + 4)?;
            let (flags, count) = (info[0] >> 3, usize::from(info[2]));
            let frame_register = DWARF[usize::from(info[3] & 15)];
            let frame_offset = u64::from(info[3] >> 4) * 16;
            let codes = module.bytes.get(at + 4..at + 4 + count * 2)?;
            self.undo_codes(codes, reached, frame_register, frame_offset, info[3] & 15 != 0)?;
            const CHAINED: u8 = 4;
            if flags & CHAINED == 0 {
                return Some(());
            }
            let next = at + 4 + count.next_multiple_of(2) * 2;
            entry = entry_at(module.bytes.get(next..next + 12)?, 0)?;
            // The prologue of what this part belongs to was gone through as a whole.
            reached = u32::MAX;
        }
        None
    }

    fn undo_codes(
        &mut self,
        codes: &[u8],
        reached: u32,
        frame_register: u16,
        frame_offset: u64,
        has_frame: bool,
    ) -> Option<()> {
        let half = |index: usize| {
            Some(u64::from(u16::from_le_bytes(codes.get(index * 2..index * 2 + 2)?.try_into().ok()?)))
        };
        // Saved registers are counted from the frame if there is one, else from the stack pointer.
        let base = match has_frame {
            true => self.registers.get(frame_register)?.wrapping_sub(frame_offset),
            false => self.stack,
        };
        let mut index = 0;
        while index < codes.len() / 2 {
            let (offset, operation) = (codes[index * 2], codes[index * 2 + 1]);
            let (kind, operand) = (operation & 15, operation >> 4);
            let slots = match (kind, operand) {
                (1, 0) | (4 | 8, _) => 2,
                (1, _) | (5 | 9, _) => 3,
                _ => 1,
            };
            let large = |index: usize| Some(half(index)? | half(index + 1)? << 16);
            if u32::from(offset) <= reached {
                match (kind, operand) {
                    (0, register) => {
                        let value = self.pop()?;
                        self.registers.set(DWARF[usize::from(register)], value);
                    }
                    (1, 0) => self.stack += half(index + 1)? * 8,
                    (1, _) => self.stack += large(index + 1)?,
                    (2, size) => self.stack += u64::from(size) * 8 + 8,
                    (3, _) => self.stack = base,
                    (4, register) => self.restore(register, base + half(index + 1)? * 8),
                    (5, register) => self.restore(register, base + large(index + 1)?),
                    // The processor itself put the frame there: an interrupt.
                    (10, with_code) => {
                        self.stack += u64::from(with_code) * 8;
                        let back = self.memory.word(self.stack)?;
                        self.stack = self.memory.word(self.stack + 24)?;
                        self.registers.set(Registers::INSTRUCTION_POINTER, back);
                    }
                    _ => {}
                }
            }
            index += slots;
        }
        Some(())
    }

    /// A saved register whose place was not copied is unknown; the walk goes on without it.
    fn restore(&mut self, register: u8, place: u64) {
        let number = DWARF[usize::from(register)];
        match self.memory.word(place) {
            Some(value) => self.registers.set(number, value),
            None => self.registers.forget(number),
        }
    }

    /// If an epilogue begins at the place, does what is left of it up to its return; else changes nothing.
    fn finish_epilogue(&mut self, located: &Located) -> bool {
        let Some(at) = located.module.offset_of(located.address) else { return false };
        let mut code = &located.module.bytes[at..];
        let mut stack = self.stack;
        let mut popped = Vec::new();
        match code {
            [0x48, 0x83, 0xc4, size, rest @ ..] => {
                stack += u64::from(*size);
                code = rest;
            }
            [0x48, 0x81, 0xc4, a, b, c, d, rest @ ..] => {
                stack += u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
                code = rest;
            }
            _ => {}
        }
        loop {
            let (register, rest) = match code {
                [pop @ 0x58..=0x5f, rest @ ..] => (pop - 0x58, rest),
                [0x41, pop @ 0x58..=0x5f, rest @ ..] => (pop - 0x58 + 8, rest),
                _ => break,
            };
            let Some(value) = self.memory.word(stack) else { return false };
            popped.push((DWARF[usize::from(register)], value));
            stack += 8;
            code = rest;
        }
        if !matches!(code, [0xc3, ..] | [0xf3, 0xc3, ..]) {
            return false;
        }
        popped.into_iter().for_each(|(number, value)| self.registers.set(number, value));
        self.stack = stack;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_holds_its_addresses_and_no_others() {
        let mut entries = Vec::new();
        for (begin, end) in [(0x1000_u32, 0x1010_u32), (0x1010, 0x1020), (0x1040, 0x1050)] {
            for word in [begin, end, 0x3000] {
                entries.extend(word.to_le_bytes());
            }
        }
        let begin = |place| find(&entries, place).map(|entry| entry.begin);
        assert_eq!(begin(0x0fff), None);
        assert_eq!(begin(0x1000), Some(0x1000));
        assert_eq!(begin(0x101f), Some(0x1010));
        assert_eq!(begin(0x1020), None);
        assert_eq!(begin(0x104f), Some(0x1040));
    }

    #[test]
    fn a_stack_ends_where_no_code_can_be() {
        let mut memory = StackMemory::default();
        memory.add(0x35_e000, vec![0; 0x2000]);
        assert!(!can_be_code(0, &memory) && !can_be_code(0x35_ea10, &memory));
        assert!(can_be_code(0x36_0000, &memory) && can_be_code(0x1_4000_1000, &memory));
    }

    #[test]
    fn a_prologue_is_undone_as_far_as_it_went() {
        // push rbx; sub rsp, 0x20: codes in reverse order of the instructions.
        let codes = [5, 2 | 3 << 4, 1, 3 << 4];
        let mut memory = StackMemory::default();
        memory.add(0x1000, (0..0x10_u64).flat_map(|index| (index * 0x100).to_le_bytes()).collect());
        let undone = |reached, stack| {
            let mut frame = Frame { registers: Registers::position(1, stack), stack, memory: &memory };
            frame.undo_codes(&codes, reached, 0, 0, false).expect("copied");
            (frame.stack, frame.registers.get(3))
        };
        assert_eq!(undone(9, 0x1000), (0x1028, Some(0x400)));
        assert_eq!(undone(2, 0x1020), (0x1028, Some(0x400)));
        assert_eq!(undone(0, 0x1028), (0x1028, None));
    }
}
