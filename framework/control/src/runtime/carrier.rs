//! The carrier: the kernel thread that executes logical threads as fibers; and the homes that wait meanwhile.
//!
//! The carrier is a thread of its own, so that every logical thread, the main thread included, has a home to which
//! it can go for a call that blocks, a signal or its end. A home waits on a small stack of ours with all signals
//! blocked; the program's stack stays free for the fiber.

use core::ffi::{c_int, c_void};

use waylay_runtime::handover::arrive;

use super::handover::{Afterwards, after_switch, give_away_after_switch};
use super::logical::{Logical, Place};
use super::platform::STARTED;
use super::{Token, preempt, runtime, signals};
use crate::instrument::patch::trap;
use crate::interpose::real_thread;
use crate::me::{Unmanaged, as_program, me};
use crate::switch::{Context, Signal, Stack, fs_base, switch};
use crate::sys;

/// Enough for the park loop and for a choice made on behalf of an arriving thread: where nothing is optimised, drawing random
/// numbers alone takes more than 32 KiB. What is not touched costs nothing.
const PARK_STACK: usize = 128 * 1024;
/// Room for a signal handler of the program that runs on the carrier.
const ALTERNATE_STACK: usize = 64 * 1024;
/// Everything but SIGKILL and SIGSTOP, which cannot be blocked, and the two signals that libc keeps for itself
/// (32 and 33): `setuid` and its like wait for every thread to handle the latter.
pub(super) const ALL_SIGNALS: u64 = !(0b11 << 31);

static WAKE: Signal = Signal::new();

/// The carrier's state.
#[derive(Debug)]
pub(crate) struct Carrier {
    /// The carrier's own loop, while a fiber executes.
    pub(super) idle: Context,
    /// The fiber to execute next.
    pub(super) next: *mut Logical,
    pub(super) afterwards: Afterwards,
    pub(super) running: bool,
    pub(super) kernel_id: i32,
    /// What it would have taken of the program's heap, where there is none.
    trace: *mut c_void,
}

impl Carrier {
    pub(crate) const fn new() -> Self {
        Self {
            idle: Context::empty(),
            next: core::ptr::null_mut(),
            afterwards: Afterwards::NOTHING,
            running: false,
            kernel_id: 0,
            trace: core::ptr::null_mut(),
        }
    }
}

impl Carrier {
    /// Whether there is a kernel thread that executes fibers.
    pub(super) fn is_running(&self) -> bool {
        self.running
    }

    /// Who the carrier is for libc while no fiber executes on it.
    pub(crate) fn identity(&self) -> u64 {
        self.idle.fs_base()
    }
}

/// Tells the carrier that there is a next fiber.
pub(super) fn wake() {
    WAKE.raise();
}

/// Starts the carrier and moves `main`, the only logical thread so far, onto it.
///
/// # Safety
/// `main` executes the call and holds the token.
pub(super) unsafe fn start(main: *mut Logical) -> Result<(), i32> {
    // SAFETY: by the caller's promise.
    unsafe {
        let unmanaged = Unmanaged::enter();
        let carrier = &raw mut (*runtime()).system.carrier;
        (*carrier).next = main;
        real_thread::create_detached(carrier_main)?;
        drop(unmanaged);
        (*carrier).running = true;
        // The home finds itself by this.
        as_program(Token::held_by(main), || move_to_carrier(main));
        Ok(())
    }
}

/// A carrier that is started takes a piece of the program's heap: libc's table of its thread-local variables. Where there is
/// none, the same is taken at the same moment, once: a process that follows a schedule has to have the program's addresses of
/// the one that found it, because code that looks at bytes many at a time does so by how they are aligned.
pub(super) fn leave_its_trace(me: &mut Token) {
    /// Entries in front and in reserve that glibc adds, and the size of one.
    const MORE: usize = 16;
    const ENTRY: usize = 16;
    // SAFETY: the callback gets the local. The memory is never given back, like the carrier's.
    unsafe {
        let trace = &raw mut me.run().system.carrier.trace;
        if (*trace).is_null() {
            let _unmanaged = Unmanaged::enter();
            let mut modules = 0usize;
            libc::dl_iterate_phdr(Some(last_module), (&raw mut modules).cast());
            *trace = libc::calloc(modules + MORE, ENTRY);
        }
    }
}

unsafe extern "C" fn last_module(info: *mut libc::dl_phdr_info, _: usize, last: *mut c_void) -> c_int {
    // SAFETY: libc passes a valid record, and we passed the destination.
    unsafe {
        let last = last.cast::<usize>();
        *last = (*last).max((*info).dlpi_tls_modid);
    }
    0
}

extern "C-unwind" fn carrier_main(_: *mut c_void) -> *mut c_void {
    give_alternate_stack();
    // With nobody on it, it takes no signal that another thread waits for, or that all of them block.
    let mut mask = sys::swap_signal_mask(ALL_SIGNALS);
    loop {
        WAKE.wait();
        // SAFETY: whoever raised the signal passed the token with it, and named a suspended fiber.
        unsafe {
            sys::swap_signal_mask(mask | signals::kept_by_kernel());
            let carrier = &raw mut (*runtime()).system.carrier;
            (*carrier).idle.set_fs_base(fs_base());
            if (*carrier).kernel_id == 0 {
                (*carrier).kernel_id = sys::thread_id();
                preempt::held_by((*carrier).kernel_id);
            }
            let next = (*carrier).next;
            switch(&raw mut (*carrier).idle, &raw const (*next).context);
            // Before anybody else runs.
            mask = sys::swap_signal_mask(ALL_SIGNALS);
            give_away_after_switch();
        }
    }
}

/// Fibers' own calls of `sigaltstack` do not reach the kernel: the stack belongs to the kernel thread.
fn give_alternate_stack() {
    let Some(at) = sys::map(ALTERNATE_STACK) else { return };
    let stack = libc::stack_t { ss_sp: at.cast(), ss_flags: 0, ss_size: ALTERNATE_STACK };
    // SAFETY: the stack is mapped for good.
    unsafe { sys::call(libc::SYS_sigaltstack, [&raw const stack as usize, 0, 0, 0, 0, 0]) };
}

/// Leaves the calling kernel thread as a parked home; returns on the carrier, once chosen.
///
/// # Safety
/// `me` executes the call at home. It need not hold the token; the fiber it becomes is resumed with it.
pub(super) unsafe fn move_to_carrier(me: *mut Logical) {
    // SAFETY: by the caller's promise; the park stack lives until the thread has finished.
    unsafe {
        let Some(stack) = Stack::map(PARK_STACK) else {
            crate::message::say(format_args!("no memory for a park stack"));
            sys::exit_now(3)
        };
        (*me).context.set_fs_base(fs_base());
        (*me).park = Context::starting(stack.top(), park, fs_base());
        (*me).park_stack = Some(stack);
        (*me).place = Place::Carrier;
        switch(&raw mut (*me).context, &raw const (*me).park);
        after_switch();
    }
}

/// The life of a home while its logical thread sits on the carrier.
extern "C" fn park() -> ! {
    let me = me();
    // SAFETY: `me` was suspended by the switch that brought us here; the signals order every later access.
    unsafe {
        // The kernel does not know all that the program blocks.
        let unseen = (*me).mask & !trap::to_block((*me).mask);
        (*me).mask = sys::swap_signal_mask(ALL_SIGNALS) | unseen;
        if (*me).id == waylay_schedule::ThreadId::MAIN {
            wake();
        } else {
            STARTED.store(1, core::sync::atomic::Ordering::Release);
            sys::futex_wake(&STARTED);
        }
        loop {
            (*me).homeward.wait();
            if (*me).place == Place::Home {
                sys::swap_signal_mask(trap::to_block((*me).mask));
            }
            switch(&raw mut (*me).park, &raw const (*me).context);
            arrive(me);
        }
    }
}
