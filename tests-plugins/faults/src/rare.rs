//! Tests whose bug needs a thread to be late at the wrong moment: what a randomizer brings about.

use std::hint::spin_loop;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker};

/// How long the work under a lease takes. A lease is good for five hundred times as long, so nobody would ever outlive
/// it, one thinks.
const WORK: Duration = Duration::from_micros(20);

/// A resource is lent for a limited time, so that a holder that died does not keep it for ever. The holder does not look
/// at the clock again before it works: when it is held up for longer than the term, two work at the same time.
///
/// Depth one: it takes a single ordering, the end of one holder's work after the beginning of the next one's.
pub struct Lease {
    held: Mutex<Option<Instant>>,
    at_work: AtomicU32,
    term: Distribution<Duration>,
}

impl Test for Lease {
    const NAME: &'static str = "lease";
    const ABOUT: &'static str = "a holder that is late works under a lease that has run out";

    const PARAMS: &'static [Param] = &[Param::new("term", r#""10ms""#).about("how long a lease is good for")];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        let term = context.distribution("term")?;
        Ok(Self { held: Mutex::new(None), at_work: AtomicU32::new(0), term })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let Some(until) = self.take(worker.draw(self.term)) else { return Ok(()) };
        let others = self.at_work.fetch_add(1, Ordering::SeqCst);
        let began = Instant::now();
        while began.elapsed() < WORK {
            spin_loop();
        }
        self.at_work.fetch_sub(1, Ordering::SeqCst);
        self.give_back(until);
        if others > 0 {
            return Err(Failed::new(
                "two holders of one lease: the first was late and did not look at the clock",
            ));
        }
        Ok(())
    }
}

impl Lease {
    fn take(&self, term: Duration) -> Option<Instant> {
        let mut held = self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let now = Instant::now();
        if held.is_some_and(|until| now < until) {
            return None;
        }
        let until = now + term;
        *held = Some(until);
        Some(until)
    }

    /// Gives the lease back, unless it has run out and is another's by now.
    fn give_back(&self, mine: Instant) {
        let mut held = self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if *held == Some(mine) {
            *held = None;
        }
    }
}
