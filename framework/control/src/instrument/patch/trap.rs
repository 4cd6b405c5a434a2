//! Breakpoints, where no jump fits: a signal, and the step is made in its handler.
//!
//! The kernel ends a process that comes to a breakpoint while the signal is blocked, so it never is, whatever the program
//! says; and a handler of the program's is called from ours.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use iced_x86::{Instruction, OpKind, Register};

use super::stub::FROM_KERNEL;
use super::table::at_site;
use crate::me::me;
use crate::sys;

/// A breakpoint.
struct Trap {
    /// Where it is.
    at: usize,
    site: u32,
    /// The instruction that it replaced, elsewhere.
    copy: usize,
    /// Base and index as places in the saved registers, scale, and what is added.
    base: Option<usize>,
    index: Option<usize>,
    scale: i64,
    displacement: i64,
}

struct Slot(UnsafeCell<Vec<Trap>>);

// SAFETY: changed while modules are patched, by one thread; those that hit a breakpoint only read.
unsafe impl Sync for Slot {}

static TRAPS: Slot = Slot(UnsafeCell::new(Vec::new()));

/// Whether breakpoints are caught: from the beginning, because each is made when it is needed first, and the program may have
/// set its own action and blocked the signal by then.
static CAUGHT: AtomicBool = AtomicBool::new(false);

/// What the program wants to be done at breakpoints of its own.
struct Wish(UnsafeCell<Option<libc::sigaction>>);

// SAFETY: changed by the holder of the token, or before there are threads.
unsafe impl Sync for Wish {}

static WISH: Wish = Wish(UnsafeCell::new(None));

/// A set of signals that the program blocks, as the kernel is to have it.
pub(crate) fn to_block(mask: u64) -> u64 {
    let signal = if DEBUGGED.load(Ordering::Relaxed) { libc::SIGILL } else { libc::SIGTRAP };
    if CAUGHT.load(Ordering::Relaxed) { mask & !(1 << (signal - 1)) } else { mask }
}

/// The program's own action for the signal of breakpoints; `None` when it is the kernel's business because we have none.
///
/// # Safety
/// As for `sigaction`.
pub(crate) unsafe fn set_action(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> Option<c_int> {
    if signal != libc::SIGTRAP || !CAUGHT.load(Ordering::Relaxed) || DEBUGGED.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: by the caller's promise; all zero is the default action.
    unsafe {
        let wish = &mut *WISH.0.get();
        if !old.is_null() {
            old.write(wish.unwrap_or(core::mem::zeroed()));
        }
        if !new.is_null() {
            *wish = Some(new.read());
        }
    }
    Some(0)
}

/// Whether a debugger has the signal of breakpoints for its own.
static DEBUGGED: AtomicBool = AtomicBool::new(false);

/// What a breakpoint is. Under a debugger an instruction of one byte that no processor has: it stops at any other.
pub(super) fn byte() -> u8 {
    if DEBUGGED.load(Ordering::Relaxed) { 0x06 } else { 0xcc }
}

/// Catches breakpoints from now on.
pub(super) fn install(debugged: bool) {
    if debugged {
        // Faults are caught in any case, and this is one of them.
        DEBUGGED.store(true, Ordering::Relaxed);
        return CAUGHT.store(true, Ordering::Relaxed);
    }
    // SAFETY: all zero is a valid structure, filled in below; the handler stays loaded.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_trap as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_RESTART;
        libc::sigaction(libc::SIGTRAP, &raw const action, core::ptr::null_mut());
    }
    CAUGHT.store(true, Ordering::Relaxed);
    // It may have been blocked before there was a run, or by whoever started the program.
    sys::swap_signal_mask(to_block(sys::signal_mask()));
}

/// Notes a breakpoint that will be made; false when the address of its access cannot be told.
pub(super) fn add(instruction: &Instruction, site: u32, copy: usize) -> bool {
    let memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    let (mut base, mut index, mut displacement) = (None, None, 0);
    if memory {
        displacement = instruction.memory_displacement64() as i64;
        for (register, place) in
            [(instruction.memory_base(), &mut base), (instruction.memory_index(), &mut index)]
        {
            match register {
                Register::None | Register::RIP => {}
                register => match saved_at(register) {
                    Some(found) => *place = Some(found),
                    None => return false,
                },
            }
        }
    }
    let scale = i64::from(instruction.memory_index_scale());
    let trap = Trap { at: instruction.ip() as usize, site, copy, base, index, scale, displacement };
    // SAFETY: see `Slot`.
    unsafe {
        let traps = &mut *TRAPS.0.get();
        let place = traps.partition_point(|other| other.at < trap.at);
        traps.insert(place, trap);
    }
    true
}

/// Where the kernel saves a register.
fn saved_at(register: Register) -> Option<usize> {
    let place = match register {
        Register::RAX => libc::REG_RAX,
        Register::RBX => libc::REG_RBX,
        Register::RCX => libc::REG_RCX,
        Register::RDX => libc::REG_RDX,
        Register::RSI => libc::REG_RSI,
        Register::RDI => libc::REG_RDI,
        Register::RBP => libc::REG_RBP,
        Register::RSP => libc::REG_RSP,
        Register::R8 => libc::REG_R8,
        Register::R9 => libc::REG_R9,
        Register::R10 => libc::REG_R10,
        Register::R11 => libc::REG_R11,
        Register::R12 => libc::REG_R12,
        Register::R13 => libc::REG_R13,
        Register::R14 => libc::REG_R14,
        Register::R15 => libc::REG_R15,
        _ => return None,
    };
    Some(place as usize)
}

unsafe extern "C" fn on_trap(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: as the kernel calls us.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        // It has been executed.
        let at = registers[libc::REG_RIP as usize] as usize - 1;
        if !step_at(at, registers) {
            not_ours(signal, info, context);
        }
    }
}

/// Makes the step of the breakpoint at this address and sends the thread on; false when there is none.
///
/// # Safety
/// The registers are those of a thread that the kernel interrupted there, in a handler that has not returned.
pub(super) unsafe fn step_at(at: usize, registers: &mut [i64; 23]) -> bool {
    // SAFETY: by the caller's promise; the interrupted code is the program's, which may be preempted at the instruction.
    unsafe {
        let traps = &*TRAPS.0.get();
        let Ok(place) = traps.binary_search_by_key(&at, |trap| trap.at) else { return false };
        let trap = &traps[place];
        let mut next = trap.copy;
        if !me().is_null() {
            let part = |place: Option<usize>| place.map_or(0, |place| registers[place]);
            let address = part(trap.base).wrapping_add(part(trap.index).wrapping_mul(trap.scale));
            let saved = registers.as_mut_ptr() as usize | FROM_KERNEL;
            let errno = *libc::__errno_location();
            let [count, source] = [libc::REG_RCX, libc::REG_RSI].map(|place| registers[place as usize] as usize);
            let done = at_site(trap.site, address.wrapping_add(trap.displacement) as usize, count, source, saved);
            if done > 0 {
                next = at + done;
            }
            *libc::__errno_location() = errno;
        }
        registers[libc::REG_RIP as usize] = next as i64;
    }
    true
}

/// What happens to a program that nobody debugs.
unsafe fn not_ours(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    type Informed = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    // SAFETY: the program named a function of the kind that its flags say.
    unsafe {
        match *WISH.0.get() {
            Some(action) if action.sa_sigaction == libc::SIG_IGN => {}
            Some(action) if action.sa_sigaction != libc::SIG_DFL => {
                let handler: Informed = core::mem::transmute(action.sa_sigaction);
                // One that takes the number only finds it in the same place.
                handler(signal, info, context);
            }
            _ => {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
    }
}
