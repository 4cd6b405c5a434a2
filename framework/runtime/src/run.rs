//! The run that goes on: what only the holder of the token touches, and what threads without it may touch.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use waylay_control_protocol::{RegionMap, Settings};
use waylay_schedule::{AnyStrategy, ChaCha, ThreadId};
use waylay_scheduler::{Limits, Looking, Scheduler, Series, Stage, State};

use crate::platform::{Platform, Thread};

/// Everything about the run that goes on.
pub struct Run<P: Platform> {
    /// Who runs next.
    pub sched: Scheduler,
    /// What the driver reads.
    pub region: RegionMap,
    /// What the driver asked for.
    pub settings: Settings,
    /// When the run has gone on for long enough.
    pub limits: Limits,
    /// Whether threads that could run only look.
    pub looking: Looking,
    /// By [`ThreadId`].
    pub logicals: Vec<*mut P::Logical>,
    /// Seeded bytes for those who ask for random ones, apart from the strategy's stream, so that neither shifts the other.
    pub random: ChaCha,
    /// Looks at a clock since the last step: a loop that only reads the time has to let others run.
    pub looks: u32,
    /// The main thread.
    pub main: *mut P::Logical,
    /// Whether runs are repeated in this process, with the same kernel threads.
    pub repeats: bool,
    /// The runs of this process, if they are repeated.
    pub series: Series,
    /// What only this system has.
    pub system: P::State,
}

impl<P: Platform> Run<P> {
    /// A run without a thread so far, as the settings in the region want it.
    pub fn new(
        region: RegionMap,
        strategy: AnyStrategy,
        limits: Limits,
        main: *mut P::Logical,
        repeats: bool,
        system: P::State,
    ) -> Run<P> {
        let settings = region.settings();
        Run {
            sched: Scheduler::recording_into(&region, &settings, strategy),
            region,
            settings,
            limits,
            looking: Looking::default(),
            logicals: Vec::new(),
            random: ChaCha::new(),
            looks: 0,
            main,
            repeats,
            series: Series::default(),
            system,
        }
    }

    /// A number that changes with every step, also from run to run: two looks that see the same saw the same moment.
    pub fn moment(&self) -> u64 {
        self.moment_of(self.sched.steps)
    }

    fn moment_of(&self, step: u64) -> u64 {
        /// More steps than a run has between two looks.
        const STEPS_BITS: u32 = 40;
        self.series.begun().wrapping_shl(STEPS_BITS).wrapping_add(step)
    }

    /// Whether every thread that could run only looks since something changed last.
    pub fn all_look(&mut self) -> bool {
        let since = self.moment_of(self.limits.last_change());
        let Run { sched, looking, .. } = self;
        let threads = || (0..sched.thread_count()).map(|thread| sched.thread(ThreadId(thread as u32)));
        let rivals = threads().enumerate().filter(|(_, thread)| thread.state == State::Ready);
        let rivals = rivals.map(|(number, _)| number).filter(|&number| number != sched.current().index());
        looking.all(since, threads().map(|thread| thread.steps), rivals)
    }

    /// Whether no more program code runs on this thread. One that takes part in no run has not finished.
    ///
    /// # Safety
    /// The thread lives.
    pub unsafe fn has_finished(&self, thread: *mut P::Logical) -> bool {
        // SAFETY: by the caller's promise.
        let id = unsafe { P::Logical::id(thread) };
        id != ThreadId(u32::MAX) && self.sched.thread(id).state == State::Finished
    }

    /// The runs of this process, and what they are made with.
    pub(crate) fn stage(&mut self) -> (&mut Series, Stage<'_>) {
        let Run { series, sched, region, limits, .. } = self;
        (series, Stage { sched, region, limits })
    }

    /// Something happened that is no step of a loop that waits.
    #[inline]
    pub fn progressed(&mut self) {
        self.limits.progressed(self.sched.steps);
    }

    /// Nobody under control can run, and something that is not is awaited; or that is over.
    pub fn note_awaits(&self, awaits: bool) {
        self.region.report().awaits.store(u32::from(awaits), Ordering::Relaxed);
    }

    /// Something outside the library's control took part; says whether it is the first.
    pub fn note_uncontrolled(&self) -> bool {
        self.region.report().partly_controlled.swap(1, Ordering::Relaxed) == 0
    }
}

/// The token's companion: what threads without the token may touch.
#[derive(Debug)]
pub struct Shared<T> {
    /// Threads that were away and are back, newest first.
    pub arrivals: AtomicPtr<T>,
    /// Nobody holds the token; the first thread to arrive takes it.
    pub floating: AtomicBool,
    /// Threads are being resumed one by one to describe themselves, by this one.
    pub(crate) inspector: AtomicPtr<T>,
    /// Somebody is in `arrivals`, or a thread outside the schedule left a letter.
    pub attention: AtomicBool,
}

impl<T> Shared<T> {
    /// Nobody has arrived anywhere.
    pub const fn new() -> Shared<T> {
        Shared {
            arrivals: AtomicPtr::new(core::ptr::null_mut()),
            floating: AtomicBool::new(false),
            inspector: AtomicPtr::new(core::ptr::null_mut()),
            attention: AtomicBool::new(false),
        }
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A place for what only the holder of the token looks at.
#[derive(Debug)]
pub struct Slot<T>(UnsafeCell<Option<T>>);

// SAFETY: only the holder of the token looks inside; in front of the first run that is the only thread.
unsafe impl<T> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// An empty one.
    pub const fn new() -> Slot<T> {
        Slot(UnsafeCell::new(None))
    }

    /// What was put in.
    ///
    /// # Safety
    /// The caller holds the token, the slot was filled, and no borrow of the result lives across a handover.
    #[inline(always)]
    pub unsafe fn get(&self) -> *mut T {
        // SAFETY: by the caller's promise.
        unsafe {
            let slot = self.0.get();
            debug_assert!((*slot).is_some());
            (*slot).as_mut().unwrap_unchecked()
        }
    }

    /// What was put in, or what is put in now.
    ///
    /// # Safety
    /// As for [`Slot::get`], but the slot may be empty.
    #[inline]
    pub unsafe fn get_or_default(&self) -> *mut T
    where
        T: Default,
    {
        // SAFETY: by the caller's promise.
        unsafe { (*self.0.get()).get_or_insert_default() }
    }

    /// Fills the slot.
    ///
    /// # Safety
    /// No logical thread exists yet, so that nobody can hold the token.
    pub unsafe fn fill(&self, value: T) {
        // SAFETY: by the caller's promise.
        unsafe { *self.0.get() = Some(value) };
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self::new()
    }
}
