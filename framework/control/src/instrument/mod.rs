//! Steps inside the program's own code: what its compiler reports, and what is patched where no compiler was asked.
//!
//! - [`tsan`]: the functions that `-fsanitize=thread` makes compilers call
//! - [`patch`]: instructions that are replaced where no compiler was asked
//! - [`access`]: an access becomes a step, or does not
//! - [`watch`]: which do, and what a run teaches about others
//! - [`modules`]: code addresses that mean the same in every process
//! - [`objects`]: what kind of memory an access is to; pure
//! - [`sharing`], [`suspects`]: which accesses are worth a step, learned from runs; pure
//! - [`order`]: what comes before what in a run; pure
//! - [`races`]: accesses that nothing orders; pure. [`verdict`]: one of them ends the run
//! - [`progress`]: accesses that change nothing; pure. A loop that waits for another thread is recognised by
//!   `waylay_scheduler::Looks`
//!
//! Nothing here decides who runs. Executions are sequentially consistent whatever memory orders the program names.

mod access;
mod modules;
mod objects;
mod order;
pub(crate) mod patch;
mod progress;
mod races;
mod sharing;
mod suspects;
mod tsan;
mod verdict;
mod watch;

pub(crate) use order::Way;
pub(crate) use watch::{before_spawn, begin_run, edge, has_changed_memory, prepare};

use core::sync::atomic::{AtomicU32, Ordering};

use waylay_control_protocol::{Instrumentation, Level};

/// The level, as a code of [`Level`]: read by every reported access, also by assembly.
static LEVEL: AtomicU32 = AtomicU32::new(Level::Sync as u32);

/// Settles what is a step, for the life of the process.
pub(crate) fn configure(wanted: &Instrumentation) {
    LEVEL.store(wanted.level() as u32, Ordering::Relaxed);
}

#[inline(always)]
fn reports(level: Level) -> bool {
    LEVEL.load(Ordering::Relaxed) >= level as u32
}
