//! What a report is about, as plain data: a night, its campaign, tests and failures, and numbers over time.
//!
//! Everything that is stored somewhere, in a campaign's folder or in the history, is turned into this first; everything
//! that people read is made from this alone. All text may come from a program under test and is hostile until it is
//! escaped, which every renderer does.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Format of [`Night`] as JSON; changes when a reader of the old form would misunderstand.
pub const FORMAT: u32 = 1;

/// One report: a campaign with its failures, and what is known of the nights before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Night {
    /// [`FORMAT`].
    pub format: u32,
    /// When the report was made.
    pub made: Timestamp,
    /// What ran.
    pub campaign: Campaign,
    /// What broke, one entry per signature; those of earlier nights that did not come back too, as
    /// [`FailureState::Resolved`].
    pub failures: Vec<Failure>,
    /// The campaign that the states of failures compare with; none when there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub compared_with: Option<String>,
    /// This night and those before, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub trend: Vec<NightPoint>,
}

/// How a campaign stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CampaignState {
    /// It is at work.
    Running,
    /// It came to its end.
    Finished,
    /// The user stopped it, in order.
    Stopped,
    /// Its driver died.
    Interrupted,
}

impl CampaignState {
    /// The word that people read.
    pub fn word(self) -> &'static str {
        match self {
            CampaignState::Running => "running",
            CampaignState::Finished => "finished",
            CampaignState::Stopped => "stopped",
            CampaignState::Interrupted => "interrupted",
        }
    }
}

/// What came of it, in one word: what exit codes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything ran and nothing broke.
    Clean,
    /// Something broke.
    Failed,
    /// Nothing broke, but not everything could run.
    Incomplete,
    /// Not one iteration was made.
    NothingRan,
}

/// One campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// Its name, which is its folder's.
    pub name: String,
    /// How it stands.
    pub state: CampaignState,
    /// When it began.
    pub started: Timestamp,
    /// When its numbers were last written.
    pub updated: Timestamp,
    /// The seed of everything random.
    pub seed: String,
    /// Where it ran.
    pub environment: Environment,
    /// What could not run at all, in words.
    pub problems: Vec<String>,
    /// Hosts that were started.
    pub hosts: u64,
    /// By scenario.
    pub scenarios: Vec<Scenario>,
    /// Numbers over time, oldest first; empty when nobody wrote them down.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub series: Vec<Sample>,
}

/// Machine and versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of Waylay.
    pub waylay: String,
    /// Operating system and kernel.
    pub system: String,
    /// Processor model.
    pub processor: String,
    /// Processors that could be used.
    pub cores: u64,
    /// Main memory in MiB.
    pub memory_mib: u64,
    /// Digest of the effective configuration.
    pub config_digest: String,
}

/// Who decides which thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The operating system.
    Free,
    /// The operating system, and a randomizer that suspends threads.
    Randomized,
    /// A strategy, one thread at a time.
    Strict,
}

impl Mode {
    /// The word that configurations use.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Free => "free",
            Mode::Randomized => "randomized",
            Mode::Strict => "strict",
        }
    }

    /// The mode that a configuration names; free for what is not known.
    pub fn of(word: &str) -> Mode {
        match word {
            "randomized" => Mode::Randomized,
            "strict" => Mode::Strict,
            _ => Mode::Free,
        }
    }
}

/// One scenario's numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Who decides which thread runs.
    pub mode: Mode,
    /// Seconds that it ran.
    pub seconds: f64,
    /// What the randomizers did; none when none was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub suspensions: Option<Suspensions>,
    /// By test.
    pub tests: Vec<Test>,
}

/// What the randomizers of a scenario did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Suspensions {
    /// Suspensions.
    pub suspensions: u64,
    /// Seconds that the randomizers were at work.
    pub seconds: f64,
    /// Seconds that threads stood still, added over all threads.
    pub suspended_s: f64,
    /// Threads that could have been suspended and never were.
    pub never_suspended: u64,
    /// Threads that could be chosen at the same time, at most.
    pub most_to_choose_from: u64,
    /// MAXRP: the longest rest between two windows in nanoseconds; none when it has no limit.
    pub longest_rest_ns: Option<u64>,
    /// MAXSD: the longest suspension in nanoseconds; none when it has no limit.
    pub longest_suspension_ns: Option<u64>,
    /// Who traced the host when a suspension was last refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused_for: Option<String>,
}

/// One test's numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// File of its plugin.
    pub plugin: String,
    /// Worker threads.
    pub workers: u32,
    /// Finished iterations; in strict mode, schedules.
    pub iterations: u64,
    /// Failures attributed to it.
    pub failures: u64,
    /// Average duration of an iteration in nanoseconds.
    pub average_ns: f64,
    /// Shortest iteration in nanoseconds.
    pub shortest_ns: f64,
    /// Longest iteration in nanoseconds.
    pub longest_ns: f64,
    /// Why it is no longer run, if so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retired: Option<String>,
    /// What its schedules amount to, in strict mode.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub strict: Option<StrictNumbers>,
    /// What random suspension guarantees for it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bound: Option<SuspensionBound>,
    /// Why there is no such guarantee although its scenario was randomized.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub no_bound: Option<String>,
    /// Of a test that ran inside a pot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub share: Option<Share>,
}

/// What a test got of the time of the pot that it ran in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The pot.
    pub pot: String,
    /// Time inside the test, in nanoseconds.
    pub total_ns: f64,
    /// The part of the pot's time that it was meant to get, from 0 to 1.
    pub asked: f64,
    /// The part that it got.
    pub achieved: f64,
}

/// What the schedules of a strict test amount to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StrictNumbers {
    /// Who decided which thread runs.
    pub strategy: String,
    /// Schedules that began.
    pub runs: u64,
    /// n: the most threads of a schedule.
    pub threads: u32,
    /// k: the greatest number of steps that a schedule was planned with.
    pub steps: u64,
    /// What is promised for each depth.
    pub promises: Vec<DepthPromise>,
    /// Schedules per second of wall time.
    pub schedules_per_second: f64,
    /// A systematic search has run every schedule within its bound.
    pub exhausted: bool,
    /// Schedules in which something outside of control took part.
    pub partly_controlled: u64,
}

/// What schedules promise about bugs of one depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DepthPromise {
    /// The depth.
    pub depth: u32,
    /// The least probability of finding such a bug in one run that aims at this depth.
    pub per_run: f64,
    /// Runs that aimed at this depth.
    pub runs: u64,
    /// What else must hold of the bug.
    pub conditions: Vec<String>,
}

/// What random suspension guarantees for bugs of depth one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuspensionBound {
    /// N: threads to choose from, at most.
    pub threads: u32,
    /// MINTP: the shortest iteration in nanoseconds.
    pub min_test_ns: u64,
    /// The least probability that one iteration shows such a bug.
    pub per_iteration: f64,
    /// What the settings break of what the bound assumes.
    pub broken_assumptions: Vec<String>,
}

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
    /// Seen before, not in this night.
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
    /// What broke: crash, assert, deadlock, livelock, slow, starvation, leak.
    pub kind: String,
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
    /// What its schedule is, in strict mode.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub schedule: Option<ScheduleFacts>,
    /// Its timeline as a picture: SVG that a renderer of this crate made.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeline_svg: Option<String>,
    /// Where it ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub environment: Option<Environment>,
    /// Why nobody is told about it, if somebody decided so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub suppressed: Option<String>,
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
    /// Kernel thread number.
    pub thread: u32,
    /// The thread's name.
    pub name: String,
    /// What it was doing, in a few words: `running`, `waiting in futex`.
    pub doing: String,
    /// Whether a fatal signal hit this thread.
    pub crashed: bool,
    /// Innermost first.
    pub frames: Vec<Frame>,
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

/// How a campaign stood at one moment. Counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the campaign began.
    pub at_s: f64,
    /// Finished iterations, schedules of strict tests included.
    pub iterations: u64,
    /// Of those, schedules of strict tests.
    pub schedules: u64,
    /// Failures.
    pub failures: u64,
    /// Different failures.
    pub signatures: u64,
    /// Suspensions by randomizers.
    pub suspensions: u64,
}

/// One night in a row of nights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NightPoint {
    /// The campaign.
    pub campaign: String,
    /// When it began.
    pub started: Timestamp,
    /// Seconds that it ran.
    pub seconds: f64,
    /// Finished iterations.
    pub iterations: u64,
    /// Failures.
    pub failures: u64,
    /// Different failures.
    pub signatures: u64,
    /// Different failures that were new.
    pub new_signatures: u64,
}

impl Night {
    /// What came of it. A failure of an earlier night that did not come back is none, nor is a suppressed one.
    pub fn verdict(&self) -> Verdict {
        let broke = self.failures.iter().any(|failure| failure.is_here() && failure.suppressed.is_none());
        match (broke, self.campaign.iterations(), self.campaign.problems.is_empty()) {
            (true, _, _) => Verdict::Failed,
            (false, 0, _) => Verdict::NothingRan,
            (false, _, false) => Verdict::Incomplete,
            (false, _, true) => Verdict::Clean,
        }
    }

    /// Failures that were seen in this night.
    pub fn here(&self) -> impl Iterator<Item = &Failure> {
        self.failures.iter().filter(|failure| failure.is_here())
    }
}

impl Campaign {
    /// Finished iterations of all tests, counted as the campaign's own summary counts them.
    pub fn iterations(&self) -> u64 {
        self.tests().map(|(_, test)| test.iterations).sum()
    }

    /// Every test with its scenario.
    pub fn tests(&self) -> impl Iterator<Item = (&Scenario, &Test)> {
        self.scenarios.iter().flat_map(|scenario| scenario.tests.iter().map(move |test| (scenario, test)))
    }

    /// Seconds from its begin to its last words.
    pub fn seconds(&self) -> f64 {
        self.updated.duration_since(self.started).as_secs_f64().max(0.0)
    }
}

impl Failure {
    /// Whether it was seen in this night.
    pub fn is_here(&self) -> bool {
        self.state != FailureState::Resolved
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
