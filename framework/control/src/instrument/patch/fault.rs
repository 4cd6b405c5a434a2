//! Faults in moved code, made to happen again where the program has it: a debugger finds the frame there and not here.
//!
//! The handler puts the program's own bytes back, lets the thread go on at the instruction's own place, and it faults once
//! more. A breakpoint of ours is a fault there, too. Only for processes under a debugger: others have their addresses translated from the list of moved instructions.

use core::ffi::{c_int, c_void};

use super::{put_back, table, trap};

/// What an instruction can do wrong.
const SIGNALS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// A debugger stops here to learn that the next fault is to be shown.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[inline(never)]
extern "C" fn waylay_control_faulted() {
    core::hint::black_box(());
}

/// Catches faults from now on.
pub(super) fn install() {
    // SAFETY: all zero is a valid structure, filled in below; the handler stays loaded.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK;
        for signal in SIGNALS {
            libc::sigaction(signal, &raw const action, core::ptr::null_mut());
        }
    }
}

unsafe extern "C" fn on_fault(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a whole context; the thread that faulted has the token, or nobody changes code meanwhile.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let at = registers[libc::REG_RIP as usize] as usize;
        if signal == libc::SIGILL && trap::step_at(at, registers) {
            return;
        }
        let place = &mut registers[libc::REG_RIP as usize];
        if let Some(origin) = table::origin(*place as usize)
            && put_back(origin)
        {
            *place = origin as i64;
        }
        for signal in SIGNALS {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    waylay_control_faulted();
}
