//! What the other files of a failure's folder add to its record.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use waylay_report::model::{EvidenceFile, Failure, ForcedSwitch, Growth, Reproduction, ScheduleFacts};

use waylay_report::timeline::{Timeline, suspensions, svg};
use waylay_schedule::Schedule;

use super::record::{self, occurrence};
use crate::failure::{FailureEntry, Occurrence};
use crate::store::{FURTHER_OCCURRENCES, WriteError, atomic, owed};

/// What was counted when a failure was run again, each in a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tally {
    /// Replays of the build that failed.
    SameBuild,
    /// Replays of another build, which may be a mended one: they say nothing about how well it comes back.
    OtherBuild,
    /// New random choices with the build that failed, in the scenario and with the strategy that showed it first: how often the
    /// failure comes.
    Rate,
}

impl Tally {
    fn file(self) -> &'static str {
        match self {
            Tally::SameBuild => "reproduction.json",
            Tally::OtherBuild => "reproduction-of-other-builds.json",
            // What `rate.json` holds was measured with the member of a portfolio that found the failure.
            Tally::Rate => "measured-rate.json",
        }
    }
}

/// How a leak grew.
const GROWTH_FILE: &str = "growth.json";
/// The picture of what led to it.
pub const TIMELINE_FILE: &str = "timeline.svg";
/// What led to it, as data.
pub const TIMELINE_DATA: &str = "timeline.json";
/// What a randomizer did, and the part of it before.
const RANDOMIZER_LOG: [&str; 2] = ["randomizer.log.1", "randomizer.log"];
/// A picture that is larger was not made here.
const LARGEST_TIMELINE: u64 = 4 << 20;
/// Files that are listed; a failure has about ten.
const MOST_FILES: usize = 200;

/// What is read of `strict.json`; whoever runs schedules again reads all of it.
#[derive(Deserialize)]
struct Strict {
    parameters: Parameters,
    steps: u64,
    switches: u64,
    threads: u32,
    confirmed: bool,
}

#[derive(Deserialize)]
struct Parameters {
    strategy: String,
}

/// What is read of `minimized.json`.
#[derive(Deserialize)]
struct Minimized {
    switches: Vec<ForcedSwitch>,
}

/// Adds what stands in the folder's files: the schedule, how often it came back, the picture, the list of files.
pub fn attach(failure: &mut Failure, folder: &Path) {
    if let Some(strict) = read::<Strict>(folder, "strict.json") {
        failure.schedule = Some(ScheduleFacts {
            strategy: strict.parameters.strategy,
            steps: strict.steps,
            switches: strict.switches,
            threads: strict.threads,
            confirmed: strict.confirmed,
            forced: read::<Minimized>(folder, "minimized.json").map(|minimized| minimized.switches),
        });
    }
    failure.reproduction = read(folder, Tally::SameBuild.file());
    failure.other_builds = read(folder, Tally::OtherBuild.file());
    failure.measured = read(folder, Tally::Rate.file());
    failure.growth = read::<Growth>(folder, GROWTH_FILE);
    let picture = folder.join(TIMELINE_FILE);
    if fs::metadata(&picture).is_ok_and(|file| file.is_file() && file.len() <= LARGEST_TIMELINE) {
        failure.timeline_svg = fs::read_to_string(picture).ok();
    } else {
        failure.timeline_svg = timeline(failure, folder).map(|timeline| svg::picture(&timeline));
    }
    failure.files = files(folder);
    if let Ok(lines) = fs::read_to_string(folder.join(FURTHER_OCCURRENCES)) {
        // The last line may have been cut off with its writer.
        let further = lines.lines().filter_map(|line| serde_json::from_str::<Occurrence>(line).ok());
        failure.occurrences.extend(further.map(|further| occurrence(&further)));
    }
}

/// Who ran when until it failed, from whatever the folder has that tells.
pub fn timeline(failure: &Failure, folder: &Path) -> Option<Timeline> {
    if let Some(kept) = read::<Timeline>(folder, TIMELINE_DATA) {
        return Some(kept);
    }
    let title = format!("{} in {}", failure.kind, failure.subject());
    let [older, log] = RANDOMIZER_LOG.map(|name| fs::read_to_string(folder.join(name)).ok());
    if let Some(log) = log {
        return suspensions::timeline(&title, older.as_deref(), &log, failure.kind.word());
    }
    let schedule = Schedule::decode(&fs::read(folder.join("schedule.bin")).ok()?).ok()?;
    Some(waylay_report::timeline::schedule::timeline(&title, &schedule, failure.kind.word()))
}

/// Keeps how a leak grew beside the first time that it was seen.
pub(crate) fn keep_growth(growth: &Growth, folder: &Path) {
    let path = folder.join(GROWTH_FILE);
    if !path.exists() {
        owed::write(&path, &serde_json::to_vec(growth).expect("plain data"), false);
    }
}

/// Adds to how often a failure came back when it was run again; gives the sum.
pub fn add_reproduction(folder: &Path, tally: Tally, more: Reproduction) -> Result<Reproduction, WriteError> {
    let before = read::<Reproduction>(folder, tally.file());
    let sum = before.map_or(more, |before| Reproduction {
        reproduced: before.reproduced.saturating_add(more.reproduced),
        runs: before.runs.saturating_add(more.runs),
        seconds: before.seconds + more.seconds,
    });
    atomic::write(&folder.join(tally.file()), &serde_json::to_vec(&sum).expect("plain data"), false)?;
    Ok(sum)
}

/// Draws the picture into the folder of a failure, if the folder has what it takes.
pub(crate) fn draw(entry: &FailureEntry, folder: &Path) {
    if let Some(timeline) = timeline(&record::failure(entry, folder), folder) {
        owed::write(&folder.join(TIMELINE_FILE), svg::picture(&timeline).as_bytes(), false);
    }
}

fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Option<T> {
    serde_json::from_slice(&fs::read(folder.join(name)).ok()?).ok()
}

/// The plain files of a failure's folder and of the folders of its further occurrences; nothing that a link points to.
fn files(folder: &Path) -> Vec<EvidenceFile> {
    let mut found = Vec::new();
    let mut look = |folder: &Path, prefix: &str| {
        let mut below = Vec::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (Ok(kind), name) = (entry.file_type(), entry.file_name().to_string_lossy().into_owned())
            else {
                continue;
            };
            if kind.is_dir() {
                below.push(name);
            } else if kind.is_file() && !name.ends_with(".part") && found.len() < MOST_FILES {
                let bytes = entry.metadata().map_or(0, |file| file.len());
                found.push(EvidenceFile { name: format!("{prefix}{name}"), bytes });
            }
        }
        below
    };
    for below in look(folder, "") {
        look(&folder.join(&below), &format!("{below}/"));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}
