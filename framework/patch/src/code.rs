//! The functions of a module, decoded, with every place that a jump may lead to.
//!
//! A window that covers several instructions is safe only if nothing jumps into its middle. Places that can be jumped to
//! are: targets of direct branches, starts of functions, landing pads, addresses that relocations, data or instructions
//! name, and the entries of jump tables. A jump through a pointer leads to what relocations or data name; one through a
//! register that was computed leads to a table, and if that is not found, the function may be entered anywhere.
//!
//! Microsoft's compilers put the tables of a function behind its instructions, inside of it: a function ends there for us,
//! and where something comes that is no instruction we know. What was taken for an instruction and is none must not be
//! replaced.

use std::collections::BTreeSet;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::image::{Detour, Image, Section};
use crate::leaf;
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
    /// Where the function begins that this is all or a part of.
    whole: u64,
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
    /// Where tables begin that lie inside functions.
    tables: BTreeSet<u64>,
    /// Where branches lead that stay in no function that is known.
    outside: BTreeSet<u64>,
}

/// A bit for each byte of code, by section: between two sections there may be any distance.
struct Targets {
    /// Where each begins, in order.
    sections: Vec<(u64, Vec<u64>)>,
}

impl Targets {
    fn of(image: &Image<'_>) -> Targets {
        let code = image.sections.iter().filter(|section| section.code);
        let bits = |section: &Section<'_>| vec![0; section.bytes.len() / 64 + 1];
        Targets { sections: code.map(|section| (section.address, bits(section))).collect() }
    }

    fn place(&self, address: u64) -> Option<(usize, u64)> {
        let section = self.sections.partition_point(|(first, _)| *first <= address).checked_sub(1)?;
        Some((section, address - self.sections[section].0))
    }

    fn insert(&mut self, address: u64) {
        let Some((section, place)) = self.place(address) else { return };
        if let Some(word) = self.sections[section].1.get_mut((place / 64) as usize) {
            *word |= 1 << (place % 64);
        }
    }

    fn contains(&self, address: u64) -> bool {
        self.place(address).is_some_and(|(section, place)| {
            let word = self.sections[section].1.get((place / 64) as usize);
            word.is_some_and(|word| word & 1 << (place % 64) != 0)
        })
    }
}

impl Code {
    /// Decodes the functions of an image.
    pub fn decode(image: &Image<'_>) -> Code {
        let code = image.sections.iter().filter(|section| section.code);
        let total = code.map(|section| section.bytes.len() as u64).sum();
        let targets = Targets::of(image);
        let mut this = Code {
            functions: Vec::new(),
            instructions: Vec::new(),
            bytes: (total, 0),
            wide: false,
            detour: image.detour,
            targets,
            tables: BTreeSet::new(),
            outside: BTreeSet::new(),
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
        if image.lacks_leaves {
            let leaves = leaf::functions(image, &this.outside);
            for (index, &(start, end)) in leaves.iter().enumerate() {
                let known = image.functions.range(end..).next().map(|(&next, _)| next);
                let leaf = leaves.get(index + 1).map(|&(next, _)| next);
                this.function(image, start, end, known.into_iter().chain(leaf).min().unwrap_or(u64::MAX));
            }
            let first = |function: &Function| this.instructions[function.instructions.clone()].first();
            this.functions.sort_by_cached_key(|function| first(function).map(Instruction::ip));
        }
        this.end_at_tables();
        this.share_unresolved();
        this
    }

    /// Functions that were decoded before somebody named a table in them.
    fn end_at_tables(&mut self) {
        for &table in &self.tables {
            let after = self.functions.partition_point(|function| {
                self.instructions.get(function.instructions.start).is_some_and(|first| first.ip() <= table)
            });
            let Some(function) = after.checked_sub(1).map(|place| &mut self.functions[place]) else {
                continue;
            };
            let inside = &self.instructions[function.instructions.clone()];
            let kept = inside.partition_point(|instruction| instruction.next_ip() <= table);
            if kept < inside.len() {
                function.instructions.end = function.instructions.start + kept;
                function.padding = 0;
            }
        }
    }

    /// A jump that is not understood may lead to any part of its function.
    fn share_unresolved(&mut self) {
        let unresolved = self.functions.iter().filter(|function| function.unresolved);
        let whole: BTreeSet<u64> = unresolved.map(|function| function.whole).collect();
        for function in self.functions.iter_mut() {
            function.unresolved |= whole.contains(&function.whole);
        }
    }

    /// Whether something may jump to an address.
    pub fn is_target(&self, address: u64) -> bool {
        self.targets.contains(address)
    }

    fn function(&mut self, image: &Image<'_>, start: u64, end: u64, next: u64) {
        let Some(bytes) = image.at(start) else { return };
        let length = ((end - start) as usize).min(bytes.len());
        // One that no table names has no parts.
        let whole = Some(image.whole(start)).filter(|&whole| whole != u64::MAX).unwrap_or(start);
        let first = self.instructions.len();
        let mut decoder = Decoder::with_ip(64, &bytes[..length], start, DecoderOptions::NONE);
        let mut limit = self.tables.range(start..).next().map_or(end, |&table| table.min(end));
        let mut unknown = false;
        while decoder.can_decode() && decoder.ip() < limit {
            let instruction = decoder.decode();
            unknown = instruction.is_invalid();
            if unknown || instruction.next_ip() > limit {
                break;
            }
            self.instructions.push(instruction);
            if image.numbered_tables
                && looks_up(&instruction)
                && let table = instruction.memory_displacement64()
                && image.is_code(table)
                && entries(image, table, 0, whole).next().is_some()
            {
                self.tables.insert(table);
                if table > instruction.ip() {
                    limit = limit.min(table);
                }
            }
        }
        let decoded = self.instructions[first..].last().map_or(start, Instruction::next_ip);
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
                    let target = instruction.near_branch64();
                    self.targets.insert(target);
                    if image.lacks_leaves
                        && !(start..end).contains(&target)
                        && image.whole(target) == u64::MAX
                    {
                        self.outside.insert(target);
                    }
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
                    tables |= self.table(image, address, address, whole);
                }
            }
            if image.numbered_tables && looks_up(&instruction) {
                tables |= self.table(image, instruction.memory_displacement64(), 0, whole);
            }
            if let Some(base) = image.fixed {
                self.constants(image, &instruction, base);
            }
        }
        let after = &bytes[length..];
        let room = (next.saturating_sub(start + length as u64) as usize).min(PADDING).min(after.len());
        let padding = after[..room]
            .iter()
            // Instructions of a function that nobody named may begin like a long NOP.
            .take_while(|&&byte| is_padding(byte) || !image.lacks_leaves && begins_long_padding(byte))
            .count();
        let padding = if decoded == start + length as u64 { padding } else { 0 };
        let framed = self.instructions[first..].iter().take(6).any(|instruction| {
            instruction.mnemonic() == Mnemonic::Mov
                && instruction.op0_kind() == OpKind::Register
                && instruction.op0_register() == Register::RBP
                && instruction.op1_kind() == OpKind::Register
                && instruction.op1_register() == Register::RSP
        });
        let leaks =
            self.instructions[first..].iter().any(|instruction| site::leaks_frame(instruction, framed));
        self.bytes.1 += if unknown { decoded - start } else { length as u64 };
        let instructions = first..self.instructions.len();
        let unresolved = unknown || jumps && !tables;
        self.functions.push(Function {
            end: start + length as u64,
            instructions,
            body: image.bodies.get(&start).copied().unwrap_or(start),
            padding,
            frame: Frame { framed, leaks },
            unresolved,
            whole,
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
            // What only compares writes nothing.
            let loads = matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Cmp | Mnemonic::Test)
                || instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand();
            writes && !loads
        })
    }

    /// Makes targets of what a table leads to; false when that is nothing.
    fn table(&mut self, image: &Image<'_>, address: u64, base: u64, whole: u64) -> bool {
        let mut any = false;
        for target in entries(image, address, base, whole) {
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

fn is_padding(byte: u8) -> bool {
    matches!(byte, 0x90 | 0xcc)
}

fn begins_long_padding(byte: u8) -> bool {
    matches!(byte, 0x66 | 0x0f | 0x1f | 0x2e)
}

/// What a table of distances from `base` leads to: from itself, as position-independent code has them, or in the file's own
/// numbering. Entries end with the first that does not lead into the function, of which there may be parts elsewhere.
fn entries<'a>(
    image: &'a Image<'_>,
    address: u64,
    base: u64,
    whole: u64,
) -> impl Iterator<Item = u64> + use<'a> {
    let bytes = image.at(address).unwrap_or_default();
    let targets = bytes.chunks_exact(4).take(TABLE).map(move |entry| {
        let distance = i32::from_le_bytes(entry.try_into().unwrap_or_default());
        base.wrapping_add(i64::from(distance) as u64)
    });
    targets.take_while(move |&target| image.whole(target) == whole)
}

/// Whether an instruction takes an entry of four bytes out of a table at a known distance from a base.
fn looks_up(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Movsxd)
        && instruction.op1_kind() == OpKind::Memory
        && instruction.memory_index_scale() == 4
        && instruction.memory_base() != Register::None
        && instruction.memory_index() != Register::None
}
