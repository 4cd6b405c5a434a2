//! Who the kernel thinks we are: on the carrier, the answers must be those of the home thread.

use libc::{c_int, pid_t, stack_t};

use super::{fail, interpose};
use crate::runtime::Place;

interpose! {
    fn gettid() -> pid_t, |me| { (*me.thread()).kernel_id }

    // The alternate signal stack belongs to the kernel thread, which several fibers share: the carrier has its own. The thread's is
    // put to use when it goes home, which it does to handle a signal.
    fn sigaltstack(new: *const stack_t, old: *mut stack_t) -> c_int, |me| {
        const NO_STACK: stack_t = stack_t { ss_sp: core::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        if (*me.thread()).place == Place::Home {
            return real::sigaltstack(new, old);
        }
        let before = (*me.thread()).alternate_stack.unwrap_or(NO_STACK);
        if let Some(&given) = new.as_ref() {
            (*me.thread()).alternate_stack = match given.ss_flags {
                libc::SS_DISABLE => None,
                0 | libc::SS_ONSTACK if given.ss_size < libc::MINSIGSTKSZ => return fail(libc::ENOMEM),
                0 | libc::SS_ONSTACK => Some(stack_t { ss_flags: 0, ..given }),
                _ => return fail(libc::EINVAL),
            };
        }
        if !old.is_null() {
            *old = before;
        }
        0
    }
}
