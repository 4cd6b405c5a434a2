//! ELF: functions are found by unwind tables and symbols.

use gimli::UnwindSection;
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind};

use super::{Image, ImageError, Section};
use crate::landing;

/// Reads a file.
pub(super) fn read(bytes: &[u8]) -> Result<Image<'_>, ImageError> {
    let file = object::File::parse(bytes)?;
    if file.architecture() != object::Architecture::X86_64 {
        return Err(ImageError::OtherProcessor);
    }
    let mut sections = Vec::new();
    for section in file.sections().filter(|section| section.address() > 0 && section.size() > 0) {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        let code = sh_flags.0 & object::elf::SHF_EXECINSTR.0 != 0;
        let content = section.data().unwrap_or_default();
        if !content.is_empty() {
            sections.push(Section { address: section.address(), bytes: content, code });
        }
    }
    let mut image = Image::new(sections, bytes)?;
    image.fixed = (file.kind() == object::ObjectKind::Executable).then_some(0);
    image.build_id = file.build_id().ok().flatten().map(<[u8]>::to_vec);
    read_unwind_tables(&mut image, &file);
    read_symbols(&mut image, &file);
    for (_, relocation) in file.dynamic_relocations().into_iter().flatten() {
        image.point_to(relocation.addend() as u64);
    }
    image.read_words(0);
    Ok(image)
}

fn read_unwind_tables(image: &mut Image<'_>, file: &object::File<'_>) {
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
        if length == 0 || !image.is_code(start) {
            continue;
        }
        image.functions.insert(start, start.saturating_add(length));
        if let Some(gimli::Pointer::Direct(table)) = function.lsda()
            && let Some(bytes) = image.at(table)
        {
            landing::pads(bytes, start, |pad| image.pointed_to.push(pad));
        }
    }
}

fn read_symbols(image: &mut Image<'_>, file: &object::File<'_>) {
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let (start, size) = (symbol.address(), symbol.size());
        if symbol.kind() != SymbolKind::Text || !image.is_code(start) {
            continue;
        }
        image.pointed_to.push(start);
        let before = image.functions.range(..=start).next_back().map_or(0, |(_, &end)| end);
        if size > 0 && before <= start {
            image.functions.insert(start, start.saturating_add(size));
        }
        image.leave_out(start, symbol.name().unwrap_or_default());
    }
    image.separate_functions();
}
