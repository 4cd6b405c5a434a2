//! The memory map of a process, and the files behind it.
//!
//! The map is written in the form that the rest of the crate reads, a line per section: a section's place in memory and
//! in its file is what ties an address to a module.

use std::fmt::Write;
use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::Arc;

use crate::identity::ProcessId;
use crate::memory_map::{Mapping, MappingSource};
use crate::module::pe::Headers;

use super::process::modules_of;

/// Memory is given to sections in pages of this size.
const PAGE: u64 = 0x1000;
/// Headers are within the first pages of a file.
const HEADER_BYTES: u64 = 0x2000;
/// Larger files are not read; they are not modules.
const LARGEST_MODULE: u64 = 4 << 30;

/// The modules of a process, section by section.
pub(crate) fn memory_map_text(pid: ProcessId) -> io::Result<String> {
    let mut lines = Vec::new();
    for (index, module) in modules_of(pid)?.into_iter().enumerate() {
        let mut head = Vec::new();
        let readable =
            File::open(&module.path).and_then(|file| file.take(HEADER_BYTES).read_to_end(&mut head));
        let headers = readable.ok().and_then(|_| Headers::parse(&head));
        let sections = headers.map(|headers| headers.sections).unwrap_or_default();
        let end_of_module = module.base + module.size;
        let mut line = |start: u64, end: u64, flags: &str, offset: u64| {
            let mut text = String::new();
            // Files have no numbers that could be had as cheaply; the place in the list tells them apart.
            let _ =
                write!(text, "{start:x}-{end:x} {flags}p {offset:08x} 00:00 {} {}", index + 1, module.path);
            lines.push((start, text));
        };
        line(module.base, (module.base + PAGE).min(end_of_module), "r--", 0);
        for section in sections {
            let start = module.base + section.relative;
            let end = (start + section.memory_size.next_multiple_of(PAGE)).min(end_of_module);
            let flags = match (section.executable, section.writable) {
                (true, true) => "rwx",
                (true, false) => "r-x",
                (false, true) => "rw-",
                (false, false) => "r--",
            };
            if start < end {
                line(start, end, flags, section.offset);
            }
        }
    }
    lines.sort_unstable();
    Ok(lines.into_iter().fold(String::new(), |text, (_, line)| text + &line + "\n"))
}

/// A loaded module cannot be replaced on Windows, so its path names it as long as the file is there.
pub(crate) fn find_sources(_pid: Option<ProcessId>, mappings: &mut [Mapping]) {
    for mapping in mappings {
        mapping.source = match fs::exists(&*mapping.path) {
            Ok(true) => MappingSource::Path,
            _ => MappingSource::Lost,
        };
    }
}

/// The bytes of a module's file.
pub(crate) fn open_module(mapping: &Mapping) -> io::Result<Arc<[u8]>> {
    match &mapping.source {
        MappingSource::Image(image) => return Ok(image.bytes.clone()),
        MappingSource::Path => {}
        MappingSource::Handle(_) | MappingSource::None | MappingSource::Lost => {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the file is gone"));
        }
    }
    if fs::metadata(&*mapping.path)?.len() > LARGEST_MODULE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large for a module"));
    }
    Ok(fs::read(&*mapping.path)?.into())
}
