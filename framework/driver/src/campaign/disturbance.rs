//! The randomizers of a scenario so far: what each did, whether one is at work, and when the next may begin.

use std::time::{Duration, Instant};

use waylay_dist::Seed;
use waylay_randomizer::Settings;
use waylay_randomizer::report::Ending;
use waylay_randomizer::statistics::Progress as Numbers;

use crate::failure::RandomizerTrace;
use crate::randomizer::{RandomizerProcess, Tally};
use crate::record::RandomizerRecord;

/// Shortest and longest pause before a randomizer is started again that did nothing.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How a scenario's threads are suspended.
#[derive(Clone, Debug)]
pub struct Randomization {
    /// When, which and for how long.
    pub settings: Settings,
    /// Replay: the seed of every randomizer. Without it, each gets its own from the campaign's.
    pub seed: Option<Seed>,
}

/// The randomizers of a scenario so far.
#[derive(Clone, Debug)]
pub(crate) struct Disturbance {
    pub(super) how: Randomization,
    pub(super) tally: Tally,
    /// How many were started.
    pub(super) number: u32,
    /// Those in a row that did nothing.
    fruitless: u32,
    pub(super) not_before: Option<Instant>,
    /// The one before ended although its host had not.
    pub(super) again: bool,
    /// What was last said about its end; the same is not said twice in a row.
    pub(super) said: String,
    /// What the one at work last said.
    pub(super) running: Option<Numbers>,
}

impl Disturbance {
    pub(crate) fn new(how: Randomization) -> Disturbance {
        Disturbance {
            how,
            tally: Tally::default(),
            number: 0,
            fruitless: 0,
            not_before: None,
            again: false,
            said: String::new(),
            running: None,
        }
    }

    /// Randomizers with these settings that have not begun yet.
    pub(crate) fn anew(&self) -> Disturbance {
        Disturbance::new(self.how.clone())
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.how.settings
    }

    pub(crate) fn suspensions(&self) -> u64 {
        self.tally.suspensions(self.running.as_ref())
    }

    /// Everything so far.
    pub(crate) fn record(&self) -> RandomizerRecord {
        self.tally.record(&self.how.settings, self.running.as_ref())
    }

    /// Why nothing was suspended, as far as it is known.
    pub(crate) fn why_nothing(&self) -> String {
        if self.said.is_empty() {
            "the tests were over before it began".to_owned()
        } else {
            self.said.clone()
        }
    }

    pub(super) fn next_seed(&self, campaign: Seed, scenario: &str) -> Seed {
        let own = || campaign.derive(&format!("randomizer of {scenario}"), self.number);
        self.how.seed.unwrap_or_else(own)
    }

    /// Notes what one left behind.
    pub(super) fn harvest(&mut self, randomizer: RandomizerProcess, again: bool) -> String {
        let end = randomizer.finish();
        let did = end.suspensions > 0;
        self.fruitless = if did { 0 } else { self.fruitless.saturating_add(1) };
        let pause = match self.fruitless {
            0 => Duration::ZERO,
            times => (FIRST_PAUSE * 2_u32.saturating_pow(times - 1)).min(LONGEST_PAUSE),
        };
        self.not_before = Some(Instant::now() + pause);
        self.running = None;
        self.tally.add(&end);
        let expected = end.report.as_ref().is_some_and(|report| report.ending == Ending::TargetEnded);
        self.again = again && !expected;
        if expected { String::new() } else { end.reason }
    }
}

impl RandomizerProcess {
    /// What a failure that is seen now keeps of it.
    pub(crate) fn trace(&self) -> RandomizerTrace {
        RandomizerTrace { seed: self.seed(), windows: self.windows() }
    }
}
