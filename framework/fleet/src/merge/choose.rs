//! Which parts count, and what is missing of the night: a pure function of the set of parts.
//!
//! A shard may have been run by several processes one after the other, each going on where the one before ended, and by copies
//! at the same time when an engine took the first for dead. Of all ways to go through them without a gap or an overlap that one
//! is taken that comes to the end, or farthest.

use std::collections::BTreeMap;

use waylay_driver::store::Unit;
use waylay_schedule::Shard;

use super::part::{MergeError, Part};

/// What is missing of a night.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Which part.
    pub part: Shard,
    /// What of it is there: up to this schedule or iteration; none when nothing is.
    pub reached: Option<u64>,
    /// What it would have added, if that is known.
    pub lost: Option<u64>,
    /// What is counted.
    pub unit: Unit,
    /// What it said itself.
    pub why: Option<String>,
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, counted) = match self.unit {
            Unit::Schedules => ("shard", "schedules"),
            Unit::Lots => ("lot", "iterations"),
            Unit::Cases => ("shard", "cases"),
        };
        match self.reached {
            None => write!(f, "{what} {} is missing", self.part)?,
            Some(_) => write!(f, "{what} {} was cut off", self.part)?,
        }
        match self.lost {
            Some(lost) => write!(f, ": {lost} {counted} that it would have added are not in this night")?,
            None => write!(f, ": what it would have added is not known")?,
        }
        self.why.as_ref().map_or(Ok(()), |why| write!(f, " ({why})"))
    }
}

/// How a night stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Places of the parts that count.
    pub chosen: Vec<usize>,
    /// What is missing.
    pub gaps: Vec<Gap>,
    /// A search has seen everything, all its parts together.
    pub exhausted: bool,
}

/// Chooses among parts, which are in the order of their names.
pub(super) fn choose(parts: &[Part]) -> Result<Standing, MergeError> {
    let first = parts[0].shard();
    if let Some(other) =
        parts.iter().find(|part| part.shard().night != first.night || part.shard().pack != first.pack)
    {
        let shard = other.shard();
        let iterations: u64 = tests(other).map(|test| test.iterations).sum();
        return Err(MergeError::Input(format!(
            "these are parts of two nights: part {} of {} ({}) was run from other code, with other settings or another seed; it \
             would have added {iterations} iterations and {} failures. Merge each night on its own",
            shard.part, other.record.name, shard.machine, other.record.failures
        )));
    }
    if let Some(other) = parts.iter().find(|part| part.shard().part.of != first.part.of) {
        return Err(MergeError::Input(format!(
            "these are parts of two divisions: {} and {}. Merge those of one division",
            first.part,
            other.shard().part
        )));
    }
    let mut by_number: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (place, part) in parts.iter().enumerate() {
        by_number.entry(part.shard().part.number).or_default().push(place);
    }
    // One that was killed at once did not say it yet.
    let planned = parts.iter().find_map(|part| part.shard().planned);
    let mut standing = Standing { chosen: Vec::new(), gaps: Vec::new(), exhausted: false };
    for number in 1..=first.part.of {
        let part = Shard { number, of: first.part.of };
        let chain = by_number.get(&number).map_or_else(Vec::new, |places| follow(parts, places));
        let last = chain.last().map(|&place| parts[place].shard());
        if last.is_none_or(|last| !last.done) {
            let reached = last.map(|last| last.to);
            standing.gaps.push(Gap {
                part,
                reached,
                lost: lost(first.unit, part, planned, reached),
                unit: first.unit,
                why: last.and_then(|last| last.why.clone()),
            });
        }
        standing.chosen.extend(chain);
    }
    // Places of a search's steps are learned by each part on its own: only if all came to the same, their parts make up a whole.
    let mut searched = standing.chosen.iter().map(|&place| parts[place].shard());
    standing.exhausted = standing.gaps.is_empty()
        && first.unit == Unit::Schedules
        && searched.all(|shard| shard.exhausted && shard.steps == first.steps);
    Ok(standing)
}

fn tests(part: &Part) -> impl Iterator<Item = &waylay_driver::store::TestRecord> {
    part.record.scenarios.iter().flat_map(|scenario| &scenario.tests)
}

fn lost(unit: Unit, part: Shard, planned: Option<u64>, reached: Option<u64>) -> Option<u64> {
    let own = part.share(planned?);
    Some(match (unit, reached) {
        (Unit::Schedules, Some(reached)) => own.saturating_sub(part.share(reached)),
        // A lot that was cut off counts as far as it came.
        (Unit::Lots, Some(reached)) => own.saturating_sub(reached),
        // Which of its cases were explored to their end is not known.
        (Unit::Cases, Some(_)) => return None,
        (_, None) => own,
    })
}

/// The parts of one shard that count, one behind the other.
fn follow(parts: &[Part], places: &[usize]) -> Vec<usize> {
    let shard = |place: usize| parts[place].shard();
    let mut ordered = places.to_vec();
    ordered.sort_by_key(|&place| (shard(place).from, shard(place).to, &parts[place].id));
    // The best way to each reached schedule: the part that gets there, by what it reaches. Parts that end where they begin
    // reached nothing, unless they are done.
    let mut by_end: BTreeMap<u64, usize> = BTreeMap::new();
    let mut best: Option<(bool, u64, usize)> = None;
    for &place in &ordered {
        let one = shard(place);
        if one.from > 0 && !by_end.contains_key(&one.from) {
            continue;
        }
        let better = best.is_none_or(|(done, to, _)| (one.done, one.to) > (done, to));
        if better {
            best = Some((one.done, one.to, place));
        }
        if one.to > one.from {
            by_end.entry(one.to).or_insert(place);
        }
    }
    let mut chain = Vec::new();
    let mut next = best.map(|(_, _, place)| place);
    while let Some(place) = next {
        chain.push(place);
        let from = shard(place).from;
        next = if from > 0 { by_end.get(&from).copied() } else { None };
    }
    chain.reverse();
    chain
}
