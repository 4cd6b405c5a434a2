//! Threads that wait for descriptors.
//!
//! They stand in a list with what they wait for. Whoever changes a descriptor has the list looked through; when
//! nobody can run, the whole list is polled and the library waits for the outside world.

use waylay_runtime::handover::take_arrivals;
use waylay_schedule::{Event, EventKind, ObjectId};

use super::logical::Logical;
use super::outside::ask_outsiders;
use super::signals::{self, raise_pending};
use super::{SHARED, Token, Waited, inside, outside, wait};
use crate::sched::{Choice, Key, Moment, Shares};
use crate::sys;

/// A thread's descriptors; the memory is on the waiting thread's stack or the caller's.
#[derive(Debug)]
pub(crate) struct Watch {
    thread: *mut Logical,
    set: *mut libc::pollfd,
    len: usize,
}

impl Watch {
    /// Whether it is of this thread.
    pub(super) fn is_of(&self, thread: *mut Logical) -> bool {
        self.thread == thread
    }

    /// What is waited for.
    ///
    /// # Safety
    /// The thread waits.
    pub(super) unsafe fn set(&self) -> &[libc::pollfd] {
        // SAFETY: whoever waits keeps the memory.
        if self.len == 0 { &[] } else { unsafe { core::slice::from_raw_parts(self.set, self.len) } }
    }

    /// Whether it only stands for a wait.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Real milliseconds between two looks at threads that are away, while waiting for descriptors too.
const SLICE: i32 = 1;

/// An event on something that the library cannot name.
pub(crate) fn unknown_event() -> Event {
    Event::new(EventKind::BlockingReturn, ObjectId::UNKNOWN)
}

fn poll(set: *mut libc::pollfd, len: usize, milliseconds: i32) -> isize {
    loop {
        // SAFETY: every caller passes a whole, writable set.
        let ready = unsafe { sys::call(libc::SYS_poll, [set as usize, len, milliseconds as usize, 0, 0, 0]) };
        // Where nothing is ready, the kernel breaks even a look off for a signal, and that is neither yes nor no.
        if milliseconds != 0 || ready != -(libc::EINTR as isize) {
            return ready;
        }
    }
}

fn key_of(thread: *mut Logical) -> Key {
    // An address inside the thread's own record that names nothing else.
    Key(thread as usize + 1)
}

/// Waits until one of the descriptors is ready or `deadline` passes.
pub(crate) fn wait_for_descriptors(
    me: &mut Token,
    set: &mut [libc::pollfd],
    deadline: Option<Moment>,
) -> Waited {
    loop {
        // SAFETY: the thread of the token exists.
        if unsafe { (*me.thread()).pending_signals } & signals::kept_by_kernel() != 0 {
            // A descriptor reads them from the kernel.
            raise_pending(me);
        }
        if !set.is_empty() && poll(set.as_mut_ptr(), set.len(), 0) != 0 {
            return Waited::Done;
        }
        let watch = Watch { thread: me.thread(), set: set.as_mut_ptr(), len: set.len() };
        me.run().system.watches.push(watch);
        let waited = wait(me, unknown_event(), key_of(me.thread()), Shares::ALL, deadline, None);
        let thread = me.thread();
        me.run().system.watches.retain(|watch| watch.thread != thread);
        if waited != Waited::Done {
            return waited;
        }
    }
}

/// Wakes those whose descriptors are ready.
pub(crate) fn descriptors_changed(me: &mut Token) {
    let runtime = me.run();
    for watch in &runtime.system.watches {
        if watch.len > 0 && poll(watch.set, watch.len, 0) != 0 {
            runtime.sched.wake(key_of(watch.thread), 1, Shares::ALL);
        }
    }
}

/// Wakes those whose descriptors become ready within so many real nanoseconds.
pub(super) fn look_outside(me: &mut Token, nanoseconds: u64) {
    // SAFETY: the list is whole, and the kernel may write to it and to the time.
    unsafe {
        if nanoseconds > 0 {
            let mut all = watched(me);
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds.min(999_999_999) as i64 };
            let (set, time) = (all.as_mut_ptr() as usize, &raw mut time as usize);
            sys::call(libc::SYS_ppoll, [set, all.len(), time, 0, 0, 0]);
        }
        descriptors_changed(me);
    }
}

/// What all threads together wait for.
fn watched(me: &mut Token) -> Vec<libc::pollfd> {
    // SAFETY: watching threads are suspended, so their sets are still.
    unsafe {
        let watches = &me.run().system.watches;
        let sets = watches.iter().flat_map(|watch| (0..watch.len).map(move |index| (watch, index)));
        sets.map(|(watch, index)| *watch.set.add(index)).collect()
    }
}

/// Whether all that could make these descriptors ready is done by threads of the run, of which none can run.
#[cold]
fn are_ours(me: &mut Token, waited_for: &[libc::pollfd]) -> bool {
    me.run().system.inside.has_all_of(waited_for)
        && !outside::has_started_processes()
        && !outside::has_unknown_children()
        && !outside::are_there(me.run())
        && !inside::handlers_may_run()
        && !inside::kernel_may_act()
}

/// Turns a choice that nobody can follow into one that somebody can, if the outside world brings it about.
#[cold]
pub(super) fn ask_outside(me: &mut Token, mut choice: Choice) -> Choice {
    while matches!(choice, Choice::Idle | Choice::Deadlock) {
        let mut all = watched(me);
        if all.is_empty() {
            return if choice == Choice::Deadlock { ask_outsiders(me) } else { choice };
        }
        if choice == Choice::Deadlock {
            if outside::others_may_help(me) {
                choice = me.run().sched.choose();
                continue;
            }
            if are_ours(me, &all) {
                break;
            }
        }
        me.run().note_awaits(true);
        poll(all.as_mut_ptr(), all.len(), if choice == Choice::Idle { SLICE } else { -1 });
        if !SHARED.arrivals.load(core::sync::atomic::Ordering::Acquire).is_null() {
            take_arrivals(me);
        }
        descriptors_changed(me);
        choice = me.run().sched.choose();
    }
    me.run().note_awaits(false);
    choice
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU32, Ordering};

    static SIGNALS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn count(_: libc::c_int) {
        SIGNALS.fetch_add(1, Ordering::Relaxed);
    }

    /// A signal every 20 microseconds while the thread does nothing but look: without the loop a large part of them, thousands,
    /// come in the middle of a look.
    #[test]
    fn a_look_that_a_signal_breaks_off_sees_nothing() {
        let mut ends = [0; 2];
        // SAFETY: the calls get whole structures; the timer is this thread's and gone before it ends.
        unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = count as *const () as usize;
            libc::sigaction(libc::SIGRTMIN() + 5, &raw const action, core::ptr::null_mut());
            let mut event: libc::sigevent = core::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_notify_thread_id = sys::thread_id();
            event.sigev_signo = libc::SIGRTMIN() + 5;
            let mut timer = core::ptr::null_mut();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer), 0);
            let often = libc::timespec { tv_sec: 0, tv_nsec: 20_000 };
            let times = libc::itimerspec { it_interval: often, it_value: often };
            assert_eq!(libc::timer_settime(timer, 0, &raw const times, core::ptr::null_mut()), 0);
            let mut set = libc::pollfd { fd: ends[0], events: libc::POLLIN, revents: 0 };
            let mut looks = 0;
            while SIGNALS.load(Ordering::Relaxed) < 5000 {
                assert_eq!(poll(&raw mut set, 1, 0), 0, "after {looks} looks");
                looks += 1;
            }
            libc::timer_delete(timer);
            for end in ends {
                libc::close(end);
            }
        }
    }
}
