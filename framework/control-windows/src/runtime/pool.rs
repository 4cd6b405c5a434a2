//! Kernel threads that are used again: creating one takes longer than a schedule.
//!
//! In a host, where runs are repeated, a logical thread gets a kernel thread of the pool if it asks for nothing special.
//! For the program it begins and ends like any other: what modules do at the beginning and the end of a thread is done,
//! and what it left in slots of the thread is gone ([`renewal`]). A parked thread waits for the baton of whoever uses it
//! next, so that to begin a thread costs no hand-over.

use core::arch::global_asm;
use core::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use waylay_runtime::handover::resumed;
use windows_sys::Win32::Foundation::{DUPLICATE_SAME_ACCESS, DuplicateHandle, HANDLE};
use windows_sys::Win32::System::Threading::{
    CreateThread, GetCurrentProcess, STACK_SIZE_PARAM_IS_A_RESERVATION,
};

use super::logical::{Logical, Routine};
use super::{Token, lifecycle, outside, renewal};
use crate::me::{set_me, watch_end};
use crate::sys::Signal;

/// Address space for the stack of each, which is what a thread of the program may ask for.
const STACK: usize = 8 << 20;

/// One kernel thread of the pool.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(super) baton: Signal,
    /// Its kernel thread has reached its place.
    started: Signal,
    handle: HANDLE,
    number: u32,
    /// How many were made before it.
    made: usize,
    /// Whom it runs for.
    user: *mut Logical,
    /// Where its stack was before the program's routine.
    stack: usize,
    /// It has run for somebody already.
    used: bool,
}

/// All threads of the pool by their numbers, those that can be used, and those that were used in this run: handles of who
/// used one may still be about. Threads beside the schedule look here, too.
struct Pool {
    all: Vec<u32>,
    parked: Vec<*mut Worker>,
    spent: Vec<*mut Worker>,
}

// SAFETY: workers live as long as the process, and the lock of the pool decides who uses one.
unsafe impl Send for Pool {}

static POOL: Mutex<Pool> = Mutex::new(Pool { all: Vec::new(), parked: Vec::new(), spent: Vec::new() });

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the thread with this number is one of the pool.
pub(crate) fn has(number: u32) -> bool {
    pool().all.contains(&number)
}

/// Whether it is one of the pool that somebody uses.
pub(crate) fn is_busy(number: u32) -> bool {
    let pool = pool();
    // SAFETY: workers live as long as the process; their numbers never change.
    let idle = pool.parked.iter().chain(&pool.spent).any(|&worker| unsafe { (*worker).number } == number);
    !idle && pool.all.contains(&number)
}

/// A run begins: what the last one used can be used again.
pub(super) fn renew() {
    let mut pool = pool();
    let mut spent = core::mem::take(&mut pool.spent);
    pool.parked.append(&mut spent);
    // The first comes out first: a thread of this run has the stack that the thread with its number had in the last one, and
    // would have in a process that begins with it.
    // SAFETY: workers live as long as the process; what they are never changes.
    pool.parked.sort_unstable_by_key(|&worker| core::cmp::Reverse(unsafe { (*worker).made }));
}

/// Whether there is any: most processes have none.
pub(crate) fn is_empty() -> bool {
    pool().all.is_empty()
}

/// Gives a logical thread a kernel thread of the pool, and the program a handle of it: null when it has to have one of
/// its own.
///
/// # Safety
/// The thread lives as long as the run.
pub(super) unsafe fn employ(me: &mut Token, thread: *mut Logical, stack: usize) -> HANDLE {
    // SAFETY: by the caller's promise; a worker that is parked, or was just made, is used by nobody else.
    unsafe {
        if stack > STACK {
            return core::ptr::null_mut();
        }
        let parked = pool().parked.pop();
        let worker = parked.unwrap_or_else(|| make(me));
        if worker.is_null() {
            return core::ptr::null_mut();
        }
        let (process, mut handle) = (GetCurrentProcess(), core::ptr::null_mut());
        if DuplicateHandle(process, (*worker).handle, process, &mut handle, 0, 0, DUPLICATE_SAME_ACCESS) == 0
        {
            pool().parked.push(worker);
            return core::ptr::null_mut();
        }
        (*worker).user = thread;
        (*thread).worker = worker;
        (*thread).number = (*worker).number;
        handle
    }
}

fn make(me: &mut Token) -> *mut Worker {
    let worker = Box::into_raw(Box::new(Worker {
        baton: Signal::new(),
        started: Signal::new(),
        handle: core::ptr::null_mut(),
        number: 0,
        made: pool().all.len(),
        user: core::ptr::null_mut(),
        stack: 0,
        used: false,
    }));
    // SAFETY: the worker lives as long as its thread, which waits at once.
    unsafe {
        let flags = STACK_SIZE_PARAM_IS_A_RESERVATION;
        let handle =
            CreateThread(core::ptr::null(), STACK, Some(live), worker.cast(), flags, &mut (*worker).number);
        if handle.is_null() {
            drop(Box::from_raw(worker));
            return core::ptr::null_mut();
        }
        (*worker).handle = handle;
        if !(*worker).started.wait_for(lifecycle::BEGINNING) {
            me.run().note_uncontrolled();
        }
        outside::take_letters(me, (*worker).number);
        pool().all.push((*worker).number);
        worker
    }
}

/// What a thread of the pool does all its life.
unsafe extern "system" fn live(worker: *mut c_void) -> u32 {
    let worker = worker.cast::<Worker>();
    // SAFETY: the worker lives as long as its thread.
    unsafe { (*worker).started.raise() };
    loop {
        // SAFETY: the worker lives as long as its thread. Whoever raises the baton passes the token, and has put a logical
        // thread there.
        unsafe {
            (*worker).baton.wait();
            let thread = (*worker).user;
            let me = Token::held_by(thread);
            resumed(me);
            if core::mem::replace(&mut (*worker).used, true) {
                renewal::begin();
            }
            if let Some(routine) = (*thread).routine {
                watch_end();
                set_me(thread);
                (*thread).result = waylay_control_call(routine, (*thread).argument, &mut (*worker).stack);
                set_me(core::ptr::null_mut());
            }
            renewal::end(&mut (*thread).slots);
            outside::take_letters(me, outside::NOBODY);
            (*worker).user = core::ptr::null_mut();
            pool().spent.push(worker);
            lifecycle::finish(me);
        }
    }
}

/// Ends the calling logical thread where it is, if it runs on a thread of the pool; else returns.
pub(super) fn leave(me: &mut Token, result: u32) {
    // SAFETY: who has the token lives. As at the end of a thread, nothing that lies above on the stack is cleaned up.
    unsafe {
        if !(*me.thread()).worker.is_null() {
            waylay_control_leave((*(*me.thread()).worker).stack, result);
        }
    }
}

unsafe extern "C" {
    /// Calls the routine, and notes where the stack is.
    fn waylay_control_call(routine: Routine, argument: *mut c_void, stack: *mut usize) -> u32;
    /// Returns from [`waylay_control_call`] with this result, wherever the calling thread is by now.
    fn waylay_control_leave(stack: usize, result: u32) -> !;
}

global_asm!(
    ".globl waylay_control_call",
    ".def waylay_control_call; .scl 2; .type 32; .endef",
    ".seh_proc waylay_control_call",
    "waylay_control_call:",
    "push rbp",
    ".seh_pushreg rbp",
    "push rbx",
    ".seh_pushreg rbx",
    "push rdi",
    ".seh_pushreg rdi",
    "push rsi",
    ".seh_pushreg rsi",
    "push r12",
    ".seh_pushreg r12",
    "push r13",
    ".seh_pushreg r13",
    "push r14",
    ".seh_pushreg r14",
    "push r15",
    ".seh_pushreg r15",
    // 32 bytes for the called function, 160 for ten registers, 8 so that the stack is a multiple of 16.
    "sub rsp, 200",
    ".seh_stackalloc 200",
    "movaps [rsp + 32], xmm6",
    ".seh_savexmm xmm6, 32",
    "movaps [rsp + 48], xmm7",
    ".seh_savexmm xmm7, 48",
    "movaps [rsp + 64], xmm8",
    ".seh_savexmm xmm8, 64",
    "movaps [rsp + 80], xmm9",
    ".seh_savexmm xmm9, 80",
    "movaps [rsp + 96], xmm10",
    ".seh_savexmm xmm10, 96",
    "movaps [rsp + 112], xmm11",
    ".seh_savexmm xmm11, 112",
    "movaps [rsp + 128], xmm12",
    ".seh_savexmm xmm12, 128",
    "movaps [rsp + 144], xmm13",
    ".seh_savexmm xmm13, 144",
    "movaps [rsp + 160], xmm14",
    ".seh_savexmm xmm14, 160",
    "movaps [rsp + 176], xmm15",
    ".seh_savexmm xmm15, 176",
    ".seh_endprologue",
    "mov [r8], rsp",
    "mov rax, rcx",
    "mov rcx, rdx",
    "call rax",
    "2:",
    "movaps xmm6, [rsp + 32]",
    "movaps xmm7, [rsp + 48]",
    "movaps xmm8, [rsp + 64]",
    "movaps xmm9, [rsp + 80]",
    "movaps xmm10, [rsp + 96]",
    "movaps xmm11, [rsp + 112]",
    "movaps xmm12, [rsp + 128]",
    "movaps xmm13, [rsp + 144]",
    "movaps xmm14, [rsp + 160]",
    "movaps xmm15, [rsp + 176]",
    "add rsp, 200",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rsi",
    "pop rdi",
    "pop rbx",
    "pop rbp",
    "ret",
    ".seh_endproc",
    ".globl waylay_control_leave",
    "waylay_control_leave:",
    "mov rsp, rcx",
    "mov eax, edx",
    "jmp 2b",
);
