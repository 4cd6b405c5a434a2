//! Finding the file behind a mapping, also when it has lost its name.
//!
//! A plugin that was rebuilt during a campaign is the usual case: the path exists, but holds other code.
//! The mapped file is then reached through `/proc/PID/exe` or `/proc/PID/map_files`, and if the kernel does
//! not allow that, its loaded parts are copied from memory.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use crate::identity::ProcessId;
use crate::memory_map::{Mapping, MappingSource, MemoryImage};

use super::image;
use super::memory::{read_available, read_memory};
use super::procfs;

/// Marks a path whose file was unlinked.
const DELETED: &str = " (deleted)";
/// Larger files are not read; they are not modules.
const LARGEST_MODULE: u64 = 4 << 30;
/// Larger mappings are not copied when a module is rescued from memory.
const LARGEST_IMAGE: u64 = 256 << 20;

/// Decides for every mapping that belongs to a module how its file can be read.
pub(crate) fn find_sources(pid: Option<ProcessId>, mappings: &mut [Mapping]) {
    let mut found: HashMap<(Arc<str>, u64), MappingSource> = HashMap::new();
    for mapping in mappings.iter().filter(|mapping| mapping.executable) {
        let key = (mapping.path.clone(), mapping.inode);
        if mapping.path.is_empty() || found.contains_key(&key) {
            continue;
        }
        let parts: Vec<_> = mappings.iter().filter(|part| belongs(part, mapping)).collect();
        found.insert(key, source_of(pid, mapping, &parts));
    }
    for mapping in mappings {
        if let Some(source) = found.get(&(mapping.path.clone(), mapping.inode)) {
            mapping.source = source.clone();
        }
    }
}

fn belongs(part: &Mapping, module: &Mapping) -> bool {
    part.inode == module.inode && part.path == module.path
}

fn source_of(pid: Option<ProcessId>, mapping: &Mapping, parts: &[&Mapping]) -> MappingSource {
    if mapping.inode == 0 {
        return match pid {
            Some(pid) if &*mapping.path == "[vdso]" => {
                let length = (mapping.end - mapping.start) as usize;
                read_memory(pid, mapping.start, length).map_or(MappingSource::Lost, image_of)
            }
            _ => MappingSource::None,
        };
    }
    if is_unchanged(pid, mapping, parts) {
        return MappingSource::Path;
    }
    let Some(pid) = pid else { return MappingSource::Lost };
    if let Some(file) = open_by_process(pid, mapping) {
        return MappingSource::Handle(Arc::new(file));
    }
    copy_image(pid, parts).map_or(MappingSource::Lost, image_of)
}

/// Whether the path still names the mapped file. Some file systems show another inode in the map than
/// `stat` does; then the first page, which holds headers and build id, decides.
fn is_unchanged(pid: Option<ProcessId>, mapping: &Mapping, parts: &[&Mapping]) -> bool {
    if mapping.path.ends_with(DELETED) {
        return false;
    }
    let Ok(metadata) = fs::metadata(&*mapping.path) else { return false };
    if metadata.ino() == mapping.inode {
        return true;
    }
    let first = parts.iter().find(|part| part.offset == 0 && part.readable);
    let (Some(pid), Some(first)) = (pid, first) else { return false };
    let mut page = [0; 4096];
    let on_disk = File::open(&*mapping.path).and_then(|file| file.read_exact_at(&mut page, 0));
    on_disk.is_ok() && read_memory(pid, first.start, page.len()).is_ok_and(|mapped| mapped == page)
}

fn open_by_process(pid: ProcessId, mapping: &Mapping) -> Option<File> {
    let task = procfs::living_task(pid);
    let candidates = [
        format!("/proc/{task}/exe"),
        format!("/proc/{task}/map_files/{:x}-{:x}", mapping.start, mapping.end),
    ];
    candidates.iter().find_map(|path| {
        let file = File::open(path).ok()?;
        (file.metadata().ok()?.ino() == mapping.inode).then_some(file)
    })
}

fn image_of(bytes: Vec<u8>) -> MappingSource {
    let digest = crate::signature::digest(&bytes);
    MappingSource::Image(Arc::new(MemoryImage { digest, bytes: bytes.into() }))
}

fn copy_image(pid: ProcessId, parts: &[&Mapping]) -> Option<Vec<u8>> {
    let mut pieces = Vec::new();
    for part in parts.iter().filter(|part| part.readable) {
        let length = part.end - part.start;
        if length > LARGEST_IMAGE {
            return None;
        }
        pieces.push((part.offset, part.start, read_available(pid, part.start, length as usize).ok()?));
    }
    image::assemble(pieces)
}

/// Identity and bytes of a module's file.
pub(crate) fn open_module(mapping: &Mapping) -> io::Result<Arc<[u8]>> {
    let mut file = match &mapping.source {
        MappingSource::Image(image) => return Ok(image.bytes.clone()),
        MappingSource::Path => File::open(&*mapping.path)?,
        MappingSource::Handle(file) => file.try_clone()?,
        MappingSource::None | MappingSource::Lost => {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the file is gone"));
        }
    };
    let length = file.metadata()?.len();
    if length > LARGEST_MODULE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large for a module"));
    }
    // Read, not mapped: a file truncated while mapped would kill this process with SIGBUS.
    file.rewind()?;
    let mut bytes = Vec::new();
    // A file that is larger than the memory that is left costs names, not the campaign.
    bytes.try_reserve_exact(length as usize).map_err(|_| io::ErrorKind::OutOfMemory)?;
    file.take(LARGEST_MODULE).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}
