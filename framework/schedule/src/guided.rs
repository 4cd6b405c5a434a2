//! Guided: a run without preemption but for a list of forced switches.
//!
//! What minimisation works with: a failing schedule is turned into its switches, switches are left out, and the run
//! that results is tried again. A switch to a thread that is not enabled at its step is skipped and counted; the run
//! goes on in the order of [`Rotation`]. Nothing is random.

use crate::event::{Event, ThreadId};
use crate::rotation::Rotation;
use crate::run::{Run, RunParameters, RunReport};
use crate::schedule::Switch;
use crate::strategy::Strategy;

/// Follows forced switches.
#[derive(Clone, Debug)]
pub struct Guided {
    /// By step.
    switches: Vec<Switch>,
    next: usize,
    step: u64,
    skipped: Vec<Switch>,
    rotation: Rotation,
}

impl Guided {
    /// A run with these switches, in any order; of two at one step the last counts.
    pub fn new(mut switches: Vec<Switch>) -> Guided {
        switches.sort_by_key(|switch| switch.step);
        let skipped = Vec::with_capacity(switches.len());
        Guided { switches, next: 0, step: 0, skipped, rotation: Rotation::default() }
    }

    /// Switches that could not be made: their thread was not enabled, or the run was over.
    pub fn skipped(&self) -> impl Iterator<Item = Switch> + '_ {
        self.skipped.iter().chain(&self.switches[self.next..]).copied()
    }
}

impl Strategy for Guided {
    fn plan(&mut self, _run: Run) -> Option<RunParameters> {
        Some(RunParameters::of("guided"))
    }

    fn begin(&mut self, _run: Run, _parameters: &RunParameters) {
        self.next = 0;
        self.step = 0;
        self.skipped.clear();
        self.rotation.clear();
    }

    fn spawned(&mut self, thread: ThreadId, _parent: Option<ThreadId>) {
        self.rotation.reserve(thread);
    }

    fn ready(&mut self, thread: ThreadId, next: Event) {
        self.rotation.ready(thread, next);
    }

    fn blocked(&mut self, thread: ThreadId) {
        self.rotation.remove(thread);
    }

    fn finished(&mut self, thread: ThreadId) {
        self.rotation.remove(thread);
    }

    fn pick(&mut self) -> Option<ThreadId> {
        let mut chosen = self.rotation.at(0)?;
        while let Some(&switch) = self.switches.get(self.next)
            && switch.step <= self.step
        {
            self.next += 1;
            if self.rotation.contains(switch.thread) {
                chosen = switch.thread;
            } else {
                self.skipped.push(switch);
            }
        }
        self.step += 1;
        self.rotation.turn(chosen);
        Some(chosen)
    }

    fn end(&mut self, _report: &RunReport<'_>) {}
}
