//! Campaign folders that the history does not know, or knows only in part, go in: those of before it was there, those
//! whose process was killed, and those that were copied here.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use waylay_driver::archive::read_series;
use waylay_driver::store::{CampaignRecord, CampaignState, is_at_work, load_failure};

use crate::sighting::Sighting;
use crate::write::{Context, put_campaign, put_series, put_sightings};
use crate::{History, HistoryError};

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Campaigns that went in.
    pub campaigns: u64,
    /// Failures of these.
    pub failures: u64,
    /// Folders with a record that cannot be read, and why.
    pub unreadable: Vec<String>,
}

impl History {
    /// Takes in what is below the folder of campaigns and not known yet. A campaign that is still at work is left to the
    /// process that runs it.
    pub fn import(&mut self, context: &Context) -> Result<Imported, HistoryError> {
        let out = self.out().to_owned();
        let known = self.at(self.known_states())?;
        let mut records = Vec::new();
        let mut imported = Imported::default();
        let entries =
            fs::read_dir(&out).map_err(|source| HistoryError::File { path: out.clone(), source })?;
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // What is over does not change any more.
            if known.get(&name).is_some_and(|state| state != "running") || is_at_work(&out, &name) {
                continue;
            }
            let path = entry.path().join("campaign.json");
            let Ok(text) = fs::read(&path) else { continue };
            match serde_json::from_slice::<CampaignRecord>(&text) {
                // The folder is its name: a copied campaign does not pass for the one that it is a copy of.
                Ok(record) => records.push(CampaignRecord { name, ..record }),
                Err(error) => imported.unreadable.push(format!("{}: {error}", path.display())),
            }
        }
        // In their order, so that what was new then is new in the campaign that had it first.
        records.sort_by(|a, b| (a.started, &a.name).cmp(&(b.started, &b.name)));
        for mut record in records {
            if record.state == CampaignState::Running {
                record.state = CampaignState::Interrupted;
            }
            let folder = out.join(&record.name);
            let sightings = sightings_in(&folder, &mut imported.unreadable);
            let series = read_series(&folder);
            self.transaction(|connection| {
                let campaign = put_campaign(connection, &record, context)?;
                put_series(connection, campaign, &series)?;
                put_sightings(connection, campaign, &sightings, context)
            })?;
            imported.campaigns += 1;
            imported.failures += sightings.len() as u64;
        }
        Ok(imported)
    }

    fn known_states(&self) -> rusqlite::Result<HashMap<String, String>> {
        let mut select = self.connection.prepare("SELECT name, state FROM campaign")?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }
}

fn sightings_in(campaign: &Path, unreadable: &mut Vec<String>) -> Vec<Sighting> {
    let Ok(folders) = fs::read_dir(campaign.join("failures")) else { return Vec::new() };
    let mut sightings = Vec::new();
    for folder in folders.flatten().map(|entry| entry.path()) {
        // What was never decided is no failure.
        let undecided =
            folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("undecided-"));
        if undecided || !folder.join("failure.json").is_file() {
            continue;
        }
        match load_failure(&folder) {
            Ok(entry) => sightings.push(Sighting::of(&entry)),
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    sightings.sort_by(|a, b| (a.first_seen, &a.signature).cmp(&(b.first_seen, &b.signature)));
    sightings
}
