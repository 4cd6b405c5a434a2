//! One campaign's folder: made, kept up to date, closed, or found interrupted.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use waylay_dist::Seed;

use super::atomic::{self, At, WriteError};
use super::firm;
use super::marker::{self, Marker};
use super::owed;
use super::series::Series;
use crate::environment::Environment;
use crate::record::{CAMPAIGN_FORMAT, CampaignRecord, CampaignState, ShardRecord};

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
        Campaign::create_part(out, seed, environment, config, None)
    }

    /// Makes the folder of a new campaign that is part of a night. Its first record says so: what is killed a moment later, or finds
    /// no room for another record, is a part that is missing and not a campaign of its own.
    pub fn create_part(
        out: &Path,
        seed: Seed,
        environment: Environment,
        config: &str,
        shard: Option<ShardRecord>,
    ) -> Result<Campaign, WriteError> {
        let started = Timestamp::now();
        marker::make_folder(out)?;
        let (name, folder) = new_folder(out, started)?;
        let marker = Marker::take(out, &name)?;
        let config_path = folder.join("config.toml");
        atomic::write(&config_path, config.as_bytes(), false)?;
        let record = CampaignRecord {
            format: CAMPAIGN_FORMAT,
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
            builds: Vec::new(),
            shard,
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
