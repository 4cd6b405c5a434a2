//! Who runs next: the logical threads, what each waits for, virtual time, and the strategy that chooses.
//!
//! Shared by the control libraries of all systems. Pure: knows no kernel thread, no stack and no pthread. The caller tells
//! it what the running thread does and carries out the [`Choice`] it gets back. Objects are keys (addresses); what they mean stays with the caller.
//!
//! A step is announced *before* an operation that may have to wait (lock, wait, join) and *after* one that lets
//! others go on (unlock, post, signal, create): code between two operations is cut where another thread's
//! operation can change what it sees, with one step per operation.

mod clock;
mod closing;
mod heard;
mod learning;
mod limits;
mod looking;
mod plan;
mod recording;
mod scheduler;
mod series;
mod settling;
mod spin;
#[cfg(test)]
mod tests;
mod thread;
mod waiting;

pub use clock::{Clock, Moment};
pub use limits::{Asks, Limits};
pub use looking::Looking;
pub use plan::{Planned, plan};
pub use recording::Recording;
pub use scheduler::{Choice, Flush, Scheduler, TimeoutPolicy};
pub use series::{Series, Stage, recalled};
pub use spin::{Looks, Now, Spins};
pub use thread::{Acquire, Key, Outcome, Shares, State, Thread};
pub use waiting::ByAddress;
