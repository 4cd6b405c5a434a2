//! Which accesses were no steps although a bug may need a switch there: what is promised does not cover them.

use waylay_control_protocol::Level;
use waylay_control_protocol::instrumentation::{MOST_ACCESSES, MOST_STEPS};

use super::count;

/// What is known of the steps of schedules, as far as it tells what they leave out.
#[derive(Clone, Copy, Debug)]
pub struct Covered {
    /// What was a step.
    pub level: Level,
    /// Whether unmodified code was patched.
    pub patch: bool,
    /// Instructions that could be steps.
    pub patched: u64,
    /// Instructions that could not.
    pub refused: u64,
    /// The most plain accesses of a schedule that was looked at.
    pub accesses: u64,
    /// The most places of a schedule whose later accesses were no steps.
    pub limited: u64,
    /// How one asks for the level that looks at plain accesses.
    pub auto: &'static str,
    /// What says which instructions were refused, if anything does.
    pub doctor: Option<&'static str>,
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
    if covered.limited > 0 {
        notes.push(format!(
            "{} places in the code made more than {} steps in a run: their later accesses were no steps",
            count(covered.limited),
            count(u64::from(MOST_STEPS))
        ));
    }
    notes
}

/// How many of a run's accesses are steps; none when it was not looked at them.
pub fn steps_line(steps: u64, accesses: u64, sites: u64) -> Option<String> {
    (accesses > 0).then(|| {
        format!(
            "a run makes {} plain accesses; those at {} places in the code conflict and are steps: k = {} instead of up to {}",
            count(accesses),
            count(sites),
            count(steps),
            count(steps + accesses)
        )
    })
}
