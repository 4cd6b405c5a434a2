//! crossbeam-deque: one owner pushes and pops, thieves steal, and every item is had exactly once.

use crossbeam_deque::{Injector, Steal, Stealer, Worker as Deque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker, ensure};

/// One deque per iteration, with an injector beside it.
pub struct WorkStealing {
    items: Distribution<u64>,
    thieves: Distribution<usize>,
    burst: Distribution<u64>,
    injected: Distribution<f64>,
    order: Distribution<usize>,
}

impl Test for WorkStealing {
    const NAME: &'static str = "deque";
    const ABOUT: &'static str =
        "an item that is lost or had twice when the owner and a thief want the same one";
    const PARAMS: &'static [Param] = &[
        Param::new("items", "{ exponential = { min = 1, max = 2000 } }").about("items of one iteration"),
        Param::new("thieves", "{ uniform = { min = 1, max = 3 } }").about("threads that steal"),
        Param::new("burst", "{ exponential = { min = 1, max = 64 } }").about("pushes before the owner pops"),
        Param::new("injected", "{ uniform = { min = 0.0, max = 0.5 } }")
            .about("part that goes through the injector"),
        Param::new("order", "{ uniform = { min = 0, max = 1 } }")
            .about("0: first in first out, 1: last in first out"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            items: context.distribution("items")?,
            thieves: context.distribution("thieves")?,
            burst: context.distribution("burst")?,
            injected: context.distribution("injected")?,
            order: context.distribution("order")?,
        })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let items = worker.draw(self.items);
        let thieves = worker.draw(self.thieves).max(1);
        let burst = worker.draw(self.burst).max(1);
        let injected = worker.draw(self.injected);
        let deque = if worker.draw(self.order) == 0 { Deque::new_fifo() } else { Deque::new_lifo() };
        let injector = Injector::new();
        let (stealers, over) = (deque.stealer(), AtomicBool::new(false));
        let had = Mutex::new(Vec::new());
        worker.scope(|scope| {
            for _ in 0..thieves {
                let (stealer, injector, had, over) = (stealers.clone(), &injector, &had, &over);
                scope.spawn(move |thread| {
                    let mut mine = Vec::new();
                    // Looked at before the last attempt: what was pushed before the end is then seen.
                    while !(over.load(Ordering::Acquire) && stealer.is_empty() && injector.is_empty()) {
                        mine.extend(steal(&stealer, injector, thread.generator().chance(0.5)));
                    }
                    had.lock()?.extend(mine);
                    Ok(())
                })?;
            }
            let mut generator = worker.generator(u64::MAX);
            let mut mine = Vec::new();
            for item in 0..items {
                if generator.chance(injected) {
                    injector.push(item);
                } else {
                    deque.push(item);
                }
                if item % burst == 0 {
                    mine.extend(deque.pop());
                }
            }
            over.store(true, Ordering::Release);
            mine.extend(std::iter::from_fn(|| deque.pop()));
            had.lock()?.extend(mine);
            Ok(())
        })?;
        let mut had = had.into_inner()?;
        had.sort_unstable();
        ensure!(
            had.iter().copied().eq(0..items),
            "{} items were had of {items}, or one of them twice",
            had.len()
        );
        Ok(())
    }
}

fn steal(stealer: &Stealer<u64>, injector: &Injector<u64>, injector_first: bool) -> Option<u64> {
    let from_both = if injector_first {
        injector.steal().or_else(|| stealer.steal())
    } else {
        stealer.steal().or_else(|| injector.steal())
    };
    match from_both {
        Steal::Success(item) => Some(item),
        Steal::Empty | Steal::Retry => {
            std::thread::yield_now();
            None
        }
    }
}
