//! What trials gave, one JSON line each, appended as they end. A comparison that was killed at any point goes on where it
//! was: a last line that was cut is left out, and written anew.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What one trial gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of this record.
    pub format: u32,
    /// Which trial.
    pub key: String,
    /// For people who read the file: the strategy.
    pub strategy: String,
    /// For people who read the file: the test.
    pub test: String,
    /// Lives that ended or failed.
    pub runs: u64,
    /// Lives beside them that reached the limit of steps and were not judged.
    #[serde(default)]
    pub unjudged: u64,
    /// Those that failed.
    pub failures: u64,
    /// The first that failed, from 1.
    pub first_run: Option<u64>,
    /// Seconds until then.
    pub first_seconds: Option<f64>,
    /// What it was, in one word.
    pub kind: Option<String>,
    /// Seconds of running.
    pub seconds: f64,
    /// n: the most threads of a schedule; 0 when threads run freely.
    pub threads: u32,
    /// k: the most steps that a schedule was planned with.
    pub steps: u64,
    /// The most steps of a schedule.
    pub longest: u64,
    /// The least probability of finding a bug of a depth in one schedule, by depth.
    pub promised: BTreeMap<u32, f64>,
    /// A search has seen everything.
    pub exhausted: bool,
}

/// The version that is written.
pub const FORMAT: u32 = 1;

/// The file.
#[derive(Debug)]
pub struct Journal {
    file: File,
    records: BTreeMap<String, Record>,
}

impl Journal {
    /// Opens or makes the file and reads what is there.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn open(path: &Path) -> io::Result<Journal> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        // What stands behind the last line break was being written when the process died.
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        let lines = String::from_utf8_lossy(&text[..whole]).into_owned();
        let records = lines
            .lines()
            .filter_map(|line| serde_json::from_str::<Record>(line).ok())
            .filter(|record| record.format == FORMAT)
            .map(|record| (record.key.clone(), record))
            .collect();
        Ok(Journal { file, records })
    }

    /// What the trial of that key gave, if it was run.
    pub fn get(&self, key: &str) -> Option<&Record> {
        self.records.get(key)
    }

    /// Keeps what a trial gave.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, record: Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        // One write: a process that is killed leaves a whole line or a cut one, never two mixed.
        self.file.write_all(&line)?;
        self.records.insert(record.key.clone(), record);
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn record(key: &str, first: Option<u64>) -> Record {
        Record {
            format: FORMAT,
            key: key.to_owned(),
            strategy: "pos".to_owned(),
            test: "a".to_owned(),
            runs: first.unwrap_or(100),
            unjudged: 0,
            failures: u64::from(first.is_some()),
            first_run: first,
            first_seconds: first.map(|run| run as f64 / 1000.0),
            kind: first.map(|_| "assert".to_owned()),
            seconds: 0.1,
            threads: 3,
            steps: 50,
            longest: 60,
            promised: BTreeMap::from([(2, 0.01)]),
            exhausted: false,
        }
    }

    #[test]
    fn what_was_written_is_there_again_and_a_cut_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trials.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        journal.add(record("one", Some(5))).unwrap();
        journal.add(record("two", None)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(&path).unwrap();
            let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(journal.get("one").is_some(), lines >= 1, "{cut}");
            assert!(journal.get("two").is_none(), "{cut}");
            journal.add(record("two", Some(7))).unwrap();
            let again = Journal::open(&path).unwrap();
            assert_eq!(again.get("two").unwrap().first_run, Some(7), "{cut}");
            assert_eq!(again.get("one").is_some(), lines >= 1, "{cut}");
        }
    }
}
