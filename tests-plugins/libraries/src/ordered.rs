//! crossbeam-skiplist: threads insert, remove and walk one ordered map; a walk is ordered and no entry is torn.

use crossbeam_skiplist::SkipMap;
use std::sync::atomic::{AtomicI64, Ordering};
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
    const ABOUT: &'static str = "a walk out of order, a torn entry, or a length that is not what was put in";
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
        let balance = AtomicI64::new(0);
        worker.threads(worker.draw(self.threads).max(1), |thread| {
            for _ in 0..actions {
                let key = thread.generator().below(keys);
                if thread.generator().chance(walks) {
                    let walked: Vec<u64> = map.iter().map(|entry| *entry.key()).collect();
                    ensure!(walked.is_sorted(), "a walk went {walked:?}");
                } else if thread.generator().chance(removals) {
                    if map.remove(&key).is_some() {
                        balance.fetch_sub(1, Ordering::Relaxed);
                    }
                } else {
                    let mark = thread.generator().bits();
                    // Inserts only when the key is absent, so that the balance counts entries.
                    let mut new = false;
                    let entry = map.get_or_insert_with(key, || {
                        new = true;
                        (mark, !mark ^ key)
                    });
                    let (seen, check) = *entry.value();
                    ensure_eq!(check, !seen ^ key, "the entry of {key} is torn");
                    // Another thread may have been first after all: then the entry is that one's.
                    if new && seen == mark {
                        balance.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            Ok(())
        })?;
        let entries = map.iter().count() as i64;
        ensure_eq!(entries, balance.load(Ordering::Relaxed), "entries against insertions less removals");
        Ok(())
    }
}
