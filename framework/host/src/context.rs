//! What stands behind the opaque context pointer of the contract: who is asking.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rand::Rng;
use waylay_abi::Context;
use waylay_dist::{Dist, Seed, WorkerRng};
use waylay_page::clock::Source;
use waylay_page::record::{NO_WORKER, Report, Sort};
use waylay_page::{Command, Layout, OBJECTS_SHOWN, TestPhase, TestSlot, WorkerSlot, WorkerState};

use crate::combine::Container;
use crate::shared::{Loan, SharedObjects};

/// One test of this host: everything about it that does not change, and whether it is to stop. Never freed.
pub(crate) struct TestRuntime {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) seed: Seed,
    pub(crate) page: &'static Layout,
    pub(crate) clock: Source,
    pub(crate) distributions: Vec<(String, Dist)>,
    pub(crate) shared: &'static SharedObjects,
    /// Objects that the instance keeps from one iteration to the next.
    pub(crate) kept: Mutex<Vec<Loan>>,
    /// The tests that this one contains.
    pub(crate) container: Option<&'static Container>,
    pub(crate) cancelled: AtomicBool,
    /// What the test said while it could not be created or started.
    pub(crate) refusal: Mutex<Option<String>>,
    pub(crate) run_mode: RunMode,
}

/// How tests run in this process, which decides what follows when one reports a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// The driver looks, then the thread goes on.
    Free,
    /// The schedule stops there, the driver looks, and the process is thrown away.
    Strict,
    /// The process ends with a word and a status: nobody looks.
    Alone,
    /// It is counted, and the thread goes on.
    Counted,
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
        /// Number of the running iteration, which says what it draws.
        iteration: AtomicU64,
        /// Whether the running iteration reported a failure.
        failed: AtomicBool,
        /// Ticks of the running iteration in which the driver looked at its failures.
        aside: AtomicU64,
        /// How often the running iteration was lent something.
        lent: AtomicU32,
    },
}

// SAFETY: `own` is the one part without a lock; every function that reaches it is unsafe and demands the worker's own
// thread, which the contract passes on to plugins.
unsafe impl Sync for CallContext {}

/// What only the worker's own thread touches.
struct WorkerOwn {
    rng: WorkerRng,
    held: Vec<Loan>,
    /// This worker as it runs the tests that its own test contains, by their number.
    contained: Vec<Option<&'static CallContext>>,
}

// SAFETY: the raw pointers of loans are only compared and handed back to the pools.
unsafe impl Send for TestRuntime {}
// SAFETY: as above; `kept` is behind a lock.
unsafe impl Sync for TestRuntime {}

fn take(loans: &mut Vec<Loan>, object: *mut c_void) -> Option<Loan> {
    let place = loans.iter().rposition(|loan| loan.object == object)?;
    Some(loans.swap_remove(place))
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

    /// Enters a phase of a life, unless lives follow each other too fast for anybody to look.
    pub(crate) fn pass(&self, phase: TestPhase) {
        if self.run_mode == RunMode::Free {
            self.enter(phase);
        }
    }
}

impl CallContext {
    pub(crate) fn instance(test: &'static TestRuntime) -> CallContext {
        CallContext { test, role: Role::Instance(Mutex::new(test.seed.worker(&test.name, INSTANCE_STREAM))) }
    }

    pub(crate) fn worker(test: &'static TestRuntime, index: u32, slot: &'static WorkerSlot) -> CallContext {
        let own = UnsafeCell::new(WorkerOwn {
            rng: test.seed.worker(&test.name, index),
            held: Vec::with_capacity(16),
            contained: Vec::new(),
        });
        let (iteration, aside) = (AtomicU64::new(0), AtomicU64::new(0));
        CallContext {
            test,
            role: Role::Worker {
                index,
                slot,
                own,
                iteration,
                failed: AtomicBool::new(false),
                aside,
                lent: AtomicU32::new(0),
            },
        }
    }

    /// This worker's number and slot, if it is a worker.
    pub(crate) fn place(&self) -> Option<(u32, &'static WorkerSlot)> {
        match &self.role {
            Role::Worker { index, slot, .. } => Some((*index, slot)),
            Role::Instance(_) => None,
        }
    }

    /// This worker as it runs contained test `number`; made the first time.
    ///
    /// # Safety
    ///
    /// Only on the worker's own thread.
    pub(crate) unsafe fn inside(
        &self,
        number: usize,
        make: impl FnOnce(&'static WorkerSlot) -> &'static CallContext,
    ) -> Option<&'static CallContext> {
        let Role::Worker { slot, own, .. } = &self.role else { return None };
        // SAFETY: the caller is the only thread that touches `own`.
        let contained = unsafe { &mut (*own.get()).contained };
        if contained.len() <= number {
            contained.resize(number + 1, None);
        }
        Some(*contained[number].get_or_insert_with(|| make(slot)))
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

    /// Moves the generator to the iteration.
    ///
    /// # Safety
    ///
    /// Only on the worker's own thread, outside `TestMain`.
    #[inline]
    pub(crate) unsafe fn begin(&self, iteration: u64) {
        match &self.role {
            Role::Worker { own, iteration: running, failed, aside, .. } => {
                running.store(iteration, Ordering::Relaxed);
                failed.store(false, Ordering::Relaxed);
                aside.store(0, Ordering::Relaxed);
                // SAFETY: the caller is the only thread that touches `own`.
                unsafe { (*own.get()).rng.begin(iteration) };
            }
            Role::Instance(rng) => rng.lock().unwrap_or_else(PoisonError::into_inner).begin(iteration),
        }
    }

    /// Ticks of this iteration that were the driver's, not the test's.
    pub(crate) fn aside(&self) -> u64 {
        match &self.role {
            Role::Worker { aside, .. } => aside.load(Ordering::Relaxed),
            Role::Instance(_) => 0,
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
            while let Some(loan) = held.pop() {
                self.test.shared.release(loan.object);
            }
            self.show_nothing_lent();
        }
    }

    /// Shows in the page what the iteration was lent, also after it was given back: a failure is often noticed when the
    /// object is back already. The last ones, when there are many.
    fn show_lent(&self, loan: Loan) {
        if let Role::Worker { slot, lent, .. } = &self.role {
            let place = lent.fetch_add(1, Ordering::Relaxed) as usize % OBJECTS_SHOWN;
            slot.objects[place].store(loan.number, Ordering::Relaxed);
        }
    }

    fn show_nothing_lent(&self) {
        if let Role::Worker { slot, lent, .. } = &self.role
            && lent.load(Ordering::Relaxed) != 0
        {
            lent.store(0, Ordering::Relaxed);
            slot.objects.iter().for_each(|word| word.store(0, Ordering::Relaxed));
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

    /// Lends an object to the running iteration; none to an instance, which has no iteration that would give it back.
    ///
    /// # Safety
    ///
    /// As [`CallContext::with_rng`].
    pub(crate) unsafe fn acquire(&self, kind: &CStr) -> *mut c_void {
        let Role::Worker { own, .. } = &self.role else { return std::ptr::null_mut() };
        // SAFETY: the caller is the only thread that touches `own`.
        let mine = unsafe { &mut *own.get() };
        let Some(loan) = self.test.shared.acquire(kind, || mine.rng.next_u64()) else {
            return std::ptr::null_mut();
        };
        mine.held.push(loan);
        self.show_lent(loan);
        loan.object
    }

    /// Gives back what the iteration holds (worker) or the instance keeps.
    ///
    /// # Safety
    ///
    /// As [`CallContext::with_rng`].
    pub(crate) unsafe fn release(&self, object: *mut c_void) {
        // SAFETY: passed on to our caller.
        let given_up = match &self.role {
            // SAFETY: passed on to our caller.
            Role::Worker { .. } => unsafe { self.unhold(object) },
            Role::Instance(_) => take(&mut self.kept(), object),
        };
        if given_up.is_some() {
            self.test.shared.release(object);
        }
    }

    /// Moves an object from the iteration to the instance; false when the iteration does not hold it.
    ///
    /// # Safety
    ///
    /// As [`CallContext::with_rng`].
    pub(crate) unsafe fn keep(&self, object: *mut c_void) -> bool {
        // SAFETY: passed on to our caller.
        let loan = unsafe { self.unhold(object) };
        loan.map(|loan| self.kept().push(loan)).is_some()
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Loan>> {
        self.test.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back whatever the instance still keeps.
    pub(crate) fn release_kept(&self) {
        let kept = std::mem::take(&mut *self.kept());
        kept.into_iter().for_each(|loan| self.test.shared.release(loan.object));
    }

    /// # Safety
    ///
    /// As [`CallContext::with_rng`].
    unsafe fn unhold(&self, object: *mut c_void) -> Option<Loan> {
        let Role::Worker { own, .. } = &self.role else { return None };
        // SAFETY: the caller is the only thread that touches `own`.
        take(unsafe { &mut (*own.get()).held }, object)
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
            Role::Worker { index, iteration, .. } => (*index, iteration.load(Ordering::Relaxed)),
            Role::Instance(_) => (INSTANCE_STREAM, 0),
        };
        let mut rng = self.test.seed.worker(&self.test.name, index);
        rng.begin(iteration);
        rng.iteration_seed()
    }

    /// Hands a failure over to the driver and waits until it was looked at.
    pub(crate) fn hand_over(&self, sort: Sort, message: &[u8], frames: &[usize]) {
        if self.test.run_mode == RunMode::Counted {
            self.test.slot().failures.fetch_add(1, Ordering::Relaxed);
            if let Role::Worker { failed, .. } = &self.role {
                failed.store(true, Ordering::Relaxed);
            }
            return;
        }
        if self.test.run_mode != RunMode::Free {
            // Nothing of the schedule may happen behind the failure.
            crate::sys::stop_run();
        }
        if self.test.run_mode == RunMode::Alone {
            crate::sys::fail_alone(message);
        }
        let test = self.test.slot();
        test.failures.fetch_add(1, Ordering::Relaxed);
        test.held.fetch_add(1, Ordering::AcqRel);
        let began = self.test.clock.now();
        if let Role::Worker { slot, failed, .. } = &self.role {
            failed.store(true, Ordering::Relaxed);
            WorkerState::Held.store(&slot.state);
        }
        self.test.page.report(&self.report(sort, message, frames));
        if self.test.run_mode == RunMode::Strict {
            crate::sys::wait_for_the_end();
        }
        // With this failure the test is retired, or all end: not one iteration more.
        let page = self.test.page;
        if [&self.test.slot().command, &page.header.command]
            .iter()
            .any(|word| Command::load(word) != Command::Run)
        {
            self.test.cancelled.store(true, Ordering::Relaxed);
        }
        // The time that the driver took is neither the iteration's nor the phase's.
        let now = self.test.clock.now();
        if let Role::Worker { slot, aside, .. } = &self.role {
            aside.fetch_add(now.since(began), Ordering::Relaxed);
            slot.entered_at.store(now.0, Ordering::Relaxed);
            WorkerState::Running.store(&slot.state);
        }
        test.phase_at.store(now.0, Ordering::Release);
        test.held.fetch_sub(1, Ordering::AcqRel);
    }

    /// The iteration returned that it failed. One that did not say why is a failure all the same.
    #[cold]
    pub(crate) fn fail_without_words(&self) {
        let Role::Worker { failed, .. } = &self.role else { return };
        if !failed.load(Ordering::Relaxed) {
            self.hand_over(Sort::Assert, &[], &[]);
        }
    }

    /// A report about this caller, to be completed.
    pub(crate) fn report<'a>(&self, sort: Sort, message: &'a [u8], frames: &'a [usize]) -> Report<'a> {
        let slot_base = self.test.page.workers.as_ptr();
        let (worker, iteration) = match &self.role {
            Role::Worker { slot, iteration, .. } => {
                // SAFETY: every worker's slot is an element of the page's array.
                let position = unsafe { std::ptr::from_ref(*slot).offset_from(slot_base) };
                (position as u32, iteration.load(Ordering::Relaxed))
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
