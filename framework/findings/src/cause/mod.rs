//! Why something fails: the orders of events that it needs, each proved by running it the other way round.
//!
//! - `orders`: them as data
//! - `words`: what is said of them, from the first line of a failure to both stacks of every order

mod orders;
mod words;

pub use orders::{Allocated, Cause, Constraint, EventPlace, Trials, Why};
pub use words::{WIDTH, wrap};
