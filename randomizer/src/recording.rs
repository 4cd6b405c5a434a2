//! Doing again what a log says, as far as that is possible.
//!
//! Replay is statistical. The same number of threads is suspended at about the same times for about as long, and
//! threads are found again by ordinal and name; but where in its code a thread is at that moment is up to the machine.
//! A failure that a log led to once is made more likely, not certain. Exact replay is what strict mode is for.

use std::path::Path;
use std::time::Duration;

use waylay_dist::Seed;

use crate::identity::Ordinal;
use crate::log::{Action, FIRST_LINE, older_part};

/// The windows of a log, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The seed the log was made with.
    pub seed: Seed,
    pub(crate) windows: Vec<RecordedWindow>,
}

/// One window of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedWindow {
    /// When it was opened, since the beginning of the log.
    pub(crate) at: Duration,
    /// The longest time one of its threads was held.
    pub(crate) hold: Duration,
    /// Its threads.
    pub(crate) threads: Vec<(Ordinal, String)>,
}

/// Why a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("cannot read the log {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is something else.
    #[error("{path} is not a log of this version of waylay-randomizer")]
    NotALog {
        /// The file.
        path: String,
    },
    /// A line is damaged.
    #[error("{path}, line {line}: cannot understand `{text}`")]
    Line {
        /// The file.
        path: String,
        /// Its line, from 1.
        line: usize,
        /// What is there.
        text: String,
    },
    /// Nothing to replay.
    #[error("{path} has no suspensions to replay")]
    Empty {
        /// The file.
        path: String,
    },
}

impl Recording {
    /// Reads a log, its older part `NAME.1` too if there is one. A last line that was cut off by the end of
    /// its writer is left out. Times begin with the log.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged or holds no suspensions.
    pub fn read(path: &Path) -> Result<Recording, RecordingError> {
        let mut part = Part::read(path)?;
        let older = older_part(path);
        if older.exists() {
            let mut older = Part::read(&older)?;
            if older.seed == part.seed {
                older.windows.append(&mut part.windows);
                part = older;
            }
        }
        if part.windows.is_empty() {
            return Err(RecordingError::Empty { path: path.display().to_string() });
        }
        for window in &mut part.windows {
            window.at = window.at.saturating_sub(part.began);
        }
        Ok(Recording { seed: part.seed, windows: part.windows })
    }
}

/// One file of a log; times begin with the run.
#[derive(Debug)]
struct Part {
    seed: Seed,
    began: Duration,
    windows: Vec<RecordedWindow>,
}

impl Part {
    fn read(path: &Path) -> Result<Part, RecordingError> {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Part::parse(&text, name),
            Err(source) => Err(RecordingError::Read { path: name, source }),
        }
    }

    fn parse(text: &str, path: String) -> Result<Part, RecordingError> {
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        let not_a_log = || RecordingError::NotALog { path: path.clone() };
        let mut lines = complete.lines().enumerate();
        if lines.next().is_none_or(|(_, line)| line != FIRST_LINE) {
            return Err(not_a_log());
        }
        let (mut seed, mut began) = (None, None);
        for (_, line) in lines.by_ref().take_while(|(_, line)| !line.is_empty()) {
            match line.split_once(' ') {
                Some(("seed", value)) => seed = value.parse().ok(),
                Some(("began", value)) => began = value.parse().ok().map(Duration::from_nanos),
                _ => {}
            }
        }
        let (Some(seed), Some(began)) = (seed, began) else { return Err(not_a_log()) };
        let mut windows = Windows::default();
        for (index, line) in lines {
            windows.line(line).ok_or_else(|| RecordingError::Line {
                path: path.clone(),
                line: index + 1,
                text: line.to_owned(),
            })?;
        }
        Ok(Part { seed, began, windows: windows.list })
    }
}

#[derive(Default)]
struct Windows {
    names: Vec<(Ordinal, String)>,
    list: Vec<RecordedWindow>,
}

impl Windows {
    /// Takes one line; none if it cannot be understood.
    fn line(&mut self, line: &str) -> Option<()> {
        let (time, rest) = line.split_once(' ')?;
        let at = Duration::from_nanos(time.parse().ok()?);
        let (word, rest) = rest.split_once(' ')?;
        if word == "thread" {
            let mut fields = rest.splitn(3, ' ');
            let ordinal = Ordinal(fields.next()?.parse().ok()?);
            fields.next()?;
            self.names.retain(|(known, _)| *known != ordinal);
            self.names.push((ordinal, fields.next()?.to_owned()));
            return Some(());
        }
        let action = Action::ALL.into_iter().find(|action| action.word() == word)?;
        let ordinal = Ordinal(rest.parse().ok()?);
        match action {
            Action::Suspend => {
                if self.list.last().is_none_or(|window| window.at != at) {
                    self.list.push(RecordedWindow { at, hold: Duration::ZERO, threads: Vec::new() });
                }
                let name = self.names.iter().find(|(known, _)| *known == ordinal);
                let name = name.map(|(_, name)| name.clone()).unwrap_or_default();
                self.list.last_mut()?.threads.push((ordinal, name));
            }
            // A window whose beginning is in the file before this one is as long as that file says.
            Action::Resume | Action::Gone => {
                if let Some(window) = self.list.last_mut()
                    && window.threads.iter().any(|(known, _)| *known == ordinal)
                {
                    window.hold = window.hold.max(at.saturating_sub(window.at));
                }
            }
            Action::Refused | Action::Unstoppable => {}
        }
        Some(())
    }
}

impl RecordedWindow {
    /// Finds its threads again among those that are there: by ordinal and name, else another of that name, else the
    /// one of that ordinal, else any. None is chosen twice.
    pub(crate) fn choose<T: Copy>(&self, candidates: &[(T, Ordinal, &str)]) -> Vec<T> {
        let mut free: Vec<_> = candidates.iter().collect();
        let mut chosen = Vec::with_capacity(self.threads.len());
        for (ordinal, name) in &self.threads {
            let position = free
                .iter()
                .position(|(_, o, n)| o == ordinal && n == name)
                .or_else(|| free.iter().position(|(_, _, n)| n == name))
                .or_else(|| free.iter().position(|(_, o, _)| o == ordinal))
                .or_else(|| (!free.is_empty()).then(|| ordinal.0 as usize % free.len()));
            if let Some(position) = position {
                chosen.push(free.swap_remove(position).0);
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{ProcessId, ThreadId};
    use crate::log::Log;
    use crate::settings::Settings;

    fn micros(value: u64) -> Duration {
        Duration::from_micros(value)
    }

    fn written(limit: u64, windows: u64) -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log");
        let mut log =
            Log::create(&path, Seed::new(5), ProcessId(9), &Settings::default(), limit).expect("writable");
        log.joined(micros(1), Ordinal(0), ThreadId(10), "main");
        log.joined(micros(1), Ordinal(1), ThreadId(11), "a worker");
        for i in 1..=windows {
            log.action(micros(100 * i), Action::Suspend, Ordinal(0));
            log.action(micros(100 * i), Action::Suspend, Ordinal(1));
            log.action(micros(100 * i + 30), Action::Resume, Ordinal(1));
            log.action(micros(100 * i + 50), Action::Gone, Ordinal(0));
        }
        log.finish().expect("writable");
        (directory, path)
    }

    #[test]
    fn what_was_logged_is_read_back() {
        let (_directory, path) = written(1 << 20, 2);
        let recording = Recording::read(&path).expect("a log");
        let threads = vec![(Ordinal(0), "main".to_owned()), (Ordinal(1), "a worker".to_owned())];
        let window = |at| RecordedWindow { at: micros(at), hold: micros(50), threads: threads.clone() };
        assert_eq!(recording, Recording { seed: Seed::new(5), windows: vec![window(100), window(200)] });
    }

    #[test]
    fn a_log_stays_below_its_limit_and_its_end_can_be_replayed() {
        let (directory, path) = written(4000, 1000);
        let bytes: u64 = std::fs::read_dir(directory.path())
            .expect("readable")
            .map(|entry| entry.expect("an entry").metadata().expect("metadata").len())
            .sum();
        assert!(bytes <= 4200, "{bytes}");
        let recording = Recording::read(&path).expect("a log");
        let last = recording.windows.last().expect("windows");
        assert_eq!(last.threads[1], (Ordinal(1), "a worker".to_owned()));
        assert!(recording.windows.len() >= 15, "both parts: {}", recording.windows.len());
        assert!(recording.windows[0].at < micros(200), "begins at its own beginning");
    }

    #[test]
    fn a_cut_off_line_is_left_out_a_damaged_one_is_an_error() {
        let head = format!("{FIRST_LINE}\nseed 0x1\nbegan 0\n\n5 thread 0 1 main\n7 suspend 0\n");
        let cut = Part::parse(&format!("{head}9 resu"), "log".into()).expect("readable");
        assert_eq!(cut.windows.len(), 1);
        let error = Part::parse(&format!("{head}9 resume\n"), "log".into()).expect_err("damaged");
        assert_eq!(error.to_string(), "log, line 7: cannot understand `9 resume`");
    }

    #[test]
    fn other_files_are_refused() {
        for text in ["", "hello\n", &format!("{FIRST_LINE}\nseed 0x1\n\n")] {
            let error = Part::parse(text, "f".into()).expect_err("no log");
            assert!(matches!(error, RecordingError::NotALog { .. }), "{error}");
        }
        let (_directory, path) = written(1 << 20, 0);
        assert!(matches!(Recording::read(&path), Err(RecordingError::Empty { .. })));
    }

    #[test]
    fn threads_are_found_again() {
        let threads = [(2, "w"), (3, "w"), (9, "gone")].map(|(o, n): (u32, &str)| (Ordinal(o), n.to_owned()));
        let window = RecordedWindow { at: micros(0), hold: micros(0), threads: threads.to_vec() };
        let there = [('a', Ordinal(0), "main"), ('b', Ordinal(1), "w"), ('c', Ordinal(3), "w")];
        // 2 is another `w`, 3 is itself only if nobody took it, 9 is anybody.
        let chosen = window.choose(&there);
        assert_eq!(chosen.len(), 3);
        assert_eq!(chosen[0], 'b');
        assert_eq!(chosen[1], 'c');
        assert_eq!(window.choose::<char>(&[]), []);
        assert_eq!(window.choose(&[('x', Ordinal(3), "w")]), ['x']);
    }
}
