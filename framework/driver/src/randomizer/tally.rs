//! What the randomizers of a scenario did, all together: one runs beside each host, and each counts from zero.

use std::collections::BTreeMap;
use std::time::Duration;

use waylay_randomizer::bound::{Assumption, Bound};
use waylay_randomizer::report::Report;
use waylay_randomizer::statistics::{Counts, Progress};
use waylay_randomizer::{Percentiles, Settings};

use super::RandomizerEnd;
use crate::record::{BoundRecord, RandomizerRecord, SuspendedThreads};

/// Names of threads that are listed; the rest is in one line.
const MOST_NAMES: usize = 64;
const OTHER_NAMES: &str = "(other names)";

/// The sum over those that have ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    started: u64,
    restarted: u64,
    killed: u64,
    past: Sum,
    threads: BTreeMap<String, SuspendedThreads>,
}

/// Numbers that can be added up.
#[derive(Clone, Debug, Default)]
struct Sum {
    seconds: f64,
    counts: Counts,
    suspended_s: f64,
    quiet_s: f64,
    /// Of living threads that were never suspended, and all threads that were there when the numbers were taken.
    never: u64,
    most_to_choose_from: u64,
    /// From the one with the most suspensions: percentiles cannot be added.
    times: Option<(u64, Percentiles, Percentiles)>,
    refused_for: Option<String>,
}

impl Sum {
    fn add(&mut self, progress: &Progress) {
        let (mine, other) = (&mut self.counts, &progress.counts);
        mine.windows += other.windows;
        mine.suspensions += other.suspensions;
        mine.idle_windows += other.idle_windows;
        mine.refused += other.refused;
        mine.unstoppable += other.unstoppable;
        mine.ended_while_held += other.ended_while_held;
        mine.quiesced += other.quiesced;
        mine.threads_seen += other.threads_seen;
        self.seconds += progress.elapsed_s;
        self.suspended_s += progress.suspended_s;
        self.quiet_s += progress.quiet_s;
        self.most_to_choose_from = self.most_to_choose_from.max(progress.most_to_choose_from);
        let most = self.times.as_ref().map_or(0, |(suspensions, _, _)| *suspensions);
        if other.suspensions > most {
            self.times = Some((other.suspensions, progress.stop, progress.hold));
        }
        if let Some(tracer) = &progress.refused_for {
            self.refused_for = Some(tracer.to_string());
        }
    }
}

impl Tally {
    /// One more was started; `again` when the one before ended although its host had not.
    pub(crate) fn started(&mut self, again: bool) {
        self.started += 1;
        self.restarted += u64::from(again);
    }

    /// One did not let go in time, or said nothing for too long, and was killed.
    pub(crate) fn killed(&mut self) {
        self.killed += 1;
    }

    /// Adds what one did.
    pub(crate) fn add(&mut self, end: &RandomizerEnd) {
        match &end.progress {
            Some(progress) => self.past.add(progress),
            // It never said how long it was at work.
            None => self.past.seconds += end.lived.as_secs_f64(),
        }
        // What it did since it last said how it goes.
        let said = end.progress.as_ref().map_or(0, |progress| progress.counts.suspensions);
        self.past.counts.suspensions += end.suspensions.saturating_sub(said);
        match &end.report {
            Some(report) => self.add_threads(report),
            // Which threads it were is lost with it.
            None => self.past.never += end.progress.as_ref().map_or(0, |progress| progress.never_suspended),
        }
    }

    fn add_threads(&mut self, report: &Report) {
        for thread in report.living.iter().filter(|thread| thread.chosen_from) {
            let never = u64::from(thread.suspensions == 0);
            self.past.never += never;
            self.add_name(&thread.name, 1, never, thread.suspensions, thread.suspended_s);
        }
        // Of threads that were not to be chosen from, neither is counted.
        let chosen_from = report.ended.iter().filter(|ended| ended.suspensions + ended.never_suspended > 0);
        for ended in chosen_from {
            self.past.never += ended.never_suspended;
            self.add_name(
                &ended.name,
                ended.threads,
                ended.never_suspended,
                ended.suspensions,
                ended.suspended_s,
            );
        }
    }

    fn add_name(&mut self, name: &str, threads: u64, never: u64, suspensions: u64, suspended_s: f64) {
        let known = self.threads.contains_key(name) || self.threads.len() < MOST_NAMES;
        let name = if known { name } else { OTHER_NAMES };
        let of_name = self
            .threads
            .entry(name.to_owned())
            .or_insert_with(|| SuspendedThreads { name: name.to_owned(), ..SuspendedThreads::default() });
        of_name.threads += threads;
        of_name.never_suspended += never;
        of_name.suspensions += suspensions;
        of_name.suspended_s += suspended_s;
    }

    /// Suspensions so far, with those of the one at work.
    pub(crate) fn suspensions(&self, running: Option<&Progress>) -> u64 {
        self.past.counts.suspensions + running.map_or(0, |progress| progress.counts.suspensions)
    }

    /// Everything so far, with what the one at work did.
    pub(crate) fn record(&self, settings: &Settings, running: Option<&Progress>) -> RandomizerRecord {
        let mut sum = self.past.clone();
        if let Some(progress) = running {
            sum.add(progress);
            sum.never += progress.never_suspended;
        }
        let mut threads: Vec<_> = self.threads.values().cloned().collect();
        threads.sort_by(|a, b| b.suspended_s.total_cmp(&a.suspended_s));
        RandomizerRecord {
            settings: settings.to_raw(),
            started: self.started,
            restarted: self.restarted,
            killed: self.killed,
            seconds: sum.seconds,
            counts: sum.counts,
            suspensions_per_s: if sum.seconds > 0.0 {
                sum.counts.suspensions as f64 / sum.seconds
            } else {
                0.0
            },
            suspended_s: sum.suspended_s,
            quiet_s: sum.quiet_s,
            never_suspended: sum.never,
            most_to_choose_from: sum.most_to_choose_from,
            stop: sum.times.as_ref().map(|(_, stop, _)| *stop),
            hold: sum.times.as_ref().map(|(_, _, hold)| *hold),
            refused_for: sum.refused_for,
            threads,
        }
    }

    /// What the suspensions guarantee for a test with this shortest iteration; in words when there is no bound.
    pub(crate) fn bound(
        record: &RandomizerRecord,
        settings: &Settings,
        shortest: Duration,
        iterations: u64,
    ) -> Result<BoundRecord, String> {
        if record.counts.suspensions == 0 {
            return Err("no thread was suspended".to_owned());
        }
        let threads = u32::try_from(record.most_to_choose_from).unwrap_or(u32::MAX);
        let (bound, broken) =
            Bound::of_settings(settings, threads, shortest).map_err(|error| error.to_string())?;
        Ok(BoundRecord {
            threads,
            min_test_ns: shortest.as_nanos() as u64,
            per_iteration: bound.per_run(),
            after_all: bound.after(iterations),
            broken_assumptions: broken.iter().map(Assumption::to_string).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waylay_dist::Seed;
    use waylay_randomizer::ProcessId;
    use waylay_randomizer::report::{Ending, REPORT_VERSION};
    use waylay_randomizer::statistics::ThreadReport;

    /// Longer than any of them said: loading is not work.
    const LIVED: Duration = Duration::from_secs(3);

    fn progress(suspensions: u64, never: u64) -> Progress {
        let times = |us| Percentiles { p50_us: us, p99_us: us, max_us: us };
        Progress {
            elapsed_s: 2.0,
            counts: Counts { suspensions, windows: suspensions, ..Counts::default() },
            suspensions_per_s: suspensions as f64 / 2.0,
            suspended_s: suspensions as f64 / 1000.0,
            quiet_s: 0.25,
            threads: 5,
            never_suspended: never,
            most_to_choose_from: 4,
            stop: times(suspensions as f64),
            hold: times(2.0 * suspensions as f64),
            refused_for: None,
        }
    }

    fn report(progress: Progress) -> Report {
        let thread = |name: &str, suspensions: u64| ThreadReport {
            ordinal: waylay_randomizer::Ordinal(0),
            thread: waylay_randomizer::ThreadId(1),
            name: name.to_owned(),
            chosen_from: name != "waylay",
            suspensions,
            suspended_s: suspensions as f64 / 1000.0,
        };
        Report {
            version: REPORT_VERSION,
            pid: ProcessId(1),
            seed: Seed::new(1),
            replayed: false,
            settings: Settings::default().to_raw(),
            ending: Ending::Stopped,
            living: vec![thread("a#0", progress.counts.suspensions), thread("a#1", 0), thread("waylay", 0)],
            progress,
            ended: Vec::new(),
            log_error: None,
            command: None,
        }
    }

    #[test]
    fn randomizers_add_up_and_the_one_at_work_counts() {
        let mut tally = Tally::default();
        for (again, suspensions) in [(false, 100), (true, 300)] {
            tally.started(again);
            let report = report(progress(suspensions, 1));
            let said = Some(report.progress.clone());
            tally.add(&RandomizerEnd {
                report: Some(report),
                progress: said,
                lived: LIVED,
                suspensions,
                reason: String::new(),
            });
        }
        tally.started(true);
        tally.killed();
        // Five more than it told of before it was killed.
        let killed = Some(progress(45, 2));
        tally.add(&RandomizerEnd {
            report: None,
            progress: killed,
            lived: LIVED,
            suspensions: 50,
            reason: "killed".into(),
        });
        tally.started(false);
        let running = progress(550, 0);
        let record = tally.record(&Settings::default(), Some(&running));
        assert_eq!((record.started, record.restarted, record.killed), (4, 2, 1));
        assert_eq!((record.counts.suspensions, tally.suspensions(Some(&running))), (1000, 1000));
        assert_eq!((record.seconds, record.suspensions_per_s), (8.0, 125.0));
        assert_eq!(record.never_suspended, 1 + 1 + 2, "of each that is over, and those of the one at work");
        assert_eq!(record.stop.map(|stop| stop.p50_us), Some(550.0), "of the one with the most");
        let names: Vec<_> =
            record.threads.iter().map(|t| (t.name.as_str(), t.threads, t.suspensions)).collect();
        assert_eq!(names, [("a#0", 2, 400), ("a#1", 2, 0)], "the host's own thread is none of them");
    }

    #[test]
    fn one_that_was_killed_before_its_first_words_has_a_rate() {
        let mut tally = Tally::default();
        assert_eq!(tally.record(&Settings::default(), None).suspensions_per_s, 0.0);
        tally.add(&RandomizerEnd {
            report: None,
            progress: None,
            lived: LIVED,
            suspensions: 18,
            reason: String::new(),
        });
        assert_eq!(tally.record(&Settings::default(), None).suspensions_per_s, 6.0);
    }

    #[test]
    fn a_bound_needs_suspensions_and_two_threads() {
        let settings = Settings::default();
        let mut tally = Tally::default();
        let shortest = Duration::from_micros(40);
        let none = Tally::bound(&tally.record(&settings, None), &settings, shortest, 10);
        assert_eq!(none, Err("no thread was suspended".to_owned()));
        let said = Some(progress(50, 0));
        tally.add(&RandomizerEnd {
            report: None,
            progress: said,
            lived: LIVED,
            suspensions: 50,
            reason: String::new(),
        });
        let record = tally.record(&settings, None);
        let bound = Tally::bound(&record, &settings, shortest, 1000).expect("a bound");
        // 4 threads, rest and suspension of at most 2 ms each: 1/8 of 40 us in 4 ms.
        assert!((bound.per_iteration - 0.00125).abs() < 1e-12, "{bound:?}");
        assert!((bound.after_all - 0.7138).abs() < 1e-3, "{bound:?}");
        assert!(bound.broken_assumptions.is_empty());
        let unknown = Tally::bound(&record, &settings, Duration::ZERO, 1000);
        assert!(unknown.is_err_and(|reason| reason.contains("min-test is 0")));
    }
}
