//! Writing a core of a living process: its threads are stopped, copied, and let go when everything is in the file.
//!
//! The kernel writes cores of processes that die; ours has to be seen while it lives. Tracing and reading need no help from
//! the target, so its heap and locks may be in any state.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use crate::dump::{CoreInfo, CoreOptions, DumpError};
use crate::identity::{ProcessId, ThreadId};
use crate::memory_map::Mapping;

use super::capture::{on_tracing_thread, stop_all};
use super::core_file::choice::{Chosen, Page, mapping_at};
use super::core_file::{self, MappedFile, PAGE, Process, Segment, Thread, linked};
use super::memory::read_available;
use super::procfs;

/// Whether cores can be written here.
pub(crate) const KNOWS_CORES: bool = true;

/// Stack bytes per thread in a small core, from the innermost frame outwards, and from the outer end.
const STACK: u64 = 256 << 10;
const OUTER_PART: u64 = 32 << 10;
/// Words of each stack that are followed to what they point to.
const FOLLOWED: usize = 8 << 10;
/// Bytes below the stack pointer that a leaf function may use.
const RED_ZONE: u64 = 128;
/// Around the thread pointer: the thread's descriptor and its variables.
const DESCRIPTOR: u64 = 4096;
/// Bytes that are copied at once.
const BLOCK: u64 = 1 << 20;
/// Mappings that are larger are reservations of a sanitizer; asking for all of their pages would take seconds.
const LARGEST: u64 = 64 << 30;

/// Writes a core to a new file; with the threads that are in it.
pub(crate) fn write_core(
    pid: ProcessId,
    path: &Path,
    options: &CoreOptions<'_>,
) -> Result<(CoreInfo, Vec<ThreadId>), DumpError> {
    let file = File::create(path).map_err(|source| DumpError::File {
        action: "create",
        path: path.into(),
        source,
    })?;
    let traced = on_tracing_thread(pid, || {
        let began = Instant::now();
        let (stopped, _unstopped) = stop_all(pid, options.stop_timeout, &mut HashMap::new())?;
        let threads = stopped.iter().filter_map(|thread| thread.state()).collect();
        // The threads stand still until the file is written.
        Ok(write(pid, &file, threads, options, began))
    });
    match traced {
        Ok(written) => written.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => DumpError::Gone { pid },
            _ => DumpError::File { action: "write", path: path.into(), source },
        }),
        Err(error) => Err(DumpError::Write { pid, path: path.into(), reason: error.to_string() }),
    }
}

fn write(
    pid: ProcessId,
    file: &File,
    mut threads: Vec<Thread>,
    options: &CoreOptions<'_>,
    began: Instant,
) -> io::Result<(CoreInfo, Vec<ThreadId>)> {
    if threads.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the process has ended"));
    }
    let text = procfs::memory_map_text(pid)?;
    let mappings = crate::memory_map::parse_mappings(&text).map_err(io::Error::other)?;
    let process = describe(pid, options);
    // Where the threads are now; what a signal interrupted is on another stack.
    let stopped_at: Vec<u64> = threads.iter().map(|thread| thread.registers.stack()).collect();
    place_threads(&mut threads, options);
    let pages = |start, end| own_pages(pid, start, end);
    let mut chosen = Chosen::default();
    add_stacks(pid, &mut chosen, &mappings, &threads, &stopped_at, options.limit);
    chosen.add_modules(&mappings, &pages);
    let read = |at, bytes| read_available(pid, at, bytes).ok().filter(|copied| copied.len() == bytes);
    for (start, end) in linked::ranges(&process.auxiliary, &read) {
        chosen.add(&mappings, start, end);
    }
    let small: Vec<Mapping> =
        mappings.iter().filter(|mapping| mapping.end - mapping.start <= LARGEST).cloned().collect();
    let mut left_out = chosen.add_rest(&small, options.size, options.limit, &pages);

    let segments = chosen.segments(&mappings);
    let mut notes = core_file::notes(&process, &threads, &mapped_files(&mappings));
    (options.scrub)(&mut notes);
    let mut at = core_file::memory_offset(segments.len(), notes.len());
    let mut held = Vec::new();
    for segment in segments {
        let copied = match began.elapsed() < options.timeout {
            true => copy(pid, &segment, file, at, options)?,
            false => 0,
        };
        left_out += segment.bytes - copied;
        at += segment.bytes;
        held.push((segment, copied));
    }
    file.write_all_at(&core_file::head(&held, &notes), 0)?;
    // What could not be read at the end is not in the file, but its headers leave room for it.
    file.set_len(at)?;
    let threads: Vec<_> = threads.iter().map(|thread| ThreadId(thread.id)).collect();
    Ok((CoreInfo { bytes: at, threads: threads.len(), left_out }, threads))
}

/// Puts the thread to blame first, and every thread where it was before a handler or a library of ours held it.
fn place_threads(threads: &mut [Thread], options: &CoreOptions<'_>) {
    for thread in threads.iter_mut() {
        if let Some(crash) = options.crash.filter(|crash| crash.thread.0 == thread.id) {
            thread.registers = thread.registers.at_signal(&crash.general);
            thread.signal = crash.signal;
            if let Some(float) = crash.float.as_deref() {
                thread.float = Some(*float);
            }
        }
        for (_, known) in options.known.iter().filter(|(id, _)| id.0 == thread.id) {
            thread.registers = thread.registers.with(known);
        }
    }
    let first = options.crash.map(|crash| crash.thread).or(options.first);
    threads.sort_by_key(|thread| (Some(ThreadId(thread.id)) != first, thread.id));
}

fn add_stacks(
    pid: ProcessId,
    chosen: &mut Chosen,
    mappings: &[Mapping],
    threads: &[Thread],
    stopped_at: &[u64],
    limit: u64,
) {
    let at_signal =
        threads.iter().map(|thread| (thread.registers.stack(), thread.registers.thread_pointer()));
    let places: Vec<(u64, u64)> = at_signal.chain(stopped_at.iter().map(|stack| (*stack, 0))).collect();
    let mut words: Vec<u64> = threads.iter().flat_map(|thread| thread.registers.0).collect();
    for (stack, thread_pointer) in places {
        if chosen.bytes() >= limit {
            return;
        }
        // An overflown stack's pointer is in the guard page; what can be read begins above it.
        let range = mappings.iter().find(|range| range.end > stack && range.readable && range.writable);
        let Some(range) = range else { continue };
        let start = stack.saturating_sub(RED_ZONE).max(range.start);
        let inner_end = range.end.min(start.saturating_add(STACK));
        chosen.add(mappings, start, inner_end);
        chosen.add(mappings, inner_end.max(range.end.saturating_sub(OUTER_PART)), range.end);
        if mapping_at(mappings, thread_pointer).is_some() {
            let from = thread_pointer.saturating_sub(DESCRIPTOR);
            chosen.add(mappings, from, thread_pointer.saturating_add(DESCRIPTOR));
        }
        let most = FOLLOWED.min((inner_end - start) as usize / 8) * 8;
        let copied = read_available(pid, start.next_multiple_of(8), most).unwrap_or_default();
        words.extend(
            copied.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?))),
        );
    }
    chosen.add_pointed(mappings, words.into_iter());
}

/// Copies a segment into the file; returns how much of it could be read.
fn copy(
    pid: ProcessId,
    segment: &Segment,
    file: &File,
    at: u64,
    options: &CoreOptions<'_>,
) -> io::Result<u64> {
    let mut done = 0;
    while done < segment.bytes {
        let wanted = BLOCK.min(segment.bytes - done);
        let start = segment.start + done;
        let Ok(mut bytes) = read_available(pid, start, wanted as usize) else { break };
        let copied = bytes.len();
        if copied == 0 {
            break;
        }
        // Something secret may begin before this block or end behind it, also where neither is kept.
        let before = read_before(pid, start, options.secret_bytes);
        let behind = read_available(pid, start + copied as u64, options.secret_bytes).unwrap_or_default();
        let offset = before.len();
        bytes.splice(..0, before);
        bytes.extend(behind);
        (options.scrub)(&mut bytes);
        file.write_all_at(&bytes[offset..offset + copied], at + done)?;
        done += copied as u64;
        if (copied as u64) < wanted {
            break;
        }
    }
    Ok(done)
}

/// What stands just before a page, as far as it can be read: not more than one page when those before cannot be.
fn read_before(pid: ProcessId, address: u64, most: usize) -> Vec<u8> {
    let read = |most: usize| {
        let bytes = read_available(pid, address.saturating_sub(most as u64), most).ok()?;
        (bytes.len() == most).then_some(bytes)
    };
    read(most).or_else(|| read(most.min(PAGE as usize))).unwrap_or_default()
}

/// Which pages of a range the process has written to; none when the kernel does not tell.
fn own_pages(pid: ProcessId, start: u64, end: u64) -> Vec<Page> {
    /// Present, or swapped out.
    const THERE: u64 = 3 << 62;
    /// A page of a file, or of memory that is shared.
    const FILE: u64 = 1 << 61;
    let read = || {
        let map = File::open(format!("/proc/{}/pagemap", procfs::living_task(pid)))?;
        let mut bytes = vec![0; ((end - start) / PAGE) as usize * 8];
        map.read_exact_at(&mut bytes, start / PAGE * 8)?;
        io::Result::Ok(bytes)
    };
    let is_own = |entry: u64| entry & THERE != 0 && entry & FILE == 0;
    let entries = read().unwrap_or_default();
    let entries =
        entries.chunks_exact(8).filter_map(|entry| Some(u64::from_le_bytes(entry.try_into().ok()?)));
    entries.map(|entry| if is_own(entry) { Page::Own } else { Page::Clean }).collect()
}

fn mapped_files(mappings: &[Mapping]) -> Vec<MappedFile> {
    let files = mappings.iter().filter(|mapping| mapping.inode != 0 && mapping.path.starts_with('/'));
    files
        .map(|mapping| MappedFile {
            start: mapping.start,
            end: mapping.end,
            offset: mapping.offset,
            path: mapping.path.as_bytes().to_vec(),
        })
        .collect()
}

fn describe(pid: ProcessId, options: &CoreOptions<'_>) -> Process {
    let task = format!("/proc/{}", procfs::living_task(pid));
    let of = |file: &str| fs::read(format!("{task}/{file}")).unwrap_or_default();
    let mut name = of("comm");
    name.retain(|byte| *byte != b'\n');
    let status = String::from_utf8_lossy(&of("status")).into_owned();
    let number = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    let (group, session) = procfs::group_and_session(pid).unwrap_or_default();
    Process {
        id: pid.0,
        parent: number("PPid:"),
        group,
        session,
        user: number("Uid:"),
        user_group: number("Gid:"),
        name,
        arguments: of("cmdline"),
        auxiliary: of("auxv"),
        signal: options.crash.map(|crash| (crash.signal, crash.code, crash.fault_address.unwrap_or(0))),
    }
}
