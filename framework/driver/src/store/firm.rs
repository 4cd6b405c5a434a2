//! Folders of campaigns that are at work, and that nothing in them leads elsewhere: a test that puts a link where evidence is to
//! be written must not have the driver write somewhere else.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static AT_WORK: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn at_work() -> MutexGuard<'static, Vec<PathBuf>> {
    AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A campaign begins, in that folder.
pub(super) fn begin(folder: &Path) {
    at_work().push(absolute(folder));
}

/// It is over.
pub(super) fn end(folder: &Path) {
    let folder = absolute(folder);
    at_work().retain(|other| *other != folder);
}

/// The campaign at work in this process that a file belongs to.
pub(super) fn campaign_of(path: &Path) -> Option<PathBuf> {
    let path = absolute(path);
    at_work().iter().find(|folder| path.starts_with(folder)).cloned()
}

/// Removes what stands where a folder on the way to `folder` has to be, from the campaign's own on; true when there was something.
pub(super) fn clear_the_way(folder: &Path) -> bool {
    let Some(campaign) = campaign_of(folder) else { return false };
    let folder = absolute(folder);
    let below = folder.strip_prefix(&campaign).unwrap_or(Path::new("")).to_owned();
    let mut at = campaign;
    let mut cleared = remove_unless_folder(&at);
    for part in below.components() {
        at.push(part);
        cleared |= remove_unless_folder(&at);
    }
    cleared
}

fn remove_unless_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir()) && fs::remove_file(path).is_ok()
}

/// Removes a link, so that the file which is made now is at that very place.
pub(crate) fn remove_link(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::store::atomic;

    #[test]
    fn nothing_is_written_where_a_link_leads() {
        let place = tempfile::tempdir().unwrap();
        let (campaign, outside) = (place.path().join("campaign"), place.path().join("outside"));
        fs::create_dir(&campaign).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), "whole").unwrap();
        begin(&campaign);
        std::os::unix::fs::symlink(&outside, campaign.join("failures")).unwrap();
        atomic::write(&campaign.join("failures/assert-1/failure.json"), b"{}", false).unwrap();
        for name in ["log.txt", "log.part"] {
            std::os::unix::fs::symlink(outside.join("victim"), campaign.join(name)).unwrap();
        }
        atomic::write(&campaign.join("log.txt"), b"words", false).unwrap();
        end(&campaign);
        assert_eq!(fs::read(campaign.join("failures/assert-1/failure.json")).unwrap(), b"{}");
        assert_eq!(fs::read(outside.join("victim")).unwrap(), b"whole");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        assert!(fs::symlink_metadata(campaign.join("log.txt")).unwrap().is_file());
        assert_eq!(campaign_of(&campaign), None);
    }
}
