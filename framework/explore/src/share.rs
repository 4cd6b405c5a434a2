//! Which runs of a night one shard makes, and which of those count as its own.
//!
//! Shards do not talk to each other, and still the same runs with the same parameters are made for any number of them. What
//! a run is given depends on runs before it that were learned from; so every shard makes those, its own or not: scouts. They
//! are the first runs and a few of the later ones. Of the others it makes every N-th. A scout of another shard is learned from
//! and not counted, nor is what it found: the other shard finds it, too.
//!
//! A search goes from one schedule to the next: it is divided by the first choices ([`Shard::has_choices`]). A portfolio with a
//! search in it learns from every run, so the first shard has all of it.

use waylay_driver::store::{Outcomes, ShardRecord, Unit};
use waylay_schedule::{Shard, Spec};

use crate::learner::{Planned, searches};

/// What one shard makes of the runs of a night.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which part.
    pub shard: Shard,
    /// Runs before this one, counted from 0, are counted by an earlier process of the same shard.
    pub from: u64,
    /// Names the night: what is run, how, and with which seed.
    pub night: String,
    /// Names what was packed, if it was.
    pub pack: Option<String>,
    /// The machine.
    pub machine: String,
}

impl Share {
    /// The record of a shard of which nothing is known yet.
    pub(crate) fn record(&self, unit: Unit) -> ShardRecord {
        ShardRecord {
            night: self.night.clone(),
            pack: self.pack.clone(),
            part: self.shard,
            unit,
            machine: self.machine.clone(),
            from: self.from,
            to: self.from,
            planned: None,
            done: false,
            why: None,
            exhausted: false,
            steps: String::new(),
            outcomes: Outcomes::default().to_string(),
            failures: Default::default(),
        }
    }

    /// Whether a run is this shard's own.
    pub(crate) fn has(&self, planned: &Planned, strategy: &Spec) -> bool {
        if strategy.is_search() {
            return self.shard.has_choices(&planned.parameters.choices);
        }
        match searches(strategy) {
            true => self.shard.number == 1,
            false => self.shard.has(planned.run.index) && planned.run.index >= self.from,
        }
    }

    /// Why there is nothing to do for this shard, of so many runs in all.
    pub(crate) fn is_idle(&self, strategy: &Spec, runs: Option<u64>) -> Option<String> {
        let shard = self.shard;
        if searches(strategy) && !strategy.is_search() && shard.number > 1 {
            return Some(format!(
                "shard {shard} has nothing to do: a portfolio with a search in it cannot be divided, shard 1/{} has all of it",
                shard.of
            ));
        }
        let none = !strategy.is_search() && runs.is_some_and(|runs| shard.share(runs) == 0);
        none.then(|| {
            format!("shard {shard} has nothing to do: the night has fewer schedules than there are shards")
        })
    }
}
