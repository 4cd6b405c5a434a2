//! Policy: which growth is a leak. Pure: no clock, no process, no memory but what it is handed.
//!
//! # Heap
//!
//! A leak is memory that *keeps being left over*. The question is asked per site (tag and call stack) of
//! one snapshot: of the samples born in a window of the past, which are still alive, and are they spread
//! over the whole window? Positions inside the window are counted in iterations of the test, so a test
//! that ran rarely for a while does not look like one that stopped leaking.
//!
//! | | survivors by birth, old to new |
//! |---|---|
//! | steady turnover | none but the newest |
//! | warm-up, a cache that fills and stops | the oldest only, or ever fewer |
//! | saw-tooth, a cache that is cleared | only those since the last clearing |
//! | one large allocation | a single one |
//! | leak | evenly everywhere |
//!
//! A finding needs all of the following (the details are in `survivors`):
//!
//! 1. *Old enough.* Only samples older than the age at which this site's samples still die count; the
//!    site's deaths by age are part of the snapshot.
//! 2. *Spread.* Both halves of the window hold more survivors than chance explains if each fell there with
//!    probability at most [`policy::MINOR_SHARE`]. Tested twice with an exact binomial tail: once with
//!    samples, once with occupied bins, so that a burst counts as one event.
//! 3. *Not slowing down.* The newer half and the newest quarter are not short of survivors, and the
//!    stretch before the window has not far more of them.
//!
//! The null hypothesis of (2) is met by a fill whose time constant is at most the policy's warm-up (in a
//! window of 4.5 warm-ups the newer half receives 9.5 % or less), by a linear fill that ends within 2.25
//! warm-ups, by turnover with lifetimes below the warm-up, and by a saw-tooth with a period up to half the
//! window. For these the probability of any finding is below
//! [`LeakPolicy::false_alarms_per_hour`] per test and hour, by a union bound over windows, evaluations and
//! sites. A fill much slower than the warm-up looks like a leak until it ends, to anybody; give such a
//! test a longer warm-up.
//!
//! # Descriptors, threads, resident memory
//!
//! These have counts, not births, so the test is on minima: the window is cut into blocks of equal
//! iterations, and the minima of the blocks must rise nearly without exception (exact Mann-Kendall test on
//! exchangeable block minima), at a pace that does not slow down. See `trend`. What a test leaves behind
//! after its end is a comparison of two readings: [`LeftBehind`].

mod binomial;
mod heap_watch;
mod history;
mod left_behind;
pub mod policy;
#[cfg(test)]
mod simulation;
mod survivors;
mod trend;
mod usage_watch;

pub use heap_watch::{HeapWatch, LeakFinding};
pub use left_behind::LeftBehind;
pub use policy::LeakPolicy;
pub use usage_watch::{GrowthFinding, Resource, UsageWatch};
