//! What a storm amounts to: faults by kind, campaigns by mode, and every violation with the line that makes it again.

use std::collections::BTreeMap;
use std::fmt;

use waylay_dist::Seed;

use super::campaigns::Mode;

/// The sum over all campaigns.
pub(crate) struct Report {
    seed: Seed,
    /// How many of each kind were made; those that found nothing to be done to do not count.
    pub(crate) faults: BTreeMap<String, u64>,
    modes: BTreeMap<Mode, u64>,
    pub(crate) violations: Vec<Violation>,
    /// Kinds that could not be drawn here, and why.
    pub(crate) left_out: Option<&'static str>,
}

/// A rule that did not hold.
pub(crate) struct Violation {
    pub(crate) number: u32,
    /// What was done, in its order.
    pub(crate) done: Vec<String>,
    pub(crate) what: String,
}

impl Report {
    pub(crate) fn new(seed: Seed) -> Report {
        Report {
            seed,
            faults: BTreeMap::new(),
            modes: BTreeMap::new(),
            violations: Vec::new(),
            left_out: None,
        }
    }

    /// Adds a campaign.
    pub(crate) fn add(&mut self, number: u32, mode: Mode, done: &[String], broken: Vec<String>) {
        *self.modes.entry(mode).or_default() += 1;
        for name in done {
            *self.faults.entry(name.clone()).or_default() += 1;
        }
        self.violations.extend(broken.into_iter().map(|what| Violation {
            number,
            done: done.to_vec(),
            what,
        }));
    }

    /// How many faults were made.
    pub(crate) fn made(&self) -> u64 {
        self.faults.values().sum()
    }

    /// A violation as it is shown, with the line that runs its campaign again.
    pub(crate) fn line(&self, violation: &Violation) -> String {
        format!(
            "campaign {} [{}]: {}\n    again: cargo bench -p waylay --bench storm -- --seed {} --only {}",
            violation.number,
            violation.done.join(", "),
            violation.what,
            self.seed,
            violation.number
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in &self.faults {
            writeln!(f, "{count:>7}  {name}")?;
        }
        let modes: Vec<String> = self.modes.iter().map(|(mode, count)| format!("{count} {mode:?}")).collect();
        if let Some(reason) = self.left_out {
            writeln!(f, "{reason}")?;
        }
        for violation in &self.violations {
            writeln!(f, "VIOLATION {}", self.line(violation))?;
        }
        writeln!(
            f,
            "seed {}: {} faults of {} kinds in {} campaigns ({}), {} violations",
            self.seed,
            self.made(),
            self.faults.len(),
            self.modes.values().sum::<u64>(),
            modes.join(", "),
            self.violations.len()
        )
    }
}
