//! Cells, strategies and tests as numbers.

use serde::Serialize;

use crate::config::{Expectation, Scheduling};
use crate::journal::{Journal, Record};
use crate::plan::{Plan, Trial};
use crate::statistics::{interval, mean, median};

/// How sure an interval of a detection rate is.
pub const CONFIDENCE: f64 = 0.95;

/// One strategy on one test.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The strategy's label.
    pub strategy: String,
    /// The test's label.
    pub test: String,
    /// Trials whose outcome is known.
    pub trials: u32,
    /// Those that found a failure.
    pub found: u32,
    /// Schedules of all trials together that were judged.
    pub runs: u64,
    /// Those that reached the limit of steps and were not.
    pub unjudged: u64,
    /// Those that failed.
    pub failures: u64,
    /// Failures by schedules, and in which interval the probability is.
    pub rate: f64,
    /// Its lower end.
    pub rate_low: f64,
    /// Its upper end.
    pub rate_high: f64,
    /// Schedules to the first failure, mean of the trials that found one.
    pub mean_runs: Option<f64>,
    /// Schedules to the first failure, median of all trials; none when half of them found nothing.
    pub median_runs: Option<f64>,
    /// Seconds to the first failure, mean of the trials that found one.
    pub mean_seconds: Option<f64>,
    /// Seconds to the first failure, median of all trials.
    pub median_seconds: Option<f64>,
    /// Seconds of running, all trials together.
    pub seconds: f64,
    /// What it was, in one word.
    pub kind: Option<String>,
    /// n.
    pub threads: u32,
    /// k: steps that count.
    pub steps: u64,
    /// All steps.
    pub longest: u64,
    /// The least probability that the strategy promises for a schedule, for the test's depth.
    pub promised: Option<f64>,
    /// A search has seen everything and found nothing.
    pub exhausted: bool,
    /// For every trial: the first schedule that failed, and the seconds until then.
    pub firsts: Vec<Option<(u64, f64)>>,
}

/// All that is known.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// What the comparison is called.
    pub title: String,
    /// The columns.
    pub strategies: Vec<StrategySummary>,
    /// The rows.
    pub tests: Vec<TestSummary>,
    /// By test, then by strategy.
    pub cells: Vec<Vec<Cell>>,
    /// Trials that are not run yet.
    pub missing: usize,
    /// Seconds of running, all trials together.
    pub seconds: f64,
}

/// One strategy over all tests with a bug.
#[derive(Clone, Debug, Serialize)]
pub struct StrategySummary {
    /// Its label.
    pub label: String,
    /// One thread at a time.
    pub strict: bool,
    /// Schedules of a trial, at most.
    pub budget: u64,
    /// Tests with a bug that no trial found.
    pub missed: Vec<String>,
    /// Tests with a bug that some trials found and some did not.
    pub sometimes: Vec<String>,
    /// Tests with a bug that every trial found.
    pub always: usize,
    /// Correct tests in which something was found.
    pub false_alarms: Vec<String>,
    /// Geometric mean of the median schedules to the bug, over the tests where there is a median.
    pub typical_runs: Option<f64>,
    /// Geometric mean of the median seconds to the bug, over the tests where there is a median.
    pub typical_seconds: Option<f64>,
    /// Failures in an hour of running, first ones only unless failures are counted.
    pub failures_per_hour: f64,
    /// Different bugs that were found, by hour of running on all tests.
    pub bugs_per_hour: f64,
}

/// One test.
#[derive(Clone, Debug, Serialize)]
pub struct TestSummary {
    /// Its label.
    pub label: String,
    /// d.
    pub depth: Option<u32>,
    /// Whether it has a bug.
    pub expect: Expectation,
}

impl Results {
    /// What the journal says about the plan.
    pub fn new(title: &str, plan: &Plan, journal: &Journal) -> Results {
        let mut missing = 0;
        let cells: Vec<Vec<Cell>> = (0..plan.tests.len())
            .map(|test| {
                (0..plan.strategies.len())
                    .map(|strategy| {
                        let trials = plan.strategies[strategy].trials;
                        let records: Vec<&Record> = (0..trials)
                            .filter_map(|number| journal.get(&plan.key(Trial { strategy, test, number })))
                            .collect();
                        missing += trials as usize - records.len();
                        cell(plan, strategy, test, &records)
                    })
                    .collect()
            })
            .collect();
        let strategies = (0..plan.strategies.len()).map(|strategy| summary(plan, strategy, &cells)).collect();
        let tests = plan
            .tests
            .iter()
            .map(|test| TestSummary { label: test.label.clone(), depth: test.depth, expect: test.expect })
            .collect();
        let seconds = cells.iter().flatten().map(|cell| cell.seconds).sum();
        Results { title: title.to_owned(), strategies, tests, cells, missing, seconds }
    }

    /// Rows with a bug, with their index.
    pub fn with_bug(&self) -> impl Iterator<Item = (usize, &TestSummary)> {
        self.tests.iter().enumerate().filter(|(_, test)| test.expect == Expectation::Find)
    }
}

fn cell(plan: &Plan, strategy: usize, test: usize, records: &[&Record]) -> Cell {
    let (how, what) = (&plan.strategies[strategy], &plan.tests[test]);
    let firsts: Vec<Option<(u64, f64)>> =
        records.iter().map(|record| record.first_run.zip(record.first_seconds)).collect();
    let found: Vec<(u64, f64)> = firsts.iter().flatten().copied().collect();
    let runs: u64 = records.iter().map(|record| record.runs).sum();
    let failures: u64 = records.iter().map(|record| record.failures).sum();
    let (rate_low, rate_high) = interval(failures, runs, CONFIDENCE);
    let promised = |record: &&Record| record.promised.get(&what.depth?).copied();
    Cell {
        strategy: how.label.clone(),
        test: what.label.clone(),
        trials: records.len() as u32,
        found: found.len() as u32,
        runs,
        unjudged: records.iter().map(|record| record.unjudged).sum(),
        failures,
        rate: if runs == 0 { 0.0 } else { failures as f64 / runs as f64 },
        rate_low,
        rate_high,
        mean_runs: mean(&found.iter().map(|first| first.0 as f64).collect::<Vec<_>>()),
        median_runs: median(firsts.iter().map(|first| first.map(|first| first.0 as f64))),
        mean_seconds: mean(&found.iter().map(|first| first.1).collect::<Vec<_>>()),
        median_seconds: median(firsts.iter().map(|first| first.map(|first| first.1))),
        seconds: records.iter().map(|record| record.seconds).sum(),
        kind: records.iter().find_map(|record| record.kind.clone()),
        threads: records.iter().map(|record| record.threads).max().unwrap_or(0),
        steps: records.iter().map(|record| record.steps).max().unwrap_or(0),
        longest: records.iter().map(|record| record.longest).max().unwrap_or(0),
        promised: records.iter().filter_map(promised).min_by(f64::total_cmp),
        exhausted: !records.is_empty() && records.iter().all(|record| record.exhausted),
        firsts,
    }
}

fn summary(plan: &Plan, strategy: usize, cells: &[Vec<Cell>]) -> StrategySummary {
    let how = &plan.strategies[strategy];
    let of = |expect: Expectation| {
        cells
            .iter()
            .zip(&plan.tests)
            .filter(move |(_, test)| test.expect == expect)
            .map(move |(row, _)| &row[strategy])
            .filter(|cell| cell.trials > 0)
    };
    let labels = |keep: fn(&Cell) -> bool, expect: Expectation| -> Vec<String> {
        of(expect).filter(|cell| keep(cell)).map(|cell| cell.test.clone()).collect()
    };
    let bugs = of(Expectation::Find);
    let (mut failures, mut seconds, mut different, mut medians, mut times) =
        (0, 0.0, 0, Vec::new(), Vec::new());
    for cell in bugs {
        failures += cell.failures;
        seconds += cell.seconds;
        different += u64::from(cell.found > 0);
        medians.extend(cell.median_runs.map(f64::ln));
        times.extend(cell.median_seconds.map(|seconds| seconds.max(1e-9).ln()));
    }
    let per_hour = |count: u64| if seconds > 0.0 { count as f64 / seconds * 3600.0 } else { 0.0 };
    StrategySummary {
        label: how.label.clone(),
        strict: matches!(how.scheduling, Scheduling::Strict(_)),
        budget: how.runs,
        missed: labels(|cell| cell.found == 0, Expectation::Find),
        sometimes: labels(|cell| cell.found > 0 && cell.found < cell.trials, Expectation::Find),
        always: of(Expectation::Find).filter(|cell| cell.found == cell.trials).count(),
        false_alarms: labels(|cell| cell.found > 0, Expectation::Clean),
        typical_runs: mean(&medians).map(f64::exp),
        typical_seconds: mean(&times).map(f64::exp),
        failures_per_hour: per_hour(failures),
        bugs_per_hour: per_hour(different),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::journal::tests::record;
    use crate::plan::tests::plan;

    /// Two strategies on a bug and a twin: the first finds the bug after 10 and 30 schedules, the second once in two trials.
    pub(crate) fn small() -> (Plan, Results) {
        let plan = plan(
            "trials = 2\nruns = 100\nstrategies = ['pct', 'random']\n[[test]]\nplugin = 'p'\nname = 'a<b'\ndepth = 2\n\
             [[test]]\nplugin = 'p'\nname = 'a-fixed'\n",
        );
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&folder.path().join("t")).unwrap();
        let first = |trial: Trial| match (trial.strategy, trial.test, trial.number) {
            (0, 0, 0) => Some(10),
            (0, 0, 1) => Some(30),
            (1, 0, 0) => Some(50),
            _ => None,
        };
        for trial in plan.trials() {
            journal.add(record(&plan.key(trial), first(trial))).unwrap();
        }
        let results = Results::new("small", &plan, &journal);
        (plan, results)
    }

    #[test]
    fn cells_say_how_often_and_how_soon() {
        let (_, results) = small();
        let cell = &results.cells[0][0];
        assert_eq!((cell.trials, cell.found, cell.runs, cell.failures), (2, 2, 40, 2));
        assert_eq!((cell.median_runs, cell.mean_runs), (Some(20.0), Some(20.0)));
        assert!(cell.rate == 0.05 && cell.rate_low < 0.05 && cell.rate_high > 0.05);
        assert_eq!(cell.promised, Some(0.01));
        let once = &results.cells[0][1];
        assert_eq!((once.found, once.median_runs, once.mean_runs), (1, None, Some(50.0)));
        assert_eq!(results.missing, 0);
    }

    #[test]
    fn strategies_say_what_they_miss() {
        let (_, results) = small();
        assert_eq!(results.strategies[0].always, 1);
        assert!(results.strategies[0].missed.is_empty());
        assert_eq!(results.strategies[1].sometimes, ["a<b"]);
        assert!(results.strategies[1].false_alarms.is_empty());
        assert_eq!(results.strategies[0].typical_runs.map(f64::round), Some(20.0));
    }
}
