//! The log: what was done to which thread and when, as lines of text.
//!
//! ```text
//! waylay-randomizer log 1
//! seed 0x0000000000005eed
//! pid 4711
//! period { uniform = { min = "0s", max = "2ms" } }
//! suspend { uniform = { min = "100us", max = "2ms" } }
//! count { uniform = { min = 1, max = 1 } }
//! began 0
//!
//! 31250 thread 3 4714 worker-2
//! 1093700 suspend 3
//! 2210034 resume 3
//! ```
//!
//! The header ends with an empty line. Times are nanoseconds since the run began. `thread` introduces a thread: ordinal,
//! id, name. `suspend` is the moment of the decision, the same for all threads of one window; `resume` ends it, and so
//! do `gone` (the thread ended), `refused` (somebody else traces it) and `unstoppable` (it did not stop in time).
//!
//! The log never grows beyond its limit: when half of it is full, the file becomes `NAME.1` and a new one is begun.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use waylay_dist::Seed;

use crate::identity::{Ordinal, ProcessId, ThreadId};
use crate::settings::Settings;

pub(crate) const FIRST_LINE: &str = "waylay-randomizer log 1";
/// A randomizer that is killed loses at most this much of its log.
const FLUSH: Duration = Duration::from_secs(1);

/// What happened to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Suspend,
    Resume,
    Gone,
    Refused,
    Unstoppable,
}

impl Action {
    pub(crate) const ALL: [Action; 5] =
        [Action::Suspend, Action::Resume, Action::Gone, Action::Refused, Action::Unstoppable];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Action::Suspend => "suspend",
            Action::Resume => "resume",
            Action::Gone => "gone",
            Action::Refused => "refused",
            Action::Unstoppable => "unstoppable",
        }
    }
}

/// A log being written. An error is kept and told at the end: a full disk is no reason to stop disturbing.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    header: String,
    out: BufWriter<File>,
    written: u64,
    limit: u64,
    flushed: Instant,
    known: Vec<(Ordinal, ThreadId, String)>,
    error: Option<io::Error>,
}

impl Log {
    /// Begins a log; an old one of that name is overwritten. `limit` is the most bytes that both files take together.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(
        path: &Path,
        seed: Seed,
        pid: ProcessId,
        settings: &Settings,
        limit: u64,
    ) -> io::Result<Log> {
        let header = format!(
            "{FIRST_LINE}\nseed {seed}\npid {pid}\nperiod {}\nsuspend {}\ncount {}\n",
            settings.period.spec(),
            settings.suspend.spec(),
            settings.count.spec(),
        );
        if let Err(error) = fs::remove_file(older_part(path))
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut log = Log {
            path: path.to_owned(),
            out: BufWriter::new(File::create(path)?),
            header,
            written: 0,
            limit,
            flushed: Instant::now(),
            known: Vec::new(),
            error: None,
        };
        log.begin(Duration::ZERO)?;
        Ok(log)
    }

    fn begin(&mut self, at: Duration) -> io::Result<()> {
        let mut text = format!("{}began {}\n\n", self.header, at.as_nanos());
        for (ordinal, thread, name) in &self.known {
            text.push_str(&introduction(at, *ordinal, *thread, name));
        }
        self.written = text.len() as u64;
        self.out.write_all(text.as_bytes())
    }

    fn line(&mut self, at: Duration, line: &str) {
        if self.error.is_some() {
            return;
        }
        self.written += line.len() as u64;
        let mut result = self.out.write_all(line.as_bytes());
        if result.is_ok() && self.written > self.limit / 2 {
            result = self.rotate(at);
        }
        self.error = result.err();
    }

    fn rotate(&mut self, at: Duration) -> io::Result<()> {
        self.out.flush()?;
        fs::rename(&self.path, older_part(&self.path))?;
        self.out = BufWriter::new(File::create(&self.path)?);
        self.begin(at)
    }

    pub(crate) fn joined(&mut self, at: Duration, ordinal: Ordinal, thread: ThreadId, name: &str) {
        let name = name.replace(['\n', '\r'], " ");
        self.line(at, &introduction(at, ordinal, thread, &name));
        self.known.push((ordinal, thread, name));
    }

    pub(crate) fn left(&mut self, ordinal: Ordinal) {
        self.known.retain(|(known, _, _)| *known != ordinal);
    }

    pub(crate) fn action(&mut self, at: Duration, action: Action, ordinal: Ordinal) {
        self.line(at, &format!("{} {} {ordinal}\n", at.as_nanos(), action.word()));
    }

    /// Writes what was collected, if the last time is long enough ago.
    pub(crate) fn tend(&mut self, now: Instant) {
        if now.saturating_duration_since(self.flushed) >= FLUSH {
            self.flushed = now;
            self.flush();
        }
    }

    /// Writes what was collected.
    pub(crate) fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.out.flush().err();
        }
    }

    /// Ends the log.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

/// Where the older half of a log is.
pub(crate) fn older_part(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

fn introduction(at: Duration, ordinal: Ordinal, thread: ThreadId, name: &str) -> String {
    format!("{} thread {ordinal} {thread} {name}\n", at.as_nanos())
}
