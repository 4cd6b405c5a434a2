//! A campaign as data: how it stands, and the numbers of its scenarios. This is what `campaign.json` holds.

use std::collections::BTreeSet;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use waylay_dist::Seed;
use waylay_findings::failure::Build;
use waylay_findings::{Environment, TestRecord};
use waylay_report::model::Sample;

use super::randomizer::RandomizerRecord;
use super::shard::ShardRecord;

/// Format of [`CampaignRecord`].
pub const CAMPAIGN_FORMAT: u32 = 1;

/// How a campaign stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CampaignState {
    /// Its driver is at work, or died without a word.
    Running,
    /// It came to its end.
    Finished,
    /// The user stopped it; everything was ended in order.
    Stopped,
    /// Its driver died; noticed at a later start.
    Interrupted,
}

/// What `campaign.json` holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CampaignRecord {
    /// Format of this record.
    #[serde(deserialize_with = "waylay_findings::format::up_to::<CAMPAIGN_FORMAT, _>")]
    pub format: u32,
    /// The campaign's name: its folder.
    pub name: String,
    /// How it stands.
    pub state: CampaignState,
    /// When it began.
    pub started: Timestamp,
    /// When this record was last written.
    pub updated: Timestamp,
    /// The driver's process number.
    pub driver_pid: u32,
    /// Everything random comes from here.
    pub seed: Seed,
    /// Where it runs.
    pub environment: Environment,
    /// What could not run at all, in words.
    pub problems: Vec<String>,
    /// What else tests did that somebody should know, such as processes that they left behind.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
    /// Hosts started.
    pub hosts: u64,
    /// Different failures.
    pub signatures: u64,
    /// Failures.
    pub failures: u64,
    /// By scenario.
    pub scenarios: Vec<ScenarioRecord>,
    /// Which builds of the plugins or the program were run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub builds: Vec<PluginBuild>,
    /// Which part of a night it is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shard: Option<ShardRecord>,
}

/// Which build of a plugin or a program it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginBuild {
    /// The file, named as the tests of the record name it.
    pub plugin: PathBuf,
    /// Its build, and behind it those of the libraries that it brings.
    pub modules: Vec<Build>,
}

impl PluginBuild {
    /// The builds of these files as they are now; of one that cannot be read nothing is told.
    pub fn of(plugins: impl IntoIterator<Item = PathBuf>) -> Vec<PluginBuild> {
        let plugins: BTreeSet<PathBuf> = plugins.into_iter().collect();
        let read = |plugin: PathBuf| PluginBuild { modules: Build::of_program(&plugin), plugin };
        plugins.into_iter().map(read).filter(|build| !build.modules.is_empty()).collect()
    }
}

/// One scenario's numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScenarioRecord {
    /// Its name.
    pub name: String,
    /// Its mode.
    pub mode: String,
    /// Seconds that it ran.
    pub seconds: f64,
    /// What the randomizers did; none when the scenario asked for none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub randomizer: Option<RandomizerRecord>,
    /// By test.
    pub tests: Vec<TestRecord>,
}

impl CampaignRecord {
    /// The numbers of the record at the moment of its last update.
    pub fn sample(&self) -> Sample {
        let tests = || self.scenarios.iter().flat_map(|scenario| &scenario.tests);
        let orders = || tests().filter_map(|test| test.strict.as_ref()?.orders);
        Sample {
            at_s: self.updated.duration_since(self.started).as_secs_f64().max(0.0),
            iterations: tests().map(|test| test.iterations).sum(),
            schedules: tests().filter_map(|test| test.strict.as_ref()).map(|strict| strict.runs).sum(),
            failures: self.failures,
            signatures: self.signatures,
            suspensions: self
                .scenarios
                .iter()
                .filter_map(|scenario| scenario.randomizer.as_ref())
                .map(|randomizer| randomizer.counts.suspensions)
                .sum(),
            orders: orders().map(|orders| orders.seen).sum(),
            orders_predicted: orders().map(|orders| orders.predicted).sum(),
        }
    }
}
