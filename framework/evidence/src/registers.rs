//! The registers an unwinder needs, numbered as DWARF numbers them on x86-64.
//!
//! The numbering is the System V ABI's: 0–15 are the general registers in DWARF's own order, 16 is the
//! return address column, which holds the instruction pointer of the frame.

/// Registers of one thread or one frame.
///
/// A register is absent when the frame it belongs to did not keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    values: [u64; Registers::COUNT],
    known: u32,
}

impl Registers {
    /// How many registers are kept: 16 general ones and the instruction pointer.
    pub const COUNT: usize = 17;
    /// DWARF number of the frame pointer, `rbp`.
    pub const FRAME_POINTER: u16 = 6;
    /// DWARF number of the stack pointer, `rsp`.
    pub const STACK_POINTER: u16 = 7;
    /// DWARF number of the instruction pointer, `rip`.
    pub const INSTRUCTION_POINTER: u16 = 16;

    /// No register known.
    #[must_use]
    pub fn unknown() -> Self {
        Registers { values: [0; Self::COUNT], known: 0 }
    }

    /// All registers known, in DWARF order.
    #[must_use]
    pub fn all(values: [u64; Self::COUNT]) -> Self {
        Registers { values, known: (1 << Self::COUNT) - 1 }
    }

    /// Only where the thread is and where its stack is, for a thread that could not be stopped.
    #[must_use]
    pub fn position(instruction: u64, stack: u64) -> Self {
        let mut registers = Self::unknown();
        registers.set(Self::INSTRUCTION_POINTER, instruction);
        registers.set(Self::STACK_POINTER, stack);
        registers
    }

    /// The value of a register by its DWARF number.
    #[must_use]
    pub fn get(&self, number: u16) -> Option<u64> {
        let index = usize::from(number);
        (index < Self::COUNT && self.known & (1 << index) != 0).then(|| self.values[index])
    }

    /// Sets a register; numbers beyond the ones kept are ignored.
    pub fn set(&mut self, number: u16, value: u64) {
        let index = usize::from(number);
        if index < Self::COUNT {
            self.values[index] = value;
            self.known |= 1 << index;
        }
    }

    /// Forgets a register.
    pub fn forget(&mut self, number: u16) {
        let index = usize::from(number);
        if index < Self::COUNT {
            self.known &= !(1 << index);
        }
    }

    /// Where the frame executes.
    #[must_use]
    pub fn instruction(&self) -> Option<u64> {
        self.get(Self::INSTRUCTION_POINTER)
    }

    /// Where the frame's stack ends.
    #[must_use]
    pub fn stack(&self) -> Option<u64> {
        self.get(Self::STACK_POINTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_register_is_not_zero() {
        let mut registers = Registers::all([7; Registers::COUNT]);
        registers.forget(3);
        assert_eq!(registers.get(3), None);
        assert_eq!(registers.get(4), Some(7));
        registers.set(3, 0);
        assert_eq!(registers.get(3), Some(0));
    }

    #[test]
    fn numbers_beyond_the_table_are_unknown() {
        let mut registers = Registers::unknown();
        registers.set(40, 1);
        assert_eq!(registers.get(40), None);
    }
}
