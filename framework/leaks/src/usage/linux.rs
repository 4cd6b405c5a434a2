//! Linux: `/proc/<pid>`. Only the cheap files: `statm` and the folders `fd` and `task`, never `smaps`.

use super::{DESCRIPTORS_NAMED, Descriptor, ThreadId, UsageError};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

pub(super) fn resident(pid: u32) -> Result<u64, UsageError> {
    let text =
        fs::read_to_string(file(pid, "statm")).map_err(|source| refused(pid, "memory size", source))?;
    let pages: Option<u64> = text.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    match pages {
        Some(pages) => Ok(pages * page_size()),
        None => {
            let source = io::Error::new(io::ErrorKind::InvalidData, format!("statm says {text:?}"));
            Err(UsageError::Unreadable { pid, what: "memory size", source })
        }
    }
}

pub(super) fn descriptor_count(pid: u32) -> Result<u64, UsageError> {
    Ok(numbers(pid, "fd", "open descriptors")?.len() as u64)
}

pub(super) fn descriptors(pid: u32) -> Result<(u64, BTreeMap<Descriptor, String>), UsageError> {
    let mut numbers = numbers(pid, "fd", "open descriptors")?;
    let count = numbers.len() as u64;
    numbers.truncate(DESCRIPTORS_NAMED);
    let folder = file(pid, "fd");
    let named = numbers.into_iter().filter_map(|number| {
        let target = fs::read_link(folder.join(number.to_string())).ok()?;
        Some((Descriptor(number), target.to_string_lossy().into_owned()))
    });
    Ok((count, named.collect()))
}

pub(super) fn thread_count(pid: u32) -> Result<u64, UsageError> {
    Ok(numbers(pid, "task", "threads")?.len() as u64)
}

pub(super) fn threads(pid: u32) -> Result<BTreeMap<ThreadId, String>, UsageError> {
    let folder = file(pid, "task");
    let named = numbers(pid, "task", "threads")?.into_iter().filter_map(|number| {
        let name = fs::read_to_string(folder.join(number.to_string()).join("comm")).ok()?;
        Some((ThreadId(number), name.trim_end().to_owned()))
    });
    Ok(named.collect())
}

/// The entries of a folder of numbers, sorted. An entry that vanishes while the folder is read is no
/// error; reading our own `fd` folder does not count the descriptor that reads it.
fn numbers(pid: u32, folder: &str, what: &'static str) -> Result<Vec<u32>, UsageError> {
    let path = file(pid, folder);
    let entries = fs::read_dir(&path).map_err(|source| refused(pid, what, source))?;
    let own = pid == std::process::id() && folder == "fd";
    let mut numbers = Vec::new();
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(source) => return Err(refused(pid, what, source)),
        };
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if own && fs::read_link(entry.path()).is_ok_and(|target| target == path) {
            continue;
        }
        numbers.push(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn file(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

fn refused(pid: u32, what: &'static str, source: io::Error) -> UsageError {
    let gone = source.kind() == io::ErrorKind::NotFound || source.raw_os_error() == Some(libc::ESRCH);
    if gone { UsageError::Gone { pid } } else { UsageError::Unreadable { pid, what, source } }
}

fn page_size() -> u64 {
    // SAFETY: asks for a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}
