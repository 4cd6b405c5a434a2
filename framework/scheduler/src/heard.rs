//! In which orders conflicting events come, in some of the runs that are repeated inside one process. Pure.
//!
//! Listening makes a choice slower, so it is done in the first runs and in a few of the later ones, as an exploration does
//! that learns from runs elsewhere. A run that fails is the last of its process and is looked at by others.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use waylay_control_protocol::Tally;
use waylay_schedule::coverage::Coverage;
use waylay_schedule::happened::History;
use waylay_schedule::{AnyStrategy, Guided, Listener, Overheard, Said};

/// The first runs of a process are all listened to; later, one in so many is.
const FIRST: u64 = 64;
const LATER: u64 = 256;

/// What was heard so far.
#[derive(Debug, Default)]
pub(super) struct Heard {
    coverage: Coverage,
    ear: Ear,
    listening: bool,
    /// So many runs in a row without a new order are enough, which all are listened to then; 0: nobody counts them.
    enough: u64,
    /// Those so far.
    quiet: u64,
}

/// Keeps what happens in the run that goes on.
#[derive(Clone, Debug, Default)]
struct Ear(Arc<Mutex<History>>);

impl Listener for Ear {
    fn hear(&mut self, said: Said) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).hear_one(said);
    }
}

impl Heard {
    /// Nothing yet; `enough` runs in a row without a new order are.
    pub(super) fn until_quiet(enough: u64) -> Heard {
        Heard { enough, ..Heard::default() }
    }

    /// Whether no new order came for as long as was asked for; says so.
    pub(super) fn is_quiet(&self, tally: &Tally) -> bool {
        let quiet = self.enough > 0 && self.quiet >= self.enough;
        if quiet {
            tally.orders[4].store(1, Ordering::Release);
        }
        quiet
    }

    /// The `number`-th run of the process begins, counted from 0: the strategy is listened to if it is one of those.
    pub(super) fn begin(&mut self, number: u64, strategy: &mut AnyStrategy) {
        if self.enough == 0 && number >= FIRST && !number.is_multiple_of(LATER) {
            return;
        }
        self.ear.0.lock().unwrap_or_else(PoisonError::into_inner).begin();
        let inner = std::mem::replace(strategy, Guided::new(Vec::new()).into());
        *strategy = Overheard::new(inner, Box::new(self.ear.clone())).into();
        self.listening = true;
    }

    /// The run is over; nobody listens to the next, unless it is said again. It counts if it has a number, counted from 0.
    pub(super) fn end(&mut self, index: Option<u64>, strategy: &mut AnyStrategy, tally: &Tally) {
        if !std::mem::take(&mut self.listening) {
            return;
        }
        match std::mem::replace(strategy, Guided::new(Vec::new()).into()) {
            AnyStrategy::Overheard(overheard) => *strategy = overheard.into_inner(),
            // It was made anew meanwhile.
            other => *strategy = other,
        }
        let Some(index) = index else { return };
        let news = self.coverage.take(index + 1, &self.ear.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.quiet = if news { 0 } else { self.quiet + 1 };
        let numbers = self.coverage.numbers();
        // What is possible first: at no time more may be seen than that.
        for (place, number) in
            [(1, numbers.predicted), (0, numbers.seen), (2, numbers.runs), (3, numbers.last_new)]
        {
            tally.orders[place].store(number, Ordering::Release);
        }
    }
}
