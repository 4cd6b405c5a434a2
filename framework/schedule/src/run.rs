//! One execution as data: which run it is, what it was given, what came out.
//!
//! A run is a pure function of [`Run`] (seed and index) and [`RunParameters`]. Strategies learn between runs
//! (how many steps, how long each thread is, which prefix to try next); what they learned reaches a run only
//! through its parameters. Store both with a failure and the run can be repeated by a fresh process.

use serde::{Deserialize, Serialize};

use crate::event::{EventKind, ObjectId};
use crate::named::Order;

/// The one number all randomness comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

/// Which execution of a campaign this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run {
    /// The seed of the campaign.
    pub seed: Seed,
    /// 0 for the first execution.
    pub index: u64,
}

impl Run {
    /// The run as another component sees it: an independent stream of the same seed and index.
    pub fn split(self, component: u64) -> Run {
        // The finaliser of SplitMix64: neighbouring seeds and components end far apart.
        let mut mixed = self.seed.0 ^ component.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Run { seed: Seed(mixed ^ (mixed >> 31)), index: self.index }
    }
}

/// Everything besides seed and index that influences a run: plain data, stored with each failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunParameters {
    /// Version of this record.
    pub format: u16,
    /// The strategy that is in charge of this run, in the text form of [`Spec`](crate::spec::Spec).
    pub strategy: String,
    /// n: how many threads earlier runs had; 0 when unknown.
    pub threads: u32,
    /// k: how many steps earlier runs had, in one phase if this run has phases; 0 when unknown.
    pub steps: u64,
    /// d: the bug depth aimed at; 0 when the strategy has none.
    pub depth: u32,
    /// Steps of each thread in earlier runs, by thread number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<u64>,
    /// The parent of each thread in earlier runs, by thread number; a thread that nobody created is its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<u32>,
    /// The choices a systematic search starts with, as (decision, alternative); decisions that are not named take
    /// the first alternative.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<(u64, u32)>,
    /// The bound of a systematic search has kept a schedule out since it was last raised.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The events a selective strategy singles out; none means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<Focus>,
    /// The bits of the ratio of a thread's length to its greatest stride: text keeps whole numbers exactly. None means that
    /// the strategy computes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_bits: Option<u64>,
    /// This run has none of the practical parts of its strategy: what is promised holds for every bug.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bare: bool,
    /// Orders of events that this run aims at, the most important first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<Order>,
    /// This run only measures, with a random walk.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub profiling: bool,
}

impl RunParameters {
    /// The version written by this crate.
    pub const FORMAT: u16 = 1;

    /// Parameters with nothing learned.
    pub fn of(strategy: impl Into<String>) -> RunParameters {
        RunParameters { format: RunParameters::FORMAT, strategy: strategy.into(), ..RunParameters::default() }
    }

    /// The depth of the bugs that this run promises to find, whatever else they need; 0 where it is about orders of events
    /// instead, none when it promises nothing.
    pub fn promised_depth(&self) -> Option<u32> {
        if self.bare {
            Some(self.depth)
        } else {
            // Strides were measured, so this is no run that measures.
            self.ratio_bits.map(|_| 0)
        }
    }
}

/// What a process that makes no further run leaves for the one that goes on: a strategy lives inside one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// What the last run was given.
    pub run: RunParameters,
    /// What the next run should be given; none when a systematic search has seen everything.
    pub next: Option<RunParameters>,
}

/// The events a selective strategy singles out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Focus {
    /// Those on one object.
    Object(ObjectId),
    /// Those of one kind; used where objects have no name that lasts from run to run.
    Kind(EventKind),
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It came to its end and nothing was wrong.
    Passed,
    /// It showed a failure.
    Failed,
    /// It was stopped (time or step limit): its lengths say nothing about a whole run.
    Cut,
}

/// What the controller tells a strategy when a run is over.
#[derive(Clone, Copy, Debug)]
pub struct RunReport<'a> {
    /// How it ended.
    pub outcome: Outcome,
    /// All steps of the run.
    pub steps: u64,
    /// Steps of each thread, by thread number; its length is the number of threads.
    pub lengths: &'a [u64],
    /// Whether a failure of this run was not seen before: what a portfolio is paid for.
    pub news: bool,
}
