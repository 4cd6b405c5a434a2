//! A TOML file becomes a comparison, or a sentence that says what is wrong with it and where.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, de};
use waylay_dist::{Seed, Spec as Distribution, parse_duration};
use waylay_schedule::Spec;

/// A comparison as it was written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// What it is called.
    #[serde(default)]
    pub title: String,
    /// What it shows, for the page.
    #[serde(default)]
    pub about: String,
    /// What to make of it: stands behind the table.
    #[serde(default)]
    pub reading: String,
    /// The tables of the Markdown page.
    #[serde(default = "found")]
    pub tables: Vec<Layout>,
    /// Everything random comes from it.
    #[serde(default = "first_seed")]
    pub seed: Seed,
    /// How often every strategy tries every test.
    #[serde(default = "twenty")]
    pub trials: u32,
    /// A trial runs at most so many schedules.
    #[serde(default = "ten_thousand")]
    pub runs: NonZeroU64,
    /// And takes at most so long.
    #[serde(default = "ten_minutes", deserialize_with = "duration")]
    pub limit: Duration,
    /// A schedule that takes longer hangs.
    #[serde(default = "one_second", deserialize_with = "duration")]
    pub hang: Duration,
    /// A schedule that takes more steps is stopped and not judged.
    #[serde(default = "many_steps")]
    pub max_steps: NonZeroU64,
    /// A schedule that takes more steps has failed: the bug is that it never ends.
    #[serde(default)]
    pub limit_is_failure: bool,
    /// Threads that call the main of each test; as many as in a campaign when nothing is said.
    #[serde(default = "as_in_campaigns")]
    pub workers: u32,
    /// A trial goes on after a failure, to count them.
    #[serde(default)]
    pub count: bool,
    /// More folders to look for plugins in, relative to the file.
    #[serde(default)]
    pub plugin_path: Vec<PathBuf>,
    /// Strategies that need no more than their text.
    #[serde(default)]
    pub strategies: Vec<String>,
    /// Strategies that do.
    #[serde(default, rename = "strategy")]
    pub strategy_tables: Vec<StrategyTable>,
    /// The tests.
    #[serde(default, rename = "test")]
    pub tests: Vec<TestTable>,
}

/// How a table is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// A row for each test, a column for each strategy: in how many trials it was found, after how many schedules.
    Found,
    /// A row for each test: n, k, d, and how often each strategy's schedules showed the bug.
    Rates,
    /// A row for each strategy: what it missed.
    Missed,
    /// A row for each strategy: bugs found in an hour.
    Hourly,
    /// A row for each test that the last strategy found: how much sooner the first one does.
    Sooner,
}

/// A strategy with a name or a budget of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StrategyTable {
    /// What it is: `stress`, `randomizer`, or the text of a strategy.
    pub name: String,
    /// What it is called in the tables.
    pub label: Option<String>,
    /// Instead of the comparison's.
    pub trials: Option<u32>,
    /// Instead of the comparison's.
    pub runs: Option<NonZeroU64>,
    /// Instead of the comparison's.
    #[serde(default, deserialize_with = "some_duration")]
    pub limit: Option<Duration>,
    /// Of a randomizer: how long threads are held.
    pub suspend: Option<Distribution>,
    /// Of a randomizer: rest between two windows.
    pub period: Option<Distribution>,
}

/// One test, or all of a plugin that match a pattern.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TestTable {
    /// The plugin.
    pub plugin: String,
    /// The test's name, or a pattern with `*` and `?`.
    pub name: String,
    /// What it is called in the tables.
    pub label: Option<String>,
    /// d: the depth of its bug, if it is known.
    pub depth: Option<u32>,
    /// Whether it has a bug; tests whose names end in `-fixed` have none.
    pub expect: Option<Expectation>,
    /// Threads that call its main, instead of the comparison's.
    pub workers: Option<u32>,
    /// Its distributions.
    #[serde(default)]
    pub params: BTreeMap<String, Distribution>,
    /// For `--check`: every trial of every strategy finds the bug within so many schedules.
    pub within: Option<u64>,
    /// For `--check`: the share of schedules that show the bug is in here.
    pub rate: Option<Rate>,
}

/// Whether a test has a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expectation {
    /// It must be found.
    Find,
    /// Nothing must be found.
    Clean,
}

/// An interval of probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// At least.
    pub min: f64,
    /// At most.
    pub max: f64,
}

/// Who decides which thread runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Scheduling {
    /// A strategy, one thread at a time.
    Strict(Spec),
    /// The operating system: the test is repeated, and that is all.
    Stress,
    /// The operating system, while a randomizer suspends threads.
    Randomizer {
        /// Rest between two windows.
        period: Option<Distribution>,
        /// How long threads are held.
        suspend: Option<Distribution>,
    },
}

/// A strategy, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    /// What it is called.
    pub label: String,
    /// What it does.
    pub scheduling: Scheduling,
    /// How often it tries each test.
    pub trials: u32,
    /// Schedules of a trial, at most.
    pub runs: u64,
    /// Time of a trial, at most.
    pub limit: Duration,
}

/// What is wrong with a comparison.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is no TOML, or has keys that mean nothing.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A strategy that cannot be read.
    #[error("strategy `{name}`: {reason}")]
    Strategy {
        /// As it was written.
        name: String,
        /// Why.
        reason: String,
    },
    /// Nothing to compare.
    #[error("there is no {0}: {1}")]
    Nothing(&'static str, &'static str),
    /// Two rows or columns of one name.
    #[error("two {0} are called `{1}`: give one of them a `label`")]
    Twice(&'static str, String),
}

fn found() -> Vec<Layout> {
    vec![Layout::Found]
}
fn first_seed() -> Seed {
    Seed::new(1)
}
fn twenty() -> u32 {
    20
}
/// The number that `waylay run` takes, so that what it finds is found here.
fn as_in_campaigns() -> u32 {
    2
}
fn ten_thousand() -> NonZeroU64 {
    NonZeroU64::new(10_000).unwrap_or(NonZeroU64::MIN)
}
fn many_steps() -> NonZeroU64 {
    NonZeroU64::new(100_000).unwrap_or(NonZeroU64::MIN)
}
fn ten_minutes() -> Duration {
    Duration::from_secs(600)
}
fn one_second() -> Duration {
    Duration::from_secs(1)
}
fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    parse_duration(&String::deserialize(from)?).map_err(de::Error::custom)
}
fn some_duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    duration(from).map(Some)
}

impl Config {
    /// Reads a comparison.
    ///
    /// # Errors
    /// With the first problem.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        let config: Config = toml::from_str(text)?;
        config.strategies()?;
        if config.tests.is_empty() {
            return Err(ConfigError::Nothing("test", "name one under [[test]]"));
        }
        Ok(config)
    }

    /// The strategies, checked, in their order.
    ///
    /// # Errors
    /// When one cannot be read, two have one name, or there is none.
    pub fn strategies(&self) -> Result<Vec<Strategy>, ConfigError> {
        let plain = self.strategies.iter().map(|name| StrategyTable {
            name: name.clone(),
            label: None,
            trials: None,
            runs: None,
            limit: None,
            suspend: None,
            period: None,
        });
        let mut checked: Vec<Strategy> = Vec::new();
        for table in plain.chain(self.strategy_tables.iter().cloned()) {
            let strategy = self.strategy(table)?;
            if checked.iter().any(|other| other.label == strategy.label) {
                return Err(ConfigError::Twice("strategies", strategy.label));
            }
            checked.push(strategy);
        }
        if checked.is_empty() {
            return Err(ConfigError::Nothing("strategy", "strategies = [\"pct\", \"random\", \"stress\"]"));
        }
        Ok(checked)
    }

    fn strategy(&self, table: StrategyTable) -> Result<Strategy, ConfigError> {
        let runs = table.runs.unwrap_or(self.runs).get();
        let randomizer = table.name == "randomizer";
        if !randomizer && (table.period.is_some() || table.suspend.is_some()) {
            let reason = "only a randomizer has a period and a suspension".to_owned();
            return Err(ConfigError::Strategy { name: table.name, reason });
        }
        let scheduling = match table.name.as_str() {
            "stress" => Scheduling::Stress,
            "randomizer" => Scheduling::Randomizer { period: table.period, suspend: table.suspend },
            // How many runs are planned decides what a strategy with a confidence does.
            text => match Spec::parse(text, runs) {
                Ok(spec) => Scheduling::Strict(spec),
                Err(error) => {
                    let reason = format!("{error}; beside these there are `stress` and `randomizer`");
                    return Err(ConfigError::Strategy { name: text.to_owned(), reason });
                }
            },
        };
        Ok(Strategy {
            label: table.label.unwrap_or(table.name),
            scheduling,
            trials: table.trials.unwrap_or(self.trials),
            runs,
            limit: table.limit.unwrap_or(self.limit),
        })
    }
}

impl TestTable {
    /// Whether a test of this name has a bug.
    pub fn expectation(&self, name: &str) -> Expectation {
        let by_name = if name.ends_with("-fixed") { Expectation::Clean } else { Expectation::Find };
        self.expect.unwrap_or(by_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "trials = 3\nruns = 100\nstrategies = ['pct:depth=2']\n\
        [[strategy]]\nname = 'stress'\nlimit = '2s'\n[[test]]\nplugin = 'p'\nname = 'a'\nparams = { n = 4 }\n";

    #[test]
    fn a_comparison_is_read_with_its_defaults() {
        let config = Config::parse(SMALL).unwrap();
        let strategies = config.strategies().unwrap();
        assert_eq!(strategies.len(), 2);
        assert_eq!((strategies[0].label.as_str(), strategies[0].runs), ("pct:depth=2", 100));
        assert_eq!(strategies[1].scheduling, Scheduling::Stress);
        assert_eq!(strategies[1].limit, Duration::from_secs(2));
        assert_eq!(config.hang, Duration::from_secs(1));
        assert_eq!(config.tests[0].expectation("a"), Expectation::Find);
        assert_eq!(config.tests[0].expectation("a-fixed"), Expectation::Clean);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let says = |text: &str| Config::parse(text).unwrap_err().to_string();
        assert!(says("trails = 3").contains("trails"), "{}", says("trails = 3"));
        assert!(says("strategies = ['pct']").contains("no test"));
        assert!(says("[[test]]\nplugin = 'p'\nname = 'a'").contains("no strategy"));
        assert!(says("strategies = ['pkt']\n[[test]]\nplugin = 'p'\nname = 'a'").contains("pkt"));
        let twice = "strategies = ['pos', 'pos']\n[[test]]\nplugin = 'p'\nname = 'a'";
        assert!(says(twice).contains("two strategies are called `pos`"));
        let strange =
            "[[strategy]]\nname = 'pos'\nperiod = '1ms'\n[[test]]\nplugin = 'p'\nname = 'a'".to_owned();
        assert!(says(&strange).contains("only a randomizer"));
    }
}
