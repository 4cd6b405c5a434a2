//! Linux: a handler in front of the one of `ctrlc`, which sees who sent a signal, and when.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, getpgid};

use crate::requests;

/// What asks a command to end.
const WISHES: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Two signals that are closer together are one: `timeout` sends one to the process and one to its group.
const APART: Duration = Duration::from_millis(500);

/// When the first signal came, in nanoseconds of the monotonic clock.
static FIRST_SIGNAL: AtomicU64 = AtomicU64::new(0);

/// Process groups whose signals are no wishes.
static DISREGARDED: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];
/// The last signal that one of them sent us.
static UNWISHED: AtomicI32 = AtomicI32::new(0);

/// What is done about a wish that was counted.
static ACT: OnceLock<fn()> = OnceLock::new();
/// The handler of `ctrlc`, which has its thread do that; none where the thread could not be made.
static NEXT: OnceLock<extern "C" fn(c_int)> = OnceLock::new();

pub(crate) fn disregard(group: u32) {
    let group = group as i32;
    let _ = DISREGARDED
        .iter()
        .find(|place| place.compare_exchange(0, group, Ordering::Relaxed, Ordering::Relaxed).is_ok());
}

pub(crate) fn regard(group: u32) {
    for place in &DISREGARDED {
        let _ = place.compare_exchange(group as i32, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

pub(crate) fn take_disregarded() -> Option<i32> {
    Some(UNWISHED.swap(0, Ordering::Relaxed)).filter(|signal| *signal != 0)
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // What is interrupted may be about to read it.
    let errno = Errno::last_raw();
    // SAFETY: the kernel passes a siginfo to a handler that was installed with SA_SIGINFO, with a sender unless it made the
    // signal itself.
    let sender = unsafe { ((*info).si_code <= 0).then(|| Pid::from_raw((*info).si_pid())) };
    let group = sender.and_then(|sender| getpgid(Some(sender)).ok()).map(Pid::as_raw);
    if group.is_some_and(|group| DISREGARDED.iter().any(|place| place.load(Ordering::Relaxed) == group)) {
        UNWISHED.store(signal, Ordering::Relaxed);
    } else if is_a_wish_of_its_own() {
        // Counted here, by the time at which it came, and not when some thread has its turn.
        requests::count();
        match (NEXT.get(), ACT.get()) {
            (Some(next), _) => next(signal),
            (None, Some(act)) => act(),
            (None, None) => {}
        }
    }
    Errno::set_raw(errno);
}

/// Whether a signal that comes now is more than an echo of the first.
fn is_a_wish_of_its_own() -> bool {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    let now = now.as_nanos() as u64;
    let first = FIRST_SIGNAL.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    first.err().is_none_or(|first| u128::from(now.saturating_sub(first)) > APART.as_nanos())
}

/// Has the first wish counted and `act` called after each. A hang-up that is ignored stays so: `nohup` asks for that.
pub(crate) fn watch(act: fn(), _grace: Duration) {
    let _ = ACT.set(act);
    let ours = SigAction::new(SigHandler::SigAction(on_signal), SaFlags::SA_RESTART, SigSet::empty());
    // What comes while handlers are exchanged waits, so that none is lost between two of them. The thread of `ctrlc` inherits
    // this, and is never interrupted.
    let before = WISHES.iter().copied().collect::<SigSet>().thread_swap_mask(SigmaskHow::SIG_BLOCK);
    // SAFETY: the handler makes async-signal-safe calls only: atomics, getpgid, clock_gettime, sem_post, and what `act` promises.
    let hang_up = unsafe { sigaction(Signal::SIGHUP, &ours) };
    let has_thread = ctrlc::set_handler(act).is_ok();
    for signal in WISHES {
        let ignored = hang_up.as_ref().ok().filter(|before| matches!(before.handler(), SigHandler::SigIgn));
        let wanted = ignored.filter(|_| signal == Signal::SIGHUP).unwrap_or(&ours);
        // SAFETY: as above; nobody handles what is ignored.
        let replaced = unsafe { sigaction(signal, wanted) };
        if has_thread && let Ok(SigHandler::Handler(next)) = replaced.map(|action| action.handler()) {
            let _ = NEXT.set(next);
        }
    }
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
}

/// Leaves without running anything.
pub(crate) fn end_at_once(code: u8) -> ! {
    // SAFETY: allowed everywhere, also in a handler.
    unsafe { libc::_exit(code.into()) }
}
