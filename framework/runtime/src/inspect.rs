//! Stacks of suspended threads.
//!
//! A thread knows its own stack best: to describe all of them, the inspecting thread resumes each in turn, which
//! unwinds itself and passes the token back. That works wherever a thread is parked.

use core::sync::atomic::Ordering;

use waylay_control_protocol::Statement;
use waylay_control_protocol::account::{Object, Operation, Standing};
use waylay_schedule::{Event, ObjectId, Space};
use waylay_scheduler::State;

use crate::platform::{Platform, Stacks, Thread};
use crate::run::run;

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

/// Adds a statement to what the run tells about itself.
///
/// # Safety
/// The caller holds the token.
pub unsafe fn tell<P: Platform>(statement: &Statement<'_>) {
    // SAFETY: by the caller's promise.
    unsafe { (*run::<P>()).region.tell(statement) };
}

/// A statement that is for whoever explores programs: in a host, what is told is the reason of a failure.
///
/// # Safety
/// As for [`tell`].
pub unsafe fn note<P: Platform>(statement: &Statement<'_>) {
    // SAFETY: by the caller's promise.
    unsafe {
        if (*run::<P>()).settings.in_process == 0 {
            tell::<P>(statement);
        }
    }
}

/// An event, as it is told.
fn operation(event: Event) -> Operation<'static> {
    let object = match (event.object, event.kind.space()) {
        (ObjectId::NONE, _) => Object::Nothing,
        (ObjectId::UNKNOWN, _) => Object::Unknown,
        (ObjectId(id), Space::Thread) => Object::Thread((id - 1) as u32),
        (ObjectId(id), Space::User) => Object::Number(id),
        (ObjectId(id), Space::Address) => Object::Address(id),
    };
    Operation { kind: event.kind.name().into(), object }
}

unsafe fn describe<T: Thread>(me: *mut T) {
    // SAFETY: called with the token, by the thread that is described.
    T::System::unmanaged(|| unsafe {
        let id = T::id(me);
        let thread = (*run::<T::System>()).sched.thread(id);
        let waits = thread.state == State::Blocked;
        let holder = if waits { T::System::holder(thread.pending) } else { None };
        tell::<T::System>(&Statement::Standing(Standing {
            thread: id.0,
            steps: thread.steps,
            waits,
            operation: operation(thread.pending),
            holder: holder.map(|holder| holder.0),
        }));
        T::System::describe_stack();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use waylay_schedule::{EventKind, ThreadId};

    /// What a deadlock tells of an event is what the schedule calls it.
    #[test]
    fn an_event_is_told_in_the_words_of_the_schedule() {
        let events = [
            Event::local(EventKind::Yield),
            Event::new(EventKind::MutexLock, ObjectId(0x5080)),
            Event::new(EventKind::BlockingReturn, ObjectId::UNKNOWN),
            Event::on_thread(EventKind::ThreadJoin, ThreadId(3)),
            Event::new(EventKind::UserWrite, ObjectId(7)),
        ];
        for event in events {
            let told = operation(event).named(&mut |_, address| format!("{address:#x}"));
            assert_eq!(told, event.to_string());
        }
    }
}
