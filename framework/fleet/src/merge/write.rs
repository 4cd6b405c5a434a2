//! The folder of a merged night. It is made beside its place and put there in one step: a merge that is killed leaves what was
//! there before, and the next one clears away what it had begun.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use waylay_driver::store::CampaignRecord;
use waylay_report::model::Sample;

use super::part::{MergeError, PARTS, Part, at};
use crate::identity::machine;
use crate::sys;

/// A folder on its way.
pub(super) struct Output {
    half: PathBuf,
    place: PathBuf,
}

impl Output {
    pub(super) fn begin(place: &Path) -> Result<Output, MergeError> {
        bring_back(place)?;
        let is_ours = place.join(PARTS).is_dir();
        let is_empty = || fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none());
        if place.exists() && !is_ours && !is_empty() {
            return Err(MergeError::Input(format!(
                "{} is there already and is no merged night: name another folder with -o",
                place.display()
            )));
        }
        clear(place)?;
        let half = beside(place, "part");
        for folder in [PARTS, "failures"] {
            let folder = half.join(folder);
            fs::create_dir_all(&folder).map_err(at(&folder))?;
        }
        Ok(Output { half, place: place.to_owned() })
    }

    pub(super) fn parts(&self, parts: &[Part]) -> Result<(), MergeError> {
        parts
            .iter()
            .try_for_each(|part| write(&self.half.join(PARTS).join(format!("{}.json", part.id)), part))
    }

    pub(super) fn series(&self, series: &[Sample]) -> Result<(), MergeError> {
        write(&self.half.join("series.json"), &series)
    }

    /// The folder of a failure until it is in its place, and then.
    pub(super) fn failure(&self, id: &str) -> (PathBuf, PathBuf) {
        (self.half.join("failures").join(id), self.place.join("failures").join(id))
    }

    /// Writes the record and puts the folder into its place.
    pub(super) fn finish(self, record: &CampaignRecord, config: Option<&str>) -> Result<(), MergeError> {
        let file = self.half.join("config.toml");
        fs::write(&file, config.unwrap_or("# the configuration was not kept\n")).map_err(at(&file))?;
        write(&self.half.join("campaign.json"), record)?;
        if !self.place.exists() {
            return fs::rename(&self.half, &self.place).map_err(at(&self.place));
        }
        let old = beside(&self.place, "old");
        match sys::exchange(&self.half, &self.place) {
            Ok(()) => fs::rename(&self.half, &old).map_err(at(&self.half))?,
            // Not every file system can. For a moment nothing is there; who is killed then has it brought back.
            Err(_) => {
                fs::rename(&self.place, &old).map_err(at(&self.place))?;
                fs::rename(&self.half, &self.place).map_err(at(&self.place))?;
            }
        }
        let _ = fs::remove_dir_all(&old);
        Ok(())
    }
}

/// The name of what a merge makes beside a place, up to who makes it.
fn prefix(place: &Path, what: &str) -> String {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}.{what}-{}-", machine())
}

fn beside(place: &Path, what: &str) -> PathBuf {
    place.with_file_name(format!("{}{}", prefix(place, what), std::process::id()))
}

/// What merges of this machine that are at work no more left beside a place.
fn left_over(place: &Path, what: &str) -> Vec<PathBuf> {
    let prefix = prefix(place, what);
    let is_left = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let process = name.strip_prefix(&prefix).and_then(|number| number.parse().ok());
        process.is_some_and(|process: u32| process == std::process::id() || !sys::is_alive(process))
    };
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(is_left).collect()
}

/// Puts a night back that a merge was about to replace when it was killed.
fn bring_back(place: &Path) -> Result<(), MergeError> {
    let is_night = |folder: &PathBuf| folder.join(PARTS).is_dir();
    match left_over(place, "old").into_iter().find(is_night) {
        Some(old) if !place.exists() => fs::rename(&old, place).map_err(at(place)),
        _ => Ok(()),
    }
}

fn clear(place: &Path) -> Result<(), MergeError> {
    let mut left = left_over(place, "part").into_iter().chain(left_over(place, "old"));
    left.try_for_each(|folder| fs::remove_dir_all(&folder).map_err(at(&folder)))
}

pub(super) fn write(file: &Path, value: &impl Serialize) -> Result<(), MergeError> {
    let mut text = serde_json::to_vec_pretty(value).expect("plain data");
    text.push(b'\n');
    fs::write(file, text).map_err(at(file))
}

/// Copies a folder with all that is in it; links are left out.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), MergeError> {
    fs::create_dir_all(to).map_err(at(to))?;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let entry = entry.map_err(at(from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(at(&source))?;
        if kind.is_dir() {
            copy(&source, &target)?;
        } else if kind.is_file() {
            match fs::copy(&source, &target) {
                // A shard that is still at work replaces files: what is gone is there under its name again, or was a part.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                copied => {
                    copied.map_err(at(&source))?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that has ended, on this machine.
    fn of_the_dead(place: &Path, what: &str) -> PathBuf {
        // No system counts processes that far.
        place.with_file_name(format!("{}{}", prefix(place, what), i32::MAX))
    }

    fn made(folder: &Path, content: &str) {
        fs::create_dir_all(folder.join(PARTS)).expect("a folder");
        fs::write(folder.join("content"), content).expect("a file");
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_merge_left_is_brought_back_or_cleared_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("night");
        made(&of_the_dead(&place, "old"), "before");
        made(&of_the_dead(&place, "part"), "half");
        // Another machine may share the folder, and is not asked.
        made(&place.with_file_name(".night.part-elsewhere!-1"), "other");
        let output = Output::begin(&place).expect("a place");
        assert_eq!(fs::read_to_string(place.join("content")).expect("the night is back"), "before");
        drop(output);
        let own = beside(&place, "part").file_name().expect("a name").to_string_lossy().into_owned();
        let mut expected = vec![".night.part-elsewhere!-1".to_owned(), own, "night".to_owned()];
        expected.sort();
        assert_eq!(names(folder.path()), expected);
    }
}
