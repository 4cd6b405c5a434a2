//! A recorded failure again: the same schedule, step for step, as often as wanted.

use std::path::Path;

use waylay_schedule::Schedule;

use crate::observed::to_stretches;
use crate::oracle::{Verdict, judge};
use crate::recording::StrictRecord;
use crate::server::{Guide, RunError, Server};

/// What came of replaying a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Replayed {
    /// Runs.
    pub runs: u64,
    /// Runs that failed in the same way.
    pub reproduced: u64,
    /// Runs that failed in another way.
    pub other_failures: u64,
    /// Runs that left the schedule.
    pub diverged: u64,
    /// The first step at which one did.
    pub first_divergence: Option<u64>,
    /// The first divergence, or the first other failure, in words.
    pub detail: Option<String>,
}

/// Runs the schedule `times` times; `go_on` is asked before each.
pub fn replay(
    record: &StrictRecord,
    schedule: &Schedule,
    library: &Path,
    times: u64,
    mut go_on: impl FnMut() -> bool,
) -> Result<Replayed, RunError> {
    let mut server = Server::start(&record.program, library, &record.conditions)?;
    let stretches = to_stretches(schedule);
    let settings = server.settings(&record.conditions, record.seed, record.run);
    let mut replayed = Replayed::default();
    while replayed.runs < times && go_on() {
        let observed = server.run(settings, Guide::Schedule(&stretches))?;
        replayed.runs += 1;
        if let Some(step) = observed.diverged {
            replayed.diverged += 1;
            replayed.first_divergence.get_or_insert(step);
            replayed.detail.get_or_insert(observed.text.trim().to_owned());
        }
        match judge(&observed, &record.expected) {
            Verdict::Failed(failure) if failure.key == record.key && observed.reached => {
                replayed.reproduced += 1
            }
            Verdict::Failed(failure) => {
                replayed.other_failures += 1;
                replayed.detail.get_or_insert(failure.what);
            }
            Verdict::Passed => {}
        }
    }
    Ok(replayed)
}
