//! Barriers: `pthread_barrier_wait`.
//!
//! Arrivals are counted in the scheduler's lines; the real barrier is never entered, so `pthread_barrier_destroy`
//! finds it unused and does not wait.

use libc::pthread_barrier_t;
use waylay_schedule::EventKind;

use super::interpose;
use super::waiting_call::in_kernel;
use crate::instrument::edge;
use crate::runtime::outside;
use crate::runtime::{Waited, event_at, step, wait, waiting_on, wake};
use crate::sched::{Key, Shares};

/// Offset of the number of participants in glibc's `pthread_barrier_t` (2.25 and later).
const COUNT: usize = 8;
/// Offset of what says that it was made for several processes.
const SHARED: usize = 12;

interpose! {
    fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> i32, |me| {
        let key = Key(barrier as usize);
        let event = event_at(EventKind::BarrierWait, key);
        step(me, event);
        edge::hands_over(me, key);
        let count = barrier.byte_add(COUNT).cast::<u32>().read_volatile();
        // No cancellation point, and no handler lets anybody through: whoever is woken for one of these counts anew.
        loop {
            if barrier.byte_add(SHARED).cast::<u32>().read_volatile() != 0 && outside::has_started_processes() {
                // Whom it waits for is not under control: libc's own barrier knows.
                let result = in_kernel(me, || real::pthread_barrier_wait(barrier));
                edge::takes_over(me, key);
                return result;
            }
            if waiting_on(me, key) + 1 >= count {
                edge::takes_over(me, key);
                wake(me, key, u32::MAX, Shares::ALL);
                step(me, event);
                return libc::PTHREAD_BARRIER_SERIAL_THREAD;
            }
            if wait(me, event, key, Shares::ALL, None, None) != Waited::Interrupted {
                edge::takes_over(me, key);
                return 0;
            }
        }
    }
}
