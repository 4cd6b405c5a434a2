//! `dl_iterate_phdr`: the loader holds a lock of its own while it calls the program back, once for every module.
//!
//! A thread that was preempted there would leave others blocked in the kernel, where the scheduler does not see who waits
//! for whom. Rust looks for the names of a panic's frames that way.

use core::ffi::{c_int, c_void};

use super::interpose;
use crate::me::as_program;
use crate::runtime::{Logical, Token};

type Callback = unsafe extern "C-unwind" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

/// While it lives the thread is not preempted; the callback may leave by an exception.
struct Held(*mut Logical);

impl Held {
    fn new(me: &mut Token) -> Held {
        // SAFETY: who has the token lives.
        unsafe { (*me.thread()).unpreemptible += 1 };
        Held(me.thread())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: as when it was made; a thread lives as long as what it calls.
        unsafe { (*self.0).unpreemptible -= 1 };
    }
}

interpose! {
    fn dl_iterate_phdr(callback: Callback, data: *mut c_void) -> c_int, |me| {
        let _held = Held::new(me);
        as_program(me, || real::dl_iterate_phdr(callback, data))
    }
}
