//! Breakpoints, where no jump fits: a signal, and the step is made in its handler.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};

use iced_x86::{Instruction, OpKind, Register};

use super::stub::FROM_KERNEL;
use super::table::at_site;
use crate::me::me;

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

/// Catches breakpoints from now on.
pub(super) fn install() {
    // SAFETY: all zero is a valid structure, filled in below; the handler stays loaded.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_trap as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_RESTART;
        libc::sigaction(libc::SIGTRAP, &raw const action, core::ptr::null_mut());
    }
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

unsafe extern "C" fn on_trap(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a whole context; the interrupted code is the program's, which may be preempted at the
    // instruction.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let at = registers[libc::REG_RIP as usize] as usize - 1;
        let traps = &*TRAPS.0.get();
        let Ok(place) = traps.binary_search_by_key(&at, |trap| trap.at) else {
            // Not ours: what happens to a program that nobody debugs.
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
            return;
        };
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
}
