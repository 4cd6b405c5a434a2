//! What stands in a folder now. A campaign is written while it is looked at: its record is read before everything else, because what
//! a record counts was on the disk before it (`docs/architecture.md`, "What is kept"). So a snapshot may hold more than its records
//! say, which resuming and merging take, and never less.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::manifest::{File, hex};

/// A file as it stood when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its length then.
    pub bytes: u64,
    /// When it was changed last.
    pub changed: Option<SystemTime>,
}

/// Files at most so long are read into memory at once; of longer ones only the digest is taken, and they are read again to be sent.
pub const SMALL: u64 = 8 << 20;

/// All files below a folder, those first that have to be read first.
pub fn files(folder: &Path) -> Vec<(String, Seen)> {
    let mut found = BTreeMap::new();
    walk(folder, "", &mut found);
    let mut files: Vec<(String, Seen)> = found.into_iter().collect();
    files.sort_by_key(|(path, _)| !is_record(path));
    files
}

fn is_record(path: &str) -> bool {
    path == "campaign.json" || path.ends_with("/campaign.json")
}

fn walk(folder: &Path, name: &str, found: &mut BTreeMap<String, Seen>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let own = entry.file_name().to_string_lossy().into_owned();
        let Ok(data) = entry.path().symlink_metadata() else { continue };
        let path = if name.is_empty() { own.clone() } else { format!("{name}/{own}") };
        if is_passing(&own) {
            continue;
        } else if data.is_dir() {
            walk(&entry.path(), &path, found);
        } else if data.is_file() {
            found.insert(path, Seen { bytes: data.len(), changed: data.modified().ok() });
        }
    }
}

/// Markers, halves of files, and the history, which is made again from the campaigns.
fn is_passing(name: &str) -> bool {
    name.starts_with('.')
        || name.ends_with(".part")
        || name.starts_with("history.sqlite")
        || name.contains(['\\', ':'])
}

/// What is in a file, as far as it is `bytes` long; all of it, if it is small.
///
/// # Errors
/// When it cannot be read: it may be gone.
pub fn read(folder: &Path, path: &str, bytes: u64) -> std::io::Result<(File, Option<Vec<u8>>)> {
    let mut file = fs::File::open(folder.join(path))?.take(bytes);
    if bytes <= SMALL {
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let named = File {
            path: path.to_owned(),
            bytes: content.len() as u64,
            sha256: hex(Sha256::new_with_prefix(&content)),
        };
        return Ok((named, Some(content)));
    }
    let (mut digest, mut length, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((File { path: path.to_owned(), bytes: length, sha256: hex(digest) }, None)),
            read => {
                digest.update(&buffer[..read]);
                length += read as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_first_and_what_passes_is_left_out() {
        let folder = std::env::temp_dir().join(format!("waylay-snapshot-{}", std::process::id()));
        let write = |path: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        let kept = ["a/failures/x/failure.json", "a/campaign.json", "a/host.log", "b/campaign.json"];
        kept.iter().for_each(|path| write(path));
        [".running/a", "history.sqlite", "history.sqlite-wal", "a/campaign.part"]
            .iter()
            .for_each(|path| write(path));
        let names: Vec<String> = files(&folder).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a/campaign.json", "b/campaign.json", "a/failures/x/failure.json", "a/host.log"]);
        fs::remove_dir_all(folder).unwrap();
    }
}
