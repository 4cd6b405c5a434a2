//! Tests that run inside another test. The combiner, a plugin, decides which of them runs when; everything else is done
//! here: they are created, run, timed, blamed and ended like tests of the scenario, on the combiner's own workers.
//!
//! An iteration of a contained test draws from the stream (test, worker 0, iteration), whichever thread runs it, and
//! its number comes from one counter of the test. So an iteration can be repeated by its number alone.

use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use waylay_abi::{
    CONTAINED_READY, CONTAINED_RETIRED, CONTAINED_UNLOADED, Combine, ContainedInfo, ContainerInfo, Context,
    HooksInfo, Ran, STATUS_DONE, STATUS_FAILED, STATUS_OK, TURN_REPEAT, Turn,
};
use waylay_page::{Command, TestPhase, TestSlot, WorkerSlot, WorkerState};

use crate::context::CallContext;
use crate::description::{hooks, text};
use crate::factory::TestFactory;
use crate::fatal::Blame;
use crate::lifecycle::Live;
use crate::loader::Plugin;
use crate::plan::{CombinerPlan, ContainedPlan, TestPlan};
use crate::shared::SharedObjects;

/// How many iterations of a turn are counted before the page learns of them.
const UNSHOWN: u64 = 256;
/// Ticks of an iteration beside which a look at the clock of the operating system is nothing: some microseconds.
const SHORT: u64 = 20_000;

/// Numbers of a contained test's iterations that one schedule can use. More would only be drawn twice.
const ITERATIONS_PER_SCHEDULE: u64 = 1 << 16;

/// What one combiner contains. Never freed, like the test itself.
pub(crate) struct Container {
    factory: &'static TestFactory,
    settings: CString,
    workers: u32,
    shared: &'static SharedObjects,
    hooks: Vec<Hooks>,
    tests: Vec<Contained>,
}

struct Contained {
    index: usize,
    plan: TestPlan,
    inside: ContainedPlan,
    name: CString,
    /// One of `CONTAINED_*`.
    state: AtomicU32,
    /// Threads that are running it.
    running: AtomicU32,
    next: AtomicU64,
    live: Mutex<Option<Live>>,
    cancelled: Mutex<bool>,
}

/// Hooks of a plugin, made for one combiner.
pub(crate) struct Hooks {
    info: &'static HooksInfo,
    state: *mut c_void,
}

// SAFETY: the contract says which hooks are called on many threads at the same time; the state is the plugin's own.
unsafe impl Send for Hooks {}
// SAFETY: as above.
unsafe impl Sync for Hooks {}

impl Hooks {
    pub(crate) fn make(plugin: Option<Plugin>, name: &str) -> Result<Hooks, String> {
        let plugin =
            plugin.ok_or_else(|| format!("the plugin with the hooks `{name}` could not be loaded"))?;
        let info = hooks(plugin.info())
            .find(|hooks| text(hooks.name) == name)
            .ok_or_else(|| format!("the plugin has no hooks named `{name}`"))?;
        // SAFETY: the contract lets the host make hooks at any time.
        let state = info.create.map_or(std::ptr::null_mut(), |create| unsafe { create() });
        if state.is_null() {
            return Err(format!("the hooks `{name}` could not be made"));
        }
        Ok(Hooks { info, state })
    }
}

impl Container {
    pub(crate) fn new(
        factory: &'static TestFactory,
        plan: &CombinerPlan,
        tests: Vec<(usize, TestPlan)>,
        workers: u32,
        shared: &'static SharedObjects,
        hooks: Vec<Hooks>,
    ) -> Result<&'static Container, String> {
        let contained = |(index, plan): (usize, TestPlan)| {
            let inside = plan.contained.clone().ok_or("a contained test without a container")?;
            Ok(Contained {
                index,
                name: CString::new(plan.name.as_str()).map_err(|error| error.to_string())?,
                state: AtomicU32::new(CONTAINED_UNLOADED),
                running: AtomicU32::new(0),
                next: AtomicU64::new(inside.first_iteration),
                live: Mutex::new(None),
                cancelled: Mutex::new(false),
                inside,
                plan,
            })
        };
        let made = Container {
            factory,
            settings: CString::new(plan.settings.as_str()).map_err(|error| error.to_string())?,
            workers,
            shared,
            hooks,
            tests: tests.into_iter().map(contained).collect::<Result<_, String>>()?,
        };
        Ok(Box::leak(Box::new(made)))
    }

    /// Begins anew, in strict mode: a schedule depends on its number and on nothing that happened before.
    pub(crate) fn renew(&self) {
        let Some(run) = self.factory.schedule() else { return };
        self.shared.renew(run);
        for test in &self.tests {
            test.state.store(CONTAINED_UNLOADED, Ordering::Relaxed);
            test.next.store(run.wrapping_mul(ITERATIONS_PER_SCHEDULE), Ordering::Relaxed);
            *test.cancelled.lock().unwrap_or_else(PoisonError::into_inner) = false;
        }
    }

    fn load(&self, test: &Contained) -> i32 {
        let mut live = test.live.lock().unwrap_or_else(PoisonError::into_inner);
        if live.is_some() {
            return STATUS_OK;
        }
        let slot = test.slot(self.factory);
        slot.next_iteration.store(test.inside.first_iteration, Ordering::Relaxed);
        match self.factory.admit(test.index, &test.plan, self.shared) {
            Some(made) => {
                made.context.test.pass(TestPhase::Running);
                *live = Some(made);
                test.state.store(CONTAINED_READY, Ordering::Release);
                self.hook(|hooks| hooks.info.on_load.map(|call| (call, hooks.state)), test);
                STATUS_OK
            }
            None => {
                test.state.store(CONTAINED_RETIRED, Ordering::Release);
                STATUS_FAILED
            }
        }
    }

    fn hook(
        &self,
        which: impl Fn(&Hooks) -> Option<(unsafe extern "C" fn(*mut c_void, *const ContainedInfo), *mut c_void)>,
        test: &Contained,
    ) {
        for (call, state) in self.hooks.iter().filter_map(which) {
            // SAFETY: the state came from the hooks' own `create`; load and unload hold the test's lock, and a combiner
            // loads and unloads on one thread.
            unsafe { call(state, &self.info(test)) };
        }
    }

    fn cancel(&self, test: &Contained) {
        let mut cancelled = test.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *cancelled, true) {
            test.state.store(CONTAINED_RETIRED, Ordering::Release);
            if let Some(live) = &*test.live.lock().unwrap_or_else(PoisonError::into_inner) {
                live.cancel();
                // What is late from here on is an iteration, with a limit of its own, or another test of the combiner.
                live.context.test.pass(TestPhase::Running);
            }
        }
    }

    fn unload(&self, test: &Contained) {
        if test.running.load(Ordering::Acquire) != 0 {
            return;
        }
        self.cancel(test);
        let live = test.live.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(live) = live {
            self.hook(|hooks| hooks.info.on_unload.map(|call| (call, hooks.state)), test);
            live.finish();
        }
    }

    /// Ends what the combiner did not; nobody runs a test any more.
    pub(crate) fn unload_all(&self) {
        self.tests.iter().for_each(|test| self.unload(test));
    }

    /// Destroys the pools and the hooks, after the combiner itself. Hooks outlive a schedule.
    pub(crate) fn destroy(&self) {
        self.shared.destroy_all();
        if self.factory.schedule().is_some() {
            return;
        }
        for hooks in &self.hooks {
            if let Some(destroy) = hooks.info.destroy {
                // SAFETY: the state came from the hooks' own `create`, and no test is left to call them for.
                unsafe { destroy(hooks.state) };
            }
        }
    }

    /// What the combiner may know. What an earlier schedule took is none of it.
    fn info(&self, test: &Contained) -> ContainedInfo {
        let measured = if self.factory.schedule().is_some() { 0.0 } else { 1.0 };
        ContainedInfo {
            size: size_of::<ContainedInfo>() as u32,
            state: test.state.load(Ordering::Acquire),
            name: test.name.as_ptr(),
            share: test.inside.share,
            average_nanos: test.inside.average_ns * measured,
            given_nanos: test.inside.given_ns * measured,
        }
    }

    /// Runs one turn on the worker's own thread.
    ///
    /// # Safety
    ///
    /// `outer` is the combiner's worker context of this thread, inside `TestMain`.
    unsafe fn run(&self, outer: &CallContext, test: &Contained, turn: &Turn) -> Ran {
        let mut ran =
            Ran { size: size_of::<Ran>() as u32, state: CONTAINED_RETIRED, times: 0, nanos: 0, failures: 0 };
        test.running.fetch_add(1, Ordering::AcqRel);
        // The lock is not held while it runs: `unload` leaves a test alone that is running.
        let live = {
            let live = test.live.lock().unwrap_or_else(PoisonError::into_inner);
            live.as_ref().map(|live| (live.instance, live.context.test))
        };
        if let (Some((instance, runtime)), Some((worker, slot))) = (live, outer.place()) {
            let make =
                |slot| -> &'static CallContext { Box::leak(Box::new(CallContext::worker(runtime, 0, slot))) };
            // SAFETY: passed on to our caller.
            if let Some(context) = unsafe { outer.inside(test.index, make) } {
                for hooks in &self.hooks {
                    if let Some(call) = hooks.info.on_start {
                        // SAFETY: the state came from the hooks' own `create`.
                        unsafe { call(hooks.state, &self.info(test), worker) };
                    }
                }
                // In a pot inside a pot the outer one goes on afterwards.
                let outer_test = slot.contained.load(Ordering::Relaxed);
                let outer_iteration = slot.contained_iteration.load(Ordering::Relaxed);
                // SAFETY: the instance lives while `running` is not zero; the context is this thread's own.
                unsafe { self.iterate(test, context, instance.0, slot, turn, &mut ran) };
                slot.entered_at.store(runtime.clock.now().0, Ordering::Relaxed);
                if outer_test != 0 {
                    slot.contained_iteration.store(outer_iteration, Ordering::Relaxed);
                }
                slot.contained.store(outer_test, Ordering::Release);
                ran.state = test.state.load(Ordering::Acquire);
                for hooks in &self.hooks {
                    if let Some(call) = hooks.info.on_stop {
                        // SAFETY: as above.
                        unsafe { call(hooks.state, &self.info(test), worker, &ran) };
                    }
                }
            }
        }
        test.running.fetch_sub(1, Ordering::AcqRel);
        ran
    }

    /// # Safety
    ///
    /// `instance` is alive, and `context` is this thread's own and belongs to it.
    unsafe fn iterate(
        &self,
        test: &Contained,
        context: &'static CallContext,
        instance: *mut waylay_abi::Instance,
        slot: &'static WorkerSlot,
        turn: &Turn,
        ran: &mut Ran,
    ) {
        let _blame = Blame::on(context);
        let runtime = context.test;
        let page = test.slot(self.factory);
        // SAFETY: an instance without a main is not admitted.
        let Some(main) = (unsafe { (*instance).test_main }) else { return };
        let repeat = (turn.flags & TURN_REPEAT != 0).then_some(turn.iteration);
        let strict = self.factory.schedule().is_some();
        let began = Instant::now();
        let first_tick = runtime.clock.now();
        let mut entered = first_tick;
        let mut sums = Sums::default();
        let mut inside = 0u64;
        while ran.times < turn.times
            && test.state.load(Ordering::Acquire) == CONTAINED_READY
            && !runtime.cancelled.load(Ordering::Relaxed)
        {
            let number = match repeat {
                Some(iteration) => iteration + ran.times,
                None => test.next.fetch_add(1, Ordering::Relaxed),
            };
            slot.entered_at.store(entered.0, Ordering::Relaxed);
            slot.contained_iteration.store(number, Ordering::Relaxed);
            slot.last_contained.store(test.index as u32 + 1, Ordering::Relaxed);
            slot.contained.store(test.index as u32 + 1, Ordering::Release);
            // SAFETY: this is the worker's own thread and the contained `TestMain` is not running on it.
            unsafe { context.begin(repeat.unwrap_or(number)) };
            // SAFETY: passed on to our caller.
            let status = unsafe { main(instance, context.as_raw()) };
            // SAFETY: as for `begin`.
            unsafe { context.end() };
            let left = runtime.clock.now();
            let took = left.since(entered).saturating_sub(context.aside());
            ran.times += 1;
            inside += took;
            sums.add(took);
            entered = left;
            if status != STATUS_OK {
                if status == STATUS_DONE {
                    test.state.store(CONTAINED_RETIRED, Ordering::Release);
                } else {
                    ran.failures += 1;
                    page.failed_runs.fetch_add(1, Ordering::Relaxed);
                    context.fail_without_words();
                    entered = runtime.clock.now();
                }
            }
            if Command::load(&page.command) != Command::Run {
                test.state.store(CONTAINED_RETIRED, Ordering::Release);
            }
            if sums.runs >= UNSHOWN {
                std::mem::take(&mut sums).show(page, &test.next);
            }
            // The clock that has a unit costs more than ours: after short iterations it is asked now and then. In strict
            // mode it shows virtual time, and what is done must not depend on real time.
            let ask = (took > SHORT && !strict) || ran.times.is_multiple_of(16);
            if turn.limit_nanos != 0 && ask && began.elapsed().as_nanos() as u64 >= turn.limit_nanos {
                break;
            }
        }
        sums.show(page, &test.next);
        if strict {
            return;
        }
        // Ticks have no unit here; the share of them that was inside the test, of a time that was measured, has.
        let whole = runtime.clock.now().since(first_tick).max(1);
        ran.nanos = (began.elapsed().as_nanos() as f64 * (inside as f64 / whole as f64).min(1.0)) as u64;
    }
}

/// What iterations of a turn add to the test's numbers in the page.
#[derive(Default)]
struct Sums {
    runs: u64,
    busy: u64,
    squares: f64,
    shortest: Option<u64>,
    longest: u64,
}

impl Sums {
    fn add(&mut self, took: u64) {
        self.runs += 1;
        self.busy += took;
        self.squares += took as f64 * took as f64;
        self.shortest = Some(self.shortest.map_or(took, |shortest| shortest.min(took)));
        self.longest = self.longest.max(took);
    }

    fn show(self, page: &TestSlot, next: &AtomicU64) {
        let Some(shortest) = self.shortest else { return };
        page.next_iteration.fetch_max(next.load(Ordering::Relaxed), Ordering::Relaxed);
        page.runs.fetch_add(self.runs, Ordering::Relaxed);
        page.busy.fetch_add(self.busy, Ordering::Relaxed);
        let add = |bits: u64| Some((f64::from_bits(bits) + self.squares).to_bits());
        let _ = page.squares.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        page.shortest_inverted.fetch_max(!shortest, Ordering::Relaxed);
        page.longest.fetch_max(self.longest, Ordering::Relaxed);
    }
}

impl Contained {
    fn slot(&self, factory: &TestFactory) -> &'static TestSlot {
        &factory.page().tests[self.index]
    }
}

/// The services for combiners. For every function the contract guarantees: the context is alive, belongs to a combiner,
/// and is used on the threads that it may be used on; structs begin with their size.
pub(crate) static COMBINE: Combine = Combine {
    size: size_of::<Combine>() as u32,
    reserved: 0,
    container: Some(container),
    contained: Some(contained),
    load: Some(load),
    run: Some(run),
    waiting: Some(waiting),
    ask: Some(ask),
    cancel: Some(cancel),
    unload: Some(unload),
};

/// # Safety
///
/// As all of the functions below: see [`COMBINE`].
unsafe fn of<'a>(context: *mut Context) -> Option<(&'a CallContext, &'static Container)> {
    // SAFETY: passed on to our caller.
    let context = unsafe { CallContext::from_raw(context) };
    context.test.container.map(|container| (context, container))
}

/// # Safety
///
/// As [`of`].
unsafe fn one(context: *mut Context, number: u32) -> Option<(&'static Container, &'static Contained)> {
    // SAFETY: passed on to our caller.
    let (_, container) = unsafe { of(context) }?;
    Some((container, container.tests.get(number as usize)?))
}

unsafe extern "C" fn container(context: *mut Context, into: *mut ContainerInfo) {
    // SAFETY: see `COMBINE`.
    let Some((caller, container)) = (unsafe { of(context) }) else { return };
    let info = ContainerInfo {
        size: size_of::<ContainerInfo>() as u32,
        tests: container.tests.len() as u32,
        workers: container.workers,
        worker: caller.place().map_or(0, |(worker, _)| worker),
        settings: container.settings.as_ptr(),
    };
    // SAFETY: see `COMBINE`.
    unsafe { fill(info, into) };
}

/// Fills in no more than the plugin declared.
///
/// # Safety
///
/// `into` begins with a `u32` size and has that many bytes, and so does `T`.
unsafe fn fill<T>(from: T, into: *mut T) {
    // SAFETY: passed on to our caller.
    let size = (unsafe { into.cast::<u32>().read() } as usize).min(size_of::<T>());
    // SAFETY: as above. The size itself stays as the plugin wrote it.
    unsafe {
        std::ptr::copy_nonoverlapping(
            (&raw const from).cast::<u8>().add(4),
            into.cast::<u8>().add(4),
            size.saturating_sub(4),
        );
    }
}

unsafe extern "C" fn contained(context: *mut Context, number: u32, into: *mut ContainedInfo) -> i32 {
    // SAFETY: see `COMBINE`.
    let Some((container, test)) = (unsafe { one(context, number) }) else { return 0 };
    // SAFETY: see `COMBINE`.
    unsafe { fill(container.info(test), into) };
    1
}

unsafe extern "C" fn load(context: *mut Context, number: u32) -> i32 {
    // SAFETY: see `COMBINE`.
    unsafe { one(context, number) }.map_or(STATUS_FAILED, |(container, test)| container.load(test))
}

unsafe extern "C" fn run(context: *mut Context, turn: *const Turn, into: *mut Ran) {
    // SAFETY: see `COMBINE`.
    let turn = unsafe { &*turn };
    // SAFETY: as above.
    if let (Some((caller, _)), Some((container, test))) = unsafe { (of(context), one(context, turn.test)) } {
        // SAFETY: as above.
        let ran = unsafe { container.run(caller, test, turn) };
        // SAFETY: as above.
        unsafe { fill(ran, into) };
    }
}

unsafe extern "C" fn waiting(context: *mut Context, waits: i32) {
    // SAFETY: see `COMBINE`.
    let Some((caller, _)) = (unsafe { of(context) }) else { return };
    let Some((_, slot)) = caller.place() else { return };
    if waits != 0 {
        WorkerState::Waiting.store(&slot.state);
    } else {
        slot.entered_at.store(caller.test.clock.now().0, Ordering::Relaxed);
        WorkerState::Running.store(&slot.state);
    }
}

unsafe extern "C" fn ask(context: *mut Context, number: u32, share: f64) {
    // SAFETY: see `COMBINE`.
    if let Some((container, test)) = unsafe { one(context, number) } {
        test.slot(container.factory).asked.store(share.to_bits(), Ordering::Relaxed);
    }
}

unsafe extern "C" fn cancel(context: *mut Context, number: u32) {
    // SAFETY: see `COMBINE`.
    if let Some((container, test)) = unsafe { one(context, number) } {
        container.cancel(test);
    }
}

unsafe extern "C" fn unload(context: *mut Context, number: u32) {
    // SAFETY: see `COMBINE`.
    if let Some((container, test)) = unsafe { one(context, number) } {
        container.unload(test);
    }
}
