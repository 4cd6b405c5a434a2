//! The folder of a merged night. It is made beside its place and put there in one step: a merge that is killed leaves what was
//! there before.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use waylay_driver::store::CampaignRecord;
use waylay_report::model::Sample;

use super::part::{MergeError, PARTS, Part, at};

/// A folder on its way.
pub(super) struct Output {
    half: PathBuf,
    place: PathBuf,
}

impl Output {
    pub(super) fn begin(place: &Path) -> Result<Output, MergeError> {
        let is_ours = place.join(PARTS).is_dir();
        let is_empty = || fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none());
        if place.exists() && !is_ours && !is_empty() {
            return Err(MergeError::Input(format!(
                "{} is there already and is no merged night: name another folder with -o",
                place.display()
            )));
        }
        let half = beside(place, "part");
        let _ = fs::remove_dir_all(&half);
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
        let old = beside(&self.place, "old");
        let _ = fs::remove_dir_all(&old);
        if self.place.exists() {
            fs::rename(&self.place, &old).map_err(at(&self.place))?;
        }
        fs::rename(&self.half, &self.place).map_err(at(&self.place))?;
        let _ = fs::remove_dir_all(&old);
        Ok(())
    }
}

fn beside(place: &Path, what: &str) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    place.with_file_name(format!(".{name}.{what}-{}", std::process::id()))
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
