//! A campaign or a failure as pages and reports want it: what its folder tells, with what the history knows beside.

use rusqlite::OptionalExtension;
use waylay_driver::archive::{self, FailureFolder};
use waylay_driver::store::{CampaignRecord, is_at_work};
use waylay_findings::Kind;
use waylay_report::model::{Campaign, CampaignState, Failure};

use crate::query::{FailureRow, SightingRow};
use crate::{History, HistoryError};

/// Campaigns of a failure that are looked through for evidence that is still there.
const LOOKED_AT: u64 = 100;

/// A failure with everything that is known of it.
#[derive(Debug)]
pub struct KnownFailure {
    /// What its newest folder tells; without stacks when no folder is left.
    pub failure: Failure,
    /// The campaign that the folder belongs to; none when no folder is left.
    pub campaign: Option<String>,
    /// The campaigns that had it, newest first.
    pub sightings: Vec<SightingRow>,
}

impl History {
    /// A failure; none when it was never seen.
    pub fn known_failure(&self, signature: &str) -> Result<Option<KnownFailure>, HistoryError> {
        let Some(row) = self.failure(signature)? else { return Ok(None) };
        let sightings = self.sightings(signature, LOOKED_AT)?;
        let mut campaign = None;
        let mut failure = None;
        for sighting in sightings.iter().filter(|sighting| sighting.evidence) {
            let folder = crate::feed::failure_folder(self.out(), &sighting.campaign, &sighting.signature);
            let found = FailureFolder {
                campaign: self.out().join(&sighting.campaign),
                folder,
                id: sighting.signature.clone(),
            };
            if let Ok(read) = archive::read_failure(&found) {
                campaign = Some(sighting.campaign.clone());
                failure = Some(read);
                break;
            }
        }
        let mut failure = match failure {
            Some(failure) => failure,
            None => bare(&row)?,
        };
        if let Some(record) = campaign.as_deref().map(|name| self.record(name)).transpose()?.flatten() {
            archive::measure(&mut failure, &archive::record::campaign(&record));
        }
        failure.state = row.state;
        failure.count_ever = row.count;
        failure.nights = row.nights;
        failure.first_seen = Some(row.first_seen);
        failure.last_seen = Some(row.last_seen);
        failure.suppressed = row.suppressed;
        failure.builds = self.build_range(signature)?;
        Ok(Some(KnownFailure { failure, campaign, sightings }))
    }

    /// A campaign; none when it was never seen.
    pub fn known_campaign(&self, name: &str) -> Result<Option<Campaign>, HistoryError> {
        let Some(record) = self.record(name)? else { return Ok(None) };
        let mut campaign = archive::record::campaign(&record);
        if campaign.state == CampaignState::Running && !is_at_work(self.out(), name) {
            campaign.state = CampaignState::Interrupted;
        }
        campaign.series = self.series(name)?;
        Ok(Some(campaign))
    }

    fn record(&self, campaign: &str) -> Result<Option<CampaignRecord>, HistoryError> {
        let text: Option<String> = self.at(self
            .connection
            .query_row(
                "SELECT record FROM campaign_record WHERE campaign = (SELECT id FROM campaign WHERE name = ?1)",
                [campaign],
                |row| row.get(0),
            )
            .optional())?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}

/// What is left of a failure without a folder.
fn bare(row: &FailureRow) -> Result<Failure, HistoryError> {
    Ok(Failure {
        id: row.signature.clone(),
        signature: row.text.clone(),
        kind: known_kind(&row.signature, &row.kind)?,
        what: row.what.clone(),
        test: Some(row.test.clone()).filter(|test| !test.is_empty()),
        gaps: vec!["its evidence is no longer kept".to_owned()],
        ..Failure::default()
    })
}

/// The kind of a failure of which only the row is left. A database can be newer than this program, and another kind would be a lie.
fn known_kind(signature: &str, word: &str) -> Result<Kind, HistoryError> {
    let unknown = || HistoryError::UnknownKind { signature: signature.to_owned(), kind: word.to_owned() };
    Kind::from_word(word).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_is_not_known_is_not_taken_for_another() {
        assert_eq!(known_kind("race-1", "race").unwrap(), Kind::Race);
        let told = known_kind("haunted-1", "haunted").unwrap_err().to_string();
        assert!(told.starts_with("haunted-1: a newer waylay calls it `haunted`"), "{told}");
    }
}
