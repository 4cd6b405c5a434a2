//! One schedule of a strict test: its whole life, from CreateInstance to DestroyInstance, on threads of the run.
//!
//! Every schedule begins with a new instance, so that it depends on nothing that earlier ones did, and can be run again
//! alone. The first worker's thread also creates, starts and ends the test: no thread of the run is older than the
//! schedule, and none is there that the test does not need.

use std::ffi::{CString, c_void};
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use waylay_abi::{ABI_VERSION, CreateArgs, Instance, STATUS_DONE, STATUS_OK};
use waylay_page::TestPhase;
use waylay_page::record::Sort;

use crate::context::{CallContext, TestRuntime};
use crate::factory::TestFactory;
use crate::fatal::Blame;
use crate::loader::Plugin;
use crate::plan::{TestPlan, WorkerPlan};
use crate::services::{COMBINER_SERVICES, SERVICES};
use crate::sys::{self, Joinable, RunControl};

/// A test that is put on again and again. Never freed: threads that a schedule left behind may still use its contexts.
pub(crate) struct Stage {
    factory: &'static TestFactory,
    plugin: Plugin,
    pub(crate) test: &'static TestRuntime,
    name: CString,
    own: &'static CallContext,
    workers: Vec<Worker>,
    instance: AtomicPtr<Instance>,
    run: AtomicU64,
    /// Why the test cannot run at all.
    refusal: Mutex<Option<String>>,
}

struct Worker {
    stage: AtomicPtr<Stage>,
    context: &'static CallContext,
}

impl Stage {
    /// Prepares the first of the tests, which contains the others, and finds who makes its runs, unless threads run freely;
    /// none when its plugin could not be loaded.
    pub(crate) fn set_up(
        factory: &'static TestFactory,
        tests: &[TestPlan],
        free: bool,
    ) -> Result<Option<(&'static Stage, Option<RunControl>)>, String> {
        let Some((test, others)) = tests.split_first() else { return Err("there is no test".to_owned()) };
        if others.iter().any(|test| test.contained.is_none()) {
            return Err("strict mode runs one test at a time".to_owned());
        }
        let Some(plugin) = factory.plugin(test) else { return Ok(None) };
        let control = match free {
            true => None,
            false => Some(RunControl::find().ok_or("the control library was not loaded first")?),
        };
        // Whatever a contained test says is a failure: it is created anew in every schedule.
        for inside in &factory.page().tests[1..tests.len()] {
            TestPhase::Running.store(&inside.phase);
        }
        let own = factory.context(0, plugin, test, factory.shared)?;
        Ok(Some((Stage::new(factory, plugin, own, &test.workers)?, control)))
    }

    fn new(
        factory: &'static TestFactory,
        plugin: Plugin,
        own: &'static CallContext,
        workers: &[WorkerPlan],
    ) -> Result<&'static Stage, String> {
        let test = own.test;
        let worker = |(number, plan): (usize, &WorkerPlan)| Worker {
            stage: AtomicPtr::default(),
            context: leak(CallContext::worker(test, number as u32, &test.page.workers[plan.slot])),
        };
        let stage = leak(Stage {
            factory,
            plugin,
            test,
            name: CString::new(test.name.as_str()).map_err(|error| error.to_string())?,
            own,
            workers: workers.iter().enumerate().map(worker).collect(),
            instance: AtomicPtr::default(),
            run: AtomicU64::new(0),
            refusal: Mutex::new(None),
        });
        for worker in &stage.workers {
            worker.stage.store(std::ptr::from_ref(stage).cast_mut(), Ordering::Relaxed);
        }
        Ok(stage)
    }

    /// Plays one schedule on threads of its own; between the beginning and the end of a run. The reason is that of a
    /// test which cannot run at all. A failure does not return.
    pub(crate) fn play(&'static self, run: u64) -> Result<(), String> {
        self.run.store(run, Ordering::Relaxed);
        self.test.cancelled.store(false, Ordering::Relaxed);
        self.factory.begin_schedule(run);
        if let Some(container) = self.test.container {
            container.renew();
        }
        let leader = self.begin_worker(0, lead).map_err(|error| format!("cannot start a thread: {error}"))?;
        leader.join();
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take();
        refusal.map_or(Ok(()), Err)
    }

    fn begin_worker(
        &self,
        number: usize,
        routine: extern "C" fn(*mut c_void) -> *mut c_void,
    ) -> io::Result<Joinable> {
        let worker = std::ptr::from_ref(&self.workers[number]).cast_mut();
        // SAFETY: workers of a stage live for good.
        unsafe { sys::start_thread(routine, worker.cast()) }
    }

    /// A test that cannot start in the first schedule cannot run; later, the schedule is to blame.
    fn refuse(&self, reason: &str) {
        if TestPhase::load(&self.test.slot().phase) > TestPhase::Starting {
            return self.own.hand_over(Sort::Assert, reason.as_bytes(), &[]);
        }
        let said = self.test.refusal.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reason = said.map_or_else(|| reason.to_owned(), |said| format!("{reason}: {said}"));
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    fn create(&self) -> Option<*mut Instance> {
        let args = CreateArgs {
            size: size_of::<CreateArgs>() as u32,
            abi_version: ABI_VERSION,
            test: self.name.as_ptr(),
            services: if self.test.container.is_some() { &COMBINER_SERVICES } else { &SERVICES },
            context: self.own.as_raw(),
        };
        // SAFETY: the arguments are as the contract says and live long enough.
        let instance = unsafe { (self.plugin.create)(&args) };
        // SAFETY: a non-null answer is a live instance.
        let Some(checked) = (unsafe { instance.as_ref() }) else {
            self.refuse("CreateInstance failed");
            return None;
        };
        if (checked.size as usize) < size_of::<Instance>() || checked.test_main.is_none() {
            self.refuse("CreateInstance returned an instance without size or TestMain");
            return None;
        }
        // SAFETY: the instance is alive; the contract says that this is the first call on it.
        let status = checked.on_test_start.map_or(STATUS_OK, |start| unsafe { start(instance) });
        if status != STATUS_OK {
            self.refuse("OnTestStart failed");
            if let Some(container) = self.test.container {
                container.unload_all();
            }
            // SAFETY: the instance is alive and no worker was started.
            unsafe { (self.plugin.destroy)(instance) };
            return None;
        }
        Some(instance)
    }

    fn end(&self, instance: *mut Instance) {
        // SAFETY: for all calls here, the instance is alive until the destroy call at the end; the contract allows each call
        // in this order, and the workers were joined.
        unsafe {
            self.test.cancelled.store(true, Ordering::Relaxed);
            if let Some(cancel) = (*instance).on_test_cancelled {
                cancel(instance);
            }
            if let Some(end) = (*instance).on_test_end {
                end(instance);
            }
            if let Some(container) = self.test.container {
                container.unload_all();
            }
            (self.plugin.destroy)(instance);
        }
        self.own.release_kept();
        if let Some(container) = self.test.container {
            container.destroy();
        }
        self.test.shared.destroy_all();
    }

    /// One call of `TestMain`.
    fn call(&self, worker: &Worker) {
        let (instance, context) = (self.instance.load(Ordering::Relaxed), worker.context);
        let _blame = Blame::without_tag(context);
        if let Some(slot) = context.worker_slot() {
            slot.tid.store(sys::thread_id(), Ordering::Relaxed);
        }
        let run = self.run.load(Ordering::Relaxed);
        // SAFETY: this is the worker's own thread, and `TestMain` is called once on it; the instance is alive until all
        // workers were joined, and has a `TestMain`.
        unsafe {
            context.begin(run);
            let main = (*instance).test_main.unwrap_unchecked();
            let status = main(instance, context.as_raw());
            context.end();
            if status != STATUS_OK && status != STATUS_DONE {
                context.fail_without_words();
            }
        }
    }
}

/// The first worker's thread: it also begins and ends the test.
extern "C" fn lead(worker: *mut c_void) -> *mut c_void {
    // SAFETY: `begin_worker` passes a worker of a stage, which lives for good.
    let (stage, worker) = unsafe { owner(worker) };
    let blame = Blame::without_tag(stage.own);
    // SAFETY: nobody else draws before the instance exists.
    unsafe { stage.own.begin(stage.run.load(Ordering::Relaxed)) };
    let Some(instance) = stage.create() else { return std::ptr::null_mut() };
    stage.instance.store(instance, Ordering::Relaxed);
    // From here on a failure is a failure, also in the first schedule.
    TestPhase::Running.store(&stage.test.slot().phase);
    let others: Vec<Joinable> = (1..stage.workers.len())
        .filter_map(|number| match stage.begin_worker(number, follow) {
            Ok(thread) => Some(thread),
            Err(error) => {
                stage.refuse(&format!("cannot start a worker: {error}"));
                None
            }
        })
        .collect();
    drop(blame);
    stage.call(worker);
    others.into_iter().for_each(Joinable::join);
    let _blame = Blame::without_tag(stage.own);
    stage.end(instance);
    std::ptr::null_mut()
}

/// Every other worker's thread.
extern "C" fn follow(worker: *mut c_void) -> *mut c_void {
    // SAFETY: as in `lead`.
    let (stage, worker) = unsafe { owner(worker) };
    stage.call(worker);
    std::ptr::null_mut()
}

/// # Safety
///
/// `worker` must point to a worker of a stage.
unsafe fn owner(worker: *mut c_void) -> (&'static Stage, &'static Worker) {
    // SAFETY: passed on to our caller; `Stage::new` filled the way back in.
    unsafe {
        let worker = &*worker.cast::<Worker>();
        (&*worker.stage.load(Ordering::Relaxed), worker)
    }
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
