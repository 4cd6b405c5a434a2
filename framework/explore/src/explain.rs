//! What is done with every confirmed failure before it is shown: it is minimised, and its cause is sought.

use std::path::Path;
use std::time::Duration;

use waylay_control_protocol::Memory;
use waylay_driver::failure::Kind;
use waylay_evidence::Symbolizer;
use waylay_report::cause::Why;
use waylay_schedule::Schedule;

use crate::budget::Budget;
use crate::cause::cause;
use crate::minimize::{Minimized, minimize_with};
use crate::recording::StrictRecord;
use crate::server::{RunError, Server};
use crate::timings::{self, Stage};

/// Processor time that goes into it unless somebody says otherwise.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(5);

/// What came of it.
#[derive(Debug)]
pub struct Explanation {
    /// The fewest forced switches; none when that could not be found out.
    pub minimized: Option<Minimized>,
    /// Why it fails.
    pub why: Why,
}

/// Minimises a failure and looks for its cause, with so much processor time, and within so long by the clock.
pub fn explain(
    record: &StrictRecord,
    schedule: &Schedule,
    library: &Path,
    (budget, longest): (Duration, Duration),
    names: &mut Symbolizer,
) -> Result<Explanation, RunError> {
    let unknown = |reason: String| Why { cause: None, no_cause: Some(reason) };
    // Minimising takes at most half, so that something is left for the cause.
    let of = |part: u32| Budget::new(budget / part).within(longest / part);
    let (half, whole) = (of(2), of(1));
    let mut server = {
        let _stage = timings::within(Stage::Start);
        Server::start(&record.program, library, &record.conditions)?
    };
    let stage = timings::within(Stage::Minimize);
    let minimized = match minimize_with(record, schedule, library, &mut server, &half) {
        Ok(minimized) => minimized,
        Err(error) => match error.into_run() {
            Ok(error) => return Err(error),
            Err(reason) => return Ok(Explanation { minimized: None, why: unknown(reason) }),
        },
    };
    drop(stage);
    // A race is its own cause: nothing orders its two accesses.
    if record.kind == Kind::Race {
        return Ok(Explanation { minimized: Some(minimized), why: Why::default() });
    }
    let _stage = timings::within(Stage::Cause);
    let why = match cause(record, &minimized.turns, library, &mut server, &whole, names)? {
        Ok(cause) => Why { cause: Some(cause), no_cause: None },
        // When stores are seen is no event of a thread, so that orders of those may not be enough.
        Err(reason) if record.conditions.run.memory == Memory::Tso => {
            unknown(format!("{reason} (when stores that wait are seen is no order of events)"))
        }
        Err(reason) => unknown(reason),
    };
    Ok(Explanation { minimized: Some(minimized), why })
}
