//! Carrying the scheduler's choices out on kernel threads.
//!
//! What happens at a step, at a choice and at the end of a run is in `waylay_runtime`; here is how it is done on Linux. A
//! logical thread sits either on the *carrier*, one kernel thread that executes many of them as fibers, or at its *home*, the
//! kernel thread that libc made for it. Baton mode is the case in which everyone is at home.
//!
//! - [`platform`]: what `waylay_runtime` asks of a system
//! - [`logical`]: a logical thread and its seat
//! - [`handover`]: passing the token between seats
//! - [`carrier`]: the kernel thread that executes fibers, and the homes that wait meanwhile
//! - [`lifecycle`]: beginning and ending logical threads; [`leaving`]: threads that end from within;
//!   [`robust`]: what they leave locked; [`pool`]: those that are used again
//! - [`waiters`], [`descriptors`], [`calls`]: what the interposed functions call beside `waylay_runtime::point`
//! - [`session`]: beginning a run; [`stacks`]: what its end tells about threads
//! - [`signals`]: signals on their way; [`timers`]: timers of the program, whose time is virtual
//! - [`idling`]: threads that only sleep while the outside world is awaited; [`patience`]: waiting in real time
//! - [`inside`]: descriptors that only this process has; [`mappings`]: which memory others may have, too
//! - [`watcher`]: descriptors while nobody holds the token
//! - [`outside`]: threads that are not under control
//! - [`preempt`]: threads that compute without a step; [`blocked`]: threads that wait in the kernel with the token

mod blocked;
pub(crate) mod calls;
mod carrier;
mod descriptors;
mod handover;
mod idling;
mod inside;
mod leaving;
mod lifecycle;
mod listing;
mod logical;
mod mappings;
pub(crate) mod outside;
mod patience;
mod platform;
mod pool;
mod preempt;
mod robust;
mod session;
pub(crate) mod signals;
mod stacks;
pub(crate) mod timers;
mod waiters;
mod watcher;

use waylay_runtime::Run;

use crate::instrument::Linux;

pub(crate) use calls::Whereabouts;
pub(crate) use descriptors::{descriptors_changed, unknown_event, wait_for_descriptors};
pub(crate) use handover::{demote_me, in_handlers};
pub(crate) use leaving::call_until_exit;
pub(crate) use lifecycle::{complete_join, create, exit_point, join_point, last_words, lookup, main_left};
pub(crate) use logical::{Logical, Place, Routine};
pub(crate) use outside::kernel_threads;
pub(crate) use platform::{SHARED, runtime};
pub(crate) use preempt::{TICK_SIGNALS, note_modules};
pub(crate) use session::{
    Planned, begin, begin_restored, can_carry, note_uncontrolled_thread, plan, prepare_to_restore, settings_of,
};
pub(crate) use waiters::{freed, taken, wait_for_one_of, wake, wake_or_move};
pub(crate) use waylay_runtime::ending::{end_at_race, finalise};
pub(crate) use waylay_runtime::in_process::{
    begin_when as begin_in_process, end_into as end_in_process, stop as stop_in_process,
};
pub(crate) use waylay_runtime::point::{Waited, acquire, away, event_at, sleep, step, wait};
pub(crate) use waylay_runtime::session::{is_prepared_in_process, prepare_in_process, recalled};

/// The run that goes on.
pub(crate) type Runtime = Run<Linux>;

/// The running thread, which has the token.
pub(crate) type Token = waylay_runtime::Token<Logical>;

/// Whether the library itself needs this signal.
pub(crate) fn is_our_signal(signal: i32) -> bool {
    signal == preempt::SIGNAL || signal == blocked::SIGNAL
}
