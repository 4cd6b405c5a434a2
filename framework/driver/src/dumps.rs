//! Which dumps of a failing process are written, how large, and what is said when there is none.
//!
//! The core comes first: the writer of minidumps lets the process go on when it is done, and both are to show one moment.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use waylay_evidence::{
    CoreOptions, CrashContext, DumpLimits, DumpSize, ProcessId, Registers, ThreadId, minidump, write_core,
};

use crate::config::DumpFormat;
use crate::secrets;
use crate::store::{CORE_FILE, Dumped};

/// Bytes of all cores of a campaign; further ones are not written.
pub const CORES_TOGETHER: u64 = 16 << 30;

/// What is wanted of dumps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpPlan {
    /// In which formats.
    pub formats: Vec<DumpFormat>,
    /// How much memory.
    pub size: DumpSize,
    /// Most bytes of memory in one core.
    pub limit: u64,
}

impl Default for DumpPlan {
    fn default() -> DumpPlan {
        DumpPlan { formats: vec![DumpFormat::Minidump], size: DumpSize::Mini, limit: 1 << 30 }
    }
}

/// The process that is dumped.
#[derive(Debug, Default)]
pub struct Subject<'a> {
    /// Its number.
    pub pid: u32,
    /// What a signal handler was given.
    pub crash: Option<&'a CrashContext>,
    /// The thread to blame, if there was no signal.
    pub first: Option<ThreadId>,
    /// Registers that are known better than the kernel knows them.
    pub known: Vec<(ThreadId, Registers)>,
}

/// Writes dumps, and counts what they take; copies count together.
#[derive(Clone, Debug, Default)]
pub struct Dumper {
    /// What is wanted.
    pub plan: DumpPlan,
    used: Arc<AtomicU64>,
}

impl Dumper {
    /// Nothing was written yet.
    pub fn new(plan: DumpPlan) -> Dumper {
        Dumper { plan, used: Arc::default() }
    }

    /// Writes what is wanted: the minidump to `path`, the core beside it.
    pub fn write(&self, subject: &Subject<'_>, path: &Path) -> Result<Dumped, String> {
        let mut dumped = Dumped::default();
        if self.plan.size == DumpSize::None {
            return Ok(dumped);
        }
        let wants = |format| self.plan.formats.contains(&format);
        if wants(DumpFormat::Core) {
            match self.core(subject, &path.with_file_name(CORE_FILE)) {
                Ok((threads, gap)) => {
                    dumped.threads = Some(threads);
                    dumped.gaps.extend(gap);
                }
                Err(reason) if !wants(DumpFormat::Minidump) => return Err(reason),
                Err(reason) => dumped.gaps.push(format!("no core: {reason}")),
            }
        }
        if wants(DumpFormat::Minidump) {
            let written = minidump(ProcessId(subject.pid), path, subject.crash, &DumpLimits::default());
            match written {
                Ok(info) => dumped.threads = Some(info.threads),
                Err(error) if dumped.threads.is_some() => dumped.gaps.push(format!("no minidump: {error}")),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(dumped)
    }

    /// Writes a core; with its number of threads and what it lacks.
    fn core(&self, subject: &Subject<'_>, path: &Path) -> Result<(usize, Option<String>), String> {
        const MEBIBYTE: u64 = 1 << 20;
        if self.used.load(Ordering::Relaxed) >= CORES_TOGETHER {
            return Err(format!("the cores of this campaign have {} GiB already", CORES_TOGETHER >> 30));
        }
        crate::store::remove_link(path);
        let options = CoreOptions {
            size: self.plan.size,
            limit: self.plan.limit,
            first: subject.first,
            crash: subject.crash,
            known: subject.known.clone(),
            scrub: &secrets::clean,
            secret_bytes: secrets::longest(),
            ..CoreOptions::default()
        };
        let info = write_core(ProcessId(subject.pid), path, &options).map_err(|error| error.to_string())?;
        self.used.fetch_add(info.bytes, Ordering::Relaxed);
        let missing = info.left_out.div_ceil(MEBIBYTE);
        let gap = (info.left_out > 0).then(|| format!("the core lacks {missing} MiB of memory (dump-limit)"));
        Ok((info.threads, gap))
    }
}
