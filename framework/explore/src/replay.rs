//! A recorded failure again: the same schedule, step for step, as often as wanted.
//!
//! The keys of some failures hold addresses of code, which only the build that failed has. In another build the places are
//! compared by the functions that are there.

use std::collections::BTreeMap;
use std::path::Path;

use waylay_driver::failure::{FailureEntry, Kind};
use waylay_evidence::signature::Signature;
use waylay_evidence::{Origin, Symbolizer, ThreadStack, origin};
use waylay_schedule::Schedule;

use crate::confirm::confirm;
use crate::observed::to_stretches;
use crate::oracle::{Failure, Verdict, judge};
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

/// Runs the schedule `times` times; `go_on` is asked before each. `known` is the failure's entry if the program, or a
/// module of it, is another build than the one that failed.
pub fn replay(
    record: &StrictRecord,
    schedule: &Schedule,
    library: &Path,
    times: u64,
    known: Option<&FailureEntry>,
    mut go_on: impl FnMut() -> bool,
) -> Result<Replayed, RunError> {
    let mut server = Server::start(&record.program, library, &record.conditions)?;
    let stretches = to_stretches(schedule);
    let settings = server.settings(&record.conditions, record.seed, record.index);
    let mut replayed = Replayed::default();
    let mut alike: BTreeMap<String, bool> = BTreeMap::new();
    while replayed.runs < times && go_on() {
        let observed = server.run(settings, Guide::repeating(&stretches, &record.parameters))?;
        replayed.runs += 1;
        if let Some(step) = observed.diverged {
            replayed.diverged += 1;
            replayed.first_divergence.get_or_insert(step);
            replayed.detail.get_or_insert_with(|| observed.account.text().trim().to_owned());
        }
        let Verdict::Failed(failure) = judge(&observed, &record.expected) else { continue };
        let same = match (known, alike.get(&failure.key)) {
            _ if failure.key == record.key => true,
            (None, _) => false,
            (Some(_), Some(&same)) => same,
            (Some(known), None) => {
                let same = is_in_the_same_place(record, schedule, library, &failure, known)?;
                alike.insert(failure.key.clone(), same);
                same
            }
        };
        if same && observed.reached {
            replayed.reproduced += 1;
        } else {
            replayed.other_failures += 1;
            replayed.detail.get_or_insert(failure.what);
        }
    }
    Ok(replayed)
}

/// Runs the schedule in a process that is held where it fails, and compares the functions that are on its stacks with those
/// of the failure that is known.
fn is_in_the_same_place(
    record: &StrictRecord,
    schedule: &Schedule,
    library: &Path,
    failure: &Failure,
    known: &FailureEntry,
) -> Result<bool, RunError> {
    if failure.kind != record.kind {
        return Ok(false);
    }
    let StrictRecord { program, conditions, expected, seed, index, .. } = record;
    let names = &mut Symbolizer::default();
    let stretches = to_stretches(schedule);
    let guide = Guide::repeating(&stretches, &record.parameters);
    let shown = confirm(program, library, conditions, expected, (*seed, *index), guide, failure, names)?;
    let now = place(failure.kind, &shown.seen.stacks);
    Ok(shown.confirmed && now.is_some() && now == place(failure.kind, &known.stacks))
}

/// Where a failure is, by the names of functions; none when nothing is named.
fn place(kind: Kind, stacks: &[ThreadStack]) -> Option<String> {
    let named = |stack: &&ThreadStack| {
        stack.frames.iter().any(|frame| origin(frame) == Origin::Own && frame.function.is_some())
    };
    let signature = match kind {
        Kind::Deadlock => Signature::of_hang("", "", stacks.iter().filter(named)),
        Kind::Race => Signature::of_hang("", "", stacks.iter().take(2)),
        _ => Signature::of_stack("", "", None, &stacks.first()?.frames),
    };
    stacks.iter().any(|stack| named(&stack)).then_some(signature.text)
}
