//! The failures of all parts, one entry per signature: with all their occurrences and machines, and the best evidence.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use waylay_driver::archive;
use waylay_driver::failure::{FailureEntry, Occurrence};
use waylay_driver::store::load_failure;
use waylay_report::shell;

use super::Stage;
use super::choose::Standing;
use super::evidence::Rank;
use super::part::{MergeError, Part, at};
use super::write::{Output, copy, write};

/// Occurrences listed in an entry, as in any campaign; further ones are in a file beside it, as far as these are few enough.
const LISTED: usize = 20;
const MOST_FURTHER: usize = 10_000;
const FURTHER: &str = "occurrences.jsonl";

/// What there is of one failure.
#[derive(Default)]
struct Gathered {
    count: u64,
    machines: BTreeMap<String, u64>,
    occurrences: Vec<Occurrence>,
}

/// How many there were.
pub(super) struct Merged {
    pub(super) signatures: u64,
    pub(super) occurrences: u64,
}

/// Puts the failures of all parts into the folder.
pub(super) fn merge(
    parts: &[Part],
    standing: &Standing,
    output: &Output,
    watch: &mut dyn FnMut(Stage),
) -> Result<Merged, MergeError> {
    let chosen: BTreeSet<usize> = standing.chosen.iter().copied().collect();
    let mut gathered: BTreeMap<&str, Gathered> = BTreeMap::new();
    for (place, part) in parts.iter().enumerate() {
        for note in &part.failures {
            // Of a copy of a shard that does not count the evidence may still be the best.
            let sum = gathered.entry(&note.id).or_default();
            if chosen.contains(&place) {
                sum.count += note.count;
                *sum.machines.entry(part.shard().machine.clone()).or_default() += note.count;
                sum.occurrences.extend(note.occurrences.iter().cloned());
            }
        }
    }
    let mut best: BTreeMap<String, (Rank, PathBuf)> = BTreeMap::new();
    let homes: BTreeSet<&PathBuf> = parts.iter().flat_map(|part| &part.homes).collect();
    for found in homes.into_iter().flat_map(|home| archive::failure_folders(home)) {
        let Ok(entry) = load_failure(&found.folder) else { continue };
        let rank = Rank::of(&found.folder, &entry);
        if best.get(&found.id).is_none_or(|(known, _)| rank > *known) {
            best.insert(found.id, (rank, found.folder));
        }
    }
    let mut merged = Merged { signatures: 0, occurrences: 0 };
    let all = gathered.len() as u64;
    for (done, (id, sum)) in (0..).zip(gathered) {
        watch(Stage::Failures { done, all });
        let Some((_, folder)) = best.get(id) else { continue };
        let entry = load_failure(folder).map_err(at(folder))?;
        let entry = together(entry, sum, id, output)?;
        merged.signatures += 1;
        merged.occurrences += entry.0.count;
        let (half, _) = output.failure(id);
        copy(folder, &half)?;
        write(&half.join("failure.json"), &entry.0)?;
        further(&half.join(FURTHER), &entry.1)?;
    }
    Ok(merged)
}

/// The entry of all parts, and what does not fit into it.
fn together(
    mut entry: FailureEntry,
    sum: Gathered,
    id: &str,
    output: &Output,
) -> Result<(FailureEntry, Vec<Occurrence>), MergeError> {
    let shown = entry.occurrences.first().cloned();
    let key = |one: &Occurrence| (one.at, one.seed.get(), one.iteration, one.worker);
    let mut others = sum.occurrences;
    others.sort_by_key(key);
    others.dedup_by_key(|one| key(one));
    // What an earlier merge of fewer parts wrote here does not count: one of them may have counted then and not now.
    let seen = || others.iter().chain(&shown).map(|one| one.at);
    entry.first_seen = seen().min().unwrap_or(entry.first_seen);
    entry.last_seen = seen().max().unwrap_or(entry.last_seen);
    others.retain(|one| shown.as_ref().is_none_or(|shown| key(shown) != key(one)));
    // What is shown stands first, with what every worker did.
    let room = LISTED - usize::from(shown.is_some());
    let mut rest = others.split_off(others.len().min(room));
    rest.truncate(MOST_FURTHER);
    entry.occurrences = shown.into_iter().chain(others).collect();
    // It was announced, whether or not its part lived to count it.
    entry.count = sum.count.max(1);
    entry.machines = sum.machines;
    let (_, place) = output.failure(id);
    entry.replay = format!(
        "waylay replay {}",
        shell::word(std::path::absolute(&place).unwrap_or_else(|_| place.clone()))
    );
    Ok((entry, rest))
}

fn further(file: &std::path::Path, occurrences: &[Occurrence]) -> Result<(), MergeError> {
    if occurrences.is_empty() {
        let _ = fs::remove_file(file);
        return Ok(());
    }
    let mut out = std::io::BufWriter::new(fs::File::create(file).map_err(at(file))?);
    for occurrence in occurrences {
        let line = serde_json::to_string(occurrence).expect("plain data");
        writeln!(out, "{line}").map_err(at(file))?;
    }
    out.flush().map_err(at(file))
}
