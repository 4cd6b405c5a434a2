//! A failure in another build: the orders of its cause, sought by what the code says and kept in runs of the program as
//! it is now.
//!
//! A schedule counts steps, and an edit makes it worthless. A cause names events: who does what to what, in which function
//! and line, the how manieth time. These are sought in runs of this build, and what is found is kept in order, as the
//! search for the cause does it. So it can be said whether the failure is still there, whether its events are, and whether
//! they can still come in that order.
//!
//! - `survey`: runs of a program about which nothing is known yet
//! - `candidates`: which events of them could be meant
//! - `likeness`: how much a place is like another
//! - `identify`: which events are meant

mod candidates;
mod identify;
mod likeness;
pub(crate) mod survey;

use std::path::Path;

use serde::Serialize;
use waylay_evidence::Symbolizer;
use waylay_report::cause::{Cause, Constraint};
use waylay_schedule::ordered::Order;

use crate::cause::trace::Pair;
use crate::oracle::{Failure, Verdict, judge};
use crate::recording::StrictRecord;
use crate::server::{RunError, Server};
use identify::{Identified, identify};
use survey::{base, conditions_anew, learn, run, survey};

/// Runs with the orders kept, when nobody says how many.
pub const RUNS: u64 = 20;
/// Runs that each reading of a cause is tried in before the best is followed.
const TRIED: u64 = 3;

/// What became of a failure in another build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It still fails.
    SameFailure,
    /// Events of the cause were not found in any run.
    EventsGone,
    /// They are there, and never in the order of the cause.
    OrderGone,
    /// They come in the order of the cause, and it does not fail.
    Passes,
    /// It fails in another way before that can be said.
    OtherFailure,
    /// The time was over before that could be said.
    Unknown,
}

/// What following a cause came to.
#[derive(Clone, Debug, Serialize)]
pub struct Followed {
    /// The answer.
    pub answer: Answer,
    /// Runs in which the orders were asked for.
    pub runs: u64,
    /// Those that had them all.
    pub in_order: u64,
    /// Runs that failed in the same way.
    pub failures: u64,
    /// Runs that failed in another way.
    pub other_failures: u64,
    /// The first of those, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// What does not happen any more: events, or orders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// The orders as they are in this build, as far as they were found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// Runs of the build that failed with the orders kept, and how many of them failed.
    pub failed_then: (u64, u64),
}

impl Followed {
    /// The answer in a sentence.
    pub fn sentence(&self) -> String {
        let Followed { runs, in_order, failures, .. } = *self;
        let (then_runs, then_failed) = self.failed_then;
        let other = match (&self.other, self.other_failures) {
            (Some(what), count) => format!("; {count} of them failed in another way: {what}"),
            (None, _) => String::new(),
        };
        match self.answer {
            Answer::SameFailure => format!(
                "the same failure: with the orders of its cause kept it fails in {failures} of {runs} runs{other}"
            ),
            Answer::EventsGone => {
                format!("the constrained events no longer happen: {}", self.gone.join("; "))
            }
            Answer::OrderGone => format!(
                "the constrained events no longer happen in this order: {} (0 of {runs} runs{other})",
                self.gone.join(", and ")
            ),
            Answer::Passes => format!(
                "they happen in this order and it passes: {in_order} of {runs} runs had the orders of its cause and none \
                 failed{other}; of the build that failed, {then_failed} of {then_runs} did. With 95 % certainty fewer than \
                 {:.0} % of such runs fail",
                100.0 * self.at_most()
            ),
            Answer::Unknown => {
                "the time was over before the orders of its cause were found in this build".to_owned()
            }
            Answer::OtherFailure => {
                format!("{runs} runs were made, and it fails in another way before that can be said{other}")
            }
        }
    }

    /// The greatest share of runs in this order that can fail when none of those that were made did, with 95 % certainty.
    pub fn at_most(&self) -> f64 {
        match self.in_order {
            0 => 1.0,
            runs => 1.0 - 0.05_f64.powf(1.0 / runs as f64),
        }
    }
}

/// Seeks the orders of a cause in the program as it is now and keeps them in `times` runs; `go_on` is asked before each.
pub fn follow(
    found: &StrictRecord,
    cause: &Cause,
    library: &Path,
    times: u64,
    mut go_on: impl FnMut() -> bool,
) -> Result<Followed, RunError> {
    let record = &mut found.clone();
    record.conditions = conditions_anew(&found.conditions);
    let server = &mut Server::start(&record.program, library, &record.conditions)?;
    let names = &mut Symbolizer::default();
    let go_on: &mut dyn FnMut() -> bool = &mut go_on;
    learn(record, server, go_on)?;
    let mut identified = seek(record, cause, (server, library, names), go_on)?;
    if !identified.missing.is_empty() && record.conditions.steps.sites.is_some() {
        // What is always under one lock is no step, although it is there: now every access is one.
        let learned = record.conditions.steps.sites.take();
        let again = seek(record, cause, (server, library, names), go_on)?;
        if again.missing.is_empty() {
            identified = again;
        } else {
            record.conditions.steps.sites = learned;
        }
    }
    let mut followed = Followed {
        answer: Answer::EventsGone,
        runs: 0,
        in_order: 0,
        failures: 0,
        other_failures: 0,
        other: None,
        gone: identified.missing,
        constraints: Vec::new(),
        failed_then: (cause.kept.runs, cause.kept.failures),
    };
    if !go_on() {
        (followed.answer, followed.gone) = (Answer::Unknown, Vec::new());
        return Ok(followed);
    }
    let mut readings = identified.readings.into_iter();
    let Some(mut best) = readings.next() else { return Ok(followed) };
    let mut shown = Shown::of(record, server, &best.pairs, 0..TRIED.min(times), go_on)?;
    for reading in readings {
        if shown.failures > 0 || !go_on() {
            break;
        }
        let other = Shown::of(record, server, &reading.pairs, 0..TRIED.min(times), go_on)?;
        // Only a failure proves that another reading is the right one.
        if other.failures > 0 {
            (best, shown) = (reading, other);
        }
    }
    if shown.failures == 0 && !followed.gone.is_empty() {
        return Ok(followed);
    }
    shown.add(Shown::of(record, server, &best.pairs, TRIED.min(times)..times, go_on)?);
    followed.constraints = best.constraints;
    shown.tell(&mut followed);
    Ok(followed)
}

/// Looks for the events of a cause, first in runs without orders, then in those with what was found of them: some code is
/// reached only then.
fn seek(
    record: &StrictRecord,
    cause: &Cause,
    (server, library, names): (&mut Server, &Path, &mut Symbolizer),
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Identified, RunError> {
    let mut runs = survey(record, server, &[], go_on)?;
    let mut identified = identify(record, cause, &runs, library, names);
    if !identified.missing.is_empty() && !identified.partly.is_empty() {
        runs.extend(survey(record, server, &held(&identified.partly), go_on)?);
        identified = identify(record, cause, &runs, library, names);
    }
    Ok(identified)
}

fn held(pairs: &[Pair]) -> Vec<Order> {
    pairs.iter().map(|pair| pair.held).collect()
}

/// What runs with orders kept showed.
#[derive(Default)]
struct Shown {
    runs: u64,
    in_order: u64,
    failures: u64,
    other_failures: u64,
    other: Option<String>,
    /// By order: runs that had it.
    had: Vec<u64>,
}

impl Shown {
    fn of(
        record: &StrictRecord,
        server: &mut Server,
        pairs: &[Pair],
        numbers: std::ops::Range<u64>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Shown, RunError> {
        let mut shown = Shown { had: vec![0; pairs.len()], ..Shown::default() };
        for number in numbers {
            if !go_on() {
                break;
            }
            let (observed, trace) = run(record, server, &held(pairs), &base(number))?;
            shown.runs += 1;
            let had: Vec<bool> = pairs.iter().map(|pair| trace.shows(pair)).collect();
            shown.had.iter_mut().zip(&had).for_each(|(sum, had)| *sum += u64::from(*had));
            let in_order = had.iter().all(|had| *had);
            shown.in_order += u64::from(in_order);
            if let Verdict::Failed(failure) = judge(&observed, &record.expected) {
                if observed.reached && is_same(record, &failure, in_order) {
                    shown.failures += 1;
                } else {
                    shown.other_failures += 1;
                    shown.other.get_or_insert(failure.what);
                }
            }
        }
        Ok(shown)
    }

    fn add(&mut self, more: Shown) {
        self.runs += more.runs;
        self.in_order += more.in_order;
        self.failures += more.failures;
        self.other_failures += more.other_failures;
        self.other = self.other.take().or(more.other);
        self.had.iter_mut().zip(more.had).for_each(|(sum, more)| *sum += more);
    }

    fn tell(self, followed: &mut Followed) {
        let never = self.had.iter().zip(&followed.constraints).filter(|(had, _)| **had == 0);
        let never: Vec<String> = never.map(|(_, constraint)| constraint.sentence()).collect();
        followed.answer = match () {
            () if self.failures > 0 => Answer::SameFailure,
            () if self.in_order > 0 => Answer::Passes,
            () if self.runs > 0 && self.other_failures == self.runs => Answer::OtherFailure,
            () => Answer::OrderGone,
        };
        followed.gone = match (followed.answer, never.is_empty()) {
            (Answer::OrderGone, true) => followed.constraints.iter().map(Constraint::sentence).collect(),
            (Answer::OrderGone, false) => never,
            _ => Vec::new(),
        };
        (followed.runs, followed.in_order) = (self.runs, self.in_order);
        (followed.failures, followed.other_failures) = (self.failures, self.other_failures);
        followed.other = self.other;
    }
}

/// Whether it is the failure of the record. What it says, and the code that it is in, may have other names in another build:
/// when the orders of the cause were kept, the same kind with the same signal or status is enough.
fn is_same(record: &StrictRecord, failure: &Failure, in_order: bool) -> bool {
    use waylay_driver::failure::Kind;
    if failure.key == record.key {
        return true;
    }
    let places = matches!(failure.kind, Kind::Deadlock | Kind::Race);
    let begin = format!("{} {} ", failure.kind, failure.cause);
    in_order && failure.kind == record.kind && (places || record.key.starts_with(&begin))
}
