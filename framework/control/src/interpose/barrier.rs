//! Barriers: `pthread_barrier_wait`. The real barrier is never entered, so `pthread_barrier_destroy` finds it unused and does
//! not wait.

use libc::pthread_barrier_t;
use waylay_runtime::posix::barrier::meet;

use super::interpose;
use super::waiting_call::in_kernel;
use crate::runtime::{Token, outside};
use crate::sched::Key;

/// Offset of the number of participants in glibc's `pthread_barrier_t` (2.25 and later).
const COUNT: usize = 8;
/// Offset of what says that it was made for several processes.
const SHARED: usize = 12;

interpose! {
    fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> i32, |me| {
        let word = |offset| barrier.byte_add(offset).cast::<u32>().read_volatile();
        // Whom it waits for may not be under control: libc's own barrier knows.
        let beyond = |me: &mut Token| {
            let is_beyond = word(SHARED) != 0 && outside::may_share();
            is_beyond.then(|| in_kernel(me, || real::pthread_barrier_wait(barrier)))
        };
        meet(me, Key(barrier as usize), word(COUNT), libc::PTHREAD_BARRIER_SERIAL_THREAD, beyond)
    }
}
