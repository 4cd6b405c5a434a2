//! What could not be written: kept in memory, within a bound, and written when there is room again.
//!
//! A disk that is full for a while, a folder that somebody made read-only, or a limit must not end a campaign of a night: tests go
//! on, failures are told, and everything that a later attempt can still write is written then. What cannot be made again from
//! memory, such as a dump, is a gap in its evidence and not kept here.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::atomic::{self, WriteError};
use super::firm::{self, absolute};

/// Bytes that wait at most. What says that something failed is kept beyond: there are as many of these as different failures.
const MOST_BYTES: usize = 64 << 20;
/// The files that say what was found; others add to it.
const ESSENTIAL: [&str; 2] = ["failure.json", "campaign.json"];
/// After so many attempts of one round that failed the disk is still full.
const MOST_ATTEMPTS: usize = 8;

/// The exit code when failures were found, and when what was found could not be written: Waylay could not do what it is for.
const FAILURES: u8 = 1;
const NOT_KEPT: u8 = 3;

/// Everything that waits.
#[derive(Debug, Default)]
struct Owed {
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// Folders that should be gone.
    leftovers: Vec<PathBuf>,
    bytes: usize,
    /// Files for which there was no room here either.
    lost: Vec<PathBuf>,
    /// What is to be told.
    news: Vec<String>,
    told: bool,
}

static OWED: Mutex<Owed> = Mutex::new(Owed {
    files: BTreeMap::new(),
    leftovers: Vec::new(),
    bytes: 0,
    lost: Vec::new(),
    news: Vec::new(),
    told: false,
});

fn owed() -> MutexGuard<'static, Owed> {
    OWED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replaces `path` by `content` in one step; when that is impossible now, as soon as it is possible.
pub fn write(path: &Path, content: &[u8], durable: bool) {
    let written = atomic::write(path, content, durable);
    let path = absolute(path);
    let mut owed = owed();
    owed.forget(&path);
    if let Err(error) = written {
        owed.remember(&path, content, &error);
    }
}

/// Whether a file belongs to a campaign of this process that is at work.
pub fn is_at_work(path: &Path) -> bool {
    firm::campaign_of(path).is_some()
}

/// Makes a folder; what is written into it later does so again.
pub(super) fn make_folder(path: &Path) {
    firm::clear_the_way(path);
    let _ = fs::create_dir_all(path);
}

/// Removes a folder, which somebody else may have removed; when that is impossible now, as soon as it is possible.
pub(super) fn remove_folder(path: &Path) {
    if !is_gone(path) {
        owed().leftovers.push(absolute(path));
    }
}

fn is_gone(path: &Path) -> bool {
    match fs::remove_dir_all(path) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(()) => true,
    }
}

/// Tries again what could not be written. Call about once a second.
pub fn settle() {
    let mut owed = owed();
    let waiting: Vec<PathBuf> = owed.files.keys().cloned().collect();
    let mut failed = 0;
    for path in waiting {
        // The folder may be one that could not be made before.
        path.parent().map(make_folder);
        match owed.files.get(&path).map(|content| atomic::write(&path, content, true)) {
            Some(Ok(())) => owed.forget(&path),
            Some(Err(_)) => failed += 1,
            None => {}
        }
        if failed >= MOST_ATTEMPTS {
            break;
        }
    }
    owed.leftovers.retain(|folder| !is_gone(folder));
    if owed.told && owed.files.is_empty() {
        owed.told = false;
        owed.news.push("what could not be written before is written now".to_owned());
    }
}

/// What is to be told since the last call.
pub fn take_news() -> Vec<String> {
    std::mem::take(&mut owed().news)
}

/// What was found and is not on the disk, below a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Files of which not even an older state is there, and which say what was found.
    pub findings: u64,
    /// All others.
    pub others: u64,
    example: PathBuf,
}

impl Missing {
    /// The exit code of a campaign that would have ended with `code`: what was announced is nowhere, or nothing says how a
    /// campaign without failures ended. Failures that are on the disk, if only with an older count, stay failures.
    pub fn exit_code(&self, code: u8) -> u8 {
        if self.findings > 0 || (self.others > 0 && code != FAILURES) { NOT_KEPT } else { code }
    }

    /// In words; none when everything is there.
    pub fn sentence(&self) -> Option<String> {
        let example = self.example.display();
        let files = |number: u64| if number == 1 { "1 file".to_owned() } else { format!("{number} files") };
        match (self.findings, self.others) {
            (0, 0) => None,
            (0, others) => {
                Some(format!("{} could not be written to the end: {example} and so on", files(others)))
            }
            (findings, others) => {
                Some(format!("{} could not be written at all: {example} and so on", files(findings + others)))
            }
        }
    }
}

/// What is missing below a folder when all attempts were made.
pub fn missing(folder: &Path) -> Missing {
    let folder = absolute(folder);
    let owed = owed();
    let mut missing = Missing::default();
    for path in owed.files.keys().chain(&owed.lost).filter(|path| path.starts_with(&folder)) {
        match is_essential(path) && !path.exists() {
            true => missing.findings += 1,
            false => missing.others += 1,
        }
        if missing.example.as_os_str().is_empty() || is_essential(path) {
            missing.example = path.clone();
        }
    }
    missing
}

fn is_essential(path: &Path) -> bool {
    path.file_name().is_some_and(|name| ESSENTIAL.iter().any(|essential| name == *essential))
}

impl Owed {
    fn forget(&mut self, path: &Path) {
        if let Some(content) = self.files.remove(path) {
            self.bytes -= content.len();
        }
        self.lost.retain(|lost| lost != path);
    }

    fn remember(&mut self, path: &Path, content: &[u8], why: &WriteError) {
        if !self.told {
            self.told = true;
            self.news.push(format!(
                "{why}; the campaign goes on, and what it finds stays in memory until it can be written"
            ));
        }
        if self.bytes + content.len() > MOST_BYTES && !is_essential(path) {
            if self.lost.is_empty() {
                let most = MOST_BYTES >> 20;
                self.news.push(format!("more than {most} MiB wait to be written: further evidence is lost"));
            }
            self.lost.push(path.to_owned());
            return;
        }
        self.bytes += content.len();
        self.files.insert(path.to_owned(), content.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file stands where a folder has to be, as good as a disk without room.
    #[test]
    fn what_could_not_be_written_is_written_when_it_can_be() {
        let place = tempfile::tempdir().unwrap();
        let blocked = place.path().join("campaign");
        fs::write(&blocked, "").unwrap();
        let path = blocked.join("failures/assert-1/failure.json");
        write(&path, b"first", false);
        write(&path, b"second", false);
        write(&blocked.join("series.json"), b"[]", false);
        settle();
        let left = missing(&blocked);
        assert_eq!((left.findings, left.others), (1, 1));
        assert!(left.sentence().unwrap().contains("failure.json"), "{left:?}");
        let news = take_news();
        assert!(news.iter().any(|text| text.contains("campaign goes on")), "{news:?}");
        fs::remove_file(&blocked).unwrap();
        settle();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(missing(&blocked).sentence(), None);
        assert!(take_news().iter().any(|text| text.contains("is written now")));
    }

    #[test]
    fn memory_is_bounded_and_what_failed_is_kept_all_the_same() {
        let mut owed = Owed::default();
        let why = WriteError { path: "x".into(), source: io::ErrorKind::StorageFull.into() };
        let content = vec![0; MOST_BYTES / 4 + 1];
        for number in 0..10 {
            owed.remember(Path::new(&format!("{number}/stacks.txt")), &content, &why);
        }
        assert!(owed.bytes <= MOST_BYTES && owed.lost.len() == 7, "{} {}", owed.bytes, owed.lost.len());
        owed.remember(Path::new("a/failure.json"), &content, &why);
        assert!(owed.files.contains_key(Path::new("a/failure.json")));
        owed.forget(Path::new("a/failure.json"));
        owed.forget(Path::new("9/stacks.txt"));
        assert_eq!((owed.bytes, owed.lost.len()), (3 * content.len(), 6));
    }
}
