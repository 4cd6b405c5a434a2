//! Which file is mapped where in a process, kept beyond the process's life.
//!
//! A map answers two questions for an address: which mapping holds it, and which place of which file that
//! is. How the file's bytes can still be had is decided when the map is taken ([`MappingSource`]), because
//! a file that was deleted or replaced since it was loaded can only be reached while the process lives.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use crate::identity::ProcessId;
use crate::sys;

/// Where the bytes behind a mapping can be read.
#[derive(Debug, Clone)]
pub enum MappingSource {
    /// Nothing on disk: stack, heap, or a mapping nobody executes.
    None,
    /// The file at the mapping's path is still the one that was mapped.
    Path,
    /// The file has lost its name; this handle still reads it.
    Handle(Arc<File>),
    /// Copied from the process's memory and laid out like the file: the vDSO, or a file that nothing else
    /// reaches.
    Image(Arc<MemoryImage>),
    /// The file is gone and the process could not be asked.
    Lost,
}

/// A module's loaded parts, laid out like its file.
#[derive(Debug)]
pub struct MemoryImage {
    pub(crate) bytes: Arc<[u8]>,
    /// Identifies the contents, since no file does.
    pub(crate) digest: u64,
}

/// One mapped range of addresses.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Whether it can be read.
    pub readable: bool,
    /// Whether it can be written.
    pub writable: bool,
    /// Whether it can be executed.
    pub executable: bool,
    /// Whether what is written to it is seen by others.
    pub shared: bool,
    /// Offset of `start` in the file.
    pub offset: u64,
    /// Device of the file, as the kernel prints it, major and minor.
    pub device: (u32, u32),
    /// Inode of the file; zero if there is none.
    pub inode: u64,
    /// Path of the file or the kernel's name in brackets; empty if anonymous.
    pub path: Arc<str>,
    /// Where the bytes can be read.
    pub source: MappingSource,
}

/// The mappings of one process, ordered by address.
#[derive(Debug, Clone, Default)]
pub struct MemoryMap {
    mappings: Arc<[Mapping]>,
}

/// A memory map that could not be had.
#[derive(Debug, Error)]
pub enum MemoryMapError {
    /// The process has no map to read, most likely because it has ended.
    #[error("cannot read the memory map of process {pid}: {source}")]
    Read {
        /// The process.
        pid: ProcessId,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A line is not a mapping.
    #[error("line {line} of the memory map is not a mapping: `{text}`")]
    Syntax {
        /// Line number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
}

impl MemoryMap {
    /// The map of a living process, with its deleted and replaced files held open.
    pub fn of(pid: ProcessId) -> Result<Self, MemoryMapError> {
        let text = sys::memory_map_text(pid).map_err(|source| MemoryMapError::Read { pid, source })?;
        let mut mappings = parse_mappings(&text)?;
        sys::find_sources(Some(pid), &mut mappings);
        Ok(MemoryMap { mappings: mappings.into() })
    }

    /// A map saved as the text of `/proc/PID/maps`; only files that still exist unchanged can be used.
    pub fn parse(text: &str) -> Result<Self, MemoryMapError> {
        let mut mappings = parse_mappings(text)?;
        sys::find_sources(None, &mut mappings);
        Ok(MemoryMap { mappings: mappings.into() })
    }

    /// The mapping that holds an address.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        self.index_of(address).map(|index| &self.mappings[index])
    }

    pub(crate) fn index_of(&self, address: u64) -> Option<usize> {
        let index = self.mappings.partition_point(|mapping| mapping.end <= address);
        self.mappings.get(index).filter(|mapping| mapping.start <= address).map(|_| index)
    }

    /// The first readable mapping at or above an address.
    #[must_use]
    pub fn readable_from(&self, address: u64) -> Option<&Mapping> {
        let index = self.mappings.partition_point(|mapping| mapping.end <= address);
        self.mappings[index..].iter().find(|mapping| mapping.readable)
    }

    /// Whether an address holds code.
    #[must_use]
    pub fn is_code(&self, address: u64) -> bool {
        self.find(address).is_some_and(|mapping| mapping.executable)
    }

    /// All mappings, ordered by address.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }
}

impl Mapping {
    /// The offset in the file of an address in this mapping.
    #[must_use]
    pub fn file_offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.offset)
    }

    /// The last part of the path.
    #[must_use]
    pub fn file_name(&self) -> &str {
        Path::new(&*self.path).file_name().and_then(|name| name.to_str()).unwrap_or(&self.path)
    }
}

/// Parses the text of `/proc/PID/maps`, sources left open.
pub(crate) fn parse_mappings(text: &str) -> Result<Vec<Mapping>, MemoryMapError> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            parse_mapping(line)
                .ok_or_else(|| MemoryMapError::Syntax { line: index + 1, text: line.to_owned() })
        })
        .collect()
}

fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        rest = rest.trim_start();
        let end = rest.find(' ').unwrap_or(rest.len());
        let (field, tail) = rest.split_at(end);
        rest = tail;
        (!field.is_empty()).then_some(field)
    };
    let (start, end) = field()?.split_once('-')?;
    let flags = field()?.as_bytes();
    let offset = field()?;
    let (major, minor) = field()?.split_once(':')?;
    let inode = field()?;
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        readable: flags.first() == Some(&b'r'),
        writable: flags.get(1) == Some(&b'w'),
        executable: flags.get(2) == Some(&b'x'),
        shared: flags.get(3) == Some(&b's'),
        offset: u64::from_str_radix(offset, 16).ok()?,
        device: (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?),
        inode: inode.parse().ok()?,
        path: rest.trim_start().into(),
        source: MappingSource::None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
55d0a0000000-55d0a0001000 r--p 00000000 fe:01 42                         /opt/a b/plugin.so (deleted)
55d0a0001000-55d0a0003000 r-xp 00001000 fe:01 42                         /opt/a b/plugin.so (deleted)
7ffe4e6da000-7ffe4e6fb000 rw-p 00000000 00:00 0                          [stack]
7ffe4e6fb000-7ffe4e6fc000 ---p 00000000 00:00 0 \n";

    fn map() -> MemoryMap {
        MemoryMap { mappings: parse_mappings(TEXT).expect("well formed").into() }
    }

    #[test]
    fn paths_keep_their_blanks() {
        let map = map();
        let mapping = map.find(0x55d0_a000_1004).expect("mapped");
        assert_eq!(&*mapping.path, "/opt/a b/plugin.so (deleted)");
        assert_eq!(mapping.device, (0xfe, 1));
        assert_eq!(mapping.file_offset(0x55d0_a000_1004), 0x1004);
        assert!(mapping.executable && !mapping.writable);
    }

    #[test]
    fn addresses_between_mappings_belong_to_nobody() {
        let map = map();
        assert!(map.find(0x55d0_a000_3000).is_none());
        assert!(map.find(0).is_none());
        assert!(map.find(u64::MAX).is_none());
        assert!(map.is_code(0x55d0_a000_1000));
        assert!(!map.is_code(0x7ffe_4e6d_a000));
    }

    #[test]
    fn a_guard_page_leads_to_the_readable_mapping_above() {
        let map = map();
        assert_eq!(map.readable_from(0x55d0_a000_4000).map(|m| &*m.path), Some("[stack]"));
        assert!(map.readable_from(0x7ffe_4e6f_b000).is_none());
    }

    #[test]
    fn a_line_that_is_no_mapping_is_named() {
        let error = parse_mappings("nonsense").expect_err("no mapping");
        assert!(error.to_string().contains("line 1"), "{error}");
    }
}
