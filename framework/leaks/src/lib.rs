//! What leaks: the region of sampled allocations that host and driver share, and the policy that tells
//! growth from use.
//!
//! Three rooms, in the order data flows through them:
//!
//! 1. [`region`]: the layout of the shared memory. The preload library writes sampled allocations into
//!    it; the driver reads it from outside, whether the host runs, hangs or is dead.
//! 2. [`usage`]: what the operating system says about a process: resident memory, open descriptors,
//!    threads. Read from outside, too.
//! 3. [`growth`]: pure policy. It is fed snapshots of both, knows no operating system and no clock, and
//!    answers with findings: this test, this call stack, so many bytes per iteration, with a p-value.

pub mod growth;
pub mod region;
pub mod usage;

pub use growth::{GrowthFinding, HeapWatch, LeakFinding, LeakPolicy, LeftBehind, Resource, UsageWatch};
pub use region::{HeapSnapshot, Region, SiteId, Tag};
pub use region::{RegionError, Sampling, SharedRegion};
pub use usage::ProcessUsage;
