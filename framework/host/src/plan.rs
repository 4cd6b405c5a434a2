//! What the driver tells a host: one JSON value on standard input, which is then replaced by an empty one.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use waylay_dist::{Seed, Spec};

/// What a host is started for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plan {
    /// Load one plugin and say what is inside.
    Describe {
        /// The plugin's file.
        plugin: PathBuf,
        /// Inherited handle of the event pipe.
        events: i64,
    },
    /// Run tests until told to stop.
    Run(RunPlan),
}

/// Tests to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunPlan {
    /// Inherited handle of the shared page.
    pub page: i64,
    /// Inherited handle of the event pipe.
    pub events: i64,
    /// The campaign's seed.
    pub seed: Seed,
    /// Live on when the driver dies while this host hangs, for a debugger.
    pub keep_when_orphaned: bool,
    /// Files to load, in this order.
    pub plugins: Vec<PathBuf>,
    /// Tests to run; the position is the test's index in the page.
    pub tests: Vec<TestPlan>,
    /// Schedule after schedule of the one test, instead of workers that run freely.
    #[serde(default)]
    pub strict: bool,
    /// Whole lives of the one test, for a comparison.
    #[serde(default)]
    pub trial: Option<TrialPlan>,
}

/// How lives of a test are made for a comparison. Nobody looks at what fails: it is told as an event, and the life goes on
/// to its end. What cannot go on (a crash, a deadlock) is held as ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialPlan {
    /// Threads run freely, without the control library.
    pub free: bool,
    /// Lives follow after one that failed, too.
    pub count: bool,
}

/// One schedule of one test, in a process of its own and without a driver: for confirming, replaying and minimising.
/// Given as an argument of the command, so that it can be repeated under a debugger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SchedulePlan {
    /// Files to load, in this order.
    pub plugins: Vec<PathBuf>,
    /// The test, followed by those that it contains.
    pub tests: Vec<TestPlan>,
    /// The campaign's seed.
    pub seed: Seed,
    /// Number of the schedule.
    pub run: u64,
}

/// One test to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestPlan {
    /// Index into [`RunPlan::plugins`].
    pub plugin: usize,
    /// The test's name in that plugin.
    pub name: String,
    /// Distributions that replace the test's defaults.
    pub params: BTreeMap<String, Spec>,
    /// One entry per worker thread; none for a contained test.
    pub workers: Vec<WorkerPlan>,
    /// For a test that another one contains.
    #[serde(default)]
    pub contained: Option<ContainedPlan>,
    /// For a test that contains others.
    #[serde(default)]
    pub combiner: Option<CombinerPlan>,
}

/// A test that runs inside another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContainedPlan {
    /// Index of the test that contains it; that one comes before it.
    pub container: usize,
    /// Share of the container's time, relative to its other tests.
    pub share: f64,
    /// Average duration of an iteration in nanoseconds, as far as it is known.
    pub average_ns: f64,
    /// Nanoseconds that it was given in this campaign.
    pub given_ns: f64,
    /// Number of its first iteration: not 0 after a restart.
    pub first_iteration: u64,
}

/// What a test that contains others is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CombinerPlan {
    /// Its settings, one JSON object.
    pub settings: String,
    /// Its pools of shared objects, by kind; a kind that is not here has the default pool.
    pub pools: BTreeMap<String, PoolPlan>,
    /// Hooks to call, in this order.
    pub hooks: Vec<HooksPlan>,
}

/// A pool of shared objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolPlan {
    /// How many objects.
    pub count: Spec,
    /// How often an object is lent before it is replaced.
    pub life: Spec,
}

impl Default for PoolPlan {
    /// Few objects, so that tests meet on them; replaced often enough that their beginning and end are tested too.
    fn default() -> PoolPlan {
        let spec = |text: &str| text.parse().expect("a distribution");
        PoolPlan {
            count: spec("{ uniform = { min = 1, max = 3 } }"),
            life: spec("{ exponential = { min = 1, max = 2000 } }"),
        }
    }
}

/// Hooks of a plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HooksPlan {
    /// Index into [`RunPlan::plugins`].
    pub plugin: usize,
    /// Their name in that plugin.
    pub name: String,
}

/// One worker of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerPlan {
    /// The worker's slot in the page.
    pub slot: usize,
    /// Number of its first iteration: not 0 after a restart, so that no iteration is run twice.
    pub first_iteration: u64,
    /// How many iterations to run; none means until cancelled.
    pub iterations: Option<u64>,
    /// Run the first iteration's random numbers again and again instead of going on to the next: a replay.
    pub repeat: bool,
}

impl SchedulePlan {
    /// The test's name and plugin.
    pub fn title(&self) -> (&str, &Path) {
        let plugin = |test: &TestPlan| self.plugins.get(test.plugin).map_or(Path::new(""), PathBuf::as_path);
        self.tests.first().map_or(("", Path::new("")), |test| (test.name.as_str(), plugin(test)))
    }

    /// The plan as one argument of a command: JSON in which every byte that a shell or a debugger could take for something
    /// else is written as `%` and two hexadecimal digits.
    pub fn to_argument(&self) -> String {
        let json = serde_json::to_string(self).expect("a plan is plain data");
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:,=-".contains(&byte);
        let mut text = String::with_capacity(json.len() * 2);
        for byte in json.bytes() {
            match plain(byte) {
                true => text.push(char::from(byte)),
                false => text.push_str(&format!("%{byte:02x}")),
            }
        }
        text
    }

    /// The plan behind such an argument.
    pub fn from_argument(text: &str) -> Result<SchedulePlan, PlanError> {
        let mut json = Vec::with_capacity(text.len());
        let mut parts = text.split('%');
        json.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
        for part in parts {
            let code = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
            json.push(code.unwrap_or(b'%'));
            json.extend_from_slice(part.get(2..).unwrap_or_default().as_bytes());
        }
        Ok(serde_json::from_slice(&json)?)
    }
}

/// Reads the plan and makes standard input empty, so that a test that reads it does not read ours.
pub fn read_from_stdin() -> Result<Plan, PlanError> {
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text)?;
    crate::sys::make_stdin_empty()?;
    Ok(serde_json::from_str(&text)?)
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Standard input could not be read.
    #[error("cannot read the plan from standard input: {0}")]
    Read(#[from] std::io::Error),
    /// It was not a plan.
    #[error("what was given is no plan: {0}")]
    Parse(#[from] serde_json::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_the_command_line() {
        let spec = "{ uniform = { min = 1, max = 3 } }".parse().unwrap();
        let plan = SchedulePlan {
            plugins: vec!["/some folder/lib'x%.so".into()],
            tests: vec![TestPlan {
                plugin: 0,
                name: "\"quoted\" é".to_owned(),
                params: BTreeMap::from([("size".to_owned(), spec)]),
                workers: vec![WorkerPlan {
                    slot: 0,
                    first_iteration: 41,
                    iterations: Some(1),
                    repeat: false,
                }],
                contained: None,
                combiner: None,
            }],
            seed: Seed::new(7),
            run: 41,
        };
        let text = plan.to_argument();
        assert!(!text.contains(['"', '\'', '{', ' ', '\\']), "{text}");
        assert_eq!(SchedulePlan::from_argument(&text).unwrap(), plan);
        assert!(SchedulePlan::from_argument("nonsense").is_err());
    }
}
