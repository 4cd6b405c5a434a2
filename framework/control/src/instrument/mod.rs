//! Steps inside the program's own code: what its compiler reports, and what is patched where no compiler was asked.
//!
//! - [`tsan`]: the functions that `-fsanitize=thread` makes compilers call
//! - [`patch`]: instructions that are replaced where no compiler was asked
//! - [`access`]: what both report, for `waylay-accesses` to make steps of
//! - [`copies`]: functions of the C library that read and write memory for the program
//! - [`delay`]: where stores may no longer wait, with `--memory tso`
//! - [`outward`]: calls of functions whose stores are not seen
//! - [`peek`]: reads that the library makes in the program's place
//! - [`watch`]: what is known about the run's accesses, in this process
//! - [`modules`]: the modules of the process
//!
//! Nothing here decides who runs. Executions are sequentially consistent whatever memory orders the program names, or those of
//! x86 where stores may wait ([`delay`]).

mod access;
pub(crate) mod copies;
pub(crate) mod delay;
mod modules;
mod outward;
pub(crate) mod patch;
mod peek;
mod tsan;
mod watch;

pub(crate) use peek::ends_with_nothing;
pub(crate) use watch::{Linux, before_spawn, begin_run, edge, prepare, resumed};

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
