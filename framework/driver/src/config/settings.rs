//! What a campaign runs: the checked config, with every default filled in.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use waylay_dist::{Dist, Seed, Spec};
use waylay_randomizer::RawSettings;

use super::allotment;
use super::bytes::ByteSize;
use super::mode::{FileMode, Mode};
use super::pattern::Pattern;
use super::pot::Pot;
use super::source::At;
use super::strict::Strict;

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
    /// Its tests; at least one.
    pub tests: Vec<Test>,
}

/// How long a scenario lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// This long.
    Fixed(Duration),
    /// This part of what the fixed ones leave of the campaign, relative to the other shares.
    Share(f64),
}

/// One test of a plugin, or all whose names fit a pattern, with its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The plugin that holds it.
    pub plugin: At<PluginRef>,
    /// Its name, or a pattern of names.
    pub name: At<Pattern>,
    /// How many threads run it at the same time; at least one.
    pub workers: u32,
    /// How long an iteration may take before it counts as hung.
    pub hang_timeout: Duration,
    /// How long creating and starting it may take.
    pub start_timeout: Duration,
    /// How long it may take to return after it was cancelled.
    pub cancel_timeout: Duration,
    /// After how many iterations it is done, if ever.
    pub iterations: Option<NonZeroU64>,
    /// After how many failures it is retired from the scenario, if ever.
    pub max_failures: Option<NonZeroU64>,
    /// Whether leaks are looked for.
    pub leaks: bool,
    /// Its random choices, by name.
    pub params: Vec<Param>,
    /// The tests that it contains, when it is one that runs others.
    pub pot: Option<Box<Pot>>,
}

/// A named random choice of a test, and how it is distributed.
#[derive(Debug, Clone)]
pub struct Param {
    /// The name that the test knows it by.
    pub name: At<String>,
    /// The distribution as written.
    pub spec: At<Spec>,
    /// The same, ready to draw from.
    pub dist: Dist,
}

/// A plugin as the config names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PluginRef {
    /// A name to look for in the plugin folders.
    Name(String),
    /// A file, relative to the config file.
    Path(PathBuf),
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

impl Test {
    /// Every plugin that it names: its own, its contained tests', those of its objects and hooks.
    pub fn plugins(&self) -> Vec<&At<PluginRef>> {
        let mut all = vec![&self.plugin];
        if let Some(pot) = &self.pot {
            all.extend(pot.contains.iter().flat_map(|contained| contained.test.plugins()));
            all.extend(pot.objects.iter().filter_map(|objects| objects.plugin.as_ref()));
            all.extend(pot.hooks.iter().map(|hooks| &hooks.plugin));
        }
        all
    }

    /// Changes every plugin that it names, its own first.
    pub fn each_plugin_mut(&mut self, change: &dyn Fn(&mut At<PluginRef>)) {
        change(&mut self.plugin);
        if let Some(pot) = &mut self.pot {
            pot.contains.iter_mut().for_each(|contained| contained.test.each_plugin_mut(change));
            pot.objects.iter_mut().filter_map(|objects| objects.plugin.as_mut()).for_each(change);
            pot.hooks.iter_mut().for_each(|hooks| change(&mut hooks.plugin));
        }
    }
}

impl PluginRef {
    /// A text with a folder separator or a library's ending is a path, any other a name.
    pub fn new(text: &str) -> Self {
        let ending = Path::new(text).extension().and_then(|ending| ending.to_str());
        if text.contains(['/', '\\']) || matches!(ending, Some("so" | "dll" | "dylib")) {
            Self::Path(PathBuf::from(text))
        } else {
            Self::Name(text.to_owned())
        }
    }
}

impl std::fmt::Display for PluginRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// The distribution that is drawn from is a function of the one written, so that is all to compare.
impl PartialEq for Param {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.spec == other.spec
    }
}
