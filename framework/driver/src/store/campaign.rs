//! One campaign's folder: made, kept up to date, closed, or found interrupted.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use waylay_dist::Seed;
use waylay_schedule::coverage::OrdersSeen;
use waylay_schedule::promise::Promise;

use super::atomic::{self, At, WriteError};
use super::firm;
use super::marker::{self, Marker};
use super::owed;
use super::randomizer::{BoundRecord, RandomizerRecord};
use super::series::Series;
use super::shard::ShardRecord;
use crate::environment::Environment;

/// Format of [`CampaignRecord`].
const FORMAT: u32 = 1;

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
    /// The same for every depth.
    pub guarantees: Vec<Promise>,
    /// Of wall time, starts of hosts and examinations of failures included.
    pub schedules_per_second: f64,
    /// The same for steps.
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

/// A campaign whose driver died.
#[derive(Clone, Debug)]
pub struct InterruptedCampaign {
    /// Its folder.
    pub folder: PathBuf,
    /// Its last words; none when even they are unreadable.
    pub record: Option<CampaignRecord>,
}

/// The folder of a campaign that is at work.
#[derive(Debug)]
pub struct Campaign {
    folder: PathBuf,
    marker: Marker,
    series: Series,
    /// What is written to `campaign.json`.
    pub record: CampaignRecord,
}

impl Campaign {
    /// Makes the folder of a new campaign below `out`.
    pub fn create(
        out: &Path,
        seed: Seed,
        environment: Environment,
        config: &str,
    ) -> Result<Campaign, WriteError> {
        let started = Timestamp::now();
        marker::make_folder(out)?;
        let (name, folder) = new_folder(out, started)?;
        let marker = Marker::take(out, &name)?;
        let config_path = folder.join("config.toml");
        atomic::write(&config_path, config.as_bytes(), false)?;
        let record = CampaignRecord {
            format: FORMAT,
            name,
            state: CampaignState::Running,
            started,
            updated: started,
            driver_pid: std::process::id(),
            seed,
            environment,
            problems: Vec::new(),
            notes: Vec::new(),
            hosts: 0,
            signatures: 0,
            failures: 0,
            scenarios: Vec::new(),
            shard: None,
        };
        let mut campaign = Campaign { folder, marker, series: Series::default(), record };
        // Where not even that fits, nothing is begun.
        atomic::write(&campaign.path(), &campaign.text(), true)?;
        firm::begin(&campaign.folder);
        campaign.write(false);
        Ok(campaign)
    }

    /// The campaign's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the record. Call about once a second.
    pub fn save(&mut self) {
        self.write(false);
    }

    fn path(&self) -> PathBuf {
        self.folder.join("campaign.json")
    }

    fn text(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(&self.record).expect("a record is plain data")
    }

    fn write(&mut self, durable: bool) {
        self.record.updated = Timestamp::now();
        owed::write(&self.path(), &self.text(), durable);
        let over = self.record.state != CampaignState::Running;
        self.series.take(&self.record, &self.folder, over);
    }

    /// Writes the last record and marks the campaign as over.
    pub fn close(mut self, state: CampaignState) -> CampaignRecord {
        self.record.state = state;
        self.write(true);
        owed::settle();
        firm::end(&self.folder);
        self.marker.remove();
        self.record
    }

    /// Finds the campaigns below `out` whose driver died, and marks them. Each is reported once.
    pub fn find_interrupted(out: &Path) -> Vec<InterruptedCampaign> {
        let mut found = Vec::new();
        for marker in marker::all(out) {
            let Some(name) = marker.file_name().filter(|_| marker::is_held(&marker) == Some(false)) else {
                continue;
            };
            let folder = out.join(name);
            let path = folder.join("campaign.json");
            let mut record: Option<CampaignRecord> =
                fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
            if let Some(record) = &mut record {
                record.state = CampaignState::Interrupted;
                let text = serde_json::to_vec_pretty(record).expect("a record is plain data");
                // On a full or read-only disk the marker stays, and the next start says it again.
                if atomic::write(&path, &text, true).is_err() {
                    found.push(InterruptedCampaign { folder, record: Some(record.clone()) });
                    continue;
                }
            }
            let _ = fs::remove_file(&marker);
            found.push(InterruptedCampaign { folder, record });
        }
        found.sort_by(|a, b| a.folder.cmp(&b.folder));
        found
    }
}

/// A folder named after the time; with a number behind when two campaigns start in one second.
fn new_folder(out: &Path, started: Timestamp) -> Result<(String, PathBuf), WriteError> {
    let base = started.strftime("%Y%m%d-%H%M%S").to_string();
    for number in 1.. {
        let name = if number == 1 { base.clone() } else { format!("{base}-{number}") };
        let folder = out.join(&name);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            result => return result.at(&folder).map(|()| (name, folder)),
        }
    }
    unreachable!("the numbers do not run out before the disk does")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign(out: &Path) -> Campaign {
        Campaign::create(out, Seed::new(7), Environment::capture(""), "seed = 7\n").unwrap()
    }

    #[test]
    fn a_campaign_that_was_closed_is_not_interrupted() {
        let out = tempfile::tempdir().unwrap();
        let record = campaign(out.path()).close(CampaignState::Finished);
        assert_eq!(record.state, CampaignState::Finished);
        assert!(Campaign::find_interrupted(out.path()).is_empty());
    }

    #[test]
    fn a_campaign_whose_driver_lives_is_not_interrupted() {
        let out = tempfile::tempdir().unwrap();
        let _alive = campaign(out.path());
        assert!(Campaign::find_interrupted(out.path()).is_empty());
    }

    #[test]
    fn a_campaign_whose_driver_died_is_reported_once_and_marked() {
        let out = tempfile::tempdir().unwrap();
        let folder = campaign(out.path()).folder().to_owned();
        let found = Campaign::find_interrupted(out.path());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].folder, folder);
        let text = fs::read_to_string(folder.join("campaign.json")).unwrap();
        assert!(text.contains("\"interrupted\""), "{text}");
        assert!(Campaign::find_interrupted(out.path()).is_empty());
    }

    #[test]
    fn two_campaigns_in_one_second_get_two_folders() {
        let out = tempfile::tempdir().unwrap();
        let (a, b) = (campaign(out.path()), campaign(out.path()));
        assert_ne!(a.folder(), b.folder());
    }
}
