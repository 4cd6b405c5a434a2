//! Faults that the program handles itself: begun so that the kernel's mask, which fibers share, stays as it was.
//!
//! While a handler runs, the kernel blocks its signal, and it kills a process whose instruction faults meanwhile. That is meant
//! for the thread that handles one; on the carrier it would be every thread, and the next that writes to a page that the program
//! protects, as garbage collectors have their threads do, would end the process. So every handler of a fault is begun here.
//!
//! A read that the library makes in the program's place may fault as well. The handler is then not told: it would find the
//! thread inside the library, and may leave from there with a jump. The program's own access, which follows, faults again.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use crate::instrument::ends_with_nothing;
use crate::me::me;
use crate::runtime::Place;
use crate::sys;

/// What an instruction can do wrong. Breakpoints have a place of their own (`instrument::patch::trap`).
const FAULTS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// The program's handler of each, and its flags as it named them: ours takes more than the number.
static HANDLERS: [AtomicUsize; FAULTS.len()] = [const { AtomicUsize::new(libc::SIG_DFL) }; FAULTS.len()];
static FLAGS: [AtomicI32; FAULTS.len()] = [const { AtomicI32::new(0) }; FAULTS.len()];

fn place(signal: c_int) -> Option<usize> {
    FAULTS.iter().position(|&fault| fault == signal)
}

pub(super) fn is_fault(signal: c_int) -> bool {
    place(signal).is_some()
}

/// What the program had named before its action changed.
pub(super) struct Before {
    handler: usize,
    flags: c_int,
}

impl Before {
    /// Makes of the kernel's action what the program is to see.
    pub(super) fn show(&self, action: &mut libc::sigaction) {
        if action.sa_sigaction == on_fault as *const () as usize {
            action.sa_sigaction = self.handler;
            action.sa_flags &= !libc::SA_SIGINFO | self.flags;
        }
    }
}

/// Notes the program's new action, if there is one: what it was before, and the action that the kernel is to have instead.
pub(super) fn take(signal: c_int, new: Option<&libc::sigaction>) -> (Before, Option<libc::sigaction>) {
    let (handlers, flags) = place(signal).map_or((&HANDLERS[0], &FLAGS[0]), |place| (&HANDLERS[place], &FLAGS[place]));
    let before = Before { handler: handlers.load(Ordering::Relaxed), flags: flags.load(Ordering::Relaxed) };
    let ours = new.map(|action| {
        let mut ours = *action;
        if action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN {
            handlers.store(action.sa_sigaction, Ordering::Relaxed);
            flags.store(action.sa_flags, Ordering::Relaxed);
            ours.sa_sigaction = on_fault as *const () as usize;
            ours.sa_flags |= libc::SA_SIGINFO;
        }
        ours
    });
    (before, ours)
}

/// Goes on in the program's handler as if the kernel had called that, or returns to what faulted.
///
/// # Safety
/// As the kernel calls handlers.
#[unsafe(naked)]
unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "call {open}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 1f",
        "jmp rax",
        "1: ret",
        open = sym open
    )
}

/// Which handler of the program's a fault is for: 0 if for none.
unsafe extern "C" fn open(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) -> usize {
    // SAFETY: the kernel passes whole records; who has the token lives.
    unsafe {
        let context = &mut *context.cast::<libc::ucontext_t>();
        let by_instruction = (*info).si_code > 0;
        if by_instruction && ends_with_nothing(&mut context.uc_mcontext.gregs) {
            return 0;
        }
        let thread = me();
        if by_instruction && !thread.is_null() && (*thread).place == Place::Carrier {
            sys::swap_signal_mask((&raw const context.uc_sigmask).cast::<u64>().read());
        }
    }
    place(signal).map_or(0, |place| HANDLERS[place].load(Ordering::Relaxed))
}
