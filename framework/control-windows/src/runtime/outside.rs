//! Threads outside the schedule: made by the system, by its thread pool, or before control began.
//!
//! They run beside the logical threads and cannot be scheduled. What they do to objects that logical threads wait for is
//! posted here and taken up at the next choice; and as long as one of them lives, a state in which no logical thread can
//! run is not a deadlock yet. A run with such threads is marked as partly controlled.

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use waylay_control_protocol::Statement;
use waylay_runtime::inspect;
use waylay_runtime::outside::is_running;
pub(crate) use waylay_runtime::outside::{may_wait, set_running, waits};
use waylay_scheduler::{Choice, Key, Shares};
use windows_sys::Win32::Foundation::{CloseHandle, HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcessId, GetCurrentThreadId, WakeByAddressSingle};

use super::platform::{HOLDER, SHARED};
use super::{Token, pool, preempt};
use crate::sys;
use crate::watch::edge;

/// What was done to an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// It may be had again.
    Freed,
    /// The kernel object behind this handle changed.
    Signalled(usize),
    /// Up to this many of its waiters were woken.
    Woken(u32),
}

/// Real milliseconds between two looks while logical threads wait for outsiders.
const SLICE: u32 = 1;
/// Looks without any letter after which the outsiders are taken to wait for the program, not the other way round.
const LOOKS: u32 = 3000;

/// What was done to what, and the number of the thread that did it.
type Letter = (Key, Act, u32);

static BOX: Mutex<Vec<Letter>> = Mutex::new(Vec::new());
/// Counts letters, for the one who waits for them.
static POSTED: AtomicU32 = AtomicU32::new(0);

/// A thread outside the schedule did something to an object.
#[inline]
pub(crate) fn did(key: Key, act: Act) {
    if is_running() {
        post(key, act);
    }
}

/// A thread outside the schedule changed the kernel object behind a handle.
pub(crate) fn signalled(handle: HANDLE) {
    did(Key(0), Act::Signalled(handle as usize));
}

#[cold]
fn post(key: Key, act: Act) {
    // SAFETY: plain call.
    let mut from = unsafe { GetCurrentThreadId() };
    // A logical thread inside the library, which calls one that calls Windows.
    if from == HOLDER.load(Ordering::Relaxed) {
        from = OURSELVES;
    }
    BOX.lock().unwrap_or_else(PoisonError::into_inner).push((key, act, from));
    SHARED.attention.store(true, Ordering::Release);
    POSTED.fetch_add(1, Ordering::Release);
    // SAFETY: the address is only compared with those of waiting threads, never read.
    unsafe { WakeByAddressSingle(POSTED.as_ptr().cast()) };
}

/// Nobody's number, and that of the thread that holds the token.
pub(super) const NOBODY: u32 = 0;
const OURSELVES: u32 = u32::MAX;

/// Does what the letters say. Those from a thread that is `known` are none from outside: nobody else runs while a thread
/// begins or ends, so that what it does then comes at the same moment in every run.
#[cold]
pub(super) fn take_letters(me: &mut Token, known: u32) {
    let letters = core::mem::take(&mut *BOX.lock().unwrap_or_else(PoisonError::into_inner));
    for (key, act, from) in letters {
        if from != known && from != OURSELVES {
            edge::outsiders_took_part(me);
        }
        let run = me.run();
        match act {
            Act::Freed => run.sched.freed(key, Shares::ALL),
            Act::Signalled(handle) => run.system.handles.changed(handle as HANDLE, &mut run.sched),
            Act::Woken(number) => {
                run.sched.wake(key, number, Shares::ALL);
            }
        }
    }
}

/// Nobody can run. Looks whether the system has changed that meanwhile, and waits for outsiders, if there are any.
#[cold]
pub(super) fn ask_outsiders(me: &mut Token, choice: Choice) -> Choice {
    if choice != Choice::Deadlock {
        return choice;
    }
    for _ in 0..LOOKS {
        let seen = POSTED.load(Ordering::Acquire);
        take_letters(me, NOBODY);
        let run = me.run();
        if run.system.handles.look_at_all(&mut run.sched) {
            edge::outsiders_took_part(me);
        }
        let choice = me.run().sched.choose();
        if choice != Choice::Deadlock || count_outsiders(me) == 0 {
            return choice;
        }
        sys::wait_on(&POSTED, seen, SLICE);
    }
    me.run().note_uncontrolled();
    let outsiders = count_outsiders(me) as u32;
    inspect::tell(me, &Statement::Outsiders(outsiders));
    Choice::Deadlock
}

/// Kernel threads of the process that are no logical threads.
fn count_outsiders(me: &mut Token) -> usize {
    let mut outsiders = 0;
    // A thread that finds out at its very end that nobody can run has finished, but is no outsider.
    // SAFETY: plain call.
    let caller = unsafe { GetCurrentThreadId() };
    let system = &me.run().system;
    for_each_thread(|number| {
        let known = system.by_number.contains_key(&(number as usize))
            || system.handles.knows_thread(number)
            || pool::has(number)
            || preempt::is_watcher(number);
        outsiders += usize::from(!known && number != caller);
    });
    outsiders
}

fn for_each_thread(mut visit: impl FnMut(u32)) {
    // SAFETY: the snapshot is closed again; the entry says its own size.
    unsafe {
        let process = GetCurrentProcessId();
        let snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
        if snapshot == INVALID_HANDLE_VALUE {
            return;
        }
        let mut entry =
            THREADENTRY32 { dwSize: size_of::<THREADENTRY32>() as u32, ..THREADENTRY32::default() };
        let mut more = Thread32First(snapshot, &mut entry) != 0;
        while more {
            if entry.th32OwnerProcessID == process {
                visit(entry.th32ThreadID);
            }
            more = Thread32Next(snapshot, &mut entry) != 0;
        }
        CloseHandle(snapshot);
    }
}
