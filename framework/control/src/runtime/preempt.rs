//! Preempting a thread that computes without a step: a loop that waits for a plain variable.
//!
//! A timer sends a signal to the process; whichever kernel thread gets it hands it to the one that has the token.
//! The timer counts processor time, so that a thread that waits for a busy machine is not taken for one that computes.
//! After some ticks without a step, if the interrupted instruction is the program's own and not inside a library that
//! may hold a lock of its own, the thread yields from within the handler. Real time takes part in such a schedule, so the
//! run is marked as partly controlled; who computes should therefore be left alone. A thread that is in a state in which it
//! was before, with the same registers and the same top of the stack, makes no progress of its own: it waits, and yields
//! soon. So does one that asked to be ended wherever it is. One that is in a new state at every tick computes, or counts while it waits, and yields after much longer.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use waylay_control_protocol::account::Beside;
use waylay_runtime::point;

use super::{Token, blocked, outside, runtime};
use crate::instrument::delay;
use crate::me::{Unmanaged, me};
use crate::sys;

/// A real-time signal that few programs use: the last but one.
pub(super) const SIGNAL: c_int = 63;
/// The signals of both timers: bit n-1 is signal n.
pub(crate) const TICK_SIGNALS: u64 = 1 << (SIGNAL - 1) | 1 << (blocked::SIGNAL - 1);
/// Ticks without a step before a thread is preempted that seems to wait: one may have begun just before the first.
const TICKS: u32 = 2;
/// The same for one that seems to compute: half a second of it with the usual ticks.
const TICKS_OF_WORK: u32 = 125;
/// States that are remembered: the instructions of a loop around a look at a variable.
const STATES: usize = 8;
/// Bytes of the stack that belong to a state: the variables of a small function, below and above the stack pointer.
const BELOW: usize = 128;
const ABOVE: usize = 256;
const RANGES: usize = 16;

/// A module that must not be interrupted for long: it may hold locks that are invisible to us.
struct Module {
    low: AtomicUsize,
    high: AtomicUsize,
    /// Even what it calls may be called with such a lock held.
    locks: AtomicBool,
}

static UNTOUCHABLE: [Module; RANGES] = [const {
    Module { low: AtomicUsize::new(0), high: AtomicUsize::new(0), locks: AtomicBool::new(false) }
}; RANGES];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The kernel thread that executes the token's holder, and the moment of the last tick.
static HOLDER: AtomicI32 = AtomicI32::new(0);
static LAST: AtomicU64 = AtomicU64::new(0);
static STILL: AtomicU32 = AtomicU32::new(0);
/// The states of the last ticks without a step, and which comes next.
static SEEN: [AtomicU64; STATES] = [const { AtomicU64::new(0) }; STATES];
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Notes the modules that must not be interrupted. Called once, before `main`.
pub(crate) fn note_modules() {
    // SAFETY: the callback needs no argument.
    unsafe { libc::dl_iterate_phdr(Some(note_module), core::ptr::null_mut()) };
}

unsafe extern "C" fn note_module(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    // The C++ runtime's own locks are pthread mutexes, which are under control.
    const NAMES: [(&[u8], bool); 7] = [
        (b"/libc.so", true),
        (b"/ld-linux", true),
        (b"linux-vdso", true),
        (b"libwaylay_control", true),
        (b"libgcc_s", true),
        (b"libstdc++", false),
        (b"libm.so", false),
    ];
    // SAFETY: libc passes a valid record.
    unsafe {
        let name = CStr::from_ptr((*info).dlpi_name).to_bytes();
        let named = NAMES.iter().find(|(part, _)| name.windows(part.len()).any(|window| window == *part));
        let Some(&(_, locks)) = named else { return 0 };
        let headers = core::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum as usize);
        let loads = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let place = COUNT.fetch_add(1, Ordering::Relaxed);
        if let Some(module) = UNTOUCHABLE.get(place) {
            let end = loads.map(|header| header.p_vaddr + header.p_memsz).max().unwrap_or(0);
            module.low.store((*info).dlpi_addr as usize, Ordering::Relaxed);
            module.high.store(((*info).dlpi_addr + end) as usize, Ordering::Relaxed);
            module.locks.store(locks, Ordering::Relaxed);
        }
    }
    0
}

/// Starts the ticks for a run of this process.
pub(super) fn start(milliseconds: u32) {
    if milliseconds == 0 {
        return;
    }
    start_timer(SIGNAL, on_tick, libc::CLOCK_PROCESS_CPUTIME_ID, milliseconds);
    blocked::start();
}

/// What handles a tick.
pub(super) type Handler = unsafe extern "C-unwind" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Makes `handler` run every so often by that clock.
pub(super) fn start_timer(signal: c_int, handler: Handler, clock: libc::clockid_t, milliseconds: u32) {
    // SAFETY: all structures are valid when zeroed and filled in below; the handler stays loaded.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, core::ptr::null_mut());
        let mut event: libc::sigevent = core::mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = signal;
        let mut timer = 0i32;
        let args = [clock as usize, &raw mut event as usize, &raw mut timer as usize, 0, 0, 0];
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

/// Hands a tick to the kernel thread that executes the token's holder; true when that is the caller.
pub(super) fn is_for_caller(signal: c_int) -> bool {
    let holder = HOLDER.load(Ordering::Relaxed);
    if sys::thread_id() == holder {
        return true;
    }
    if holder != 0 {
        // SAFETY: sends a signal that has a handler.
        unsafe {
            let process = sys::call(libc::SYS_getpid, [0; 6]) as usize;
            sys::call(libc::SYS_tgkill, [process, holder as usize, signal as usize, 0, 0, 0]);
        }
    }
    false
}

/// Lets others run, from within a handler. The kernel has a say in where this happens.
pub(super) fn give_way(me: &mut Token) {
    // SAFETY: libc gives every thread an errno.
    let errno = unsafe { *libc::__errno_location() };
    let inside = Unmanaged::enter();
    // It may be in front of a store that was noted already.
    delay::drain(me);
    outside::takes_part(me, &Beside::Other("a loop without a step was interrupted".into()));
    point::give_way(me);
    drop(inside);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
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

unsafe extern "C-unwind" fn on_tick(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: in a handler; only calls that are safe there until the thread is known to have the token, and the
    // interrupted instruction to be the program's own.
    unsafe {
        if !is_for_caller(SIGNAL) {
            return;
        }
        let me = me();
        let instruction = instruction_in(context);
        if me.is_null() || (*me).unpreemptible > 0 || module_of(instruction).is_some() {
            return;
        }
        let moment = (*runtime()).moment();
        if LAST.swap(moment, Ordering::Relaxed) != moment {
            STILL.store(0, Ordering::Relaxed);
            SEEN.iter().for_each(|seen| seen.store(0, Ordering::Relaxed));
            return;
        }
        let still = STILL.fetch_add(1, Ordering::Relaxed) + 1;
        // Who may be ended anywhere computes until somebody ends it, who has to be let run for that.
        let waits = was_seen(state_in(context)) || (*me).cancels_anywhere;
        if still < if waits { TICKS } else { TICKS_OF_WORK } {
            return;
        }
        STILL.store(0, Ordering::Relaxed);
        give_way(Token::held_by(me));
    }
}

/// The interrupted instruction.
pub(super) unsafe fn instruction_in(context: *mut c_void) -> usize {
    // SAFETY: the kernel passes a whole context.
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] as usize }
}

/// A number for what the interrupted code has in its general registers and at the top of its stack; never 0.
unsafe fn state_in(context: *mut c_void) -> u64 {
    const PAGE: usize = 4096;
    // From R8 to RIP: flags and what follows say nothing about the program.
    const REGISTERS: usize = libc::REG_RIP as usize + 1;
    // SAFETY: the kernel passes a whole context; the page of the stack pointer is mapped, or nothing could be pushed.
    unsafe {
        let registers = &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let pointer = registers[libc::REG_RSP as usize] as usize & !7;
        let page = pointer & !(PAGE - 1);
        let (low, high) = ((pointer - BELOW).max(page), (pointer + ABOVE).min(page + PAGE));
        let stack = core::slice::from_raw_parts(low as *const u64, (high - low) / size_of::<u64>());
        let words = registers[..REGISTERS].iter().map(|&word| word as u64).chain(stack.iter().copied());
        words.fold(1, |state: u64, word| (state.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1
    }
}

/// Whether the thread has been in this state at one of the last ticks.
fn was_seen(state: u64) -> bool {
    let before = SEEN.iter().any(|seen| seen.load(Ordering::Relaxed) == state);
    let place = NEXT.fetch_add(1, Ordering::Relaxed) % STATES;
    SEEN[place].store(state, Ordering::Relaxed);
    before
}

fn module_of(at: usize) -> Option<&'static Module> {
    UNTOUCHABLE.iter().take(COUNT.load(Ordering::Relaxed)).find(|module| {
        (module.low.load(Ordering::Relaxed)..module.high.load(Ordering::Relaxed)).contains(&at)
    })
}

/// Whether a call made by the code at this address surely comes with no lock held that is invisible to us.
pub(super) fn holds_no_lock(at: usize) -> bool {
    module_of(at).is_none_or(|module| !module.locks.load(Ordering::Relaxed))
}
