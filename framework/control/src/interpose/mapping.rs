//! Mapping memory and handling signals in runs that will be undone: what the filter of system calls would stop, and note,
//! is noted without being stopped first, which costs more than the call. Languages make some of these calls for every
//! thread. Elsewhere libc's functions are called.

use core::arch::naked_asm;
use core::ffi::c_void;

use libc::{c_int, off_t};

use waylay_accesses::Frees;

use super::{fail, own_faults};
use crate::instrument::{delay, edge};
use crate::instrument::patch::trap;
use crate::me::{Unmanaged, me};
use crate::runtime::{Token, calls, signals};
use crate::snapshot;
use crate::sys;

mod real {
    use super::*;
    crate::real::real! {
        mmap(at: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void;
        munmap(at: *mut c_void, len: usize) -> c_int;
        mremap(at: *mut c_void, old: usize, new: usize, flags: c_int, to: *mut c_void) -> *mut c_void;
        mprotect(at: *mut c_void, len: usize, prot: c_int) -> c_int;
        sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
        signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t;
    }
}

/// What libc makes of the kernel's answer.
fn answered(result: isize) -> isize {
    if (-4095..0).contains(&result) {
        return fail(-result as i32) as isize;
    }
    result
}

/// # Safety
/// As for libc's function of this name.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn mmap(
    at: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    let args = [at as usize, len, prot as usize, flags as usize, fd as usize, offset as usize];
    // SAFETY: the caller's promise to us is the one it would have made to libc.
    let block = unsafe {
        match snapshot::carry_out(libc::SYS_mmap, args) {
            Some(result) => answered(result) as *mut c_void,
            None => real::mmap(at, len, prot, flags, fd, offset),
        }
    };
    if edge::follows() && block != libc::MAP_FAILED {
        edge::mapped(block as usize, len);
        let shared = flags & libc::MAP_TYPE != libc::MAP_PRIVATE && flags & libc::MAP_ANONYMOUS == 0;
        if let Some(file) = shared.then(|| file_of(fd)).flatten() {
            edge::mapped_file((block as usize, len), file, offset as u64);
        }
    }
    block
}

/// What tells the file of a descriptor from others: its device and its number there.
fn file_of(fd: c_int) -> Option<(u64, u64)> {
    let mut status = core::mem::MaybeUninit::<libc::stat>::uninit();
    let arguments = [fd as usize, status.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: the kernel fills the record when it answers with 0; libc's errno is left alone.
    unsafe {
        (sys::call(libc::SYS_fstat, arguments) == 0).then(|| {
            let status = status.assume_init();
            (status.st_dev, status.st_ino)
        })
    }
}

/// # Safety
/// As for libc's function of this name.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn mmap64(
    at: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: off_t,
) -> *mut c_void {
    // SAFETY: passed on; offsets have 64 bits anyway.
    unsafe { mmap(at, len, prot, flags, fd, offset) }
}

/// Goes on in [`unmap`], with the address to return to as a third argument: it says whose code made the call.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn munmap(at: *mut c_void, len: usize) -> c_int {
    naked_asm!("mov rdx, [rsp]", "jmp {unmap}", unmap = sym unmap)
}

unsafe extern "C-unwind" fn unmap(at: *mut c_void, len: usize, caller: usize) -> c_int {
    gives_back((at as usize, len), caller);
    // SAFETY: the caller's promise to us is the one it would have made to libc.
    unsafe {
        match snapshot::carry_out(libc::SYS_munmap, [at as usize, len, 0, 0, 0, 0]) {
            Some(result) => answered(result) as c_int,
            None => real::munmap(at, len),
        }
    }
}

/// Memory is about to be unmapped by code at `caller`: a free, which is a step where it was seen to conflict. (Languages
/// unmap something at the end of every thread that nobody else knows.)
fn gives_back(block: (usize, usize), caller: usize) {
    delay::release(block);
    if edge::follows() && block.1 > 0 {
        let how = match calls::frees(caller) {
            Frees::AreNoSteps => Frees::AreNoSteps,
            _ => Frees::MayBeSteps,
        };
        edge::before_free(block, caller, how);
        edge::freed(block, caller, how);
    }
}

/// Goes on in [`remap`], as [`munmap`] does.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(naked)]
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn mremap(
    at: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    naked_asm!("mov r9, [rsp]", "jmp {remap}", remap = sym remap)
}

unsafe extern "C-unwind" fn remap(
    at: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    to: *mut c_void,
    caller: usize,
) -> *mut c_void {
    // What may move goes away as a whole, whether or not it does: that is not known before.
    let kept = if flags & libc::MREMAP_MAYMOVE != 0 { 0 } else { new.min(old) };
    gives_back((at as usize + kept, old - kept), caller);
    // SAFETY: the caller's promise to us is the one it would have made to libc.
    let block = unsafe { real::mremap(at, old, new, flags, to) };
    if edge::follows() && block != libc::MAP_FAILED {
        edge::mapped(block as usize, new);
    }
    block
}

/// # Safety
/// As for libc's function of this name.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn mprotect(at: *mut c_void, len: usize, prot: c_int) -> c_int {
    // SAFETY: the caller's promise to us is the one it would have made to libc.
    unsafe {
        match snapshot::carry_out(libc::SYS_mprotect, [at as usize, len, prot as usize, 0, 0, 0]) {
            Some(result) => answered(result) as c_int,
            None => real::mprotect(at, len, prot),
        }
    }
}

/// # Safety
/// As for libc's function of this name.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's promise to us is the one it would have made to libc; a thread of the run that runs has the token.
    unsafe {
        let result = set_action(signal, new, old);
        let thread = me();
        if !new.is_null() && !thread.is_null() {
            let _inside = Unmanaged::enter();
            signals::actions_changed(Token::held_by(thread));
        }
        result
    }
}

/// For faults, as `sigaction`, so that the handler is begun as one that was named there. libc's own does not call ours.
///
/// # Safety
/// As for libc's function of this name.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: the caller's promise to us is the one it would have made to libc; all zero is a valid action.
    unsafe {
        if !own_faults::is_fault(signal) || handler == libc::SIG_ERR {
            return real::signal(signal, handler);
        }
        let (mut new, mut old): (libc::sigaction, libc::sigaction) = (core::mem::zeroed(), core::mem::zeroed());
        (new.sa_sigaction, new.sa_flags) = (handler, libc::SA_RESTART);
        libc::sigaddset(&raw mut new.sa_mask, signal);
        match sigaction(signal, &raw const new, &raw mut old) {
            0 => old.sa_sigaction,
            _ => libc::SIG_ERR,
        }
    }
}

/// # Safety
/// As for libc's function.
unsafe fn set_action(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        if let Some(done) = trap::set_action(signal, new, old) {
            return done;
        }
        if !own_faults::is_fault(signal) {
            return set_kernels_action(signal, new, old);
        }
        let (before, taken) = own_faults::take(signal, new.as_ref());
        let done = set_kernels_action(signal, taken.as_ref().map_or(new, core::ptr::from_ref), old);
        if done == 0 && let Some(old) = old.as_mut() {
            before.show(old);
        }
        done
    }
}

/// # Safety
/// As for libc's function.
unsafe fn set_kernels_action(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        let open = new.as_ref().map(|action| {
            let mut open = *action;
            let mask = (&raw mut open.sa_mask).cast::<u64>();
            mask.write_unaligned(trap::to_block(mask.read_unaligned()));
            open
        });
        let new = open.as_ref().map_or(new, core::ptr::from_ref);
        // libc does not let programs touch what it needs itself.
        if !snapshot::is_on() || (32..=33).contains(&signal) {
            return real::sigaction(signal, new, old);
        }
        let kernels = new.as_ref().map(snapshot::Action::of_libc);
        let mut before = snapshot::Action::default();
        let given = kernels.as_ref().map_or(0, |action| core::ptr::from_ref(action) as usize);
        let args = [signal as usize, given, &raw mut before as usize, size_of::<u64>(), 0, 0];
        match snapshot::carry_out(libc::SYS_rt_sigaction, args) {
            Some(0) => {
                if let Some(old) = old.as_mut() {
                    before.to_libc(old);
                }
                0
            }
            Some(result) => answered(result) as c_int,
            None => real::sigaction(signal, new, old),
        }
    }
}
