//! Barriers. Arrivals are counted in the scheduler's lines; the real barrier is never entered by logical threads, so that it
//! is found unused when it is destroyed.

use core::ffi::{c_int, c_uint, c_void};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use waylay_schedule::EventKind;
use waylay_scheduler::{Key, Shares};

use super::EINVAL;
use crate::interpose::interpose_foreign;
use crate::runtime::{event_at, step, wait, wake};
use crate::watch::edge;

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
        let event = event_at(EventKind::BarrierWait, key);
        step(me, event);
        edge::hands_over(me, key);
        if me.run().sched.waiting_on(key) + 1 >= count {
            edge::takes_over(me, key);
            wake(me, key, u32::MAX);
            step(me, event);
            return LAST;
        }
        wait(me, event, key, Shares::ALL, None, None);
        edge::takes_over(me, key);
        0
    }
}
