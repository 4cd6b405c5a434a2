//! Which events of this build are those of a cause: by what the code around them says, and what they touch.

use std::path::Path;

use waylay_evidence::Symbolizer;
use waylay_report::cause::{Cause, Constraint, EventPlace};

use super::candidates::{Deed, Meeting, Shift, deeds_of, meetings};
use super::likeness::Likeness;
use crate::cause::places::{Places, Seen};
use crate::cause::trace::{Pair, Step};
use crate::recording::StrictRecord;

/// Processes that are looked at for one cause: each takes milliseconds.
const MOST_LOOKS: usize = 300;
/// Meetings of a constraint that are looked at, and times that something is done of which each is.
const MOST_MEETINGS: usize = 24;
const MOST_TIMES: usize = 16;
/// Readings of one constraint that are weighed against those of others, and of the whole cause that are returned.
const MOST_EACH: usize = 4;
const MOST_READINGS: usize = 8;

/// What the orders of a cause are in this build.
pub(crate) struct Reading {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) constraints: Vec<Constraint>,
}

/// What came of it.
pub(crate) struct Identified {
    /// Whole readings, the best first. When an event is missing they are guesses by numbers alone, which only a failure proves.
    pub(crate) readings: Vec<Reading>,
    /// The events that are missing, in words.
    pub(crate) missing: Vec<String>,
    /// The orders that were found when some were not.
    pub(crate) partly: Vec<Pair>,
}

/// One order in this build.
#[derive(Clone)]
struct Order {
    score: u32,
    pair: Pair,
    constraint: Constraint,
}

/// Finds the events of a cause among those of runs.
pub(crate) fn identify(
    record: &StrictRecord,
    cause: &Cause,
    runs: &[Seen],
    library: &Path,
    names: &mut Symbolizer,
) -> Identified {
    let all = || cause.constraints.iter();
    let nothing = |missing| Identified { readings: Vec::new(), missing, partly: Vec::new() };
    if runs.is_empty() {
        let every = all().flat_map(|one| [event(one, &one.first), event(one, &one.then)]);
        return nothing(every.collect());
    }
    let mut places = Places::new(record, library, names, runs);
    let mut best = nothing(Vec::new());
    for shift in Shift::ALL {
        let found: Vec<Vec<Order>> =
            all().map(|one| orders(&mut places, runs, one, (shift, Rule::Alike))).collect();
        let missing: Vec<String> = all()
            .zip(&found)
            .filter(|(_, found)| found.is_empty())
            .flat_map(|(one, _)| gone(&mut places, runs, one))
            .collect();
        if missing.is_empty() {
            return Identified { readings: readings(cause, &found), missing, partly: Vec::new() };
        }
        if shift == Shift(0) {
            let partly = found.iter().filter_map(|found| Some(found.first()?.pair)).collect();
            best = Identified { readings: Vec::new(), missing, partly };
        }
    }
    // Names may be gone altogether, and numbers stay.
    let rule = (Shift(0), Rule::Numbers);
    let found: Vec<Vec<Order>> = all().map(|one| orders(&mut places, runs, one, rule)).collect();
    if found.iter().all(|found| !found.is_empty()) {
        best.readings = readings(cause, &found);
    }
    best
}

/// What makes an event the one that is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Its place is alike, or what it touches has the same name.
    Alike,
    /// It is as manieth of its kind.
    Numbers,
}

/// The ways to read one constraint, the best first.
fn orders(
    places: &mut Places<'_>,
    runs: &[Seen],
    constraint: &Constraint,
    (shift, rule): (Shift, Rule),
) -> Vec<Order> {
    let mut all: Vec<(bool, Meeting)> = meetings(runs, constraint, shift)
        .into_iter()
        .map(|meeting| (is_called(places, &meeting, &constraint.object), meeting))
        .collect();
    // What has the right name comes first, then what is done as often as is needed.
    let often = |meeting: &Meeting| {
        meeting.first.steps.len() >= constraint.first.occurrence as usize
            && meeting.then.steps.len() >= constraint.then.occurrence as usize
    };
    all.sort_by_key(|(named, meeting)| (!named, !often(meeting), meeting.object()));
    let mut orders: Vec<Order> = Vec::new();
    for (named, meeting) in all.into_iter().take(MOST_MEETINGS) {
        if places.looks() >= MOST_LOOKS {
            break;
        }
        let rule = if named { Rule::Numbers } else { rule };
        let Some((first, first_place, one)) = choose(places, &meeting.first, &constraint.first, rule) else {
            continue;
        };
        let Some((then, then_place, two)) = choose(places, &meeting.then, &constraint.then, rule) else {
            continue;
        };
        let Some(pair) = Pair::of(&first, &then) else { continue };
        // What has no name of its own keeps the one that the cause gave it.
        let object = places.object(&pair.shown, constraint.object.starts_with("lock "));
        let object = if object.starts_with('`') { object } else { constraint.object.clone() };
        let constraint = Constraint { first: first_place, then: then_place, object, allocated: None };
        orders.push(Order { score: one + two + 6 * u32::from(named), pair, constraint });
    }
    orders.sort_by_key(|order| std::cmp::Reverse(order.score));
    orders.truncate(MOST_EACH);
    orders
}

/// Whether what both touch is a variable with the name that the constraint speaks of.
fn is_called(places: &mut Places<'_>, meeting: &Meeting, name: &str) -> bool {
    let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else { return false };
    places.variable(meeting.object()).is_some_and(|variable| variable == name)
}

/// The time that is meant of all that a thread does something; with its place, and how well that agrees.
fn choose(
    places: &mut Places<'_>,
    deed: &Deed,
    wanted: &EventPlace,
    rule: Rule,
) -> Option<(Step, EventPlace, u32)> {
    // Those around the wanted number: in a long loop all are alike.
    let at = (wanted.occurrence as usize).saturating_sub(MOST_TIMES / 2);
    let at = at.min(deed.steps.len().saturating_sub(MOST_TIMES));
    let mut seen: Vec<(Likeness, Step, EventPlace)> = Vec::new();
    for step in deed.steps.iter().skip(at).take(MOST_TIMES) {
        let place = places.event(&step.name);
        seen.push((Likeness::of(wanted, &place), *step, place));
    }
    let best = seen.iter().map(|(likeness, ..)| *likeness).max_by_key(|likeness| likeness.score())?;
    if !best.is_known() && rule == Rule::Alike {
        return None;
    }
    let alike: Vec<_> = seen.into_iter().filter(|(likeness, ..)| *likeness == best).collect();
    // The how manieth at its place; if only the function is the same, in that; otherwise of all.
    let counted = match () {
        () if best.is_exact() => wanted.here,
        () if best.is_function() => wanted.in_function,
        () => wanted.occurrence,
    };
    let counted = if at > 0 || counted == 0 { wanted.occurrence.saturating_sub(at as u32) } else { counted };
    let place = (counted.max(1) as usize - 1).min(alike.len() - 1);
    let same_time = alike[place].1.name.occurrence == wanted.occurrence;
    let (likeness, step, place) = alike.into_iter().nth(place)?;
    Some((step, place, likeness.score() + u32::from(same_time)))
}

/// Puts readings of single constraints together. Those that were about one thing should be so again, and those about two
/// about two.
fn readings(cause: &Cause, found: &[Vec<Order>]) -> Vec<Reading> {
    let mut whole: Vec<Vec<&Order>> = vec![Vec::new()];
    for orders in found {
        whole = whole
            .iter()
            .flat_map(|so_far| orders.iter().map(move |order| [so_far.as_slice(), &[order]].concat()))
            .take(4096)
            .collect();
    }
    let score = |orders: &Vec<&Order>| {
        let mut score: i64 = orders.iter().map(|order| i64::from(order.score)).sum();
        for one in 0..orders.len() {
            for other in 0..one {
                let object = |place: usize| {
                    let shown = orders[place].pair.shown;
                    shown.first.object.max(shown.then.object)
                };
                let were = cause.constraints[one].object == cause.constraints[other].object;
                score -= 20 * i64::from(were != (object(one) == object(other)));
            }
        }
        score
    };
    whole.sort_by_key(|orders| std::cmp::Reverse(score(orders)));
    whole.truncate(MOST_READINGS);
    let reading = |orders: Vec<&Order>| Reading {
        pairs: orders.iter().map(|order| order.pair).collect(),
        constraints: orders.iter().map(|order| order.constraint.clone()).collect(),
    };
    whole.into_iter().map(reading).collect()
}

/// Which of the two events of a constraint are not there; both together when each is, but never on one thing.
fn gone(places: &mut Places<'_>, runs: &[Seen], constraint: &Constraint) -> Vec<String> {
    let Constraint { first, then, .. } = constraint;
    let mut is_there = |wanted: &EventPlace| {
        let met = deeds_of(runs, wanted);
        met.into_iter()
            .take(MOST_MEETINGS)
            .any(|deed| places.looks() < MOST_LOOKS && choose(places, &deed, wanted, Rule::Alike).is_some())
    };
    let (one, other) = (is_there(first), is_there(then));
    let missing = [(one, first), (other, then)];
    let missing: Vec<String> =
        missing.iter().filter(|(there, _)| !there).map(|(_, place)| event(constraint, place)).collect();
    match missing.is_empty() {
        true => vec![format!("{} (they touch nothing in common)", constraint.sentence())],
        false => missing,
    }
}

fn event(constraint: &Constraint, place: &EventPlace) -> String {
    place.sentence(&constraint.object)
}
