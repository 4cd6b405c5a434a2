//! Creates and starts tests, or refuses them with the reason; holds what they share meanwhile.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use waylay_abi::{ABI_VERSION, CreateArgs, Instance, STATUS_OK, TestInfo};
use waylay_dist::{Dist, Seed, Spec};
use waylay_page::clock::Source;
use waylay_page::record::Sort;
use waylay_page::{Layout, Page, TestPhase};

use crate::combine::{Container, Hooks};
use crate::context::{CallContext, RunMode, TestRuntime};
use crate::description::{list, text};
use crate::event::{Event, Events};
use crate::fatal;
use crate::lifecycle::Live;
use crate::loader::Plugin;
use crate::plan::TestPlan;
use crate::services::{COMBINER_SERVICES, SERVICES};
use crate::shared::{Kinds, SharedObjects};

/// Makes tests, and holds what they share meanwhile. Never freed: combiners load their tests while they run, and threads that
/// tests left behind outlive everything.
pub(crate) struct TestFactory {
    page: &'static Layout,
    clock: Source,
    seed: Seed,
    /// None when there is no driver.
    events: Option<Events>,
    kinds: Kinds,
    pub(crate) shared: &'static SharedObjects,
    plugins: Vec<Option<Plugin>>,
    /// Tests that are contained in others, by the index of the container.
    contained: BTreeMap<usize, Vec<(usize, TestPlan)>>,
    run_mode: RunMode,
    /// In strict mode: the number of the schedule.
    schedule: AtomicU64,
    /// Tests that were brought up before: a life that begins anew uses what does not change of the last one.
    known: Mutex<BTreeMap<usize, &'static CallContext>>,
}

impl TestFactory {
    /// For the tests of a plan, with the plugins that could be loaded.
    pub(crate) fn new(
        page: &'static Page,
        seed: Seed,
        events: Option<Events>,
        plugins: Vec<Option<Plugin>>,
        tests: &[TestPlan],
        run_mode: RunMode,
    ) -> &'static TestFactory {
        let mut kinds = Kinds::default();
        for plugin in plugins.iter().flatten() {
            let info = plugin.info();
            list(info.kinds, info.kind_count).for_each(|kind| kinds.provide(kind));
        }
        let mut contained: BTreeMap<usize, Vec<(usize, TestPlan)>> = BTreeMap::new();
        for (index, test) in tests.iter().enumerate() {
            if let Some(inside) = &test.contained {
                contained.entry(inside.container).or_default().push((index, test.clone()));
            }
        }
        let names = kinds.names();
        let factory = Box::leak(Box::new(TestFactory {
            page: page.layout(),
            clock: page.source(),
            seed,
            events,
            shared: Box::leak(Box::new(SharedObjects::single(&kinds, seed))),
            kinds,
            plugins,
            contained,
            run_mode,
            schedule: AtomicU64::new(0),
            known: Mutex::default(),
        }));
        factory.tell(&Event::Kinds { names });
        factory
    }

    /// Tells the driver, if there is one.
    pub(crate) fn tell(&self, event: &Event) {
        if let Some(events) = &self.events {
            events.send(event);
        }
    }

    /// The number of the schedule, in strict mode.
    pub(crate) fn schedule(&self) -> Option<u64> {
        (self.run_mode != RunMode::Free).then(|| self.schedule.load(Ordering::Relaxed))
    }

    /// The next schedule is this one.
    pub(crate) fn begin_schedule(&self, run: u64) {
        self.schedule.store(run, Ordering::Relaxed);
    }

    /// The plugin of a test, if it could be loaded.
    pub(crate) fn plugin(&self, plan: &TestPlan) -> Option<Plugin> {
        self.plugins.get(plan.plugin).copied().flatten()
    }

    pub(crate) fn page(&self) -> &'static Layout {
        self.page
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, &'static CallContext>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates and starts one test; if that is impossible, the driver is told why.
    pub(crate) fn admit(
        &'static self,
        index: usize,
        plan: &TestPlan,
        shared: &'static SharedObjects,
    ) -> Option<Live> {
        let refuse = || TestPhase::Refused.store(&self.page.tests[index].phase);
        // A plugin that could not be loaded was reported once for all of its tests.
        let Some(plugin) = self.plugin(plan) else {
            refuse();
            return None;
        };
        let reason = match self.bring_up(index, plugin, plan, shared) {
            Ok(live) => return Some(live),
            Err(reason) => reason,
        };
        // A test that cannot start in the first schedule cannot run; later, the schedule is to blame.
        if self.schedule().is_some_and(|run| run > 0)
            && let Some(context) = self.known().get(&index).copied()
        {
            let _blame = fatal::Blame::on(context);
            context.hand_over(Sort::Assert, reason.as_bytes(), &[]);
        }
        refuse();
        for (inside, _) in self.contained.get(&index).into_iter().flatten() {
            TestPhase::Refused.store(&self.page.tests[*inside].phase);
        }
        self.tell(&Event::TestRefused { test: index, reason });
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

    /// The test as a whole, for the plugin: made the first time, ready for another life from then on.
    pub(crate) fn context(
        &'static self,
        index: usize,
        plugin: Plugin,
        plan: &TestPlan,
        shared: &'static SharedObjects,
    ) -> Result<&'static CallContext, String> {
        if let Some(context) = self.known().get(&index).copied() {
            context.test.cancelled.store(false, Ordering::Relaxed);
            return Ok(context);
        }
        let info =
            plugin.test(&plan.name).ok_or_else(|| format!("the plugin has no test named `{}`", plan.name))?;
        let runtime: &'static TestRuntime = Box::leak(Box::new(TestRuntime {
            index: index as u32,
            name: plan.name.clone(),
            seed: self.seed,
            page: self.page,
            clock: self.clock,
            distributions: distributions(info, plan)?,
            shared,
            kept: Mutex::default(),
            container: self.container(index, plan)?,
            cancelled: AtomicBool::new(false),
            refusal: Mutex::new(None),
            run_mode: self.run_mode,
        }));
        let context: &'static CallContext = Box::leak(Box::new(CallContext::instance(runtime)));
        self.known().insert(index, context);
        Ok(context)
    }

    /// Creates and starts one test, or says why not.
    fn bring_up(
        &'static self,
        index: usize,
        plugin: Plugin,
        plan: &TestPlan,
        shared: &'static SharedObjects,
    ) -> Result<Live, String> {
        let context = self.context(index, plugin, plan, shared)?;
        let runtime = context.test;
        if let Some(run) = self.schedule() {
            // SAFETY: an instance draws behind a lock.
            unsafe { context.begin(run) };
        }
        if let Some(container) = runtime.container {
            container.renew();
        }
        let _tag = fatal::Blame::on(context);
        let said = || runtime.refusal.lock().unwrap_or_else(PoisonError::into_inner).take();

        runtime.pass(TestPhase::Creating);
        let name = CString::new(plan.name.as_str()).map_err(|error| error.to_string())?;
        let args = CreateArgs {
            size: size_of::<CreateArgs>() as u32,
            abi_version: ABI_VERSION,
            test: name.as_ptr(),
            services: if runtime.container.is_some() { &COMBINER_SERVICES } else { &SERVICES },
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

        runtime.pass(TestPhase::Starting);
        // SAFETY: the instance is alive; the contract says that this is the first call on it.
        let status = checked.on_test_start.map_or(STATUS_OK, |start| unsafe { start(instance) });
        if status != STATUS_OK {
            let reason = match said() {
                Some(message) => format!("OnTestStart failed: {message}"),
                None => format!("OnTestStart failed with status {status}"),
            };
            if let Some(container) = runtime.container {
                container.unload_all();
            }
            // SAFETY: the instance is alive and no worker was started.
            unsafe { (plugin.destroy)(instance) };
            return Err(reason);
        }
        Ok(Live::new(plugin.destroy, instance, context))
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
