//! Random bytes: from the seed of the run, so that equal runs see equal bytes.

use core::ffi::c_void;

use libc::{c_int, c_uint, size_t, ssize_t};
use waylay_control_protocol::RandomSource;
use waylay_schedule::Source;

use super::interpose;
use crate::runtime::Token;
use crate::sys;

/// Fills a buffer; returns its length, or the kernel's error as a negative number.
///
/// # Safety
/// The buffer is writable.
pub(super) unsafe fn fill(me: &mut Token, to: *mut u8, len: usize) -> isize {
    // SAFETY: by the caller's promise.
    unsafe {
        if me.run().settings.random == RandomSource::Real as u32 {
            return sys::call(libc::SYS_getrandom, [to as usize, len, 0, 0, 0, 0]);
        }
        let mut at = 0;
        while at < len {
            let bytes = me.run().random.key().to_le_bytes();
            let taken = bytes.len().min(len - at);
            to.add(at).copy_from_nonoverlapping(bytes.as_ptr(), taken);
            at += taken;
        }
        len as isize
    }
}

interpose! {
    fn getrandom(to: *mut c_void, len: size_t, flags: c_uint) -> ssize_t, |me| {
        const KNOWN: c_uint = libc::GRND_NONBLOCK | libc::GRND_RANDOM | libc::GRND_INSECURE;
        if flags & !KNOWN != 0 {
            return super::fail(libc::EINVAL) as ssize_t;
        }
        fill(me, to.cast(), len)
    }

    fn getentropy(to: *mut c_void, len: size_t) -> c_int, |me| {
        if len > 256 {
            return super::fail(libc::EIO);
        }
        fill(me, to.cast(), len);
        0
    }

    fn arc4random() -> u32, |me| {
        let mut value = 0u32;
        fill(me, (&raw mut value).cast(), 4);
        value
    }

    fn arc4random_buf(to: *mut c_void, len: size_t) -> (), |me| {
        fill(me, to.cast(), len);
    }

    fn arc4random_uniform(bound: u32) -> u32, |me| { me.run().random.below(u64::from(bound)) as u32 }
}
