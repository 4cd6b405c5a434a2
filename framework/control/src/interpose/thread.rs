//! Creating, detaching and leaving threads.

use core::ffi::c_void;

use libc::{pthread_attr_t, pthread_t};

use super::{interpose, real_thread};
use crate::heap::tag;
use crate::instrument::{delay, edge};
use crate::me::{Unmanaged, as_program, me};
use crate::runtime::{Routine, Token, create, exit_point, lookup, note_uncontrolled_thread};

/// Creates a thread that begins with the heap tag of its creator, and takes part in a run if its creator does.
///
/// # Safety
/// As for libc's function of this name.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn pthread_create(
    handle: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> i32 {
    let running = me();
    let start = tag::carry(routine, argument);
    // SAFETY: by the caller's promise to libc; a logical thread that runs program code has the token.
    unsafe {
        let error = if running.is_null() {
            note_uncontrolled_thread();
            real_thread::pthread_create(handle, attributes, start.0, start.1)
        } else {
            let _inside = Unmanaged::enter();
            let me = Token::held_by(running);
            delay::before_call(me);
            create(me, handle, attributes, start.0, start.1)
        };
        if error != 0 {
            tag::discard(start);
        }
        error
    }
}

interpose! {
    fn pthread_detach(handle: pthread_t) -> i32, |me| {
        if let Some(thread) = lookup(me, handle as usize) {
            (*thread).detached = true;
            if me.run().has_finished(thread) {
                me.run().system.handles.remove(&(handle as usize));
                edge::ended(me, thread);
            }
            if (*thread).recyclable {
                return 0;
            }
        }
        real::pthread_detach(handle)
    }

    fn pthread_exit(result: *mut c_void) -> (), |me| {
        exit_point(me, result);
        as_program(me, || real::pthread_exit(result))
    }
}
