//! Tests of plugins, in hosts as a campaign makes them: at the level that is the default, patched where it is needed.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use waylay_compare::config::{Config, TestTable};
use waylay_control_protocol::RunConditions;
use waylay_dist::Seed;
use waylay_driver::catalog::Installation;
use waylay_driver::config::{STEP_LEVEL, Strict};
use waylay_driver::trial::{Arena, Scheduling, Trial};
use waylay_schedule::Spec;

use super::Kept;

/// The bugs of the zoo with their depths.
const ZOO: &str = include_str!("../../../../configs/compare/zoo.toml");
/// Of one schedule, by the clock of a busy machine. None takes a thousandth of it.
const HANG: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(600);
/// Failures that end the process cost a host each. A number of failures may end the count as well as one of schedules:
/// either is reached so late with the same probability.
const MOST_FAILURES: u64 = 60;

/// One test with a bug.
#[derive(Clone)]
pub(crate) struct Hosted {
    pub(crate) name: String,
    pub(crate) depth: u32,
    plugin: String,
    test: String,
    params: BTreeMap<String, waylay_dist::Spec>,
    workers: u32,
}

/// All of the zoo, and tests in three languages whose bugs lie between plain accesses, compiled without any flags.
pub(crate) fn all() -> Vec<Hosted> {
    let zoo = Config::parse(ZOO).expect("the comparison is in order");
    let workers = zoo.workers;
    let of_zoo = zoo.tests.into_iter().map(|table: TestTable| Hosted {
        name: table.label.clone().unwrap_or_else(|| table.name.clone()),
        depth: table.depth.expect("the zoo's depths are known"),
        plugin: table.plugin,
        test: table.name,
        params: table.params,
        workers: table.workers.unwrap_or(workers),
    });
    let plain = [
        ("schedules_c", "balance"),
        ("schedules_c", "late-balance"),
        ("schedules_cpp", "seats"),
        ("schedules_cpp", "gone"),
        ("schedules", "ring"),
        ("schedules", "torn"),
    ];
    let of_languages = plain.map(|(plugin, test)| Hosted {
        name: format!("{test} ({plugin})"),
        depth: 2,
        plugin: format!("waylay_{plugin}"),
        test: test.to_owned(),
        params: BTreeMap::new(),
        workers: 2,
    });
    of_zoo.chain(of_languages).collect()
}

/// Where hosts run.
pub(crate) struct Hosts {
    installation: Installation,
    arena: Arena,
    _folder: tempfile::TempDir,
}

impl Hosts {
    pub(crate) fn new() -> Hosts {
        let folder = tempfile::tempdir().expect("a folder");
        let installation = Installation::at(Path::new(env!("CARGO_BIN_EXE_waylay")));
        let arena = Arena::new(&installation, folder.path(), 0).expect("a log can be written");
        Hosts { installation, arena, _folder: folder }
    }

    fn plugin(&self, name: &str) -> PathBuf {
        self.installation.find_plugin(name, Path::new("."), &[]).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn keep(&self, test: &Hosted, strategy: &str, runs: u64) -> Kept {
        let strict = Strict {
            runs: NonZeroU64::new(runs),
            conditions: RunConditions { max_steps: 100_000, ..RunConditions::of_test(STEP_LEVEL) },
            ..Strict::of(Spec::parse(strategy, runs).expect("a strategy"))
        };
        let trial = Trial {
            plugin: self.plugin(&test.plugin),
            test: test.test.clone(),
            params: test.params.clone(),
            workers: test.workers,
            seed: Seed::new(0x9e_ed).derive(&test.name, 0),
            scheduling: Scheduling::Strict(Box::new(strict)),
            runs,
            limit: LIMIT,
            hang: HANG,
            count: true,
            most_failures: MOST_FAILURES,
        };
        let outcome = self.arena.run(&trial).unwrap_or_else(|error| panic!("{}: {error}", test.name));
        let numbers = outcome.strict.expect("strict mode has numbers");
        let program = (test.name.as_str(), test.depth);
        Kept::new(program, strategy, (outcome.runs, outcome.failures), &numbers.guarantees)
    }
}
