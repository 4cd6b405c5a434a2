//! PE: functions are found by the table by which Windows unwinds (`.pdata`), and numbered from the begin of the module.
//!
//! Functions that call nothing and save nothing need no entry there: see `leaf`.

use object::pe::{
    IMAGE_DIRECTORY_ENTRY_EXCEPTION, IMAGE_FILE_MACHINE_AMD64, IMAGE_REL_BASED_DIR64,
    IMAGE_REL_BASED_HIGHLOW, IMAGE_SCN_MEM_DISCARDABLE, IMAGE_SCN_MEM_EXECUTE,
};
use object::read::pe::{ImageNtHeaders, PeFile64};
use object::{FileKind, LittleEndian as LE, Object, ObjectSymbol, SymbolKind};

use super::{Detour, Image, ImageError, Section, continuation};
use crate::landing;

/// Bytes of an entry: begin, end and unwind information of a function.
const ENTRY: usize = 12;
/// Flags of unwind information: it has a handler for exceptions, or for unwinding.
const HANDLED: u8 = 1 | 2;
/// Flag of unwind information: it goes on from that of another entry.
const CHAINED: u8 = 4;
/// Ranges of a function that a handler of C may have; more is no such table.
const SCOPES: u64 = 4095;

/// Reads a file.
pub(super) fn read(bytes: &[u8]) -> Result<Image<'_>, ImageError> {
    if FileKind::parse(bytes)? == FileKind::Pe32 {
        return Err(ImageError::OtherProcessor);
    }
    let file = PeFile64::parse(bytes)?;
    if file.nt_headers().file_header().machine.get(LE) != IMAGE_FILE_MACHINE_AMD64 {
        return Err(ImageError::OtherProcessor);
    }
    let mut sections = Vec::new();
    for section in file.section_table().iter() {
        let flags = section.characteristics.get(LE);
        let has = |flag: object::pe::SectionFlags| flags.0 & flag.0 != 0;
        // What can be thrown away describes code: debug information, and what the loader has done by then.
        if !has(IMAGE_SCN_MEM_DISCARDABLE)
            && let Ok(bytes) = section.pe_data(bytes)
            && !bytes.is_empty()
        {
            let address = u64::from(section.virtual_address.get(LE));
            sections.push(Section { address, bytes, code: has(IMAGE_SCN_MEM_EXECUTE) });
        }
    }
    let base = file.relative_address_base();
    let mut image = Image::new(sections, bytes)?;
    image.numbered_tables = true;
    image.lacks_leaves = true;
    image.detour = Detour::NopJump;
    let table = file.data_directory(IMAGE_DIRECTORY_ENTRY_EXCEPTION);
    read_functions(&mut image, table.and_then(|table| table.data(bytes, &file.section_table()).ok()));
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text) {
        let start = symbol.address().wrapping_sub(base);
        image.point_to(start);
        image.leave_out(start, symbol.name().unwrap_or_default());
    }
    image.point_to(file.entry().wrapping_sub(base));
    if let Some(exports) = file.export_table()? {
        exports.addresses().iter().for_each(|address| image.point_to(u64::from(address.get(LE))));
    }
    if !read_relocations(&mut image, &file, base) {
        image.fixed = Some(base);
    }
    image.read_words(base);
    Ok(image)
}

/// The names of the libraries that a PE file is linked with.
pub fn libraries(bytes: &[u8]) -> Result<Vec<String>, ImageError> {
    let file = PeFile64::parse(bytes)?;
    let mut names = Vec::new();
    if let Some(table) = file.import_table()? {
        let mut descriptors = table.descriptors()?;
        while let Some(descriptor) = descriptors.next()? {
            names.push(String::from_utf8_lossy(table.name(descriptor.name.get(LE))?).into_owned());
        }
    }
    Ok(names)
}

/// The functions of the table, and where exceptions continue them.
fn read_functions(image: &mut Image<'_>, table: Option<&[u8]>) {
    for entry in table.unwrap_or_default().chunks_exact(ENTRY) {
        let [Some(start), Some(end), Some(unwind)] = [word(entry, 0), word(entry, 4), word(entry, 8)] else {
            continue;
        };
        if start < end && image.is_code(start) {
            image.functions.insert(start, end);
            if let Some(information) = image.at(unwind) {
                if let Some(&length) = information.get(1) {
                    image.bodies.insert(start, start + u64::from(length));
                }
                let _ = read_unwinding(image, information, start);
            }
        }
    }
    image.separate_functions();
}

/// What belongs to an entry besides how it is unwound: the entry that it is a part of, or a handler and what that is given.
fn read_unwinding(image: &mut Image<'_>, information: &[u8], start: u64) -> Option<()> {
    let flags = information.first()? >> 3;
    let codes = usize::from(*information.get(2)?).next_multiple_of(2) * 2;
    if flags & CHAINED != 0 {
        let whole = word(information, 4 + codes)?;
        if whole != start {
            image.parts.insert(start, whole);
        }
        return None;
    }
    if flags & HANDLED == 0 {
        return None;
    }
    image.point_to(word(information, 4 + codes)?);
    let given = information.get(8 + codes..)?;
    // The table of C++ and Rust with GNU tools begins with the encoding of a base that is left out.
    if given.first() == Some(&0xff) {
        let mut pads = Vec::new();
        landing::pads(given, start, |pad| pads.push(pad));
        pads.into_iter().for_each(|pad| image.point_to(pad));
    }
    let first = word(given, 0)?;
    // Microsoft's for C: a number of ranges, each with the places of its filter and of what comes after it.
    let scopes = if first <= SCOPES { first as usize } else { 0 };
    for scope in given.get(4..)?.chunks_exact(16).take(scopes) {
        for at in [8, 12] {
            image.point_to(word(scope, at)?);
        }
    }
    // Microsoft's for C++: where its description is.
    if scopes == 0 {
        let places = continuation::places(image, first, start);
        places.into_iter().for_each(|place| image.point_to(place));
    }
    Some(())
}

/// Addresses that the loader corrects when it moves the module; false when it cannot move it.
fn read_relocations(image: &mut Image<'_>, file: &PeFile64<'_>, base: u64) -> bool {
    let blocks = file.data_directories().relocation_blocks(file.data(), &file.section_table());
    let Ok(Some(blocks)) = blocks else { return false };
    for relocation in blocks.flatten().flatten() {
        let place = image.at(u64::from(relocation.virtual_address)).unwrap_or_default();
        let target = match relocation.typ {
            IMAGE_REL_BASED_DIR64 => place.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)),
            IMAGE_REL_BASED_HIGHLOW => word(place, 0),
            _ => None,
        };
        if let Some(target) = target {
            image.point_to(target.wrapping_sub(base));
        }
    }
    true
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from(u32::from_le_bytes(*word)))
}
