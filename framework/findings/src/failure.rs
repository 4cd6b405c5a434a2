//! A failure, as data: what broke, where, how often, and how to see it again. This is what `failure.json` holds.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use waylay_dist::Seed;
pub use waylay_evidence::brought;
pub use waylay_evidence::build::{Build, Change, changes};
use waylay_evidence::{MemoryMap, ThreadStack};

use crate::cause::{Cause, Why};
use crate::environment::Environment;
pub use crate::kind::Kind;
use crate::test::TestRecord;

/// Format of [`FailureEntry`]; changes when a reader of the old form would misunderstand.
pub const FORMAT: u32 = 1;

/// What makes two failures the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Short and stable: the name of the failure's folder.
    pub id: String,
    /// What it was computed from, for people.
    pub text: String,
}

impl Signature {
    /// The signature of a failure of that kind, whoever saw it: kind and digest, so that a list of folders can be read.
    pub fn new(kind: Kind, of: waylay_evidence::signature::Signature) -> Signature {
        Signature { id: format!("{kind}-{}", of.hash), text: of.text }
    }

    /// Whether two ids mean the same failure. Those of explored programs once were the digest alone.
    pub fn is_same(one: &str, other: &str) -> bool {
        let digest = |id: &str| id.rsplit('-').next().map(str::to_owned);
        digest(one) == digest(other)
    }
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
    /// The stacks as text for people.
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

/// Another way in which a failure shows: other stacks, and the same cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// The signature that these stacks have.
    pub signature: Signature,
    /// One line about the first occurrence.
    pub what: String,
    /// How often.
    pub count: u64,
}

/// What else than its signature the same failure may be known by in another campaign: those of its variants, of which another
/// one may come first there, and its cause.
pub fn aliases(kind: Kind, test: Option<&str>, variants: &[Variant], why: &Why) -> Vec<String> {
    let cause = why.cause.as_ref().and_then(Cause::key).map(|key| {
        let text = format!("{kind}\n{}\n{key}", test.unwrap_or_default());
        format!("cause-{:016x}", waylay_evidence::signature::digest(text.as_bytes()))
    });
    variants.iter().map(|variant| variant.signature.id.clone()).chain(cause).collect()
}

/// All occurrences of one failure: of one signature, and of those that have the same cause.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailureEntry {
    /// [`FORMAT`].
    #[serde(deserialize_with = "crate::format::up_to::<FORMAT, _>")]
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
    /// In which other ways the same cause shows; their occurrences are counted here.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub variants: Vec<Variant>,
}

/// Reads a failure from its folder or its `failure.json`.
///
/// # Errors
/// When there is none, when it cannot be read, and when a newer version wrote it in another format.
pub fn load_failure(path: &Path) -> io::Result<FailureEntry> {
    let file = if path.is_dir() { path.join("failure.json") } else { path.to_owned() };
    let text = fs::read_to_string(&file)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
    serde_json::from_str(&text)
        .map_err(|error| io::Error::other(format!("{}: is not a failure record: {error}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_newer_version_is_called_that() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(folder.path().join("failure.json"), text).unwrap();
        let told = || load_failure(folder.path()).unwrap_err().to_string();
        write(r#"{ "format": 2, "kind": "haunted" }"#);
        assert!(told().contains("format 2 was written by a newer waylay"), "{}", told());
        write(r#"{ "format": 1, "kind": "haunted" }"#);
        assert!(told().contains("is not a failure record: unknown variant `haunted`"), "{}", told());
    }
}
