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
use crate::token::Token;

/// Adds the stack of every thread that is suspended, and of `inspector` itself, to the report.
///
/// # Safety
/// No thread will ever run program code again.
pub(crate) unsafe fn describe_all<T: Thread>(inspector: &mut Token<T>) {
    T::System::shared().inspector.store(inspector.thread(), Ordering::Relaxed);
    for index in 0..inspector.run().logicals.len() {
        let thread = inspector.run().logicals[index];
        // SAFETY: threads in the list live as long as the run.
        let id = unsafe { T::id(thread) };
        let state = inspector.run().sched.thread(id).state;
        // The inspector may be a thread that found out at its very end: it waits for nothing.
        if thread == inspector.thread() && state != State::Finished {
            describe(inspector);
        } else if matches!(state, State::Blocked | State::Ready) {
            // SAFETY: a thread that is neither away nor over, nor the one that runs, is suspended.
            unsafe { T::System::pass(inspector, thread) };
        }
    }
}

/// Describes the calling thread and passes the token back.
///
/// # Safety
/// `me` was resumed by `inspector`, in [`describe_all`].
#[cold]
pub(crate) unsafe fn describe_and_return<T: Thread>(me: &mut Token<T>, inspector: *mut T) {
    describe(me);
    // SAFETY: the inspector waits for the token.
    unsafe { T::System::pass(me, inspector) };
}

/// Adds a statement to what the run tells about itself.
pub fn tell<T: Thread>(me: &mut Token<T>, statement: &Statement<'_>) {
    me.run().region.tell(statement);
}

/// A statement that is for whoever explores programs: in a host, what is told is the reason of a failure.
pub fn note<T: Thread>(me: &mut Token<T>, statement: &Statement<'_>) {
    if me.run().settings.in_process == 0 {
        tell(me, statement);
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

fn describe<T: Thread>(me: &mut Token<T>) {
    T::System::unmanaged(|| {
        let id = me.id();
        let thread = me.run().sched.thread(id);
        let (steps, pending, waits) = (thread.steps, thread.pending, thread.state == State::Blocked);
        let waits_since = waits.then_some(thread.blocked_at);
        // SAFETY: the thread waits in it.
        let holder = if waits { unsafe { T::System::holder(me, pending) } } else { None };
        let known = if waits { T::System::waits_in(me) } else { None };
        tell(
            me,
            &Statement::Standing(Standing {
                thread: id.0,
                steps,
                waits_since,
                operation: known.unwrap_or_else(|| operation(pending)),
                holder: holder.map(|holder| holder.0),
            }),
        );
        T::System::describe_stack(me);
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
