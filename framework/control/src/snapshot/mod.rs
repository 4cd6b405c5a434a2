//! Snapshot and restore: the third way to begin a schedule of a whole program.
//!
//! The process stands in front of `main` on the carrier, with threads made in advance and parked. From there it is like a
//! child that was just forked: it reads its settings from the region and runs the program. When the run ends, by whatever
//! ends a process, everything is put back as it was, the library's own state included, and the next run goes on from the
//! same place. So a restored run takes the way that a forked one takes, and the fork server is its oracle.
//!
//! What outlives a run is the [`Keeper`]: it has memory of its own, and code that touches no other. It takes the snapshot,
//! makes the ordered runs one by one, writes their records and restores.
//!
//! - [`maps`], [`image`]: memory
//! - [`policy`], [`filter`], [`trap`], [`journal`]: system calls: which pass, which are noted and undone, and which cannot be
//!   undone, so that the run is abandoned before they are made
//! - [`signals`]: actions, and what ends a run instead of killing the process
//! - [`keeper`](mod@keeper): the loop
//!
//! A thread that has to leave the carrier for its own kernel thread (to wait in the kernel, for a signal, to end through
//! `pthread_exit`) cannot be put back, so that such a run is abandoned as well.

mod filter;
mod image;
mod journal;
mod keeper;
mod list;
mod maps;
mod policy;
mod signals;
mod trap;

use core::sync::atomic::{AtomicPtr, Ordering};

use keeper::Keeper;
pub(crate) use keeper::{serve, why_not};
pub(crate) use signals::Action;


/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// The program ended, with this status as `waitpid` gives it.
    Status(i32),
    /// It was about to do what cannot be undone.
    Refused(&'static str),
    /// It needs a thread with this stack size, and there is none left.
    MoreThreads(usize),
}

/// The keeper, in a process that makes restored runs. Set before the snapshot is taken, so that it comes back with it.
static KEEPER: AtomicPtr<Keeper> = AtomicPtr::new(core::ptr::null_mut());

fn keeper() -> *mut Keeper {
    KEEPER.load(Ordering::Relaxed)
}

/// Whether runs of this process are restored.
#[inline]
pub(crate) fn is_on() -> bool {
    !keeper().is_null()
}

/// Ends the run. The caller and everything it did are gone.
///
/// # Safety
/// A restored run goes on, and the caller is on the carrier.
unsafe fn finish(end: End) -> ! {
    // SAFETY: by the caller's promise.
    unsafe { (*keeper()).finish(end) }
}

/// Makes a system call of the program's in a restored run, noted so that it is undone: what the filter would lead to. Does
/// not return if it cannot be undone; nothing is done outside of such runs.
///
/// # Safety
/// As for the call.
#[inline]
pub(crate) unsafe fn carry_out(number: i64, args: [usize; 6]) -> Option<isize> {
    if !is_on() {
        return None;
    }
    // SAFETY: the keeper exists; by the caller's promise.
    unsafe { (*keeper()).is_running().then(|| trap::directly(&mut *keeper(), number, args)) }
}

/// Whether a run goes on that will be undone.
pub(crate) fn is_undoing() -> bool {
    // SAFETY: the keeper exists.
    is_on() && unsafe { (*keeper()).is_running() }
}

/// The running thread is about to do what cannot be undone. Does not return if the run is a restored one.
#[inline]
pub(crate) fn cannot_undo(why: &'static str) {
    if is_on() {
        end_here(End::Refused(why));
    }
}

/// A run that wants a thread which the process cannot give it. Does not return if the run is a restored one.
pub(crate) fn needs_thread(stack_size: Option<usize>) {
    if is_on() {
        end_here(match stack_size {
            Some(size) => End::MoreThreads(size),
            None => End::Refused("gives a thread a stack of its own"),
        });
    }
}

/// The run ends with this exit status. Does not return if the run is a restored one.
pub(crate) fn exits(status: i32) {
    if is_on() {
        end_here(End::Status((status & 0xff) << 8));
    }
}

#[cold]
fn end_here(end: End) {
    // SAFETY: the keeper exists; only the carrier executes program code in a restored run.
    unsafe {
        if (*keeper()).is_running() {
            finish(end);
        }
    }
}

/// The library mapped memory for itself.
#[inline]
pub(crate) fn mapped(at: *mut u8, length: usize) {
    if is_on() {
        note_mapped(at as usize, length);
    }
}

#[cold]
fn note_mapped(at: usize, length: usize) {
    // SAFETY: as for `end_here`.
    unsafe {
        if (*keeper()).is_running()
            && let Err(why) = (*keeper()).journal.mapped(at, length)
        {
            finish(End::Refused(why));
        }
    }
}

/// The library is about to unmap memory, or to change what may be done with it.
#[inline]
pub(crate) fn will_change(at: usize, length: usize) {
    if is_on() {
        note_change(at, length);
    }
}

#[cold]
fn note_change(at: usize, length: usize) {
    // SAFETY: as for `end_here`.
    unsafe {
        let keeper = keeper();
        if (*keeper).is_running()
            && let Err(why) = (*keeper).journal.will_change(&(*keeper).image, at, length)
        {
            finish(End::Refused(why));
        }
    }
}
