//! What campaigns left behind, read back as the data of reports, at any later time and whatever happened to their driver.
//!
//! Nothing here changes a file. What cannot be read is named in the report as a problem and does not stop the rest: a
//! disk that lost one file must not hide the failures that are there.

mod bundle;
mod evidence;
mod night;
mod rates;
pub mod record;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use waylay_report::model::{Campaign, CampaignState, Failure, Sample};

use crate::store::{CampaignRecord, SERIES_FILE, is_at_work, load_failure};
pub use bundle::{BundleError, bundle};
pub use evidence::{TIMELINE_DATA, TIMELINE_FILE, Tally, add_reproduction, attach, timeline};
pub(crate) use evidence::{draw, keep_growth};
pub use night::{Since, compare, night};
pub use rates::{measure, rate_in, strategy_of};

/// Why something that was asked for is not there.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// There are no campaigns.
    #[error("there is no campaign in {}: run one with `waylay run`, or name its folder with --out", .0.display())]
    Empty(PathBuf),
    /// No campaign of that name.
    #[error("there is no campaign `{name}` in {}{}", .out.display(), the_latest(.latest))]
    NoCampaign {
        /// The name.
        name: String,
        /// Where it was looked for.
        out: PathBuf,
        /// The newest one there.
        latest: Option<String>,
    },
    /// No failure of that name.
    #[error("there is no failure `{id}` in {}: `waylay failures` lists them", .out.display())]
    NoFailure {
        /// The name.
        id: String,
        /// Where it was looked for.
        out: PathBuf,
    },
    /// Fewer failures than the number.
    #[error(
        "there is no failure {number} in campaign {campaign}, which has {there}: `waylay failures` lists them"
    )]
    NoNumber {
        /// What was asked for.
        number: usize,
        /// The latest campaign.
        campaign: String,
        /// How many it has.
        there: usize,
    },
    /// More than one failure begins so.
    #[error("`{id}` could be {}: write more of it", .candidates.join(" or "))]
    Ambiguous {
        /// What was written.
        id: String,
        /// What it could be.
        candidates: Vec<String>,
    },
    /// The record of a campaign is damaged, or of a newer version.
    #[error(
        "{} cannot be read ({source}): name another campaign, or move this one's folder away; its failures are still there, \
         each in a folder below",
        .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A file cannot be read.
    #[error("{}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

fn the_latest(name: &Option<String>) -> String {
    name.as_ref().map_or_else(String::new, |name| format!(" (the latest is {name})"))
}

/// The folders of all campaigns below `out`, oldest first: their names are times.
pub fn campaigns(out: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(out) else { return Vec::new() };
    let mut folders: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_campaign(path)).collect();
    folders.sort_by_key(|folder| order(folder));
    folders
}

fn is_campaign(folder: &Path) -> bool {
    folder.join("campaign.json").is_file()
}

/// `20261116-052119-10` comes after `20261116-052119-9`.
fn order(folder: &Path) -> (String, u64) {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match name.splitn(3, '-').collect::<Vec<_>>()[..] {
        [day, time, number] => (format!("{day}-{time}"), number.parse().unwrap_or(0)),
        _ => (name, 0),
    }
}

/// The folder of a campaign that is named by its folder, or by its name below `out`; the latest when nothing is named.
pub fn find_campaign(out: &Path, name: Option<&Path>) -> Result<PathBuf, ArchiveError> {
    if let Some(name) = name {
        // The folder itself, a file in it, or a name below `out`.
        let folder = if name.is_file() { name.parent().unwrap_or(Path::new(".")) } else { name };
        for candidate in [folder.to_owned(), out.join(name)] {
            if is_campaign(&candidate) {
                return Ok(candidate);
            }
        }
    }
    let latest = campaigns(out).pop();
    match (name, latest) {
        (None, Some(latest)) => Ok(latest),
        (None, None) => Err(ArchiveError::Empty(out.to_owned())),
        (Some(name), latest) => Err(ArchiveError::NoCampaign {
            name: name.display().to_string(),
            out: out.to_owned(),
            latest: latest.and_then(|folder| Some(folder.file_name()?.to_string_lossy().into_owned())),
        }),
    }
}

/// A failure's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureFolder {
    /// The campaign that it belongs to.
    pub campaign: PathBuf,
    /// The folder.
    pub folder: PathBuf,
    /// Its name: the signature.
    pub id: String,
}

/// The failures' folders of a campaign, by name. Folders of undecided ones are there too: of a campaign whose driver was
/// killed they are all that is left of a failure.
pub fn failure_folders(campaign: &Path) -> Vec<FailureFolder> {
    let Ok(entries) = fs::read_dir(campaign.join("failures")) else { return Vec::new() };
    let mut found: Vec<FailureFolder> = entries
        .flatten()
        .filter(|entry| entry.path().join("failure.json").is_file())
        .map(|entry| FailureFolder {
            campaign: campaign.to_owned(),
            folder: entry.path(),
            id: entry.file_name().to_string_lossy().into_owned(),
        })
        .collect();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}

/// The failures of a campaign in the order in which they were first seen. Their places, counted from 1, are what the summary
/// calls them by.
pub fn numbered(campaign: &Path) -> Vec<FailureFolder> {
    #[derive(serde::Deserialize)]
    struct Seen {
        first_seen: Timestamp,
    }
    let first_seen = |found: &FailureFolder| {
        let record = fs::read(found.folder.join("failure.json")).ok()?;
        Some(serde_json::from_slice::<Seen>(&record).ok()?.first_seen)
    };
    let decided = failure_folders(campaign).into_iter().filter(|found| !found.id.starts_with("undecided-"));
    let mut seen: Vec<_> = decided.map(|found| (first_seen(&found), found)).collect();
    // A record that cannot be read has no time: it comes last, where it moves no other.
    seen.sort_by_key(|(at, found)| (at.is_none(), *at, found.id.clone()));
    seen.into_iter().map(|(_, found)| found).collect()
}

/// The failure that a number means, if it is one: of the latest campaign. Longer ones begin a signature.
fn by_number(out: &Path, id: &str) -> Option<Result<FailureFolder, ArchiveError>> {
    let number: usize = id.parse().ok().filter(|number| (1..1000).contains(number))?;
    let campaign = campaigns(out).pop()?;
    let mut all = numbered(&campaign);
    if number <= all.len() {
        return Some(Ok(all.swap_remove(number - 1)));
    }
    let campaign = campaign.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(Err(ArchiveError::NoNumber { number, campaign, there: all.len() }))
}

/// The folder of a failure that is named by its folder, by its number in the latest campaign, or by the beginning of its
/// signature; the newest campaign that has it counts.
pub fn find_failure(out: &Path, id: &Path) -> Result<FailureFolder, ArchiveError> {
    let folder = if id.is_file() { id.parent().unwrap_or(Path::new(".")) } else { id };
    if folder.join("failure.json").is_file() {
        let folder = std::path::absolute(folder)
            .map_err(|source| ArchiveError::Read { path: folder.to_owned(), source })?;
        let above = |levels: usize| folder.ancestors().nth(levels).unwrap_or(Path::new("/")).to_owned();
        let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(FailureFolder { campaign: above(2), id, folder });
    }
    let id = id.display().to_string();
    if let Some(found) = by_number(out, &id) {
        return found;
    }
    let mut candidates: Vec<FailureFolder> = Vec::new();
    for campaign in campaigns(out).into_iter().rev() {
        for found in failure_folders(&campaign) {
            if found.id == id {
                return Ok(found);
            }
            // The hash alone names it too: `b05fe2` is `deadlock-b05fe2c2e43f8fce`.
            let hash = found.id.rsplit('-').next().unwrap_or_default();
            let begins = !id.is_empty() && (found.id.starts_with(&id) || hash.starts_with(&id));
            if begins && candidates.iter().all(|known| known.id != found.id) {
                candidates.push(found);
            }
        }
    }
    match candidates.len() {
        0 => Err(ArchiveError::NoFailure { id, out: out.to_owned() }),
        1 => Ok(candidates.remove(0)),
        _ => Err(ArchiveError::Ambiguous {
            id,
            candidates: candidates.into_iter().map(|found| found.id).collect(),
        }),
    }
}

/// The record of a campaign as it was last written.
pub fn read_record(folder: &Path) -> Result<CampaignRecord, ArchiveError> {
    let path = folder.join("campaign.json");
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|source| ArchiveError::Damaged { path, source }),
        Err(source) => Err(ArchiveError::Read { path, source }),
    }
}

/// How a campaign stood over time; nothing where that was not written or cannot be read.
pub fn read_series(folder: &Path) -> Vec<Sample> {
    let text = fs::read(folder.join(SERIES_FILE)).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// A campaign with its series. One that says it runs although its driver is dead was interrupted.
pub fn read_campaign(folder: &Path) -> Result<Campaign, ArchiveError> {
    let record = read_record(folder)?;
    let mut campaign = record::campaign(&record);
    if campaign.state == CampaignState::Running && !is_alive(folder) {
        campaign.state = CampaignState::Interrupted;
    }
    campaign.series = read_series(folder);
    Ok(campaign)
}

/// Whether the driver of that campaign lives.
fn is_alive(folder: &Path) -> bool {
    let name = folder.file_name().and_then(OsStr::to_str);
    folder.parent().zip(name).is_some_and(|(out, name)| is_at_work(out, name))
}

/// The failures of a campaign with what their folders tell, and what could not be read.
pub fn read_failures(campaign: &Path) -> (Vec<Failure>, Vec<String>) {
    let mut failures = Vec::new();
    let mut problems = Vec::new();
    for found in failure_folders(campaign) {
        match read_failure(&found) {
            Ok(failure) => failures.push(failure),
            Err(error) => problems.push(error.to_string()),
        }
    }
    (failures, problems)
}

/// One failure with what its folder tells.
pub fn read_failure(found: &FailureFolder) -> Result<Failure, ArchiveError> {
    let entry = load_failure(&found.folder)
        .map_err(|source| ArchiveError::Read { path: found.folder.clone(), source })?;
    let mut failure = record::failure(&entry, &found.folder);
    if found.id.starts_with("undecided-") {
        failure.id = found.id.clone();
        failure.gaps.push("the driver died before it was decided what this is".to_owned());
    }
    attach(&mut failure, &found.folder);
    Ok(failure)
}

#[cfg(test)]
mod tests;
