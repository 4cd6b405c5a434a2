//! Folders of parts in, one campaign's folder out.
//!
//! A merged folder keeps the record of every part that went in (`parts/`). Its numbers are computed from the set of parts each
//! time, so merging is the union of sets: doing it twice, in another order or in other groups gives the same. Of each failure
//! the best evidence is kept, which is the greatest of a total order and so does not depend on the order either.
//!
//! In the order in which data flows: [`part`] reads what folders hold, `choose` says which parts count and what is missing,
//! `sum` adds numbers up, `evidence` says which of two folders of a failure shows more, `failures` puts them together.

mod choose;
mod evidence;
mod failures;
pub mod part;
mod series;
mod sum;
pub mod trials;
mod write;

use std::path::{Path, PathBuf};

use waylay_driver::store::{CampaignRecord, CampaignState};

pub use choose::{Gap, Standing};
pub use part::{MergeError, Part};

/// What came of a merge.
#[derive(Clone, Debug)]
pub struct Night {
    /// The campaign's folder.
    pub folder: PathBuf,
    /// The record of all parts together.
    pub record: CampaignRecord,
    /// What is missing of the night, in words.
    pub missing: Vec<String>,
    /// Parts that went in, and the machines that they ran on.
    pub parts: usize,
    /// Machines that they ran on.
    pub machines: Vec<String>,
    /// Sum of digests of all schedules: see [`waylay_driver::store::Outcomes`].
    pub outcomes: String,
}

/// How far a merge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The parts are looked for and read.
    Reading,
    /// Failures are put together.
    Failures {
        /// So many were.
        done: u64,
        /// So many there are.
        all: u64,
    },
}

/// As [`merge_watched`], with nobody who watches.
///
/// # Errors
/// As there.
pub fn merge(sources: &[PathBuf], night: &Path) -> Result<Night, MergeError> {
    merge_watched(sources, night, &mut |_| ())
}

/// Merges all parts of a night below `sources` into the folder `night`, and tells how far it is.
///
/// # Errors
/// When there is nothing to merge, when parts are not of one night, or when files cannot be read or written.
pub fn merge_watched(
    sources: &[PathBuf],
    night: &Path,
    watch: &mut dyn FnMut(Stage),
) -> Result<Night, MergeError> {
    watch(Stage::Reading);
    let found = part::find(sources, night)?;
    let standing = choose::choose(&found.parts)?;
    let chosen: Vec<&Part> = standing.chosen.iter().map(|&place| &found.parts[place]).collect();
    let mut record = sum::record(&found.parts, &chosen, &standing);
    record.name = night.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let missing: Vec<String> =
        standing.gaps.iter().map(ToString::to_string).chain(found.unreadable).collect();
    record.problems.extend(missing.iter().cloned());
    record.state = if missing.is_empty() { CampaignState::Finished } else { CampaignState::Interrupted };
    let outcomes = sum::outcomes(&chosen);
    let folder = write::Output::begin(night)?;
    folder.parts(&found.parts)?;
    let samples: Vec<_> = chosen.iter().map(|part| (part.record.started, &part.series[..])).collect();
    folder.series(&series::together(&samples, record.started))?;
    let merged = failures::merge(&found.parts, &standing, &folder, watch)?;
    (record.signatures, record.failures) = (merged.signatures, record.failures.max(merged.occurrences));
    folder.finish(&record, found.parts.iter().find_map(|part| part.config.as_deref()))?;
    let mut machines: Vec<String> = found.parts.iter().map(|part| part.shard().machine.clone()).collect();
    machines.sort();
    machines.dedup();
    Ok(Night { folder: night.to_owned(), record, missing, parts: found.parts.len(), machines, outcomes })
}
