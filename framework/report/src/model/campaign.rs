//! A campaign and the numbers of its scenarios and tests.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use waylay_schedule::coverage::OrdersSeen;

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
    /// What else tests did that somebody should know, such as processes that they left behind.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
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
    /// The part of the pot's time that it was meant to get, from 0 to 1; of one that was retired, until then.
    pub asked: f64,
    /// The part that it got of all the time of the pot.
    pub achieved: f64,
    /// The part that it had got when it was retired.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until_retired: Option<f64>,
}

impl Share {
    /// What it got and what was asked, in words; what is no longer run is asked for nothing. `of` says of what, where
    /// nothing around the words does.
    pub fn words(&self, retired: bool, of: &str) -> String {
        let percent = |part: f64| format!("{:.1} %", part * 100.0);
        let asked =
            if self.asked > 0.0 { format!(" (asked {})", percent(self.asked)) } else { String::new() };
        match (retired, self.until_retired) {
            (false, _) => format!("{}{of} (asked {})", percent(self.achieved), percent(self.asked)),
            (true, Some(until)) => format!("{}{of} until it was retired{asked}", percent(until)),
            (true, None) if self.total_ns > 0.0 => format!("retired, {} of all", percent(self.achieved)),
            (true, None) => "did not run".to_owned(),
        }
    }
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
    /// Schedules that reached the limit of steps and were not judged.
    #[serde(default)]
    pub limit_reached: u64,
    /// Orders of conflicting places in the code that were seen, of those that are possible; none when nobody looked.
    #[serde(default)]
    pub orders: Option<OrdersSeen>,
    /// What a promise leaves out, as the end of its sentence; empty if that is nothing.
    #[serde(default)]
    pub leaves_out: String,
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
    /// Orders of conflicting places in the code that were seen in strict tests.
    #[serde(default)]
    pub orders: u64,
    /// Those that are possible as far as schedules showed.
    #[serde(default)]
    pub orders_predicted: u64,
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
