//! Threads inside one iteration: started with a generator of their own, joined before the iteration goes on, and
//! reported from where they fail.

use crate::context::{Level, Reporter};
use crate::failed::{Failed, Outcome};
use crate::generator::Generator;
use crate::panic_site;
use crate::worker::Worker;
use std::cell::Cell;
use std::thread;

/// Starts threads; made by [`Worker::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    inner: &'scope thread::Scope<'scope, 'env>,
    reporter: Reporter<'env>,
    seed: u64,
    started: Cell<u64>,
}

/// What a thread inside an iteration has.
pub struct Thread<'env> {
    index: u64,
    generator: Generator,
    reporter: Reporter<'env>,
}

impl Thread<'_> {
    /// The number of this thread in its scope, from 0, in the order of starting.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Random numbers that depend only on the iteration's seed and [`index`](Thread::index).
    pub fn generator(&mut self) -> &mut Generator {
        &mut self.generator
    }

    /// True once the test is to stop.
    pub fn cancelled(&self) -> bool {
        self.reporter.cancelled()
    }

    /// Says that the iteration is getting somewhere.
    pub fn progress(&self) {
        self.reporter.progress();
    }

    /// Writes a line to the host's log.
    pub fn log(&self, level: Level, text: &str) {
        self.reporter.log(level, text);
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a thread. What it returns or panics with is reported from the thread itself, while its stack and its
    /// siblings still stand.
    pub fn spawn<F>(&self, body: F) -> Outcome
    where
        F: FnOnce(&mut Thread<'env>) -> Outcome + Send + 'scope,
    {
        let index = self.started.get();
        self.started.set(index + 1);
        let reporter = self.reporter;
        let mut own = Thread { index, generator: Generator::new(self.seed, index), reporter };
        thread::Builder::new().name(format!("iteration-{index}")).spawn_scoped(self.inner, move || {
            if let Err(reason) = panic_site::guard(|| body(&mut own)).flatten() {
                reporter.fail(reason);
            }
        })?;
        Ok(())
    }
}

impl Worker<'_> {
    /// Runs threads inside the iteration and waits for all of them. An `Err` when one of them failed; it is reported
    /// already, so `?` is all that is left to do.
    ///
    /// ```
    /// # use waylay_plugin::{Outcome, Worker, ensure_eq};
    /// # use std::sync::atomic::{AtomicU64, Ordering};
    /// fn both_sides(worker: &Worker<'_>) -> Outcome {
    ///     let counter = AtomicU64::new(0);
    ///     worker.scope(|scope| {
    ///         for _ in 0..2 {
    ///             scope.spawn(|thread| {
    ///                 counter.fetch_add(thread.generator().below(2), Ordering::Relaxed);
    ///                 Ok(())
    ///             })?;
    ///         }
    ///         Ok(())
    ///     })?;
    ///     ensure_eq!(counter.load(Ordering::Relaxed) / 3, 0);
    ///     Ok(())
    /// }
    /// ```
    pub fn scope<'env, F>(&'env self, body: F) -> Outcome
    where
        F: for<'scope> FnOnce(&Scope<'scope, 'env>) -> Outcome,
    {
        // This scope's failures are told from those that the iteration reported before.
        let before = self.take_failed();
        let (reporter, seed) = (self.reporter(), self.seed());
        let outcome = thread::scope(|inner| body(&Scope { inner, reporter, seed, started: Cell::new(0) }));
        let inside = self.take_failed();
        self.set_failed(before || inside);
        outcome?;
        if inside { Err(Failed::reported()) } else { Ok(()) }
    }

    /// Runs the same body on `count` threads and waits for them; see [`scope`](Worker::scope).
    pub fn threads<F>(&self, count: usize, body: F) -> Outcome
    where
        F: Fn(&mut Thread<'_>) -> Outcome + Sync,
    {
        let body = &body;
        self.scope(|scope| (0..count).try_for_each(|_| scope.spawn(move |thread| body(thread))))
    }
}
