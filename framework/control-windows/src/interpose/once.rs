//! One-time initialisation. Who initialises is noted here, so that the real functions never have to wait.
//!
//! Of many runs in one process only the first initialises, and a fresh process that follows the schedule of a later one
//! does so, too. So there an initialisation that nobody waits for makes no steps, and what it calls makes none either.

use core::ffi::c_void;

use waylay_schedule::EventKind;
use waylay_scheduler::{Key, Shares};
use windows_sys::Win32::System::Threading as real;
use windows_sys::Win32::System::Threading::{
    INIT_ONCE, INIT_ONCE_ASYNC, INIT_ONCE_CHECK_ONLY, INIT_ONCE_INIT_FAILED, PINIT_ONCE_FN,
};
use windows_sys::core::BOOL;

use super::interpose;
use crate::me::{as_program, keep_error};
use crate::runtime::{Token, acquire, event_at, freed, step, taken};
use crate::watch::edge;

unsafe fn is_done(once: *mut INIT_ONCE, context: *mut *mut c_void) -> bool {
    let mut pending = 0;
    // SAFETY: by the caller's promise; asks only.
    unsafe { real::InitOnceBeginInitialize(once, INIT_ONCE_CHECK_ONLY, &mut pending, context) != 0 }
}

/// Waits until nobody initialises; true when it is done, false when `me` has to do it.
unsafe fn wait_for_turn(me: &mut Token, once: *mut INIT_ONCE, context: *mut *mut c_void) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        // Once done it stays done: nothing that others do can change what this call does.
        if is_done(once, context) {
            edge::takes_over(me, Key(once as usize));
            return true;
        }
        wait_for_place(me, Key(once as usize));
        if is_done(once, context) {
            edge::takes_over(me, Key(once as usize));
            return true;
        }
        take_place(me, Key(once as usize));
        false
    }
}

/// Waits until nobody initialises what the key names.
pub(super) fn wait_for_place(me: &mut Token, key: Key) {
    let free = |me: &mut Token| me.run().system.initialising.iter().all(|&(place, _)| place != key.0);
    if me.run().repeats && free(me) {
        return;
    }
    let event = event_at(EventKind::Once, key);
    while acquire(me, event, key, Shares::ALL, None, free, |me| free(me).then_some(())).is_err() {}
}

/// `me` initialises what the key names, which nobody else does.
pub(super) fn take_place(me: &mut Token, key: Key) {
    // SAFETY: who has the token lives.
    unsafe {
        let thread = me.thread();
        (*thread).unpreemptible += u32::from(me.run().repeats);
        me.run().system.initialising.push((key.0, thread));
        taken(me, key, Shares::ALL);
    }
}

/// The initialisation is over, well or not; whoever began it.
pub(super) fn give_place_back(me: &mut Token, key: Key) {
    let run = me.run();
    if let Some(index) = run.system.initialising.iter().position(|&(place, _)| place == key.0) {
        let (_, initialiser) = run.system.initialising.swap_remove(index);
        // SAFETY: logical threads live as long as their run.
        unsafe { (*initialiser).unpreemptible -= u32::from(run.repeats) };
        edge::hands_over(me, key);
        freed(me, key, Shares::ALL);
    }
    if !me.run().repeats {
        step(me, event_at(EventKind::Once, key));
    }
}

interpose! {
    fn InitOnceExecuteOnce(
        once: *mut INIT_ONCE,
        initialise: PINIT_ONCE_FN,
        parameter: *mut c_void,
        context: *mut *mut c_void,
    ) -> BOOL = real::InitOnceExecuteOnce(once, initialise, parameter, context), |me| {
        let Some(function) = initialise else { return real::InitOnceExecuteOnce(once, None, parameter, context) };
        if wait_for_turn(me, once, context) {
            return 1;
        }
        let mut made = core::ptr::null_mut();
        let worked = as_program(me, || function(once, parameter, &mut made));
        let mut pending = 0;
        if worked != 0 && real::InitOnceBeginInitialize(once, 0, &mut pending, core::ptr::null_mut()) != 0 {
            real::InitOnceComplete(once, 0, made);
            if !context.is_null() {
                *context = made;
            }
        }
        give_place_back(me, Key(once as usize));
        worked
    }

    fn InitOnceBeginInitialize(
        once: *mut INIT_ONCE,
        flags: u32,
        pending: *mut BOOL,
        context: *mut *mut c_void,
    ) -> BOOL = real::InitOnceBeginInitialize(once, flags, pending, context), |me| {
        if flags & (INIT_ONCE_CHECK_ONLY | INIT_ONCE_ASYNC) == 0 {
            wait_for_turn(me, once, context);
        } else {
            step(me, event_at(EventKind::Once, Key(once as usize)));
            edge::takes_over(me, Key(once as usize));
        }
        let result = real::InitOnceBeginInitialize(once, flags, pending, context);
        keep_error(me);
        result
    }

    fn InitOnceComplete(
        once: *mut INIT_ONCE,
        flags: u32,
        context: *mut c_void,
    ) -> BOOL = real::InitOnceComplete(once, flags, context), |me| {
        let result = real::InitOnceComplete(once, flags, context);
        keep_error(me);
        edge::hands_over(me, Key(once as usize));
        if result != 0 || flags & INIT_ONCE_INIT_FAILED != 0 {
            give_place_back(me, Key(once as usize));
        }
        result
    }
}
