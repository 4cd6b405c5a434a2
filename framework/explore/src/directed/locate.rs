//! Which events of runs are at the places that a search is aimed at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use waylay_evidence::Symbolizer;
use waylay_report::cause::EventPlace;
use waylay_schedule::ordered::EventName;
use waylay_schedule::{EventKind, ObjectId, ThreadId};

use super::spot::{Spot, Target};
use crate::cause::places::{Places, Seen};
use crate::cause::trace::{Pair, Step, is_free, meet};
use crate::recording::StrictRecord;

/// Processes that are looked at: each takes milliseconds.
const MOST_LOOKS: usize = 800;
/// Times that one thread does one thing of which each is looked at: the first and the last of them.
const MOST_TIMES: usize = 6;
/// Pairs of events of one target that are tried.
const MOST_PAIRS: usize = 24;

/// Two events at the places of a target.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    /// Which target.
    pub(crate) target: usize,
    /// The event at the first place before that at the second.
    pub(crate) pair: Pair,
    /// The next event of each one's thread that meets the other, if there is one: what may come between.
    pub(crate) after: [Option<Step>; 2],
    /// The steps themselves.
    pub(crate) steps: [Step; 2],
}

/// What was found of the targets.
pub(crate) struct Located {
    pub(crate) aims: Vec<Aim>,
    /// Places at which nothing happens that could meet something of another thread.
    pub(crate) missing: BTreeSet<Spot>,
}

/// Looks for the events of all targets.
pub(crate) fn locate(
    record: &StrictRecord,
    targets: &[Target],
    runs: &[Seen],
    library: &Path,
    names: &mut Symbolizer,
) -> Located {
    let spots: BTreeSet<&Spot> = targets.iter().flat_map(|target| [&target.one, &target.other]).collect();
    let mut at: BTreeMap<&Spot, Vec<Step>> = BTreeMap::new();
    if !runs.is_empty() {
        let mut places = Places::new(record, library, names, runs);
        for step in worth_a_look(runs) {
            if places.looks() >= MOST_LOOKS {
                break;
            }
            let place: EventPlace = places.event(&step.name);
            for &spot in spots.iter().filter(|spot| spot.is_at(&place)) {
                at.entry(spot).or_default().push(step);
            }
        }
    }
    let none = Vec::new();
    let mut aims = Vec::new();
    for (number, Target { one, other }) in targets.iter().enumerate() {
        let (ones, others) = (at.get(one).unwrap_or(&none), at.get(other).unwrap_or(&none));
        aims.extend(pairs(runs, number, ones, others));
    }
    let missing = spots.into_iter().filter(|spot| !at.contains_key(spot)).cloned().collect();
    Located { aims, missing }
}

/// Every event that meets one of another thread, the first times and the last of each.
fn worth_a_look(runs: &[Seen]) -> Vec<Step> {
    type Deed = (ThreadId, EventKind, ObjectId);
    let mut deeds: BTreeMap<Deed, BTreeMap<u32, Step>> = BTreeMap::new();
    for step in runs.iter().flat_map(|run| &run.trace.events) {
        if is_free(step.event.kind) && !step.event.is_local() {
            let deed = (step.name.thread, step.event.kind, step.event.object);
            deeds.entry(deed).or_default().entry(step.name.occurrence).or_insert(*step);
        }
    }
    let all: Vec<Vec<Step>> = deeds.into_values().map(|deed| deed.into_values().collect()).collect();
    let meets = |one: &Vec<Step>| {
        all.iter()
            .any(|other| one[0].name.thread != other[0].name.thread && meet(&one[0].event, &other[0].event))
    };
    let mut steps = Vec::new();
    for deed in all.iter().filter(|deed| meets(deed)) {
        let half = MOST_TIMES / 2;
        steps.extend(deed.iter().take(half));
        steps.extend(deed.iter().skip(half.max(deed.len().saturating_sub(half))));
    }
    steps
}

/// Pairs of events of two threads, those that touch something in common first.
fn pairs(runs: &[Seen], target: usize, ones: &[Step], others: &[Step]) -> Vec<Aim> {
    let mut all: Vec<(bool, u32, Step, Step)> = Vec::new();
    let mut known: BTreeSet<[EventName; 2]> = BTreeSet::new();
    for one in ones {
        for other in others.iter().filter(|other| other.name.thread != one.name.thread) {
            let mut names = [one.name, other.name];
            names.sort_unstable();
            if known.insert(names) {
                let late = one.name.occurrence + other.name.occurrence;
                all.push((!meet(&one.event, &other.event), late, *one, *other));
            }
        }
    }
    all.sort_by_key(|(apart, late, one, other)| (*apart, *late, one.name, other.name));
    let together = all.first().is_some_and(|(apart, ..)| !apart);
    let wanted = all.into_iter().filter(|(apart, ..)| !(together && *apart)).take(MOST_PAIRS);
    wanted
        .filter_map(|(_, _, one, other)| {
            let after = [next(runs, &one, &other), next(runs, &other, &one)];
            Some(Aim { target, pair: Pair::of(&one, &other)?, after, steps: [one, other] })
        })
        .collect()
}

/// The next event of a thread that meets one of another.
fn next(runs: &[Seen], of: &Step, other: &Step) -> Option<Step> {
    let run = runs.iter().find(|run| run.trace.place(&of.name).is_some())?;
    let place = run.trace.place(&of.name)?;
    let behind = run.trace.events[place + 1..].iter();
    behind
        .filter(|step| step.name.thread == of.name.thread && is_free(step.event.kind))
        .find(|step| meet(&step.event, &other.event))
        .copied()
}
