//! A host that contradicts itself: a test wrote over memory or descriptors that belong to Waylay.
//!
//! Nothing that it shows from then on is believed. It is looked at from outside, dumped, and replaced.

use std::sync::atomic::Ordering;

use waylay_dist::Seed;
use waylay_evidence::signature::Signature as EvidenceSignature;
use waylay_host::event::Event;
use waylay_page::layout::MAX_TESTS;
use waylay_page::{HostPhase, WorkerState};

use super::CampaignError;
use super::assignment::Assignment;
use super::investigation::{Draft, Investigator, named};
use super::progress::Progress;
use super::scene::Scene;
use super::session::Session;
use super::supervisor::Supervisor;
use crate::failure::Kind;
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
    ) -> Result<(), CampaignError> {
        let _quiet = self.quiet(session, progress);
        let scene = Scene::of(session, progress, self.clock, &self.log);
        let mut draft = self.investigator.corrupted(&scene, contradiction);
        draft.alive = alive;
        self.record(session, progress, draft)
    }
}

impl Investigator {
    /// A host that shows what cannot be.
    fn corrupted(&mut self, scene: &Scene<'_>, contradiction: &Contradiction) -> Draft {
        let mut gaps = Vec::new();
        let stacks = self.sample(scene, &mut gaps);
        let own: Vec<usize> = (0..scene.assignment.plans.len())
            .filter(|test| scene.assignment.plans[*test].contained.is_none())
            .collect();
        // Whoever it was, it was one of those that ran. With one test it is clear which.
        let test = match own[..] {
            [only] => Some(only),
            _ => None,
        };
        let name = scene.test_name(test).unwrap_or_else(|| "one of several tests".to_owned());
        let signature = named(
            Kind::Corrupted,
            EvidenceSignature::from_text(format!("memory of Waylay written over in {name}")),
        );
        let what = format!("the test wrote over memory that belongs to Waylay: {contradiction}");
        let occurrence = scene.occurrence_of_slot(test, None, Seed::new(0));
        let mut draft = self.draft(scene, Kind::Corrupted, signature, what, test, occurrence, stacks, gaps);
        draft.finding.reason = Some(doing(scene));
        draft
    }
}

/// What the host was doing when it was last believed.
fn doing(scene: &Scene<'_>) -> String {
    let running = scene.assignment.slots.iter().enumerate().filter_map(|(slot, (test, worker))| {
        let words = &scene.layout.workers[slot];
        let state = WorkerState::load(&words.state);
        (state == WorkerState::Running).then(|| {
            let iteration = words.iteration.load(Ordering::Relaxed);
            format!("{}#{worker} in iteration {iteration}", scene.assignment.plans[*test].name)
        })
    });
    let running: Vec<String> = running.collect();
    match HostPhase::load(&scene.layout.header.phase) {
        phase if phase < HostPhase::Running => "seen while the host was loading or starting tests".to_owned(),
        _ if running.is_empty() => "seen while no worker ran".to_owned(),
        _ => format!("last seen running: {}", running.join(", ")),
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
