//! Calls of the kernel: futexes are served by the scheduler, the rest goes to the kernel.
//!
//! Rust's standard library, parking_lot, crossbeam and C++20's waits all reach the futex through `syscall`; others have the
//! instruction in their own code, which is replaced (`instrument::patch::kernel`).

use core::sync::atomic::{AtomicU32, Ordering};

use libc::{EAGAIN, EINVAL, ETIMEDOUT, c_long, timespec};
use waylay_schedule::{Event, EventKind};

use super::clock::{moment_after, moment_of};
use super::{fail, identity, random};
use crate::instrument::edge;
use crate::me::{Unmanaged, me};
use crate::runtime::outside::{self, Act};
use crate::runtime::{Logical, Waited, away, event_at, step, unknown_event, wait, wake, wake_or_move};
use crate::sched::{Key, Shares};
use crate::sys;

/// Six arguments whatever the caller passed: the ABI puts them in the same registers, and the kernel ignores those
/// that a call does not have.
///
/// # Safety
/// As for libc's `syscall`.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let me = me();
    // SAFETY: by the caller's promise; a logical thread that runs program code has the token.
    unsafe {
        if !me.is_null() {
            let _inside = Unmanaged::enter();
            if let Some(result) = serve(me, number, [a, b, c, d, e, f]) {
                return result;
            }
        }
        if me.is_null() && number == libc::SYS_futex {
            note_outsider(a, b as i32, c as u32);
        }
        kernel(number, [a, b, c, d, e, f])
    }
}

/// Does what the scheduler has to do with; the result is as that of `syscall`. Nothing when it is the kernel's business.
///
/// # Safety
/// As for libc's `syscall`; the caller is the running thread.
pub(crate) unsafe fn serve(me: *mut Logical, number: c_long, arguments: [usize; 6]) -> Option<c_long> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: by the caller's promise.
    unsafe {
        match number {
            libc::SYS_futex => Some(futex(me, a, b as i32, c as u32, d, e, f as u32)),
            libc::SYS_sched_yield => {
                step(me, Event::local(EventKind::Yield));
                Some(0)
            }
            libc::SYS_gettid => Some(c_long::from((*me).kernel_id)),
            libc::SYS_getrandom => Some(random::fill(me, a as *mut u8, b) as c_long),
            libc::SYS_sched_getaffinity if identity::is_me(me, a) => {
                Some(super::processors::report(b, c as *mut u8) as c_long)
            }
            _ => None,
        }
    }
}

/// A thread outside the schedule waits for a word, or wakes waiters of one; logical threads may be on the other side.
fn note_outsider(address: usize, op: i32, count: u32) {
    match op & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => outside::waits(),
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => outside::did(Key(address), Act::Woken(count)),
        _ => {}
    }
}

unsafe fn kernel(number: c_long, args: [usize; 6]) -> c_long {
    // SAFETY: by the caller's promise.
    unsafe {
        let result = sys::call(number, args);
        if (-4095..0).contains(&result) { c_long::from(fail(-result as i32)) } else { result as c_long }
    }
}

unsafe fn futex(
    me: *mut Logical,
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
    // SAFETY: by the caller's promise: the words exist, and so does the timeout of those operations that have one.
    unsafe {
        let word = &*(address as *const AtomicU32);
        let time = timeout as *const timespec;
        match op & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
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
                let deadline = match (time.is_null(), command) {
                    (true, _) => None,
                    (false, libc::FUTEX_WAIT) => Some(moment_after(time)),
                    (false, _) => Some(moment_of(clock, time)),
                };
                match wait(me, event, key, shares, deadline, None) {
                    Waited::Done => {
                        edge::takes_over(me, key);
                        0
                    }
                    Waited::TimedOut => c_long::from(fail(ETIMEDOUT)),
                    Waited::Interrupted => c_long::from(fail(libc::EINTR)),
                }
            }
            command @ (libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET) => {
                let shares = Shares(if command == libc::FUTEX_WAKE { u32::MAX } else { third });
                edge::hands_over(me, key);
                let woken = wake(key, value, shares);
                if outside::may_wait() {
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
                edge::hands_over(me, key);
                let touched = wake_or_move(key, value, Key(second), timeout as u32);
                step(me, event_at(EventKind::FutexWake, key));
                c_long::from(touched)
            }
            libc::FUTEX_WAKE_OP => {
                edge::hands_over(me, key);
                edge::hands_over(me, Key(second));
                let holds = wake_op(&*(second as *const AtomicU32), third);
                let mut woken = wake(key, value, Shares::ALL);
                if holds {
                    woken += wake(Key(second), timeout as u32, Shares::ALL);
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
