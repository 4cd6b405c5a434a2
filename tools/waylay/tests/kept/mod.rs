//! Programs with bugs of known depth, run by the product as a user runs it, and whether what its summary promises is kept.
//!
//! If every schedule that counts shows the bug with at least the promised probability, the number of those that show it
//! is at least binomial. A promise is broken when so few have a probability below 10⁻⁹. The whole table has fewer than 1,000
//! checks, so its false-alarm rate is below 10⁻⁶. Seeds are fixed all the same.

#![allow(dead_code, reason = "a test and a benchmark are crates that use their own part")]

pub(crate) mod explored;
pub(crate) mod hosted;

use waylay_schedule::promise::Promise;

const FALSE_ALARM: f64 = 1e-9;

/// What many schedules found and promised.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The program and the depth of its bug.
    pub(crate) program: String,
    pub(crate) depth: u32,
    pub(crate) strategy: String,
    pub(crate) runs: u64,
    pub(crate) found: u64,
    /// The promise about the bug that is hardest to keep; none where nothing is promised about it.
    pub(crate) promise: Option<Promise>,
    /// The probability of finding it so rarely if that promise is kept.
    pub(crate) doubt: f64,
}

impl Kept {
    /// Every promise about bugs of some depth holds for less deep ones, too.
    pub(crate) fn new(
        (program, depth): (&str, u32),
        strategy: &str,
        (runs, found): (u64, u64),
        promises: &[Promise],
    ) -> Kept {
        // Others than those that count may fail more often, or less: hosts tell only how many failed of all.
        let doubt = |promise: &Promise| {
            at_most(promise.failures.unwrap_or(found).min(promise.runs), promise.runs, promise.per_run)
        };
        let about = promises.iter().filter(|promise| promise.depth >= depth);
        let promise = about.min_by(|a, b| doubt(a).total_cmp(&doubt(b))).cloned();
        Kept {
            program: program.to_owned(),
            depth,
            strategy: strategy.to_owned(),
            runs,
            found,
            doubt: promise.as_ref().map_or(1.0, doubt),
            promise,
        }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.doubt > FALSE_ALARM
    }

    /// How many schedules would show the bug if the promise were just kept.
    pub(crate) fn expected(&self) -> f64 {
        self.promise.as_ref().map_or(0.0, |promise| promise.runs as f64 * promise.per_run)
    }
}

/// A row of a table in Markdown.
impl std::fmt::Display for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "| {} | {} | `{}` | {} | {} |",
            self.program, self.depth, self.strategy, self.runs, self.found
        )?;
        match &self.promise {
            Some(promise) => {
                write!(f, " {} | {:.2e} | {:.1} |", promise.runs, promise.per_run, self.expected())?;
                write!(f, " {}{:.1e} |", if self.is_kept() { "" } else { "BROKEN " }, self.doubt)
            }
            None => write!(f, " nothing promised | | | |"),
        }
    }
}

/// The probability of at most `found` successes in `runs` runs with probability `chance` each.
pub(crate) fn at_most(found: u64, runs: u64, chance: f64) -> f64 {
    if found >= runs {
        return 1.0;
    }
    let (ln_p, ln_q) = (chance.ln(), (-chance).ln_1p());
    let mut ln_term = runs as f64 * ln_q;
    let mut sum = ln_term.exp();
    for i in 0..found {
        ln_term += ((runs - i) as f64 / (i + 1) as f64).ln() + ln_p - ln_q;
        sum += ln_term.exp();
    }
    sum
}

/// The strategies that promise something about a bug of this depth. Where depths are drawn, they are drawn up to five.
pub(crate) fn strategies(depth: u32) -> Vec<String> {
    if depth > 5 {
        return Vec::new();
    }
    let mut all = vec![
        "portfolio".to_owned(),
        "pct".to_owned(),
        format!("pct:depth={depth}"),
        format!("rpro:depth={depth},radius=500"),
    ];
    if depth == 1 {
        // By default the ratio is such that three are expected, of whatever number of schedules: too few to judge by.
        all.push("stride:ratio=3".to_owned());
    }
    all
}
