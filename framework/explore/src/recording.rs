//! What is kept of a failure so that it can be run again, beside what every failure has.
//!
//! `strict.json` says what was run and how, `schedule.bin` who ran when (minimised, where that was done: then `found.bin` is
//! what was found), `stdout.txt` and `stderr.txt` what was written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use waylay_control_protocol::{
    ClockSource, Earlier, Instrumentation, Level, Memory, Pair, RandomSource, RegionError, RegionMap,
    Settings, Site, Switching, Timeouts, cache_folder,
};
use waylay_driver::archive;
use waylay_driver::failure::Kind;
use waylay_driver::store::owed;
use waylay_report::timeline::{Timeline, svg};
use waylay_schedule::{DecodeError, RunParameters, Schedule};

use crate::oracle::Expected;
use crate::program::Program;

/// Format of [`StrictRecord`].
pub const FORMAT: u32 = 2;
/// The oldest format that is read: it has no [`StrictRecord::index`], and its runs count from 0.
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
    /// Kernel threads hand a baton on; otherwise fibers.
    pub baton: bool,
    /// A run is stopped after so many steps.
    pub max_steps: u64,
    /// A run that does not end by itself is killed after so many milliseconds.
    pub patience_ms: u64,
    /// Timeouts and sleeps end only when nothing else can run.
    pub idle_timeouts: bool,
    /// The program sees the real clocks.
    pub real_time: bool,
    /// The program's random bytes come from the kernel.
    pub real_random: bool,
    /// The program begins the run itself: it is the host of a plugin test.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_process: bool,
    /// Calls that allocate, free, write or use files are steps too.
    #[serde(default)]
    pub calls: bool,
    /// Freed memory is kept back, so that its misuse shows.
    #[serde(default)]
    pub guard: bool,
    /// When others see a store.
    #[serde(default = "sequential", skip_serializing_if = "is_sequential", with = "memory_text")]
    pub memory: Memory,
    /// What is a step.
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

/// Which instructions of the program are steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Steps {
    /// From library calls only to every access.
    #[serde(with = "level_text")]
    pub level: Level,
    /// Unmodified code is patched.
    pub patch: bool,
    /// Modules beside the program itself whose every access is patched at the memory level.
    pub memory_modules: Vec<String>,
    /// Where plain accesses are steps, from the memory level on; everywhere when absent.
    pub sites: Option<Vec<u64>>,
    /// It was looked which other accesses are worth a step: a loop that waits is seen at those too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub profiled: bool,
    /// Accesses to what is handed over are steps, too: those that the sites mark so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub handed: bool,
    /// Accesses that nothing orders end the run and are failures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub races: bool,
    /// Places of two accesses whose races are known and do not end the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_races: Vec<[u64; 2]>,
    /// Places whose plain accesses are atomic ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub atomic_sites: Vec<u64>,
}

impl Default for Steps {
    fn default() -> Steps {
        Steps {
            level: Level::Atomics,
            patch: false,
            memory_modules: Vec::new(),
            sites: None,
            profiled: false,
            handed: false,
            races: false,
            known_races: Vec::new(),
            atomic_sites: Vec::new(),
        }
    }
}

fn sequential() -> Memory {
    Memory::Sc
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde asks
fn is_sequential(memory: &Memory) -> bool {
    *memory == Memory::Sc
}

mod memory_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use waylay_control_protocol::Memory;

    #[allow(clippy::trivially_copy_pass_by_ref)] // as serde asks
    pub(super) fn serialize<S: Serializer>(memory: &Memory, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(memory.name())
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Memory, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

mod level_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use waylay_control_protocol::Level;

    pub(super) fn serialize<S: Serializer>(level: &Level, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(level.name())
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Level, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Default for Conditions {
    fn default() -> Conditions {
        Conditions {
            baton: false,
            max_steps: 10_000_000,
            patience_ms: 10_000,
            idle_timeouts: false,
            real_time: false,
            real_random: false,
            memory: Memory::Sc,
            steps: Steps::default(),
            in_process: false,
            calls: true,
            guard: true,
            before: None,
        }
    }
}

impl Conditions {
    /// The library's settings for one run.
    pub fn settings(&self, seed: u64, run: u64) -> Settings {
        let switching = if self.baton { Switching::Baton } else { Switching::Carrier };
        let mut settings = Settings::new(switching, seed, run);
        settings.max_steps = self.max_steps;
        settings.in_process = u32::from(self.in_process);
        settings.timeouts = if self.idle_timeouts { Timeouts::Idle } else { Timeouts::Choice } as u32;
        settings.clock = if self.real_time { ClockSource::Real } else { ClockSource::Virtual } as u32;
        settings.random = if self.real_random { RandomSource::Real } else { RandomSource::Seeded } as u32;
        settings.calls = u32::from(self.calls);
        settings.guard = u32::from(self.guard);
        settings.set_profile(self.steps.profiled, self.steps.handed);
        settings.races = u32::from(self.steps.races);
        settings.memory = self.memory as u32;
        settings
    }

    /// A region for processes that make such runs.
    pub fn region(&self) -> Result<RegionMap, RegionError> {
        let mut region = RegionMap::create()?;
        let mut wanted = Instrumentation::new(self.steps.level, self.steps.patch);
        if !wanted.set_memory_modules(&self.steps.memory_modules) {
            return Err(RegionError::TooLong(self.steps.memory_modules.iter().map(String::len).sum()));
        }
        // An order that is missed would be taken for a race, and a store that is would overtake others.
        wanted.all = u32::from(self.steps.races || self.memory == Memory::Tso);
        wanted.delays = u32::from(self.memory == Memory::Tso);
        wanted.host = u32::from(self.in_process);
        if let Some(folder) = cache_folder() {
            wanted.set_cache(&folder);
        }
        region.set_instrumentation(wanted);
        Ok(region)
    }

    /// The library's settings for one run in that region, with the chosen sites and the known races written there.
    pub fn settings_in(&self, region: &mut RegionMap, seed: u64, run: u64) -> Settings {
        let mut settings = self.settings(seed, run);
        if let Some(sites) = &self.steps.sites {
            let sites: Vec<Site> = sites.iter().map(|&site| Site(site)).collect();
            region.choose(&mut settings, &sites);
        }
        if self.steps.races {
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
    let path = folder.join(RECORD);
    let mut record: StrictRecord = serde_json::from_slice(&read(RECORD)?)
        .map_err(|source| RecordError::Record { path: path.clone(), source })?;
    if !(OLDEST..=FORMAT).contains(&record.format) {
        return Err(RecordError::Format { path, format: record.format });
    }
    if record.format == OLDEST {
        record.index = record.run;
    }
    let schedule = Schedule::decode(&read(SCHEDULE)?)
        .map_err(|source| RecordError::Schedule { path: folder.join(SCHEDULE), source })?;
    Ok((record, schedule))
}
