//! A minidump and a core for a debugger, checked before they are called so.
//!
//! Dump writers succeed silently with no threads when another tracer holds the target. So the file is read
//! back: every thread that lived before and after must be in it, and the exception must be the one that
//! happened. Until then it has another name; a file with the final name is a good dump.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::minidump::{Minidump, MinidumpException, MinidumpThreadList};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::crash::CrashContext;
use crate::identity::{ProcessId, ThreadId};
use crate::registers::Registers;
use crate::snapshot::Tracer;
use crate::sys;

/// How much a dump may take.
#[derive(Debug, Clone, Copy)]
pub struct DumpLimits {
    /// How long writing may take; then the writer is killed and the target goes on.
    pub timeout: Duration,
    /// Size beyond which stacks of all but the first threads are cut short.
    pub size: Option<u64>,
}

impl Default for DumpLimits {
    fn default() -> Self {
        // A dump of 17 threads takes 2 to 4 ms; seconds mean that a thread cannot be stopped.
        DumpLimits { timeout: Duration::from_secs(5), size: None }
    }
}

/// How much memory a dump holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DumpSize {
    /// There is none.
    None,
    /// Stacks, what they point to nearby, and the variables of modules.
    Mini,
    /// That, and all memory that the process wrote to and shares with nobody.
    Heap,
    /// All that can be read.
    Full,
}

impl DumpSize {
    /// Every size.
    pub const ALL: [Self; 4] = [Self::None, Self::Mini, Self::Heap, Self::Full];

    /// Its name in TOML.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Mini => "mini",
            Self::Heap => "heap",
            Self::Full => "full",
        }
    }
}

/// Whether [`write_core`] can do anything on this system.
pub const KNOWS_CORES: bool = sys::KNOWS_CORES;

/// What an ELF core holds.
pub struct CoreOptions<'a> {
    /// How much memory.
    pub size: DumpSize,
    /// Bytes of memory beyond which nothing more is added; stacks come first.
    pub limit: u64,
    /// How long copying memory may take; what is missing then is left out.
    pub timeout: Duration,
    /// How long threads may take to stop.
    pub stop_timeout: Duration,
    /// The thread that comes first, when no signal says it.
    pub first: Option<ThreadId>,
    /// The thread that a signal hit, with the registers that its handler was given.
    pub crash: Option<&'a CrashContext>,
    /// Registers that are known better than the kernel knows them.
    pub known: Vec<(ThreadId, Registers)>,
    /// Overwrites what must not be written down.
    pub scrub: &'a (dyn Fn(&mut [u8]) + Sync),
    /// The longest that `scrub` looks for: so much before and behind a piece of memory is shown to it.
    pub secret_bytes: usize,
}

impl Default for CoreOptions<'_> {
    fn default() -> Self {
        CoreOptions {
            size: DumpSize::Mini,
            limit: 1 << 30,
            // The process stands still meanwhile; what was not copied by then is a gap that is told.
            timeout: Duration::from_secs(30),
            stop_timeout: Duration::from_millis(500),
            first: None,
            crash: None,
            known: Vec::new(),
            scrub: &|_| (),
            secret_bytes: 0,
        }
    }
}

impl std::fmt::Debug for CoreOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoreOptions")
            .field("size", &self.size)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// A core that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreInfo {
    /// Its size.
    pub bytes: u64,
    /// Threads in it.
    pub threads: usize,
    /// Bytes of memory that belong to a core of this size and are not in it: the limit was reached, time was over, or they
    /// could not be read.
    pub left_out: u64,
}

/// Writes an ELF core of a living process, which gdb and lldb open. The process stands still meanwhile; after
/// [`capture_and_hold`](crate::capture_and_hold) the core shows the moment of the snapshot.
///
/// Call it before [`minidump()`], whose writer lets the process go on.
pub fn write_core(pid: ProcessId, path: &Path, options: &CoreOptions<'_>) -> Result<CoreInfo, DumpError> {
    let before = sys::threads_of(pid);
    let partial = Partial::beside(path);
    let (info, written) = sys::write_core(pid, &partial.0, options)?;
    let after: HashSet<_> = sys::threads_of(pid).into_iter().collect();
    let living = before.into_iter().filter(|thread| after.contains(thread));
    let missing = living.filter(|thread| !written.contains(thread)).count();
    if missing > 0 {
        let tracer = after.into_iter().find_map(|thread| sys::tracer_of(pid, thread));
        return Err(DumpError::Incomplete { pid, found: written.len(), missing, tracer });
    }
    fs::rename(&partial.0, path).map_err(|source| DumpError::File {
        action: "rename",
        path: path.into(),
        source,
    })?;
    Ok(info)
}

/// A dump that was written and checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpInfo {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Threads in it.
    pub threads: usize,
    /// The thread that crashed and the address a debugger will show for it.
    pub crash: Option<(ThreadId, u64)>,
    /// How long it took, in microseconds.
    pub took_us: u64,
}

/// Why there is no dump.
#[derive(Debug, Error)]
pub enum DumpError {
    /// The target ended before or during the dump.
    #[error("process {pid} ended before it could be dumped")]
    Gone {
        /// The target.
        pid: ProcessId,
    },
    /// The file could not be created, read back or renamed.
    #[error("cannot {action} dump {}: {source}", .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The writer gave up.
    #[error("cannot write dump {} of process {pid}: {reason}", .path.display())]
    Write {
        /// The target.
        pid: ProcessId,
        /// The file.
        path: PathBuf,
        /// What the writer said.
        reason: String,
    },
    /// The writer did not finish in time; it was killed and the target goes on.
    #[error("dumping process {pid} took longer than {timeout:?}: a thread could not be stopped")]
    Timeout {
        /// The target.
        pid: ProcessId,
        /// The time it had.
        timeout: Duration,
    },
    /// Threads are missing.
    #[error(
        "the dump of process {pid} has {found} threads, {missing} living threads are missing: {}",
        tracer_hint(.tracer)
    )]
    Incomplete {
        /// The target.
        pid: ProcessId,
        /// Threads in the dump.
        found: usize,
        /// Threads that should be.
        missing: usize,
        /// Who traces the target.
        tracer: Option<Tracer>,
    },
    /// The file is no dump, or not of this crash.
    #[error("the dump of process {pid} does not read back: {reason}")]
    Damaged {
        /// The target.
        pid: ProcessId,
        /// What is wrong.
        reason: String,
    },
}

fn tracer_hint(tracer: &Option<Tracer>) -> String {
    match tracer {
        Some(tracer) => format!("the process is traced by {tracer}, let it detach first"),
        None => "no tracer is attached now, one may have been".into(),
    }
}

/// Writes a minidump of a living process and reads it back.
///
/// The writer runs in a forked child, so that it can be killed if a thread of the target cannot be stopped.
/// Where `kernel.yama.ptrace_scope` is 1, the target must have named this process with
/// `prctl(PR_SET_PTRACER)`: a child of the tracer it named may trace it too.
pub fn minidump(
    pid: ProcessId,
    path: &Path,
    crash: Option<&CrashContext>,
    limits: &DumpLimits,
) -> Result<DumpInfo, DumpError> {
    let began = Instant::now();
    let before = sys::threads_of(pid);
    if before.is_empty() {
        return Err(DumpError::Gone { pid });
    }
    let partial = Partial::beside(path);
    sys::write_dump(pid, &partial.0, crash, limits)?;
    let after: HashSet<_> = sys::threads_of(pid).into_iter().collect();
    if after.is_empty() {
        return Err(DumpError::Gone { pid });
    }
    let expected: Vec<_> = before.into_iter().filter(|thread| after.contains(thread)).collect();

    let bytes = fs::read(&partial.0).map_err(|source| DumpError::File {
        action: "read back",
        path: path.into(),
        source,
    })?;
    let size = bytes.len() as u64;
    let threads = check(pid, bytes, &expected, crash)?;
    fs::rename(&partial.0, path).map_err(|source| DumpError::File {
        action: "rename",
        path: path.into(),
        source,
    })?;
    Ok(DumpInfo {
        path: path.into(),
        bytes: size,
        threads,
        crash: crash.map(|crash| (crash.thread, crash.crash_address())),
        took_us: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
    })
}

/// A file that is not a dump yet, and is removed if it never becomes one.
struct Partial(PathBuf);

impl Partial {
    fn beside(path: &Path) -> Partial {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        Partial(name.into())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After the rename there is nothing under this name, and that is fine.
        let _ = fs::remove_file(&self.0);
    }
}

/// Compares a dump with what it must hold; returns its number of threads.
fn check(
    pid: ProcessId,
    bytes: Vec<u8>,
    expected: &[ThreadId],
    crash: Option<&CrashContext>,
) -> Result<usize, DumpError> {
    let damaged = |reason: String| DumpError::Damaged { pid, reason };
    let dump = Minidump::read(bytes).map_err(|error| damaged(error.to_string()))?;
    let list = dump
        .get_stream::<MinidumpThreadList<'_>>()
        .map_err(|error| damaged(format!("thread list: {error}")))?;
    let found: HashSet<_> = list.threads.iter().map(|thread| ThreadId(thread.raw.thread_id)).collect();
    let missing: Vec<_> = expected.iter().filter(|thread| !found.contains(thread)).collect();
    if found.is_empty() || !missing.is_empty() {
        let tracer = sys::threads_of(pid).into_iter().find_map(|thread| sys::tracer_of(pid, thread));
        return Err(DumpError::Incomplete { pid, found: found.len(), missing: missing.len(), tracer });
    }
    if let Some(crash) = crash {
        let exception = dump
            .get_stream::<MinidumpException<'_>>()
            .map_err(|error| damaged(format!("exception: {error}")))?;
        let record = &exception.raw.exception_record;
        let written = (exception.raw.thread_id, record.exception_code, record.exception_address);
        let meant = (crash.thread.0, crash.signal as u32, crash.crash_address());
        if written != meant {
            return Err(damaged(format!("its exception is {written:x?} instead of {meant:x?}")));
        }
    }
    Ok(found.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_dump_is_refused() {
        let error = check(ProcessId(1), b"MDMP but not really".to_vec(), &[], None).expect_err("no dump");
        assert!(matches!(error, DumpError::Damaged { .. }), "{error}");
    }

    #[test]
    fn a_partial_file_goes_away() {
        let directory = tempfile::tempdir().expect("a directory");
        let partial = Partial::beside(&directory.path().join("dump.dmp"));
        fs::write(&partial.0, b"half").expect("writable");
        drop(partial);
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 0);
    }

    #[test]
    fn a_process_that_never_was_cannot_be_dumped() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("dump.dmp");
        let error =
            minidump(ProcessId(0x3fff_fffe), &path, None, &DumpLimits::default()).expect_err("nobody");
        assert!(matches!(error, DumpError::Gone { .. }), "{error}");
    }
}
