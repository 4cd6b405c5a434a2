//! Guided: a run without preemption but for a list of forced switches.
//!
//! What minimisation works with: a failing schedule is turned into its switches, switches are left out, and the run
//! that results is tried again. A switch belongs to a step of the thread that it is taken from, not of the run: so it keeps
//! its meaning when others are left out. A switch to a thread that is not enabled is counted, and goes to the
//! next one in the order of [`Rotation`]: what matters most is who is stopped where. Nothing is random.

use crate::event::{Event, ThreadId};
use crate::rotation::Rotation;
use crate::run::{Run, RunParameters, RunReport};
use crate::schedule::Turn;
use crate::strategy::Strategy;

/// Follows forced switches.
#[derive(Clone, Debug)]
pub struct Guided {
    /// By the thread they are taken from and its steps, so at most one can be due.
    turns: Vec<Turn>,
    /// Who ran last, and how many steps each thread has made.
    last: Option<ThreadId>,
    steps: Vec<u64>,
    skipped: Vec<Turn>,
    rotation: Rotation,
}

impl Guided {
    /// A run with these switches, in any order; of two at one step of one thread the first counts.
    pub fn new(mut turns: Vec<Turn>) -> Guided {
        turns.sort_by_key(|turn| (turn.of, turn.after));
        turns.dedup_by_key(|turn| (turn.of, turn.after));
        let skipped = Vec::with_capacity(turns.len());
        Guided { turns, last: None, steps: Vec::new(), skipped, rotation: Rotation::default() }
    }

    /// Switches that went elsewhere because their thread was not enabled.
    pub fn skipped(&self) -> &[Turn] {
        &self.skipped
    }

    /// The switch that is due now.
    fn due(&self) -> Option<Turn> {
        let of = self.last?;
        let after = self.steps[of.index()];
        let place = self.turns.binary_search_by_key(&(of, after), |turn| (turn.of, turn.after));
        place.ok().map(|place| self.turns[place])
    }
}

impl Strategy for Guided {
    fn plan(&mut self, _run: Run) -> Option<RunParameters> {
        Some(RunParameters::of("guided"))
    }

    fn begin(&mut self, _run: Run, _parameters: &RunParameters) {
        self.last = None;
        self.steps.clear();
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
        if let Some(turn) = self.due() {
            if self.rotation.contains(turn.to) {
                chosen = turn.to;
            } else {
                self.skipped.push(turn);
                if chosen == turn.of {
                    chosen = self.rotation.at(1).unwrap_or(chosen);
                }
            }
        }
        if self.steps.len() <= chosen.index() {
            self.steps.resize(chosen.index() + 1, 0);
        }
        self.steps[chosen.index()] += 1;
        self.last = Some(chosen);
        self.rotation.turn(chosen);
        Some(chosen)
    }

    fn end(&mut self, _report: &RunReport<'_>) {}
}
