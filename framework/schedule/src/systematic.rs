//! Systematic search: every schedule, or every schedule within a bound, one after the other.
//!
//! Depth first over the decisions of the [`Rotation`] order. Three searches, by what a deviation costs:
//!
//! - depth-first: nothing, so the whole space is searched;
//! - iterative preemption bounding (Musuvathi and Qadeer, "Iterative Context Bounding for Systematic Testing of
//!   Multithreaded Programs", PLDI 2007): 1 for taking the processor from an enabled thread;
//! - iterative delay bounding (Emmi, Qadeer and Rakamarić, "Delay-Bounded Scheduling", POPL 2011): 1 for every
//!   enabled thread that is passed over.
//!
//! The bounded searches try all schedules of cost at most 0, then 1, and so on up to a limit. A schedule of lower
//! cost is met again under a higher bound; there are few of those compared to the new ones, and not repeating them
//! would take a queue of all frontiers. The search is over when the space is exhausted: within the limit, or
//! altogether when the bound never cut anything off.
//!
//! Deviations: a thread about to yield gives way for free whenever another is enabled, and cannot be chosen then; so a
//! thread that spins with yields takes no more turns than the others take steps, and the space stays finite. A thread that
//! took 20,000 steps without a break is taken to yield: it may wait with changing values, which looks like work.
//! The record of decisions grows with the run, unlike in other strategies.

use crate::event::{Event, ThreadId};
use crate::rotation::Rotation;
use crate::run::{Run, RunParameters, RunReport};
use crate::shard::Shard;
use crate::strategy::Strategy;

/// What a deviation from the order costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounding {
    /// Nothing.
    None,
    /// Taking the processor from a thread that could go on.
    Preemptions,
    /// Every thread passed over.
    Delays,
}

#[derive(Clone, Copy, Debug)]
struct Decision {
    choice: u32,
    choices: u32,
}

/// Depth-first search, preemption bounding or delay bounding.
#[derive(Clone, Debug)]
pub struct Systematic {
    bounding: Bounding,
    limit: Option<u32>,
    rotation: Rotation,
    /// The decisions of the run so far: those with more than one affordable choice.
    path: Vec<Decision>,
    script: Vec<(u64, u32)>,
    scripted: usize,
    bound: u32,
    spent: u32,
    /// Whether the bound kept a choice from this iteration.
    cut: bool,
    next: Option<Vec<(u64, u32)>>,
    /// Only schedules of this part are searched, and one of each combination of first choices that others have: without it
    /// nobody knows which combinations there are.
    shard: Shard,
}

impl Systematic {
    /// A search; `limit` is the greatest bound tried.
    pub fn new(bounding: Bounding, limit: Option<u32>) -> Systematic {
        Systematic {
            bounding,
            limit,
            rotation: Rotation::fair(),
            path: Vec::new(),
            script: Vec::new(),
            scripted: 0,
            bound: 0,
            spent: 0,
            cut: false,
            next: Some(Vec::new()),
            shard: Shard::WHOLE,
        }
    }

    /// Searches one part of the schedules.
    pub fn divide(&mut self, shard: Shard) {
        self.shard = shard;
    }

    /// Whether all schedules were tried: all there are, or all within the limit.
    pub fn exhausted(&self) -> bool {
        self.next.is_none()
    }

    /// Whether the bound kept any schedule out so far in this iteration.
    pub fn cut(&self) -> bool {
        self.cut
    }

    fn affordable(&self) -> usize {
        let enabled = self.rotation.candidates();
        let budget = self.bound.saturating_sub(self.spent) as usize;
        match self.bounding {
            Bounding::None => enabled,
            Bounding::Preemptions if budget == 0 && self.rotation.would_preempt() => enabled.min(1),
            Bounding::Preemptions => enabled,
            Bounding::Delays => enabled.min(budget + 1),
        }
    }

    fn cost(&self, place: usize) -> u32 {
        match self.bounding {
            Bounding::None => 0,
            Bounding::Preemptions => u32::from(place > 0 && self.rotation.would_preempt()),
            Bounding::Delays => place as u32,
        }
    }

    fn decide(&mut self, choices: usize) -> usize {
        let decision = self.path.len() as u64;
        let choice = match self.script.get(self.scripted) {
            Some(&(at, choice)) if at == decision => {
                self.scripted += 1;
                // A program that does not repeat itself may offer less than it did.
                choice.min(choices as u32 - 1)
            }
            _ => 0,
        };
        self.path.push(Decision { choice, choices: choices as u32 });
        choice as usize
    }
}

impl Strategy for Systematic {
    fn plan(&mut self, _run: Run) -> Option<RunParameters> {
        let mut text = match self.bounding {
            Bounding::None => "dfs".to_owned(),
            Bounding::Preemptions => "pb".to_owned(),
            Bounding::Delays => "db".to_owned(),
        };
        if let Some(limit) = self.limit {
            text += &format!(":bound={limit}");
        }
        let choices = self.next.clone()?;
        Some(RunParameters { choices, depth: self.bound, cut: self.cut, ..RunParameters::of(text) })
    }

    fn begin(&mut self, _run: Run, parameters: &RunParameters) {
        self.cut = parameters.cut;
        self.rotation.clear();
        self.path.clear();
        self.script.clone_from(&parameters.choices);
        self.scripted = 0;
        self.bound = parameters.depth;
        self.spent = 0;
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
        let choices = self.affordable();
        self.cut |= choices < self.rotation.candidates();
        let place = if choices > 1 { self.decide(choices) } else { 0 };
        self.spent += self.cost(place);
        let chosen = self.rotation.at(place)?;
        self.rotation.turn(chosen);
        Some(chosen)
    }

    fn end(&mut self, _report: &RunReport<'_>) {
        if !self.shard.has_choices(&self.script) {
            // Behind the first choices everything is another part's.
            self.path.truncate(usize::try_from(self.shard.decisions()).unwrap_or(usize::MAX));
        }
        while self.path.last().is_some_and(|last| last.choice + 1 >= last.choices) {
            self.path.pop();
        }
        if let Some(last) = self.path.last_mut() {
            last.choice += 1;
            let choices = self.path.iter().enumerate().filter(|(_, decision)| decision.choice > 0);
            self.next = Some(choices.map(|(at, decision)| (at as u64, decision.choice)).collect());
        } else if self.bounding != Bounding::None
            && self.cut
            && self.limit.is_none_or(|limit| self.bound < limit)
        {
            self.bound += 1;
            self.cut = false;
            self.next = Some(Vec::new());
        } else {
            self.next = None;
        }
    }
}
