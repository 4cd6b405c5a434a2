//! `pthread_once`. Who initialises is noted, so that the real function never has to wait.

use core::ffi::{c_int, c_long, c_void};

use waylay_scheduler::Key;

use crate::interpose::interpose_foreign;
use crate::interpose::once::{give_place_back, take_place, wait_for_place};
use crate::me::as_program;
use crate::runtime::Token;
use crate::watch::edge;

/// What the library leaves in the word.
const DONE: c_long = 1;

unsafe fn is_done(control: *const c_long) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { control.read_volatile() == DONE }
}

/// While it lives, `me` initialises; it may end by an exception.
struct Turn<'a>(&'a mut Token, Key);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        give_place_back(self.0, self.1);
    }
}

interpose_foreign! {
    fn pthread_once(control: *mut c_long, initialise: *mut c_void) -> c_int
        = real::pthread_once(control, initialise), |me| {
        let key = Key(control as usize);
        // Once done it stays done: nothing that others do can change what this call does.
        if is_done(control) {
            edge::takes_over(me, key);
            return 0;
        }
        wait_for_place(me, key);
        if is_done(control) {
            edge::takes_over(me, key);
            return 0;
        }
        take_place(me, key);
        let turn = Turn(me, key);
        as_program(turn.0, || real::pthread_once(control, initialise))
    }
}
