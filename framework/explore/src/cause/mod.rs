//! The cause of a failure: which orders of events it needs, proved by turning each round, and where these events are.
//!
//! - `trace`: what happened in a run, and which two events could matter to each other; pure
//! - `search`: the experiments; pure, above a laboratory
//! - `places`: where events are in the code, and what they are called
//!
//! Here is the laboratory: runs of the program, one after the other, which follow the failure's switches but for the
//! orders that they are asked to keep.

pub(crate) mod places;
mod search;
pub(crate) mod trace;

use std::path::Path;

use waylay_evidence::Symbolizer;
use waylay_report::cause::{Cause, Constraint, Trials};
use waylay_schedule::Turn;
use waylay_schedule::ordered::{Base, Order};

use crate::budget::Budget;
use crate::cause::places::{Places, Seen};
use crate::cause::search::{Count, Laboratory, Outcome, Proved, search};
use crate::cause::trace::Trace;
use crate::oracle::{Verdict, judge};
use crate::recording::StrictRecord;
use crate::server::{Guide, RunError, Server};

/// Schedules that the search for a cause may take.
const MOST_SCHEDULES: u64 = 2_000;

/// Runs of one program.
struct Runs<'a> {
    record: &'a StrictRecord,
    server: &'a mut Server,
    budget: &'a Budget,
    made: u64,
}

impl Laboratory for Runs<'_> {
    type Error = RunError;

    fn run(&mut self, orders: &[Order], base: &Base) -> Result<Option<(Outcome, Trace)>, RunError> {
        if self.made == MOST_SCHEDULES || self.budget.is_spent(self.server) {
            return Ok(None);
        }
        self.made += 1;
        let mut settings = self.server.settings(&self.record.conditions, self.record.seed, self.record.index);
        settings.listen = 1;
        let observed = self.server.run(settings, Guide::Orders(orders, base))?;
        let outcome = match judge(&observed, &self.record.expected) {
            Verdict::Failed(failure) if failure.key == self.record.key && observed.reached => Outcome::Same,
            Verdict::Passed if observed.reached => Outcome::Passed,
            _ => Outcome::Other,
        };
        // A conversation that was too long to be kept tells nothing; the run then shows no order.
        let trace = self.server.conversation().map(|said| Trace::placed(&said)).unwrap_or_default();
        Ok(Some((outcome, trace)))
    }
}

/// Why a failure happens, or why that is not known. `turns` are the switches with which it does.
pub(crate) fn cause(
    record: &StrictRecord,
    turns: &[Turn],
    library: &Path,
    server: &mut Server,
    budget: &Budget,
    names: &mut Symbolizer,
) -> Result<Result<Cause, String>, RunError> {
    let mut lab = Runs { record, server, budget, made: 0 };
    let proved = match search(&mut lab, turns)? {
        Ok(proved) => proved,
        Err(reason) => return Ok(Err(reason)),
    };
    let schedules = lab.made;
    let Proved { orders, flipped, each, kept, near, failing, passing, passing_base } = proved;
    let failing = Seen { trace: failing, orders: Vec::new(), base: Base::Turns(turns.to_vec()) };
    let passing = Seen { trace: passing, orders: Vec::new(), base: passing_base };
    let runs = [failing, passing];
    let mut places = Places::new(record, library, names, &runs);
    places.watch(&orders);
    let constraints = orders.iter().map(|order| {
        let (first, then) = (places.counted(&order.first), places.counted(&order.then));
        let is_lock = [&first, &then].iter().any(|event| event.access.starts_with("lock"));
        let object = places.object(order, is_lock);
        Constraint { first, then, object, allocated: places.allocated(order) }
    });
    Ok(Ok(Cause {
        depth: orders.len() as u32,
        constraints: constraints.collect(),
        flipped: trials(flipped),
        flipped_each: each,
        kept: trials(kept),
        near,
        schedules,
    }))
}

fn trials(Count { runs, same, other }: Count) -> Trials {
    Trials { runs, failures: same, other_failures: other }
}
