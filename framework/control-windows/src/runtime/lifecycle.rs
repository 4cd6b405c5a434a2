//! Beginning and ending logical threads.
//!
//! A new kernel thread starts in [`enter`], reaches its place and waits to be chosen; its creator waits for that, so that
//! the order in which the system starts threads is not seen. At the end, whoever runs next waits until the kernel thread
//! is gone (`leaving::see_off`). Where runs are repeated, most threads are those of a [`pool`] instead.

use core::ffi::c_void;
use core::sync::atomic::Ordering;
use std::time::Duration;

use waylay_runtime::handover::{dispatch, resumed};
use waylay_runtime::{Run, in_process, point};
use waylay_schedule::{Event, EventKind, ThreadId};
use waylay_scheduler::{Key, Moment, Shares};
use windows_sys::Win32::Foundation::{DUPLICATE_SAME_ACCESS, DuplicateHandle, HANDLE};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetCurrentThreadId};

use super::logical::{Logical, Routine};
use super::{Token, outside, pool, step};
use crate::me::{set_me, stack, watch_end};
use crate::watch::{self, Windows, edge};

/// How long a new thread may take to its first instruction. It cannot begin while its creator holds the loader's lock.
pub(super) const BEGINNING: Duration = Duration::from_secs(1);

/// Creates a logical thread on behalf of `me`: `make` creates the kernel thread, which runs the routine that it is given.
/// A thread that is to begin suspended takes part from [`resume`] on. With a size for its stack it may have a kernel thread
/// of the pool.
///
/// # Safety
/// `make` returns a handle of the new thread or null.
pub(crate) unsafe fn create(
    me: &mut Token,
    routine: Routine,
    argument: *mut c_void,
    suspended: bool,
    stack: Option<usize>,
    make: impl FnOnce(&mut Token, Routine, *mut c_void) -> HANDLE,
) -> HANDLE {
    watch::before_spawn(me);
    let thread = Box::into_raw(Logical::new(Some(routine), argument));
    // SAFETY: by the caller's promise; the new thread only touches its own record until it is chosen.
    unsafe {
        let stack = stack.filter(|_| me.run().repeats);
        let employed = stack.map_or(core::ptr::null_mut(), |stack| pool::employ(me, thread, stack));
        if !employed.is_null() {
            me.run().system.handles.add_thread(employed, thread);
            if !suspended {
                take_part(me, thread);
            }
            return employed;
        }
        let handle = make(me, enter, thread.cast());
        if handle.is_null() || handle as isize == -1 {
            drop(Box::from_raw(thread));
            return handle;
        }
        if !(*thread).started.wait_for(BEGINNING) {
            me.run().note_uncontrolled();
        }
        outside::take_letters(me, (*thread).number);
        let process = GetCurrentProcess();
        DuplicateHandle(process, handle, process, &mut (*thread).handle, 0, 0, DUPLICATE_SAME_ACCESS);
        let runtime = me.run();
        runtime.system.handles.add_thread(handle, thread);
        if !suspended {
            take_part(me, thread);
        }
        handle
    }
}

/// A thread that was created suspended may go on; false when it is no such thread.
pub(crate) fn resume(me: &mut Token, handle: HANDLE) -> bool {
    // SAFETY: who has the token lives.
    unsafe {
        match me.run().system.handles.thread(handle) {
            Some(thread) if (*thread).id == ThreadId(u32::MAX) => {
                take_part(me, thread);
                true
            }
            _ => false,
        }
    }
}

unsafe fn take_part(me: &mut Token, thread: *mut Logical) {
    // SAFETY: called with the token, for a thread that waits to be chosen.
    unsafe {
        register(me, thread);
        edge::given_stack(me, (*thread).stack);
        edge::spawned(me, thread);
        step(me, Event::on_thread(EventKind::ThreadSpawn, (*thread).id));
    }
}

/// Tells scheduler and tables about a thread that is in place.
///
/// # Safety
/// The thread lives as long as the run.
pub(super) unsafe fn register(me: &mut Token, thread: *mut Logical) {
    // SAFETY: by the caller's promise.
    unsafe {
        let runtime = me.run();
        (*thread).id = runtime.sched.add_thread();
        runtime.logicals.push(thread);
        runtime.system.by_number.insert((*thread).number as usize, thread);
        tell_number(&*runtime, &*thread);
    }
}

/// Says what the system calls a thread. It uses the numbers of threads that have ended again, and so do runs with kernel
/// threads of the pool: each stands there once, for the thread that has it now.
fn tell_number(runtime: &Run<Windows>, thread: &Logical) {
    let numbers = &runtime.region.report().numbers;
    for (place, number) in numbers.iter().enumerate() {
        let known = number.load(Ordering::Relaxed);
        if place == thread.id.0 as usize {
            number.store(thread.number, Ordering::Relaxed);
        } else if known == thread.number || thread.id == ThreadId(0) {
            number.store(0, Ordering::Relaxed);
        }
    }
}

/// The first function of every created thread.
unsafe extern "system" fn enter(thread: *mut c_void) -> u32 {
    let thread = thread.cast::<Logical>();
    // SAFETY: the creator keeps the thread alive, and waits until it is in place.
    unsafe {
        (*thread).number = GetCurrentThreadId();
        (*thread).stack = stack();
        (*thread).started.raise();
        (*thread).baton().wait();
        resumed(Token::held_by(thread));
        let Some(routine) = (*thread).routine else { return 0 };
        watch_end();
        set_me(thread);
        (*thread).result = routine((*thread).argument);
        set_me(core::ptr::null_mut());
        let result = (*thread).result;
        finish(Token::held_by(thread));
        result
    }
}

/// Takes the running thread out of the run and passes the token on. The kernel thread goes its way.
///
/// # Safety
/// The thread is under no control any more, and has the token no longer.
pub(super) unsafe fn finish(me: &mut Token) {
    let thread = me.thread();
    // SAFETY: who has the token lives.
    let (number, handle) = unsafe {
        edge::ended(me, thread);
        ((*thread).number, core::mem::replace(&mut (*thread).handle, core::ptr::null_mut()))
    };
    let run = me.run();
    run.sched.freed(key_of(thread), Shares::ALL);
    run.system.leaving = handle;
    run.system.by_number.remove(&(number as usize));
    if run.repeats {
        in_process::one_less(me);
    }
    // Before the choice: whoever waited for several threads, and for this one as the last, can be chosen.
    let run = me.run();
    run.system.handles.look_at_several(&mut run.sched, Some(thread));
    let choice = run.sched.finish();
    // SAFETY: by the caller's promise.
    unsafe { dispatch(me, choice) };
}

/// The running thread is about to end by itself, with this result. Does not return on a thread of the pool.
///
/// # Safety
/// It is under no control afterwards.
pub(crate) unsafe fn exit_point(me: &mut Token, result: u32) {
    // SAFETY: by the caller's promise.
    unsafe {
        pool::leave(me, result);
        (*me.thread()).result = result;
        finish(me)
    }
}

/// What joiners wait for.
pub(crate) fn key_of(thread: *mut Logical) -> Key {
    Key(thread as usize)
}

/// What a thread announces that waits for another's end.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn join_event(thread: *mut Logical) -> Event {
    // SAFETY: by the caller's promise; a thread that takes no part yet has no number.
    unsafe {
        match (*thread).id {
            ThreadId(u32::MAX) => point::event_at(EventKind::ThreadJoin, key_of(thread)),
            id => Event::on_thread(EventKind::ThreadJoin, id),
        }
    }
}

/// `me` has seen that a thread has ended, perhaps not for the first time.
///
/// # Safety
/// The thread takes part in the run.
pub(crate) unsafe fn note_joined(me: &mut Token, thread: *mut Logical) {
    // SAFETY: by the caller's promise.
    unsafe {
        let again = core::mem::replace(&mut (*thread).joined, true);
        edge::joined(me, thread, again);
    }
}

/// Waits until `thread` has ended or `deadline` passed.
///
/// # Safety
/// `thread` is in the tables.
pub(crate) unsafe fn join_point(
    me: &mut Token,
    thread: *mut Logical,
    deadline: Option<Moment>,
) -> point::Waited {
    // SAFETY: by the caller's promise.
    unsafe {
        let event = join_event(thread);
        let ended = |me: &mut Token| me.run().has_finished(thread);
        match point::acquire(me, event, key_of(thread), Shares::ALL, deadline, ended, |me| {
            ended(me).then_some(())
        }) {
            Ok(()) => {
                note_joined(me, thread);
                point::Waited::Done
            }
            Err(outcome) => outcome,
        }
    }
}
