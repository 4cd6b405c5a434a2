//! Which of two folders of the same failure shows more.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use waylay_driver::failure::FailureEntry;

/// How much a failure's folder shows: the greater, the better. Everything in it is a property of the failure itself, so it is the
/// same before and after a merge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// A fresh process that followed the schedule failed in the same way.
    confirmed: bool,
    /// Its schedule was made small.
    minimized: bool,
    /// Its schedule is known: it comes back whenever it is wanted.
    strict: bool,
    /// Its cause is known.
    explained: bool,
    has_dump: bool,
    first_seen: Reverse<Timestamp>,
    /// What decides when all else is equal.
    occurrence: Reverse<(u64, u64, String)>,
}

impl Rank {
    pub(super) fn of(folder: &Path, entry: &FailureEntry) -> Rank {
        #[derive(Deserialize)]
        struct Strict {
            #[serde(default)]
            confirmed: bool,
        }
        let strict: Option<Strict> =
            fs::read(folder.join("strict.json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let shown = entry.occurrences.first();
        Rank {
            confirmed: strict.as_ref().is_some_and(|strict| strict.confirmed),
            minimized: folder.join("minimized.json").is_file(),
            strict: strict.is_some(),
            explained: entry.why.cause.is_some(),
            has_dump: entry.dump_threads.is_some(),
            first_seen: Reverse(shown.map_or(entry.first_seen, |shown| shown.at)),
            occurrence: Reverse((
                shown.map_or(0, |shown| shown.seed.get()),
                shown.map_or(0, |shown| shown.iteration),
                entry.what.clone(),
            )),
        }
    }
}
