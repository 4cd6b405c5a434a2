//! Programs in Rust with a known bug of known depth, and their correct twins.
//!
//! A program starts threads, joins them, and notices whether its bug showed. Each stands with its depth d, the least
//! number of ordering constraints that make the bug appear, and with these constraints: `a -> b` says that a happens
//! before b. With `fixed` the same program is its correct twin. The lines that begin with the program's name say the same by
//! place, for tests/zoo.rs: `look` is where `@look` stands, or above it where that is a line of its own. Of several lines
//! each says it in its own way.
//!
//! - `word`: what threads share without a lock; every access is a step of strict mode
//! - `programs`: the programs

mod programs;
mod word;

use std::sync::{Mutex, MutexGuard, PoisonError};

use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker};

use word::Word;

/// What a program is given, and what it noticed.
struct Run {
    fixed: bool,
    size: u64,
    whole: Mutex<()>,
    noticed: Mutex<Option<&'static str>>,
}

impl Run {
    /// Notes that the bug showed; the first word stays.
    fn bug(&self, what: &'static str) {
        lock(&self.noticed).get_or_insert(what);
    }

    /// A lock that only the twin takes.
    fn twin_takes(&self) -> Option<MutexGuard<'_, ()>> {
        self.fixed.then(|| lock(&self.whole))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one thread for each body to their ends.
fn together(bodies: &[&(dyn Fn() + Sync)]) {
    std::thread::scope(|scope| {
        for body in bodies {
            scope.spawn(body);
        }
    });
}

/// A program, and what a test of it is called.
trait Program {
    const NAME: &'static str;
    const FIXED: &'static str;
    const ABOUT: &'static str;
    const PARAMS: &'static [Param] = &[];
    /// The name of its parameter.
    const SIZE: Option<&'static str> = None;

    fn run(run: &Run);
}

/// A program as a test.
struct Buggy<P>(Option<Distribution<i64>>, std::marker::PhantomData<fn() -> P>);
/// Its correct twin.
struct Twin<P>(Buggy<P>);

impl<P: Program> Buggy<P> {
    fn new(context: &Context<'_>) -> Result<Self, Failed> {
        let size = P::SIZE.map(|name| context.distribution(name)).transpose()?;
        Ok(Self(size, std::marker::PhantomData))
    }

    fn once(&self, worker: &Worker<'_>, fixed: bool) -> Outcome {
        let size = self.0.map_or(0, |size| worker.draw(size));
        let run = Run {
            fixed,
            size: u64::try_from(size).unwrap_or(0),
            whole: Mutex::new(()),
            noticed: Mutex::new(None),
        };
        P::run(&run);
        match *lock(&run.noticed) {
            Some(what) => Err(Failed::new(what)),
            None => Ok(()),
        }
    }
}

impl<P: Program + 'static> Test for Buggy<P> {
    const NAME: &'static str = P::NAME;
    const ABOUT: &'static str = P::ABOUT;
    const PARAMS: &'static [Param] = P::PARAMS;

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Self::new(context)
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        self.once(worker, false)
    }
}

impl<P: Program + 'static> Test for Twin<P> {
    const NAME: &'static str = P::FIXED;
    const ABOUT: &'static str = "the same, done right";
    const PARAMS: &'static [Param] = P::PARAMS;

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Buggy::new(context).map(Self)
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        self.0.once(worker, true)
    }
}

waylay_plugin::export! {
    name: "zoo",
    tests: [
        Buggy<programs::TokenRing>, Twin<programs::TokenRing>,
        Buggy<programs::Relay>, Twin<programs::Relay>,
        Buggy<programs::LostUpdate>, Twin<programs::LostUpdate>,
        Buggy<programs::Overdrawn>, Twin<programs::Overdrawn>,
        Buggy<programs::TornPair>, Twin<programs::TornPair>,
        Buggy<programs::Count>, Twin<programs::Count>,
        Buggy<programs::Door>, Twin<programs::Door>,
        Buggy<programs::Shutdown>, Twin<programs::Shutdown>,
    ],
}
