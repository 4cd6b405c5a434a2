//! Windows modules: where the sections of a PE file are loaded, and its table of functions.
//!
//! Module addresses are those that the file was linked for, image base included; debug information and symbols count
//! the same way.

use std::sync::Arc;

use gimli::BaseAddresses;

use super::{Module, Part, Segment};

const CAN_EXECUTE: u32 = 0x2000_0000;
const CAN_WRITE: u32 = 0x8000_0000;
/// The exception directory's place among the data directories: the table of functions.
const EXCEPTIONS: usize = 3;

/// One section of a PE file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    /// Where it is loaded, counted from the image base.
    pub(crate) relative: u64,
    /// Bytes in memory.
    pub(crate) memory_size: u64,
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// Bytes in the file.
    pub(crate) file_size: u64,
    pub(crate) executable: bool,
    pub(crate) writable: bool,
}

/// What the headers say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Headers {
    pub(crate) image_base: u64,
    pub(crate) sections: Vec<Section>,
    /// Place and size of the table of functions, from the image base.
    functions: Option<(u64, u64)>,
}

/// The table by which a function is found for an address, and its unwind information.
pub(crate) struct FunctionTable {
    pub(crate) part: Part,
    pub(crate) image_base: u64,
}

impl Headers {
    /// Reads the headers of a 64-bit PE file; they are in its first page or two.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Headers> {
        let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        if !bytes.starts_with(b"MZ") {
            return None;
        }
        let header = word(0x3c)? as usize;
        const WITH_64_BITS: u16 = 0x20b;
        let optional = header + 24;
        if bytes.get(header..header + 4)? != b"PE\0\0" || half(optional)? != WITH_64_BITS {
            return None;
        }
        let count = usize::from(half(header + 6)?);
        let table = optional + usize::from(half(header + 20)?);
        let directories = word(optional + 108)? as usize;
        let directory = optional + 112 + EXCEPTIONS * 8;
        let functions = match directories > EXCEPTIONS {
            true => Some((u64::from(word(directory)?), u64::from(word(directory + 4)?))),
            false => None,
        };
        let section = |index: usize| {
            let at = table + index * 40;
            let flags = word(at + 36)?;
            Some(Section {
                relative: u64::from(word(at + 12)?),
                memory_size: u64::from(word(at + 8)?).max(u64::from(word(at + 16)?)),
                offset: u64::from(word(at + 20)?),
                file_size: u64::from(word(at + 16)?),
                executable: flags & CAN_EXECUTE != 0,
                writable: flags & CAN_WRITE != 0,
            })
        };
        Some(Headers {
            image_base: long(optional + 24)?,
            sections: (0..count).map(section).collect::<Option<_>>()?,
            functions: functions.filter(|(place, size)| *place != 0 && *size != 0),
        })
    }
}

impl Module {
    /// Parses a 64-bit PE file.
    pub(super) fn parse_pe(bytes: Arc<[u8]>) -> Option<Module> {
        let headers = Headers::parse(&bytes)?;
        let segments = headers.sections.iter().map(|section| Segment {
            offset: section.offset,
            address: headers.image_base + section.relative,
            file_size: section.file_size,
            executable: section.executable,
        });
        let mut module = Module {
            bytes: bytes.clone(),
            build_id: None,
            eh_frame: None,
            eh_frame_header: None,
            bases: BaseAddresses::default(),
            dynamic: None,
            segments: segments.collect(),
            functions: None,
        };
        if let Some((place, size)) = headers.functions {
            let address = headers.image_base + place;
            let start = module.offset_of(address)?;
            let end = start.checked_add(usize::try_from(size).ok()?)?.min(bytes.len());
            let part = Part { address, range: start..end };
            module.functions = Some(FunctionTable { part, image_base: headers.image_base });
        }
        Some(module)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of two sections: code at 0x1000, and a table of functions at 0x2000.
    pub(crate) fn tiny() -> Vec<u8> {
        let mut bytes = vec![0; 0x600];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, b"MZ");
        put(0x3c, &0x80_u32.to_le_bytes());
        put(0x80, b"PE\0\0");
        put(0x86, &2_u16.to_le_bytes());
        put(0x94, &240_u16.to_le_bytes());
        put(0x98, &0x20b_u16.to_le_bytes());
        put(0x98 + 24, &0x1_4000_0000_u64.to_le_bytes());
        put(0x98 + 108, &16_u32.to_le_bytes());
        put(0x98 + 112 + 24, &0x2000_u32.to_le_bytes());
        put(0x98 + 112 + 28, &12_u32.to_le_bytes());
        let table = 0x98 + 240;
        for (index, (place, offset, flags)) in
            [(0x1000_u32, 0x200_u32, CAN_EXECUTE), (0x2000, 0x400, 0)].into_iter().enumerate()
        {
            let at = table + index * 40;
            put(at + 8, &0x180_u32.to_le_bytes());
            put(at + 12, &place.to_le_bytes());
            put(at + 16, &0x200_u32.to_le_bytes());
            put(at + 20, &offset.to_le_bytes());
            put(at + 36, &flags.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn sections_are_placed_by_base_and_offset() {
        let module = Module::parse(tiny().into()).expect("a PE file");
        assert_eq!(module.address_of(0x210), Some(0x1_4000_1010));
        assert_eq!(module.offset_of(0x1_4000_1010), Some(0x210));
        let table = module.functions.as_ref().expect("a table");
        assert_eq!((table.part.range.clone(), table.image_base), (0x400..0x40c, 0x1_4000_0000));
    }

    #[test]
    fn a_file_that_is_cut_off_or_has_32_bits_is_refused() {
        let bytes = tiny();
        for length in [2, 0x40, 0x90, 0x120] {
            assert!(Headers::parse(&bytes[..length]).is_none(), "{length} bytes");
        }
        let mut narrow = bytes;
        narrow[0x98..0x9a].copy_from_slice(&0x10b_u16.to_le_bytes());
        assert!(Headers::parse(&narrow).is_none());
    }
}
