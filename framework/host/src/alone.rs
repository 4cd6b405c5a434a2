//! One schedule of one test without a driver: what `waylay replay` and its like run, once or many times, also under a
//! debugger.
//!
//! Nothing here watches: a fatal signal ends the process as it would end any other, a failure that the test reports is
//! written to standard error and ends the process with a status of its own.

use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use waylay_page::{Clock, Page, TestPhase};

use crate::context::{Manner, TestRuntime};
use crate::description::list;
use crate::fatal;
use crate::lifecycle::distributions;
use crate::loader::Plugin;
use crate::plan::{SchedulePlan, TestPlan, WorkerPlan};
use crate::shared::{Kinds, SharedObjects};
use crate::stage::Stage;
use crate::sys::{self, Begun, RunControl};

/// Runs the schedule and ends the process; returns only when it could not.
pub(crate) fn run(plan: &SchedulePlan) -> Result<Infallible, String> {
    let control = RunControl::find().ok_or("the control library was not loaded first")?;
    let plugin = Plugin::open(&plan.plugin).map_err(|error| error.to_string())?;
    let info = plugin.test(&plan.test).ok_or_else(|| format!("the plugin has no test `{}`", plan.test))?;
    let page = Page::create(&Clock::monotonic()).map_err(|error| format!("no memory: {error}"))?;
    let page: &'static Page = Box::leak(Box::new(page));
    let mut kinds = Kinds::default();
    list(plugin.info().kinds, plugin.info().kind_count).for_each(|kind| kinds.provide(kind));
    let shared = SharedObjects::single(&kinds, plan.seed);
    let workers: Vec<WorkerPlan> = (0..plan.workers as usize)
        .map(|slot| WorkerPlan { slot, first_iteration: plan.run, iterations: Some(1), repeat: false })
        .collect();
    let test = TestPlan {
        plugin: 0,
        name: plan.test.clone(),
        params: plan.params.clone(),
        workers: workers.clone(),
        contained: None,
        combiner: None,
    };
    let runtime: &'static TestRuntime = Box::leak(Box::new(TestRuntime {
        index: 0,
        name: plan.test.clone(),
        seed: plan.seed,
        page: page.layout(),
        clock: page.source(),
        distributions: distributions(info, &test)?,
        shared: Box::leak(Box::new(shared)),
        kept: Mutex::default(),
        container: None,
        cancelled: AtomicBool::new(false),
        refusal: Mutex::new(None),
        manner: Manner::Alone,
    }));
    let first = if plan.run == 0 { TestPhase::Creating } else { TestPhase::Running };
    first.store(&runtime.slot().phase);
    for worker in &page.layout().workers[..workers.len()] {
        worker.iteration.store(plan.run, std::sync::atomic::Ordering::Relaxed);
    }
    fatal::watch_for_exit_alone();
    let stage = Stage::new(plugin, runtime, &workers)?;
    if control.begin(plan.run) != Begun::Yes {
        return Err("the control library refuses to begin a run".to_owned());
    }
    let played = stage.play(plan.run);
    control.end(false);
    played?;
    sys::leave_at_once()
}
