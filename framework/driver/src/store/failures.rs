//! The failures of a campaign: one entry per signature, on disk and in memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use waylay_dist::Seed;
use waylay_evidence::build::builds;
use waylay_report::cause::Why;
use waylay_report::shell;

use super::atomic::{At, WriteError};
use super::firm;
use super::owed;
use super::retention::{Keep, Kept, Retention};
use crate::environment::Environment;
use crate::failure::{FORMAT, FailureEntry, Finding, Kind, Occurrence, Variant};
use crate::secrets;
use crate::sys;

/// Occurrences listed in an entry; the rest are in its count.
const LISTED_OCCURRENCES: usize = 20;
/// Further ones, one JSON object per line, without what every worker was doing.
pub(crate) const FURTHER_OCCURRENCES: &str = "occurrences.jsonl";
/// How many of those: about a mebibyte. What fails more often is only counted.
const MOST_FURTHER: u64 = 10_000;

/// Files that whoever writes a dump may leave beside it.
const BESIDE_DUMP: [&str; 3] = [CORE_FILE, "randomizer.log", "randomizer.log.1"];
/// The core of a failure, beside its minidump.
pub const CORE_FILE: &str = "core";

/// Writes findings into `failures/` and keeps one entry per signature.
pub struct FailureStore {
    folder: PathBuf,
    retention: Retention,
    seed: Seed,
    environment: Environment,
    entries: BTreeMap<String, Entry>,
    /// Signatures whose occurrences are counted under another one, which has the same cause.
    variants: BTreeMap<String, String>,
    dumps: u64,
    uncatalogued: u64,
    shelved: u64,
}

/// Evidence of a finding that may still turn out to be something else. It is on disk at once, in a folder of its own, so
/// that it is there even if the driver is killed before the decision.
#[derive(Debug)]
pub struct Shelved {
    folder: PathBuf,
    dump: Result<Dumped, String>,
}

/// What was written of a process.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Dumped {
    /// Threads in the dump; none when no dump was wanted.
    pub threads: Option<usize>,
    /// What is missing, and why.
    pub gaps: Vec<String>,
}

struct Entry {
    entry: FailureEntry,
    dirty: bool,
}

/// What became of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The first of its signature.
    pub new: bool,
    /// Occurrences so far.
    pub count: u64,
    /// Its folder; none when there are too many different failures.
    pub folder: Option<PathBuf>,
    /// The signature under which it is counted: its own, or that of a failure with the same cause.
    pub signature: String,
}

impl Entry {
    /// One more occurrence has this signature.
    fn count_variant(&mut self, signature: &str) {
        let variant = self.entry.variants.iter_mut().find(|variant| variant.signature.id == signature);
        variant.into_iter().for_each(|variant| variant.count += 1);
    }
}

impl FailureStore {
    /// Opens the folder of a campaign that has no failures yet.
    pub fn create(
        campaign: &Path,
        retention: Retention,
        seed: Seed,
        environment: Environment,
    ) -> Result<FailureStore, WriteError> {
        let folder = campaign.join("failures");
        fs::create_dir_all(&folder).at(&folder)?;
        Ok(FailureStore {
            folder,
            retention,
            seed,
            environment,
            entries: BTreeMap::new(),
            variants: BTreeMap::new(),
            dumps: 0,
            uncatalogued: 0,
            shelved: 0,
        })
    }

    /// What to keep of one more occurrence of that signature.
    pub fn keep(&self, signature: &str) -> Keep {
        let signature = self.leader(signature);
        self.retention.decide(Kept {
            occurrences: self.entries.get(signature).map_or(0, |entry| entry.entry.count),
            signatures: self.entries.len() as u64,
            dumps: self.dumps,
        })
    }

    /// The signature under which occurrences of this one are counted.
    pub fn leader<'a>(&'a self, signature: &'a str) -> &'a str {
        self.variants.get(signature).map_or(signature, String::as_str)
    }

    /// Has a new failure counted under one that is known, if both are of one kind and one test and have the same cause.
    fn follow(&mut self, finding: &Finding) {
        let id = &finding.signature.id;
        let Some(cause) = finding.why.cause.as_ref().filter(|_| !self.entries.contains_key(id)) else {
            return;
        };
        let is_it = |entry: &&mut Entry| {
            let FailureEntry { kind, test, plugin, why, .. } = &entry.entry;
            (kind, test, plugin) == (&finding.kind, &finding.test, &finding.plugin)
                && why.cause.as_ref().is_some_and(|known| known.is_also(cause))
        };
        if !self.variants.contains_key(id)
            && let Some(known) = self.entries.values_mut().find(is_it)
        {
            let (signature, what) = (finding.signature.clone(), finding.what.clone());
            known.entry.variants.push(Variant { signature, what, count: 0 });
            self.variants.insert(id.clone(), known.entry.signature.id.clone());
        }
    }

    /// Writes the evidence of a finding that is not decided yet. None when nothing of it is to be kept.
    pub fn shelve(
        &mut self,
        finding: &Finding,
        dump: impl FnOnce(&Path) -> Result<Dumped, String>,
    ) -> Option<Shelved> {
        let keep = self.keep(&finding.signature.id);
        if matches!(keep, Keep::CountOnly | Keep::Count) {
            return None;
        }
        self.shelved += 1;
        let folder = self.folder.join(format!("undecided-{}-{}", finding.signature.id, self.shelved));
        owed::make_folder(&folder);
        let dump = match keep {
            Keep::Everything => without_secrets(dump, &folder.join("dump.dmp")),
            _ => Err("there are too many dumps already".to_owned()),
        };
        owed::write(&folder.join("stacks.txt"), finding.stacks_text.as_bytes(), false);
        owed::write(&folder.join("log.txt"), finding.log_tail.as_bytes(), false);
        let entry =
            self.entry_of(finding.clone(), &folder, dump.as_ref().ok().and_then(|dumped| dumped.threads));
        owed::write(&folder.join("failure.json"), &to_json(&entry), true);
        Some(Shelved { folder, dump })
    }

    /// Records a finding whose evidence was shelved before: the dump from then is its dump.
    pub fn record_shelved(&mut self, finding: Finding, shelved: Shelved) -> Recorded {
        let Shelved { folder, dump } = shelved;
        let recorded = self.record(finding, |path| {
            let dumped = dump?;
            for name in BESIDE_DUMP {
                let (from, to) = (folder.join(name), path.with_file_name(name));
                match fs::rename(&from, to) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    result => result.map_err(|error| format!("{}: {error}", from.display()))?,
                }
            }
            let from = folder.join("dump.dmp");
            match fs::rename(&from, path) {
                // It was not wanted.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => result.map_err(|error| format!("{}: {error}", from.display()))?,
            }
            Ok(dumped)
        });
        owed::remove_folder(&folder);
        recorded
    }

    /// Forgets a finding that turned out to be nothing, or part of another.
    pub fn discard(&mut self, shelved: Shelved) {
        owed::remove_folder(&shelved.folder);
    }

    /// Records a finding. `dump` writes a dump to the given path and says what came of it; it is called only
    /// when one is to be kept, and its error becomes a gap in the evidence.
    pub fn record(
        &mut self,
        mut finding: Finding,
        dump: impl FnOnce(&Path) -> Result<Dumped, String>,
    ) -> Recorded {
        let text = &mut finding.signature.text;
        let texts = [text, &mut finding.what, &mut finding.stacks_text, &mut finding.log_tail];
        texts.into_iter().chain(&mut finding.reason).chain(&mut finding.gaps).for_each(secrets::clean_text);
        self.follow(&finding);
        let id = self.leader(&finding.signature.id).to_owned();
        let keep = self.keep(&id);
        if keep == Keep::CountOnly {
            self.uncatalogued += 1;
            return Recorded { new: false, count: self.uncatalogued, folder: None, signature: id };
        }
        let folder = self.folder.join(&id);
        let number = self.entries.get(&id).map_or(1, |entry| entry.entry.count + 1);
        let mut dump_threads = None;
        if keep != Keep::Count {
            let place = if number == 1 { folder.clone() } else { folder.join(format!("again-{number}")) };
            owed::make_folder(&place);
            if keep == Keep::Everything {
                match without_secrets(dump, &place.join("dump.dmp")) {
                    Ok(dumped) => {
                        dump_threads = dumped.threads;
                        finding.gaps.extend(dumped.gaps);
                        self.dumps += u64::from(dump_threads.is_some());
                    }
                    Err(reason) => finding.gaps.push(format!("no dump: {reason}")),
                }
            }
            owed::write(&place.join("stacks.txt"), finding.stacks_text.as_bytes(), false);
            owed::write(&place.join("log.txt"), finding.log_tail.as_bytes(), false);
        }
        match self.entries.get_mut(&id) {
            Some(known) => {
                known.entry.count += 1;
                known.count_variant(&finding.signature.id);
                *known.entry.scenarios.entry(finding.occurrence.scenario.clone()).or_default() += 1;
                known.entry.last_seen = finding.occurrence.at;
                known.dirty = true;
                if known.entry.occurrences.len() < LISTED_OCCURRENCES {
                    known.entry.occurrences.push(finding.occurrence);
                } else if known.entry.count <= LISTED_OCCURRENCES as u64 + MOST_FURTHER {
                    append(&folder.join(FURTHER_OCCURRENCES), finding.occurrence);
                }
            }
            None => {
                let entry = self.entry_of(finding, &folder, dump_threads);
                let script = folder.join(sys::REPLAY_SCRIPT);
                owed::write(&script, sys::replay_script(&entry.replay).as_bytes(), false);
                sys::make_executable(&script);
                owed::write(&folder.join("failure.json"), &to_json(&entry), true);
                self.entries.insert(id.clone(), Entry { entry, dirty: false });
            }
        }
        Recorded { new: number == 1, count: number, folder: Some(folder), signature: id }
    }

    /// Has an occurrence of a known failure lead: its evidence is what is shown from now on, and it stands first.
    pub fn lead(&mut self, finding: Finding) {
        let id = self.leader(&finding.signature.id).to_owned();
        let folder = self.folder.join(&id);
        let Some(known) = self.entries.get_mut(&id) else { return };
        let Finding { mut stacks_text, mut reason, mut gaps, stacks, occurrence, why, .. } = finding;
        reason.iter_mut().chain(&mut gaps).chain([&mut stacks_text]).for_each(secrets::clean_text);
        let entry = &mut known.entry;
        (entry.reason, entry.gaps, entry.stacks, entry.why) = (reason, gaps, stacks, why);
        entry.occurrences.retain(|other| *other != occurrence);
        entry.occurrences.insert(0, occurrence);
        entry.occurrences.truncate(LISTED_OCCURRENCES);
        known.dirty = true;
        owed::write(&folder.join("stacks.txt"), stacks_text.as_bytes(), false);
    }

    /// Says why a known failure happens, which was found out later.
    pub fn explain(&mut self, signature: &str, why: &Why) {
        let leader = self.leader(signature).to_owned();
        if let Some(known) = self.entries.get_mut(&leader) {
            known.entry.why = why.clone();
            known.dirty = true;
        }
    }

    /// Counts one more occurrence of a signature that nobody looked at.
    pub fn count_again(&mut self, signature: &str, at: jiff::Timestamp) {
        let leader = self.leader(signature).to_owned();
        if let Some(known) = self.entries.get_mut(&leader) {
            known.entry.count += 1;
            known.count_variant(signature);
            // Who counts without looking has one scenario.
            if let Some(count) = known.entry.scenarios.values_mut().next() {
                *count += 1;
            }
            known.entry.last_seen = at;
            known.dirty = true;
        }
    }

    fn entry_of(&self, finding: Finding, folder: &Path, dump_threads: Option<usize>) -> FailureEntry {
        FailureEntry {
            format: FORMAT,
            kind: finding.kind,
            signature: finding.signature,
            what: finding.what,
            reason: finding.reason,
            test: finding.test,
            plugin: finding.plugin,
            count: 1,
            first_seen: finding.occurrence.at,
            last_seen: finding.occurrence.at,
            campaign_seed: self.seed,
            scenarios: BTreeMap::from([(finding.occurrence.scenario.clone(), 1)]),
            occurrences: vec![finding.occurrence],
            stacks: finding.stacks,
            dump_threads,
            gaps: finding.gaps,
            // A page shows this line to people who are in some other folder.
            replay: format!(
                "waylay replay {}",
                shell::word(std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()))
            ),
            builds: builds(&finding.code),
            environment: self.environment.clone(),
            machines: BTreeMap::new(),
            why: finding.why,
            variants: Vec::new(),
        }
    }

    /// Entries that changed since the last [`flush`](FailureStore::flush); new ones are written at once and not among them.
    pub fn changed(&self) -> Vec<&FailureEntry> {
        self.entries.values().filter(|entry| entry.dirty).map(|entry| &entry.entry).collect()
    }

    /// Writes the entries that changed, and those that somebody removed. Call about once a second.
    pub fn flush(&mut self) {
        for (id, entry) in &mut self.entries {
            let path = self.folder.join(id).join("failure.json");
            if entry.dirty || !path.exists() {
                owed::write(&path, &to_json(&entry.entry), false);
                entry.dirty = false;
            }
        }
    }

    /// All entries, most frequent kinds of trouble first: by kind, then count.
    pub fn entries(&self) -> Vec<&FailureEntry> {
        let mut all: Vec<&FailureEntry> = self.entries.values().map(|entry| &entry.entry).collect();
        all.sort_by(|a, b| (a.kind, b.count, a.first_seen).cmp(&(b.kind, a.count, b.first_seen)));
        all
    }

    /// Folder of an entry.
    pub fn folder_of(&self, signature: &str) -> PathBuf {
        self.folder.join(signature)
    }

    /// Occurrences so far, all signatures together.
    pub fn total(&self) -> u64 {
        self.entries.values().map(|entry| entry.entry.count).sum::<u64>() + self.uncatalogued
    }

    /// Occurrences so far of one kind.
    pub fn total_of(&self, kind: Kind) -> u64 {
        self.entries.values().filter(|entry| entry.entry.kind == kind).map(|entry| entry.entry.count).sum()
    }

    /// Different failures so far.
    pub fn signatures(&self) -> usize {
        self.entries.len()
    }

    /// Occurrences that were only counted because there are too many different failures.
    pub fn uncatalogued(&self) -> u64 {
        self.uncatalogued
    }
}

/// One more line. What was there stays whatever happens; a line that was cut off is left out by who reads it. Of one that
/// cannot be written the count remains.
fn append(path: &Path, mut occurrence: Occurrence) {
    occurrence.workers.clear();
    occurrence.pot = None;
    let mut line = serde_json::to_vec(&occurrence).expect("plain data");
    line.push(b'\n');
    path.parent().map(owed::make_folder);
    firm::remove_link(path);
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    let _ = file.and_then(|mut file| file.write_all(&line));
}

fn to_json(entry: &FailureEntry) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(entry).expect("an entry is plain data");
    text.push(b'\n');
    text
}

/// Has a dump written and takes what is secret out of it. One that cannot be cleaned is not kept. A core has nothing secret
/// from the beginning.
fn without_secrets(
    dump: impl FnOnce(&Path) -> Result<Dumped, String>,
    path: &Path,
) -> Result<Dumped, String> {
    firm::remove_link(path);
    let dumped = dump(path)?;
    match secrets::clean_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let _ = fs::remove_file(path);
            Err(format!("secrets could not be taken out of it: {error}"))
        }
        _ => Ok(dumped),
    }
}
