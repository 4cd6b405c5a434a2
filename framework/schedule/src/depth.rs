//! Which bug depth a run aims at.

use std::fmt;

use crate::bound::{Chance, largest_depth};

/// How the depth is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Depth {
    /// Always this one.
    Fixed(u32),
    /// Each run draws it: d with probability 2⁻ᵈ, the rest at the greatest. Half of the runs are worth their
    /// full bound to bugs of depth 1, a quarter to those of depth 2, and so on.
    Auto {
        /// The greatest depth drawn.
        greatest: u32,
    },
    /// The largest whose guarantee reaches the confidence in the planned runs, once profiling runs have told
    /// threads and steps (section V.B of the stride paper).
    Confident {
        /// The wanted probability of finding a bug of that depth, between 0 and 1.
        confidence: f64,
        /// The planned runs.
        runs: u64,
    },
}

impl Depth {
    /// Runs that only measure before the depth can be chosen.
    pub fn profiling_runs(self) -> usize {
        match self {
            // With depth 1 a run needs no k, so the first run measures and is worth its full bound.
            Depth::Fixed(_) | Depth::Auto { .. } => 1,
            Depth::Confident { .. } => 10,
        }
    }

    /// The depth of a run; `coin` gives a number uniform below its argument.
    pub fn choose(self, chance: impl Fn(u32) -> Chance, mut coin: impl FnMut(u64) -> u64) -> u32 {
        match self {
            Depth::Fixed(depth) => depth.max(1),
            Depth::Auto { greatest } => {
                let mut depth = 1;
                while depth < greatest && coin(2) == 1 {
                    depth += 1;
                }
                depth
            }
            Depth::Confident { confidence, runs } => largest_depth(confidence, runs as f64, chance).max(1),
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Depth::Fixed(depth) => write!(out, "depth={depth}"),
            Depth::Auto { greatest: 5 } => write!(out, "depth=auto"),
            Depth::Auto { greatest } => write!(out, "depth=auto,greatest={greatest}"),
            Depth::Confident { confidence, runs } => write!(out, "confidence={confidence},runs={runs}"),
        }
    }
}
