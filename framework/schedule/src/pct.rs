//! PCT: random priorities and d−1 random change points.
//!
//! "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", Burckhardt, Kothari, Musuvathi and
//! Nagarakatte, ASPLOS 2010, Fig. 7. A bug of depth d in a program of at most n threads and k steps is found in
//! one run with probability at least 1/(n·k^(d−1)).
//!
//! Deviations, all from its section 4 or harmless to the bound:
//! - priorities are drawn when a thread is created, as independent keys whose order is a uniform permutation, so
//!   n need not be known;
//! - change points fall only on steps that count (see [`priority`](crate::priority));
//! - k is the greatest estimate of the last runs (see [`priority`](crate::priority)); the first run has depth 1, which needs no k, and so do the ten profiling
//!   runs before a depth is chosen for a confidence (the stride paper profiles with a random walk);
//! - phases begin at joins by default: the bound then speaks of bugs within one phase;
//! - the main thread drops before it exits: the bound then leaves out bugs that need it to leave early;
//! - spinning threads are lowered with probability 1/10 per idle step: the bound then leaves out bugs that need a
//!   thread to spin on.
//!
//! The grouping of threads for parallel execution (PPCT) is out of scope: one thread runs at a time here.

use std::fmt;

use crate::bound::{self, Chance};
use crate::depth::Depth;
use crate::prioritized::{Planning, Prioritized, write_rules};
use crate::priority::Rules;
use crate::source::ChaCha;

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PctOptions {
    /// How the depth is chosen.
    pub depth: Depth,
    /// k, when it is known beforehand; 0: learned.
    pub steps: u64,
    /// The practical parts.
    pub rules: Rules,
}

impl Default for PctOptions {
    fn default() -> Self {
        PctOptions { depth: Depth::Auto { greatest: 5 }, steps: 0, rules: Rules::default() }
    }
}

impl fmt::Display for PctOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "pct:{}", self.depth)?;
        write_rules(out, self.steps, self.rules)
    }
}

impl Planning for PctOptions {
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
        None
    }

    fn chance(&self, threads: u64, steps: u64, depth: u32) -> Chance {
        bound::pct(threads, steps, depth)
    }
}

/// PCT.
pub type Pct<S = ChaCha> = Prioritized<PctOptions, S>;
