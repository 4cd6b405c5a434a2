//! Waits on addresses: what Rust's standard library, C++20 and many locks are made of.

use core::ffi::c_void;

use waylay_schedule::EventKind;
use waylay_scheduler::{Key, Shares};
use windows_sys::Win32::Foundation::ERROR_TIMEOUT;
use windows_sys::Win32::System::Threading as real;
use windows_sys::core::BOOL;

use super::{deadline, interpose};
use crate::me::fail;
use crate::runtime::outside::{self, Act};
use crate::runtime::{Waited, event_at, step, wait, wake};
use crate::watch::edge;

/// Whether the two places hold the same.
unsafe fn are_equal(address: *const c_void, compared: *const c_void, size: usize) -> bool {
    // SAFETY: by the caller's promise that so many bytes can be read; one thread runs at a time, and a wake-up from
    // another is posted.
    unsafe {
        let bytes = |at: *const c_void| core::slice::from_raw_parts(at.cast::<u8>(), size);
        bytes(address) == bytes(compared)
    }
}

unsafe fn wait_outside(
    address: *const c_void,
    compared: *const c_void,
    size: usize,
    milliseconds: u32,
) -> BOOL {
    outside::waits();
    // SAFETY: by the caller's promise.
    unsafe { real::WaitOnAddress(address, compared, size, milliseconds) }
}

unsafe fn wake_outside(address: *const c_void, count: u32) {
    outside::did(Key(address as usize), Act::Woken(count));
    // SAFETY: by the caller's promise.
    unsafe {
        match count {
            1 => real::WakeByAddressSingle(address),
            _ => real::WakeByAddressAll(address),
        }
    }
}

interpose! {
    fn WaitOnAddress(
        address: *const c_void,
        compared: *const c_void,
        size: usize,
        milliseconds: u32,
    ) -> BOOL = wait_outside(address, compared, size, milliseconds), |me| {
        let key = Key(address as usize);
        let event = event_at(EventKind::FutexWait, key);
        step(me, event);
        if !are_equal(address, compared, size) {
            return 1;
        }
        let until = deadline(me, milliseconds);
        if milliseconds == 0 || wait(me, event, key, Shares::ALL, until, None) == Waited::TimedOut {
            fail(me, ERROR_TIMEOUT);
            return 0;
        }
        edge::takes(me, key);
        1
    }

    fn WakeByAddressSingle(address: *const c_void) -> () = wake_outside(address, 1), |me| {
        let key = Key(address as usize);
        edge::gives(me, key);
        wake(me, key, 1);
        if outside::may_wait() {
            real::WakeByAddressSingle(address);
        }
        step(me, event_at(EventKind::FutexWake, key))
    }

    fn WakeByAddressAll(address: *const c_void) -> () = wake_outside(address, u32::MAX), |me| {
        let key = Key(address as usize);
        edge::gives(me, key);
        wake(me, key, u32::MAX);
        if outside::may_wait() {
            real::WakeByAddressAll(address);
        }
        step(me, event_at(EventKind::FutexWake, key))
    }
}
