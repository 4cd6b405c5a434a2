//! Tests that fail on purpose, one for every kind of failure that Waylay must find. Each does what its name says in the
//! way that real code does it, and all but the rare ones do it for certain.
//!
//! | file | tests |
//! |---|---|
//! | [`sudden`] | end the process or the iteration at once: crash, abort, exit, stack overflow, panic, assert |
//! | [`hanging`] | do not come back: deadlock, livelock, slow, starvation |
//! | [`leaking`] | leave memory, files or threads behind |
//! | [`misbehaved`] | break the order of a test's life: fail to be made, to start, to stop, to end |
//! | [`rare`] | need a thread that is late at the wrong moment: lease |
//! | [`repeated`] | fail in every iteration, alike or each time differently; and one that does nothing wrong |
//!
//! `faults-c` and `faults-cpp` hold what only those languages can do.

pub mod hanging;
pub mod leaking;
pub mod misbehaved;
pub mod rare;
pub mod repeated;
pub mod sudden;

use sudden::After;

waylay_plugin::export! {
    name: "faults",
    tests: [
        After<sudden::Crash>,
        After<sudden::Abort>,
        After<sudden::Exit>,
        After<sudden::StackOverflow>,
        After<sudden::Panic>,
        After<sudden::ThreadPanic>,
        After<sudden::Assert>,
        hanging::Deadlock,
        hanging::Livelock,
        hanging::Slow,
        hanging::Starvation,
        leaking::Memory,
        leaking::Files,
        leaking::Threads,
        misbehaved::CreateFails,
        misbehaved::CreatePanics,
        misbehaved::StartFails,
        misbehaved::CancelHangs,
        misbehaved::EndPanics,
        misbehaved::DropPanics,
        rare::Lease,
        repeated::Alike,
        repeated::Differently,
        repeated::Nothing,
    ],
}
