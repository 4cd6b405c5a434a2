//! Stacks of suspended threads.
//!
//! A thread knows its own stack best: to describe all of them, the inspecting thread resumes each in turn, which
//! unwinds itself and passes the token back. That works wherever a thread is parked.

use core::sync::atomic::Ordering;

use waylay_scheduler::State;

use crate::platform::{Platform, Stacks, Thread};
use crate::run::run;
use crate::text::Text;

/// Adds the stack of every thread that is suspended, and of `inspector` itself, to the report.
///
/// # Safety
/// `inspector` executes the call and holds the token; no thread will ever run program code again.
pub(crate) unsafe fn describe_all<T: Thread>(inspector: *mut T) {
    T::System::shared().inspector.store(inspector, Ordering::Relaxed);
    // SAFETY: by the caller's promise.
    unsafe {
        let run = run::<T::System>();
        for index in 0..(*run).logicals.len() {
            let thread = (&(*run).logicals)[index];
            let state = (*run).sched.thread(T::id(thread)).state;
            // The inspector may be a thread that found out at its very end: it waits for nothing.
            if thread == inspector && state != State::Finished {
                describe(thread);
            } else if matches!(state, State::Blocked | State::Ready) {
                T::System::pass(inspector, thread);
            }
        }
    }
}

/// Describes the calling thread and passes the token back.
///
/// # Safety
/// `me` executes the call, and was resumed by `inspector`, in [`describe_all`].
#[cold]
pub(crate) unsafe fn describe_and_return<T: Thread>(me: *mut T, inspector: *mut T) {
    // SAFETY: the inspector waits for the token.
    unsafe {
        describe(me);
        T::System::pass(me, inspector);
    }
}

/// Adds a line to the report in words.
///
/// # Safety
/// The caller holds the token.
pub unsafe fn line<P: Platform>(text: core::fmt::Arguments<'_>) {
    let line = Text::<1024>::line(text);
    // SAFETY: by the caller's promise.
    unsafe { (*run::<P>()).region.append_text(&String::from_utf8_lossy(line.bytes())) };
}

/// A line that is for whoever explores programs: in a host, what is said is the reason of a failure.
///
/// # Safety
/// As for [`line`].
pub unsafe fn note<P: Platform>(text: core::fmt::Arguments<'_>) {
    // SAFETY: by the caller's promise.
    unsafe {
        if (*run::<P>()).settings.in_process == 0 {
            line::<P>(text);
        }
    }
}

unsafe fn describe<T: Thread>(me: *mut T) {
    // SAFETY: called with the token, by the thread that is described.
    T::System::unmanaged(|| unsafe {
        let id = T::id(me);
        let thread = (*run::<T::System>()).sched.thread(id);
        let (pending, state, steps) = (thread.pending, thread.state, thread.steps);
        let verb = if state == State::Blocked { "waits in" } else { "is about to do" };
        let holder = if state == State::Blocked { T::System::holder(pending) } else { None };
        match holder {
            Some(holder) => {
                line::<T::System>(format_args!("{id} ({steps} steps) {verb} {pending}, held by {holder}"));
            }
            None => line::<T::System>(format_args!("{id} ({steps} steps) {verb} {pending}")),
        }
        T::System::describe_stack();
    });
}
