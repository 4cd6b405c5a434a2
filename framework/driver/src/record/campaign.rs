//! A campaign as data: how it stands, and the numbers of its scenarios. This is what `campaign.json` holds.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use waylay_dist::Seed;
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
    /// Which part of a night it is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shard: Option<ShardRecord>,
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
