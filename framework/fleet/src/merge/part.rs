//! The parts of a night as folders hold them: campaigns that were run with `--shard`, and nights that were merged before.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use waylay_driver::archive;
use waylay_driver::failure::{FailureEntry, Occurrence};
use waylay_driver::store::{CampaignRecord, ShardRecord, load_failure};
use waylay_report::model::Sample;

use super::series;
use crate::identity::Identity;

/// Format of the files in `parts/`.
pub(super) const FORMAT: u32 = 1;
/// The folder of a merged night that holds the records of its parts.
pub(super) const PARTS: &str = "parts";
/// Occurrences of a failure that are kept of a part: a thousand parts with a hundred failures each have to fit into memory.
const NOTED: usize = 8;
/// How deep campaigns are looked for below a folder: a folder of shards, of campaigns, of one campaign.
const DEEPEST: u32 = 3;

/// Why parts could not be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folders do not make up one night.
    #[error("{0}")]
    Input(String),
}

pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> MergeError {
    move |source| MergeError::File { path: path.to_owned(), source }
}

/// What a part says of one failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Its folder's name: the signature, unless it was not decided what it is.
    pub id: String,
    /// How often this part saw it.
    pub count: u64,
    /// Some of those times.
    pub occurrences: Vec<Occurrence>,
}

/// One part, with where it was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// [`FORMAT`].
    pub(super) format: u32,
    /// Names the campaign, wherever its folder lies.
    pub id: String,
    /// Its record, of which `shard` is always there.
    pub record: CampaignRecord,
    /// A few samples of its counters.
    pub(super) series: Vec<Sample>,
    /// Its failures.
    pub failures: Vec<Note>,
    /// The folders in which its failures lie; there may be several.
    #[serde(skip)]
    pub(super) homes: Vec<PathBuf>,
    /// Its effective configuration.
    #[serde(skip)]
    pub(super) config: Option<String>,
}

impl Part {
    /// Which part of the night.
    pub fn shard(&self) -> &ShardRecord {
        self.record.shard.as_ref().expect("a part has one: see `of_campaign` and `of_file`")
    }

    fn of_campaign(folder: &Path) -> Result<Option<Part>, String> {
        let record = archive::read_record(folder).map_err(|error| error.to_string())?;
        let Some(shard) = &record.shard else { return Ok(None) };
        let mut identity = Identity::default();
        identity.text(&shard.night).text(&shard.part.to_string()).text(&shard.machine);
        identity.text(&record.name).text(&record.started.to_string()).text(&record.driver_pid.to_string());
        let mut failures = Vec::new();
        for found in archive::failure_folders(folder) {
            let entry = load_failure(&found.folder).map_err(|error| error.to_string())?;
            failures.push(note(found.id, entry, shard));
        }
        Ok(Some(Part {
            format: FORMAT,
            id: identity.name(),
            series: series::thin(&archive::read_series(folder)),
            failures,
            homes: vec![folder.to_owned()],
            config: fs::read_to_string(folder.join("config.toml")).ok(),
            record,
        }))
    }

    fn of_file(file: &Path, night: &Path) -> Result<Part, String> {
        let text = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut part: Part = serde_json::from_slice(&text)
            .map_err(|error| format!("{} is damaged: {error}", file.display()))?;
        if part.format > FORMAT || part.record.shard.is_none() {
            return Err(format!("{} was written by a newer version of Waylay", file.display()));
        }
        part.homes.push(night.to_owned());
        part.config = fs::read_to_string(night.join("config.toml")).ok();
        Ok(part)
    }

    /// Of two states of the same campaign the later one; what is known of where its failures lie is put together.
    fn join(&mut self, mut other: Part) {
        let order = |part: &Part| (part.record.updated, part.shard().done, part.shard().to);
        if order(&other) > order(self) {
            std::mem::swap(self, &mut other);
        }
        self.homes.extend(other.homes);
        self.config = self.config.take().or(other.config);
    }
}

/// What was counted is what stands in the record: failures are written before it, and a part that was killed in between is
/// gone on with from the record.
fn note(id: String, entry: FailureEntry, shard: &ShardRecord) -> Note {
    let count = shard.failures.get(&entry.signature.id).copied().unwrap_or(0);
    let mut occurrences = entry.occurrences;
    occurrences.truncate(NOTED);
    for occurrence in &mut occurrences {
        // What every worker did is evidence: it is in the folder that is kept, if it is in one.
        occurrence.workers.clear();
        occurrence.pot = None;
    }
    Note { id, count, occurrences }
}

/// All parts, by name, and what could not be read.
pub(super) struct Found {
    pub(super) parts: Vec<Part>,
    pub(super) unreadable: Vec<String>,
}

/// Finds the parts below folders, and those that the merged night has already.
pub(super) fn find(sources: &[PathBuf], night: &Path) -> Result<Found, MergeError> {
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    let mut unreadable = Vec::new();
    for source in sources {
        if !source.is_dir() {
            return Err(MergeError::Input(format!("there is no folder {}", source.display())));
        }
        let mut folders = Vec::new();
        campaigns_below(source, DEEPEST, &mut folders).map_err(at(source))?;
        let before = parts.len() + unreadable.len();
        let mut others = 0;
        for folder in &folders {
            if same(folder, night) && !same(folder, source) {
                continue;
            }
            let read = match folder.join(PARTS).is_dir() {
                true => of_night(folder, &mut unreadable),
                false => match Part::of_campaign(folder) {
                    Ok(Some(part)) => vec![part],
                    Ok(None) => {
                        others += 1;
                        Vec::new()
                    }
                    Err(error) => {
                        unreadable.push(format!("a part cannot be read: {error}"));
                        Vec::new()
                    }
                },
            };
            for part in read {
                match parts.get_mut(&part.id) {
                    Some(known) => known.join(part),
                    None => {
                        parts.insert(part.id.clone(), part);
                    }
                }
            }
        }
        if parts.len() + unreadable.len() == before && others > 0 {
            return Err(MergeError::Input(format!(
                "{} holds no part of a night: its campaigns were run without --shard",
                source.display()
            )));
        }
    }
    if parts.is_empty() {
        let why =
            unreadable.first().cloned().unwrap_or_else(|| "there is no campaign in these folders".to_owned());
        return Err(MergeError::Input(format!("nothing to merge: {why}")));
    }
    Ok(Found { parts: parts.into_values().collect(), unreadable })
}

fn same(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

fn of_night(night: &Path, unreadable: &mut Vec<String>) -> Vec<Part> {
    let mut read = Vec::new();
    for entry in fs::read_dir(night.join(PARTS)).into_iter().flatten().flatten() {
        if entry.path().extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        match Part::of_file(&entry.path(), night) {
            Ok(part) => read.push(part),
            Err(error) => unreadable.push(format!("a part cannot be read: {error}")),
        }
    }
    read
}

fn campaigns_below(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if folder.join("campaign.json").is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    let mut below: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    below.sort();
    for path in below {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && path.is_dir() {
            campaigns_below(&path, depth - 1, found)?;
        }
    }
    Ok(())
}
