//! Which accesses were no steps although a bug may need a switch there: what is promised does not cover them.

use waylay_control_protocol::Level;
use waylay_control_protocol::instrumentation::{MOST_ACCESSES, MOST_CALLS, MOST_STEPS};
use waylay_evidence::Unseen;
use waylay_schedule::ledger::{LeftOut, Reason};

use super::{count, plural};

/// What is known of the steps of schedules, as far as it tells what they leave out.
#[derive(Clone, Debug)]
pub struct Covered {
    /// What was a step.
    pub level: Level,
    /// Whether unmodified code was patched.
    pub patch: bool,
    /// Instructions that could be steps.
    pub patched: u64,
    /// Instructions that could not.
    pub refused: u64,
    /// Some of the latter by name.
    pub refused_places: Vec<String>,
    /// The most plain accesses of a schedule that was looked at.
    pub accesses: u64,
    /// The most places of a schedule whose later accesses were no steps.
    pub limited: u64,
    /// Some of them by name.
    pub limited_places: Vec<String>,
    /// A schedule that was looked at touched more memory than is remembered, or came by code too often.
    pub overlooked: bool,
    /// Some of that code by name.
    pub overlooked_places: Vec<String>,
    /// A schedule made more calls that synchronise nothing than are steps.
    pub calls_over: bool,
    /// Schedules that reached a limit of steps or of time, and so were not judged.
    pub at_limit: u64,
    /// How one asks for the level that looks at plain accesses.
    pub auto: &'static str,
    /// What says which instructions were refused, if anything does.
    pub doctor: Option<&'static str>,
}

/// What a promise about schedules has to leave out. `unseen`: of the code that they are about; `outside`: schedules in which
/// something took part that is not controlled.
pub fn ledger(covered: &Covered, unseen: &Unseen, outside: u64) -> Vec<LeftOut> {
    let mut ledger = Vec::new();
    if !covered.level.sees_accesses() {
        ledger.push(LeftOut::new(Reason::Level, 0));
    } else {
        if !covered.patch {
            ledger.push(LeftOut::new(Reason::NotPatched, 0));
        } else if covered.refused > 0 {
            let places = covered.refused_places.clone();
            ledger.push(LeftOut { reason: Reason::Refused, count: covered.refused, places });
        }
        if covered.limited > 0 {
            let places = covered.limited_places.clone();
            ledger.push(LeftOut { reason: Reason::PlaceLimit, count: covered.limited, places });
        }
        if covered.accesses >= MOST_ACCESSES || covered.overlooked {
            let places = covered.overlooked_places.clone();
            ledger.push(LeftOut { reason: Reason::RunLimit, count: MOST_ACCESSES, places });
        }
        for (reason, names) in [(Reason::Copies, &unseen.copies), (Reason::Libraries, &unseen.libraries)] {
            if !names.is_empty() {
                ledger.push(LeftOut::named(reason, names));
            }
        }
    }
    if covered.calls_over {
        ledger.push(LeftOut::new(Reason::CallLimit, u64::from(MOST_CALLS)));
    }
    if covered.at_limit > 0 {
        ledger.push(LeftOut::new(Reason::Limit, covered.at_limit));
    }
    if outside > 0 {
        ledger.push(LeftOut::new(Reason::Outside, outside));
    }
    ledger
}

/// A sentence about each.
pub fn left_out(covered: &Covered) -> Vec<String> {
    let mut notes = Vec::new();
    if !covered.level.sees_accesses() {
        notes.push(format!(
            "plain accesses to memory were no steps at level {}: bugs between them were not looked for ({} does)",
            covered.level, covered.auto
        ));
    } else if !covered.patch {
        notes.push(
            "plain accesses were steps only in code that was compiled for it: nothing was patched".to_owned(),
        );
    } else if covered.refused > 0 {
        let doctor = covered.doctor.map_or_else(String::new, |doctor| format!(" ({doctor})"));
        notes.push(format!(
            "{} of {} instructions could not be patched and were no steps{doctor}",
            count(covered.refused),
            count(covered.refused + covered.patched),
        ));
    }
    if covered.accesses >= MOST_ACCESSES {
        notes.push(format!(
            "runs make more than {} plain accesses: only the first of them were looked at for conflicts",
            count(MOST_ACCESSES)
        ));
    }
    if covered.calls_over {
        notes.push(format!(
            "runs make more than {} calls that synchronise nothing: only the first of them were steps",
            count(u64::from(MOST_CALLS))
        ));
    }
    if covered.limited > 0 {
        notes.push(format!(
            "{} places in the code made more than {} steps in a run: their later accesses were no steps{}",
            count(covered.limited),
            count(u64::from(MOST_STEPS)),
            if covered.limited_places.is_empty() {
                String::new()
            } else {
                format!(" ({})", covered.limited_places.join(", "))
            }
        ));
    }
    notes
}

/// How many of a run's accesses are steps; none when it was not looked at them.
pub fn steps_line(steps: u64, accesses: u64, sites: u64) -> Option<String> {
    (accesses > 0).then(|| {
        format!(
            "a run makes {} plain accesses; those at {} in the code conflict and are steps: k = {} instead of up to {}",
            count(accesses),
            plural(sites, "place"),
            count(steps),
            count(steps + accesses)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_empty_only_if_nothing_is_left_out() {
        let whole = Covered {
            level: Level::Auto,
            patch: true,
            patched: 7,
            refused: 0,
            refused_places: Vec::new(),
            accesses: 10,
            limited: 0,
            limited_places: Vec::new(),
            overlooked: false,
            overlooked_places: Vec::new(),
            calls_over: false,
            at_limit: 0,
            auto: "",
            doctor: None,
        };
        let reasons = |covered: &Covered, unseen: &Unseen, outside| {
            ledger(covered, unseen, outside).into_iter().map(|left_out| left_out.reason).collect::<Vec<_>>()
        };
        let nothing = Unseen::default();
        assert!(reasons(&whole, &nothing, 0).is_empty());
        let limited_places = vec!["push (queue.c:7)".to_owned()];
        let part =
            Covered { refused: 2, limited: 1, limited_places, accesses: MOST_ACCESSES, ..whole.clone() };
        assert_eq!(ledger(&part, &nothing, 0)[1].places, ["push (queue.c:7)"]);
        let overlooked = Covered { overlooked: true, ..whole };
        assert_eq!(reasons(&overlooked, &nothing, 0), [Reason::RunLimit]);
        let cut = Covered { calls_over: true, at_limit: 5, overlooked: false, ..overlooked };
        assert_eq!(reasons(&cut, &nothing, 0), [Reason::CallLimit, Reason::Limit]);
        let copies = Unseen { copies: vec!["memcpy".to_owned()], ..Unseen::default() };
        assert_eq!(
            reasons(&part, &copies, 3),
            [Reason::Refused, Reason::PlaceLimit, Reason::RunLimit, Reason::Copies, Reason::Outside]
        );
        let atomics = Covered { level: Level::Atomics, ..part };
        assert_eq!(reasons(&atomics, &copies, 0), [Reason::Level], "which is all the rest");
    }
}
