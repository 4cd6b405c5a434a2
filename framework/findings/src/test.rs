//! One test's numbers as data: iterations, times, what its schedules amount to, and its share of a pot.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use waylay_schedule::coverage::OrdersSeen;
use waylay_schedule::promise::Promise;

/// What a test got of the time of the pot that it ran in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PotShare {
    /// The pot.
    pub container: String,
    /// Time inside the test, in nanoseconds.
    pub total_ns: f64,
    /// Standard deviation of an iteration's duration, in nanoseconds.
    pub deviation_ns: f64,
    /// The part of the pot's time that it was meant to get; of one that was retired, until then.
    pub asked: f64,
    /// The part that it got of all the time of the pot.
    pub achieved: f64,
    /// The part that it had got when it was retired.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until_retired: Option<f64>,
}

/// One test's numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestRecord {
    /// Its name.
    pub name: String,
    /// Its plugin.
    pub plugin: PathBuf,
    /// Worker threads.
    pub workers: u32,
    /// Finished iterations.
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
    pub retired: Option<String>,
    /// What its schedules amount to, in strict mode.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub strict: Option<StrictNumbers>,
    /// What random suspension guarantees for it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bound: Option<BoundRecord>,
    /// Why there is no bound although the scenario was randomized.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub no_bound: Option<String>,
    /// Of a test that ran inside a pot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pot: Option<PotShare>,
}

/// What the schedules of a strict test amount to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrictNumbers {
    /// Who decided which thread runs.
    pub strategy: String,
    /// The seed of its schedules.
    pub seed: String,
    /// Schedules that began.
    pub runs: u64,
    /// n: the most threads of a schedule.
    pub threads: u32,
    /// k: the greatest number of steps that a schedule was planned with.
    pub steps: u64,
    /// d: the depth that the guarantee is about.
    pub depth: u32,
    /// What the schedules promise, for the greatest depth that is promised well, or else the least.
    pub guarantee: Option<Promise>,
    /// What the schedules promise for every depth.
    pub guarantees: Vec<Promise>,
    /// Schedules per second of wall time, starts of hosts and examinations of failures included.
    pub schedules_per_second: f64,
    /// Steps per second of wall time, counted like schedules.
    pub steps_per_second: f64,
    /// A systematic search has run every schedule within its bound.
    pub exhausted: bool,
    /// Schedules in which something outside the library's control took part.
    pub partly_controlled: u64,
    /// Schedules that left threads behind, so that the host had to be replaced.
    pub left_behind: u64,
    /// Schedules that reached the limit of steps and were not judged.
    #[serde(default)]
    pub limit_reached: u64,
    /// Failures that a fresh process which followed the schedule did not show.
    pub unconfirmed: u64,
    /// What was a step beside calls: sync, atomics, auto or memory.
    #[serde(default)]
    pub level: String,
    /// Places in the code whose plain accesses conflict, and so are steps from the auto level on.
    #[serde(default)]
    pub sites: u64,
    /// Schedules in which it was looked which accesses conflict.
    #[serde(default)]
    pub looked_at: u64,
    /// Plain accesses of such a schedule, at most: the steps there would be if all of them were.
    #[serde(default)]
    pub accesses: u64,
    /// The most such places of a schedule that made more steps than one gives to a place; their later accesses were no steps.
    #[serde(default)]
    pub limited_sites: u64,
    /// Instructions of unmodified code that were patched to be steps.
    #[serde(default)]
    pub patched: u64,
    /// Instructions that could not be patched safely.
    #[serde(default)]
    pub refused: u64,
    /// Orders of conflicting places in the code that were seen, of those that are possible; none when nobody looked.
    #[serde(default)]
    pub orders: Option<OrdersSeen>,
    /// It ended because no new order came for as long as was asked for.
    #[serde(default)]
    pub quiet: bool,
    /// Which accesses were no steps although a bug may need a switch there.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What random suspension guarantees for one test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundRecord {
    /// N: threads to choose from, at most.
    pub threads: u32,
    /// MINTP: the shortest iteration in nanoseconds.
    pub min_test_ns: u64,
    /// The least probability that one iteration shows a bug of depth one.
    pub per_iteration: f64,
    /// The least probability that all iterations together show one, if they are independent.
    pub after_all: f64,
    /// What the settings break of what the bound assumes.
    pub broken_assumptions: Vec<String>,
}
