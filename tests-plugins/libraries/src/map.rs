//! dashmap: all workers act on one map for the whole test. Counters must add up at the end, and an entry must always hold
//! what belongs to its key.

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use waylay_plugin::{
    Context, Distribution, Failed, Object, Outcome, Param, Stateless, Test, Worker, ensure, ensure_eq,
};

/// The map under test and what it should add up to.
#[derive(Default)]
struct Counters {
    map: DashMap<u64, Counter>,
    /// Additions that returned.
    added: AtomicU64,
    /// What removals took out.
    removed: AtomicU64,
}

/// A value that shows when it is torn or under the wrong key.
#[derive(Clone, Copy, Debug)]
struct Counter {
    key: u64,
    count: u64,
    check: u64,
}

impl Counter {
    fn new(key: u64, count: u64) -> Self {
        Self { key, count, check: !(key ^ count) }
    }

    fn add(&mut self, more: u64) {
        *self = Self::new(self.key, self.count + more);
    }

    fn verify(&self, key: u64) -> Outcome {
        ensure_eq!(self.key, key, "under another key");
        ensure_eq!(self.check, !(self.key ^ self.count), "torn: {self:?}");
        Ok(())
    }
}

/// Stateless: one map, five actions.
pub struct Map {
    steps: Stateless,
    counters: Arc<Counters>,
}

impl Test for Map {
    const NAME: &'static str = "map";
    const ABOUT: &'static str = "an update that is lost, or an entry that is torn or under the wrong key";
    const PARAMS: &'static [Param] = &[
        Param::new(
            "action",
            "{ weighted = [{ min = 0, max = 0, p = 0.5 }, { min = 1, max = 1, p = 0.25 }, \
             { min = 2, max = 2, p = 0.14 }, { min = 3, max = 3, p = 0.1 }, { min = 4, max = 4, p = 0.01 }] }",
        )
        .about("0: add, 1: read, 2: remove, 3: move, 4: walk"),
        Param::new("key", "{ gaussian = { mean = 50, sigma = 20, min = 0 } }").about("which entry"),
        Param::new("amount", "{ uniform = { min = 1, max = 9 } }").about("what is added"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        let key = context.distribution::<u64>("key")?;
        let amount = context.distribution::<u64>("amount")?;
        let counters = Arc::new(Counters::default());
        let map = Object::new("map", Arc::clone(&counters), context.distribution("action")?)
            .action("add", move |counters, worker| add(counters, worker.draw(key), worker.draw(amount)))
            .action("read", move |counters, worker| read(counters, worker.draw(key)))
            .action("remove", move |counters, worker| remove(counters, worker.draw(key)))
            .action("move", move |counters, worker| shift(counters, worker, key))
            .action("walk", |counters, _| {
                counters.map.iter().try_for_each(|entry| entry.verify(*entry.key()))
            });
        Ok(Self { steps: Stateless::single(map), counters })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        self.steps.step(worker)
    }

    /// No worker is inside any more, so nothing is in flight: what was added is in the map or was removed.
    fn on_end(&mut self, _: &Context<'_>) -> Outcome {
        self.counters.map.iter().try_for_each(|entry| entry.verify(*entry.key()))?;
        let present: u64 = self.counters.map.iter().map(|entry| entry.count).sum();
        let removed = self.counters.removed.load(Ordering::Relaxed);
        ensure_eq!(
            present + removed,
            self.counters.added.load(Ordering::Relaxed),
            "{present} present, {removed} removed"
        );
        Ok(())
    }
}

fn add(counters: &Counters, key: u64, amount: u64) -> Outcome {
    match counters.map.entry(key) {
        Entry::Occupied(mut present) => {
            present.get().verify(key)?;
            present.get_mut().add(amount);
        }
        Entry::Vacant(free) => {
            free.insert(Counter::new(key, amount));
        }
    }
    counters.added.fetch_add(amount, Ordering::Relaxed);
    Ok(())
}

fn read(counters: &Counters, key: u64) -> Outcome {
    counters.map.get(&key).map_or(Ok(()), |counter| counter.verify(key))
}

fn remove(counters: &Counters, key: u64) -> Outcome {
    if let Some((at, counter)) = counters.map.remove(&key) {
        ensure_eq!(at, key, "removed another key");
        counter.verify(key)?;
        counters.removed.fetch_add(counter.count, Ordering::Relaxed);
    }
    Ok(())
}

/// Takes an entry out and adds its count to another, one lock at a time.
fn shift(counters: &Counters, worker: &Worker<'_>, key: Distribution<u64>) -> Outcome {
    let (from, to) = (worker.draw(key), worker.draw(key));
    if let Some((_, counter)) = counters.map.remove_if(&from, |_, counter| counter.count % 2 == 1) {
        counter.verify(from)?;
        ensure!(counter.count % 2 == 1, "removed although its count is even: {counter:?}");
        counters.map.entry(to).or_insert_with(|| Counter::new(to, 0)).add(counter.count);
    }
    Ok(())
}
