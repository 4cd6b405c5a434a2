//! Which part of a night a campaign is, as it stands in `campaign.json`. It is written with the counters, in one step, so
//! what is counted and what of the night it stands for never disagree, whenever the driver is killed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use waylay_schedule::Shard;

/// What numbers of a part count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Schedules of one program, shared out by their numbers.
    Schedules,
    /// Whole runs of a mix, each with a seed of its own.
    Lots,
    /// Cases of suites.
    Cases,
}

/// A part of a night.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// Names the night: what is run, how, and with which seed.
    pub night: String,
    /// Digest of the pack that it was run from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pack: Option<String>,
    /// Which part of how many the numbers are of.
    #[serde(flatten)]
    pub part: Shard,
    /// What is divided.
    pub unit: Unit,
    /// The machine.
    pub machine: String,
    /// The first schedule, from 0, that this campaign accounts for; those before are in an earlier one of the same part.
    pub from: u64,
    /// The first that it does not account for: the part's own schedules between both were made.
    pub to: u64,
    /// Schedules of the whole night; none when time decides.
    pub planned: Option<u64>,
    /// It has done all it was to do.
    pub done: bool,
    /// It had nothing to do, or did not do all of it, for this reason.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why: Option<String>,
    /// A search has seen every schedule of this part.
    pub exhausted: bool,
    /// Digest of what the steps of the schedules were; parts of a search make up the whole only where it is the same.
    pub steps: String,
    /// Sum of digests of every schedule's number, steps and outcome, in hexadecimal: equal sums of two divisions of a night say
    /// that the same schedules were made, each once. Where time decides it says nothing.
    pub outcomes: String,
    /// Occurrences by signature.
    pub failures: BTreeMap<String, u64>,
}

/// Sum of digests of schedules; the order in which they are added does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes(pub u64);

impl Outcomes {
    /// Adds a schedule of this number, with so many steps; `outcome` says how it ended.
    pub fn add(&mut self, number: u64, steps: u64, outcome: &str) {
        let words = number.to_le_bytes().into_iter().chain(steps.to_le_bytes()).chain(outcome.bytes());
        let hash = words.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        // The finaliser of SplitMix64: sums of what FNV gives for neighbouring numbers would cancel out.
        let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = self.0.wrapping_add(mixed ^ (mixed >> 31));
    }

    /// Reads what a record holds.
    pub fn of(text: &str) -> Outcomes {
        Outcomes(u64::from_str_radix(text, 16).unwrap_or(0))
    }

    /// Adds those of another part.
    pub fn join(&mut self, other: Outcomes) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl std::fmt::Display for Outcomes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
