//! Comparisons: the trials of all parts in one journal. A trial depends on its key alone, so it is the same in every part.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::part::{MergeError, at};

/// The file in which a comparison keeps its trials.
pub const FILE: &str = "trials.jsonl";

/// Whether folders are those of comparisons.
pub fn are_comparisons(sources: &[PathBuf]) -> bool {
    !sources.is_empty() && sources.iter().all(|source| source.join(FILE).is_file())
}

/// Writes the trials of all folders into one; returns how many there are.
///
/// # Errors
/// When files cannot be read or written.
pub fn merge(sources: &[PathBuf], night: &Path) -> Result<usize, MergeError> {
    #[derive(Deserialize)]
    struct Key {
        key: String,
    }
    let mut trials: BTreeMap<String, String> = BTreeMap::new();
    for file in sources.iter().map(|source| source.join(FILE)) {
        let text = fs::read_to_string(&file).map_err(at(&file))?;
        for line in text.lines() {
            // A last line that was cut off when its process died is no trial.
            let Ok(Key { key }) = serde_json::from_str(line) else { continue };
            let known = trials.entry(key).or_insert_with(|| line.to_owned());
            // Seconds differ between machines; the lesser text counts, whatever the order of the folders.
            if line < known.as_str() {
                line.clone_into(known);
            }
        }
    }
    fs::create_dir_all(night).map_err(at(night))?;
    let file = night.join(FILE);
    let text: String = trials.values().flat_map(|line| [line, "\n"]).collect();
    let half = night.join(format!("{FILE}.part"));
    fs::write(&half, text).and_then(|()| fs::rename(&half, &file)).map_err(at(&file))?;
    Ok(trials.len())
}
