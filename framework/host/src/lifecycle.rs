//! From plan to end: load, create, start, run, cancel, end. One thread per test waits for its workers and ends it, so
//! that a test that never returns from a callback keeps no other test from ending.

use std::ffi::CString;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use waylay_abi::{ABI_VERSION, CreateArgs, DestroyEntry, Instance, STATUS_OK, TestInfo};
use waylay_dist::{Dist, Seed, Spec};
use waylay_page::clock::Source;
use waylay_page::{AttachError, Command, HostPhase, Layout, Page, TestPhase, wait_until_changed, wake_all};

use crate::context::{CallContext, TestRuntime};
use crate::description::{list, text};
use crate::event::{Event, Events};
use crate::loader::Plugin;
use crate::plan::{RunPlan, TestPlan, WorkerPlan};
use crate::services::SERVICES;
use crate::shared::SharedObjects;
use crate::worker::{self, SharedInstance};
use crate::{fatal, sys};

/// Why a host gave up before it ran anything.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// A test that was created and started.
struct Live {
    destroy: DestroyEntry,
    instance: SharedInstance,
    context: &'static CallContext,
    workers: Vec<JoinHandle<()>>,
}

/// What tests share while they are brought up.
struct Nursery {
    page: &'static Layout,
    clock: Source,
    seed: Seed,
    events: Events,
    shared: &'static SharedObjects,
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
    fatal::install(layout);

    HostPhase::Loading.store(&layout.header.phase);
    let plugins = load(&plan, layout, &events);
    let mut shared = SharedObjects::default();
    for plugin in plugins.iter().flatten() {
        let info = plugin.info();
        list(info.kinds, info.kind_count).for_each(|kind| shared.provide(kind));
    }
    let shared: &'static SharedObjects = Box::leak(Box::new(shared));
    let nursery = Nursery { page: layout, clock: page.source(), seed: plan.seed, events, shared };

    HostPhase::Starting.store(&layout.header.phase);
    layout.ring();
    wait_for(layout, &layout.header.go, |go| go != 0);
    let mut tests = Vec::new();
    for (index, test) in plan.tests.iter().enumerate() {
        // A plugin that could not be loaded was reported once for all of its tests.
        let Some(Some(plugin)) = plugins.get(test.plugin) else {
            TestPhase::Refused.store(&layout.tests[index].phase);
            continue;
        };
        match nursery.bring_up(index, *plugin, test) {
            Ok(live) => tests.push((index, live, test.workers.clone())),
            Err(reason) => {
                TestPhase::Refused.store(&layout.tests[index].phase);
                nursery.events.send(&Event::TestRefused { test: index, reason });
            }
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
        nursery.events.send(&Event::TestStarted { test: index });
        running.push(Some(live));
    }
    layout.ring();
    wait_and_end(running, layout)?;

    shared.destroy_all();
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

impl Nursery {
    /// Creates and starts one test, or says why not.
    fn bring_up(&self, index: usize, plugin: Plugin, plan: &TestPlan) -> Result<Live, String> {
        let info =
            plugin.test(&plan.name).ok_or_else(|| format!("the plugin has no test named `{}`", plan.name))?;
        let runtime: &'static TestRuntime = Box::leak(Box::new(TestRuntime {
            index: index as u32,
            name: plan.name.clone(),
            seed: self.seed,
            page: self.page,
            clock: self.clock,
            distributions: distributions(info, plan)?,
            shared: self.shared,
            cancelled: AtomicBool::new(false),
            refusal: Mutex::new(None),
        }));
        let context: &'static CallContext = Box::leak(Box::new(CallContext::instance(runtime)));
        let _tag = fatal::Blame::on(context);
        let said = || runtime.refusal.lock().unwrap_or_else(PoisonError::into_inner).take();

        runtime.enter(TestPhase::Creating);
        let name = CString::new(plan.name.as_str()).map_err(|error| error.to_string())?;
        let args = CreateArgs {
            size: size_of::<CreateArgs>() as u32,
            abi_version: ABI_VERSION,
            test: name.as_ptr(),
            services: &SERVICES,
            context: context.as_raw(),
        };
        // SAFETY: the arguments are as the contract says and live long enough.
        let instance = unsafe { (plugin.create)(&args) };
        // SAFETY: a non-null answer is a live instance.
        let Some(checked) = (unsafe { instance.as_ref() }) else {
            return Err(match said() {
                Some(message) => format!("CreateInstance failed: {message}"),
                None => "CreateInstance returned null".to_owned(),
            });
        };
        if (checked.size as usize) < size_of::<Instance>() || checked.test_main.is_none() {
            return Err("CreateInstance returned an instance without size or TestMain".to_owned());
        }

        runtime.enter(TestPhase::Starting);
        // SAFETY: the instance is alive; the contract says that this is the first call on it.
        let status = checked.on_test_start.map_or(STATUS_OK, |start| unsafe { start(instance) });
        if status != STATUS_OK {
            let reason = match said() {
                Some(message) => format!("OnTestStart failed: {message}"),
                None => format!("OnTestStart failed with status {status}"),
            };
            // SAFETY: the instance is alive and no worker was started.
            unsafe { (plugin.destroy)(instance) };
            return Err(reason);
        }
        Ok(Live { destroy: plugin.destroy, instance: SharedInstance(instance), context, workers: Vec::new() })
    }
}

/// The test's parameters: what the plan gives, else the test's own default.
fn distributions(info: &TestInfo, plan: &TestPlan) -> Result<Vec<(String, Dist)>, String> {
    list(info.params, info.param_count)
        .map(|param| {
            let name = text(param.name);
            let spec = match plan.params.get(&name) {
                Some(spec) => spec.clone(),
                None if param.default_value.is_null() => {
                    return Err(format!("parameter `{name}` has no default: give one under `params`"));
                }
                None => text(param.default_value)
                    .parse::<Spec>()
                    .map_err(|error| format!("the default of parameter `{name}` is wrong: {error}"))?,
            };
            let dist = Dist::new(&spec).map_err(|error| format!("parameter `{name}`: {error}"))?;
            Ok((name, dist))
        })
        .collect()
}

impl Live {
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
    fn end(self) {
        sys::prepare_thread();
        let _blame = fatal::Blame::on(self.context);
        let test = self.context.test;
        let instance = self.instance.0;
        // SAFETY: for all calls here, the instance is alive until the destroy call at the end; the contract allows each call
        // in this order, and the workers are joined before the test is ended.
        let callbacks = unsafe { &*instance };
        test.cancelled.store(true, Ordering::Relaxed);
        test.enter(TestPhase::Cancelling);
        if let Some(cancel) = callbacks.on_test_cancelled {
            // SAFETY: see above.
            unsafe { cancel(instance) };
        }
        test.enter(TestPhase::Draining);
        for worker in self.workers {
            let _ = worker.join();
        }
        test.enter(TestPhase::Ending);
        if let Some(end) = callbacks.on_test_end {
            // SAFETY: see above.
            unsafe { end(instance) };
        }
        test.enter(TestPhase::Destroying);
        // SAFETY: see above.
        unsafe { (self.destroy)(instance) };
        test.enter(TestPhase::Ended);
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
