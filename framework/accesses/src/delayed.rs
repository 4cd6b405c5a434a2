//! Stores that others see later than they are made: x86-TSO, for the threads of a run.
//!
//! Every thread has a [`StoreBuffer`]. Its view is put into memory when it goes on, after that of whoever ran before was taken
//! out. When its oldest store becomes visible is for the strategy to choose, see [`Scheduler::stores_wait`]; whatever drains a
//! processor's store buffer drains this one, and so does everything in whose course stores are made that are not seen: to
//! flush early is always allowed, to flush late never.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use waylay_control_protocol::{DelayedStore, Memory as Model, RegionMap};
use waylay_schedule::{Event, EventKind, ThreadId};
use waylay_scheduler::Scheduler;

use crate::access::Access;
use crate::process::{Process, Who};
use crate::stores::{Memory, Store, StoreBuffer, WIDEST};

/// Whether stores of this run may wait. A byte, because assembly looks at it.
pub static ON: AtomicBool = AtomicBool::new(false);

struct Buffers {
    /// By thread.
    all: Vec<StoreBuffer>,
    /// Whose view is in memory.
    shown: Option<ThreadId>,
    /// Pages that were found readable, by some bits of their number.
    pages: [usize; PAGES],
}

const PAGES: usize = 64;
const PAGE_BITS: u32 = 12;

struct Slot(UnsafeCell<Option<Buffers>>);

// SAFETY: only the holder of the token looks inside.
unsafe impl Sync for Slot {}

static BUFFERS: Slot = Slot(UnsafeCell::new(None));

/// # Safety
/// The caller holds the token, and keeps no other borrow of it.
unsafe fn buffers<'a>() -> &'a mut Buffers {
    // SAFETY: by the caller's promise.
    let slot = unsafe { &mut *BUFFERS.0.get() };
    slot.get_or_insert_with(|| Buffers { all: Vec::new(), shown: None, pages: [0; PAGES] })
}

/// The memory of the process.
struct Real;

impl Memory for Real {
    fn read(&mut self, address: usize, bytes: &mut [u8]) {
        // SAFETY: a thread stored there, or is about to and it was found readable; whatever gives memory back flushes first.
        unsafe { core::ptr::copy(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
    }

    fn write(&mut self, address: usize, bytes: &[u8]) {
        // SAFETY: as above.
        unsafe { core::ptr::copy(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    }
}

impl Buffers {
    fn of(&mut self, thread: ThreadId) -> &mut StoreBuffer {
        if self.all.len() <= thread.index() {
            self.all.resize_with(thread.index() + 1, StoreBuffer::default);
        }
        &mut self.all[thread.index()]
    }

    fn show(&mut self, thread: ThreadId) {
        if self.shown != Some(thread) {
            self.hide();
            self.of(thread).show(&mut Real);
            self.shown = Some(thread);
        }
    }

    fn hide(&mut self) {
        if let Some(other) = self.shown.take() {
            self.of(other).hide(&mut Real);
        }
    }

    /// Whether a range can be read.
    fn is_readable<P: Process>(&mut self, address: usize, bytes: usize) -> bool {
        [address, address + bytes - 1].into_iter().all(|byte| {
            let page = byte >> PAGE_BITS;
            let known = &mut self.pages[page % PAGES];
            if *known != page && P::is_readable(byte) {
                *known = page;
            }
            *known == page
        })
    }
}

/// Whether stores of this run may wait.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Prepares for a run.
///
/// # Safety
/// The caller is the only thread that takes part so far.
pub unsafe fn begin_run(region: &RegionMap) {
    let on = region.settings().memory == Model::Tso as u32 && region.level().sees_accesses();
    if on || is_on() {
        // SAFETY: by the caller's promise.
        let buffers = unsafe { buffers() };
        buffers.all.iter_mut().for_each(StoreBuffer::clear);
        buffers.shown = None;
        buffers.pages = [0; PAGES];
    }
    ON.store(on, Ordering::Relaxed);
}

/// A thread goes on, for the first time or after others ran: what is in memory is its view.
///
/// # Safety
/// The thread executes the call and holds the token.
#[inline]
pub unsafe fn resumed(thread: ThreadId) {
    if is_on() {
        // SAFETY: by the caller's promise.
        unsafe { buffers().show(thread) };
    }
}

/// The event of a store that becomes visible.
fn event(store: &Store) -> Event {
    Event::access(EventKind::StoreFlush, store.address as u64, store.bytes)
}

/// The step of a flusher.
fn flush(owner: ThreadId) -> Option<Event> {
    // SAFETY: whoever asks who runs next holds the token.
    unsafe {
        let buffers = buffers();
        let shown = buffers.shown;
        if shown != Some(owner) {
            buffers.hide();
        }
        buffers.of(owner).flush(&mut Real);
        shown.into_iter().for_each(|thread| buffers.show(thread));
        buffers.of(owner).oldest().map(event)
    }
}

/// The running thread is about to make a store: `step` if that was a step of its own.
///
/// # Safety
/// As for [`resumed`]; the program is about to access the memory itself.
pub(crate) unsafe fn note<P: Process>(me: P::Thread, access: &Access, step: bool) {
    // SAFETY: by the caller's promise.
    unsafe {
        let who = P::who(me);
        let buffers = buffers();
        buffers.show(who.id);
        if !step && buffers.of(who.id).is_empty() {
            return;
        }
        let (address, bytes) = (access.address, access.bytes);
        let here = &raw const who as usize;
        if (here..P::stack_end(me)).contains(&address) {
            // Frames come and go, and what is undone there might be another's by then. What nobody else looks at may go
            // ahead; what somebody does comes after what waits.
            if step {
                drain::<P>(me);
            }
            return;
        }
        let interrupts = who != Who::itself(who.id);
        if bytes > WIDEST || interrupts || !buffers.is_readable::<P>(address, bytes) {
            return drain::<P>(me);
        }
        let buffer = buffers.of(who.id);
        let full = buffer.is_full();
        if full {
            buffer.flush(&mut Real);
        }
        // Behind a flush there may be nothing left for one without a step to wait for.
        let first = buffer.is_empty();
        if buffer.note(&mut Real, address, bytes, access.code, step) && !first && !full {
            return;
        }
        match buffer.oldest().map(event) {
            Some(oldest) => wait::<P>(who.id, oldest),
            None => (*P::scheduler()).no_store_waits(who.id),
        }
    }
}

unsafe fn wait<P: Process>(owner: ThreadId, oldest: Event) {
    // SAFETY: called with the token.
    unsafe {
        let made = (*P::scheduler()).stores_wait(owner, oldest, flush);
        if let Some(flusher) = made {
            P::flusher_made(flusher);
            let flushers = (*P::scheduler()).flushers() as u64;
            (*P::region()).report().delayed.flushers.store(flushers, Ordering::Relaxed);
        }
    }
}

/// All stores of the running thread become visible: it locks, fences, calls something, or ends.
///
/// # Safety
/// As for [`resumed`].
#[inline]
pub unsafe fn drain<P: Process>(me: P::Thread) {
    if is_on() {
        // SAFETY: by the caller's promise.
        unsafe { drain_of(P::who(me).id, &mut *P::scheduler()) };
    }
}

/// Whether stores of a thread wait.
///
/// # Safety
/// The caller holds the token.
pub unsafe fn waits(thread: ThreadId) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { buffers().all.get(thread.index()).is_some_and(|buffer| !buffer.is_empty()) }
}

#[cold]
unsafe fn drain_of(thread: ThreadId, scheduler: &mut Scheduler) {
    // SAFETY: called with the token, by that thread.
    unsafe {
        if waits(thread) {
            let buffers = buffers();
            buffers.show(thread);
            buffers.of(thread).drain();
            scheduler.no_store_waits(thread);
        }
    }
}

/// The running thread is about to give memory back, or to give it to somebody who does not know of stores that wait: none does
/// any more, of any thread.
///
/// # Safety
/// As for [`resumed`].
pub unsafe fn release<P: Process>(me: P::Thread, (start, bytes): (usize, usize)) {
    // SAFETY: by the caller's promise.
    unsafe {
        drain::<P>(me);
        let buffers = buffers();
        buffers.pages = [0; PAGES];
        for index in 0..buffers.all.len() {
            let owner = ThreadId(index as u32);
            let buffer = &mut buffers.all[index];
            if buffer.is_empty() {
                continue;
            }
            buffer.flush_through(&mut Real, start, bytes.max(1));
            match buffer.oldest().map(event) {
                Some(oldest) => wait::<P>(owner, oldest),
                None => (*P::scheduler()).no_store_waits(owner),
            }
        }
    }
}

/// The running thread reads: tells of stores of others that it does not see because they wait.
///
/// # Safety
/// As for [`resumed`].
pub(crate) unsafe fn reads<P: Process>(me: P::Thread, access: &Access) {
    // SAFETY: by the caller's promise.
    unsafe {
        let reader = P::who(me).id;
        for (index, buffer) in buffers().all.iter().enumerate() {
            if index != reader.index()
                && let Some(store) = buffer.newest_at(access.address, access.bytes)
            {
                (*P::region()).report().delayed.add(DelayedStore {
                    address: store.address as u64,
                    store: store.code as u64,
                    stored_by: index as u64,
                    read: access.code as u64,
                    read_by: u64::from(reader.0),
                    step: (*P::scheduler()).steps,
                });
            }
        }
    }
}
