//! Changing which logical thread the processor executes: the context switch itself and the signal that wakes a
//! kernel thread.
//!
//! Knows registers, stacks and futexes. Does not know which thread should run: that is `sched`, and carrying its
//! answer out is `runtime`.

mod context;
mod signal;
mod stack;

pub(crate) use context::{Context, fs_base, switch};
pub(crate) use signal::Signal;
pub(crate) use stack::Stack;
