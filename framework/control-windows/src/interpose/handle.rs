//! What the handles of the program stand for, and whether it can be had: events, semaphores, mutexes, timers and threads.
//!
//! The real objects are used throughout, asked without waiting, so that named and inherited ones and those that Windows
//! itself signals keep their meaning. A handle is looked at when it is first waited for. Two handles of one object are
//! known to be such when one was duplicated from the other.

use core::ffi::c_void;

use waylay_schedule::ThreadId;
use waylay_scheduler::{ByAddress, Key, Scheduler, Shares};
use windows_sys::Win32::Foundation as base;
use windows_sys::Win32::Foundation::{HANDLE, NTSTATUS};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetThreadId};
use windows_sys::core::BOOL;

use super::interpose;
use super::timer::Timer;
use crate::me::keep_error;
use crate::runtime::{Logical, key_of, runtime};

#[link(name = "ntdll")]
unsafe extern "system" {
    fn NtQueryEvent(handle: HANDLE, class: u32, to: *mut c_void, size: u32, returned: *mut u32) -> NTSTATUS;
    fn NtQuerySemaphore(
        handle: HANDLE,
        class: u32,
        to: *mut c_void,
        size: u32,
        returned: *mut u32,
    ) -> NTSTATUS;
    fn NtQueryMutant(handle: HANDLE, class: u32, to: *mut c_void, size: u32, returned: *mut u32) -> NTSTATUS;
}

/// The basic information of these objects: two words. Of an event the second says whether it is signalled, of a semaphore
/// the first how many it has, of a mutex the first whether it is free (1) and the low byte of the second whether the caller
/// owns it.
type Basic = [i32; 2];

type Query = unsafe extern "system" fn(HANDLE, u32, *mut c_void, u32, *mut u32) -> NTSTATUS;

fn query(function: Query, handle: HANDLE) -> Option<Basic> {
    let mut basic = Basic::default();
    let nothing = core::ptr::null_mut();
    // SAFETY: the answer is written into the local, which is as large as said.
    let status = unsafe { function(handle, 0, (&raw mut basic).cast(), size_of::<Basic>() as u32, nothing) };
    (status == 0).then_some(basic)
}

/// What a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Event,
    Semaphore,
    Mutex,
    Thread(*mut Logical),
    /// A timer that the run made.
    Timer(*mut Timer),
    /// Something that is not under control: a process, a file, a thread beside the schedule.
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) kind: Kind,
}

/// A wait for several objects.
#[derive(Debug)]
pub(crate) struct Several<'a> {
    pub(crate) handles: &'a [HANDLE],
    pub(crate) all: bool,
    /// Who waits.
    pub(crate) waiter: ThreadId,
}

/// The handles of the program, as far as they were looked at.
#[derive(Default)]
pub(crate) struct Handles {
    table: ByAddress<usize, Entry>,
    /// Waits for several objects that go on: their places, which are their keys as well.
    several: Vec<usize>,
    /// Who holds a mutex, by its key.
    owners: ByAddress<Key, u32>,
    /// The timers of the run: handles may be duplicated, so they live as long as it does.
    #[allow(clippy::vec_box, reason = "entries point to them")]
    timers: Vec<Box<Timer>>,
}

impl Handles {
    /// A thread was created.
    pub(crate) fn add_thread(&mut self, handle: HANDLE, thread: *mut Logical) {
        self.table.insert(handle as usize, Entry { key: key_of(thread), kind: Kind::Thread(thread) });
    }

    /// A timer was created.
    pub(crate) fn add_timer(&mut self, handle: HANDLE, timer: Timer) {
        self.timers.push(Box::new(timer));
        if let Some(timer) = self.timers.last_mut() {
            let kind = Kind::Timer(&raw mut **timer);
            self.table.insert(handle as usize, Entry { key: Key(handle as usize), kind });
        }
    }

    /// From now on it is the system's.
    pub(crate) fn leave_to_system(&mut self, handle: HANDLE) {
        self.table.insert(handle as usize, Entry { key: Key(handle as usize), kind: Kind::Other });
    }

    /// The logical thread behind a handle.
    pub(crate) fn thread(&mut self, handle: HANDLE) -> Option<*mut Logical> {
        match self.entry(handle).kind {
            Kind::Thread(thread) => Some(thread),
            _ => None,
        }
    }

    /// What the handle stands for.
    pub(crate) fn entry(&mut self, handle: HANDLE) -> Entry {
        if let Some(&entry) = self.table.get(&(handle as usize)) {
            return entry;
        }
        let entry = classify(handle);
        self.table.insert(handle as usize, entry);
        entry
    }

    /// Forgets everything, between two runs: handles are closed and given out anew without our seeing it.
    pub(crate) fn forget(&mut self) {
        self.table.clear();
        self.several.clear();
        self.owners.clear();
        self.timers.clear();
    }

    /// Whether a thread with this number was created and has not begun yet.
    pub(crate) fn knows_thread(&self, number: u32) -> bool {
        self.table.values().any(|entry| match entry.kind {
            // SAFETY: logical threads live as long as their run, and the table is forgotten with it.
            Kind::Thread(thread) => unsafe { (*thread).number == number },
            _ => false,
        })
    }

    /// The object behind a handle changed: those who wait for it may have to look.
    pub(crate) fn changed(&mut self, handle: HANDLE, sched: &mut Scheduler) {
        let entry = self.entry(handle);
        match is_signalled(handle, entry.kind) {
            Some(true) => sched.freed(entry.key, Shares::ALL),
            Some(false) => sched.taken(entry.key, Shares::ALL),
            None => {}
        }
        self.look_at_several(sched, None);
    }

    /// Those who wait for several objects. `ending`: a thread that has ended when they run.
    pub(crate) fn look_at_several(&mut self, sched: &mut Scheduler, ending: Option<*mut Logical>) {
        for at in self.several.clone() {
            // SAFETY: the wait goes on for as long as its place is in the list.
            let several = unsafe { &*(at as *const Several<'_>) };
            if self.is_satisfied(several, ending) {
                sched.freed(Key(at), Shares::ALL);
            } else {
                sched.taken(Key(at), Shares::ALL);
            }
        }
    }

    /// Whether a wait for several objects could end now.
    pub(crate) fn is_satisfied(&mut self, several: &Several<'_>, ending: Option<*mut Logical>) -> bool {
        let mut signalled = several.handles.iter().map(|&handle| {
            let kind = self.entry(handle).kind;
            let ends = ending.is_some_and(|thread| kind == Kind::Thread(thread));
            ends || is_signalled(handle, kind) == Some(true)
        });
        if several.all { signalled.all(|is| is) } else { signalled.any(|is| is) }
    }

    /// A timer was set: who waits for it among others has another moment to wait for.
    pub(crate) fn timer_was_set(&mut self, key: Key, sched: &mut Scheduler) {
        for at in self.several.clone() {
            // SAFETY: the wait goes on for as long as its place is in the list.
            let several = unsafe { &*(at as *const Several<'_>) };
            if several.handles.iter().any(|&handle| self.entry(handle).key == key) {
                sched.interrupt(several.waiter);
            }
        }
    }

    pub(crate) fn add_several(&mut self, several: &Several<'_>) {
        self.several.push(core::ptr::from_ref(several) as usize);
    }

    pub(crate) fn remove_several(&mut self, several: &Several<'_>) {
        self.several.retain(|&at| at != core::ptr::from_ref(several) as usize);
    }

    /// Looks at every object that somebody waits for: Windows itself may have signalled it. Says whether one can be had.
    pub(crate) fn look_at_all(&mut self, sched: &mut Scheduler) -> bool {
        let mut news = false;
        for (&handle, entry) in &self.table {
            let known = matches!(entry.kind, Kind::Event | Kind::Semaphore | Kind::Mutex);
            if known
                && sched.waiting_on(entry.key) > 0
                && is_signalled(handle as HANDLE, entry.kind) == Some(true)
            {
                sched.freed(entry.key, Shares::ALL);
                news = true;
            }
        }
        self.look_at_several(sched, None);
        news
    }

    /// A thread is gone, and its mutexes are free.
    pub(crate) fn look_at_mutexes(&mut self, sched: &mut Scheduler) {
        for (&handle, entry) in &self.table {
            if entry.kind == Kind::Mutex
                && sched.waiting_on(entry.key) > 0
                && is_signalled(handle as HANDLE, Kind::Mutex) == Some(true)
            {
                sched.freed(entry.key, Shares::ALL);
            }
        }
    }

    /// A mutex was taken by a thread, or given back.
    pub(crate) fn note_owner(&mut self, key: Key, owner: Option<u32>) {
        match owner {
            Some(number) => self.owners.insert(key, number),
            None => self.owners.remove(&key),
        };
    }

    /// The thread that holds the mutex with this key.
    pub(crate) fn owner_of_mutex(&self, key: usize) -> Option<u32> {
        self.owners.get(&Key(key)).copied()
    }
}

fn classify(handle: HANDLE) -> Entry {
    let key = Key(handle as usize);
    let functions: [(Query, Kind); 3] =
        [(NtQueryEvent, Kind::Event), (NtQuerySemaphore, Kind::Semaphore), (NtQueryMutant, Kind::Mutex)];
    for (function, kind) in functions {
        if query(function, handle).is_some() {
            return Entry { key, kind };
        }
    }
    // SAFETY: asks for a number; called with the token.
    let thread = unsafe { (*runtime()).system.by_number.get(&(GetThreadId(handle) as usize)).copied() };
    match thread {
        Some(thread) => Entry { key: key_of(thread), kind: Kind::Thread(thread) },
        None => Entry { key, kind: Kind::Other },
    }
}

/// Whether a wait for the object would end at once for the caller; nobody knows that of other things.
pub(crate) fn is_signalled(handle: HANDLE, kind: Kind) -> Option<bool> {
    match kind {
        Kind::Event => query(NtQueryEvent, handle).map(|basic| basic[1] != 0),
        Kind::Semaphore => query(NtQuerySemaphore, handle).map(|basic| basic[0] > 0),
        Kind::Mutex => query(NtQueryMutant, handle).map(|basic| basic[0] > 0 || basic[1] & 0xff != 0),
        // SAFETY: called with the token.
        Kind::Thread(thread) => Some(unsafe { (*runtime()).has_finished(thread) }),
        // SAFETY: called with the token; timers live as long as their run.
        Kind::Timer(timer) => Some(unsafe { (*timer).is_due((*runtime()).sched.clock.now()) }),
        Kind::Other => None,
    }
}

interpose! {
    fn CloseHandle(handle: HANDLE) -> BOOL = base::CloseHandle(handle), |me| {
        me.run().system.handles.table.remove(&(handle as usize));
        let result = base::CloseHandle(handle);
        keep_error(me);
        result
    }

    fn DuplicateHandle(
        from_process: HANDLE,
        from: HANDLE,
        to_process: HANDLE,
        to: *mut HANDLE,
        access: u32,
        inherit: BOOL,
        options: u32,
    ) -> BOOL = base::DuplicateHandle(from_process, from, to_process, to, access, inherit, options), |me| {
        let result = base::DuplicateHandle(from_process, from, to_process, to, access, inherit, options);
        keep_error(me);
        let here = GetCurrentProcess();
        if result != 0 && !to.is_null() && from_process == here && to_process == here {
            // Names for the calling thread and process are no handles.
            if from as isize > 0 {
                let entry = me.run().system.handles.entry(from);
                me.run().system.handles.table.insert(*to as usize, entry);
            } else {
                me.run().system.handles.table.remove(&(*to as usize));
            }
            if options & base::DUPLICATE_CLOSE_SOURCE != 0 {
                me.run().system.handles.table.remove(&(from as usize));
            }
        }
        result
    }
}
