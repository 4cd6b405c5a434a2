//! A thread that sits in the kernel with the token: in a system call of its own, or in one that libc makes inside a
//! function that is not under control.
//!
//! Whoever could end its wait is not chosen as long as it has the token. A timer looks every now and then: when the
//! thread has been in a system call at two looks, with no step and hardly any processor time in between, it gives way
//! from within the handler; the kernel resumes the call when the thread is chosen again. The report names it, and the run
//! is marked as partly controlled.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use waylay_control_protocol::Statement;
use waylay_runtime::inspect;

use super::preempt::{give_way, instruction_in, is_for_caller, start_timer};
use super::{Token, runtime};
use crate::me::me;
use crate::sys;

/// Beside the signal of the other timer.
pub(super) const SIGNAL: c_int = 62;
/// Real milliseconds between two looks: longer than what a disk takes, short beside the patience of those who wait.
const PERIOD: u32 = 100;
/// Processor time between two looks up to which the process was waiting.
const WAITED: u64 = 5_000_000;

/// Moment and processor time of the last look, if the thread was in a system call then.
static MOMENT: AtomicU64 = AtomicU64::new(u64::MAX);
static USED: AtomicU64 = AtomicU64::new(0);
static NAMED: AtomicBool = AtomicBool::new(false);

pub(super) fn start() {
    start_timer(SIGNAL, on_look, libc::CLOCK_MONOTONIC, PERIOD);
}

unsafe extern "C-unwind" fn on_look(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: in a handler; only calls that are safe there until the thread is known to have the token and to be outside
    // the library.
    unsafe {
        if !is_for_caller(SIGNAL) {
            return;
        }
        let me = me();
        if me.is_null() || !is_in_system_call(instruction_in(context)) {
            MOMENT.store(u64::MAX, Ordering::Relaxed);
            return;
        }
        let (moment, used) = ((*runtime()).moment(), processor_time());
        let last = (MOMENT.swap(moment, Ordering::Relaxed), USED.swap(used, Ordering::Relaxed));
        if last.0 != moment || used - last.1 > WAITED {
            return;
        }
        if !NAMED.swap(true, Ordering::Relaxed) {
            inspect::tell(Token::held_by(me), &Statement::InKernel((*me).id.0));
        }
        MOMENT.store(u64::MAX, Ordering::Relaxed);
        give_way(Token::held_by(me));
    }
}

/// Whether the instruction at which a signal came, or the one before, is a system call: one that will be made again, or
/// one that came back early.
///
/// # Safety
/// The code around `at` is mapped.
unsafe fn is_in_system_call(at: usize) -> bool {
    const INSTRUCTION: [u8; 2] = [0x0f, 0x05];
    // SAFETY: by the caller's promise; execution got to `at` over the bytes before it or is about to go on with those after.
    unsafe { *((at - 2) as *const [u8; 2]) == INSTRUCTION || *(at as *const [u8; 2]) == INSTRUCTION }
}

fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let args = [libc::CLOCK_PROCESS_CPUTIME_ID as usize, &raw mut time as usize, 0, 0, 0, 0];
    // SAFETY: the kernel writes the local.
    unsafe { sys::call(libc::SYS_clock_gettime, args) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
