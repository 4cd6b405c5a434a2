//! What the processor's own counter shows to the program: the virtual clock, one tick to the nanosecond.
//!
//! The instruction has been executed where a stub is called, so that threads outside of our control keep what it said; at a
//! breakpoint it has not, and is left out. The kernel could make a trap of every RDTSC instead, also of those that nobody
//! finds, but as the signal by which crashes are recognised, and for libc's own clock as well.

use super::stub;
use crate::interpose::{processors, virtual_ticks};
use crate::me::{Unmanaged, me};
use crate::runtime::Token;

/// Puts virtual time in place of what was read, with the processor's number if that is asked for, which is what `sched_getcpu`
/// says. False when the program is to see real time.
///
/// # Safety
/// `saved` is what a stub or the handler of breakpoints passed on at a site that reads the counter.
pub(super) unsafe fn show(saved: usize, with_processor: bool) -> bool {
    let me = me();
    if me.is_null() {
        return false;
    }
    let _inside = Unmanaged::enter();
    // SAFETY: a logical thread that runs program code holds the token; the registers are by the caller's promise there.
    unsafe {
        let Some(ticks) = virtual_ticks(Token::held_by(me)) else { return false };
        let [low, high, processor] = stub::results(saved);
        low.write(ticks & u64::from(u32::MAX));
        high.write(ticks >> 32);
        if with_processor {
            processor.write(processors::of_thread(Token::held_by(me)).into());
        }
    }
    true
}
