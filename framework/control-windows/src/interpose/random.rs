//! Random bytes: from the seed of the run, so that equal runs see equal bytes.

use core::ffi::c_void;

use waylay_control_protocol::RandomSource;
use waylay_schedule::Source;
use windows_sys::Win32::Foundation::NTSTATUS;
use windows_sys::core::BOOL;

use super::interpose_foreign;
use crate::me::keep_error;
use crate::runtime::Token;

/// Fills a buffer from the seed; or lets Windows do it, if that is wanted.
unsafe fn fill<R>(me: &mut Token, to: *mut u8, length: usize, good: R, real: impl FnOnce() -> R) -> R {
    // SAFETY: called with the token, by the program, which promises that the buffer is writable.
    unsafe {
        if me.run().settings.random == RandomSource::Real as u32 {
            let result = real();
            keep_error(me);
            return result;
        }
        let mut at = 0;
        while at < length {
            let bytes = me.run().random.key().to_le_bytes();
            let taken = bytes.len().min(length - at);
            to.add(at).copy_from_nonoverlapping(bytes.as_ptr(), taken);
            at += taken;
        }
        good
    }
}

interpose_foreign! {
    fn ProcessPrng(to: *mut u8, length: usize) -> BOOL = real::ProcessPrng(to, length), |me| {
        fill(me, to, length, 1, || real::ProcessPrng(to, length))
    }
    fn BCryptGenRandom(algorithm: *mut c_void, to: *mut u8, length: u32, flags: u32) -> NTSTATUS
        = real::BCryptGenRandom(algorithm, to, length, flags), |me| {
        fill(me, to, length as usize, 0, || real::BCryptGenRandom(algorithm, to, length, flags))
    }
    fn SystemFunction036(to: *mut u8, length: u32) -> u8 = real::SystemFunction036(to, length), |me| {
        fill(me, to, length as usize, 1, || real::SystemFunction036(to, length))
    }
    fn CryptGenRandom(provider: usize, length: u32, to: *mut u8) -> BOOL
        = real::CryptGenRandom(provider, length, to), |me| {
        fill(me, to, length as usize, 1, || real::CryptGenRandom(provider, length, to))
    }
    fn rand_s(to: *mut u32) -> i32 = real::rand_s(to), |me| {
        if to.is_null() {
            return real::rand_s(to);
        }
        fill(me, to.cast(), size_of::<u32>(), 0, || real::rand_s(to))
    }
}
