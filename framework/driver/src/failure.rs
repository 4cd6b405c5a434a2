//! A failure, as data: what broke, where, how often, and how to see it again. This is what `failure.json` holds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use waylay_dist::Seed;
pub use waylay_evidence::build::{Build, Change, changes};
use waylay_evidence::{MemoryMap, ThreadStack};
use waylay_report::cause::Why;

use crate::environment::Environment;
use crate::store::TestRecord;

/// Format of [`FailureEntry`]; changes when a reader of the old form would misunderstand.
pub const FORMAT: u32 = 1;

/// What broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A fatal signal, an abort, a process that vanished.
    Crash,
    /// The test, or an assertion in the code under test, noticed something wrong; a panic.
    Assert,
    /// A C++ exception that nobody caught.
    Exception,
    /// An exit status that is not good, or a test that ended its whole process.
    Exit,
    /// Threads wait for each other and use no processor time.
    Deadlock,
    /// Threads use processor time and get nowhere.
    Livelock,
    /// It came back, but later than it may.
    Slow,
    /// One worker gets nowhere while others of its test do.
    Starvation,
    /// Memory, descriptors or threads that are not given back.
    Leak,
    /// Two accesses to the same memory, one of them writing, that nothing orders.
    Race,
    /// The test wrote over memory or descriptors that belong to Waylay.
    Corrupted,
}

impl Kind {
    /// All of them, in the order of their declaration.
    pub const ALL: [Kind; 11] = [
        Kind::Crash,
        Kind::Assert,
        Kind::Exception,
        Kind::Exit,
        Kind::Deadlock,
        Kind::Livelock,
        Kind::Slow,
        Kind::Starvation,
        Kind::Leak,
        Kind::Race,
        Kind::Corrupted,
    ];

    /// What broke, in a sentence; docs/reference/kinds.md is made of these.
    pub fn meaning(self) -> &'static str {
        match self {
            Kind::Crash => "A fatal signal, an abort, or a process that vanished.",
            Kind::Assert => {
                "A test reported it, an assertion in the code under test failed, or Rust panicked."
            }
            Kind::Exception => "A C++ exception that nobody caught, or that left a test.",
            Kind::Exit => "An exit status that is not good, or a test that ended its whole process.",
            Kind::Deadlock => "Threads wait for each other and use no processor time.",
            Kind::Livelock => "Threads use processor time and get nowhere.",
            Kind::Slow => "An iteration came back, but later than it may.",
            Kind::Starvation => "One worker gets nowhere while others of its test do.",
            Kind::Leak => "Memory, descriptors or threads that are not given back.",
            Kind::Race => "Two accesses to the same memory, one of them writing, that nothing orders.",
            Kind::Corrupted => "The test wrote over memory or descriptors that belong to Waylay.",
        }
    }

    /// The word that people read.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Crash => "crash",
            Kind::Assert => "assert",
            Kind::Exception => "exception",
            Kind::Exit => "exit",
            Kind::Deadlock => "deadlock",
            Kind::Livelock => "livelock",
            Kind::Slow => "slow",
            Kind::Starvation => "starvation",
            Kind::Leak => "leak",
            Kind::Race => "race",
            Kind::Corrupted => "corrupted",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

/// What makes two failures the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Short and stable: the name of the failure's folder.
    pub id: String,
    /// What it was computed from, for people.
    pub text: String,
}

/// One time that it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Occurrence {
    /// When.
    pub at: Timestamp,
    /// In which scenario.
    pub scenario: String,
    /// Which worker of the test, if one is to blame.
    pub worker: Option<u32>,
    /// Number of the iteration.
    pub iteration: u64,
    /// The iteration's seed.
    pub seed: Seed,
    /// The host's process number.
    pub pid: u32,
    /// The randomizer beside the host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub randomizer: Option<RandomizerTrace>,
    /// What every worker was doing.
    pub workers: Vec<WorkerView>,
    /// The pot that the test was in, if it was in one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pot: Option<PotView>,
}

/// The mix that something failed in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PotView {
    /// The test of the scenario that contained the one that failed.
    pub test: String,
    /// Its plugin.
    pub plugin: PathBuf,
    /// The numbers of all tests that it contained, at that moment.
    pub tests: Vec<TestRecord>,
}

/// A contained test on a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningView {
    /// Its name.
    pub test: String,
    /// Its plugin.
    pub plugin: PathBuf,
    /// Number of the iteration.
    pub iteration: u64,
    /// Whether it had ended: it was the last to run there.
    pub over: bool,
}

/// Which choices suspended threads. With the seed the same choices can be made again, at about the same times: what
/// comes of it is a matter of chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RandomizerTrace {
    /// The seed of all its choices.
    pub seed: Seed,
    /// Windows that were opened beside this host before.
    pub windows: u64,
}

/// What one worker was doing when something failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerView {
    /// Its test.
    pub test: String,
    /// Its number within the test.
    pub worker: u32,
    /// Kernel thread number.
    pub tid: u32,
    /// Running, held, done.
    pub state: String,
    /// Number of the iteration.
    pub iteration: u64,
    /// Milliseconds since the iteration began.
    pub for_ms: u64,
    /// The contained test that it runs, when its own test contains others.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub running: Option<RunningView>,
    /// Shared objects that its iteration was lent.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub holds: Vec<String>,
}

/// A failure that was just seen, with its evidence.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What broke.
    pub kind: Kind,
    /// What makes it the same as others.
    pub signature: Signature,
    /// One line: `SIGSEGV at 0x8`, `panicked at src/lib.rs:3: …`.
    pub what: String,
    /// Why it was classified so, when that takes a sentence.
    pub reason: Option<String>,
    /// The test to blame; none when the host itself broke.
    pub test: Option<String>,
    /// The plugin of that test.
    pub plugin: Option<PathBuf>,
    /// This time.
    pub occurrence: Occurrence,
    /// Every thread's stack, the one to blame first.
    pub stacks: Vec<ThreadStack>,
    /// The same for people.
    pub stacks_text: String,
    /// End of the host's log.
    pub log_tail: String,
    /// What could not be collected, and why.
    pub gaps: Vec<String>,
    /// Which files of code were loaded; empty when that is not known.
    pub code: MemoryMap,
    /// Which orders of events it needs, if that was sought.
    pub why: Why,
}

/// All occurrences of one signature.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailureEntry {
    /// [`FORMAT`].
    #[serde(deserialize_with = "crate::store::format::up_to::<FORMAT, _>")]
    pub format: u32,
    /// What broke.
    pub kind: Kind,
    /// What makes it one entry.
    pub signature: Signature,
    /// One line about the first occurrence.
    pub what: String,
    /// Why it was classified so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The test to blame.
    pub test: Option<String>,
    /// The plugin of that test.
    pub plugin: Option<PathBuf>,
    /// How often.
    pub count: u64,
    /// When first.
    pub first_seen: Timestamp,
    /// When last.
    pub last_seen: Timestamp,
    /// The campaign's seed: with it and an occurrence the random choices of an iteration can be repeated.
    pub campaign_seed: Seed,
    /// How often in each scenario; empty in records of before that was counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub scenarios: BTreeMap<String, u64>,
    /// The first occurrences (a limited number).
    pub occurrences: Vec<Occurrence>,
    /// Stacks of the first occurrence.
    pub stacks: Vec<ThreadStack>,
    /// Threads in the dump of the first occurrence; none when there is no dump.
    pub dump_threads: Option<usize>,
    /// What could not be collected of the first occurrence, and why.
    pub gaps: Vec<String>,
    /// The command that runs it again.
    pub replay: String,
    /// Which builds of the program and its modules failed, Waylay's own files left out; empty when that is not known.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub builds: Vec<Build>,
    /// Where it ran.
    pub environment: Environment,
    /// How often on which machine, when several took part in the night.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub machines: BTreeMap<String, u64>,
    /// Which orders of events it needs, if that was sought.
    #[serde(flatten, default)]
    pub why: Why,
}
