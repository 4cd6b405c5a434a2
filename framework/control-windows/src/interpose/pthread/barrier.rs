//! Barriers. The library does not say how many meet at one, so that is noted here.

use core::ffi::{c_int, c_uint, c_void};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use waylay_runtime::posix::barrier::meet;
use waylay_scheduler::Key;

use super::EINVAL;
use crate::interpose::interpose_foreign;

type Barrier = *mut c_void;

/// What one of those who met at a barrier gets.
const LAST: c_int = 1;

/// How many meet at each barrier, by its address.
static SIZES: Mutex<BTreeMap<usize, c_uint>> = Mutex::new(BTreeMap::new());

fn with_sizes<R>(what: impl FnOnce(&mut BTreeMap<usize, c_uint>) -> R) -> R {
    what(&mut SIZES.lock().unwrap_or_else(PoisonError::into_inner))
}

unsafe fn make(barrier: *mut Barrier, attributes: *const c_void, count: c_uint) -> c_int {
    with_sizes(|sizes| sizes.insert(barrier as usize, count));
    // SAFETY: by the caller's promise.
    unsafe { real::pthread_barrier_init(barrier, attributes, count) }
}

unsafe fn destroy(barrier: *mut Barrier) -> c_int {
    with_sizes(|sizes| sizes.remove(&(barrier as usize)));
    // SAFETY: by the caller's promise.
    unsafe { real::pthread_barrier_destroy(barrier) }
}

interpose_foreign! {
    fn pthread_barrier_init(barrier: *mut Barrier, attributes: *const c_void, count: c_uint) -> c_int
        = make(barrier, attributes, count), |_| { make(barrier, attributes, count) }

    fn pthread_barrier_destroy(barrier: *mut Barrier) -> c_int = destroy(barrier), |_| { destroy(barrier) }

    fn pthread_barrier_wait(barrier: *mut Barrier) -> c_int = real::pthread_barrier_wait(barrier), |me| {
        let key = Key(barrier as usize);
        let Some(count) = with_sizes(|sizes| sizes.get(&key.0).copied()) else { return EINVAL };
        meet(me, key, count, LAST, |_| None)
    }
}
