//! The functions of a module, decoded, with every place that a jump may lead to.
//!
//! A window that covers several instructions is safe only if nothing jumps into its middle. Places that can be jumped to
//! are: targets of direct branches, starts of functions, landing pads, addresses that relocations, data or instructions
//! name, and the entries of jump tables. A jump through a pointer leads to what relocations or data name; one through a
//! register that was computed leads to a table, and if that is not found, the function may be entered anywhere.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::image::{Detour, Image};
use crate::site::{self, Frame};

/// Entries of a jump table that are read at most.
const TABLE: usize = 4096;
/// Instructions before an indirect jump among which its target is computed.
const COMPUTED_WITHIN: usize = 8;
/// Bytes between two functions that may be padding.
const PADDING: usize = 16;

/// One function.
#[derive(Debug)]
pub struct Function {
    /// Where it ends; it begins with its first instruction.
    pub end: u64,
    /// Index of its first instruction, and of the one after its last.
    pub instructions: std::ops::Range<usize>,
    /// Where it has set up its frame, if its unwind information says so: what stands before saves registers, and moved
    /// elsewhere nobody could tell how far it is. The start of the function otherwise.
    pub body: u64,
    /// Bytes after its end that nothing uses.
    pub padding: usize,
    /// How it uses its frame.
    pub frame: Frame,
    /// It jumps to places that are not known.
    pub unresolved: bool,
}

/// Everything decoded.
pub struct Code {
    /// By address.
    pub functions: Vec<Function>,
    /// Of all functions, one after the other.
    pub instructions: Vec<Instruction>,
    /// Bytes of all code sections, and of the functions in them.
    pub bytes: (u64, u64),
    /// Registers must be saved in the long way around a call out of this module.
    pub wide: bool,
    /// What instructions are replaced by.
    pub detour: Detour,
    targets: Targets,
}

struct Targets {
    first: u64,
    bits: Vec<u64>,
}

impl Targets {
    fn insert(&mut self, address: u64) {
        let place = address.wrapping_sub(self.first);
        if let Some(word) = self.bits.get_mut((place / 64) as usize) {
            *word |= 1 << (place % 64);
        }
    }

    fn contains(&self, address: u64) -> bool {
        let place = address.wrapping_sub(self.first);
        self.bits.get((place / 64) as usize).is_some_and(|word| word & 1 << (place % 64) != 0)
    }
}

impl Code {
    /// Decodes the functions of an image.
    pub fn decode(image: &Image<'_>) -> Code {
        let code = || image.sections.iter().filter(|section| section.code);
        let first = code().map(|section| section.address).min().unwrap_or(0);
        let last = code().map(|section| section.address + section.bytes.len() as u64).max().unwrap_or(0);
        let total = code().map(|section| section.bytes.len() as u64).sum();
        let targets = Targets { first, bits: vec![0; ((last - first) / 64 + 1) as usize] };
        let mut this = Code {
            functions: Vec::new(),
            instructions: Vec::new(),
            bytes: (total, 0),
            wide: false,
            detour: image.detour,
            targets,
        };
        // One block: many small ones would stay with the process.
        this.instructions.reserve((total / 3) as usize);
        for &target in &image.pointed_to {
            this.targets.insert(target);
        }
        let starts: Vec<(u64, u64)> = image.functions.iter().map(|(&start, &end)| (start, end)).collect();
        for (index, &(start, end)) in starts.iter().enumerate() {
            let next = starts.get(index + 1).map_or(u64::MAX, |&(next, _)| next);
            this.function(image, start, end, next);
        }
        this
    }

    /// Whether something may jump to an address.
    pub fn is_target(&self, address: u64) -> bool {
        self.targets.contains(address)
    }

    fn function(&mut self, image: &Image<'_>, start: u64, end: u64, next: u64) {
        let Some(bytes) = image.at(start) else { return };
        let length = ((end - start) as usize).min(bytes.len());
        let first = self.instructions.len();
        let mut decoder = Decoder::with_ip(64, &bytes[..length], start, DecoderOptions::NONE);
        while decoder.can_decode() {
            self.instructions.push(decoder.decode());
        }
        self.targets.insert(start);
        let (mut jumps, mut tables) = (false, false);
        for index in first..self.instructions.len() {
            let instruction = self.instructions[index];
            self.wide |= site::is_wide(&instruction);
            match instruction.flow_control() {
                FlowControl::ConditionalBranch
                | FlowControl::UnconditionalBranch
                | FlowControl::Call
                | FlowControl::XbeginXabortXend
                    if instruction.op0_kind() == OpKind::NearBranch64 =>
                {
                    self.targets.insert(instruction.near_branch64());
                }
                FlowControl::IndirectBranch => {
                    jumps |= self.is_computed(first, index);
                }
                _ => {}
            }
            if instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand() {
                let address = instruction.memory_displacement64();
                if image.is_code(address) {
                    self.targets.insert(address);
                } else {
                    tables |= self.table(image, address, address, start..end);
                }
            }
            if image.numbered_tables && looks_up(&instruction) {
                tables |= self.table(image, instruction.memory_displacement64(), 0, start..end);
            }
            if let Some(base) = image.fixed {
                self.constants(image, &instruction, base);
            }
        }
        let after = &bytes[length..];
        let room = (next.saturating_sub(start + length as u64) as usize).min(PADDING).min(after.len());
        let padding = after[..room]
            .iter()
            .take_while(|byte| matches!(byte, 0x90 | 0xcc | 0x66 | 0x0f | 0x1f | 0x2e))
            .count();
        let framed = self.instructions[first..].iter().take(6).any(|instruction| {
            instruction.mnemonic() == Mnemonic::Mov
                && instruction.op0_kind() == OpKind::Register
                && instruction.op0_register() == Register::RBP
                && instruction.op1_kind() == OpKind::Register
                && instruction.op1_register() == Register::RSP
        });
        let leaks =
            self.instructions[first..].iter().any(|instruction| site::leaks_frame(instruction, framed));
        self.bytes.1 += length as u64;
        let instructions = first..self.instructions.len();
        let unresolved = jumps && !tables;
        self.functions.push(Function {
            end: start + length as u64,
            instructions,
            body: image.bodies.get(&start).copied().unwrap_or(start),
            padding,
            frame: Frame { framed, leaks },
            unresolved,
        });
    }

    /// Whether the target of an indirect jump was computed just before, and not only loaded.
    fn is_computed(&self, first: usize, jump: usize) -> bool {
        let instruction = &self.instructions[jump];
        if instruction.op0_kind() != OpKind::Register {
            return false;
        }
        let target = instruction.op0_register();
        let before = &self.instructions[jump.saturating_sub(COMPUTED_WITHIN).max(first)..jump];
        before.iter().any(|instruction| {
            let writes = instruction.op_count() > 0
                && instruction.op0_kind() == OpKind::Register
                && instruction.op0_register() == target;
            let loads = instruction.mnemonic() == Mnemonic::Mov
                || instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand();
            writes && !loads
        })
    }

    /// A table of distances from `base`: from itself, as position-independent code has them, or in the file's own numbering.
    /// Entries end with the first that does not lead into the function.
    fn table(&mut self, image: &Image<'_>, address: u64, base: u64, function: std::ops::Range<u64>) -> bool {
        let Some(bytes) = image.at(address) else { return false };
        let mut any = false;
        for entry in bytes.chunks_exact(4).take(TABLE) {
            let distance = i32::from_le_bytes(entry.try_into().unwrap_or_default());
            let target = base.wrapping_add(i64::from(distance) as u64);
            if !function.contains(&target) {
                break;
            }
            any = true;
            self.targets.insert(target);
        }
        any
    }

    /// In code that is not moved, any constant may be an address.
    fn constants(&mut self, image: &Image<'_>, instruction: &Instruction, base: u64) {
        for operand in 0..instruction.op_count() {
            let value = match instruction.op_kind(operand) {
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                    instruction.immediate(operand).wrapping_sub(base)
                }
                _ => continue,
            };
            if image.is_code(value) {
                self.targets.insert(value);
            }
        }
    }
}

/// Whether an instruction takes an entry of four bytes out of a table at a known distance from a base.
fn looks_up(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Mov
        && instruction.op1_kind() == OpKind::Memory
        && instruction.memory_index_scale() == 4
        && instruction.memory_base() != Register::None
        && instruction.memory_index() != Register::None
}
