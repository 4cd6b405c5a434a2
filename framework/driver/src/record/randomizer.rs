//! What the randomizers of a scenario did, as it is kept in `campaign.json` and printed with `--json`.

use serde::{Deserialize, Serialize};
use waylay_randomizer::statistics::Counts;
use waylay_randomizer::{Percentiles, RawSettings};

/// All randomizers of one scenario together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RandomizerRecord {
    /// How threads were suspended, every key filled in.
    pub settings: RawSettings,
    /// Randomizers that were started: one per host, and those in the place of one that ended early.
    pub started: u64,
    /// Those in the place of one that ended early.
    pub restarted: u64,
    /// Those that did not let go of threads in time and were killed.
    pub killed: u64,
    /// Seconds that they were at work.
    pub seconds: f64,
    /// What they did.
    #[serde(flatten)]
    pub counts: Counts,
    /// Suspensions per second while they were at work.
    pub suspensions_per_s: f64,
    /// Seconds that threads stood still, added over all threads.
    pub suspended_s: f64,
    /// Seconds that they stayed away while evidence was taken.
    pub quiet_s: f64,
    /// Threads that could have been suspended and never were.
    pub never_suspended: u64,
    /// Threads that could be chosen at the same time, at most.
    pub most_to_choose_from: u64,
    /// From the decision until a thread was seen to stand still, of the randomizer with the most suspensions.
    pub stop: Option<Percentiles>,
    /// From there until it was let go.
    pub hold: Option<Percentiles>,
    /// Who traced the host when it last was refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused_for: Option<String>,
    /// By name of the thread, longest suspended first; of randomizers that are over.
    pub threads: Vec<SuspendedThreads>,
}

/// Threads of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SuspendedThreads {
    /// The name.
    pub name: String,
    /// How many had it.
    pub threads: u64,
    /// How many of them were never suspended.
    pub never_suspended: u64,
    /// How often they were suspended.
    pub suspensions: u64,
    /// For how long in all, in seconds.
    pub suspended_s: f64,
}
