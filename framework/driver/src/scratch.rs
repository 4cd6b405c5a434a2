//! A folder for the temporary files of one process that runs tests, removed with it: what is killed removes nothing itself.
//!
//! The folder is locked while its driver lives. One that is not belongs to a driver that was killed, and is removed by the
//! next. All names are equally long: the environment lies above the stack, and where only the schedule may differ, addresses must
//! not.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::sys;

/// How the names begin; the number of the driver and a counter follow.
const PREFIX: &str = "waylay-tmp-";
/// A folder that was touched within this time may be of a driver that has not locked it yet.
const FRESH: Duration = Duration::from_secs(60);

/// The folder. Dropping it removes it.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: Option<File>,
}

impl Scratch {
    /// A new one where the system keeps temporary files.
    pub fn create() -> io::Result<Scratch> {
        static SWEPT: Once = Once::new();
        let place = std::env::temp_dir();
        SWEPT.call_once(|| sweep(&place, FRESH));
        Scratch::create_in(&place)
    }

    fn create_in(place: &Path) -> io::Result<Scratch> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = place.join(format!("{PREFIX}{:010}-{number:06}", std::process::id()));
            match fs::create_dir(&path) {
                // A driver of that number was here before, or is in another container.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    let lock = File::open(&path).ok().filter(|folder| folder.try_lock().is_ok());
                    return Ok(Scratch { path, _lock: lock });
                }
            }
        }
    }

    /// Has a process use it.
    pub fn announce(&self, command: &mut Command) {
        for variable in sys::TEMPORARY_FOLDER {
            command.env(variable, &self.path);
        }
    }

    /// Makes it empty again.
    pub fn empty(&self) {
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let path = entry.path();
            // A link is removed, not what it points to.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }

    /// Leaves it where it is, for a process that outlives us.
    pub fn keep(&mut self) {
        self.path = PathBuf::new();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // What cannot be removed, such as files of another user, stays.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes what drivers left that were killed. Where folders cannot be locked nothing is.
fn sweep(place: &Path, fresh: Duration) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if ours
            && is_old(&entry, fresh)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_old(entry: &fs::DirEntry, fresh: Duration) -> bool {
    let touched = entry.metadata().and_then(|folder| folder.modified());
    touched.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= fresh))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_driver_left_is_removed_and_what_a_living_one_uses_is_not() {
        let place = tempfile::tempdir().expect("a folder");
        let used = Scratch::create_in(place.path()).expect("writable");
        fs::write(used.path.join("file"), "of a test").expect("writable");
        let left = place.path().join("waylay-tmp-1-1");
        fs::create_dir(&left).expect("writable");
        fs::write(left.join("file"), "of a test").expect("writable");
        fs::create_dir(place.path().join("of-others")).expect("writable");
        sweep(place.path(), FRESH);
        assert!(left.exists(), "it may be locked in a moment");
        sweep(place.path(), Duration::ZERO);
        assert!(used.path.join("file").exists() && !left.exists());
        drop(used);
        let rest: Vec<_> = fs::read_dir(place.path()).expect("readable").flatten().collect();
        assert_eq!(rest.len(), 1, "{rest:?}");
    }
}
