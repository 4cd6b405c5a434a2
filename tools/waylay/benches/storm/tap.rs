//! The reader of what a driver prints: it keeps every line, tells at once when a failure is announced, and can stop reading
//! or go away.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

const READING: u8 = 0;
const STALLED: u8 = 1;
const TORN: u8 = 2;

#[derive(Default)]
struct Seen {
    lines: Vec<String>,
    failures: usize,
    over: bool,
}

/// A handle of the reader.
#[derive(Clone, Default)]
pub(crate) struct Tap {
    seen: Arc<(Mutex<Seen>, Condvar)>,
    how: Arc<AtomicU8>,
}

impl Tap {
    /// Reads from that end of a pipe from now on.
    pub(crate) fn on(from: File) -> Tap {
        let tap = Tap::default();
        let reader = tap.clone();
        std::thread::spawn(move || reader.read(from));
        tap
    }

    fn read(&self, from: File) {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        loop {
            match self.how.load(Ordering::Relaxed) {
                READING => {}
                STALLED => {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                _ => break,
            }
            line.clear();
            if !from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                break;
            }
            // Half a line is what a killed driver leaves.
            if line.last() != Some(&b'\n') {
                continue;
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            let (seen, told) = &*self.seen;
            let mut seen = seen.lock().expect("nobody panics with it");
            seen.failures += usize::from(text.contains("\"event\":\"failure\""));
            seen.lines.push(text);
            told.notify_all();
        }
        let (seen, told) = &*self.seen;
        seen.lock().expect("nobody panics with it").over = true;
        told.notify_all();
    }

    /// Reads no more, and leaves the pipe open.
    pub(crate) fn stall(&self) {
        self.how.store(STALLED, Ordering::Relaxed);
    }

    /// Closes the pipe with the next line that comes.
    pub(crate) fn tear(&self) {
        self.how.store(TORN, Ordering::Relaxed);
    }

    /// Waits for the next failure that is announced.
    pub(crate) fn until_failure(&self, patience: Duration) -> bool {
        let (seen, told) = &*self.seen;
        let seen = seen.lock().expect("nobody panics with it");
        let before = seen.failures;
        let wait = told.wait_timeout_while(seen, patience, |seen| seen.failures == before && !seen.over);
        wait.is_ok_and(|(seen, _)| seen.failures > before)
    }

    /// All lines, when the other end was closed or nobody reads any more.
    pub(crate) fn finish(&self) -> Vec<String> {
        let _ = self.how.compare_exchange(STALLED, READING, Ordering::Relaxed, Ordering::Relaxed);
        let end = Instant::now() + Duration::from_secs(5);
        let (seen, told) = &*self.seen;
        let mut seen = seen.lock().expect("nobody panics with it");
        while !seen.over && Instant::now() < end {
            seen = told.wait_timeout(seen, Duration::from_millis(100)).expect("nobody panics with it").0;
        }
        seen.lines.clone()
    }
}

/// A failure that was announced.
pub(crate) struct Announced {
    pub(crate) signature: String,
    pub(crate) folder: std::path::PathBuf,
}

/// The failures that lines announce.
pub(crate) fn announced(lines: &[String]) -> Vec<Announced> {
    let objects = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    objects
        .filter(|object| object["event"] == "failure")
        .filter_map(|object| {
            Some(Announced {
                signature: object["signature"].as_str()?.to_owned(),
                folder: object["folder"].as_str()?.into(),
            })
        })
        .collect()
}
