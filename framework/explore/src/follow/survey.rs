//! Runs of a program about which nothing is known yet: which accesses are steps, and what its threads do.

use waylay_control_protocol::Added;
use waylay_schedule::ordered::{Base, Order};

use crate::cause::places::Seen;
use crate::cause::trace::Trace;
use crate::observed::Observed;
use crate::oracle::{Verdict, judge};
use crate::recording::{Conditions, StrictRecord};
use crate::server::{Guide, RunError, Server};
use crate::sites::Sites;

/// Runs in which accesses are learned, at most, and those in a row that show nothing new after which it is enough.
const MOST_LEARNING: u64 = 40;
const ENOUGH: u64 = 6;
/// Runs whose events are looked through.
const SURVEYED: u64 = 6;

/// The conditions of a failure without what only its build knows: the places of accesses, and runs before.
pub(crate) fn conditions_anew(found: &Conditions) -> Conditions {
    let mut anew = found.clone();
    anew.steps.sites = None;
    anew.steps.known_races.clear();
    anew.steps.atomic_sites.clear();
    anew.before = None;
    anew
}

/// A base of each kind in turn.
pub(crate) fn base(number: u64) -> Base {
    match number {
        0 => Base::Turns(Vec::new()),
        odd if odd % 2 == 1 => Base::Walk(odd),
        even => Base::Priorities(even),
    }
}

/// One run in which orders are kept as far as possible, listened to.
pub(crate) fn run(
    record: &StrictRecord,
    server: &mut Server,
    orders: &[Order],
    base: &Base,
) -> Result<(Observed, Trace), RunError> {
    let mut settings = server.settings(&record.conditions, record.seed, record.index);
    settings.listen = 1;
    let observed = server.run(settings, Guide::Orders(orders, base))?;
    // What was too long to be kept shows no events.
    let trace = server.conversation().map(|said| Trace::of(&said)).unwrap_or_default();
    Ok((observed, trace))
}

/// Learns which accesses conflict in this build; from then on they are steps. `record` is to have
/// [`conditions_anew`].
pub(crate) fn learn(
    record: &mut StrictRecord,
    server: &mut Server,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), RunError> {
    let mut sites = Sites::new(&record.conditions, true);
    if !sites.learns() {
        return Ok(());
    }
    let mut quiet = 0;
    for number in 0..MOST_LEARNING {
        record.conditions = sites.conditions();
        record.conditions.steps.profiled = true;
        if quiet == ENOUGH || !go_on() {
            break;
        }
        let settings = server.settings(&record.conditions, record.seed, record.index);
        let observed = server.run(settings, Guide::Orders(&[], &base(number)))?;
        let failed = matches!(judge(&observed, &record.expected), Verdict::Failed(_));
        let numbers = (observed.accesses, observed.limited);
        let taught = sites.learn(number + 1, &server.conflicting(), numbers, failed);
        quiet = if taught.news == Added::Known { quiet + 1 } else { 0 };
    }
    Ok(())
}

/// What threads do in runs of several kinds in which some orders are kept.
pub(crate) fn survey(
    record: &StrictRecord,
    server: &mut Server,
    orders: &[Order],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<Seen>, RunError> {
    let mut all = Vec::new();
    for number in 0..SURVEYED {
        if !go_on() {
            break;
        }
        let base = base(number);
        let (_, trace) = run(record, server, orders, &base)?;
        if !trace.events.is_empty() {
            all.push(Seen { trace, orders: orders.to_vec(), base });
        }
    }
    Ok(all)
}
