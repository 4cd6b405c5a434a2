//! What a run did, for people and for programs.

use std::fmt;

use serde::{Deserialize, Serialize};
use waylay_dist::Seed;

use crate::identity::ProcessId;
use crate::settings::RawSettings;
use crate::statistics::{EndedReport, Progress, ThreadReport};

/// Changes with any change of [`Report`].
pub const REPORT_VERSION: u32 = 1;

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The target ended.
    TargetEnded,
    /// We were told to stop.
    Stopped,
    /// The time is over.
    DurationOver,
    /// The recording is over.
    RecordingOver,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`REPORT_VERSION`].
    pub version: u32,
    /// The target.
    pub pid: ProcessId,
    /// The seed of all choices; of a replay, that of the log.
    pub seed: Seed,
    /// Whether a log was replayed. Replay is statistical.
    pub replayed: bool,
    /// The settings.
    pub settings: RawSettings,
    /// Why it ended.
    pub ending: Ending,
    /// The counts and times.
    #[serde(flatten)]
    pub progress: Progress,
    /// The threads that were there in the end.
    pub living: Vec<ThreadReport>,
    /// Those that ended before, by name.
    pub ended: Vec<EndedReport>,
    /// Why the log is not complete.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub log_error: Option<String>,
    /// How the program that we started ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command: Option<CommandEnd>,
}

/// How a program that we started ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandEnd {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Report {
    /// Whether any thread was suspended: a run without did not test anything.
    pub fn did_anything(&self) -> bool {
        self.progress.counts.suspensions > 0
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ending::TargetEnded => "the target ended",
            Ending::Stopped => "stopped",
            Ending::DurationOver => "the time is over",
            Ending::RecordingOver => "the recording is over",
        })
    }
}

/// One line: how it is going.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed_s as u64;
        write!(
            f,
            "{:02}:{:02}:{:02}  {:.0} suspensions/s, {} in all  {} threads, {} never suspended  \
             stopped after {:.0} us (p99 {:.0})  held {:.0} us (p99 {:.0})",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            self.suspensions_per_s,
            self.counts.suspensions,
            self.threads,
            self.never_suspended,
            self.stop.p50_us,
            self.stop.p99_us,
            self.hold.p50_us,
            self.hold.p99_us,
        )?;
        if let Some(tracer) = &self.refused_for {
            write!(f, "  {} times refused: traced by {tracer}", self.counts.refused)?;
        } else if self.counts.refused > 0 {
            write!(f, "  {} times refused: not permitted", self.counts.refused)?;
        }
        Ok(())
    }
}

/// A few lines: what was done.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.progress)?;
        let kind = if self.replayed { ", replayed statistically" } else { "" };
        writeln!(f, "process {}, seed {}{kind}; {}", self.pid, self.seed, self.ending)?;
        let mut busiest: Vec<_> = self.living.iter().filter(|thread| thread.chosen_from).collect();
        busiest.sort_by_key(|thread| std::cmp::Reverse(thread.suspensions));
        for thread in busiest.iter().take(8) {
            writeln!(
                f,
                "  {:<16} {:>8}  suspended {} times, {:.3} s",
                thread.name, thread.thread, thread.suspensions, thread.suspended_s
            )?;
        }
        if busiest.len() > 8 {
            writeln!(f, "  and {} more", busiest.len() - 8)?;
        }
        for ended in self.ended.iter().filter(|ended| ended.suspensions > 0).take(8) {
            writeln!(
                f,
                "  {:<16} {:>8}  suspended {} times, {:.3} s",
                ended.name,
                format!("{} ended", ended.threads),
                ended.suspensions,
                ended.suspended_s
            )?;
        }
        if let Some(error) = &self.log_error {
            writeln!(f, "the log is not complete: {error}")?;
        }
        match self.command {
            Some(CommandEnd::Code(code)) => writeln!(f, "the command exited with code {code}")?,
            Some(CommandEnd::Signal(signal)) => writeln!(f, "the command was ended by signal {signal}")?,
            None => {}
        }
        if !self.did_anything() {
            writeln!(f, "NOTHING WAS SUSPENDED: this run did not disturb the target at all")?;
        }
        Ok(())
    }
}
