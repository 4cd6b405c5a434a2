//! An ELF file as far as it matters here.

use std::collections::BTreeMap;

use gimli::UnwindSection;
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind};

use crate::landing;

/// Why a file cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It is no ELF file, or a broken one.
    #[error("cannot be read as an ELF file: {0}")]
    Format(#[from] object::Error),
    /// It is for another processor.
    #[error("is not built for x86-64")]
    OtherProcessor,
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

/// The file.
pub struct Image<'a> {
    /// By address.
    pub sections: Vec<Section<'a>>,
    /// First address and end of every function that is known; they do not overlap.
    pub functions: BTreeMap<u64, u64>,
    /// Places in code that something other than a jump points to.
    pub pointed_to: Vec<u64>,
    /// Code is at the addresses that the file says: constants in it may be addresses.
    pub fixed: bool,
    /// The identity that the linker gave to the file.
    pub build_id: Option<Vec<u8>>,
}

/// Functions of runtimes that watch a program from within: they are part of the tool, not of the program.
const NOT_THE_PROGRAM: [&str; 6] = ["__asan", "__sanitizer", "__tsan", "__ubsan", "__lsan", "__interceptor"];

impl<'a> Image<'a> {
    /// Reads a file.
    pub fn parse(bytes: &'a [u8]) -> Result<Image<'a>, ImageError> {
        let file = object::File::parse(bytes)?;
        if file.architecture() != object::Architecture::X86_64 {
            return Err(ImageError::OtherProcessor);
        }
        let mut sections = Vec::new();
        for section in file.sections().filter(|section| section.address() > 0 && section.size() > 0) {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            let code = sh_flags.0 & object::elf::SHF_EXECINSTR.0 != 0;
            let bytes = section.data().unwrap_or_default();
            if !bytes.is_empty() {
                sections.push(Section { address: section.address(), bytes, code });
            }
        }
        sections.sort_by_key(|section| section.address);
        let mut image = Image {
            sections,
            functions: BTreeMap::new(),
            pointed_to: Vec::new(),
            fixed: file.kind() == object::ObjectKind::Executable,
            build_id: file.build_id().ok().flatten().map(<[u8]>::to_vec),
        };
        image.read_unwind_tables(&file);
        image.read_symbols(&file);
        image.read_pointers(&file);
        Ok(image)
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

    fn read_unwind_tables(&mut self, file: &object::File<'a>) {
        let Some(section) = file.section_by_name(".eh_frame") else { return };
        let Ok(bytes) = section.data() else { return };
        let text = file.section_by_name(".text").map_or(0, |text| text.address());
        let bases = gimli::BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
        let tables = gimli::EhFrame::new(bytes, gimli::LittleEndian);
        let mut entries = tables.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            let Ok(function) = partial.parse(|_, bases, offset| tables.cie_from_offset(bases, offset)) else {
                continue;
            };
            let (start, length) = (function.initial_address(), function.len());
            if length == 0 || !self.is_code(start) {
                continue;
            }
            self.functions.insert(start, start + length);
            if let Some(gimli::Pointer::Direct(table)) = function.lsda()
                && let Some(bytes) = self.at(table)
            {
                landing::pads(bytes, start, |pad| self.pointed_to.push(pad));
            }
        }
    }

    fn read_symbols(&mut self, file: &object::File<'a>) {
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let (start, size) = (symbol.address(), symbol.size());
            if symbol.kind() != SymbolKind::Text || !self.is_code(start) {
                continue;
            }
            self.pointed_to.push(start);
            let before = self.functions.range(..=start).next_back().map_or(0, |(_, &end)| end);
            if size > 0 && before <= start {
                self.functions.insert(start, start + size);
            }
            if symbol.name().is_ok_and(|name| NOT_THE_PROGRAM.iter().any(|part| name.contains(part))) {
                self.functions.remove(&start);
            }
        }
        // A function ends where the next begins.
        let starts: Vec<u64> = self.functions.keys().copied().collect();
        for (index, start) in starts.iter().enumerate() {
            if let (Some(end), Some(&next)) = (self.functions.get_mut(start), starts.get(index + 1)) {
                *end = (*end).min(next);
            }
        }
    }

    /// Relocations, and words of data that could be addresses of code.
    fn read_pointers(&mut self, file: &object::File<'a>) {
        for (_, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let target = relocation.addend() as u64;
            if self.is_code(target) {
                self.pointed_to.push(target);
            }
        }
        let mut found = Vec::new();
        for section in self.sections.iter().filter(|section| !section.code) {
            let skipped = (section.address.next_multiple_of(8) - section.address) as usize;
            let words = section.bytes.get(skipped..).unwrap_or_default().chunks_exact(8);
            let words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
            found.extend(words.filter(|&word| word != 0 && self.is_code(word)));
        }
        self.pointed_to.extend(found);
    }
}
