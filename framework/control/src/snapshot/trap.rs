//! Where system calls that the filter stopped arrive: they are made and noted, or end the run.

use core::ffi::{c_int, c_void};

use super::policy::{Verdict, verdict};
use super::signals::Action;
use super::{End, Keeper, finish, keeper};
use crate::message::say;
use crate::sys;

const ARGUMENTS: [c_int; 6] =
    [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9];

/// The signal that libc keeps for cancellation.
const CANCEL: c_int = 32;

/// Handles SIGSYS.
pub(super) unsafe extern "C" fn on_system_call(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a whole context. The library was interrupted at a system call of the program's or of
    // libc's, so it is in no operation on the keeper.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let keeper = keeper();
        let number = registers[libc::REG_RAX as usize];
        if !(*keeper).is_running() {
            let at = registers[libc::REG_RIP as usize];
            say(format_args!("system call {number} at {at:#x} outside of a restored run"));
            sys::exit_now(3);
        }
        let args = ARGUMENTS.map(|register| registers[register as usize] as usize);
        let mask = (&raw mut (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<u64>();
        match carry_out(&mut *keeper, number, args, &mut *mask) {
            Ok(result) => registers[libc::REG_RAX as usize] = result as i64,
            Err(end) => finish(end),
        }
    }
}

/// Carries a system call out that did not come by the filter, because the library made it for the program.
///
/// # Safety
/// The arguments are those of a call that the program makes; no signal mask is among what it changes.
pub(super) unsafe fn directly(keeper: &mut Keeper, number: i64, args: [usize; 6]) -> isize {
    // SAFETY: by the caller's promise.
    unsafe { carry_out(keeper, number, args, &mut 0).unwrap_or_else(|end| finish(end)) }
}

/// # Safety
/// The arguments are those of a call that the program makes.
unsafe fn carry_out(
    keeper: &mut Keeper,
    number: i64,
    args: [usize; 6],
    mask: &mut u64,
) -> Result<isize, End> {
    let no = End::Refused;
    let Keeper { journal, image, signals, .. } = keeper;
    // SAFETY: by the caller's promise; what is changed is noted first.
    unsafe {
        let make = || sys::call(number, args);
        match verdict(number, &args, &journal.before) {
            Verdict::Make => Ok(make()),
            Verdict::Opens => {
                let fd = make();
                if fd >= 0 && !journal.opened.add(fd as usize) {
                    return Err(no("opens too many descriptors"));
                }
                if (0..=2).contains(&fd) {
                    return Err(no("replaces a descriptor that was open before main"));
                }
                Ok(fd)
            }
            Verdict::OpensTwo(place) => {
                let result = make();
                if result >= 0 {
                    for fd in *(args[place] as *const [c_int; 2]) {
                        if !journal.opened.add(fd as usize) {
                            return Err(no("opens too many descriptors"));
                        }
                        if fd <= 2 {
                            return Err(no("replaces a descriptor that was open before main"));
                        }
                    }
                }
                Ok(result)
            }
            Verdict::ClosesStandard => {
                journal.will_close(args[0]).map_err(no)?;
                Ok(make())
            }
            Verdict::Closes => {
                journal.opened.remove(args[0]);
                Ok(make())
            }
            Verdict::MovesInput => {
                journal.will_move_input();
                Ok(make())
            }
            Verdict::Maps => {
                let fixed = args[3] & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) as usize != 0;
                if fixed && !journal.is_new(image, args[0], args[1]) {
                    // Reserved addresses are put to use like that; what was there must be something that comes back.
                    journal.will_change(image, args[0], args[1]).map_err(no)?;
                    return Ok(make());
                }
                let at = make();
                if at >= 0 {
                    journal.mapped(at as usize, args[1]).map_err(no)?;
                }
                Ok(at)
            }
            Verdict::Unmaps if journal.unmapped(args[0], args[1]) => Ok(make()),
            Verdict::Unmaps | Verdict::Protects => {
                journal.will_change(image, args[0], args[1]).map_err(no)?;
                Ok(make())
            }
            Verdict::Remaps => {
                if !journal.is_new(image, args[0], args[1].max(1)) {
                    return Err(no("moves memory of the snapshot"));
                }
                let at = make();
                if at >= 0 {
                    journal.mapped(at as usize, args[2]).map_err(no)?;
                }
                Ok(at)
            }
            Verdict::Advises => advise(keeper, args, make),
            Verdict::Breaks => journal.set_break(args[0]).map(|end| end as isize).map_err(no),
            Verdict::SetsAction => {
                let signal = args[0] as c_int;
                if !(1..=64).contains(&signal) || signal == libc::SIGKILL || signal == libc::SIGSTOP {
                    return Ok(make());
                }
                let old = signals.get(signal).copied().unwrap_or_default();
                if args[1] != 0 {
                    let action = (args[1] as *const Action).read_unaligned();
                    signals.set(signal, &action).ok_or(no("handles a signal that this needs"))?;
                }
                if args[2] != 0 {
                    (args[2] as *mut Action).write_unaligned(old);
                }
                Ok(0)
            }
            Verdict::Masks => {
                let old = *mask;
                if args[1] != 0 {
                    let given = (args[1] as *const u64).read_unaligned();
                    *mask = masked(old, args[0] as c_int, given).ok_or(no("changes its signal mask oddly"))?;
                }
                if args[2] != 0 {
                    (args[2] as *mut u64).write_unaligned(old);
                }
                Ok(0)
            }
            Verdict::Names => {
                journal.named();
                Ok(make())
            }
            Verdict::Ends(status) => Err(End::Status((status & 0xff) << 8)),
            Verdict::Raises(signal) if signals.ends(signal) => Err(End::Status(signal)),
            // libc's way to wake a thread that is to end: threads look for that at every step by themselves.
            Verdict::Raises(signal) if signal == CANCEL => Ok(0),
            Verdict::Raises(_) => Err(no("sends a signal")),
            Verdict::Refused(why) => Err(no(why)),
        }
    }
}

/// The signal mask after a change. It is the one that the handler returns to; SIGSYS is never in it.
fn masked(old: u64, how: c_int, given: u64) -> Option<u64> {
    const OURS: u64 = 1 << (libc::SIGSYS - 1);
    let new = match how {
        libc::SIG_BLOCK => old | given,
        libc::SIG_UNBLOCK => old & !given,
        libc::SIG_SETMASK => given,
        _ => return None,
    };
    Some(new & !OURS)
}

/// # Safety
/// As for [`carry_out`].
unsafe fn advise(keeper: &mut Keeper, args: [usize; 6], make: impl Fn() -> isize) -> Result<isize, End> {
    let Keeper { journal, image, .. } = keeper;
    if journal.is_new(image, args[0], args[1].max(1)) {
        return Ok(make());
    }
    match args[2] as c_int {
        // Memory that is dropped reads as zero; here it would read as the image.
        libc::MADV_DONTNEED => {
            journal.will_change(image, args[0], args[1]).map_err(End::Refused)?;
            // SAFETY: the program gives the content up, and the range was checked to be of the image or reserved.
            unsafe { zero(image, args[0], args[0] + args[1]) };
            Ok(0)
        }
        libc::MADV_NORMAL
        | libc::MADV_RANDOM
        | libc::MADV_SEQUENTIAL
        | libc::MADV_WILLNEED
        | libc::MADV_FREE
        | libc::MADV_HUGEPAGE
        | libc::MADV_NOHUGEPAGE => Ok(0),
        _ => Err(End::Refused("gives uncommon advice about memory")),
    }
}

/// Empties a range of the image's.
///
/// # Safety
/// The program gives the content up.
unsafe fn zero(image: &super::image::Image, low: usize, high: usize) {
    for piece in image.pieces_in(low, high).filter(|piece| piece.kind == super::maps::Kind::Image) {
        let (from, to) = (piece.low.max(low), piece.high.min(high));
        // SAFETY: pieces of the image are writable, unless the run protected them: then it dies of it, as it would have.
        unsafe { (from as *mut u8).write_bytes(0, to - from) };
    }
}
