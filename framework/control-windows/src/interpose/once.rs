//! One-time initialisation. Who initialises is noted here, so that the real functions never have to wait.

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
use crate::runtime::{Logical, acquire, event_at, freed, runtime, step, taken};

unsafe fn is_done(once: *mut INIT_ONCE, context: *mut *mut c_void) -> bool {
    let mut pending = 0;
    // SAFETY: by the caller's promise; asks only.
    unsafe { real::InitOnceBeginInitialize(once, INIT_ONCE_CHECK_ONLY, &mut pending, context) != 0 }
}

/// Waits until nobody initialises; true when it is done, false when `me` has to do it.
unsafe fn wait_for_turn(me: *mut Logical, once: *mut INIT_ONCE, context: *mut *mut c_void) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        // Once done it stays done: nothing that others do can change what this call does.
        if is_done(once, context) {
            return true;
        }
        let key = Key(once as usize);
        let event = event_at(EventKind::Once, key);
        let free = || !(*runtime()).initialising.contains(&(once as usize));
        while acquire(me, event, key, Shares::ALL, None, free, || free().then_some(())).is_err() {}
        if is_done(once, context) {
            return true;
        }
        (*runtime()).initialising.push(once as usize);
        taken(key, Shares::ALL);
        false
    }
}

unsafe fn give_turn_back(me: *mut Logical, once: *mut INIT_ONCE) {
    let key = Key(once as usize);
    // SAFETY: by the caller's promise.
    unsafe {
        (*runtime()).initialising.retain(|&place| place != once as usize);
        freed(key, Shares::ALL);
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
        give_turn_back(me, once);
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
        if result != 0 || flags & INIT_ONCE_INIT_FAILED != 0 {
            give_turn_back(me, once);
        }
        result
    }
}
