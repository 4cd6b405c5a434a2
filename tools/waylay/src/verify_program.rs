//! Whether a failure of a whole program is fixed: schedule after schedule of the program as it is now, with the strategy
//! that found it and new random choices.

use std::path::Path;
use std::time::{Duration, Instant};

use waylay_dist::Seed;
use waylay_driver::failure::Signature;
use waylay_driver::interrupt;
use waylay_driver::report::{count, span};
use waylay_driver::store::load_failure;
use waylay_explore::directed::AIMED;
use waylay_explore::explorer::{self, Plan, Progress, State};
use waylay_explore::follow::{Followed, RUNS, follow};
use waylay_explore::plugin_test::is_host;
use waylay_explore::recording::{self, StrictRecord};
use waylay_explore::restart::Restart;
use waylay_explore::summary::Found;
use waylay_schedule::spec::Spec;

use crate::args::VerifyOptions;
use crate::explore::library;
use crate::output::Failed;
use crate::progress::Bar;
use crate::replay_strict::use_this_command;
use crate::verify::{Outcome, Subject};

/// A line about progress.
const EVERY: Duration = Duration::from_secs(5);

/// The program of a failure of `waylay explore`; none for plugin tests, which a campaign runs.
pub(crate) fn program_of(folder: &Path) -> Result<Option<StrictRecord>, Failed> {
    if !recording::is_strict(folder) {
        return Ok(None);
    }
    let (record, _) = recording::load(folder).map_err(|error| Failed::Usage(error.to_string()))?;
    Ok(Some(record).filter(|record| !is_host(&record.program)))
}

/// Failures after which a measurement of how often they come ends: then about as many clean runs as were measured make
/// it 95 % sure that it is fixed, where one failure would ask for 32 times as many.
const MEASURED: u64 = 5;

/// Most runs for each that is judged, before it is left undecided.
const MOST_PER_JUDGED: u64 = 4;

/// Ends the exploration when the failure is back, or came often enough to know how often it does, or stayed away for long enough.
struct Watch<'a> {
    signature: &'a str,
    /// Failures that are waited for.
    wanted: u64,
    needed: u64,
    back: bool,
    next: Duration,
    bar: Bar,
}

impl Progress for Watch<'_> {
    fn tick(&mut self, state: &State) -> bool {
        self.bar.reach(state.judged, Some(self.needed));
        self.bar.say(format!("{} failures", count(state.failures)));
        if !self.bar.is_shown() && state.elapsed >= self.next {
            self.next = state.elapsed + EVERY;
            let (runs, needed) = (count(state.judged), count(self.needed));
            eprintln!(
                "waylay: {}  {runs} of {needed} schedules, {} failures",
                span(state.elapsed),
                state.failures
            );
        }
        let enough = state.judged >= self.needed || self.back && state.failures >= self.wanted;
        !enough && !interrupt::requested()
    }

    fn found(&mut self, found: &Found) {
        self.back |= Signature::is_same(&found.signature, self.signature);
        eprintln!("waylay: run {}: {}: {}", count(found.first_run), found.kind, found.what);
    }
}

/// Follows the orders of the cause in a build that is not the one that failed; nothing when there is none to follow.
pub(crate) fn follow_cause(subject: &Subject, arguments: &VerifyOptions) -> Result<Option<Followed>, Failed> {
    let folder = &subject.found.folder;
    let entry = load_failure(folder).map_err(|error| Failed::Usage(error.to_string()))?;
    let (Some(cause), Some(false), true) = (entry.why.cause, subject.unchanged, recording::is_strict(folder))
    else {
        return Ok(None);
    };
    let (mut record, _) = recording::load(folder).map_err(|error| Failed::Usage(error.to_string()))?;
    use_this_command(&mut record);
    record.program.check().map_err(|error| Failed::Usage(error.to_string()))?;
    interrupt::watch();
    let begun = Instant::now();
    let in_time = || arguments.duration.is_none_or(|limit| begun.elapsed() < limit);
    let go_on = || !interrupt::requested() && in_time();
    let library = library()?;
    let bar = Bar::of("following the orders of the cause", false);
    let asked = || {
        bar.step(RUNS);
        go_on()
    };
    let followed =
        follow(&record, &cause, &library, RUNS, asked).map_err(|error| Failed::Own(error.to_string()))?;
    drop(bar);
    eprintln!("waylay: {}", followed.sentence());
    Ok(Some(followed))
}

pub(crate) fn run(
    subject: &Subject,
    record: StrictRecord,
    arguments: &VerifyOptions,
) -> Result<Outcome, Failed> {
    record.program.check().map_err(|error| Failed::Usage(error.to_string()))?;
    if record.parameters.strategy == AIMED {
        let why = "it was found by a search that was aimed at it, which does not tell how often it comes: run `waylay explore` \
                   with the same --between or --reproduce on the program as it is now";
        return Err(Failed::Usage(format!("{}: {why}", subject.failure.id)));
    }
    // A portfolio as a whole, because its runs are what the rate is of.
    let strategy = subject.strategy.as_ref().unwrap_or(&record.parameters.strategy);
    let strategy = Spec::parse(strategy, subject.needed).map_err(|error| Failed::Usage(error.to_string()))?;
    let plan = Plan {
        program: record.program,
        strategy,
        seed: Seed::fresh().get(),
        // Those that reach a limit are not judged, and the watch ends it when enough were.
        runs: Some(subject.needed.saturating_mul(MOST_PER_JUDGED)),
        duration: arguments.duration,
        stop_on_first: false,
        stop_after_quiet: None,
        own_threads: 1,
        jobs: 1,
        restart: Restart::Fork,
        conditions: record.conditions,
        expected: record.expected,
        out: crate::verify::place(&arguments.out),
        library: library()?,
        minimize: None,
        share: None,
    };
    interrupt::watch();
    let wanted = if subject.unchanged == Some(true) { MEASURED } else { 1 };
    let signature = &subject.failure.id;
    let bar = Bar::of("verifying", false);
    let mut watch = Watch { signature, wanted, needed: subject.needed, back: false, next: EVERY, bar };
    let summary = explorer::explore(&plan, &mut watch).map_err(|error| Failed::Own(error.to_string()))?;
    drop(watch);
    let again: u64 = summary
        .found
        .iter()
        .filter(|one| Signature::is_same(&one.signature, &subject.failure.id))
        .map(|one| one.count)
        .sum();
    Ok(Outcome {
        other_failures: summary.failures.saturating_sub(again),
        seconds: summary.seconds,
        folder: Some(summary.folder),
        ..Outcome::of(subject, arguments.confidence, summary.runs - summary.limit_reached, again)
    })
}
