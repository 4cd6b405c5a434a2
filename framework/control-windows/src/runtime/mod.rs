//! Carrying the scheduler's choices out on kernel threads.
//!
//! What happens at a step, at a choice and at the end of a run is in `waylay_runtime`; here is how it is done on Windows,
//! where each logical thread has a kernel thread that waits for its baton.
//!
//! - [`platform`]: what `waylay_runtime` asks of a system
//! - [`logical`]: a logical thread
//! - [`lifecycle`]: beginning and ending logical threads; [`leaving`]: those that have finished
//! - [`waiters`]: what the interposed functions call beside `waylay_runtime::point`
//! - [`session`]: beginning a run; [`stacks`]: what its end tells about threads
//! - [`outside`]: threads that are not under control; [`preempt`]: threads that compute without a step
//! - [`pool`]: kernel threads that are used again; [`renewal`]: what has to be as new then

mod leaving;
mod lifecycle;
mod logical;
pub(crate) mod outside;
mod platform;
pub(crate) mod pool;
mod preempt;
mod renewal;
mod session;
mod stacks;
mod waiters;

pub(crate) use lifecycle::{create, exit_point, join_event, join_point, key_of, note_joined, resume};
pub(crate) use logical::{Logical, Routine};
pub(crate) use platform::runtime;
pub(crate) use session::begin;
pub(crate) use waiters::{away, freed, taken, wake};
pub(crate) use waylay_runtime::ending::{end_at_race, finalise};
pub(crate) use waylay_runtime::in_process::{
    begin_when as begin_in_process, end_into as end_in_process, stop as stop_in_process,
};
pub(crate) use waylay_runtime::point::{Waited, acquire, event_at, sleep, step, wait};
pub(crate) use waylay_runtime::session::{is_prepared_in_process, prepare_in_process, recalled};

/// The running thread, which has the token.
pub(crate) type Token = waylay_runtime::Token<Logical>;
