//! arc-swap: readers always see a whole value, never go back in time, and every value is dropped once.

use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker, ensure, ensure_eq};

/// One pointer per iteration.
pub struct Swap {
    readers: Distribution<usize>,
    writers: Distribution<usize>,
    stores: Distribution<u64>,
    held: Distribution<usize>,
    updates: Distribution<f64>,
}

/// Counts itself.
struct Version<'a> {
    number: u64,
    check: u64,
    alive: &'a AtomicI64,
}

impl<'a> Version<'a> {
    fn new(number: u64, alive: &'a AtomicI64) -> Arc<Self> {
        alive.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { number, check: !number, alive })
    }
}

impl Drop for Version<'_> {
    fn drop(&mut self) {
        self.check = 0;
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Test for Swap {
    const NAME: &'static str = "swap";
    const ABOUT: &'static str =
        "a value that is used after it was dropped, dropped twice or never, or older than one seen before";
    const PARAMS: &'static [Param] = &[
        Param::new("readers", "{ uniform = { min = 1, max = 3 } }").about("threads that load"),
        Param::new("writers", "{ uniform = { min = 1, max = 2 } }").about("threads that store"),
        Param::new("stores", "{ exponential = { min = 1, max = 500 } }").about("stores of each writer"),
        Param::new("held", "{ exponential = { min = 1, max = 12 } }")
            .about("values that a reader holds at a time"),
        Param::new("updates", "{ uniform = { min = 0.0, max = 0.5 } }")
            .about("part that read, copy and update"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            readers: context.distribution("readers")?,
            writers: context.distribution("writers")?,
            stores: context.distribution("stores")?,
            held: context.distribution("held")?,
            updates: context.distribution("updates")?,
        })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let (readers, writers) = (worker.draw(self.readers).max(1), worker.draw(self.writers).max(1));
        let (stores, held) = (worker.draw(self.stores), worker.draw(self.held).max(1));
        let updates = worker.draw(self.updates);
        let alive = AtomicI64::new(0);
        let current = ArcSwap::new(Version::new(0, &alive));
        let alive = &alive;
        worker.scope(|scope| {
            for _ in 0..writers {
                scope.spawn(|thread| {
                    for _ in 0..stores {
                        // Both ways end in one compare and swap, so the number grows by one each time.
                        if thread.generator().chance(updates) {
                            current.rcu(|old| Version::new(old.number + 1, alive));
                        } else {
                            loop {
                                let old = current.load();
                                let new = Version::new(old.number + 1, alive);
                                if Arc::ptr_eq(&old, &current.compare_and_swap(&*old, new)) {
                                    break;
                                }
                            }
                        }
                    }
                    Ok(())
                })?;
            }
            for _ in 0..readers {
                scope.spawn(|thread| {
                    let mut last = 0;
                    for _ in 0..stores {
                        let guards: Vec<_> = (0..held).map(|_| current.load()).collect();
                        for guard in &guards {
                            ensure_eq!(guard.check, !guard.number, "a value that was dropped");
                            ensure!(guard.number >= last, "{} after {last}", guard.number);
                            last = guard.number;
                        }
                        if thread.generator().chance(0.1) {
                            last = last.max(current.load_full().number);
                        }
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })?;
        ensure_eq!(current.load().number, writers as u64 * stores, "stores that counted");
        drop(current);
        ensure_eq!(alive.load(Ordering::Relaxed), 0, "values that were not dropped");
        Ok(())
    }
}
