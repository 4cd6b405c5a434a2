//! Writing a file so that a reader, or a start after kill -9, sees the old content or the new, never a part.
//!
//! What matters is also pushed to the disk, for the day the power fails, but by a thread of its own: on a machine that
//! builds and tests at the same time that can take a minute, and the driver must not look away for so long.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::firm;
use crate::{secrets, sys};

/// Something in the campaign directory could not be written; the path is part of the message.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}{}", .path.display(), hint(.source))]
pub struct WriteError {
    /// What could not be written.
    pub path: PathBuf,
    /// Why.
    pub source: std::io::Error,
}

fn hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            " (free some space or choose another folder with --out)"
        }
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            " (choose another folder with --out)"
        }
        _ => "",
    }
}

/// Gives an I/O result the path that it is about.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T, WriteError>;
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, path: &Path) -> Result<T, WriteError> {
        self.map_err(|source| WriteError { path: path.to_owned(), source })
    }
}

/// Replaces `path` by `content` in one step. With `durable`, the content is on the disk soon.
pub(crate) fn write(path: &Path, content: &[u8], durable: bool) -> Result<(), WriteError> {
    let temporary = path.with_extension("part");
    if path.parent().is_some_and(firm::clear_the_way) {
        MADE_AGAIN.lock().unwrap_or_else(PoisonError::into_inner).extend(path.parent().map(Path::to_owned));
        path.parent().map_or(Ok(()), fs::create_dir_all).at(path)?;
    }
    let mut file = create(&temporary).at(&temporary)?;
    let mut content = content.to_vec();
    secrets::clean(&mut content);
    let written = file.write_all(&content);
    drop(file);
    if written.is_err() {
        // A half-written file on a full disk takes the space that the next attempt needs.
        let _ = fs::remove_file(&temporary);
    }
    written.at(path)?;
    sys::replace(&temporary, path).at(path)?;
    if durable {
        push_to_disk(path);
    }
    Ok(())
}

/// Folders that were gone and were made again, until somebody asks.
static MADE_AGAIN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Makes a file, and its folder when somebody has removed that in the middle of a campaign.
fn create(path: &Path) -> std::io::Result<File> {
    match (create_anew(path), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == std::io::ErrorKind::NotFound => {
            fs::create_dir_all(folder)?;
            let file = create_anew(path)?;
            MADE_AGAIN.lock().unwrap_or_else(PoisonError::into_inner).push(folder.to_owned());
            Ok(file)
        }
        (made, _) => made,
    }
}

/// A file of which nothing was there before: what is, is removed, and a link is not followed.
fn create_anew(path: &Path) -> std::io::Result<File> {
    let create = || File::options().write(true).create_new(true).open(path);
    match create() {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            create()
        }
        made => made,
    }
}

/// Folders that were gone and were made again since the last call.
pub(crate) fn take_made_again() -> Vec<PathBuf> {
    std::mem::take(&mut MADE_AGAIN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Has a file and its name pushed to the disk in the background.
fn push_to_disk(path: &Path) {
    static QUEUE: OnceLock<Option<Sender<PathBuf>>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<PathBuf>();
        let push = move || {
            for path in receiver {
                // A file that is gone again, or a disk that fails, shows in the next write.
                for part in [path.as_path(), path.parent().unwrap_or(Path::new("."))] {
                    let _ = File::open(part).and_then(|file| file.sync_all());
                }
            }
        };
        std::thread::Builder::new().name("waylay-sync".into()).spawn(push).ok().map(|_| sender)
    });
    if let Some(queue) = queue {
        let _ = queue.send(path.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_the_old_content_and_leaves_no_part_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write(&path, b"old", true).unwrap();
        write(&path, b"new", false).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_somebody_reads_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write(&path, b"old", false).unwrap();
        let reader = File::open(&path).unwrap();
        let done = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(30));
            drop(reader);
        });
        write(&path, b"new", false).unwrap();
        done.join().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn an_error_names_the_path() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        // A file is no folder, and cannot be made one.
        let error = write(&folder.path().join("file").join("x.json"), b"", false).unwrap_err();
        assert!(error.to_string().contains("x."), "{error}");
    }

    #[test]
    fn a_folder_that_was_removed_is_made_again_and_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        write(&gone.join("x.json"), b"new", false).unwrap();
        assert_eq!(fs::read(gone.join("x.json")).unwrap(), b"new");
        assert!(take_made_again().contains(&gone));
        assert!(!take_made_again().contains(&gone));
    }

    #[test]
    fn a_full_disk_says_what_to_do() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = WriteError { path: "out/campaign.json".into(), source: full };
        assert!(error.to_string().contains("--out"), "{error}");
    }
}
