//! The host's services as they are after the handshake: all there, so that no call asks again.

use std::ffi::{c_char, c_void};
use waylay_abi as abi;

type Raw = *mut abi::Context;

/// The host's functions. Copied out of [`abi::Services`] once, when an instance is made.
///
/// The functions are unsafe: the context must be one that the host handed out, at a time and on a thread as
/// [`abi::Context`] says.
#[derive(Clone, Copy)]
pub(crate) struct Calls {
    pub(crate) fail: unsafe extern "C" fn(Raw, *const abi::Failure),
    pub(crate) log: unsafe extern "C" fn(Raw, u32, *const c_char, usize),
    pub(crate) cancelled: unsafe extern "C" fn(Raw) -> i32,
    pub(crate) seed: unsafe extern "C" fn(Raw) -> u64,
    pub(crate) distribution: unsafe extern "C" fn(Raw, *const c_char) -> *const abi::Distribution,
    pub(crate) draw_int: unsafe extern "C" fn(Raw, *const abi::Distribution) -> i64,
    pub(crate) draw_float: unsafe extern "C" fn(Raw, *const abi::Distribution) -> f64,
    pub(crate) draw_nanos: unsafe extern "C" fn(Raw, *const abi::Distribution) -> u64,
    pub(crate) acquire: unsafe extern "C" fn(Raw, *const c_char) -> *mut c_void,
    pub(crate) release: unsafe extern "C" fn(Raw, *mut c_void),
    pub(crate) progress: unsafe extern "C" fn(Raw),
    pub(crate) keep: unsafe extern "C" fn(Raw, *mut c_void) -> i32,
    /// Null unless the test combines others.
    pub(crate) combine: *const abi::Combine,
}

// SAFETY: the table that `combine` points to is never changed and lives as long as the services.
unsafe impl Send for Calls {}
// SAFETY: as above.
unsafe impl Sync for Calls {}

impl Calls {
    /// The services, or `None` when one of them is missing.
    ///
    /// # Safety
    ///
    /// `services` is null or points to as many bytes as its own `size` says.
    pub(crate) unsafe fn read(services: *const abi::Services) -> Option<Self> {
        // SAFETY: the caller guarantees that `size`, the first field, is there if the pointer is not null.
        let size = unsafe { services.cast::<u32>().as_ref() }?;
        if (*size as usize) < size_of::<abi::Services>() {
            return None;
        }
        // SAFETY: the caller guarantees `size` bytes, and they cover the whole struct.
        let services = unsafe { &*services };
        Some(Self {
            fail: services.fail?,
            log: services.log?,
            cancelled: services.cancelled?,
            seed: services.seed?,
            distribution: services.distribution?,
            draw_int: services.draw_int?,
            draw_float: services.draw_float?,
            draw_nanos: services.draw_nanos?,
            acquire: services.acquire?,
            release: services.release?,
            progress: services.progress?,
            keep: services.keep?,
            combine: services.combine,
        })
    }
}
