//! Preempting a thread that computes without a step: a loop that waits for a plain variable.
//!
//! A timer of processor time sends a signal to the process; whichever kernel thread gets it hands it to the one that has
//! the token. (Not of real time: a process that a busy machine keeps waiting would seem to compute.) After two ticks without
//! a step, if the interrupted instruction is the program's own and not inside a library that may hold a lock of its own,
//! the thread yields from within the handler. How fast the processor is takes part in such a schedule, so the run is marked
//! as partly controlled.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use waylay_schedule::{Event, EventKind};

use super::{point, runtime};
use crate::me::{Unmanaged, me};
use crate::sys;

/// A real-time signal that few programs use: the last but one.
const SIGNAL: c_int = 63;
/// Ticks without a step before a thread is preempted: one may have begun just before the first.
const TICKS: u32 = 2;
/// Yields until somebody else is chosen; strategies lower a thread that idles with some probability each time.
const YIELDS: u32 = 1000;
const RANGES: usize = 16;

/// Code that must not be interrupted for long: it may hold locks that are invisible to us.
static UNTOUCHABLE: [(AtomicUsize, AtomicUsize); RANGES] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; RANGES];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The kernel thread that executes the token's holder, and the steps it had at the last tick.
static HOLDER: AtomicI32 = AtomicI32::new(0);
static LAST: AtomicU64 = AtomicU64::new(0);
static STILL: AtomicU32 = AtomicU32::new(0);

/// Notes the modules that must not be interrupted. Called once, before `main`.
pub(crate) fn note_modules() {
    // SAFETY: the callback needs no argument.
    unsafe { libc::dl_iterate_phdr(Some(note_module), core::ptr::null_mut()) };
}

unsafe extern "C" fn note_module(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    const NAMES: [&[u8]; 7] = [
        b"/libc.so",
        b"/ld-linux",
        b"linux-vdso",
        b"libwaylay_control",
        b"libstdc++",
        b"libgcc_s",
        b"libm.so",
    ];
    // SAFETY: libc passes a valid record.
    unsafe {
        let name = CStr::from_ptr((*info).dlpi_name).to_bytes();
        if !NAMES.iter().any(|&part| name.windows(part.len()).any(|window| window == part)) {
            return 0;
        }
        let headers = core::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum as usize);
        let loads = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let place = COUNT.fetch_add(1, Ordering::Relaxed);
        if let Some((low, high)) = UNTOUCHABLE.get(place) {
            let end = loads.map(|header| header.p_vaddr + header.p_memsz).max().unwrap_or(0);
            low.store((*info).dlpi_addr as usize, Ordering::Relaxed);
            high.store(((*info).dlpi_addr + end) as usize, Ordering::Relaxed);
        }
    }
    0
}

/// Starts the ticks for a run of this process.
pub(super) fn start(milliseconds: u32) {
    if milliseconds == 0 {
        return;
    }
    // SAFETY: all structures are valid when zeroed and filled in below; the handler stays loaded.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_tick as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_RESTART;
        libc::sigaction(SIGNAL, &raw const action, core::ptr::null_mut());
        let mut event: libc::sigevent = core::mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = SIGNAL;
        let mut timer = 0i32;
        let args =
            [libc::CLOCK_PROCESS_CPUTIME_ID as usize, &raw mut event as usize, &raw mut timer as usize, 0, 0, 0];
        if sys::call(libc::SYS_timer_create, args) < 0 {
            return;
        }
        let period = libc::timespec {
            tv_sec: i64::from(milliseconds / 1000),
            tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
        };
        let times = libc::itimerspec { it_interval: period, it_value: period };
        sys::call(libc::SYS_timer_settime, [timer as usize, 0, &raw const times as usize, 0, 0, 0]);
    }
}

/// Says which kernel thread executes program code from now on.
#[inline]
pub(super) fn held_by(kernel_thread: i32) {
    HOLDER.store(kernel_thread, Ordering::Relaxed);
}

/// Whether the calling kernel thread executes the token's holder.
pub(super) fn is_held_by_caller() -> bool {
    sys::thread_id() == HOLDER.load(Ordering::Relaxed)
}

unsafe extern "C" fn on_tick(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let holder = HOLDER.load(Ordering::Relaxed);
    // SAFETY: in a handler; only calls that are safe there until the thread is known to have the token, and the
    // interrupted instruction to be the program's own.
    unsafe {
        if sys::thread_id() != holder {
            if holder != 0 {
                let process = sys::call(libc::SYS_getpid, [0; 6]) as usize;
                sys::call(libc::SYS_tgkill, [process, holder as usize, SIGNAL as usize, 0, 0, 0]);
            }
            return;
        }
        let me = me();
        if me.is_null() || (*me).unpreemptible > 0 || !is_touchable(context) {
            return;
        }
        let steps = (*runtime()).sched.steps;
        if LAST.swap(steps, Ordering::Relaxed) != steps {
            STILL.store(0, Ordering::Relaxed);
            return;
        }
        if STILL.fetch_add(1, Ordering::Relaxed) + 1 < TICKS {
            return;
        }
        STILL.store(0, Ordering::Relaxed);
        let errno = *libc::__errno_location();
        let inside = Unmanaged::enter();
        (*runtime()).region.report().partly_controlled.store(1, Ordering::Relaxed);
        let switches = (*runtime()).sched.switches;
        for _ in 0..YIELDS {
            point::step(me, Event::local(EventKind::Yield));
            if (*runtime()).sched.switches != switches {
                break;
            }
        }
        drop(inside);
        *libc::__errno_location() = errno;
    }
}

unsafe fn is_touchable(context: *mut c_void) -> bool {
    // SAFETY: the kernel passes a whole context.
    let at =
        unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] } as usize;
    UNTOUCHABLE
        .iter()
        .take(COUNT.load(Ordering::Relaxed))
        .all(|(low, high)| !(low.load(Ordering::Relaxed)..high.load(Ordering::Relaxed)).contains(&at))
}
