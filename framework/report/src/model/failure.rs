//! A failure: what broke, where, how often, and how to see it again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use waylay_findings::{Evidence, Kind, Variant};

use super::{BuildRange, Environment, Mode};
use crate::cause::Why;
use crate::numbers::{count, plural};

/// How a failure stands against the nights before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureState {
    /// Seen for the first time.
    New,
    /// Seen in this night and in the one before.
    Ongoing,
    /// Seen before, missing in between, seen again.
    Rare,
    /// Seen before, not in this night, which did not run its test often enough to tell anything from that.
    Open,
    /// Seen before, not in this night, although its test ran so often that it would have shown.
    Resolved,
    /// There is nothing to compare with.
    #[default]
    Unknown,
}

impl FailureState {
    /// The word that people read.
    pub fn word(self) -> &'static str {
        match self {
            FailureState::New => "new",
            FailureState::Ongoing => "ongoing",
            FailureState::Rare => "rare",
            FailureState::Open => "open",
            FailureState::Resolved => "resolved",
            FailureState::Unknown => "seen",
        }
    }
}

/// All occurrences of one signature.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The signature's short name; also its folder's.
    pub id: String,
    /// What the signature was computed from.
    pub signature: String,
    /// What broke.
    pub kind: Kind,
    /// How it stands against earlier nights.
    pub state: FailureState,
    /// One line about the first occurrence.
    pub what: String,
    /// Why it was classified so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The test to blame; none when the host itself broke.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub test: Option<String>,
    /// File of that test's plugin.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub plugin: Option<String>,
    /// How often in this night.
    pub count: u64,
    /// How often in all nights together.
    pub count_ever: u64,
    /// Nights that had it, this one included.
    pub nights: u64,
    /// Campaigns that had it, where these are counted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub campaigns: Option<u64>,
    /// When first, in any night.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_seen: Option<Timestamp>,
    /// When last.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_seen: Option<Timestamp>,
    /// The first occurrences of this night.
    pub occurrences: Vec<Occurrence>,
    /// Every thread's stack in the first occurrence, the one to blame first.
    pub stacks: Vec<Stack>,
    /// What could not be collected, and why.
    pub gaps: Vec<String>,
    /// The command that runs it again.
    pub replay: String,
    /// Its folder.
    pub folder: String,
    /// Files of that folder that can be looked at: names relative to it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<EvidenceFile>,
    /// How often it came back when it was run again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reproduction: Option<Reproduction>,
    /// How often it came back when other builds were run again, which may be mended ones.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub other_builds: Option<Reproduction>,
    /// Which builds had it and which did not, where nights before are known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub builds: Option<BuildRange>,
    /// How often it came when the build that failed was run with new random choices, if that was measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub measured: Option<Reproduction>,
    /// How often it came in the night that it was seen in: in the scenario that showed it first, among the runs that were judged.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate: Option<Reproduction>,
    /// How often it came in each mode that its test ran in, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rates: Vec<ModeRate>,
    /// How often in each scenario; empty where that was not counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub scenarios: BTreeMap<String, u64>,
    /// How often on which machine, when several took part in the night.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub machines: BTreeMap<String, u64>,
    /// What its schedule is, in strict mode.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub schedule: Option<ScheduleFacts>,
    /// Its timeline as a picture: SVG that a renderer of this crate made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeline_svg: Option<String>,
    /// How it grows, of a leak that was seen growing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub growth: Option<Growth>,
    /// Where it ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub environment: Option<Environment>,
    /// Why nobody is told about it, if somebody decided so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub suppressed: Option<String>,
    /// Which orders of events it needs, if that was sought.
    #[serde(flatten, default)]
    pub why: Why,
    /// In which other ways the same cause shows.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub variants: Vec<Variant>,
}

impl Failure {
    /// The other ways in which its cause shows, a line each.
    pub fn also(&self) -> Vec<String> {
        let line = |Variant { signature, what, count }: &Variant| {
            format!("{} as {}: {what}", plural(*count, "time"), signature.text)
        };
        self.variants.iter().map(line).collect()
    }
}

/// A number that grows, over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// What is counted, with its unit: `bytes that are never freed`.
    pub of: String,
    /// Seconds since the host began, and the number then.
    pub points: Vec<(f64, f64)>,
}

/// A file of evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceFile {
    /// Its name, relative to the failure's folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// How often something came back when it was run again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reproduction {
    /// Times that it came back.
    pub reproduced: u64,
    /// Runs, or iterations.
    pub runs: u64,
    /// Seconds that this took.
    pub seconds: f64,
}

/// How often something came in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeRate {
    /// Who scheduled the threads.
    pub mode: Mode,
    /// How often.
    #[serde(flatten)]
    pub seen: Reproduction,
}

/// Rates side by side: `free 13 in 765,036 · randomized 13 in 74,653 · strict 3 in 7`. Nothing where there are none.
pub fn side_by_side(rates: &[ModeRate]) -> Option<String> {
    let one = |rate: &ModeRate| {
        format!("{} {} in {}", rate.mode.word(), count(rate.seen.reproduced), count(rate.seen.runs))
    };
    (!rates.is_empty()).then(|| rates.iter().map(one).collect::<Vec<_>>().join(" · "))
}

/// What is known about a failing schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScheduleFacts {
    /// Who decided.
    pub strategy: String,
    /// Steps.
    pub steps: u64,
    /// Switches.
    pub switches: u64,
    /// Threads.
    pub threads: u32,
    /// Whether a fresh process that followed it failed in the same way.
    pub confirmed: bool,
    /// Switches that have to be forced, when it was minimised.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub forced: Option<Vec<ForcedSwitch>>,
}

impl ScheduleFacts {
    /// The switches that decide: at each one thread has to stop and another one to run.
    pub fn deciding(&self) -> Vec<&ForcedSwitch> {
        self.forced.iter().flatten().filter(|switch| switch.from != switch.to).collect()
    }

    /// Threads that have to go on where they would give way by themselves, because they yield or sleep, in words: one line each,
    /// however often.
    pub fn going_on(&self) -> Vec<String> {
        let mut times: BTreeMap<u32, u64> = BTreeMap::new();
        for switch in self.forced.iter().flatten().filter(|switch| switch.from == switch.to) {
            *times.entry(switch.from).or_default() += 1;
        }
        times
            .into_iter()
            .map(|(thread, times)| {
                format!("thread {thread} goes on {}, although it yields or sleeps", plural(times, "time"))
            })
            .collect()
    }
}

/// A switch that has to be forced for the failure to happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcedSwitch {
    /// The step, 0 being the first of the run.
    pub step: u64,
    /// Who was running.
    pub from: u32,
    /// Who runs instead.
    pub to: u32,
    /// What the one that was running was about to do, as text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from_stack: Option<String>,
    /// Where the other one goes on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to_stack: Option<String>,
}

/// One time that it happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Occurrence {
    /// When.
    pub at: Timestamp,
    /// In which scenario.
    pub scenario: String,
    /// Which worker, if one is to blame.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub worker: Option<u32>,
    /// Number of the iteration.
    pub iteration: u64,
    /// The iteration's seed.
    pub seed: String,
    /// What every worker was doing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub workers: Vec<Worker>,
}

/// What one worker was doing when something failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its test.
    pub test: String,
    /// Its number within the test.
    pub worker: u32,
    /// Running, held, done.
    pub state: String,
    /// Number of the iteration.
    pub iteration: u64,
    /// Milliseconds since the iteration began.
    pub for_ms: u64,
    /// The contained test that it ran, in a pot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub running: Option<String>,
    /// Shared objects that its iteration was lent.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub holds: Vec<String>,
}

/// One thread's stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Kernel thread number; 0 when the stack is of no thread.
    pub thread: u32,
    /// The thread's name; of one with a number, and of a stack of no thread, all that it is called.
    pub name: String,
    /// The number that schedule and timeline have for it, in strict mode.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub number: Option<u32>,
    /// What it was doing, in a few words: `running`, `waiting in futex`.
    pub doing: String,
    /// Whether a fatal signal hit this thread.
    pub crashed: bool,
    /// Innermost first.
    pub frames: Vec<Frame>,
}

impl Stack {
    /// What people call the thread.
    pub fn title(&self) -> String {
        match (self.number, self.thread) {
            (Some(_), _) | (_, 0) => self.name.clone(),
            (None, thread) => format!("thread {thread} ({})", self.name),
        }
    }
}

/// Whose code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The test's, or of the code that it tests.
    Own,
    /// The language's or the system's.
    Runtime,
    /// Waylay's.
    Waylay,
}

/// One function on a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Its name; none when nothing names the address.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub function: Option<String>,
    /// Source file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
    /// Line in the source file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
    /// File that holds the code.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub module: Option<String>,
    /// The address as that file counts it.
    pub offset: u64,
    /// Whose code it is.
    pub origin: Origin,
}

impl Failure {
    /// Whether one thread noticed it and waits only because it is looked at.
    pub fn failed_in_one_place(&self) -> bool {
        self.kind.evidence() == Evidence::Noticed
    }

    /// Whether it was seen in this night.
    pub fn is_here(&self) -> bool {
        !matches!(self.state, FailureState::Resolved | FailureState::Open)
    }

    /// How often it comes, as well as that is known: a measurement with the build that failed tells more than the night in
    /// which it was found, because that was perhaps ended by it.
    pub fn best_rate(&self) -> Option<Reproduction> {
        self.measured.filter(|measured| measured.reproduced > 0).or(self.rate)
    }

    /// The test's name, or what stands for it.
    pub fn subject(&self) -> &str {
        self.test.as_deref().unwrap_or("the host itself")
    }

    /// The place to look at first: the innermost own frame with a source line of the first stack that has one.
    pub fn place(&self) -> Option<&Frame> {
        let own = |frame: &&Frame| {
            frame.origin == Origin::Own && frame.file.is_some() && frame.line.is_some_and(|line| line > 0)
        };
        self.stacks.iter().find_map(|stack| stack.frames.iter().find(own))
    }
}

impl Reproduction {
    /// How often it comes back in one run.
    pub fn rate(&self) -> f64 {
        if self.runs == 0 { 0.0 } else { (self.reproduced as f64 / self.runs as f64).min(1.0) }
    }
}
