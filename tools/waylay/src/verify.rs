//! `waylay verify`: is a failure fixed? How many clean runs it takes to be sure follows from how often it came; then they
//! are run, under the conditions that it was found under, with new random choices.
//!
//! The build that failed is told by its build ids. It cannot be fixed, so its runs measure how often the failure comes, which
//! a search that ended at its first failure tells badly; the next verification uses what was measured.
//!
//! Another build begins with the orders of the cause, where it is known: if it fails with them, that is the answer.

use std::path::{Path, PathBuf};

use serde::Serialize;
use waylay_dist::Seed;
use waylay_driver::archive::{self, FailureFolder};
use waylay_driver::campaign::{self, Scenario, Selection};
use waylay_driver::config::{self, Overrides, Pattern};
use waylay_driver::failure::{FailureEntry, changes};
use waylay_driver::report::{Detail, Live, Tick, count, plural, summary_text};
use waylay_driver::store::{CampaignRecord, TestRecord, load_failure};
use waylay_explore::follow::Followed;
use waylay_report::confidence::{clean_runs_for, would_have_shown};
use waylay_report::model::{Failure, Reproduction};
use waylay_report::numbers::{at_least, long_span};

use crate::args::VerifyOptions;
use crate::installation::installation;
use crate::output::{BAD_USAGE, CLEAN, FAILURES, Failed, print_json};
use crate::replay::tell_changes;
use crate::report::usage;
use crate::run::{colour, examiner, live, options};

/// What is printed with `--json`.
#[derive(Serialize)]
pub(crate) struct Outcome {
    pub(crate) signature: String,
    /// How often it came: when it was found, or when that was measured.
    pub(crate) seen: Reproduction,
    /// Whether that was measured with the build that failed.
    pub(crate) measured: bool,
    /// Whether this is the build that failed, if that is known.
    pub(crate) unchanged: Option<bool>,
    pub(crate) confidence: f64,
    /// Clean runs that are enough.
    pub(crate) needed: u64,
    /// Runs that were made.
    pub(crate) runs: u64,
    /// Whether it came back.
    pub(crate) reproduced: bool,
    /// How often it came back.
    pub(crate) times: u64,
    /// How sure the clean runs make; 0 when it came back.
    pub(crate) sure: f64,
    pub(crate) other_failures: u64,
    pub(crate) seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) folder: Option<std::path::PathBuf>,
    /// What following the orders of the cause came to, before anything else was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) followed: Option<Followed>,
}

/// What a verification is about.
pub(crate) struct Subject {
    pub(crate) found: FailureFolder,
    pub(crate) failure: Failure,
    pub(crate) seen: Reproduction,
    pub(crate) measured: bool,
    pub(crate) unchanged: Option<bool>,
    pub(crate) needed: u64,
    /// Who chose the schedules of the scenario that it was found in; none outside strict mode.
    pub(crate) strategy: Option<String>,
}

pub(crate) fn verify(arguments: &VerifyOptions, json: bool) -> Result<u8, Failed> {
    if !(arguments.confidence > 0.0 && arguments.confidence < 1.0) {
        return Err(Failed::Usage("the confidence must lie between 0 and 1".to_owned()));
    }
    let subject = subject(arguments)?;
    let seen = &subject.seen;
    let pace = if seen.runs > 0 { seen.seconds / seen.runs as f64 } else { 0.0 };
    eprintln!(
        "waylay: {} came {} in {}{}: {} without it make it {} % sure that it is fixed (about {} at the pace of then)",
        subject.failure.id,
        plural(seen.reproduced, "time"),
        plural(seen.runs, "run"),
        if subject.measured { ", as was measured" } else { "" },
        plural(subject.needed, "run"),
        arguments.confidence * 100.0,
        long_span(pace * subject.needed as f64)
    );
    if subject.unchanged == Some(true) {
        eprintln!("waylay: this is the build that failed, unchanged: its runs measure how often it comes");
    }
    let outcome = if arguments.dry_run {
        Outcome::of(&subject, arguments.confidence, 0, 0)
    } else {
        run(&subject, arguments)?
    };
    if !arguments.dry_run {
        tell(&outcome);
        keep_rate(&subject, &outcome);
    }
    if json {
        print_json(&outcome)?;
    }
    Ok(match (outcome.reproduced, outcome.is_fixed() || arguments.dry_run) {
        (true, _) => FAILURES,
        (false, true) => CLEAN,
        (false, false) => BAD_USAGE,
    })
}

impl Outcome {
    /// What so many runs come to, in which it came back so many times.
    pub(crate) fn of(subject: &Subject, confidence: f64, runs: u64, times: u64) -> Outcome {
        Outcome {
            signature: subject.failure.id.clone(),
            seen: subject.seen,
            measured: subject.measured,
            unchanged: subject.unchanged,
            confidence,
            needed: subject.needed,
            runs,
            reproduced: times > 0,
            times,
            sure: if times > 0 { 0.0 } else { would_have_shown(&subject.seen, runs) },
            other_failures: 0,
            seconds: 0.0,
            folder: None,
            followed: None,
        }
    }

    /// Whether it may be called fixed: clean runs of the build that failed are chance.
    fn is_fixed(&self) -> bool {
        !self.reproduced && self.unchanged != Some(true) && self.sure >= self.confidence
    }
}

fn subject(arguments: &VerifyOptions) -> Result<Subject, Failed> {
    let found = archive::find_failure(&arguments.out, &arguments.failure).map_err(usage)?;
    let failure = archive::read_failure(&found).map_err(usage)?;
    let campaign = archive::read_campaign(&found.campaign).map_err(usage)?;
    let mut failure = failure;
    archive::measure(&mut failure, &campaign);
    let seen = failure.best_rate().ok_or_else(|| {
        let why = "no test is to blame, so how often it comes was not measured; run the whole mix again";
        Failed::Usage(format!("{}: {why}", failure.id))
    })?;
    let needed = clean_runs_for(&seen, arguments.confidence)
        .ok_or_else(|| Failed::Usage("it takes more runs than can be counted".to_owned()))?;
    let entry = load_failure(&found.folder).map_err(|error| Failed::Usage(error.to_string()))?;
    let changed = changes(&entry.builds);
    tell_changes(&changed);
    let unchanged = (!entry.builds.is_empty()).then_some(changed.is_empty());
    let measured = failure.measured.is_some_and(|measured| measured == seen);
    let strategy = archive::strategy_of(&failure, &campaign).map(str::to_owned);
    Ok(Subject { found, failure, seen, measured, unchanged, needed, strategy })
}

fn run(subject: &Subject, arguments: &VerifyOptions) -> Result<Outcome, Failed> {
    let followed = crate::verify_program::follow_cause(subject, arguments)?;
    if let Some(back) = followed.as_ref().filter(|followed| followed.failures > 0) {
        let outcome = Outcome::of(subject, arguments.confidence, back.runs, back.failures);
        return Ok(Outcome { other_failures: back.other_failures, followed, ..outcome });
    }
    let outcome = run_often(subject, arguments)?;
    Ok(Outcome { followed, ..outcome })
}

fn run_often(subject: &Subject, arguments: &VerifyOptions) -> Result<Outcome, Failed> {
    match crate::verify_program::program_of(&subject.found.folder)? {
        Some(record) => crate::verify_program::run(subject, record, arguments),
        None => run_scenario(subject, arguments),
    }
}

/// Runs the scenario that it was found in, with all that ran beside it.
fn run_scenario(subject: &Subject, arguments: &VerifyOptions) -> Result<Outcome, Failed> {
    let entry = load_failure(&subject.found.folder).map_err(|error| Failed::Usage(error.to_string()))?;
    let (Some(occurrence), Some(test)) = (entry.occurrences.first(), entry.test.clone()) else {
        return Err(Failed::Usage("the failure's record lists no occurrence".to_owned()));
    };
    let overrides = Overrides {
        seed: Some(Seed::fresh()),
        duration: arguments.duration,
        out: Some(place(&arguments.out)),
        ..Overrides::default()
    };
    let config = subject.found.campaign.join("config.toml");
    let loaded = config::load(&config, &overrides).map_err(|error| match error {
        config::LoadError::Invalid(diagnostics) => Failed::Config(diagnostics.render(colour())),
        other => Failed::Usage(other.to_string()),
    })?;
    let installation = installation()?;
    let strict = subject.strategy.is_some();
    let selection = Selection {
        scenario: Some(Pattern::new(occurrence.scenario.clone())),
        // Strict tests take turns, so the others would only take time.
        test: strict.then(|| Pattern::new(test.clone())),
        plugin: None,
    };
    let mix = campaign::mix(&loaded, &installation, &selection)
        .map_err(|diagnostics| Failed::Config(diagnostics.render(colour())))?;
    let scenarios: Vec<Scenario> =
        mix.scenarios.into_iter().map(|scenario| endless(scenario, &test)).collect();
    if scenarios.is_empty() {
        return Err(Failed::Usage(format!("the scenario {} is not there any more", occurrence.scenario)));
    }
    let mut watch = Watch {
        inner: live("verifying", arguments.duration, false, Detail::All),
        signature: &subject.failure.id,
        test: &test,
        needed: subject.needed,
        decided: false,
    };
    let examiner = examiner(&installation);
    let options = options(&loaded);
    let summary = campaign::run(scenarios, mix.problems, &installation, &options, &mut watch, examiner)
        .map_err(|error| Failed::Own(error.to_string()))?;
    drop(watch);
    eprint!("\n{}", summary_text(&summary, Detail::All));
    let made = summary.campaign.scenarios.iter().flat_map(|scenario| &scenario.tests);
    let runs: u64 = made.filter(|record| record.name == test).map(|record| record.iterations).sum();
    let same = |signature: &str| signature == subject.failure.id;
    let again: u64 =
        summary.failures.iter().filter(|line| same(&line.signature.id)).map(|line| line.count).sum();
    if runs == 0 && again == 0 {
        return Err(Failed::Usage(format!("the test {test} made no iteration, so nothing is known")));
    }
    Ok(Outcome {
        other_failures: summary.campaign.failures.saturating_sub(again),
        seconds: summary.campaign.scenarios.iter().map(|scenario| scenario.seconds).sum(),
        folder: Some(summary.folder),
        ..Outcome::of(subject, arguments.confidence, runs.max(again), again)
    })
}

/// Where its campaigns are kept: beside the nights, and none of them.
pub(crate) fn place(out: &Path) -> PathBuf {
    out.join("verify")
}

/// Ends the campaign when the question is decided: the failure is back, or its test has run often enough without it.
struct Watch<'a> {
    inner: Box<dyn Live>,
    signature: &'a str,
    test: &'a str,
    needed: u64,
    decided: bool,
}

impl Live for Watch<'_> {
    fn note(&mut self, text: &str) {
        self.inner.note(text);
    }
    fn failure(&mut self, entry: &FailureEntry, folder: &Path) {
        self.decided |= entry.signature.id == self.signature;
        self.inner.failure(entry, folder);
    }
    fn tick(&mut self, tick: &Tick) {
        self.inner.tick(tick);
    }
    fn tests(&mut self, tests: &[TestRecord]) {
        self.inner.tests(tests);
    }
    fn campaign(&mut self, record: &CampaignRecord, _folder: &Path) {
        let tests = record.scenarios.iter().flat_map(|scenario| &scenario.tests);
        let made: u64 = tests.filter(|test| test.name == self.test).map(|test| test.iterations).sum();
        self.decided |= made >= self.needed;
    }
    fn enough(&self) -> bool {
        self.decided
    }
}

/// The scenario until the question is decided: neither its time nor the number of iterations ends it.
fn endless(mut scenario: Scenario, subject: &str) -> Scenario {
    scenario.duration = None;
    for test in scenario.tests.iter_mut().filter(|test| test.name == subject) {
        test.iterations = None;
        test.max_failures = 0;
    }
    scenario
}

/// Keeps what the runs of the build that failed tell about how often it comes.
fn keep_rate(subject: &Subject, outcome: &Outcome) {
    if subject.unchanged != Some(true) || !outcome.reproduced {
        return;
    }
    let more = Reproduction { reproduced: outcome.times, runs: outcome.runs, seconds: outcome.seconds };
    match archive::add_reproduction(&subject.found.folder, archive::Tally::Rate, more) {
        Ok(sum) => {
            let (times, runs) = (plural(sum.reproduced, "time"), plural(sum.runs, "run"));
            eprintln!("waylay: it came {times} in {runs} of this build, which the next verification goes by");
        }
        Err(error) => eprintln!("waylay: how often it comes is not kept: {error}"),
    }
}

fn tell(outcome: &Outcome) {
    let runs = plural(outcome.runs, "run");
    let sure = at_least(outcome.sure);
    if outcome.reproduced {
        eprintln!("waylay: NOT FIXED: it came back within {runs}");
    } else if outcome.is_fixed() {
        eprintln!(
            "waylay: fixed: {runs} without it. Programs in which a failure that was found so often is still there would \
             have shown it with a probability of {sure}"
        );
    } else if outcome.unchanged == Some(true) {
        eprintln!(
            "waylay: UNDECIDED: {runs} without it, but this is the build that failed: if nothing that it reads was \
             changed, it is still there"
        );
    } else {
        eprintln!(
            "waylay: UNDECIDED: {runs} of {} without it; were it still there, it would have shown with a probability of {sure}",
            count(outcome.needed)
        );
    }
    if outcome.other_failures > 0 {
        eprintln!("waylay: {} of other signatures", plural(outcome.other_failures, "failure"));
    }
}
