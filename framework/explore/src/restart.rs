//! How runs begin: forked, or restored from a snapshot. Pure.
//!
//! Restored runs are trusted because some of them are made again by the fork server and have to be the same: all of the
//! first hundred, one in [`EVERY`] later, and those that fail. One that differs ends restoring for good. The first hundred
//! also tell which way is faster: by processor time, because on a busy machine the clock tells who was kept waiting.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use waylay_control_protocol::Stretch;

use crate::observed::Observed;

/// The first runs are all compared, and timed.
pub const COMPARED: u64 = 100;
/// Later, one in so many is: forked runs are about ten times as slow, so that this costs some percent.
pub const EVERY: u64 = 256;
/// Failing runs of one kind that are compared, wherever they come.
pub const FAILING: u64 = 5;
/// The first runs learn which pages change, and are not timed.
const LEARNING: u64 = 8;
/// Restored runs that take this much longer than forked ones need no long look.
const MUCH: f64 = 1.5;
/// Processor time is counted in hundredths of a second, in four parts of which each may be off by one: that of all forked runs
/// together says something from here on, and enough for a close comparison from there on.
const COUNTED: Duration = Duration::from_millis(50);
const WELL_COUNTED: Duration = Duration::from_millis(100);
/// Runs after which it is looked whether too many are given back.
const LOOK: u64 = 20;

/// Which way is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// Restored where possible.
    Snapshot,
    /// Forked.
    Fork,
    /// Whichever turns out to be faster.
    #[default]
    Auto,
}

impl Restart {
    const ALL: [(Restart, &'static str); 3] =
        [(Restart::Snapshot, "snapshot"), (Restart::Fork, "fork"), (Restart::Auto, "auto")];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(way, _)| *way == self).map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Restart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Restart {
    type Err = String;

    fn from_str(text: &str) -> Result<Restart, String> {
        Self::ALL
            .into_iter()
            .find(|(_, name)| *name == text)
            .map(|(way, _)| way)
            .ok_or_else(|| format!("`{text}` is no way to begin a run: snapshot, fork or auto"))
    }
}

/// What two runs with one seed must have in common: everything that does not depend on where the program's memory is.
/// Says what differs.
pub fn difference(one: (&Observed, &[Stretch]), other: (&Observed, &[Stretch])) -> Option<&'static str> {
    let ((one, one_schedule), (other, other_schedule)) = (one, other);
    // The kernel had a say in when threads were switched.
    if one.partly_controlled || other.partly_controlled {
        return None;
    }
    [
        ("how it ended", one.status == other.status && one.ending == other.ending),
        ("the number of threads", one.threads == other.threads),
        ("the number of steps", one.steps == other.steps),
        ("the schedule", one_schedule == other_schedule),
        ("its output", one.stdout == other.stdout),
        ("its error output", same_but_for_thread_ids(&one.stderr, &other.stderr)),
    ]
    .into_iter()
    .find(|(_, same)| !same)
    .map(|(what, _)| what)
}

/// Whether two outputs are equal, but for the numbers that the kernel gives to threads: a panic of Rust names its thread by
/// that, `thread 'main' (4711) panicked at`.
fn same_but_for_thread_ids(one: &[u8], other: &[u8]) -> bool {
    const AFTER: &str = ") panicked at ";
    if one == other {
        return true;
    }
    let (one, other) = (String::from_utf8_lossy(one), String::from_utf8_lossy(other));
    if !one.contains(AFTER) {
        return false;
    }
    let plain = |text: &str| {
        let line = |line: &str| match line.split_once(AFTER) {
            Some((before, after)) => {
                format!("{}{after}", before.trim_end_matches(|c: char| c.is_ascii_digit()))
            }
            None => line.to_owned(),
        };
        text.lines().map(line).collect::<Vec<_>>()
    };
    plain(&one) == plain(&other)
}

/// What is known about restoring in one worker.
#[derive(Clone, Debug, Default)]
pub struct Experience {
    /// Runs that were restored, and that were given back to the fork server, by reason.
    pub restored: u64,
    /// See `restored`.
    pub given_back: BTreeMap<String, u64>,
    /// Runs that were compared.
    pub compared: u64,
    /// Why runs are not restored any more.
    pub off: Option<Off>,
    restored_time: Duration,
    timed: u64,
    forked_time: Duration,
    forked: u64,
}

/// Why runs are not restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Off {
    /// It does not work here, or not for this program.
    Impossible(String),
    /// Forking is as fast.
    Slow,
    /// A restored run was not the same as a forked one, although forked ones repeat: a fault of ours.
    Wrong(String),
    /// Neither are forked ones with one seed the same as each other.
    Unrepeatable(String),
    /// Neither are forked ones whose memory lies elsewhere.
    Addresses(String),
}

impl Experience {
    /// Whether a run is to be compared with a forked one.
    pub fn compares(&self, run: u64) -> bool {
        run < COMPARED || run.is_multiple_of(EVERY)
    }

    /// Runs that were given back.
    pub fn fell_back(&self) -> u64 {
        self.given_back.values().sum()
    }

    /// A run was restored; `time` is its share of the processor time of its batch, if that says something about the next ones.
    pub fn note_restored(&mut self, time: Option<Duration>) {
        self.restored += 1;
        if let Some(time) = time
            && self.restored > LEARNING
        {
            self.restored_time += time;
            self.timed += 1;
        }
    }

    /// A run was forked, and took so much processor time, if that is known.
    pub fn note_forked(&mut self, time: Option<Duration>) {
        if let Some(time) = time {
            self.forked_time += time;
            self.forked += 1;
        }
    }

    /// A run was given back.
    pub fn note_given_back(&mut self, why: &str) {
        *self.given_back.entry(why.to_owned()).or_default() += 1;
    }

    /// Looks at what is known so far, and may decide that runs are not restored any more.
    pub fn decide(&mut self, asked: Restart) {
        let back = self.fell_back();
        if back >= LOOK && back > self.restored {
            let why = self.given_back.iter().max_by_key(|(_, count)| **count).map(|(why, _)| why.clone());
            self.off.get_or_insert(Off::Impossible(format!("the program {}", why.unwrap_or_default())));
        }
        if asked == Restart::Auto && self.timed >= LEARNING && self.forked > 0 {
            let restored = self.restored_time.as_secs_f64() / self.timed as f64;
            let forked = self.forked_time.as_secs_f64() / self.forked as f64;
            // A run that is given back was begun in vain.
            let wasted = 1.0 + back as f64 / (self.restored + back) as f64;
            let (enough, counted) =
                if self.timed + LEARNING < COMPARED { (MUCH, COUNTED) } else { (1.0, WELL_COUNTED) };
            if self.forked_time >= counted && restored * wasted > forked * enough {
                self.off.get_or_insert(Off::Slow);
            }
        }
    }
}

impl fmt::Display for Off {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Off::Impossible(why) => write!(out, "runs are forked, not restored: {why}"),
            Off::Slow => out.write_str("runs are forked: restoring is no faster for this program"),
            Off::Wrong(what) => write!(
                out,
                "FAULT OF WAYLAY: a restored run was not the same as a forked one with the same seed ({what}). Runs are \
                 forked from there on; please report this program"
            ),
            Off::Unrepeatable(what) => write!(
                out,
                "runs are forked, not restored: the program does not repeat itself ({what} differs between two forked \
                 runs with the same seed)"
            ),
            Off::Addresses(what) => write!(
                out,
                "runs are forked, not restored: what the program does depends on where its memory lies ({what})"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for (way, name) in Restart::ALL {
            assert_eq!(name.parse(), Ok(way));
            assert_eq!(way.to_string(), name);
        }
        assert!("spoon".parse::<Restart>().is_err());
    }

    #[test]
    fn a_panic_is_the_same_in_another_thread() {
        let panic = |thread: u32, line: u32| {
            format!("\nthread 'a' ({thread}) panicked at src/lib.rs:{line}:9:\nlost\n")
        };
        assert!(same_but_for_thread_ids(panic(17, 3).as_bytes(), panic(1859, 3).as_bytes()));
        assert!(!same_but_for_thread_ids(panic(17, 3).as_bytes(), panic(17, 4).as_bytes()));
        assert!(!same_but_for_thread_ids(b"1", b"2"));
    }

    fn after(restored: u32, forked: u32, back: u64) -> Experience {
        let mut known = Experience::default();
        for _ in 0..COMPARED {
            known.note_restored(Some(Duration::from_micros(u64::from(restored))));
            known.note_forked(Some(Duration::from_micros(u64::from(forked))));
        }
        for _ in 0..back {
            known.note_given_back("waits");
        }
        known
    }

    #[test]
    fn the_faster_way_is_kept_when_asked() {
        for (restored, forked, off) in [(200, 2000, None), (2000, 1900, Some(Off::Slow))] {
            let mut known = after(restored, forked, 0);
            known.decide(Restart::Auto);
            assert_eq!(known.off, off);
        }
        let mut known = after(2000, 1000, 0);
        known.decide(Restart::Snapshot);
        assert_eq!(known.off, None);
    }

    /// Time is counted in steps of 10 ms: a forked run of one millisecond mostly takes none, and one in ten takes ten.
    #[test]
    fn what_is_too_short_to_be_counted_decides_nothing() {
        let mut known = after(300, 0, 0);
        known.decide(Restart::Auto);
        assert_eq!(known.off, None);
        for run in 0..COMPARED {
            known.note_forked(Some(Duration::from_millis(if run % 10 == 9 { 10 } else { 0 })));
            known.decide(Restart::Auto);
        }
        assert_eq!(known.off, None);
    }

    #[test]
    fn the_time_it_takes_to_start_is_not_counted() {
        let mut known = after(20, 200, 0);
        for _ in 0..COMPARED {
            known.note_restored(None);
        }
        known.decide(Restart::Auto);
        assert_eq!((known.off, known.restored), (None, 2 * COMPARED));
    }

    #[test]
    fn runs_that_are_given_back_end_it() {
        let mut known = Experience::default();
        for _ in 0..LOOK {
            known.note_given_back("starts a process");
        }
        known.decide(Restart::Snapshot);
        assert_eq!(known.off, Some(Off::Impossible("the program starts a process".to_owned())));
        let mut known = after(20, 200, 30);
        known.decide(Restart::Snapshot);
        assert_eq!(known.off, None);
    }

    #[test]
    fn the_first_runs_and_some_later_ones_are_compared() {
        let known = Experience::default();
        let compared = (0..100_000).filter(|&run| known.compares(run)).count() as u64;
        assert_eq!(compared, COMPARED + 100_000 / EVERY);
    }
}
