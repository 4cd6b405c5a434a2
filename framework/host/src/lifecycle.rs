//! From plan to end: load, create, start, run, cancel, end. One thread per test waits for its workers and ends it, so
//! that a test that never returns from a callback keeps no other test from ending.

use std::collections::BTreeMap;
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

use crate::combine::{Container, Hooks};
use crate::context::{CallContext, Manner, TestRuntime};
use crate::description::{list, text};
use crate::event::{Event, Events};
use crate::loader::Plugin;
use crate::plan::{RunPlan, TestPlan, WorkerPlan};
use crate::services::{COMBINER_SERVICES, SERVICES};
use crate::shared::{Kinds, SharedObjects};
use crate::stage::Stage;
use crate::sys::RunControl;
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

/// What tests share while they are brought up.
pub(crate) struct Nursery {
    page: &'static Layout,
    clock: Source,
    seed: Seed,
    pub(crate) events: Events,
    kinds: Kinds,
    shared: &'static SharedObjects,
    plugins: Vec<Option<Plugin>>,
    /// Tests that are contained in others, by the index of the container.
    contained: BTreeMap<usize, Vec<(usize, TestPlan)>>,
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
    let mut kinds = Kinds::default();
    for plugin in plugins.iter().flatten() {
        let info = plugin.info();
        list(info.kinds, info.kind_count).for_each(|kind| kinds.provide(kind));
    }
    events.send(&Event::Kinds { names: kinds.names() });
    let shared: &'static SharedObjects = Box::leak(Box::new(SharedObjects::single(&kinds, plan.seed)));
    if plan.strict {
        return run_strict(&plan, plugins, page, &events, shared);
    }
    let mut contained: BTreeMap<usize, Vec<(usize, TestPlan)>> = BTreeMap::new();
    for (index, test) in plan.tests.iter().enumerate() {
        if let Some(inside) = &test.contained {
            contained.entry(inside.container).or_default().push((index, test.clone()));
        }
    }
    // Combiners load their tests while they run, and threads that tests left behind outlive this function.
    let nursery: &'static Nursery = Box::leak(Box::new(Nursery {
        page: layout,
        clock: page.source(),
        seed: plan.seed,
        events,
        kinds,
        shared,
        plugins,
        contained,
    }));

    HostPhase::Starting.store(&layout.header.phase);
    layout.ring();
    wait_for(layout, &layout.header.go, |go| go != 0);
    let mut tests = Vec::new();
    for (index, test) in plan.tests.iter().enumerate().filter(|(_, test)| test.contained.is_none()) {
        if let Some(live) = nursery.admit(index, test, nursery.shared) {
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
        nursery.events.send(&Event::TestStarted { test: index });
        running.push(Some(live));
    }
    layout.ring();
    wait_and_end(running, layout)?;

    shared.destroy_all();
    take_leave(layout)
}

/// Strict mode: schedule after schedule of the one test of the plan.
fn run_strict(
    plan: &RunPlan,
    plugins: Vec<Option<Plugin>>,
    page: &'static Page,
    events: &Events,
    shared: &'static SharedObjects,
) -> Result<(), HostError> {
    let layout = page.layout();
    HostPhase::Starting.store(&layout.header.phase);
    layout.ring();
    wait_for(layout, &layout.header.go, |go| go != 0);
    let free = plan.trial.is_some_and(|trial| trial.free);
    let prepare = || -> Result<Option<(&'static Stage, Option<RunControl>)>, String> {
        let [test] = &plan.tests[..] else { return Err("strict mode runs one test at a time".to_owned()) };
        let Some(Some(plugin)) = plugins.get(test.plugin) else { return Ok(None) };
        let control = match free {
            true => None,
            false => Some(RunControl::find().ok_or("the control library was not loaded into the host")?),
        };
        let info =
            plugin.test(&test.name).ok_or_else(|| format!("the plugin has no test named `{}`", test.name))?;
        let runtime: &'static TestRuntime = Box::leak(Box::new(TestRuntime {
            index: 0,
            name: test.name.clone(),
            seed: plan.seed,
            page: layout,
            clock: page.source(),
            distributions: distributions(info, test)?,
            shared,
            kept: Mutex::default(),
            container: None,
            cancelled: AtomicBool::new(false),
            refusal: Mutex::new(None),
            manner: if plan.trial.is_some() { Manner::Counted } else { Manner::Strict },
        }));
        Ok(Some((Stage::new(*plugin, runtime, &test.workers)?, control)))
    };
    let refuse = |reason: String| {
        TestPhase::Refused.store(&layout.tests[0].phase);
        events.send(&Event::TestRefused { test: 0, reason });
    };
    match prepare() {
        Ok(Some((stage, control))) => {
            fatal::watch_for_exit();
            HostPhase::Running.store(&layout.header.phase);
            events.send(&Event::TestStarted { test: 0 });
            layout.ring();
            let look = || leave_if_orphaned(layout);
            let lives = strict::Lives {
                stage,
                control: control.as_ref(),
                plans: &plan.tests[0].workers,
                trial: plan.trial,
            };
            if let Err(reason) = strict::run(&lives, layout, events, look) {
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

impl Nursery {
    /// Creates and starts one test; if that is impossible, the driver is told why.
    pub(crate) fn admit(
        &'static self,
        index: usize,
        plan: &TestPlan,
        shared: &'static SharedObjects,
    ) -> Option<Live> {
        let refuse = || TestPhase::Refused.store(&self.page.tests[index].phase);
        // A plugin that could not be loaded was reported once for all of its tests.
        let Some(Some(plugin)) = self.plugins.get(plan.plugin) else {
            refuse();
            return None;
        };
        let reason = match self.bring_up(index, *plugin, plan, shared) {
            Ok(live) => return Some(live),
            Err(reason) => reason,
        };
        refuse();
        for (inside, _) in self.contained.get(&index).into_iter().flatten() {
            TestPhase::Refused.store(&self.page.tests[*inside].phase);
        }
        self.events.send(&Event::TestRefused { test: index, reason });
        None
    }

    /// The tests that a test contains, its pools and its hooks.
    fn container(&'static self, index: usize, plan: &TestPlan) -> Result<Option<&'static Container>, String> {
        let Some(combiner) = &plan.combiner else { return Ok(None) };
        let shared = SharedObjects::pools(&self.kinds, self.seed, &plan.name, &combiner.pools)?;
        let hooks = combiner
            .hooks
            .iter()
            .map(|hooks| Hooks::make(self.plugins.get(hooks.plugin).copied().flatten(), &hooks.name))
            .collect::<Result<_, String>>()?;
        let tests = self.contained.get(&index).cloned().unwrap_or_default();
        let workers = plan.workers.len().max(1) as u32;
        let shared = Box::leak(Box::new(shared));
        Ok(Some(Container::new(self, combiner, tests, workers, shared, hooks)?))
    }

    pub(crate) fn page(&self) -> &'static Layout {
        self.page
    }

    /// Creates and starts one test, or says why not.
    fn bring_up(
        &'static self,
        index: usize,
        plugin: Plugin,
        plan: &TestPlan,
        shared: &'static SharedObjects,
    ) -> Result<Live, String> {
        let info =
            plugin.test(&plan.name).ok_or_else(|| format!("the plugin has no test named `{}`", plan.name))?;
        let container = self.container(index, plan)?;
        let runtime: &'static TestRuntime = Box::leak(Box::new(TestRuntime {
            index: index as u32,
            name: plan.name.clone(),
            seed: self.seed,
            page: self.page,
            clock: self.clock,
            distributions: distributions(info, plan)?,
            shared,
            kept: Mutex::default(),
            container,
            cancelled: AtomicBool::new(false),
            refusal: Mutex::new(None),
            manner: Manner::Free,
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
            services: if container.is_some() { &COMBINER_SERVICES } else { &SERVICES },
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
            if let Some(container) = container {
                container.unload_all();
            }
            // SAFETY: the instance is alive and no worker was started.
            unsafe { (plugin.destroy)(instance) };
            return Err(reason);
        }
        Ok(Live { destroy: plugin.destroy, instance: SharedInstance(instance), context, workers: Vec::new() })
    }
}

/// The test's parameters: what the plan gives, else the test's own default.
pub(crate) fn distributions(info: &TestInfo, plan: &TestPlan) -> Result<Vec<(String, Dist)>, String> {
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
        test.enter(TestPhase::Cancelling);
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
        test.enter(TestPhase::Ending);
        if let Some(end) = callbacks.on_test_end {
            // SAFETY: see above.
            unsafe { end(instance) };
        }
        if let Some(container) = test.container {
            container.unload_all();
        }
        test.enter(TestPhase::Destroying);
        // SAFETY: see above.
        unsafe { (self.destroy)(instance) };
        self.context.release_kept();
        if let Some(container) = test.container {
            container.destroy();
        }
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
