//! What a run's accesses to memory mean: which are worth a step, what comes before what, and which race.
//!
//! Shared by the control libraries of all systems, which say what happens; what they have to offer for that is
//! [`Process`]. Nothing here decides who runs.
//!
//! - [`access`]: an access becomes a step, or does not
//! - [`delayed`]: stores that others see later than they are made; [`stores`]: one thread's of them, pure
//! - `watch`: which do, and what a run teaches about others
//! - `modules`: code addresses that mean the same in every process
//! - `objects`: what kind of memory an access is to; pure
//! - `sharing`, `suspects`: which accesses are worth a step, learned from runs; pure
//! - `blocks`: heap blocks that the program has; `freed`: those that were given back; pure
//! - `order`: what comes before what in a run; pure. `order::published`: what memory orders have to do with that
//! - `races`: accesses that nothing orders; pure. `verdict`: one of them ends the run
//! - `rounds`: loops that give way while they wait; pure
//! - `progress`: accesses that change nothing; pure. A loop that waits for another thread is recognised by
//!   `waylay_scheduler::Looks`

pub mod access;
mod blocks;
pub mod delayed;
mod files;
mod freed;
mod modules;
mod objects;
mod order;
mod process;
mod progress;
mod races;
mod rounds;
mod sharing;
pub mod stores;
mod suspects;
mod verdict;
mod watch;

pub use access::{Access, Expects, Frees};
pub use modules::Module;
pub use order::{Order, Promise, Way};
pub use process::{Attention, Process, Who};
pub use watch::{Watch, follows_objects, follows_order, is_in_want};
