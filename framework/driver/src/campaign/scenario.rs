//! A scenario as it is to be run: every pattern expanded, every file found.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use waylay_dist::Spec;
use waylay_evidence::DumpSize;

use super::combination::Combination;
use super::disturbance::Randomization;
use crate::config::Strict;

/// A scenario with every pattern expanded and every file found.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// How long it runs; none means until all tests have done their iterations.
    pub duration: Option<Duration>,
    /// How its threads are suspended, if they are.
    pub randomizer: Option<Randomization>,
    /// How its schedules are made, in strict mode.
    pub strict: Option<Strict>,
    /// How much memory its dumps hold.
    pub dump: DumpSize,
    /// Its tests.
    pub tests: Vec<ScenarioTest>,
}

/// One test of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioTest {
    /// The plugin's file.
    pub plugin: PathBuf,
    /// The test's name.
    pub name: String,
    /// Worker threads.
    pub workers: u32,
    /// Longest `TestMain`.
    pub hang_timeout: Duration,
    /// Longest CreateInstance or OnTestStart.
    pub start_timeout: Duration,
    /// Longest OnTestCancelled or OnTestEnd.
    pub cancel_timeout: Duration,
    /// Stop after so many iterations, all workers together.
    pub iterations: Option<u64>,
    /// Retire the test after so many failures; 0 means never.
    pub max_failures: u64,
    /// Watch it for leaks.
    pub leaks: bool,
    /// Distributions that replace the test's defaults.
    pub params: BTreeMap<String, Spec>,
    /// Replay: run these iterations (one per worker) again and again.
    pub repeat: Option<Vec<u64>>,
    /// For a test that another one contains.
    pub inside: Option<Inside>,
    /// For a test that contains others; these follow it.
    pub combination: Option<Box<Combination>>,
    /// Average duration of an iteration as an earlier campaign measured it; 0 when none did.
    pub known_average_ns: f64,
}

/// Where a contained test is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inside {
    /// The place of the containing test in the scenario.
    pub container: usize,
    /// Share of the containing test's time.
    pub share: f64,
}
