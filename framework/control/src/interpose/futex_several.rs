//! `futex_waitv`: a wait for several words at once, served by the scheduler.
//!
//! Programs reach it through `syscall` only. What the kernel made of futexes later (`futex_wake` and its like, Linux 6.7) does not exist
//! here: a wait in one would not be seen, and programs know what to do on an older kernel.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::{EAGAIN, EINTR, EINVAL, ETIMEDOUT, c_int, c_long, timespec};
use waylay_schedule::EventKind;

use super::clock::{is_length, moment_of};
use super::fail;
use crate::instrument::edge;
use crate::runtime::outside;
use crate::runtime::signals::Handled;
use crate::runtime::{Token, Waited, away, event_at, step, unknown_event, wait_for_one_of};
use crate::sched::Key;
use crate::sys;

/// Calls of Linux 6.7: `futex_wake`, `futex_wait` and `futex_requeue`.
pub(super) const LATER: core::ops::RangeInclusive<c_long> = 454..=456;

/// One word, as the kernel takes it.
#[repr(C)]
struct Word {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
}

/// Words at most.
const MOST: usize = 128;
/// The only size of a word that there is, and the bit that says that no other process has it.
const FOUR_BYTES: u32 = 2;
const PRIVATE: u32 = libc::FUTEX_PRIVATE_FLAG as u32;

impl Word {
    fn is_valid(&self) -> bool {
        self.flags & !PRIVATE == FOUR_BYTES && self.reserved == 0 && self.address.is_multiple_of(4)
    }

    /// # Safety
    /// The word exists.
    unsafe fn has_changed(&self) -> bool {
        // SAFETY: by the caller's promise; words are aligned.
        unsafe { (*(self.address as *const AtomicU32)).load(Ordering::SeqCst) != self.value as u32 }
    }
}

fn failed(error: c_int) -> c_long {
    c_long::from(fail(error))
}

/// # Safety
/// As for the system call, with these arguments.
pub(super) unsafe fn wait_for_several(me: &mut Token, args: [usize; 6]) -> c_long {
    let [list, count, flags, until, clock, _] = args;
    // SAFETY: by the caller's promise.
    unsafe {
        if flags != 0 || count == 0 || count > MOST || list == 0 {
            return failed(EINVAL);
        }
        let until = (until as *const timespec).as_ref();
        let clock = clock as c_int;
        if until.is_some_and(|until| !is_length(until) || !matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC)) {
            return failed(EINVAL);
        }
        let words = core::slice::from_raw_parts(list as *const Word, count);
        if !words.iter().all(Word::is_valid) {
            return failed(EINVAL);
        }
        let event = event_at(EventKind::FutexWait, Key(words[0].address as usize));
        let shared = words.iter().any(|word| word.flags & PRIVATE == 0);
        let deadline = until.map(|until| moment_of(me, clock, until));
        step(me, event);
        loop {
            if shared && deadline.is_none() && outside::may_share() {
                let result = away(me, unknown_event(), || sys::call(libc::SYS_futex_waitv, args));
                return if result < 0 { failed(-result as i32) } else { result as c_long };
            }
            if words.iter().any(|word| word.has_changed()) {
                return failed(EAGAIN);
            }
            let keys = words.iter().map(|word| Key(word.address as usize)).collect();
            match wait_for_one_of(me, event, keys, deadline) {
                Ok(woken) => {
                    edge::takes(me, Key(words[woken].address as usize));
                    return woken as c_long;
                }
                Err(Waited::TimedOut) => return failed(ETIMEDOUT),
                // The end is a moment, not a length, so that the kernel can begin any such wait again.
                Err(_) => match core::mem::take(&mut (*me.thread()).handled) {
                    Handled::Restarts => {}
                    Handled::Nothing if !(*me.thread()).cancelled => {}
                    _ => return failed(EINTR),
                },
            }
        }
    }
}
