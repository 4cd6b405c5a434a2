//! One schedule of one test without a driver: what `waylay replay` and its like run, once or many times, also under a
//! debugger. Runs that came before it where it was found are made first, as far as the control library says so.
//!
//! Nothing here watches: a fatal signal ends the process as it would end any other, a failure that the test reports is
//! written to standard error and ends the process with a status of its own.

use std::convert::Infallible;

use waylay_page::{Clock, Page, TestPhase};

use crate::context::RunMode;
use crate::factory::TestFactory;
use crate::fatal;
use crate::loader::Plugin;
use crate::plan::SchedulePlan;
use crate::stage::Stage;
use crate::sys::{self, Begun};

/// Runs the schedule and ends the process; returns only when it could not.
pub(crate) fn run(plan: &SchedulePlan) -> Result<Infallible, String> {
    let plugins =
        plan.plugins.iter().map(|file| Plugin::open(file).map(Some).map_err(|error| error.to_string()));
    let plugins = plugins.collect::<Result<Vec<_>, String>>()?;
    let page = Page::create(&Clock::monotonic()).map_err(|error| format!("no memory: {error}"))?;
    let page: &'static Page = Box::leak(Box::new(page));
    let factory = TestFactory::new(page, plan.seed, None, plugins, &plan.tests, RunMode::Alone);
    let Some((stage, Some(control))) = Stage::set_up(factory, &plan.tests, false)? else {
        return Err("the plugin is not in the plan".to_owned());
    };
    let first = if plan.run == 0 { TestPhase::Creating } else { TestPhase::Running };
    first.store(&stage.test.slot().phase);
    fatal::watch_for_exit_alone();
    for run in control.earlier().chain([plan.run]) {
        for worker in &page.layout().workers[..plan.tests[0].workers.len()] {
            worker.iteration.store(run, std::sync::atomic::Ordering::Relaxed);
        }
        if control.begin(run) != Begun::Yes {
            return Err(format!("the control library refuses to begin run {run}"));
        }
        let played = stage.play(run);
        control.end(false);
        played?;
    }
    sys::leave_at_once()
}
