//! A file of code: where its parts are loaded, its unwind tables, its build id.
//!
//! Addresses come in two kinds. A *process address* is where code ran; a *module address* is where the file
//! itself says that the code is. Both are tied by the file offset, so no load base need be known.

pub(crate) mod loaded;
pub(crate) mod pe;

use std::ops::Range;
use std::sync::Arc;

use gimli::{BaseAddresses, EhFrameHdr, EndianSlice, LittleEndian, Pointer};
use object::elf::{FileHeader64, PT_DYNAMIC, PT_GNU_EH_FRAME, PT_LOAD};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection};

use crate::memory_map::{Mapping, MappingSource};
use crate::sys;

/// What tells one module from another across processes and time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ModuleKey {
    path: Arc<str>,
    device: (u32, u32),
    inode: u64,
    /// Distinguishes images copied from memory, which have no file that identifies them.
    image: Option<u64>,
}

impl ModuleKey {
    pub(crate) fn of(mapping: &Mapping) -> ModuleKey {
        let image = match &mapping.source {
            MappingSource::Image(image) => Some(image.digest),
            _ => None,
        };
        ModuleKey { path: mapping.path.clone(), device: mapping.device, inode: mapping.inode, image }
    }
}

struct Segment {
    offset: u64,
    address: u64,
    file_size: u64,
    executable: bool,
}

/// A part of the file and the module address it is loaded at.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) address: u64,
    pub(crate) range: Range<usize>,
}

/// A parsed module.
pub(crate) struct Module {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) build_id: Option<String>,
    pub(crate) eh_frame: Option<Part>,
    pub(crate) eh_frame_header: Option<Part>,
    pub(crate) bases: BaseAddresses,
    pub(crate) dynamic: Option<Part>,
    /// Windows modules: what unwinds in place of `eh_frame`.
    pub(crate) functions: Option<pe::FunctionTable>,
    segments: Vec<Segment>,
}

impl Module {
    /// Reads and parses the file behind a mapping; absent if it cannot be read or is no module.
    pub(crate) fn open(mapping: &Mapping) -> Option<Module> {
        Module::parse(sys::open_module(mapping).ok()?)
    }

    /// Parses a 64-bit little-endian ELF file or image, or a PE file.
    pub(crate) fn parse(bytes: Arc<[u8]>) -> Option<Module> {
        if bytes.starts_with(b"MZ") {
            return Module::parse_pe(bytes);
        }
        let endian = Endianness::Little;
        let header = FileHeader64::<Endianness>::parse(&*bytes).ok()?;
        let headers = header.program_headers(endian, &*bytes).ok()?;
        let segments: Vec<_> = headers
            .iter()
            .filter(|segment| segment.p_type(endian) == PT_LOAD)
            .map(|segment| Segment {
                offset: segment.p_offset(endian),
                address: segment.p_vaddr(endian),
                file_size: segment.p_filesz(endian),
                executable: segment.p_flags(endian).contains(object::elf::PF_X),
            })
            .collect();
        let part_of = |kind| {
            let segment = headers.iter().find(|segment| segment.p_type(endian) == kind)?;
            let start = usize::try_from(segment.p_offset(endian)).ok()?;
            let end = start.checked_add(usize::try_from(segment.p_filesz(endian)).ok()?)?;
            (end <= bytes.len()).then(|| Part { address: segment.p_vaddr(endian), range: start..end })
        };
        let eh_frame_header = part_of(PT_GNU_EH_FRAME);
        let dynamic = part_of(PT_DYNAMIC);

        let mut module = Module {
            bytes: bytes.clone(),
            build_id: None,
            eh_frame: None,
            eh_frame_header,
            bases: BaseAddresses::default(),
            dynamic,
            functions: None,
            segments,
        };
        // Images rescued from memory have no sections; everything below then comes from the segments.
        if let Ok(file) = ElfFile64::<Endianness>::parse(&*bytes) {
            module.build_id = file.build_id().ok().flatten().map(hexadecimal);
            module.eh_frame = file.section_by_name(".eh_frame").and_then(|section| section_part(&section));
            for (name, set) in [
                (".text", BaseAddresses::set_text as fn(BaseAddresses, u64) -> BaseAddresses),
                (".got", BaseAddresses::set_got),
            ] {
                if let Some(section) = file.section_by_name(name) {
                    module.bases = set(module.bases, section.address());
                }
            }
        }
        module.eh_frame = module.eh_frame.take().or_else(|| module.eh_frame_by_header());
        if let Some(part) = &module.eh_frame {
            module.bases = module.bases.clone().set_eh_frame(part.address);
        }
        if let Some(part) = &module.eh_frame_header {
            module.bases = module.bases.clone().set_eh_frame_hdr(part.address);
        }
        Some(module)
    }

    /// The unwind tables begin where their header says and end at the latest with their segment.
    fn eh_frame_by_header(&self) -> Option<Part> {
        let header = self.eh_frame_header.as_ref()?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(header.address);
        let data = EhFrameHdr::from(EndianSlice::new(self.slice(header), LittleEndian));
        let Pointer::Direct(address) = data.parse(&bases, 8).ok()?.eh_frame_ptr() else { return None };
        let start = self.offset_of(address)?;
        let segment = self.segments.iter().find(|segment| segment.holds_address(address))?;
        let end = usize::try_from(segment.offset + segment.file_size).ok()?.min(self.bytes.len());
        (start < end).then_some(Part { address, range: start..end })
    }

    /// The bytes of a part.
    pub(crate) fn slice(&self, part: &Part) -> &[u8] {
        &self.bytes[part.range.clone()]
    }

    /// The module address of a file offset.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let holds =
            |segment: &&Segment| (segment.offset..segment.offset + segment.file_size).contains(&offset);
        // Pages at a border are mapped by two segments; code is what is asked for.
        let segment = self
            .segments
            .iter()
            .filter(|segment| segment.executable)
            .find(holds)
            .or_else(|| self.segments.iter().find(holds))?;
        Some(offset - segment.offset + segment.address)
    }

    /// The file offset of a module address.
    pub(crate) fn offset_of(&self, address: u64) -> Option<usize> {
        let segment = self.segments.iter().find(|segment| segment.holds_address(address))?;
        usize::try_from(address - segment.address + segment.offset)
            .ok()
            .filter(|offset| *offset < self.bytes.len())
    }
}

impl Segment {
    fn holds_address(&self, address: u64) -> bool {
        (self.address..self.address + self.file_size).contains(&address)
    }
}

fn section_part<'data>(section: &impl ObjectSection<'data>) -> Option<Part> {
    let (start, size) = section.file_range()?;
    let start = usize::try_from(start).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    // A debug-only copy of a file names the section without its contents.
    (section.data().is_ok_and(|data| !data.is_empty()))
        .then_some(Part { address: section.address(), range: start..end })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    fn ourselves() -> Module {
        let path = std::env::current_exe().expect("a test has a path");
        Module::parse(std::fs::read(path).expect("readable").into()).expect("an ELF file")
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn offsets_and_addresses_are_inverse() {
        let module = ourselves();
        for segment in &module.segments {
            if segment.executable {
                let address = segment.address + segment.file_size / 2;
                let offset = module.offset_of(address).expect("in the file");
                assert_eq!(module.address_of(offset as u64), Some(address));
            }
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_tables_found_by_section_and_by_header_begin_alike() {
        let module = ourselves();
        let by_section = module.eh_frame.clone().expect("tables");
        let by_header = module.eh_frame_by_header().expect("tables by header");
        assert_eq!(by_section.address, by_header.address);
        assert_eq!(by_section.range.start, by_header.range.start);
    }

    #[test]
    fn anything_but_an_elf_file_is_refused() {
        assert!(Module::parse(Arc::from(&b"#!/bin/sh\n"[..])).is_none());
        assert!(Module::parse(Arc::from(&b"\x7fELF"[..])).is_none());
    }
}
