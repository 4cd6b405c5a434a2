//! The randomizer beside a host: its process, and what all of them did in a scenario.

mod process;
mod tally;

pub(crate) use process::{Quiet, RandomizerCommand, RandomizerEnd, RandomizerProcess, RandomizerTask};
pub(crate) use tally::Tally;
