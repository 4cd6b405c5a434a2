//! Heap accounting: which allocations of the host are alive, by test and call stack, from samples.
//!
//! Switched on by `WAYLAY_HEAP` in the environment (see `settings`); without it every call goes straight
//! on to the real allocator. The tables live in memory shared with the driver and their layout is
//! `waylay_leaks::region`; this module decides what is written into them.
//!
//! In the order of a call:
//!
//! 1. `interpose` defines `malloc` and its family. An allocation subtracts its size from a countdown of
//!    its thread (`thread`), a `free` looks up one byte (`wiped`); then both jump to the function they
//!    replace (`next`). That is the whole cost of all but one call in thousands.
//! 2. When the countdown runs out, `sampler` draws the next one and `accounting` enters the allocation
//!    with its call stack (`stack`). When the byte says that the address may be a sampled one,
//!    `accounting` takes it out.
//! 3. `tag` says whose memory it is; `pthread_create` hands the tag on to new threads.
//!
//! In strict mode, and only there, two more things happen: calls that allocate and free are steps
//! (`runtime::calls`), and freed blocks are kept back so that their misuse shows (`guard`, `quarantine`).
//!
//! What makes this safe inside an allocator:
//!
//! - Nothing here allocates, locks or waits. While a sample is taken the thread's countdown is at its
//!   maximum, so an allocation by the unwinder, or by a signal handler in between, is simply not sampled.
//! - The environment is read in the constructor. Allocations before that are not sampled, and freeing
//!   them later is like freeing any other unsampled one.
//! - After `fork` the child finds the byte table and the pointer to the region zeroed by the kernel
//!   (MADV_WIPEONFORK), before it executes its first instruction: it cannot write into its parent's region.

#![cfg_attr(test, allow(dead_code, reason = "`interpose` uses it, which tests leave out"))]

mod accounting;
#[cfg(all(not(test), not(target_arch = "x86_64")))]
mod create;
#[cfg(target_arch = "x86_64")]
pub(crate) mod guard;
#[cfg(not(test))]
mod interpose;
mod next;
#[cfg(target_arch = "x86_64")]
mod quarantine;
mod sampler;
mod settings;
mod stack;
#[cfg(target_arch = "x86_64")]
#[cfg_attr(test, allow(dead_code, reason = "unit tests do not interpose anything"))]
pub(crate) mod strict;
pub(crate) mod tag;
mod thread;
mod wiped;
