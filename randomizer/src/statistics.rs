//! Did it do anything? Counts, rates and times of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::census::{Census, Member, Tally};
use crate::histogram::{Histogram, Percentiles};
use crate::identity::{Ordinal, ThreadId};
use crate::refusal::Tracer;
use crate::suspension::{Fate, Suspension};

/// Different names of ended threads that are kept apart; a target that makes up a name per thread shall not fill our memory.
const MOST_NAMES: usize = 256;
const OTHER_NAMES: &str = "(other names)";

/// Counts since the run began.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    counts: Counts,
    suspended: Duration,
    quiet: Duration,
    stops: Histogram,
    holds: Histogram,
    ended: BTreeMap<String, Ended>,
    tracer: Option<Tracer>,
    most_to_choose_from: u64,
}

/// The plain numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Windows in which at least one thread was suspended.
    pub windows: u64,
    /// Threads that were seen to stand still, added over all windows.
    pub suspensions: u64,
    /// Windows for which there was no thread to choose.
    pub idle_windows: u64,
    /// Threads that could not be asked to stop: traced by somebody else, or not permitted.
    pub refused: u64,
    /// Threads that did not stop in time and were let go.
    pub unstoppable: u64,
    /// Threads that ended while they were asked or held.
    pub ended_while_held: u64,
    /// Times that somebody asked us to keep away.
    pub quiesced: u64,
    /// Threads seen in all.
    pub threads_seen: u64,
}

#[derive(Debug, Default)]
struct Ended {
    threads: u64,
    never_suspended: u64,
    tally: Tally,
}

/// How a run is going: small enough for a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Seconds since the run began.
    pub elapsed_s: f64,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// Suspensions per second, since the beginning.
    pub suspensions_per_s: f64,
    /// Time that threads stood still, added over all threads.
    pub suspended_s: f64,
    /// Time that we kept away because somebody asked.
    pub quiet_s: f64,
    /// Threads that are there now.
    pub threads: u64,
    /// Threads that are there now, may be suspended and never were.
    pub never_suspended: u64,
    /// Threads that could be chosen at the same time, at most: the N of the bound.
    pub most_to_choose_from: u64,
    /// From the decision until a thread was seen to stand still.
    pub stop: Percentiles,
    /// From there until it was let go.
    pub hold: Percentiles,
    /// Who traced the target when we last were refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused_for: Option<Tracer>,
}

/// What was done to one living thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Its place among the threads seen.
    pub ordinal: Ordinal,
    /// Its id.
    pub thread: ThreadId,
    /// Its name.
    pub name: String,
    /// Whether the settings allow to suspend it.
    pub chosen_from: bool,
    /// How often it was suspended.
    pub suspensions: u64,
    /// How long in all, in seconds.
    pub suspended_s: f64,
}

/// What was done to the threads of one name that have ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndedReport {
    /// The name.
    pub name: String,
    /// How many there were.
    pub threads: u64,
    /// How many of them were never suspended.
    pub never_suspended: u64,
    /// How often they were suspended.
    pub suspensions: u64,
    /// How long in all, in seconds.
    pub suspended_s: f64,
}

impl Statistics {
    /// Counts what one window did; returns how many threads stood still.
    pub(crate) fn window(&mut self, window: &[Suspension], census: &mut Census) -> u64 {
        let before = self.counts.suspensions;
        for suspension in window {
            match &suspension.fate {
                Fate::Resumed | Fate::NotThere => {}
                Fate::Gone => self.counts.ended_while_held += 1,
                Fate::Refused(tracer) => {
                    self.counts.refused += 1;
                    self.tracer.clone_from(tracer);
                }
                Fate::Unstoppable => self.counts.unstoppable += 1,
            }
            if let (Some(held), Some(stopped)) = (suspension.held(), suspension.stopped) {
                self.counts.suspensions += 1;
                self.suspended += held;
                self.holds.add(held);
                self.stops.add(stopped.saturating_duration_since(suspension.asked));
                if let Some(member) = census.member_mut(suspension.thread) {
                    member.tally.suspensions += 1;
                    member.tally.suspended += held;
                }
            }
        }
        let suspended = self.counts.suspensions - before;
        self.counts.windows += u64::from(suspended > 0);
        suspended
    }

    pub(crate) fn idle_window(&mut self) {
        self.counts.idle_windows += 1;
    }

    pub(crate) fn quiesced(&mut self) {
        self.counts.quiesced += 1;
    }

    pub(crate) fn kept_away(&mut self, time: Duration) {
        self.quiet += time;
    }

    pub(crate) fn joined(&mut self) {
        self.counts.threads_seen += 1;
    }

    /// Notes how many threads there are to choose from.
    pub(crate) fn choose_from(&mut self, census: &Census) {
        let now = census.members().iter().filter(|member| member.may_suspend()).count() as u64;
        self.most_to_choose_from = self.most_to_choose_from.max(now);
    }

    pub(crate) fn left(&mut self, member: &Member) {
        let known = self.ended.contains_key(&member.name) || self.ended.len() < MOST_NAMES;
        let name = if known { member.name.clone() } else { OTHER_NAMES.to_owned() };
        let ended = self.ended.entry(name).or_default();
        ended.threads += 1;
        ended.never_suspended += u64::from(member.may_suspend() && member.tally.suspensions == 0);
        ended.tally.suspensions += member.tally.suspensions;
        ended.tally.suspended += member.tally.suspended;
    }

    pub(crate) fn progress(&self, elapsed: Duration, census: &Census) -> Progress {
        let elapsed_s = elapsed.as_secs_f64();
        let never = census.members().iter().filter(|m| m.may_suspend() && m.tally.suspensions == 0);
        Progress {
            elapsed_s,
            counts: self.counts,
            suspensions_per_s: self.counts.suspensions as f64 / elapsed_s.max(1e-9),
            suspended_s: self.suspended.as_secs_f64(),
            quiet_s: self.quiet.as_secs_f64(),
            threads: census.members().len() as u64,
            never_suspended: never.count() as u64,
            most_to_choose_from: self.most_to_choose_from,
            stop: self.stops.percentiles(),
            hold: self.holds.percentiles(),
            refused_for: self.tracer.clone(),
        }
    }

    pub(crate) fn threads(census: &Census) -> Vec<ThreadReport> {
        let report = |member: &Member| ThreadReport {
            ordinal: member.ordinal,
            thread: member.thread,
            name: member.name.clone(),
            chosen_from: member.may_suspend(),
            suspensions: member.tally.suspensions,
            suspended_s: member.tally.suspended.as_secs_f64(),
        };
        census.members().iter().map(report).collect()
    }

    pub(crate) fn ended_threads(&self) -> Vec<EndedReport> {
        let report = |(name, ended): (&String, &Ended)| EndedReport {
            name: name.clone(),
            threads: ended.threads,
            never_suspended: ended.never_suspended,
            suspensions: ended.tally.suspensions,
            suspended_s: ended.tally.suspended.as_secs_f64(),
        };
        self.ended.iter().map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::census::Change;
    use crate::settings::Settings;
    use std::time::Instant;

    fn census(statistics: &mut Statistics, census: &mut Census, threads: &[u32]) {
        let ids = threads.iter().map(|id| ThreadId(*id)).collect();
        let name_of = |thread: ThreadId| Some(format!("w{}", thread.0));
        census.update(
            Instant::now(),
            ids,
            |_, name| Settings::default().may_suspend(name),
            name_of,
            |change| match change {
                Change::Joined(_) => statistics.joined(),
                Change::Left(member) => statistics.left(member),
            },
        );
    }

    fn suspension(thread: u32, stop_us: Option<u64>, over_us: u64, fate: Fate) -> Suspension {
        let asked = Instant::now();
        let after = |us| asked + Duration::from_micros(us);
        Suspension {
            thread: ThreadId(thread),
            asked,
            stopped: stop_us.map(after),
            over: after(over_us),
            fate,
        }
    }

    #[test]
    fn only_threads_that_stood_still_count() {
        let (mut statistics, mut members) = (Statistics::default(), Census::default());
        census(&mut statistics, &mut members, &[1, 2, 3]);
        let tracer = Tracer { pid: crate::identity::ProcessId(7), name: "gdb".into() };
        let _ = statistics.window(
            &[
                suspension(1, Some(10), 110, Fate::Resumed),
                suspension(2, None, 5, Fate::Refused(Some(tracer.clone()))),
                suspension(3, Some(20), 50, Fate::Gone),
            ],
            &mut members,
        );
        let _ = statistics.window(&[suspension(2, None, 5, Fate::Unstoppable)], &mut members);
        let progress = statistics.progress(Duration::from_secs(2), &members);
        assert_eq!(
            progress.counts,
            Counts {
                windows: 1,
                suspensions: 2,
                refused: 1,
                unstoppable: 1,
                ended_while_held: 1,
                threads_seen: 3,
                ..Counts::default()
            }
        );
        assert_eq!((progress.suspensions_per_s, progress.never_suspended), (1.0, 1));
        assert!((progress.suspended_s - 130e-6).abs() < 1e-12);
        assert_eq!((progress.stop.max_us, progress.hold.max_us), (20.0, 100.0));
        assert_eq!(progress.refused_for, Some(tracer));
    }

    #[test]
    fn ended_threads_are_kept_by_name_in_bounded_space() {
        let (mut statistics, mut members) = (Statistics::default(), Census::default());
        for round in 0..400 {
            census(&mut statistics, &mut members, &[round, 100_000 + round]);
        }
        census(&mut statistics, &mut members, &[]);
        let ended = statistics.ended_threads();
        assert_eq!(ended.len(), MOST_NAMES + 1);
        assert_eq!(ended.iter().map(|name| name.threads).sum::<u64>(), 800);
        assert_eq!(ended.iter().map(|name| name.never_suspended).sum::<u64>(), 800);
    }
}
