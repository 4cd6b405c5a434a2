//! What a campaign runs: the checked config, with every default filled in.

use std::path::PathBuf;
use std::time::Duration;

use waylay_dist::Seed;
use waylay_evidence::DumpSize;
use waylay_randomizer::RawSettings;

use super::allotment::{self, Length};
use super::bytes::ByteSize;
use super::dump::DumpFormat;
use super::mode::{FileMode, Mode};
use super::pattern::Pattern;
use super::source::At;
use super::strict::Strict;
use super::test::Test;

/// A whole campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The seed; without one, a fresh one is made and printed.
    pub seed: Option<Seed>,
    /// How long the campaign lasts; without it, until its scenarios are over or it is stopped.
    pub duration: Option<Duration>,
    /// The folder that campaigns are written to.
    pub out: PathBuf,
    /// Folders to look for plugins in, relative to the config file.
    pub plugin_path: Vec<At<PathBuf>>,
    /// The scenarios, one after the other; at least one.
    pub scenarios: Vec<Scenario>,
    /// How leaks are looked for.
    pub leaks: Leaks,
    /// How much evidence is kept.
    pub evidence: Evidence,
}

/// Tests that run together, in one mode.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name, which no other scenario has.
    pub name: At<String>,
    /// How its tests are disturbed.
    pub mode: Mode,
    /// How its threads are suspended, every key filled in; there exactly when the mode is randomized.
    pub randomizer: Option<RawSettings>,
    /// How long it lasts.
    pub length: Length,
    /// How its schedules are made, in strict mode.
    pub strict: Option<Strict>,
    /// How much memory its dumps hold.
    pub dump: DumpSize,
    /// Its tests; at least one.
    pub tests: Vec<Test>,
}

/// How leaks are looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaks {
    /// Whether they are, for tests that do not say.
    pub enabled: bool,
    /// How many bytes are allocated, on average, between two sampled allocations.
    pub sample_bytes: ByteSize,
    /// How long a test may take to fill its caches; nothing is found before 4.5 times as long.
    pub warm_up: Duration,
    /// Accepted false findings per test and hour.
    pub false_alarms_per_hour: f64,
    /// Whether open files and handles are compared before and after.
    pub handles: bool,
    /// Whether threads are.
    pub threads: bool,
}

/// How much evidence is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// How much memory dumps hold, in scenarios that do not say.
    pub dump: DumpSize,
    /// In which formats dumps are written; at least one.
    pub dump_format: Vec<DumpFormat>,
    /// Most bytes of memory in one core.
    pub dump_limit: ByteSize,
    /// How many failures with one signature keep their dump.
    pub dumps_per_signature: u32,
    /// How many signatures are kept in full; later ones are counted.
    pub max_signatures: u32,
    /// Whether a hung host is left for a debugger.
    pub keep_hung: bool,
    /// How large a host's log may grow.
    pub log_limit: ByteSize,
    /// Who may read the files.
    pub mode: FileMode,
    /// Names of environment variables whose values are not written down, beside those that look secret.
    pub redact: Vec<Pattern>,
}

/// What the command line says in place of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// `--seed`
    pub seed: Option<Seed>,
    /// `--duration`
    pub duration: Option<Duration>,
    /// `--out`
    pub out: Option<PathBuf>,
    /// `--keep-hung`
    pub keep_hung: Option<bool>,
    /// `--profile`: the profile that is laid over the file.
    pub profile: Option<String>,
    /// `--set`, each as `KEY=VALUE`, in order.
    pub set: Vec<String>,
}

/// The values of keys that a file leaves out.
pub(super) mod default {
    use super::*;

    /// Two threads are the fewest that can race.
    pub(crate) const WORKERS: u32 = 2;
    /// Long enough for a loaded machine, short enough to be noticed in a first try.
    pub(crate) const HANG_TIMEOUT: Duration = Duration::from_secs(10);
    /// Starting may load files and warm up.
    pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(30);
    /// Cancelling has to be quick.
    pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
    /// A test that failed so often has told what it can.
    pub(crate) const MAX_FAILURES: u64 = 10;
    /// The rate of common heap profilers: overhead stays in the low percents.
    pub(crate) const SAMPLE_BYTES: ByteSize = ByteSize(512 << 10);
    /// Puts the first finding within a minute.
    pub(crate) const LEAK_WARM_UP: Duration = Duration::from_secs(8);
    pub(crate) const FALSE_ALARMS_PER_HOUR: f64 = 1e-6;
    /// What a debugger needs for stacks and variables.
    pub(crate) const DUMP: DumpSize = DumpSize::Mini;
    pub(crate) const DUMP_FORMAT: DumpFormat = DumpFormat::Minidump;
    pub(crate) const DUMP_LIMIT: ByteSize = ByteSize(1 << 30);
    pub(crate) const DUMPS_PER_SIGNATURE: u32 = 3;
    pub(crate) const MAX_SIGNATURES: u32 = 1000;
    pub(crate) const LOG_LIMIT: ByteSize = ByteSize(10 << 20);
    pub(crate) const OUT: &str = "waylay-out";
    pub(crate) const SHARE: f64 = 1.0;
}

impl Config {
    /// How long each scenario lasts, in their order; `None` is until stopped. See [`Length`].
    pub fn allotments(&self) -> Vec<Option<Duration>> {
        let lengths: Vec<_> = self.scenarios.iter().map(|scenario| scenario.length).collect();
        allotment::allot(self.duration, &lengths)
    }
}
