//! Strategies and tests become trials. A trial's seed and key depend on what it is and on nothing else, so that adding a
//! strategy or a test changes no other trial, and a stored outcome is used again only for the very same trial.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use waylay_dist::{Seed, Spec as Distribution};

use crate::config::{Config, ConfigError, Expectation, Rate, Strategy, TestTable};

/// A test that was found in a plugin.
#[derive(Clone, Debug)]
pub struct Test {
    /// The plugin's file.
    pub plugin: PathBuf,
    /// The plugin as the configuration names it.
    pub plugin_name: String,
    /// The test's name in it.
    pub name: String,
    /// What it is called in the tables.
    pub label: String,
    /// d, if it is known.
    pub depth: Option<u32>,
    /// Whether it has a bug.
    pub expect: Expectation,
    /// Threads that call its main.
    pub workers: u32,
    /// Its distributions.
    pub params: BTreeMap<String, Distribution>,
    /// Every trial finds the bug within so many schedules.
    pub within: Option<u64>,
    /// The share of schedules that show the bug is in here.
    pub rate: Option<Rate>,
}

/// Everything that is to be compared.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Columns.
    pub strategies: Vec<Strategy>,
    /// Rows.
    pub tests: Vec<Test>,
    /// Of the comparison.
    pub seed: Seed,
    /// A schedule that takes longer hangs.
    pub hang: Duration,
    /// A schedule that takes more steps is stopped.
    pub max_steps: u64,
    /// It has failed then.
    pub limit_is_failure: bool,
    /// Trials go on after a failure.
    pub count: bool,
}

/// One trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Index of the strategy.
    pub strategy: usize,
    /// Index of the test.
    pub test: usize,
    /// Its number in the cell.
    pub number: u32,
}

impl Plan {
    /// The plan of a configuration. `find` says which tests of a plugin there are: its file and their names.
    ///
    /// # Errors
    /// When a strategy is wrong, a plugin or a test is not there, or two have one name.
    pub fn new(
        config: &Config,
        mut find: impl FnMut(&TestTable) -> Result<(PathBuf, Vec<String>), String>,
    ) -> Result<Plan, PlanError> {
        let mut tests: Vec<Test> = Vec::new();
        for table in &config.tests {
            let (plugin, names) = find(table).map_err(PlanError::Plugin)?;
            let several = names.len() > 1;
            for name in names {
                let label = match &table.label {
                    Some(label) if several => format!("{label} {name}"),
                    Some(label) => label.clone(),
                    None => name.clone(),
                };
                if tests.iter().any(|other| other.label == label) {
                    return Err(ConfigError::Twice("tests", label).into());
                }
                tests.push(Test {
                    plugin: plugin.clone(),
                    plugin_name: table.plugin.clone(),
                    label,
                    depth: table.depth,
                    expect: table.expectation(&name),
                    workers: table.workers.unwrap_or(config.workers),
                    params: table.params.clone(),
                    within: table.within,
                    rate: table.rate,
                    name,
                });
            }
        }
        Ok(Plan {
            strategies: config.strategies()?,
            tests,
            seed: config.seed,
            hang: config.hang,
            max_steps: config.max_steps.get(),
            limit_is_failure: config.limit_is_failure,
            count: config.count,
        })
    }

    /// Every trial. The first of every cell come first, so that a comparison which is looked at early shows all cells.
    pub fn trials(&self) -> Vec<Trial> {
        let most = self.strategies.iter().map(|strategy| strategy.trials).max().unwrap_or(0);
        let mut trials = Vec::new();
        for number in 0..most {
            for (strategy, how) in self.strategies.iter().enumerate().filter(|(_, how)| number < how.trials) {
                let _ = how;
                trials.extend((0..self.tests.len()).map(|test| Trial { strategy, test, number }));
            }
        }
        trials
    }

    /// The seed of a trial: the same for all strategies of equal text, whatever they are called.
    pub fn seed_of(&self, trial: Trial) -> Seed {
        self.seed.derive(&self.identity(trial.strategy, trial.test), trial.number)
    }

    /// Names a trial in the journal.
    pub fn key(&self, trial: Trial) -> String {
        let strategy = &self.strategies[trial.strategy];
        let budget = format!(
            "{} {:?} {:?} {} {} limit-is-failure={}",
            strategy.runs, strategy.limit, self.hang, self.max_steps, self.count, self.limit_is_failure
        );
        let identity = self.identity(trial.strategy, trial.test);
        format!("{:016x}-{}", digest(&format!("{} {identity} {budget}", self.seed)), trial.number)
    }

    fn identity(&self, strategy: usize, test: usize) -> String {
        let (strategy, test) = (&self.strategies[strategy], &self.tests[test]);
        let params: Vec<String> = test.params.iter().map(|(name, spec)| format!("{name}={spec}")).collect();
        format!(
            "{:?} {} {} {} {}",
            strategy.scheduling,
            test.plugin_name,
            test.name,
            test.workers,
            params.join(" ")
        )
    }
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A plugin or a test is not there.
    #[error("{0}")]
    Plugin(String),
}

/// FNV-1a: short, value-stable, and nobody attacks it.
fn digest(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan(text: &str) -> Plan {
        let config = Config::parse(text).unwrap();
        let find = |table: &TestTable| Ok((PathBuf::from("/p.so"), vec![table.name.clone()]));
        Plan::new(&config, find).unwrap()
    }

    const TWO: &str = "trials = 2\nstrategies = ['pos', 'random']\n[[test]]\nplugin = 'p'\nname = 'a'\n\
        [[test]]\nplugin = 'p'\nname = 'b'\n";

    #[test]
    fn every_cell_comes_before_any_comes_twice() {
        let plan = plan(TWO);
        let trials = plan.trials();
        assert_eq!(trials.len(), 8);
        assert!(trials[..4].iter().all(|trial| trial.number == 0));
        let mut keys: Vec<String> = trials.iter().map(|trial| plan.key(*trial)).collect();
        let mut seeds: Vec<u64> = trials.iter().map(|trial| plan.seed_of(*trial).get()).collect();
        keys.sort();
        keys.dedup();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!((keys.len(), seeds.len()), (8, 8));
    }

    #[test]
    fn a_trial_is_the_same_in_a_larger_comparison() {
        let small = plan(TWO);
        let large = plan(&TWO.replace("['pos', ", "['surw', 'pos', "));
        let of = |strategy| Trial { strategy, test: 1, number: 1 };
        assert_eq!(small.key(of(0)), large.key(of(1)));
        assert_eq!(small.seed_of(of(0)), large.seed_of(of(1)));
        assert_ne!(small.key(of(0)), plan(&format!("runs = 5\n{TWO}")).key(of(0)), "another budget");
        assert_ne!(small.key(of(0)), plan(&format!("seed = 2\n{TWO}")).key(of(0)), "another seed");
    }

    #[test]
    fn a_strategy_may_try_less_often() {
        let plan = plan(&format!("{TWO}[[strategy]]\nname = 'stress'\ntrials = 1\n"));
        assert_eq!(plan.trials().iter().filter(|trial| trial.strategy == 2).count(), 2);
        assert_eq!(plan.trials().len(), 10);
    }
}
