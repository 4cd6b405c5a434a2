//! Whether libraries of the system make accesses that conflict: a promise leaves them out only then.
//!
//! Plain accesses of such libraries are no steps, and to look at them costs ten times as much as to look at those of the
//! program alone. So that is done at the end, in some more runs with random choices, and for those libraries only that the
//! program names. A library whose accesses meet no other thread's in an order that nothing settles is no reason to promise
//! less; of others the places are known. What cannot be decided so stays a reason.

use std::collections::BTreeSet;

use waylay_control_protocol::Site;
use waylay_control_protocol::instrumentation::MOST_ACCESSES;
use waylay_driver::campaign::LibraryConflicts as Conflicts;
use waylay_schedule::RunParameters;

use crate::explorer::Plan;
use crate::recording::Conditions;
use crate::restart::Restart;
use crate::server::RunError;
use crate::worker::{Wanted, Worker};

/// Runs that are looked at; as many as every exploration begins with.
pub(crate) const LOOKS: u64 = 16;

/// Looks for conflicts in these libraries. None when that could not be decided: runs had uncontrolled parts or made more
/// accesses than are looked at.
pub(crate) fn look(
    plan: &Plan,
    conditions: &Conditions,
    libraries: &[String],
) -> Result<Option<Conflicts>, RunError> {
    let mut conditions = conditions.clone();
    conditions.run.memory_modules.extend_from_slice(libraries);
    // Each run is looked at, so each is forked.
    let plan = Plan { restart: Restart::Fork, conditions: conditions.clone(), ..plan.clone() };
    let mut worker = Worker::start(&plan)?;
    let parameters = RunParameters::of("random".to_owned());
    let mut conflicts = Conflicts::new();
    let mut accesses = 0;
    for run in 0..LOOKS.min(plan.runs.unwrap_or(LOOKS)) {
        let mut settings = worker.settings(&conditions, run);
        (settings.run, settings.profile, settings.listen) = (run, 1, 0);
        let mut whole = false;
        worker.make(&[Wanted { settings, parameters: &parameters }], &mut |_, made| {
            let observed = &made.observed;
            accesses += observed.accesses;
            whole = observed.hung.is_none() && !observed.partly_controlled && !observed.overlooked;
            for (library, sites) in sort_out(libraries, &made.conflicting) {
                conflicts.entry(library).or_default().extend(sites);
            }
        })?;
        if conflicts.len() == libraries.len() {
            break;
        }
        if !whole || accesses >= MOST_ACCESSES {
            return Ok(None);
        }
    }
    Ok(Some(conflicts))
}

/// Which of the sites that conflict are plain accesses of these libraries. Calls of functions that copy are not among them:
/// those are steps, wherever they are.
fn sort_out(libraries: &[String], conflicting: &[u64]) -> Conflicts {
    let mut found = Conflicts::new();
    for library in libraries {
        let module = Site::new(library, 0).0 >> 32;
        let plain =
            conflicting.iter().map(|&site| Site(site)).filter(|site| site.is_place() && !site.is_copy());
        let sites: BTreeSet<u64> = plain.map(|site| site.0).filter(|site| site >> 32 == module).collect();
        if !sites.is_empty() {
            found.insert(library.clone(), sites);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_by_their_library_and_copies_are_steps() {
        let libraries = ["liba.so", "libb.so", "libc++.so"].map(str::to_owned);
        let of = |library: &str, at| Site::new(library, at);
        let conflicting = [
            of("program", 0x10).0,
            of("liba.so", 0x20).0,
            of("liba.so", 0x30).0,
            of("libb.so", 0x40).as_copy().0,
            of("libb.so", 0x50).as_wait().0,
            Site::of_kind(of("libb.so", 0x60).0).0,
        ];
        let found = sort_out(&libraries, &conflicting);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found["liba.so"], BTreeSet::from([of("liba.so", 0x20).0, of("liba.so", 0x30).0]));
    }
}
