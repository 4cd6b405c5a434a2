//! `waylay suite --flaky CASE`: all time for one case until it fails, then how often it does under which strategy.

use std::time::{Duration, Instant};

use serde::Serialize;
use waylay_driver::interrupt;
use waylay_driver::report::count;
use waylay_explore::explorer::{self, ExploreError, Plan, Progress, State};
use waylay_explore::suite::Case;
use waylay_explore::suite::summary::CaseResult;
use waylay_explore::suite::together;
use waylay_explore::summary::Found;
use waylay_report::shell;
use waylay_schedule::Spec;

use super::Lines;
use crate::args::{CaseOptions, ExploreSettings};
use crate::output::{CLEAN, FAILURES, Failed, print_json};

/// How long it is tried when neither a time nor a number is given.
const PATIENCE: Duration = Duration::from_secs(600);
/// Schedules per strategy that tell how often it fails; not more than were asked for.
const MEASURED: u64 = 200;
/// Time for them.
const MEASURING: Duration = Duration::from_secs(10);
/// The strategies that are compared, beside the one that found it.
const STRATEGIES: [&str; 6] = ["pct", "rpro", "stride", "pos", "surw", "random"];

/// What is printed for machines.
#[derive(Serialize)]
struct Answer {
    result: CaseResult,
    /// How often it fails, by strategy.
    rates: Vec<Rate>,
    /// The command that runs exactly the failing schedule.
    replay: Option<String>,
}

/// How often the case fails under a strategy.
#[derive(Serialize)]
struct Rate {
    strategy: String,
    runs: u64,
    failures: u64,
}

pub(super) fn flaky(
    mut base: Plan,
    case: &Case,
    (cases, settings): (&CaseOptions, &ExploreSettings),
    json: bool,
) -> Result<u8, Failed> {
    if settings.runs.is_none() {
        base.runs = None;
        base.duration = Some(settings.duration.unwrap_or(PATIENCE));
    }
    let own = |error: ExploreError| Failed::Own(error.to_string());
    let mut lines = Lines::new(settings);
    let mut explored = together::explore(&base, std::slice::from_ref(case), &mut lines).map_err(own)?;
    lines.finish();
    let Some(result) = explored.cases.pop() else {
        return Err(Failed::Usage("no schedule was run".to_owned()));
    };
    if result.no_threads {
        let name = case.program.subject();
        return Err(Failed::Usage(format!(
            "{name} starts no threads, so there is one schedule only: nothing ran"
        )));
    }
    if let Some(why) = &result.unable {
        return Err(Failed::Usage(format!("{} cannot be explored: {why}", case.program.subject())));
    }
    eprint!("\n{}", result.summary.text());
    crate::report::files(&explored.folder, cases.junit.as_deref(), cases.sarif.as_deref())?;
    if result.summary.found.is_empty() && base.conditions.run.idle_timeouts {
        eprintln!(
            "sleeps and timeouts ended only when nothing else could run: a case that fails when one ends early needs \
             --idle-timeouts=false"
        );
    }
    let mut answer = Answer { result, rates: Vec::new(), replay: None };
    let found = answer.result.summary.found.first().cloned();
    if let Some(found) = &found {
        for strategy in std::iter::once(base.strategy.to_string()).chain(STRATEGIES.map(str::to_owned)) {
            if interrupt::requested() {
                break;
            }
            answer.rates.push(rate(&base, case, &strategy, settings.runs.unwrap_or(MEASURED).min(MEASURED))?);
        }
        eprintln!("\nhow often it fails:");
        for rate in &answer.rates {
            let name = rate.strategy.split(':').next().unwrap_or_default();
            eprintln!("  {name:<10} {} of {} schedules", count(rate.failures), count(rate.runs));
        }
        let option = if found.forced.is_some() { " --minimized" } else { "" };
        answer.replay =
            found.failure_dir.as_ref().map(|folder| format!("waylay replay{option} {}", shell::word(folder)));
        if let (Some(replay), Some(folder)) = (&answer.replay, &found.failure_dir) {
            eprintln!(
                "\nexactly that again:  {replay}\nwhen it is mended:   waylay verify {}",
                shell::word(folder)
            );
        }
    }
    if json {
        print_json(&answer)?;
    }
    Ok(if found.is_some() { FAILURES } else { CLEAN })
}

/// How often the case fails under a strategy; what is found again is not kept.
fn rate(base: &Plan, case: &Case, strategy: &str, runs: u64) -> Result<Rate, Failed> {
    let scratch = waylay_explore::scratch_folder().map_err(|error| Failed::Own(error.to_string()))?;
    let spec = Spec::parse(strategy, runs).map_err(|error| Failed::Own(error.to_string()))?;
    let mut plan = Plan {
        program: case.program.clone(),
        strategy: spec,
        runs: Some(runs),
        duration: Some(MEASURING),
        stop_on_first: false,
        stop_after_quiet: None,
        own_threads: case.own_threads,
        out: scratch.path().to_owned(),
        ..base.clone()
    };
    plan.program.environment.extend(base.program.environment.iter().cloned());
    plan.expected.case = true;
    plan.expected.passing.clone_from(&case.passing);
    let summary = explorer::explore(&plan, &mut Silent(Instant::now()))
        .map_err(|error| Failed::Own(error.to_string()))?;
    Ok(Rate { strategy: strategy.to_owned(), runs: summary.runs, failures: summary.failures })
}

/// Says nothing.
struct Silent(Instant);

impl Progress for Silent {
    fn tick(&mut self, _state: &State) -> bool {
        !interrupt::requested() && self.0.elapsed() < 2 * MEASURING
    }

    fn found(&mut self, _found: &Found) {}
}
