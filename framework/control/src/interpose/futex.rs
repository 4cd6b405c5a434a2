//! Futexes, served by the scheduler.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::{EAGAIN, EINVAL, ETIMEDOUT, c_long, timespec};
use waylay_schedule::EventKind;

use super::clock::{is_length, moment_after, moment_of};
use super::fail;
use super::kernel_call::kernel;
use crate::instrument::edge;
use crate::runtime::outside::{self, Act};
use crate::runtime::signals::Handled;
use crate::runtime::{Token, Waited, away, event_at, step, unknown_event, wait, wake, wake_or_move};
use crate::sched::{Key, Shares};
use crate::sys;

/// A thread outside the schedule waits for a word, or wakes waiters of one; logical threads may be on the other side.
pub(super) fn note_outsider(address: usize, op: i32, count: u32) {
    match op & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => outside::waits(),
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => outside::did(Key(address), Act::Woken(count)),
        _ => {}
    }
}

/// Whether a process that is not under control may be on the other side.
fn is_outside(op: i32) -> bool {
    op & libc::FUTEX_PRIVATE_FLAG == 0 && outside::may_share()
}

/// # Safety
/// The words exist, and so does the timeout of those operations that have one.
pub(super) unsafe fn futex(
    me: &mut Token,
    address: usize,
    op: i32,
    value: u32,
    timeout: usize,
    second: usize,
    third: u32,
) -> c_long {
    let key = Key(address);
    let clock =
        if op & libc::FUTEX_CLOCK_REALTIME != 0 { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
    // SAFETY: by the caller's promise.
    unsafe {
        let word = &*(address as *const AtomicU32);
        let time = timeout as *const timespec;
        match op & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
            libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET if time.is_null() && is_outside(op) => {
                let args = [address, op as usize, value as usize, 0, 0, third as usize];
                let result = away(me, unknown_event(), || sys::call(libc::SYS_futex, args));
                if result < 0 { c_long::from(fail(-result as i32)) } else { result as c_long }
            }
            command @ (libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET) => {
                let event = event_at(EventKind::FutexWait, key);
                let shares = Shares(if command == libc::FUTEX_WAIT { u32::MAX } else { third });
                if shares.0 == 0 {
                    return c_long::from(fail(EINVAL));
                }
                step(me, event);
                if word.load(Ordering::SeqCst) != value {
                    return c_long::from(fail(EAGAIN));
                }
                if !time.is_null() && !is_length(&*time) {
                    return c_long::from(fail(EINVAL));
                }
                let deadline = match (time.is_null(), command) {
                    (true, _) => None,
                    (false, libc::FUTEX_WAIT) => Some(moment_after(me, &*time)),
                    (false, _) => Some(moment_of(me, clock, &*time)),
                };
                loop {
                    match wait(me, event, key, shares, deadline, None) {
                        Waited::Done => {
                            edge::takes(me, key);
                            return 0;
                        }
                        Waited::TimedOut => return c_long::from(fail(ETIMEDOUT)),
                        // The kernel begins a wait again that has no deadline, with a look at the word.
                        Waited::Interrupted => match core::mem::take(&mut (*me.thread()).handled) {
                            Handled::Restarts if deadline.is_none() => {}
                            // Others may have woken it since: whoever waits for a word looks at it again.
                            Handled::Nothing if time.is_null() && is_outside(op) && !(*me.thread()).cancelled => return 0,
                            Handled::Nothing if !(*me.thread()).cancelled => {}
                            _ => return c_long::from(fail(libc::EINTR)),
                        },
                    }
                    if word.load(Ordering::SeqCst) != value {
                        return c_long::from(fail(EAGAIN));
                    }
                }
            }
            command @ (libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET) => {
                let shares = Shares(if command == libc::FUTEX_WAKE { u32::MAX } else { third });
                edge::gives(me, key);
                let woken = wake(me, key, value, shares);
                if outside::may_wait() || is_outside(op) {
                    kernel(
                        libc::SYS_futex,
                        [address, op as usize, value as usize, timeout, second, third as usize],
                    );
                }
                step(me, event_at(EventKind::FutexWake, key));
                c_long::from(woken)
            }
            command @ (libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE) => {
                if command == libc::FUTEX_CMP_REQUEUE && word.load(Ordering::SeqCst) != third {
                    return c_long::from(fail(EAGAIN));
                }
                edge::gives(me, key);
                let touched = wake_or_move(me, key, value, Key(second), timeout as u32);
                step(me, event_at(EventKind::FutexWake, key));
                c_long::from(touched)
            }
            libc::FUTEX_WAKE_OP => {
                edge::gives(me, key);
                edge::gives(me, Key(second));
                let holds = wake_op(&*(second as *const AtomicU32), third);
                let mut woken = wake(me, key, value, Shares::ALL);
                if holds {
                    woken += wake(me, Key(second), timeout as u32, Shares::ALL);
                }
                step(me, event_at(EventKind::FutexWake, key));
                c_long::from(woken)
            }
            _ => {
                // Priority inheritance and whatever comes: the kernel's own, outside our control.
                let args = [address, op as usize, value as usize, timeout, second, third as usize];
                let result = away(me, unknown_event(), || sys::call(libc::SYS_futex, args));
                if result < 0 { c_long::from(fail(-result as i32)) } else { result as c_long }
            }
        }
    }
}

/// The arithmetic of FUTEX_WAKE_OP: changes the second word as `code` says and compares its old value.
fn wake_op(word: &AtomicU32, code: u32) -> bool {
    let sign_extended = |twelve_bits: u32| ((twelve_bits << 20) as i32) >> 20;
    let mut operand = sign_extended(code >> 12 & 0xfff) as u32;
    if code >> 28 & 8 != 0 {
        operand = 1u32.wrapping_shl(operand);
    }
    let old = match code >> 28 & 7 {
        0 => word.swap(operand, Ordering::SeqCst),
        1 => word.fetch_add(operand, Ordering::SeqCst),
        2 => word.fetch_or(operand, Ordering::SeqCst),
        3 => word.fetch_and(!operand, Ordering::SeqCst),
        _ => word.fetch_xor(operand, Ordering::SeqCst),
    } as i32;
    let compared = sign_extended(code & 0xfff);
    match code >> 24 & 0xf {
        0 => old == compared,
        1 => old != compared,
        2 => old < compared,
        3 => old <= compared,
        4 => old > compared,
        _ => old >= compared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `FUTEX_OP(op, operand, comparison, compared)` as the manual page defines it.
    fn code(op: u32, operand: u32, comparison: u32, compared: u32) -> u32 {
        op << 28 | comparison << 24 | (operand & 0xfff) << 12 | compared & 0xfff
    }

    #[test]
    fn wake_op_computes_what_the_kernel_would() {
        let word = AtomicU32::new(5);
        assert!(wake_op(&word, code(0, 9, 0, 5)));
        assert_eq!(word.load(Ordering::Relaxed), 9);
        assert!(!wake_op(&word, code(1, 0xfff, 4, 9)));
        assert_eq!(word.load(Ordering::Relaxed), 8);
        assert!(wake_op(&word, code(2 | 8, 4, 3, 8)));
        assert_eq!(word.load(Ordering::Relaxed), 24);
        assert!(wake_op(&word, code(3, 8, 1, 0)));
        assert_eq!(word.load(Ordering::Relaxed), 16);
    }
}
