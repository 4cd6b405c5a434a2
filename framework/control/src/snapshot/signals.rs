//! What signals do: the program sees its own actions, while signals that would kill it end the run instead.

use core::ffi::{c_int, c_void};

use super::{End, finish, keeper};
use crate::message::say;
use crate::sys;

/// Signals that a run can bring upon itself and that end a process unless it handles them.
const FATAL: [c_int; 8] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGPIPE,
    libc::SIGXFSZ,
];
const SIGNALS: usize = 65;

/// An action as the kernel takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// The handler returns to `restorer`, which on x86-64 every action has to name.
const RESTORER: u64 = 0x0400_0000;

impl Action {
    /// What libc would tell the kernel.
    pub(crate) fn of_libc(action: &libc::sigaction) -> Action {
        // SAFETY: a set begins with the kernel's word.
        let mask = unsafe { (&raw const action.sa_mask).cast::<u64>().read_unaligned() };
        let restorer = waylay_control_return_from_signal as *const () as usize;
        Action { handler: action.sa_sigaction, flags: action.sa_flags as u64 | RESTORER, restorer, mask }
    }

    /// What libc would tell the program.
    pub(crate) fn to_libc(self, action: &mut libc::sigaction) {
        // SAFETY: all zeroes are a valid action, and a set begins with the kernel's word.
        unsafe {
            *action = core::mem::zeroed();
            (&raw mut action.sa_mask).cast::<u64>().write_unaligned(self.mask);
        }
        action.sa_sigaction = self.handler;
        action.sa_flags = (self.flags & !RESTORER) as c_int;
    }
}

/// The actions. All zero bytes are a process that handles nothing.
pub(super) struct Signals {
    /// When the snapshot was taken, as the program sees it, and as the kernel has it.
    seen_first: [Action; SIGNALS],
    real_first: [Action; SIGNALS],
    seen: [Action; SIGNALS],
    /// Bit n-1: the action on signal n was changed.
    changed: u64,
    /// What ends a run instead of killing the process.
    ending: Action,
}

impl Signals {
    /// Notes all actions and takes the fatal signals over; `on_system_call` gets SIGSYS.
    pub(super) fn take_over(&mut self, on_system_call: usize) {
        self.ending = made(on_fatal as *const () as usize, 0);
        for signal in 1..SIGNALS as c_int {
            let action = exchange(signal, None);
            self.seen_first[signal as usize] = action;
            self.real_first[signal as usize] = action;
            if FATAL.contains(&signal) && action.handler == libc::SIG_DFL {
                self.real_first[signal as usize] = self.ending;
                exchange(signal, Some(&self.ending));
            }
        }
        self.seen = self.seen_first;
        exchange(libc::SIGSYS, Some(&made(on_system_call, u64::MAX)));
    }

    /// Sets an action for the program; nothing when it is none that can be undone.
    pub(super) fn set(&mut self, signal: c_int, action: &Action) -> Option<()> {
        let ours = signal == libc::SIGSYS || crate::runtime::is_our_signal(signal);
        if !(1..SIGNALS as c_int).contains(&signal) || ours {
            return None;
        }
        self.changed |= 1 << (signal - 1);
        self.seen[signal as usize] = *action;
        let kills = FATAL.contains(&signal) && action.handler == libc::SIG_DFL;
        // While SIGSYS is blocked, a system call that is stopped kills the process.
        let open = Action { mask: action.mask & !(1 << (libc::SIGSYS - 1)), ..*action };
        exchange(signal, Some(if kills { &self.ending } else { &open }));
        Some(())
    }

    /// The action on a signal as the program sees it.
    pub(super) fn get(&self, signal: c_int) -> Option<&Action> {
        self.seen.get(signal as usize)
    }

    /// Whether this signal ends the run if it comes now.
    pub(super) fn ends(&self, signal: c_int) -> bool {
        FATAL.contains(&signal) && self.seen[signal as usize].handler == libc::SIG_DFL
    }

    /// Undoes what the run changed.
    pub(super) fn restore(&mut self) {
        while self.changed != 0 {
            let signal = self.changed.trailing_zeros() as usize + 1;
            self.changed &= self.changed - 1;
            self.seen[signal] = self.seen_first[signal];
            exchange(signal as c_int, Some(&self.real_first[signal]));
        }
    }
}

/// A handler of ours: on the stack for signals, with the signals of the mask blocked.
fn made(handler: usize, mask: u64) -> Action {
    let flags = (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER) as u64 | RESTORER;
    Action { handler, flags, restorer: waylay_control_return_from_signal as *const () as usize, mask }
}

core::arch::global_asm!(
    ".text",
    ".hidden waylay_control_return_from_signal",
    ".globl waylay_control_return_from_signal",
    ".type waylay_control_return_from_signal,@function",
    "waylay_control_return_from_signal:",
    "mov eax, 15",
    "syscall",
    ".size waylay_control_return_from_signal, . - waylay_control_return_from_signal",
);

unsafe extern "C" {
    fn waylay_control_return_from_signal();
}

fn exchange(signal: c_int, action: Option<&Action>) -> Action {
    let mut old = Action::default();
    let new = action.map_or(0, |action| core::ptr::from_ref(action) as usize);
    // SAFETY: both point at structures of the kernel's layout, or are null.
    unsafe { sys::call(libc::SYS_rt_sigaction, [signal as usize, new, &raw mut old as usize, 8, 0, 0]) };
    old
}

unsafe extern "C" fn on_fatal(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the signal was raised by the thread that it came to.
    unsafe {
        if (*keeper()).is_running() {
            finish(End::Status(signal));
        }
        // A fault of ours: the process dies of it, and the run is made elsewhere.
        let at = (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize];
        say(format_args!("signal {signal} at {at:#x} between two restored runs"));
        let default = Action::default();
        exchange(signal, Some(&default));
    }
}
