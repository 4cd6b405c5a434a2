//! Making something like a file out of a module's loaded parts.
//!
//! Section headers and debug information are not loaded, so what comes out has program headers only: enough
//! for unwind tables and dynamic symbols.

use object::elf::{
    DT_GNU_HASH, DT_HASH, DT_NULL, DT_STRTAB, DT_SYMTAB, Dyn64, FileHeader64, PT_DYNAMIC, PT_LOAD,
    ProgramHeader64,
};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, U16, U64};

/// Lays out pieces `(file offset, address, bytes)` as the file had them.
pub(crate) fn assemble(mut pieces: Vec<(u64, u64, Vec<u8>)>) -> Option<Vec<u8>> {
    pieces.sort_by_key(|(offset, address, _)| (*offset, *address));
    let first = pieces.iter().find(|(offset, ..)| *offset == 0)?;
    let endian = Endianness::Little;
    let header = FileHeader64::<Endianness>::parse(&*first.2).ok()?;
    let segments = header.program_headers(endian, &*first.2).ok()?.to_vec();
    let bias = first.1.wrapping_sub(lowest_address(&segments)?);

    let length = pieces.iter().map(|(offset, _, bytes)| *offset as usize + bytes.len()).max()?;
    let mut image = vec![0; length];
    // The page where read-only and writable parts meet is mapped twice; the lower, unmodified one wins.
    for (offset, _, bytes) in pieces.iter().rev() {
        let from = *offset as usize;
        image[from..from + bytes.len()].copy_from_slice(bytes);
    }
    forget_sections(&mut image)?;
    unrelocate_dynamic(&mut image, &segments, bias);
    Some(image)
}

fn lowest_address(segments: &[ProgramHeader64<Endianness>]) -> Option<u64> {
    let endian = Endianness::Little;
    segments
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD && segment.p_offset(endian) == 0)
        .map(|segment| segment.p_vaddr(endian))
        .min()
}

fn forget_sections(image: &mut [u8]) -> Option<()> {
    let endian = Endianness::Little;
    let (header, _) = object::pod::from_bytes_mut::<FileHeader64<Endianness>>(image).ok()?;
    header.e_shoff = U64::new(endian, 0);
    header.e_shnum = U16::new(endian, 0);
    header.e_shstrndx = U16::new(endian, Default::default());
    Some(())
}

/// The dynamic linker replaces addresses in the dynamic section by where they are loaded; this undoes it.
fn unrelocate_dynamic(image: &mut [u8], segments: &[ProgramHeader64<Endianness>], bias: u64) {
    let endian = Endianness::Little;
    let Some(dynamic) = segments.iter().find(|segment| segment.p_type(endian) == PT_DYNAMIC) else { return };
    let from = dynamic.p_offset(endian) as usize;
    let count = dynamic.p_filesz(endian) as usize / size_of::<Dyn64<Endianness>>();
    let Some(bytes) = image.get_mut(from..) else { return };
    let Ok((entries, _)) = object::pod::slice_from_bytes_mut::<Dyn64<Endianness>>(bytes, count) else {
        return;
    };
    for entry in entries.iter_mut().take_while(|entry| entry.d_tag.get(endian) != DT_NULL) {
        let tag = entry.d_tag.get(endian);
        let value = entry.d_val.get(endian);
        let is_address = [DT_SYMTAB, DT_STRTAB, DT_HASH, DT_GNU_HASH].contains(&tag);
        if is_address && bias != 0 && value >= bias {
            entry.d_val = U64::new(endian, value - bias);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::ProcessId;
    use crate::memory_map::MemoryMap;
    use crate::module::Module;
    use crate::sys;

    #[test]
    fn a_library_copied_from_memory_keeps_tables_and_addresses() {
        let pid = ProcessId(std::process::id());
        let map = MemoryMap::of(pid).expect("our own map");
        let libc =
            map.mappings().iter().find(|mapping| mapping.file_name().starts_with("libc.so")).expect("libc");
        let pieces = map
            .mappings()
            .iter()
            .filter(|part| part.inode == libc.inode && part.readable)
            .map(|part| {
                let bytes =
                    sys::read_memory(pid, part.start, (part.end - part.start) as usize).expect("readable");
                (part.offset, part.start, bytes)
            })
            .collect();
        let image = Module::parse(assemble(pieces).expect("an image").into()).expect("parses");
        let file = Module::parse(std::fs::read(&*libc.path).expect("on disk").into()).expect("parses");
        let (copied, original) =
            (image.eh_frame.as_ref().expect("tables"), file.eh_frame.as_ref().expect("tables"));
        assert_eq!(copied.address, original.address);
        assert_eq!(image.slice(copied)[..4096], file.slice(original)[..4096]);
        assert_eq!(
            image.address_of(original.range.start as u64),
            file.address_of(original.range.start as u64)
        );
        for tag in [DT_SYMTAB, DT_STRTAB] {
            assert_eq!(dynamic_value(&image, tag), dynamic_value(&file, tag), "{tag:?} is as in the file");
        }
    }

    fn dynamic_value(module: &Module, tag: object::elf::DynamicTag) -> u64 {
        let bytes = module.slice(module.dynamic.as_ref().expect("a dynamic section"));
        let count = bytes.len() / size_of::<Dyn64<Endianness>>();
        let (entries, _) = object::pod::slice_from_bytes::<Dyn64<Endianness>>(bytes, count).expect("entries");
        let entry = entries.iter().find(|entry| entry.d_tag.get(Endianness::Little) == tag).expect("the tag");
        entry.d_val.get(Endianness::Little)
    }

    #[test]
    fn memory_that_is_no_module_makes_no_image() {
        assert!(assemble(vec![]).is_none());
        assert!(assemble(vec![(0, 0x1000, vec![0; 4096])]).is_none());
        assert!(assemble(vec![(4096, 0x1000, b"\x7fELF".to_vec())]).is_none());
    }
}
