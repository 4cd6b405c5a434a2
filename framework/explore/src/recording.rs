//! What is kept of a failure so that it can be run again, beside what every failure has.
//!
//! `strict.json` says what was run and how, `schedule.bin` who ran when (minimised, where that was done: then `found.bin` is
//! what was found), `stdout.txt` and `stderr.txt` what was written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use waylay_control_protocol::{Earlier, Level, Pair, RegionError, RegionMap, RunConditions, Settings, Site};
use waylay_driver::archive;
use waylay_driver::failure::Kind;
use waylay_driver::secrets;
use waylay_driver::store::owed;
use waylay_report::timeline::{Timeline, svg};
use waylay_schedule::{DecodeError, RunParameters, Schedule};

use crate::oracle::Expected;
use crate::program::Program;

/// Format of [`StrictRecord`].
pub const FORMAT: u32 = 4;
/// The oldest format that is read.
const OLDEST: u32 = 1;
const RECORD: &str = "strict.json";
const SCHEDULE: &str = "schedule.bin";
const FOUND: &str = "found.bin";
/// Stretches of a timeline that are kept as data: a few MiB.
const MOST_STRETCHES: usize = 20_000;

/// How runs are made, whatever the strategy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conditions {
    /// What was said of them.
    #[serde(flatten)]
    pub run: RunConditions,
    /// A run that does not end by itself is killed after so many milliseconds.
    pub patience_ms: u64,
    /// The program begins the run itself: it is the host of a plugin test.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_process: bool,
    /// Which accesses were found to be worth a step.
    #[serde(default)]
    pub steps: Steps,
    /// Runs that the host makes before the one that is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Before>,
}

/// Runs of the process in which a failure was found, made again before the failing one: a process that has run a test before
/// does not do what is done once in a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Before {
    /// The first run of that process.
    pub first: u64,
    /// How often it is made without counting.
    pub repeats: u64,
    /// Then it and those behind it are made once, up to this one, which is not among them.
    pub through: u64,
    /// What the strategy was given at first.
    pub parameters: RunParameters,
    /// How many of [`Steps::sites`] the first run had, from which the others were learned; absent when none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sites: Option<usize>,
}

impl Before {
    /// In the words of the library.
    pub fn earlier(&self) -> Earlier {
        Earlier { first: self.first, repeats: self.repeats, through: self.through }
    }
}

/// What runs showed of the program's accesses: which of them are steps, and which races are known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Steps {
    /// Where plain accesses are steps, from the memory level on; everywhere when absent.
    pub sites: Option<Vec<u64>>,
    /// It was looked which other accesses are worth a step: a loop that waits is seen at those too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub profiled: bool,
    /// Accesses to what is handed over are steps, too: those that the sites mark so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub handed: bool,
    /// Places of two accesses whose races are known and do not end the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_races: Vec<[u64; 2]>,
    /// Places whose plain accesses are atomic ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub atomic_sites: Vec<u64>,
}

impl Default for Conditions {
    fn default() -> Conditions {
        Conditions {
            run: RunConditions { patch: false, ..RunConditions::of_program(Level::Atomics) },
            patience_ms: 10_000,
            in_process: false,
            steps: Steps::default(),
            before: None,
        }
    }
}

impl Conditions {
    /// The library's settings for one run.
    pub fn settings(&self, seed: u64, run: u64) -> Settings {
        let mut settings = self.run.settings(seed, run);
        settings.in_process = u32::from(self.in_process);
        settings.set_profile(self.steps.profiled, self.steps.handed);
        settings
    }

    /// A region for processes that make such runs.
    pub fn region(&self) -> Result<RegionMap, RegionError> {
        self.run.region(self.in_process)
    }

    /// The library's settings for one run in that region, with the chosen sites and the known races written there.
    pub fn settings_in(&self, region: &mut RegionMap, seed: u64, run: u64) -> Settings {
        let mut settings = self.settings(seed, run);
        if let Some(sites) = &self.steps.sites {
            let sites: Vec<Site> = sites.iter().map(|&site| Site(site)).collect();
            region.choose(&mut settings, &sites);
        }
        if self.run.races {
            let pairs = self.steps.known_races.iter().map(|&[one, other]| Pair::new(Site(one), Site(other)));
            let sites = self.steps.atomic_sites.iter().map(|&site| Site(site));
            region.forgive(&mut settings, &pairs.collect::<Vec<_>>(), &sites.collect::<Vec<_>>());
        }
        if let Some(before) = &self.before {
            let parameters = serde_json::to_string(&before.parameters).unwrap_or_default();
            region.recall(&mut settings, before.earlier(), &parameters);
            if let Some(first) = before.sites {
                region.learn(&mut settings, first);
            }
        }
        settings
    }

    /// How long a run may take, with those that come before it.
    pub fn patience(&self) -> Duration {
        let before = self.before.as_ref().map_or(0, |before| before.earlier().count());
        // Up to so many milliseconds each are common, and each takes as long as a run at the very most.
        const EACH: u64 = 5;
        Duration::from_millis(
            self.patience_ms.saturating_add(before.saturating_mul(EACH.min(self.patience_ms))),
        )
    }
}

/// Everything that is needed to run a failure again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StrictRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// What was run.
    pub program: Program,
    /// Under which conditions.
    pub conditions: Conditions,
    /// What a good run looks like.
    pub expected: Expected,
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the run, as people read it everywhere: from 1 for a program, and a test's own number of the iteration.
    pub run: u64,
    /// Number of the run from 0, which the random choices are derived from.
    #[serde(default)]
    pub index: u64,
    /// What the strategy was given.
    pub parameters: RunParameters,
    /// What broke.
    pub kind: Kind,
    /// Tells different failures apart.
    pub key: String,
    /// Steps of the schedule.
    pub steps: u64,
    /// Switches of the schedule.
    pub switches: u64,
    /// Threads.
    pub threads: u32,
    /// Whether a fresh process that followed the schedule failed in the same way.
    pub confirmed: bool,
    /// Something outside the library's control took part.
    pub partly_controlled: bool,
}

/// Why a recorded failure cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The record makes no sense.
    #[error("{}: is not a record of a strict failure: {source}", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
    /// The record is of a later version.
    #[error("{}: format {format} is not known, this program reads {FORMAT}", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// The schedule makes no sense.
    #[error("{}: {source}", .path.display())]
    Schedule {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: DecodeError,
    },
}

/// The folder of a failure that was given as a folder or as a file in it.
pub fn folder_of(path: &Path) -> PathBuf {
    if path.is_file() { path.parent().unwrap_or(Path::new(".")).to_owned() } else { path.to_owned() }
}

/// Whether the failure is one of strict mode.
pub fn is_strict(path: &Path) -> bool {
    folder_of(path).join(RECORD).is_file()
}

/// Writes a file of a failure; while its campaign is at work that may be later, when there is room.
pub fn write(folder: &Path, name: &str, content: &[u8]) -> Result<(), RecordError> {
    let path = folder.join(name);
    if owed::is_at_work(&path) {
        owed::write(&path, content, false);
        return Ok(());
    }
    let part = folder.join(format!("{name}.part"));
    let at = |source| RecordError::File { path: path.clone(), source };
    let mut content = content.to_vec();
    secrets::clean(&mut content);
    fs::write(&part, content).map_err(at)?;
    fs::rename(&part, &path).map_err(at)
}

/// Writes record and schedule into a failure's folder.
pub fn save(folder: &Path, record: &StrictRecord, schedule: &Schedule) -> Result<(), RecordError> {
    write(folder, SCHEDULE, &schedule.encode())?;
    let mut text = serde_json::to_vec_pretty(record)
        .map_err(|source| RecordError::Record { path: folder.join(RECORD), source })?;
    text.push(b'\n');
    write(folder, RECORD, &text)
}

/// Keeps the schedule that was found beside the one that was made of it.
pub(crate) fn save_found(folder: &Path, schedule: &Schedule) -> Result<(), RecordError> {
    write(folder, FOUND, &schedule.encode())
}

/// The schedule that was found, before it was minimised.
pub fn load_found(path: &Path) -> Result<Schedule, RecordError> {
    let folder = folder_of(path);
    let found = folder.join(FOUND);
    let path = if found.exists() { found } else { folder.join(SCHEDULE) };
    let bytes = fs::read(&path).map_err(|source| RecordError::File { path: path.clone(), source })?;
    Schedule::decode(&bytes).map_err(|source| RecordError::Schedule { path, source })
}

/// Draws who ran when into a failure's folder, and keeps it as data.
pub fn draw(folder: &Path, timeline: &Timeline) -> Result<(), RecordError> {
    write(folder, archive::TIMELINE_FILE, svg::picture(timeline).as_bytes())?;
    let text = serde_json::to_vec(&timeline.last(MOST_STRETCHES))
        .map_err(|source| RecordError::Record { path: folder.join(archive::TIMELINE_DATA), source })?;
    write(folder, archive::TIMELINE_DATA, &text)
}

/// Reads them back.
pub fn load(path: &Path) -> Result<(StrictRecord, Schedule), RecordError> {
    let folder = folder_of(path);
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read(&path).map_err(|source| RecordError::File { path: path.clone(), source })
    };
    let record = parse(&read(RECORD)?, &folder.join(RECORD))?;
    let schedule = Schedule::decode(&read(SCHEDULE)?)
        .map_err(|source| RecordError::Schedule { path: folder.join(SCHEDULE), source })?;
    Ok((record, schedule))
}

/// A record of any format that is read.
fn parse(bytes: &[u8], path: &Path) -> Result<StrictRecord, RecordError> {
    let wrong = |source| RecordError::Record { path: path.to_owned(), source };
    let mut written: Value = serde_json::from_slice(bytes).map_err(wrong)?;
    let format = written["format"].as_u64().and_then(|format| u32::try_from(format).ok()).unwrap_or(0);
    if !(OLDEST..=FORMAT).contains(&format) {
        return Err(RecordError::Format { path: path.to_owned(), format });
    }
    // Before format 2 runs counted from 0 and had no index of their own.
    if format < 2 {
        written["index"] = written["run"].clone();
    }
    // Before format 3 what was said of a run stood in two places.
    if format < 3
        && let Some(conditions) = written["conditions"].as_object_mut()
    {
        let mut steps = conditions.get("steps").and_then(Value::as_object).cloned().unwrap_or_default();
        for key in ["level", "patch", "memory-modules", "races"] {
            let value = steps.remove(key).unwrap_or_else(|| before_levels(key));
            conditions.insert(key.to_owned(), value);
        }
        conditions.insert("steps".to_owned(), Value::Object(steps));
    }
    serde_json::from_value(written).map_err(wrong)
}

/// What a record means that was written before there were levels.
fn before_levels(key: &str) -> Value {
    match key {
        "level" => Level::Atomics.name().into(),
        "memory-modules" => Value::Array(Vec::new()),
        _ => Value::Bool(false),
    }
}
