//! From plan to end: load, create, start, run, cancel, end. One thread per test waits for its workers and ends it, so
//! that a test that never returns from a callback keeps no other test from ending.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use waylay_abi::{DestroyEntry, Instance};
use waylay_page::{AttachError, Command, HostPhase, Layout, Page, TestPhase, wait_until_changed, wake_all};

use crate::context::{CallContext, RunMode};
use crate::event::{Event, Events};
use crate::factory::TestFactory;
use crate::loader::Plugin;
use crate::plan::{RunPlan, WorkerPlan};
use crate::stage::Stage;
use crate::worker::{self, SharedInstance};
use crate::{fatal, strict, sys};

/// Why a host gave up before it ran anything.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// A test that was created and started.
pub(crate) struct Live {
    destroy: DestroyEntry,
    pub(crate) instance: SharedInstance,
    pub(crate) context: &'static CallContext,
    workers: Vec<JoinHandle<()>>,
}

/// Runs the plan to its end; returns when every test was ended in order.
pub(crate) fn run(plan: RunPlan) -> Result<(), HostError> {
    sys::belong_to_parent(!plan.keep_when_orphaned);
    // SAFETY: the driver made these two handles for us and told nobody else about them.
    let page = unsafe { Page::attach(sys::shared_handle(plan.page)) }?;
    // SAFETY: as above.
    let events = unsafe { Events::from_raw(plan.events) };
    // The page is read by signal handlers and threads that outlive this function, so it is never unmapped.
    let page: &'static Page = Box::leak(Box::new(page));
    let layout = page.layout();
    layout.header.own_thread.store(sys::thread_id(), Ordering::Release);
    fatal::install(layout, plan.strict);

    HostPhase::Loading.store(&layout.header.phase);
    let plugins = load(&plan, layout, &events);
    let run_mode = match (plan.strict, plan.trial) {
        (true, Some(_)) => RunMode::Counted,
        (true, None) => RunMode::Strict,
        (false, _) => RunMode::Free,
    };
    let factory = TestFactory::new(page, plan.seed, Some(events), plugins, &plan.tests, run_mode);
    if plan.strict {
        return run_strict(&plan, layout, factory);
    }

    HostPhase::Starting.store(&layout.header.phase);
    layout.ring();
    wait_for(layout, &layout.header.go, |go| go != 0);
    let mut tests = Vec::new();
    for (index, test) in plan.tests.iter().enumerate().filter(|(_, test)| test.contained.is_none()) {
        if let Some(live) = factory.admit(index, test, factory.shared) {
            tests.push((index, live, test.workers.clone()));
        }
        if Command::load(&layout.header.command) != Command::Run {
            break;
        }
    }

    fatal::watch_for_exit();
    HostPhase::Running.store(&layout.header.phase);
    let mut running: Vec<Option<Live>> = Vec::new();
    for (index, mut live, workers) in tests {
        live.context.test.enter(TestPhase::Running);
        live.start_workers(&workers, layout)?;
        factory.tell(&Event::TestStarted { test: index });
        running.push(Some(live));
    }
    layout.ring();
    wait_and_end(running, layout)?;

    factory.shared.destroy_all();
    take_leave(layout)
}

/// Strict mode: schedule after schedule of the first test of the plan, which may contain the others.
fn run_strict(
    plan: &RunPlan,
    layout: &'static Layout,
    factory: &'static TestFactory,
) -> Result<(), HostError> {
    HostPhase::Starting.store(&layout.header.phase);
    layout.ring();
    wait_for(layout, &layout.header.go, |go| go != 0);
    let free = plan.trial.is_some_and(|trial| trial.free);
    let refuse = |reason: String| {
        TestPhase::Refused.store(&layout.tests[0].phase);
        factory.tell(&Event::TestRefused { test: 0, reason });
    };
    match Stage::set_up(factory, &plan.tests, free) {
        Ok(Some((stage, control))) => {
            fatal::watch_for_exit();
            HostPhase::Running.store(&layout.header.phase);
            factory.tell(&Event::TestStarted { test: 0 });
            layout.ring();
            let look = || leave_if_orphaned(layout);
            let lives =
                strict::Lives { stage, control: control.as_ref(), tests: &plan.tests, trial: plan.trial };
            if let Err(reason) = strict::run(&lives, layout, factory, look) {
                refuse(reason);
            }
        }
        // A plugin that could not be loaded was reported already.
        Ok(None) => TestPhase::Refused.store(&layout.tests[0].phase),
        Err(reason) => refuse(reason),
    }
    take_leave(layout)
}

/// Waits until the driver has looked at what the tests left behind, then ends the process.
fn take_leave(layout: &'static Layout) -> ! {
    HostPhase::Ended.store(&layout.header.phase);
    layout.ring();
    wait_for(layout, &layout.header.command, |command| command == Command::Leave as u32);
    HostPhase::Left.store(&layout.header.phase);
    // Not through `exit`: threads that a test left behind would race with the destructors of static objects, and the
    // crash would be ours.
    sys::leave_at_once();
}

/// Waits for a word of the driver's. A driver that is gone takes the host with it.
fn wait_for(layout: &Layout, word: &AtomicU32, there: impl Fn(u32) -> bool) {
    loop {
        let seen = word.load(Ordering::Acquire);
        if there(seen) {
            break;
        }
        leave_if_orphaned(layout);
        wait_until_changed(word, seen, Some(Duration::from_millis(50)));
    }
}

fn leave_if_orphaned(layout: &Layout) {
    if layout.header.kept.load(Ordering::Acquire) == 0 {
        sys::leave_if_orphaned();
    }
}

fn load(plan: &RunPlan, layout: &Layout, events: &Events) -> Vec<Option<Plugin>> {
    let open = |(index, path): (usize, &std::path::PathBuf)| {
        layout.header.loading.store(index as u32, Ordering::Release);
        Plugin::open(path)
            .map_err(|error| events.send(&Event::PluginRefused { plugin: index, reason: error.to_string() }))
            .ok()
    };
    plan.plugins.iter().enumerate().map(open).collect()
}

impl Live {
    /// A test that was just created and started.
    pub(crate) fn new(destroy: DestroyEntry, instance: *mut Instance, context: &'static CallContext) -> Live {
        Live { destroy, instance: SharedInstance(instance), context, workers: Vec::new() }
    }

    fn start_workers(&mut self, plans: &[WorkerPlan], layout: &'static Layout) -> io::Result<()> {
        let (test, instance) = (self.context.test, self.instance);
        for (number, plan) in plans.iter().enumerate() {
            let plan = plan.clone();
            let slot = &layout.workers[plan.slot];
            let body = move || {
                sys::prepare_thread();
                // Boxed and kept: a thread that the iteration left behind may still ask whether it is cancelled.
                let context: &'static CallContext =
                    Box::leak(Box::new(CallContext::worker(test, number as u32, slot)));
                let _blame = fatal::Blame::on(context);
                worker::run(context, instance, &plan, slot);
                wake_all(&layout.header.command);
            };
            self.workers.push(thread::Builder::new().name(format!("{}#{number}", test.name)).spawn(body)?);
        }
        Ok(())
    }

    fn finished(&self) -> bool {
        self.workers.iter().all(JoinHandle::is_finished)
    }

    /// Cancels, waits for the workers, ends and destroys the test.
    fn end(mut self) {
        sys::prepare_thread();
        self.cancel();
        self.context.test.enter(TestPhase::Draining);
        for worker in std::mem::take(&mut self.workers) {
            let _ = worker.join();
        }
        self.finish();
    }

    /// Tells the test to stop. Call once.
    pub(crate) fn cancel(&self) {
        let _blame = fatal::Blame::on(self.context);
        let test = self.context.test;
        test.cancelled.store(true, Ordering::Relaxed);
        test.pass(TestPhase::Cancelling);
        // SAFETY: the instance is alive until `finish`, which takes `self`.
        if let Some(cancel) = unsafe { (*self.instance.0).on_test_cancelled } {
            // SAFETY: as above; the contract allows it while workers are inside.
            unsafe { cancel(self.instance.0) };
        }
    }

    /// Ends and destroys the test; nobody is inside any more.
    pub(crate) fn finish(self) {
        let _blame = fatal::Blame::on(self.context);
        let test = self.context.test;
        let instance = self.instance.0;
        // SAFETY: for all calls here, the instance is alive until the destroy call at the end, and the contract allows each
        // call in this order.
        let callbacks = unsafe { &*instance };
        test.pass(TestPhase::Ending);
        if let Some(end) = callbacks.on_test_end {
            // SAFETY: see above.
            unsafe { end(instance) };
        }
        if let Some(container) = test.container {
            container.unload_all();
        }
        test.pass(TestPhase::Destroying);
        // SAFETY: see above.
        unsafe { (self.destroy)(instance) };
        self.context.release_kept();
        if let Some(container) = test.container {
            container.destroy();
        }
        test.pass(TestPhase::Ended);
    }
}

/// Waits for the driver's commands and for tests that finish by themselves; ends each test on a thread of its own.
fn wait_and_end(mut running: Vec<Option<Live>>, layout: &'static Layout) -> io::Result<()> {
    let mut ending = Vec::new();
    loop {
        let command = layout.header.command.load(Ordering::Acquire);
        let cancel_all = Command::load(&layout.header.command) != Command::Run;
        leave_if_orphaned(layout);
        if cancel_all {
            HostPhase::Cancelling.store(&layout.header.phase);
        }
        for place in &mut running {
            let due = |live: &Live| {
                let own = &layout.tests[live.context.test.index as usize].command;
                cancel_all || Command::load(own) == Command::Cancel || live.finished()
            };
            if let Some(live) = place.take_if(|live| due(live)) {
                let name = format!("end:{}", live.context.test.name);
                ending.push(thread::Builder::new().name(name).spawn(move || live.end())?);
            }
        }
        if running.iter().all(Option::is_none) {
            break;
        }
        // Woken by the driver's commands and by each worker that ends; the timeout covers a wake between the look
        // above and the wait, which the unchanged command word cannot show.
        wait_until_changed(&layout.header.command, command, Some(Duration::from_millis(50)));
    }
    for thread in ending {
        let _ = thread.join();
    }
    Ok(())
}
