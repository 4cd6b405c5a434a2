//! A file of code as far as it matters here. `elf` and `pe` read the two formats into one shape.

mod continuation;
mod elf;
mod pe;

use std::collections::BTreeMap;

pub use pe::libraries;

/// Why a file cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It is no such file, or a broken one.
    #[error("cannot be read as an ELF or PE file: {0}")]
    Format(#[from] object::Error),
    /// It is for another processor.
    #[error("is not built for x86-64")]
    OtherProcessor,
    /// Its sections hold more than the file, or reach beyond the end of memory.
    #[error("has sections that cannot be")]
    Sections,
}

/// A section with content, at its address in the file's own numbering.
pub struct Section<'a> {
    /// Where it begins.
    pub address: u64,
    /// What it holds.
    pub bytes: &'a [u8],
    /// Whether it is code.
    pub code: bool,
}

/// What takes the place of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detour {
    /// A jump.
    #[default]
    Jump,
    /// A NOP and a jump. Windows unwinds a function by looking at its instructions, and takes one that jumps out of it for
    /// its end; a call may return to a place that is replaced.
    NopJump,
}

impl Detour {
    /// Its bytes.
    pub fn length(self) -> usize {
        match self {
            Detour::Jump => 5,
            Detour::NopJump => 6,
        }
    }
}

/// The file.
pub struct Image<'a> {
    /// By address.
    pub sections: Vec<Section<'a>>,
    /// First address and end of every function that is known; they do not overlap.
    pub functions: BTreeMap<u64, u64>,
    /// Where a part of a function begins, and where the function or another part of it does.
    pub parts: BTreeMap<u64, u64>,
    /// Where functions have set up their frames, by their first address, for those of which that is known.
    pub bodies: BTreeMap<u64, u64>,
    /// Places in code that something other than a jump points to.
    pub pointed_to: Vec<u64>,
    /// Where the file's own numbering begins in memory, if code is never moved: constants in it may be addresses.
    pub fixed: Option<u64>,
    /// Jump tables may hold places in the file's own numbering, and not only distances from themselves.
    pub numbered_tables: bool,
    /// Functions that call nothing and leave the stack alone may be missing among those that are known.
    pub lacks_leaves: bool,
    /// What its instructions are replaced by.
    pub detour: Detour,
    /// The identity that the linker gave to the file.
    pub build_id: Option<Vec<u8>>,
}

/// Functions of runtimes that watch a program from within: they are part of the tool, not of the program.
const NOT_THE_PROGRAM: [&str; 6] = ["__asan", "__sanitizer", "__tsan", "__ubsan", "__lsan", "__interceptor"];

impl<'a> Image<'a> {
    /// Reads a file.
    pub fn parse(bytes: &'a [u8]) -> Result<Image<'a>, ImageError> {
        if bytes.starts_with(b"MZ") { pe::read(bytes) } else { elf::read(bytes) }
    }

    /// An image of these sections of a file. What is made of them is as large as they are, so they must not lie over each other
    /// in the file: headers are cheap to write.
    fn new(mut sections: Vec<Section<'a>>, file: &[u8]) -> Result<Image<'a>, ImageError> {
        let ends = |section: &Section<'_>| section.address.checked_add(section.bytes.len() as u64).is_some();
        let total: u128 = sections.iter().map(|section| section.bytes.len() as u128).sum();
        if total > file.len() as u128 || !sections.iter().all(ends) {
            return Err(ImageError::Sections);
        }
        sections.sort_by_key(|section| section.address);
        Ok(Image {
            sections,
            functions: BTreeMap::new(),
            parts: BTreeMap::new(),
            bodies: BTreeMap::new(),
            pointed_to: Vec::new(),
            fixed: None,
            numbered_tables: false,
            lacks_leaves: false,
            detour: Detour::default(),
            build_id: None,
        })
    }

    /// The bytes from an address to the end of its section.
    pub fn at(&self, address: u64) -> Option<&'a [u8]> {
        let index = self.sections.partition_point(|section| section.address <= address).checked_sub(1)?;
        let section = &self.sections[index];
        section.bytes.get((address - section.address) as usize..).filter(|rest| !rest.is_empty())
    }

    /// Whether an address is code.
    pub fn is_code(&self, address: u64) -> bool {
        let index = self.sections.partition_point(|section| section.address <= address);
        index.checked_sub(1).is_some_and(|index| {
            let section = &self.sections[index];
            section.code && address - section.address < section.bytes.len() as u64
        })
    }

    /// Where the function begins to which an address belongs; none of them begins at the largest.
    pub fn whole(&self, address: u64) -> u64 {
        /// Parts of parts that are followed.
        const DEEP: usize = 32;
        match self.functions.range(..=address).next_back() {
            Some((&start, &end)) if address < end => {
                let further = |start: &u64| self.parts.get(start).copied();
                std::iter::successors(Some(start), further).take(DEEP).last().unwrap_or(start)
            }
            _ => u64::MAX,
        }
    }

    fn point_to(&mut self, address: u64) {
        if self.is_code(address) {
            self.pointed_to.push(address);
        }
    }

    /// Leaves out the function at an address if its name says that it is not the program's.
    fn leave_out(&mut self, start: u64, name: &str) {
        if NOT_THE_PROGRAM.iter().any(|part| name.contains(part)) {
            self.functions.remove(&start);
        }
    }

    /// A function ends where the next begins.
    fn separate_functions(&mut self) {
        let starts: Vec<u64> = self.functions.keys().copied().collect();
        for (index, start) in starts.iter().enumerate() {
            if let (Some(end), Some(&next)) = (self.functions.get_mut(start), starts.get(index + 1)) {
                *end = (*end).min(next);
            }
        }
    }

    /// Words of data that could be addresses of code, where the file's own numbering begins at `base`.
    fn read_words(&mut self, base: u64) {
        let mut found = Vec::new();
        for section in self.sections.iter().filter(|section| !section.code) {
            let skipped = (section.address.next_multiple_of(8) - section.address) as usize;
            let words = section.bytes.get(skipped..).unwrap_or_default().chunks_exact(8);
            let words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
            found.extend(words.filter(|&word| word != 0).map(|word| word.wrapping_sub(base)));
        }
        found.retain(|&place| self.is_code(place));
        self.pointed_to.extend(found);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::{Plan, Wanted};

    /// The program that runs this test, with the headers of its code sections changed: address, offset and size.
    fn with_code_at(change: impl Fn(usize, [u64; 3]) -> [u64; 3]) -> Vec<u8> {
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        let long = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let half = |at: usize| usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()));
        let (table, size, count) = (long(&bytes, 0x28) as usize, half(0x3a), half(0x3c));
        let headers = (0..count).map(|index| table + index * size);
        let code: Vec<usize> = headers.filter(|at| long(&bytes, at + 8) & 4 != 0).collect();
        for (index, at) in code.into_iter().enumerate() {
            let now = [16, 24, 32].map(|field| long(&bytes, at + field));
            for (field, value) in [16, 24, 32].into_iter().zip(change(index, now)) {
                bytes[at + field..at + field + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        bytes
    }

    /// What is made of a file is as large as the file, however far apart its headers say that its code is.
    #[test]
    fn code_that_is_far_away_costs_no_memory() {
        let far = |index: usize, [address, offset, size]: [u64; 3]| {
            [if index == 0 { 0x7000_0000_0000_0000 } else { address }, offset, size]
        };
        assert!(Plan::of(&with_code_at(far), Wanted::Atomics).is_ok());
    }

    #[test]
    fn sections_that_cannot_be_are_refused() {
        let beyond = |_, [_, offset, size]: [u64; 3]| [u64::MAX - 3, offset, size];
        assert!(matches!(Image::parse(&with_code_at(beyond)), Err(ImageError::Sections)));
        let length = std::fs::metadata("/proc/self/exe").unwrap().len();
        let whole = |index: usize, [address, _, _]: [u64; 3]| [address + ((index as u64) << 40), 0, length];
        assert!(matches!(Image::parse(&with_code_at(whole)), Err(ImageError::Sections)));
    }
}
