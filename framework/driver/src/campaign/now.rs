//! What is running now: answered between two looks at a host, with the randomizer out of the way.

use waylay_evidence::ThreadStack;
use waylay_page::HostPhase;

use super::investigation::Investigator;
use super::progress::Progress;
use super::scene::Scene;
use super::session::Session;
use super::supervisor::Supervisor;
use crate::report::{RunningNow, WorkerNow};
use crate::sys;

impl Supervisor<'_> {
    /// Tells who asked what every thread of the host's tests is doing.
    pub(super) fn show_what_runs(&mut self, session: &mut Session, progress: &mut Progress) {
        // Both are asked: a request that came both ways is one.
        let asked = sys::take_look() | self.live.wants_look();
        if !asked {
            return;
        }
        let quiet = self.quiet(session, progress);
        let scene = Scene::of(session, progress, self.clock, &self.log);
        let mut gaps = Vec::new();
        // Before the stacks: a thread is longest in its iteration while it is looked at.
        let views = scene.assignment.views(scene.layout, &self.clock);
        let mut stacks = self.investigator.sample(&scene, &mut gaps);
        drop(quiet);
        let workers = views
            .into_iter()
            .map(|view| {
                let place = stacks.iter().position(|stack| view.tid != 0 && stack.id.0 == view.tid);
                WorkerNow { stack: place.map(|place| stacks.remove(place)), view }
            })
            .collect();
        // The page forgets who started a thread when many come and go; the plugin on its stack is still there.
        let owner = |stack: &ThreadStack| {
            let noted = scene.layout.test_of_thread(stack.id.0).map(|test| test as usize);
            let test = noted.or_else(|| Investigator::guess_test(&scene, &stack.frames));
            scene.test_name(test).or_else(|| plugin_on(&scene, stack))
        };
        let (started, own): (Vec<_>, Vec<_>) =
            stacks.into_iter().map(|stack| (owner(&stack), stack)).partition(|(owner, _)| owner.is_some());
        let started = started.into_iter().filter_map(|(owner, stack)| Some((owner?, stack))).collect();
        let now = RunningNow {
            scenario: progress.name.clone(),
            strict: progress.is_strict(),
            pid: scene.pid,
            phase: phase(HostPhase::load(&scene.layout.header.phase)),
            workers,
            started,
            own_threads: own.len(),
            gaps,
        };
        self.live.running(&now);
    }
}

/// The plugin whose code is on a stack.
fn plugin_on(scene: &Scene<'_>, stack: &ThreadStack) -> Option<String> {
    let modules = || stack.frames.iter().filter_map(|frame| frame.module.as_deref());
    let plugin =
        scene.assignment.plugins.iter().find(|plugin| modules().any(|it| plugin.as_os_str() == it))?;
    Some(format!("a test of {}", plugin.file_name()?.to_string_lossy()))
}

fn phase(phase: HostPhase) -> &'static str {
    match phase {
        HostPhase::Born | HostPhase::Loading => "loads plugins",
        HostPhase::Starting => "starts tests",
        HostPhase::Running => "runs tests",
        HostPhase::Cancelling | HostPhase::Ended | HostPhase::Left => "ends tests",
    }
}
