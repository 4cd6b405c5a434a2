//! Creating, joining and leaving threads.
//!
//! What the library does of its own accord around a thread's routine is no step: it makes events and waits for them, in
//! other ways in other versions. Leaving by `pthread_exit` is a jump into the library, over everything that stands between,
//! and is left alone.

use core::ffi::{c_int, c_void};

use waylay_schedule::{Event, EventKind};

use crate::interpose::{Foreign, interpose_foreign};
use crate::me::{as_program, me};
use crate::runtime::{Logical, Waited, join_point, runtime, step};

type Routine = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

struct Start {
    routine: Routine,
    argument: *mut c_void,
}

/// The routine of every thread: lets its steps count for as long as the program's own routine runs.
unsafe extern "C-unwind" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: made by `pthread_create` for this thread alone, which is a logical one while it lives.
    unsafe {
        let Start { routine, argument } = *Box::from_raw(start.cast::<Start>());
        let me = me();
        if me.is_null() {
            return routine(argument);
        }
        (*me).unpreemptible -= 1;
        let result = routine(argument);
        (*me).unpreemptible += 1;
        result
    }
}

/// The logical thread behind a thread of the library's.
unsafe fn logical(thread: usize) -> Option<*mut Logical> {
    static HANDLE: Foreign = Foreign::new("pthread_gethandle\0");
    // SAFETY: the function of this name has this type; it is null for what is no thread.
    unsafe {
        let ask: unsafe extern "C" fn(usize) -> *mut c_void = core::mem::transmute(HANDLE.address());
        let handle = ask(thread);
        if handle.is_null() { None } else { (*runtime()).system.handles.thread(handle) }
    }
}

interpose_foreign! {
    fn pthread_create(
        thread: *mut usize,
        attributes: *const c_void,
        routine: Routine,
        argument: *mut c_void,
    ) -> c_int = real::pthread_create(thread, attributes, routine, argument), |me| {
        let known = me.run().logicals.len();
        let start = Box::into_raw(Box::new(Start { routine, argument }));
        (*me.thread()).unpreemptible += 1;
        let result = as_program(me, || real::pthread_create(thread, attributes, begin, start.cast()));
        (*me.thread()).unpreemptible -= 1;
        if result != 0 {
            drop(Box::from_raw(start));
            return result;
        }
        if let Some(&new) = (&me.run().logicals).get(known) {
            (*new).unpreemptible = 1;
            step(me, Event::on_thread(EventKind::ThreadSpawn, (*new).id));
        }
        result
    }

    fn pthread_join(thread: usize, result: *mut *mut c_void) -> c_int = real::pthread_join(thread, result), |me| {
        match logical(thread) {
            Some(other) if other != me.thread() => {
                while join_point(me, other, None) == Waited::Interrupted {}
                // All that is left to wait for is the library's own clean-up.
                real::pthread_join(thread, result)
            }
            _ => as_program(me, || real::pthread_join(thread, result)),
        }
    }
}
