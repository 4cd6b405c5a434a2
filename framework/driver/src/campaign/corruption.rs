//! A host that contradicts itself: a test wrote over memory or descriptors that belong to Waylay.
//!
//! Nothing that it shows from then on is believed. It is looked at from outside, dumped, and replaced.

use std::sync::atomic::Ordering;

use waylay_dist::Seed;
use waylay_evidence::signature::Signature as EvidenceSignature;
use waylay_evidence::{Origin, ThreadStack, origin};
use waylay_host::event::Event;
use waylay_page::layout::MAX_TESTS;
use waylay_page::{HostPhase, TestPhase, WorkerState};

use super::assignment::Assignment;
use super::draft::Draft;
use super::investigation::Investigator;
use super::progress::Progress;
use super::scene::Scene;
use super::session::Session;
use super::strict::StrictTest;
use super::supervisor::Supervisor;
use crate::failure::{Kind, Signature};
use crate::host::Contradiction;

/// Most kinds of shared objects: their number is a byte.
const MOST_KINDS: usize = 256;

impl Supervisor<'_> {
    /// Records that the host contradicts itself.
    pub(super) fn take_corruption(
        &mut self,
        session: &mut Session,
        progress: &mut Progress,
        contradiction: &Contradiction,
        alive: bool,
    ) {
        let _quiet = self.quiet(session, progress);
        let scene = Scene::of(session, progress, self.clock, &self.log);
        let (mut draft, suspects) = self.investigator.corrupted(&scene, contradiction);
        draft.alive = alive;
        if draft.test.is_none() {
            self.suspected.extend(suspects.into_iter().map(|test| session.assignment.tests[test]));
        }
        self.record(session, progress, draft);
    }
}

impl Investigator {
    /// A host that shows what cannot be, and the tests that may have done it.
    fn corrupted(&mut self, scene: &Scene<'_>, contradiction: &Contradiction) -> (Draft, Vec<usize>) {
        let mut gaps = Vec::new();
        let (stacks, still) = self.sample_and_hold(scene, &mut gaps);
        // Whoever it was, it was one of those that had begun. With one test it is clear which.
        let suspects = suspects(scene);
        let test = match suspects[..] {
            [only] => Some(only),
            _ => None,
        };
        let names: Vec<String> = suspects.iter().filter_map(|test| scene.test_name(Some(*test))).collect();
        let name = match test {
            Some(_) => names.concat(),
            None => format!("one of {}", names.join(", ")),
        };
        let signature = Signature::new(
            Kind::Corrupted,
            EvidenceSignature::from_text(format!("memory of Waylay written over in {name}")),
        );
        let who = if test.is_some() { "the test".to_owned() } else { name };
        let what = format!("{who} wrote over memory that belongs to Waylay: {contradiction}");
        let occurrence = scene.occurrence_of_slot(test, None, Seed::new(0));
        let mut draft = self.draft(scene, Kind::Corrupted, signature, what, test, occurrence, stacks, gaps);
        draft.finding.reason = Some(doing(scene, &draft.finding.stacks));
        draft.still = still;
        (draft, suspects)
    }
}

/// The tests that had begun when the host was last believed: code of the others had not run. All when none had.
fn suspects(scene: &Scene<'_>) -> Vec<usize> {
    let own = |test: &usize| scene.assignment.plans[*test].contained.is_none();
    let begun = |test: &usize| TestPhase::load(&scene.layout.tests[*test].phase) != TestPhase::Absent;
    let all: Vec<usize> = (0..scene.assignment.plans.len()).filter(own).collect();
    let some: Vec<usize> = all.iter().copied().filter(begun).collect();
    if some.is_empty() { all } else { some }
}

/// What the host was doing when it was last believed, and where in tests its threads stand now.
///
/// The last look may be some milliseconds old, or older on a busy machine, so the stacks speak for the present: a worker
/// that was between two iterations then may be in one now.
fn doing(scene: &Scene<'_>, stacks: &[ThreadStack]) -> String {
    let mut named = Vec::new();
    let mut running = Vec::new();
    for (slot, (test, worker)) in scene.assignment.slots.iter().enumerate() {
        let words = &scene.layout.workers[slot];
        if WorkerState::load(&words.state) == WorkerState::Running {
            let iteration = words.iteration.load(Ordering::Relaxed);
            let tid = words.tid.load(Ordering::Relaxed);
            named.push(tid);
            let stands = stacks.iter().find(|stack| stack.id.0 == tid).and_then(place_of);
            let stands = stands.map_or_else(String::new, |place| format!(", now in {place}"));
            running.push(format!(
                "{}#{worker} in iteration {iteration}{stands}",
                scene.assignment.plans[*test].name
            ));
        }
    }
    let others = stacks.iter().filter(|stack| !named.contains(&stack.id.0));
    let others =
        others.filter_map(|stack| Some(format!("thread {} is now in {}", stack.id.0, place_of(stack)?)));
    let seen = match HostPhase::load(&scene.layout.header.phase) {
        phase if phase < HostPhase::Running => "last seen loading or starting tests".to_owned(),
        _ if running.is_empty() => "last seen while no worker was in an iteration".to_owned(),
        _ => format!("last seen running: {}", running.join("; ")),
    };
    std::iter::once(seen).chain(others).collect::<Vec<_>>().join("; ")
}

/// The test's own code that a thread is in.
fn place_of(stack: &ThreadStack) -> Option<String> {
    let frame = stack.frames.iter().find(|frame| origin(frame) == Origin::Own)?;
    frame.function.clone()
}

impl Session {
    /// Whether the host can have said that; if not, why. What it says has to go with what its page shows and with what it was
    /// given to do.
    pub(super) fn check(&self, event: &Event, progress: &Progress) -> Result<(), String> {
        self.assignment.check(event)?;
        let tests = &self.host.layout().tests;
        let phase = |test: usize| TestPhase::load(&tests[test].phase);
        // A test that lives inside another begins again and again.
        let own = |test: &usize| self.assignment.plans[*test].contained.is_none();
        let strict = progress.turn.and_then(|turn| progress.tests.get(turn)?.strict.as_ref());
        let name = |test: usize| &self.assignment.plans[test].name;
        match *event {
            Event::TestRefused { test, .. } if own(&test) && phase(test) != TestPhase::Refused => {
                Err(format!("test {} is refused, and it runs", name(test)))
            }
            Event::PluginRefused { plugin, .. } => {
                let of_it = (0..self.assignment.plans.len())
                    .filter(|test| self.assignment.plans[*test].plugin == plugin && own(test));
                let runs = |test: &usize| !matches!(phase(*test), TestPhase::Absent | TestPhase::Refused);
                match of_it.into_iter().find(|test| runs(test)) {
                    Some(test) => Err(format!("the plugin of test {} is refused, and it runs", name(test))),
                    None => Ok(()),
                }
            }
            Event::Exhausted { test } if !strict.is_some_and(StrictTest::may_be_exhausted) => {
                Err(format!("the search of test {} is over, and it has none", name(test)))
            }
            Event::LeftBehind { test, .. } if strict.is_none() || self.left_behind => {
                Err(format!("test {} leaves threads behind where no schedule ends", name(test)))
            }
            _ => Ok(()),
        }
    }
}

impl Assignment {
    /// Whether an event is about something that the host was given; if not, why.
    pub(super) fn check(&self, event: &Event) -> Result<(), String> {
        let known = |what: &str, index: usize, count: usize| match index < count.min(MAX_TESTS) {
            true => Ok(()),
            false => Err(format!("an event is about {what} {index} of {count}")),
        };
        match event {
            Event::PluginRefused { plugin, .. } => known("plugin", *plugin, self.plugins.len()),
            Event::TestRefused { test, .. }
            | Event::LeftBehind { test, .. }
            | Event::Failed { test, .. }
            | Event::Exhausted { test }
            | Event::TestStarted { test } => known("test", *test, self.plans.len()),
            Event::Kinds { names } if names.len() > MOST_KINDS => {
                Err(format!("an event names {} kinds of shared objects", names.len()))
            }
            Event::Kinds { .. } => Ok(()),
            Event::Described { .. } => Err("an event describes a plugin, and nobody asked".to_owned()),
        }
    }
}
