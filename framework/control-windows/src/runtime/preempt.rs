//! Preempting a thread that computes without a step: a loop that waits for a plain variable.
//!
//! A kernel thread of ours looks now and then whether the thread that has the token has made a step. If it has used the
//! processor for a while without one, it is suspended; if it is in the program's own code, and not inside a library that may
//! hold a lock of its own, it is sent to a few instructions of ours that yield for it and go back. Time is that of the
//! processor, so that a thread that waits for a busy machine is not taken for one that computes. Real time takes part in such
//! a schedule, so the run is marked as partly controlled.

use core::arch::global_asm;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use waylay_patch::registers::ALL_REGISTERS;
use waylay_patch::{restore_registers, save_registers};
use waylay_runtime::point;
use windows_sys::Win32::Foundation::{CloseHandle, FILETIME, HANDLE};
use windows_sys::Win32::System::Diagnostics::Debug::{
    CONTEXT, CONTEXT_CONTROL_AMD64, GetThreadContext, SetThreadContext,
};
use windows_sys::Win32::System::Threading::{
    CreateThread, GetThreadTimes, OpenThread, ResumeThread, STACK_SIZE_PARAM_IS_A_RESERVATION, Sleep,
    SuspendThread, THREAD_GET_CONTEXT, THREAD_QUERY_INFORMATION, THREAD_SET_CONTEXT, THREAD_SUSPEND_RESUME,
};

use super::Token;
use super::platform::HOLDER;
use crate::me::{Block, Inside, me};
use crate::{interpose, patch};

/// Processor time without a step after which a thread is preempted, in the 100 ns of Windows: 20 ticks of 4 ms on Linux.
const WITHOUT_A_STEP: u64 = 800_000;
/// Address space for the stack of the one who looks.
const STACK: usize = 1 << 18;
/// Bytes of a thread's stack that are written from outside, and that functions may use without saying so: they have to be in
/// the page that the thread is in, because only it can make its stack larger.
const WRITTEN: u64 = 256;

/// Counts steps, for the one who looks.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// The system's number of the one who looks; 0: there is none.
static WATCHER: AtomicU32 = AtomicU32::new(0);
/// Every thread of the run has ended; and what the last one said.
static OVER: AtomicBool = AtomicBool::new(false);
static RESULT: AtomicU32 = AtomicU32::new(0);

/// The program itself is ours, and only what it loads is the user's.
static HOST: AtomicBool = AtomicBool::new(false);

/// Somebody begins to look, every so many milliseconds. Nobody does if that is 0, or if the processor cannot save all its
/// registers at once.
pub(super) fn start(milliseconds: u32, host: bool) {
    if milliseconds == 0 || WATCHER.load(Ordering::Relaxed) != 0 || !patch::can_save_all() {
        return;
    }
    HOST.store(host, Ordering::Relaxed);
    let mut number = 0;
    // SAFETY: the routine takes a number, and stays loaded.
    unsafe {
        let period = milliseconds as usize as *const c_void;
        let flags = STACK_SIZE_PARAM_IS_A_RESERVATION;
        let thread = CreateThread(core::ptr::null(), STACK, Some(watch), period, flags, &mut number);
        if !thread.is_null() {
            CloseHandle(thread);
        }
    }
    WATCHER.store(number, Ordering::Relaxed);
}

/// Whether this is the number of the one who looks, who is no outsider.
pub(super) fn is_watcher(number: u32) -> bool {
    WATCHER.load(Ordering::Relaxed) == number
}

/// A step is made.
#[inline]
pub(super) fn note_step() {
    // Only the holder of the token writes.
    STEPS.store(STEPS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Every thread of the run has ended: nobody has to look, and the process ends as the last of them says.
pub(super) fn end(result: u32) {
    RESULT.store(result, Ordering::Relaxed);
    OVER.store(true, Ordering::Release);
}

/// What the one who looks has seen.
#[derive(Default)]
struct Seen {
    number: u32,
    steps: u64,
    /// Processor time of the thread when it was seen at this step for the second time.
    begun: Option<u64>,
}

unsafe extern "system" fn watch(milliseconds: *mut c_void) -> u32 {
    let mut seen = Seen::default();
    while !OVER.load(Ordering::Acquire) {
        // SAFETY: plain call.
        unsafe { Sleep(milliseconds as usize as u32) };
        let (number, steps) = (HOLDER.load(Ordering::Relaxed), STEPS.load(Ordering::Relaxed));
        if number == 0 || (seen.number, seen.steps) != (number, steps) {
            seen = Seen { number, steps, begun: None };
            continue;
        }
        let rights =
            THREAD_QUERY_INFORMATION | THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_SET_CONTEXT;
        // SAFETY: the handle is closed below.
        let thread = unsafe { OpenThread(rights, 0, number) };
        if thread.is_null() {
            continue;
        }
        let used = processor_time(thread);
        if used.saturating_sub(*seen.begun.get_or_insert(used)) >= WITHOUT_A_STEP {
            seen.begun = Some(used);
            interrupt(thread, steps);
        }
        // SAFETY: just opened.
        unsafe { CloseHandle(thread) };
    }
    RESULT.load(Ordering::Relaxed)
}

fn processor_time(thread: HANDLE) -> u64 {
    let mut times = [FILETIME::default(); 4];
    let [created, exited, kernel, user] = &mut times;
    // SAFETY: four valid places for the answers.
    unsafe { GetThreadTimes(thread, created, exited, kernel, user) };
    let ticks = |time: &FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    ticks(&times[2]) + ticks(&times[3])
}

#[repr(align(16))]
struct Aligned(CONTEXT);

/// Makes a thread yield, if it is in code of the program's own.
fn interrupt(thread: HANDLE, steps: u64) {
    // Before it is suspended: it may be inside the heap.
    let own = patch::code_of(&interpose::changed_modules(), HOST.load(Ordering::Relaxed));
    let Some(block) = Block::of(thread) else { return };
    let mut context = Aligned(CONTEXT { ContextFlags: CONTEXT_CONTROL_AMD64, ..CONTEXT::default() });
    // SAFETY: the context is aligned and lives across the calls. While the thread is suspended nothing is called that could
    // wait for it.
    unsafe {
        if SuspendThread(thread) == u32::MAX {
            return;
        }
        let known = GetThreadContext(thread, &mut context.0) != 0;
        let at = &mut context.0;
        let inside = own.iter().any(|&(start, end)| (start..end).contains(&(at.Rip as usize)));
        let identity = block.identity();
        let may = known
            && inside
            && !patch::is_on_the_way(at.Rip as usize)
            && STEPS.load(Ordering::Relaxed) == steps
            && !identity.is_null()
            && (*identity).unpreemptible == 0
            && block.has_on_stack(at.Rsp)
            && at.Rsp % PAGE > WRITTEN;
        if may {
            // As if it had made a call, below what functions may use without saying so.
            let stack = at.Rsp - RED_ZONE - 8;
            (stack as *mut u64).write(at.Rip);
            (at.Rsp, at.Rip) = (stack, waylay_control_interrupted as *const () as u64);
            SetThreadContext(thread, &context.0);
        }
        ResumeThread(thread);
    }
}

const PAGE: u64 = 4096;
const RED_ZONE: u64 = 128;

/// Lets others run. The system has a say in where this happens.
extern "C" fn give_way() {
    let me = me();
    if me.is_null() {
        return;
    }
    // SAFETY: the thread was interrupted in program code, under control, so it has the token.
    unsafe {
        let _inside = Inside::enter(me);
        let me = Token::held_by(me);
        me.run().note_uncontrolled();
        point::give_way(me);
    }
}

unsafe extern "C" {
    /// Where an interrupted thread goes on: keeps every register, calls [`give_way`] and goes back.
    fn waylay_control_interrupted();
}

// What was interrupted lies where a call would have left it, and comes back with what was skipped below the stack pointer.
global_asm!(
    ".globl waylay_control_interrupted",
    ".def waylay_control_interrupted; .scl 2; .type 32; .endef",
    ".seh_proc waylay_control_interrupted",
    "waylay_control_interrupted:",
    "pushfq",
    "cld",
    "push rax",
    "push rcx",
    "push rdx",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    ".seh_stackalloc 64",
    "push rbp",
    ".seh_pushreg rbp",
    "mov rbp, rsp",
    ".seh_setframe rbp, 0",
    ".seh_endprologue",
    "and rsp, -64",
    // Windows gives a stack its memory page by page, as it is touched.
    "sub rsp, 2048",
    "mov [rsp], rax",
    "sub rsp, 2048",
    save_registers!(),
    "sub rsp, 64",
    "fnstcw [rsp + 32]",
    "fninit",
    "fldcw [rsp + 32]",
    "call {give_way}",
    "add rsp, 64",
    restore_registers!(),
    "mov rsp, rbp",
    "pop rbp",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdx",
    "pop rcx",
    "pop rax",
    "popfq",
    "ret {red_zone}",
    ".seh_endproc",
    give_way = sym give_way,
    red_zone = const RED_ZONE,
    state = const ALL_REGISTERS,
);
