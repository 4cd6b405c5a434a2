//! `waylay explore`: any program in strict mode, schedule after schedule.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use waylay_control_protocol::RunConditions;
use waylay_dist::Seed;
use waylay_driver::failure::FailureEntry;
use waylay_driver::interrupt;
use waylay_driver::report::{count, next_line, span};
use waylay_driver::store::CampaignRecord;
use waylay_explore::Memory;
use waylay_explore::explorer::{self, ExploreError, Plan, Progress, State};
use waylay_explore::oracle::Expected;
use waylay_explore::program::Program;
use waylay_explore::recording::Conditions;
use waylay_explore::server::RunError;
use waylay_explore::summary::Found;
use waylay_explore::timings::{self, Stage};
use waylay_history::feed::Feed;
use waylay_history::write::Context;
use waylay_schedule::Spec;

use crate::args::{ExploreOptions, ExploreSettings, ShardOptions};
use crate::installation::installation;
use crate::output::{BAD_USAGE, CLEAN, FAILURES, Failed, kept, print_json};
use crate::progress::Bar;
use crate::shard;

/// Schedules when neither a number nor a time is given.
const RUNS: u64 = 1000;
/// How often a line about progress is written where none can be written over: people look at terminals, machines keep logs.
pub(crate) const LINE_ON_TERMINAL: Duration = Duration::from_secs(2);
pub(crate) const LINE_IN_LOG: Duration = Duration::from_secs(10);

/// The library that is loaded first into programs.
pub(crate) fn library() -> Result<PathBuf, Failed> {
    let installation = installation()?;
    installation.control_library().ok_or_else(|| {
        let missing = installation.missing_control_library().unwrap_or_default();
        Failed::Own(format!("this copy of waylay is not whole: {missing}"))
    })
}

pub(crate) fn explore(options: &ExploreOptions, json: bool) -> Result<u8, Failed> {
    match crate::aimed::targets(&options.aim)? {
        Some(_) if options.shard.shard.is_some() => Err(Failed::Usage(
            "a search that is aimed at places is not divided: leave out --shard".to_owned(),
        )),
        Some(targets) => crate::aimed::explore(&options.command, &options.settings, &targets, json),
        None => explore_program(&options.command, &options.settings, &options.shard, json),
    }
}

/// Explores one program.
pub(crate) fn explore_program(
    command: &[String],
    options: &ExploreSettings,
    shards: &ShardOptions,
    json: bool,
) -> Result<u8, Failed> {
    let program =
        Program::new(command, options.cwd.as_deref()).map_err(|error| Failed::Usage(error.to_string()))?;
    let mut plan = plan(options, program)?;
    if let Some(shard) = shard::wanted(shards.shard)? {
        if options.stop_after_quiet.is_some() {
            return Err(Failed::Usage(
                "no shard knows which orders the others saw, so they cannot end together: leave out --stop-after-quiet or --shard"
                    .to_owned(),
            ));
        }
        match shard::share(&mut plan, shard, options.seed, shards)? {
            Ok(share) => plan.share = Some(share),
            Err(code) => return Ok(code),
        }
    }
    if !options.quiet {
        let seed = Seed::new(plan.seed);
        eprintln!("waylay: exploring {} with {}, seed {seed}", plan.program.file.display(), plan.strategy);
    }
    let mut lines = Lines::new(options);
    let mut summary = explorer::explore(&plan, &mut lines).map_err(refused)?;
    lines.finish();
    summary.timings = options.timings.then(timings::spent);
    eprint!("\n{}", summary.text());
    // The failures of a shard are numbered when all shards are merged.
    if summary.failures > 0 && plan.share.is_none() {
        eprintln!("\n{}", next_line(1, &summary.folder));
    }
    if json {
        print_json(&summary)?;
    }
    match summary.runs {
        // A shard may have nothing to do, or nothing more: others have.
        0 if plan.share.is_some() => Ok(kept(&summary.folder, CLEAN)),
        0 => Err(Failed::Usage("no schedule was run".to_owned())),
        // Nothing was judged, so nothing is clean.
        runs if summary.limit_reached == runs => {
            eprintln!(
                "waylay: no run came to its end: all reached the limit of {} steps or of {:?}",
                count(options.max_steps),
                options.timeout
            );
            Ok(BAD_USAGE)
        }
        _ => Ok(kept(&summary.folder, if summary.failures > 0 { FAILURES } else { CLEAN })),
    }
}

/// What kind of error it is that an exploration could not be made.
pub(crate) fn refused(error: ExploreError) -> Failed {
    match error {
        ExploreError::NoThreads { .. }
        | ExploreError::ThreadsBeforeMain(_)
        | ExploreError::Run(RunError::NoMain { .. }) => Failed::Usage(error.to_string()),
        other => Failed::Own(other.to_string()),
    }
}

/// What is explored, and how.
pub(crate) fn plan(options: &ExploreSettings, mut program: Program) -> Result<Plan, Failed> {
    let usage = |error: &dyn std::fmt::Display| Failed::Usage(error.to_string());
    let run = conditions(options);
    if options.races && !options.level.sees_accesses() {
        let level = options.level;
        return Err(Failed::Usage(format!(
            "--races needs --level auto or memory: {level} sees no plain accesses"
        )));
    }
    if options.races && !run.patch {
        let why = "atomics of code that was not compiled for it would order nothing, and races be seen where there are none";
        return Err(Failed::Usage(format!("--races needs what --patch none leaves out: {why}")));
    }
    if options.memory == Memory::Tso {
        if !waylay_driver::config::STORES_CAN_WAIT {
            return Err(Failed::Usage(
                "--memory tso works on Linux only: on Windows stores are seen at once".to_owned(),
            ));
        }
        if run.misses_stores() {
            let why = "a store that is not seen would overtake those that wait";
            return Err(Failed::Usage(format!(
                "--memory tso needs --level auto or memory, and patching: {why}"
            )));
        }
    }
    program.environment.extend(options.environment.iter().cloned());
    program.isolated = options.isolate;
    if let Some(file) = &options.stdin {
        program = program.with_input(file).map_err(|error| usage(&error))?;
    }
    let runs = match (options.runs, options.duration) {
        (None, None) => Some(RUNS),
        (runs, _) => runs,
    };
    // A depth says that PCT is meant.
    let unsaid = if options.depth.is_some() { "pct" } else { waylay_schedule::spec::DEFAULT };
    let mut text = options.strategy.clone().unwrap_or_else(|| unsaid.to_owned());
    if let Some(depth) = options.depth {
        text += if text.contains(':') { "," } else { ":" };
        text += &format!("depth={depth}");
    }
    let strategy = Spec::parse(&text, runs.unwrap_or(waylay_schedule::spec::PLANNED_RUNS))
        .map_err(|error| usage(&error))?;
    let stdout = match &options.expect_stdout {
        Some(file) => {
            Some(std::fs::read(file).map_err(|error| Failed::Usage(format!("{}: {error}", file.display())))?)
        }
        None => None,
    };
    program.reference = stdout.as_ref().map_or(0, |reference| reference.len() as u64);
    Ok(Plan {
        program,
        strategy,
        seed: options.seed.unwrap_or_else(Seed::fresh).get(),
        runs,
        duration: options.duration,
        stop_on_first: options.stop_on_first,
        stop_after_quiet: options.stop_after_quiet,
        own_threads: 1,
        jobs: options.jobs,
        restart: options.restart,
        conditions: Conditions {
            run,
            patience_ms: options.timeout.as_millis() as u64,
            ..Conditions::default()
        },
        expected: Expected {
            statuses: options.good_exit.clone(),
            stderr: options.bad_stderr.clone(),
            stdout,
            limit_is_failure: options.limit_is_failure,
            case: false,
            passing: None,
        },
        out: options.out.clone(),
        library: library()?,
        minimize: options.minimize.0,
        share: None,
    })
}

/// What is said of the runs.
fn conditions(options: &ExploreSettings) -> RunConditions {
    let mut conditions = RunConditions {
        baton: options.baton,
        max_steps: options.max_steps,
        idle_timeouts: options.idle_timeouts.unwrap_or(false),
        real_time: options.real_time,
        real_random: options.real_random,
        memory: options.memory,
        calls: !options.no_calls,
        guard: !options.no_guard,
        races: options.races,
        ..RunConditions::of_program(options.level)
    };
    conditions.set_patches(&options.patch);
    conditions
}

/// A line that is written over, or one every few seconds in a log, and one for every new failure.
pub(crate) struct Lines {
    quiet: bool,
    bar: Bar,
    /// Schedules that are planned.
    runs: Option<u64>,
    every: Duration,
    next: Duration,
    feed: Option<Feed>,
}

impl Lines {
    /// Begins to tell, and to write the history.
    pub(crate) fn new(options: &ExploreSettings) -> Lines {
        interrupt::watch();
        let every = if std::io::stderr().is_terminal() { LINE_ON_TERMINAL } else { LINE_IN_LOG };
        let _stage = timings::within(Stage::History);
        let feed = match Feed::open(&options.out, Context::default()) {
            Ok(feed) => Some(feed),
            Err(error) => {
                eprintln!("waylay: the history is not written: {error}");
                None
            }
        };
        let runs = options.runs.or(options.duration.is_none().then_some(RUNS));
        let bar = match options.duration {
            Some(limit) if runs.is_none() => Bar::within("exploring", limit, options.quiet),
            _ => Bar::of("exploring", options.quiet),
        };
        Lines { quiet: options.quiet, bar, runs, every, next: every, feed }
    }

    /// Tells, and writes no history: what is searched for is known already.
    pub(crate) fn untold(what: &str) -> Lines {
        interrupt::watch();
        let bar = Bar::of(what, false);
        Lines { quiet: false, bar, runs: None, every: LINE_IN_LOG, next: LINE_IN_LOG, feed: None }
    }

    /// Ends the history.
    pub(crate) fn finish(mut self) {
        let _stage = timings::within(Stage::History);
        if let Some(problem) = self.feed.take().and_then(Feed::finish) {
            eprintln!("waylay: the history is not written: {problem}");
        }
    }
}

impl Progress for Lines {
    fn tick(&mut self, state: &State) -> bool {
        let rate = state.runs as f64 / state.elapsed.as_secs_f64();
        if self.bar.is_shown() {
            self.bar.reach(state.runs, self.runs);
            let (runs, rate) = (count(state.runs), count(rate as u64));
            let failures = count(state.failures);
            self.bar.say(match self.runs {
                Some(_) => format!("{rate} schedules per second, {failures} failures"),
                None => format!("{runs} schedules ({rate} per second), {failures} failures"),
            });
        } else if !self.quiet && state.elapsed >= self.next {
            self.next = state.elapsed + self.every;
            eprintln!(
                "waylay: {}  {} schedules ({} per second), {} failures",
                span(state.elapsed),
                count(state.runs),
                count(rate as u64),
                count(state.failures)
            );
        }
        !interrupt::requested()
    }

    fn campaign(&mut self, record: &CampaignRecord, _folder: &Path, failures: &[&FailureEntry]) {
        let _stage = timings::within(Stage::History);
        if let Some(feed) = &self.feed {
            feed.campaign(record);
            feed.failures(failures.iter().copied());
        }
    }

    fn found(&mut self, found: &Found) {
        if !self.quiet {
            eprintln!("waylay: run {}: {}: {}", count(found.first_run), found.kind, found.what);
        }
        self.bar.say(format!(
            "confirming the {} of run {} and its cause",
            found.kind,
            count(found.first_run)
        ));
    }

    fn note(&mut self, text: &str) {
        eprintln!("waylay: {text}");
    }
}
