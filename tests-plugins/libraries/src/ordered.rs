//! crossbeam-skiplist: threads insert, remove and walk one ordered map; a walk is ordered and no entry is torn.

use crossbeam_skiplist::SkipMap;
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker, ensure, ensure_eq};

/// One map per iteration.
pub struct OrderedMap {
    threads: Distribution<usize>,
    actions: Distribution<u64>,
    keys: Distribution<u64>,
    removals: Distribution<f64>,
    walks: Distribution<f64>,
}

impl Test for OrderedMap {
    const NAME: &'static str = "ordered-map";
    const ABOUT: &'static str = "a walk out of order, a torn entry, or one that cannot be removed";
    const PARAMS: &'static [Param] = &[
        Param::new("threads", "{ uniform = { min = 2, max = 4 } }").about("threads on one map"),
        Param::new("actions", "{ exponential = { min = 1, max = 600 } }").about("actions of each thread"),
        Param::new("keys", "{ exponential = { min = 1, max = 200 } }").about("different keys"),
        Param::new("removals", "{ uniform = { min = 0.0, max = 0.6 } }")
            .about("part of the actions that remove"),
        Param::new("walks", "{ uniform = { min = 0.0, max = 0.05 } }").about("part of the actions that walk"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            threads: context.distribution("threads")?,
            actions: context.distribution("actions")?,
            keys: context.distribution("keys")?,
            removals: context.distribution("removals")?,
            walks: context.distribution("walks")?,
        })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let (actions, keys) = (worker.draw(self.actions), worker.draw(self.keys).max(1));
        let (removals, walks) = (worker.draw(self.removals), worker.draw(self.walks));
        let map: SkipMap<u64, (u64, u64)> = SkipMap::new();
        worker.threads(worker.draw(self.threads).max(1), |thread| {
            for _ in 0..actions {
                let key = thread.generator().below(keys);
                if thread.generator().chance(walks) {
                    let walked: Vec<u64> = map.iter().map(|entry| *entry.key()).collect();
                    ensure!(walked.is_sorted(), "a walk went {walked:?}");
                } else if thread.generator().chance(removals) {
                    if let Some(entry) = map.remove(&key) {
                        whole(key, *entry.value())?;
                    }
                } else {
                    let mark = thread.generator().bits();
                    let entry = map.get_or_insert_with(key, || (mark, !mark ^ key));
                    whole(key, *entry.value())?;
                }
            }
            Ok(())
        })?;
        // Nobody else is at it any more: every key once, in order, and each can be taken out.
        let left: Vec<u64> = map.iter().map(|entry| *entry.key()).collect();
        ensure!(left.is_sorted_by(|one, next| one < next), "left are {left:?}");
        for key in &left {
            ensure!(map.remove(key).is_some(), "{key} cannot be removed");
        }
        ensure!(map.iter().next().is_none(), "something is left after everything was removed");
        Ok(())
    }
}

fn whole(key: u64, (mark, check): (u64, u64)) -> Outcome {
    ensure_eq!(check, !mark ^ key, "the entry of {key} is torn");
    Ok(())
}
