//! What stands behind the opaque context pointer of the contract: who is asking.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use waylay_abi::Context;
use waylay_dist::{Dist, Seed, WorkerRng};
use waylay_page::clock::Source;
use waylay_page::record::{NO_WORKER, Report, Sort};
use waylay_page::{Command, Layout, TestPhase, TestSlot, WorkerSlot, WorkerState};

use crate::shared::SharedObjects;

/// One test of this host: everything about it that does not change, and whether it is to stop. Never freed.
pub(crate) struct TestRuntime {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) seed: Seed,
    pub(crate) page: &'static Layout,
    pub(crate) clock: Source,
    pub(crate) distributions: Vec<(String, Dist)>,
    pub(crate) shared: &'static SharedObjects,
    pub(crate) cancelled: AtomicBool,
    /// What the test said while it could not be created or started.
    pub(crate) refusal: Mutex<Option<String>>,
}

/// A caller: the instance as a whole, or one worker in one iteration.
pub(crate) struct CallContext {
    pub(crate) test: &'static TestRuntime,
    role: Role,
}

enum Role {
    /// Any thread may call; the generator is behind a lock.
    Instance(Mutex<WorkerRng>),
    /// One thread calls, except where `worker` says otherwise.
    Worker {
        index: u32,
        slot: &'static WorkerSlot,
        own: UnsafeCell<WorkerOwn>,
        /// Number of the last iteration that reported a failure, plus one.
        failed: AtomicU64,
    },
}

// SAFETY: `own` is the one part without a lock; every function that reaches it is unsafe and demands the worker's own
// thread, which the contract passes on to plugins.
unsafe impl Sync for CallContext {}

/// What only the worker's own thread touches.
struct WorkerOwn {
    rng: WorkerRng,
    held: Vec<*mut c_void>,
}

/// Worker number that the instance's generator is split off with; no real worker has it.
const INSTANCE_STREAM: u32 = u32::MAX;

impl TestRuntime {
    pub(crate) fn slot(&self) -> &'static TestSlot {
        &self.page.tests[self.index as usize]
    }

    /// Enters a phase, with the calling thread as the one that runs it.
    pub(crate) fn enter(&self, phase: TestPhase) {
        let slot = self.slot();
        slot.tid.store(crate::sys::thread_id(), Ordering::Relaxed);
        slot.phase_at.store(self.clock.now().0, Ordering::Relaxed);
        phase.store(&slot.phase);
    }
}

impl CallContext {
    pub(crate) fn instance(test: &'static TestRuntime) -> CallContext {
        CallContext { test, role: Role::Instance(Mutex::new(test.seed.worker(&test.name, INSTANCE_STREAM))) }
    }

    pub(crate) fn worker(test: &'static TestRuntime, index: u32, slot: &'static WorkerSlot) -> CallContext {
        let own = WorkerOwn { rng: test.seed.worker(&test.name, index), held: Vec::with_capacity(16) };
        let own = UnsafeCell::new(own);
        CallContext { test, role: Role::Worker { index, slot, own, failed: AtomicU64::new(0) } }
    }

    pub(crate) fn as_raw(&self) -> *mut Context {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// # Safety
    ///
    /// `raw` must come from [`CallContext::as_raw`] and still be alive, as the contract demands of plugins.
    pub(crate) unsafe fn from_raw<'a>(raw: *mut Context) -> &'a CallContext {
        // SAFETY: passed on to our caller.
        unsafe { &*raw.cast::<CallContext>() }
    }

    /// Moves the worker's generator to the iteration.
    ///
    /// # Safety
    ///
    /// Only on the worker's own thread, outside `TestMain`.
    #[inline]
    pub(crate) unsafe fn begin(&self, iteration: u64) {
        if let Role::Worker { own, .. } = &self.role {
            // SAFETY: the caller is the only thread that touches `own`.
            unsafe { (*own.get()).rng.begin(iteration) };
        }
    }

    /// Gives back what the iteration still holds.
    ///
    /// # Safety
    ///
    /// Only on the worker's own thread, outside `TestMain`.
    #[inline]
    pub(crate) unsafe fn end(&self) {
        if let Role::Worker { own, .. } = &self.role {
            // SAFETY: the caller is the only thread that touches `own`.
            let held = unsafe { &mut (*own.get()).held };
            while let Some(object) = held.pop() {
                self.test.shared.release(object);
            }
        }
    }

    /// Draws with the caller's generator.
    ///
    /// # Safety
    ///
    /// With a worker context: only on the worker's own thread, as the contract demands.
    #[inline]
    pub(crate) unsafe fn with_rng<T>(&self, draw: impl FnOnce(&mut WorkerRng) -> T) -> T {
        match &self.role {
            // SAFETY: the caller is the only thread that touches `own`.
            Role::Worker { own, .. } => draw(unsafe { &mut (*own.get()).rng }),
            Role::Instance(rng) => draw(&mut rng.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Notes that the iteration holds a shared object.
    ///
    /// # Safety
    ///
    /// As [`CallContext::with_rng`].
    pub(crate) unsafe fn hold(&self, object: *mut c_void) {
        if let Role::Worker { own, .. } = &self.role {
            // SAFETY: the caller is the only thread that touches `own`.
            unsafe { (*own.get()).held.push(object) };
        }
    }

    /// Forgets one hold of the object; false when the iteration does not hold it.
    ///
    /// # Safety
    ///
    /// As [`CallContext::with_rng`].
    pub(crate) unsafe fn unhold(&self, object: *mut c_void) -> bool {
        let Role::Worker { own, .. } = &self.role else { return true };
        // SAFETY: the caller is the only thread that touches `own`.
        let held = unsafe { &mut (*own.get()).held };
        held.iter()
            .rposition(|candidate| *candidate == object)
            .map(|position| held.swap_remove(position))
            .is_some()
    }

    /// The worker's slot, if this is a worker.
    pub(crate) fn worker_slot(&self) -> Option<&'static WorkerSlot> {
        match &self.role {
            Role::Worker { slot, .. } => Some(slot),
            Role::Instance(_) => None,
        }
    }

    /// The seed of the running iteration, or of the test. Derived afresh, so any thread may ask.
    pub(crate) fn current_seed(&self) -> Seed {
        let (index, iteration) = match &self.role {
            Role::Worker { index, slot, .. } => (*index, slot.iteration.load(Ordering::Relaxed)),
            Role::Instance(_) => (INSTANCE_STREAM, 0),
        };
        let mut rng = self.test.seed.worker(&self.test.name, index);
        rng.begin(iteration);
        rng.iteration_seed()
    }

    /// Hands a failure over to the driver and waits until it was looked at.
    pub(crate) fn hand_over(&self, sort: Sort, message: &[u8], frames: &[usize]) {
        let test = self.test.slot();
        test.failures.fetch_add(1, Ordering::Relaxed);
        test.held.fetch_add(1, Ordering::AcqRel);
        if let Role::Worker { slot, failed, .. } = &self.role {
            failed.store(slot.iteration.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            WorkerState::Held.store(&slot.state);
        }
        self.test.page.report(&self.report(sort, message, frames));
        // With this failure the test is retired, or all end: not one iteration more.
        let page = self.test.page;
        if [&self.test.slot().command, &page.header.command]
            .iter()
            .any(|word| Command::load(word) != Command::Run)
        {
            self.test.cancelled.store(true, Ordering::Relaxed);
        }
        // The time that the driver took is neither the iteration's nor the phase's.
        let now = self.test.clock.now().0;
        if let Role::Worker { slot, .. } = &self.role {
            slot.entered_at.store(now, Ordering::Relaxed);
            WorkerState::Running.store(&slot.state);
        }
        test.phase_at.store(now, Ordering::Release);
        test.held.fetch_sub(1, Ordering::AcqRel);
    }

    /// The iteration returned that it failed. One that did not say why is a failure all the same.
    #[cold]
    pub(crate) fn fail_without_words(&self, iteration: u64) {
        let Role::Worker { failed, .. } = &self.role else { return };
        if failed.load(Ordering::Relaxed) != iteration + 1 {
            self.hand_over(Sort::Assert, &[], &[]);
        }
    }

    /// A report about this caller, to be completed.
    pub(crate) fn report<'a>(&self, sort: Sort, message: &'a [u8], frames: &'a [usize]) -> Report<'a> {
        let slot_base = self.test.page.workers.as_ptr();
        let (worker, iteration) = match &self.role {
            Role::Worker { slot, .. } => {
                // SAFETY: every worker's slot is an element of the page's array.
                let position = unsafe { std::ptr::from_ref(*slot).offset_from(slot_base) };
                (position as u32, slot.iteration.load(Ordering::Relaxed))
            }
            Role::Instance(_) => (NO_WORKER, 0),
        };
        Report {
            sort,
            test: self.test.index,
            worker,
            tid: crate::sys::thread_id(),
            iteration,
            seed: self.current_seed().get(),
            signal: 0,
            address: 0,
            message,
            frames,
            siginfo: &[],
            machine: &[],
        }
    }
}
