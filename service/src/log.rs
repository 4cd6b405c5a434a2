//! The service's own log: lines with the time, in a file that never grows beyond its limit, and on standard error.
//!
//! A full file becomes `serve.log.1`, in place of the one before: together they take at most twice the limit.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

/// Longest line: a message of a test may be a megabyte.
const LONGEST: usize = 2000;

/// The log.
#[derive(Debug)]
pub struct Log {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: Option<File>,
    written: u64,
    limit: u64,
}

impl Log {
    /// Goes on with the log at `path`.
    pub fn open(path: &Path, limit: u64) -> io::Result<Log> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let written = file.metadata()?.len();
        let inner = Inner { path: path.to_owned(), file: Some(file), written, limit: limit.max(1024) };
        Ok(Log { inner: Mutex::new(inner) })
    }

    /// Adds a line. A disk that is full is no reason to stop: the line is still on standard error.
    pub fn line(&self, text: &str) {
        let line = format(Timestamp::now(), text);
        let _ = io::stderr().lock().write_all(line.as_bytes());
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).write(&line);
    }
}

/// One line, whatever the text has in it: what a test prints cannot pass for a line of the service.
fn format(at: Timestamp, text: &str) -> String {
    let cut = &text[..text.floor_char_boundary(LONGEST)];
    let flat: String = cut
        .chars()
        .map(|c| match c {
            '\n' => '¶',
            // Marks that turn the direction of text around would let it pass for something else.
            c if c.is_control()
                || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                '\u{fffd}'
            }
            c => c,
        })
        .collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{} {}{more}\n", at.strftime("%Y-%m-%dT%H:%M:%SZ"), flat.trim_end_matches('¶'))
}

impl Inner {
    fn write(&mut self, line: &str) {
        if self.written + line.len() as u64 > self.limit {
            self.file = None;
            let old = self.path.with_extension("log.1");
            // Without a new file the old one would grow: then nothing is written, and the next line tries again.
            if fs::rename(&self.path, old).is_ok() {
                self.written = 0;
            }
        }
        if self.file.is_none() && self.written == 0 {
            self.file = OpenOptions::new().create(true).append(true).open(&self.path).ok();
        }
        if let Some(file) = &mut self.file
            && file.write_all(line.as_bytes()).is_ok()
        {
            self.written += line.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_of_the_limit_are_all_that_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.log");
        for round in 0..3 {
            let log = Log::open(&path, 2048).unwrap();
            for number in 0..100 {
                log.line(&format!("round {round}, line {number}"));
            }
        }
        let sizes: Vec<u64> = fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= 2048), "{sizes:?}");
        assert!(fs::read_to_string(&path).unwrap().ends_with("round 2, line 99\n"));
    }

    #[test]
    fn a_text_is_one_line_without_commands_for_the_terminal() {
        let at = "2026-11-16T22:00:00Z".parse().unwrap();
        assert_eq!(format(at, "a\nb\x1b\u{202e}[31m\n"), "2026-11-16T22:00:00Z a¶b\u{fffd}\u{fffd}[31m\n");
        assert!(format(at, &"ä".repeat(5000)).len() < LONGEST + 50);
    }
}
