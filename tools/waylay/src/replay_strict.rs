//! `waylay replay` of a failure of strict mode: the same schedule, exactly; of another build, the orders of its cause.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use waylay_driver::failure::changes;
use waylay_driver::interrupt;
use waylay_driver::report::count;
use waylay_driver::store::load_failure;
use waylay_explore::debugger::under_gdb;
use waylay_explore::follow::{Answer, Followed, RUNS, follow};
use waylay_explore::minimize::load_minimized;
use waylay_explore::plugin_test::is_host;
use waylay_explore::recording;
use waylay_explore::recording::StrictRecord;
use waylay_explore::replay::{Replayed, replay as run_again};
use waylay_explore::server::RunError;
use waylay_report::model::Reproduction;
use waylay_schedule::Schedule;

use crate::args::ReplayOptions;
use crate::explore::library;
use crate::output::{CLEAN, FAILURES, Failed, WAYLAY_FAILED, print_json};
use crate::progress::Bar;
use crate::replay::{keep_count, tally, tell_changes};

/// Replays when nobody says how many.
const TIMES: u64 = 10;

/// A test is run by this command, wherever the one is that found the failure.
pub(crate) fn use_this_command(record: &mut StrictRecord) {
    if let (true, Ok(executable)) = (is_host(&record.program), std::env::current_exe()) {
        record.program.file = executable;
    }
}

/// What a replay prints with `--json`.
#[derive(Serialize)]
struct Outcome {
    signature: Option<String>,
    steps: u64,
    switches: u64,
    #[serde(flatten)]
    replayed: Replayed,
    seconds: f64,
    /// What is not the build that failed: the program, or modules of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_builds: Vec<String>,
    /// What following the orders of the cause in another build came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    followed: Option<Followed>,
}

pub(crate) fn replay(arguments: &ReplayOptions, json: bool) -> Result<u8, Failed> {
    let usage = |error: &dyn std::fmt::Display| Failed::Usage(error.to_string());
    let own = |error: &dyn std::fmt::Display| Failed::Own(error.to_string());
    let (mut record, mut schedule) = recording::load(&arguments.failure).map_err(|error| usage(&error))?;
    use_this_command(&mut record);
    record.program.check().map_err(|error| usage(&error))?;
    if arguments.minimized {
        schedule = load_minimized(&arguments.failure).map_err(|error| usage(&error))?;
    }
    let entry = load_failure(&arguments.failure).ok();
    let changed = changes(entry.as_ref().map_or(&[][..], |entry| &entry.builds));
    tell_changes(&changed);
    let library = library()?;
    if arguments.debugger.is_some() {
        return debug(&record, &schedule, &library);
    }
    interrupt::watch();
    let begun = Instant::now();
    let times = arguments.times.unwrap_or(TIMES);
    let go_on = || !interrupt::requested() && begun.elapsed() < arguments.duration;
    let known = entry.as_ref().filter(|_| !changed.is_empty());
    let cause = known.and_then(|known| known.why.cause.as_ref()).filter(|_| !arguments.minimized);
    let followed = match cause {
        Some(cause) => {
            let times = arguments.times.unwrap_or(RUNS);
            let bar = Bar::of("following the orders of the cause", false);
            let asked = || {
                bar.step(times);
                go_on()
            };
            let followed = follow(&record, cause, &library, times, asked).map_err(|error| own(&error))?;
            drop(bar);
            eprintln!("waylay: {}", followed.sentence());
            Some(followed)
        }
        None => None,
    };
    // Steps are counted otherwise in another build, but the schedule may lead there all the same.
    let replayed = match followed.as_ref().filter(|followed| followed.answer == Answer::SameFailure) {
        Some(followed) => Replayed {
            runs: followed.runs,
            reproduced: followed.failures,
            other_failures: followed.other_failures,
            ..Replayed::default()
        },
        None => {
            let bar = Bar::of("replaying", false);
            let asked = || {
                bar.step(times);
                go_on()
            };
            run_again(&record, &schedule, &library, times, known, asked).map_err(|error| own(&error))?
        }
    };
    let outcome = Outcome {
        signature: entry.as_ref().map(|entry| entry.signature.id.clone()),
        steps: schedule.steps(),
        switches: schedule.segments().len().saturating_sub(1) as u64,
        replayed,
        seconds: begun.elapsed().as_secs_f64(),
        other_builds: changed.iter().map(ToString::to_string).collect(),
        followed,
    };
    let replayed = &outcome.replayed;
    let by_cause = replayed.reproduced > 0
        && outcome.followed.as_ref().is_some_and(|followed| followed.answer == Answer::SameFailure);
    if replayed.reproduced > 0 && outcome.followed.is_some() && !by_cause {
        eprintln!("waylay: but the recorded schedule leads to it in this build, too");
    }
    let how = match by_cause {
        true => "by the orders of its cause".to_owned(),
        false => format!("{} steps, {} switches", count(outcome.steps), count(outcome.switches)),
    };
    let (reproduced, runs) = (count(replayed.reproduced), count(replayed.runs));
    eprintln!("reproduced {reproduced} of {runs} ({}, {how})", record.kind);
    if let Some(step) = replayed.first_divergence {
        let detail = replayed.detail.as_deref().unwrap_or("it went another way");
        eprintln!(
            "{} runs left the schedule, the first at step {}: {detail}",
            count(replayed.diverged),
            count(step)
        );
    } else if let Some(detail) = &replayed.detail {
        eprintln!("{} runs failed in another way: {detail}", count(replayed.other_failures));
    }
    // The minimised schedule is another one.
    if !arguments.minimized {
        let more =
            Reproduction { reproduced: replayed.reproduced, runs: replayed.runs, seconds: outcome.seconds };
        keep_count(&recording::folder_of(&arguments.failure), tally(&changed), more);
    }
    if json {
        print_json(&outcome)?;
    }
    Ok(if replayed.reproduced > 0 { FAILURES } else { CLEAN })
}

/// Follows the schedule under gdb.
fn debug(record: &StrictRecord, schedule: &Schedule, library: &Path) -> Result<u8, Failed> {
    let (mut command, region) = under_gdb(record, schedule, library).map_err(|error| match error {
        RunError::System { source, .. } if source.kind() == ErrorKind::Unsupported => {
            Failed::Usage(format!("--debugger: {source}"))
        }
        other => Failed::Own(other.to_string()),
    })?;
    eprintln!("waylay: type `run`; the program follows the recorded schedule, one kernel thread per thread");
    let status = command.status().map_err(|error| Failed::Usage(format!("cannot start gdb: {error}")))?;
    drop(region);
    Ok(if status.success() { CLEAN } else { WAYLAY_FAILED })
}
