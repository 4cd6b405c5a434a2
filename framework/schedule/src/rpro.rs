//! RPro: PCT whose change points lie close together.
//!
//! "Radius Aware Probabilistic Testing of Deadlocks with Guarantees", Cai and Yang, ASE 2016. The events of a
//! deadlock usually lie within a short stretch of the execution, the radius r of the bug. The first change point
//! is uniform over all k steps, each later one uniform over the r steps that begin there, so a bug of depth d ≥ 2
//! whose first change point comes first and whose others follow within r steps is found with probability at least
//! 1/(n·k·r^(d−2)); for d = 1 it is 1/n. The proof is that of PCT with other factors.
//!
//! Deviations: those of [`pct`](crate::pct). Where the later change points may lie is our reading of the idea, made
//! from the paper's abstract and the stride paper's account of it: the window begins at the first change point and is
//! measured in counted steps. The bound above is for this reading.

use std::fmt;

use crate::bound::{self, Chance};
use crate::depth::Depth;
use crate::prioritized::{Planning, Prioritized, write_rules};
use crate::priority::Rules;
use crate::source::ChaCha;

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RProOptions {
    /// r: the paper uses 10 and 50.
    pub radius: u64,
    /// How the depth is chosen.
    pub depth: Depth,
    /// k, when it is known beforehand; 0: learned.
    pub steps: u64,
    /// The practical parts.
    pub rules: Rules,
}

impl Default for RProOptions {
    fn default() -> Self {
        RProOptions { radius: 50, depth: Depth::Fixed(3), steps: 0, rules: Rules::default() }
    }
}

impl fmt::Display for RProOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "rpro:radius={},{}", self.radius, self.depth)?;
        write_rules(out, self.steps, self.rules)
    }
}

impl Planning for RProOptions {
    fn depth(&self) -> Depth {
        self.depth
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn rules(&self) -> Rules {
        self.rules
    }

    fn radius(&self) -> Option<u64> {
        Some(self.radius)
    }

    fn chance(&self, threads: u64, steps: u64, depth: u32) -> Chance {
        bound::rpro(threads, steps, depth, self.radius)
    }
}

/// RPro.
pub type RPro<S = ChaCha> = Prioritized<RProOptions, S>;
