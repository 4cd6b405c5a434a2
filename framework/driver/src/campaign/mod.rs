//! A campaign: scenarios one after the other, each supervised to its end, with everything on disk.

mod assignment;
mod attending;
mod combination;
mod corruption;
mod curve;
mod deadline;
mod disturbance;
mod draft;
mod explaining;
mod hang;
mod investigation;
mod lateness;
mod leaks;
mod mix;
mod now;
mod numbers;
mod patience;
mod progress;
mod randomizing;
mod recording;
mod running;
mod scenario;
mod scene;
mod session;
mod stopped;
pub mod strict;
mod supervisor;
mod totals;
mod verdict;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use waylay_dist::Seed;
use waylay_evidence::{Symbolizer, SymbolizerLimits};
use waylay_page::Clock;

pub use combination::{Combination, MixPart};
pub use disturbance::Randomization;
pub use leaks::LeakSettings;
pub use mix::{Mix, Selection, mix};
pub use scenario::{Inside, Scenario, ScenarioTest};
pub use strict::{Examination, Examiner, FailedSchedule, LibraryConflicts, LibraryLook, Past};
pub use waylay_leaks::LeakPolicy;

use crate::archive;
use crate::catalog::Installation;
use crate::config::{FileMode, Pattern};
use crate::dumps::{DumpPlan, Dumper};
use crate::environment::Environment;
use crate::host::{HostLog, StartError};
use crate::interrupt;
use crate::report::{self, FailureLine, Live, Summary};
use crate::secrets;
use crate::store::{
    Averages, Campaign, CampaignState, FailureStore, Outcomes, PluginBuild, Retention, ShardRecord,
    TestRecord, WriteError, owed,
};
use crate::sys;
use investigation::Investigator;
use supervisor::Supervisor;

/// Said when hosts cannot tell where memory was allocated.
const NO_HEAP_ACCOUNTING: &str = "the control library is not beside the command: memory leaks cannot be seen";

/// How a campaign is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder for the results.
    pub out: PathBuf,
    /// Everything random comes from here.
    pub seed: Seed,
    /// When to end; none means when the scenarios are over.
    pub duration: Option<Duration>,
    /// The effective configuration, kept with the results.
    pub config: String,
    /// In which formats dumps are written, and how large; how much memory they hold is the scenarios'.
    pub dumps: DumpPlan,
    /// How much evidence to keep.
    pub retention: Retention,
    /// Bytes of log to keep.
    pub log_limit: u64,
    /// Leave a hung process for a debugger.
    pub keep_hung: bool,
    /// Average distance between sampled allocations in bytes; none turns leak detection off.
    pub heap_sampling: Option<u64>,
    /// Which leaks are looked for.
    pub leaks: LeakSettings,
    /// End the campaign after so many failures.
    pub stop_after_failures: Option<u64>,
    /// Longest time that something late is given to come back.
    pub most_grace: Duration,
    /// Who may read the files.
    pub mode: FileMode,
    /// Names of environment variables whose values are not written down, beside those that look secret.
    pub redact: Vec<Pattern>,
    /// Which part of a night it is, if it is one; its counters are filled in.
    pub shard: Option<ShardRecord>,
}

/// Why a campaign could not go on.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The disk.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// No host could be started.
    #[error("{0}")]
    Start(String),
}

impl From<StartError> for CampaignError {
    fn from(error: StartError) -> CampaignError {
        CampaignError::Start(error.to_string())
    }
}

/// Runs scenarios one after the other and returns what came of it.
///
/// `examiner` runs failing schedules of strict scenarios again. The first Ctrl-C ends the campaign in order, the second at once.
pub fn run(
    scenarios: Vec<Scenario>,
    problems: Vec<String>,
    installation: &Installation,
    options: &Options,
    live: &mut dyn Live,
    examiner: Option<Box<dyn Examiner>>,
) -> Result<Summary, CampaignError> {
    let result = run_all(scenarios, problems, installation, options, live, examiner);
    // What is said about the end comes after what was said before.
    report::settle();
    result
}

fn run_all(
    mut scenarios: Vec<Scenario>,
    problems: Vec<String>,
    installation: &Installation,
    options: &Options,
    live: &mut dyn Live,
    examiner: Option<Box<dyn Examiner>>,
) -> Result<Summary, CampaignError> {
    interrupt::watch();
    sys::watch_for_looks();
    sys::restrict_new_files(options.mode.0);
    secrets::add_patterns(&options.redact);
    let began = Instant::now();
    let environment = Environment::capture(&options.config);
    let (seed, shard) = (options.seed, options.shard.clone());
    let mut campaign =
        Campaign::create_part(&options.out, seed, environment.clone(), &options.config, shard)?;
    campaign.record.problems = problems;
    let tests = scenarios.iter().flat_map(|scenario| &scenario.tests);
    campaign.record.builds = PluginBuild::of(tests.map(|test| test.plugin.clone()));
    live.campaign(&campaign.record, campaign.folder());
    let folder = absolute(campaign.folder());
    let mut failures = FailureStore::create(&folder, options.retention, options.seed, environment)?;
    let log = HostLog::create(&folder.join("host.log"), options.log_limit)?;
    let command = installation.host_command();
    if options.heap_sampling.is_some() && !command.accounts_heap() {
        live.note(NO_HEAP_ACCOUNTING);
        campaign.record.problems.push(NO_HEAP_ACCOUNTING.to_owned());
    }
    let averages = Averages::load(&options.out);
    for test in scenarios.iter_mut().flat_map(|scenario| &mut scenario.tests) {
        test.known_average_ns = averages.of(&test.plugin, &test.name);
    }
    let deadline = options.duration.map(|time| began + time);
    let kept_hosts = {
        let mut supervisor = Supervisor {
            command,
            randomizer: installation.randomizer_command(&folder),
            clock: Clock::calibrate(),
            log,
            options,
            campaign: &mut campaign,
            failures: &mut failures,
            investigator: Investigator::new(Symbolizer::new(SymbolizerLimits::default())),
            live,
            began,
            housekept: began,
            kept_hosts: Vec::new(),
            earlier_iterations: 0,
            unattributed: Vec::new(),
            suspected: Vec::new(),
            averages,
            examiner,
            dumper: Dumper::new(options.dumps.clone()),
            examined: Default::default(),
        };
        let durations: Vec<Option<Duration>> = scenarios.iter().map(|scenario| scenario.duration).collect();
        for (place, scenario) in scenarios.into_iter().enumerate() {
            if interrupt::requested() {
                break;
            }
            if deadline.is_some_and(|end| Instant::now() >= end) {
                let name = &scenario.name;
                supervisor.problem(format!("scenario {name}: the campaign's time was over before it began"));
                continue;
            }
            // What loading takes is not taken from the scenarios that come after.
            let reserved: Duration = durations[place + 1..].iter().flatten().sum();
            supervisor.run(scenario, deadline.map(|end| end.checked_sub(reserved).unwrap_or(end)))?;
        }
        supervisor.kept_hosts
    };
    live.counted(&failures.changed());
    failures.flush();
    campaign.record.failures = failures.total();
    campaign.record.signatures = failures.signatures() as u64;
    let iterations: u64 = campaign.record.scenarios.iter().flat_map(|s| &s.tests).map(|t| t.iterations).sum();
    let mut entries = failures.entries();
    entries.sort_by(|a, b| (a.first_seen, &a.signature.id).cmp(&(b.first_seen, &b.signature.id)));
    let state = if interrupt::requested() { CampaignState::Stopped } else { CampaignState::Finished };
    part_of_night(&mut campaign, &failures, state == CampaignState::Finished);
    let record = campaign.close(state);
    let ran = archive::record::campaign(&record);
    let lines = entries
        .into_iter()
        .zip(1..)
        .map(|(entry, number)| FailureLine::of(entry, number, failures.folder_of(&entry.signature.id), &ran));
    let lines = lines.collect();
    owed::take_news().iter().for_each(|text| live.note(text));
    let missing = owed::missing(&folder);
    if let Some(sentence) = missing.sentence() {
        live.note(&format!("{sentence}; what was told is true all the same"));
    }
    let exit_code = missing.exit_code(match (failures.total(), iterations, record.problems.is_empty()) {
        (1.., _, _) => 1,
        (0, 0, _) | (0, _, false) => 2,
        (0, _, true) => 0,
    });
    live.campaign(&record, &folder);
    Ok(Summary {
        folder,
        campaign: record,
        failures: lines,
        uncatalogued: failures.uncatalogued(),
        kept_hosts,
        exit_code,
    })
}

/// Fills in what a part of a night amounts to.
fn part_of_night(campaign: &mut Campaign, failures: &FailureStore, done: bool) {
    let tests = || campaign.record.scenarios.iter().flat_map(|scenario| &scenario.tests);
    // A schedule that failed is none that was finished, and still was made.
    let made = |test: &TestRecord| test.strict.as_ref().map_or(test.iterations, |strict| strict.runs);
    let to = tests().map(made).sum();
    let mut outcomes = Outcomes::default();
    for test in tests().filter(|test| test.strict.is_some()) {
        outcomes.add(made(test), test.failures, &test.name);
    }
    let exhausted = tests().count() > 0
        && tests().all(|test| test.strict.as_ref().is_some_and(|strict| strict.exhausted));
    if let Some(shard) = &mut campaign.record.shard {
        let counts = failures.entries().into_iter().map(|entry| (entry.signature.id.clone(), entry.count));
        (shard.to, shard.done, shard.exhausted) = (to, done, exhausted);
        shard.outcomes = outcomes.to_string();
        shard.failures = counts.collect();
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
