//! parking_lot: a bounded buffer of a mutex and two condition variables, beside a reader-writer lock whose value is whole
//! only while nobody writes.

use parking_lot::{Condvar, Mutex, RwLock, RwLockUpgradableReadGuard};
use std::collections::VecDeque;
use std::time::Duration;
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker, ensure, ensure_eq};

/// Both, anew in each iteration.
pub struct Locks {
    producers: Distribution<usize>,
    items: Distribution<u64>,
    capacity: Distribution<usize>,
    writes: Distribution<f64>,
    patience: Distribution<Duration>,
}

#[derive(Default)]
struct Buffer {
    items: VecDeque<u64>,
    left: u64,
}

impl Test for Locks {
    const NAME: &'static str = "locks";
    const ABOUT: &'static str = "a wake-up that is lost, or a writer that is not alone";
    const PARAMS: &'static [Param] = &[
        Param::new("producers", "{ uniform = { min = 1, max = 3 } }")
            .about("threads that fill, and as many that empty"),
        Param::new("items", "{ exponential = { min = 1, max = 300 } }").about("items of each producer"),
        Param::new("capacity", "{ exponential = { min = 1, max = 16 } }")
            .about("items that the buffer holds"),
        Param::new("writes", "{ uniform = { min = 0.05, max = 0.5 } }")
            .about("part of the accesses that write"),
        Param::new("patience", "{ exponential = { min = \"10us\", max = \"2ms\" } }")
            .about("longest single wait"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            producers: context.distribution("producers")?,
            items: context.distribution("items")?,
            capacity: context.distribution("capacity")?,
            writes: context.distribution("writes")?,
            patience: context.distribution("patience")?,
        })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let producers = worker.draw(self.producers).max(1);
        let (items, capacity) = (worker.draw(self.items), worker.draw(self.capacity).max(1));
        let (writes, patience) = (worker.draw(self.writes), worker.draw(self.patience));
        let buffer = Mutex::new(Buffer { items: VecDeque::new(), left: items * producers as u64 });
        let (filled, emptied) = (Condvar::new(), Condvar::new());
        let pair = RwLock::new((0u64, 0u64));
        let sum = Mutex::new(0u64);
        worker.scope(|scope| {
            for _ in 0..producers {
                scope.spawn(|_| {
                    for item in 1..=items {
                        let mut buffer = buffer.lock();
                        emptied.wait_while(&mut buffer, |buffer| buffer.items.len() >= capacity);
                        buffer.items.push_back(item);
                        ensure!(buffer.items.len() <= capacity, "{} items in {capacity}", buffer.items.len());
                        drop(buffer);
                        filled.notify_one();
                    }
                    Ok(())
                })?;
                scope.spawn(|thread| {
                    let mut mine = 0;
                    loop {
                        touch(&pair, writes, thread.generator())?;
                        let mut buffer = buffer.lock();
                        while buffer.items.is_empty() && buffer.left > 0 {
                            filled.wait_for(&mut buffer, patience);
                        }
                        let Some(item) = buffer.items.pop_front() else { break };
                        buffer.left -= 1;
                        let last = buffer.left == 0;
                        drop(buffer);
                        mine += item;
                        emptied.notify_one();
                        if last {
                            filled.notify_all();
                        }
                    }
                    *sum.lock() += mine;
                    Ok(())
                })?;
            }
            Ok(())
        })?;
        ensure_eq!(sum.into_inner(), producers as u64 * items * (items + 1) / 2, "sum of all items");
        Ok(())
    }
}

/// Reads, writes, or reads first and then writes.
fn touch(pair: &RwLock<(u64, u64)>, writes: f64, generator: &mut waylay_plugin::Generator) -> Outcome {
    if generator.chance(writes) {
        let mut pair = pair.write();
        pair.0 += 1;
        std::hint::spin_loop();
        pair.1 += 1;
        ensure_eq!(pair.0, pair.1, "another writer");
    } else if generator.chance(0.2) {
        let seen = pair.upgradable_read();
        let before = *seen;
        let mut pair = RwLockUpgradableReadGuard::upgrade(seen);
        ensure_eq!(*pair, before, "somebody wrote during an upgrade");
        *pair = (before.0 + 1, before.1 + 1);
    } else {
        let pair = pair.read();
        ensure_eq!(pair.0, pair.1, "half of a write");
    }
    Ok(())
}
