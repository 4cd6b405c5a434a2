//! The file that says whether a campaign's driver lives: locked as long as it does, whichever way it ends.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::atomic::{At, WriteError};

/// The folder of these files below that of all campaigns.
const FOLDER: &str = ".running";
/// How long a lock that should be free is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The lock of the campaign that this process runs.
#[derive(Debug)]
pub(super) struct Marker {
    path: PathBuf,
    _lock: File,
}

impl Marker {
    /// Takes the lock of a new campaign.
    pub(super) fn take(out: &Path, campaign: &str) -> Result<Marker, WriteError> {
        let path = out.join(FOLDER).join(campaign);
        let lock = File::create(&path).at(&path)?;
        lock_soon(&lock).at(&path)?;
        Ok(Marker { path, _lock: lock })
    }

    /// The campaign is over. Where nothing can be removed, the next start says that it was interrupted.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes a lock that nobody else has a reason to hold. A file system that does not answer is not waited for.
fn lock_soon(file: &File) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if began.elapsed() > PATIENCE => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "somebody else holds this lock"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Makes the folder of all markers.
pub(super) fn make_folder(out: &Path) -> Result<(), WriteError> {
    let folder = out.join(FOLDER);
    fs::create_dir_all(&folder).at(&folder)
}

/// The markers of all campaigns below `out` that are not over.
pub(super) fn all(out: &Path) -> Vec<PathBuf> {
    fs::read_dir(out.join(FOLDER)).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Whether a driver is at work on that campaign.
pub fn is_at_work(out: &Path, campaign: &str) -> bool {
    is_held(&out.join(FOLDER).join(campaign)) == Some(true)
}

/// Whether the driver that locked a marker lives; none when the marker cannot be read.
pub(super) fn is_held(marker: &Path) -> Option<bool> {
    let file = File::open(marker).ok()?;
    let is_locked = || matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    // Asked again, as who locked it cannot be told once it is free.
    Some(is_locked() && !crate::sys::locker_is_dead(&file) && is_locked())
}
