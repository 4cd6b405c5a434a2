//! Threads that wait for descriptors.
//!
//! They stand in a list with what they wait for. Whoever changes a descriptor has the list looked through; when
//! nobody can run, the whole list is polled and the library waits for the outside world.

use waylay_schedule::{Event, EventKind, ObjectId};

use super::handover::take_arrivals;
use super::logical::Logical;
use super::outside::ask_outsiders;
use super::point::{Waited, wait};
use super::{SHARED, runtime};
use crate::sched::{Choice, Key, Moment, Shares};
use crate::sys;

/// A thread's descriptors; the memory is on the waiting thread's stack or the caller's.
#[derive(Debug)]
pub(crate) struct Watch {
    thread: *mut Logical,
    set: *mut libc::pollfd,
    len: usize,
}

/// Real milliseconds between two looks at threads that are away, while waiting for descriptors too.
const SLICE: i32 = 1;

/// An event on something that the library cannot name.
pub(crate) fn unknown_event() -> Event {
    Event::new(EventKind::BlockingReturn, ObjectId::UNKNOWN)
}

fn poll(set: *mut libc::pollfd, len: usize, milliseconds: i32) -> isize {
    // SAFETY: every caller passes a whole, writable set.
    unsafe { sys::call(libc::SYS_poll, [set as usize, len, milliseconds as usize, 0, 0, 0]) }
}

fn key_of(thread: *mut Logical) -> Key {
    // An address inside the thread's own record that names nothing else.
    Key(thread as usize + 1)
}

/// Waits until one of the descriptors is ready or `deadline` passes.
///
/// # Safety
/// `me` executes the call and holds the token.
pub(crate) unsafe fn wait_for_descriptors(
    me: *mut Logical,
    set: &mut [libc::pollfd],
    deadline: Option<Moment>,
) -> Waited {
    // SAFETY: by the caller's promise; the watch is removed before `set` goes away.
    unsafe {
        loop {
            if !set.is_empty() && poll(set.as_mut_ptr(), set.len(), 0) != 0 {
                return Waited::Done;
            }
            let watch = Watch { thread: me, set: set.as_mut_ptr(), len: set.len() };
            (*runtime()).watches.push(watch);
            let waited = wait(me, unknown_event(), key_of(me), Shares::ALL, deadline, None);
            (*runtime()).watches.retain(|watch| watch.thread != me);
            if waited != Waited::Done {
                return waited;
            }
        }
    }
}

/// Wakes those whose descriptors are ready.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn descriptors_changed() {
    // SAFETY: by the caller's promise; watching threads are suspended, so their sets are still.
    unsafe {
        let runtime = runtime();
        for watch in &(*runtime).watches {
            if watch.len > 0 && poll(watch.set, watch.len, 0) != 0 {
                (*runtime).sched.wake(key_of(watch.thread), 1, Shares::ALL);
            }
        }
    }
}

/// Turns a choice that nobody can follow into one that somebody can, if the outside world brings it about.
///
/// # Safety
/// The caller holds the token.
#[cold]
pub(super) unsafe fn ask_outside(mut choice: Choice) -> Choice {
    // SAFETY: by the caller's promise.
    unsafe {
        while matches!(choice, Choice::Idle | Choice::Deadlock) {
            let mut all: Vec<libc::pollfd> = Vec::new();
            for watch in &(*runtime()).watches {
                for index in 0..watch.len {
                    all.push(*watch.set.add(index));
                }
            }
            if all.is_empty() {
                return if choice == Choice::Deadlock { ask_outsiders() } else { choice };
            }
            poll(all.as_mut_ptr(), all.len(), if choice == Choice::Idle { SLICE } else { -1 });
            if !SHARED.arrivals.load(core::sync::atomic::Ordering::Acquire).is_null() {
                take_arrivals();
            }
            descriptors_changed();
            choice = (*runtime()).sched.choose();
        }
        choice
    }
}
