//! Where the time of an exploration goes: the wall time of the thread that explores, each moment counted for one stage.
//!
//! A stage is begun by [`within`] and lasts until the guard is dropped; a stage inside another takes its time away from that
//! one, so the stages add up to the whole. It is always measured: clocks are read at the ends of stages, never in a run.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use serde::Serialize;

/// What the time is spent on, in the order in which it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Whatever has no stage of its own.
    Other,
    /// Starting the program up to its `main`, analysed and patched, for runs that are forked there.
    Start,
    /// The same for the process whose runs are restored from a snapshot.
    Snapshot,
    /// The runs.
    Runs,
    /// Running a failing schedule again in a fresh process, and taking evidence there.
    Confirm,
    /// Looking up functions and lines for stacks.
    Names,
    /// Making a failing schedule smaller.
    Minimize,
    /// Looking for the orders that decide.
    Cause,
    /// Looking which libraries of the system a promise has to leave out.
    Libraries,
    /// Writing the campaign's folder.
    Keep,
    /// Writing the history.
    History,
}

impl Stage {
    const ALL: [Stage; 11] = [
        Stage::Other,
        Stage::Start,
        Stage::Snapshot,
        Stage::Runs,
        Stage::Confirm,
        Stage::Names,
        Stage::Minimize,
        Stage::Cause,
        Stage::Libraries,
        Stage::Keep,
        Stage::History,
    ];

    fn word(self) -> &'static str {
        match self {
            Stage::Other => "other",
            Stage::Start => "start",
            Stage::Snapshot => "snapshot",
            Stage::Runs => "runs",
            Stage::Confirm => "confirm",
            Stage::Names => "names",
            Stage::Minimize => "minimize",
            Stage::Cause => "cause",
            Stage::Libraries => "libraries",
            Stage::Keep => "keep",
            Stage::History => "history",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Stage::Other => "options, files, whatever is not below",
            Stage::Start => "the program up to main, analysed and patched",
            Stage::Snapshot => "the same for the process that is restored",
            Stage::Runs => "schedules",
            Stage::Confirm => "failing schedules again, in fresh processes, with evidence",
            Stage::Names => "functions and lines of stacks",
            Stage::Minimize => "failing schedules made smaller",
            Stage::Cause => "which orders decide",
            Stage::Libraries => "which libraries a promise leaves out",
            Stage::Keep => "the campaign's folder",
            Stage::History => "the history",
        }
    }
}

/// What became of the time.
#[derive(Clone, Debug, Serialize)]
pub struct Timings {
    /// Seconds from the beginning of the command to its first schedule.
    pub to_first_schedule: Option<f64>,
    /// To the end of the first schedule that failed.
    pub to_first_failure: Option<f64>,
    /// Until the first failure was told, with everything that is known of it.
    pub to_first_report: Option<f64>,
    /// All of it.
    pub seconds: f64,
    /// The parts of it.
    pub stages: Vec<Spent>,
}

/// The time of one stage.
#[derive(Clone, Debug, Serialize)]
pub struct Spent {
    /// The stage.
    pub stage: &'static str,
    /// Seconds in it.
    pub seconds: f64,
    /// How often it was begun.
    pub times: u64,
}

/// Something that happens once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Milestone {
    /// The first schedule begins.
    Schedule,
    /// A schedule has failed.
    Failure,
    /// A failure is told.
    Report,
}

struct Clock {
    begun: Instant,
    /// When the stage that is on was begun, or gone on with.
    since: Instant,
    /// The stage that is on, behind those that it interrupted.
    open: Vec<Stage>,
    spent: [(Duration, u64); Stage::ALL.len()],
    reached: [Option<Duration>; 3],
}

impl Clock {
    fn new() -> Clock {
        let now = Instant::now();
        Clock {
            begun: now,
            since: now,
            open: Vec::new(),
            spent: [(Duration::ZERO, 0); Stage::ALL.len()],
            reached: [None; 3],
        }
    }

    /// Counts the time since the last change for the stage that is on.
    fn turn(&mut self) {
        let now = Instant::now();
        let stage = self.open.last().copied().unwrap_or(Stage::Other);
        self.spent[stage as usize].0 += now - self.since;
        self.since = now;
    }
}

thread_local! {
    static CLOCK: RefCell<Clock> = RefCell::new(Clock::new());
}

/// A stage that is on; dropping it ends it.
#[must_use = "a stage lasts as long as this"]
#[derive(Debug)]
pub struct Within(());

impl Drop for Within {
    fn drop(&mut self) {
        CLOCK.with_borrow_mut(|clock| {
            clock.turn();
            clock.open.pop();
        });
    }
}

/// Begins to measure anew.
pub fn begin() {
    CLOCK.set(Clock::new());
}

/// Begins a stage of what this thread does.
pub fn within(stage: Stage) -> Within {
    CLOCK.with_borrow_mut(|clock| {
        clock.turn();
        clock.open.push(stage);
        clock.spent[stage as usize].1 += 1;
    });
    Within(())
}

/// Notes that something happened; the first time counts.
pub(crate) fn reach(milestone: Milestone) {
    CLOCK.with_borrow_mut(|clock| {
        let begun = clock.begun;
        clock.reached[milestone as usize].get_or_insert_with(|| begun.elapsed());
    });
}

/// What became of the time since it was begun.
pub fn spent() -> Timings {
    CLOCK.with_borrow_mut(|clock| {
        clock.turn();
        let seconds = |milestone: Milestone| clock.reached[milestone as usize].map(|time| time.as_secs_f64());
        let stages = Stage::ALL.iter().map(|&stage| {
            let (time, times) = clock.spent[stage as usize];
            Spent { stage: stage.word(), seconds: time.as_secs_f64(), times }
        });
        Timings {
            to_first_schedule: seconds(Milestone::Schedule),
            to_first_failure: seconds(Milestone::Failure),
            to_first_report: seconds(Milestone::Report),
            seconds: (clock.since - clock.begun).as_secs_f64(),
            stages: stages.collect(),
        }
    })
}

impl Timings {
    /// A table for people.
    pub fn text(&self) -> String {
        let milliseconds = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
        let mut lines = vec!["where the time went".to_owned()];
        for (stage, spent) in Stage::ALL.iter().zip(&self.stages) {
            if spent.times == 0 && *stage != Stage::Other {
                continue;
            }
            let share = 100.0 * spent.seconds / self.seconds.max(1e-9);
            let time = milliseconds(spent.seconds);
            lines.push(format!("   {:<10}{time:>14}  {share:>3.0} %  {}", spent.stage, stage.sentence()));
        }
        lines.push(format!("   {:<10}{:>14}", "in all", milliseconds(self.seconds)));
        for (what, time) in [
            ("the first schedule began", self.to_first_schedule),
            ("the first failing schedule ended", self.to_first_failure),
            ("the first failure was told", self.to_first_report),
        ] {
            lines.extend(time.map(|time| format!("   {what} after {}", milliseconds(time))));
        }
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_counts_for_one_stage() {
        begin();
        {
            let _outer = within(Stage::Confirm);
            reach(Milestone::Schedule);
            let _inner = within(Stage::Names);
        }
        reach(Milestone::Schedule);
        let timings = spent();
        let sum: f64 = timings.stages.iter().map(|spent| spent.seconds).sum();
        assert!((sum - timings.seconds).abs() < 1e-9, "{timings:?}");
        let times = |stage: Stage| timings.stages[stage as usize].times;
        assert_eq!((times(Stage::Confirm), times(Stage::Names), times(Stage::Runs)), (1, 1, 0));
        assert!(timings.to_first_schedule.is_some_and(|time| time <= timings.seconds));
        assert_eq!(timings.to_first_failure, None);
    }

    #[test]
    fn stages_are_told_under_their_own_names() {
        for (place, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, place);
        }
        begin();
        drop(within(Stage::Cause));
        let timings = spent();
        assert!(timings.stages.iter().zip(Stage::ALL).all(|(spent, stage)| spent.stage == stage.word()));
        let text = timings.text();
        assert!(text.contains("cause") && !text.contains("minimize"), "{text}");
    }
}
