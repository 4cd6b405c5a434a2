//! Somebody to look out of the window while the token floats.
//!
//! When every logical thread waits and some are away in the kernel, no thread is left to notice that a descriptor became
//! ready or that a thread outside the schedule did something. This kernel thread does: it takes the floating token
//! now and then, looks, and passes it to whoever can run or lets it float again. It exists only in processes that need
//! it.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use waylay_runtime::handover::take_arrivals;

use super::descriptors::descriptors_changed;
use super::handover::start;
use super::outside::{Beside, take_letters, takes_part};
use super::{SHARED, Token, preempt, runtime};
use crate::interpose::real_thread;
use crate::me::Unmanaged;
use crate::sched::Choice;
use crate::switch::Signal;
use crate::sys;

/// Real time between two looks.
const PERIOD: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Looks after which time passes for those who sleep, although a thread that is away may come back before: as long as a disk or
/// a child that has something to do may take.
const PATIENCE: u32 = 50;

static WANTED: Signal = Signal::new();
static EXISTS: AtomicBool = AtomicBool::new(false);
static KERNEL_ID: AtomicI32 = AtomicI32::new(0);

/// The watcher's kernel thread, which is no outsider; 0 when there is none.
pub(super) fn kernel_id() -> i32 {
    KERNEL_ID.load(Ordering::Relaxed)
}

/// The token is about to float while threads wait for descriptors, or for time to pass.
pub(super) fn watch() {
    if !EXISTS.swap(true, Ordering::Relaxed) {
        let _unmanaged = Unmanaged::enter();
        // From its first moment on it takes no signal that the program's threads block.
        let mask = sys::swap_signal_mask(u64::MAX);
        // SAFETY: the thread never touches the runtime without the token. Should the kernel refuse it, threads that are
        // away still take the token when they come back.
        let created = unsafe { real_thread::create_detached(watcher) };
        sys::swap_signal_mask(mask);
        if created.is_err() {
            return;
        }
    }
    WANTED.raise();
}

extern "C-unwind" fn watcher(_: *mut c_void) -> *mut c_void {
    KERNEL_ID.store(sys::thread_id(), Ordering::Relaxed);
    sys::swap_signal_mask(u64::MAX);
    loop {
        WANTED.wait();
        let mut looks = 0;
        loop {
            looks += 1;
            let never = AtomicU32::new(0);
            sys::futex_wait_for(&never, 0, &PERIOD);
            // Somebody else took it: the next float calls again.
            if !SHARED.floating.swap(false, Ordering::SeqCst) {
                break;
            }
            // SAFETY: the token was taken.
            if unsafe { look(looks >= PATIENCE) } {
                break;
            }
        }
    }
}

/// Passes the token on if somebody can run, else lets it float; true in the first case. When threads have been away `for_long`,
/// those who sleep may be the ones who could bring them back.
///
/// # Safety
/// The calling kernel thread took the token.
unsafe fn look(for_long: bool) -> bool {
    // SAFETY: by the caller's promise, who acts for the main thread; the token is not used after it is given away.
    unsafe {
        loop {
            let me = Token::held_by((*runtime()).main);
            take_arrivals(me);
            take_letters(me);
            descriptors_changed(me);
            if for_long && me.run().sched.expire_first() {
                takes_part(me, &Beside::Other("a wait in the kernel that took long".into()));
            }
            if let Choice::Run(next) = me.run().sched.choose() {
                me.run().note_awaits(false);
                start(me.logical(next));
                return true;
            }
            preempt::held_by(0);
            SHARED.floating.store(true, Ordering::SeqCst);
            let arrived = !SHARED.arrivals.load(Ordering::SeqCst).is_null();
            if !arrived || !SHARED.floating.swap(false, Ordering::SeqCst) {
                return false;
            }
        }
    }
}
