//! The strategy on this side: it plans runs that happen elsewhere and learns from what was heard of them.
//!
//! What a run is given must not depend on how many runs go on at once, so runs are planned in batches: everything in a
//! batch is planned before any of it is learned from, and it is learned from in the order of the runs. Batches double in
//! size, so the first run is learned from before the second is planned. A search that goes from one schedule to the
//! next needs the outcome of every run before the next: its batches have one run, also when it is part of a portfolio.

use waylay_control_protocol::Added;
use waylay_schedule::{
    AnyStrategy, Outcome, Run, RunParameters, RunReport, Said, Seed, Shard, Spec, Strategy, retell,
};

/// Runs of the largest batch.
const LARGEST: u64 = 512;
/// The first runs are all learned from: enough to fill what strategies remember.
const FIRST: u64 = 64;
/// Later, one run in so many is: the first number counts up to the second run. Shards of a night all make these, so there are few.
const LATER: [(u64, u64); 2] = [(32, 1 << 14), (256, u64::MAX)];

/// Runs of a batch that measure and are learned from besides: until they are heard, a strategy plans with what it knew before.
const MEASURING: u64 = 16;

/// A run to be made.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Which.
    pub run: Run,
    /// With what.
    pub parameters: RunParameters,
    /// Whether its conversation is wanted.
    pub listen: bool,
    /// Accesses to what is handed over are steps in it.
    pub handed: bool,
}

/// How a run ended, for learning.
#[derive(Clone, Debug)]
pub struct Lesson {
    /// How.
    pub outcome: Outcome,
    /// Its steps.
    pub steps: u64,
    /// What was said; none when it was not kept.
    pub conversation: Option<Vec<Said>>,
    /// Whether it showed a failure that was not seen before.
    pub news: bool,
}

/// A strategy that is elsewhere while its runs go on.
#[derive(Debug)]
pub struct Learner {
    spec: Spec,
    strategy: AnyStrategy,
    seed: Seed,
    one_by_one: bool,
    needs_lessons: bool,
    next: u64,
    /// The first run that the strategy as it is now planned, and how many it did.
    begun: u64,
    planned: u64,
    batch: u64,
    exhausted: bool,
    unheard: u64,
    shard: Shard,
    /// What it plans are runs with accesses to what is handed over as steps.
    handed: bool,
}

impl Learner {
    /// A strategy about which nothing is known.
    pub fn new(spec: &Spec, seed: Seed) -> Learner {
        Learner {
            spec: spec.clone(),
            strategy: spec.build(),
            seed,
            one_by_one: searches(spec),
            needs_lessons: !matches!(spec, Spec::Random | Spec::Pos | Spec::Noise(_)),
            next: 0,
            begun: 0,
            planned: 0,
            batch: 1,
            exhausted: false,
            unheard: 0,
            shard: Shard::WHOLE,
            handed: false,
        }
    }

    /// The same for runs with accesses to what is handed over as steps.
    pub fn of_handed(mut self) -> Learner {
        self.handed = true;
        self
    }

    /// The run with this number is the next: others were planned elsewhere.
    pub fn go_on_at(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    /// The same for one part of the runs. Only a search needs to know: others plan all runs, whoever makes them.
    pub fn divided(mut self, shard: Shard) -> Learner {
        self.shard = shard;
        self.build();
        self
    }

    fn build(&mut self) {
        self.strategy = self.spec.build();
        if let AnyStrategy::Systematic(search) = &mut self.strategy {
            search.divide(self.shard);
        }
    }

    /// The next runs, at most `most`; none when there are no further schedules.
    pub fn plan(&mut self, most: u64) -> Vec<Planned> {
        let size = if self.one_by_one { 1 } else { self.batch }.min(most);
        self.batch = (self.batch * 2).min(LARGEST);
        let mut planned = Vec::with_capacity(size as usize);
        let mut measuring = 0;
        while (planned.len() as u64) < size && !self.exhausted {
            let run = Run { seed: self.seed, index: self.next };
            let Some(parameters) = self.strategy.plan(run) else {
                self.exhausted = true;
                break;
            };
            let later = LATER.iter().find(|&&(_, until)| self.next < until).map_or(1, |&(every, _)| every);
            // Also where nothing is learned: in which orders events come is counted.
            measuring += u64::from(parameters.profiling);
            let listen = self.one_by_one
                || self.planned < FIRST
                || self.next.is_multiple_of(later)
                || parameters.profiling && measuring <= MEASURING;
            planned.push(Planned { run, parameters, listen, handed: self.handed });
            self.next += 1;
            self.planned += 1;
        }
        planned
    }

    /// Takes in a run that was planned here. Call in the order of the runs.
    pub fn learn(&mut self, planned: &Planned, lesson: Lesson) {
        // What was planned before the strategy began again means nothing to it.
        if !self.needs_lessons || !planned.listen || !self.is_current(planned) {
            return;
        }
        self.strategy.begin(planned.run, &planned.parameters);
        let mut lengths: Vec<u64> = Vec::new();
        let mut outcome = lesson.outcome;
        match lesson.conversation {
            Some(conversation) => {
                for said in &conversation {
                    match said {
                        Said::Spawned(thread, _) if thread.index() >= lengths.len() => {
                            lengths.resize(thread.index() + 1, 0);
                        }
                        Said::Picked(Some(thread)) => {
                            if let Some(length) = lengths.get_mut(thread.index()) {
                                *length += 1;
                            }
                        }
                        _ => {}
                    }
                }
                if retell(&mut self.strategy, conversation).is_err() {
                    outcome = Outcome::Cut;
                    self.unheard += 1;
                }
            }
            None => {
                outcome = Outcome::Cut;
                self.unheard += 1;
            }
        }
        self.strategy.end(&RunReport { outcome, steps: lesson.steps, lengths: &lengths, news: lesson.news });
    }

    /// Other accesses are steps from now on: a search that goes from one schedule to the next begins again, and so does every
    /// strategy when there may be fewer of them, because of what it knows of lengths.
    pub fn steps_changed(&mut self, how: Added) {
        if self.spec.is_search() || how == Added::Again {
            self.build();
            self.exhausted = false;
            if how == Added::Again {
                (self.begun, self.planned, self.batch) = (self.next, 0, 1);
            }
        } else {
            self.strategy.steps_changed();
        }
    }

    /// A run that was planned here had so many steps that count for what is promised.
    pub fn was_long(&mut self, planned: &Planned, steps: u64) {
        self.strategy.was_long(&planned.parameters, steps);
    }

    /// Whether the strategy as it is now planned the run.
    pub fn is_current(&self, planned: &Planned) -> bool {
        planned.run.index >= self.begun
    }

    /// The first run that is not planned yet.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether every schedule was tried, or every one within the bound.
    pub fn exhausted(&self) -> bool {
        self.exhausted
    }

    /// Runs that could not be learned from although they should have been: too long, or not repeatable.
    pub fn unheard(&self) -> u64 {
        self.unheard
    }
}

/// Whether a strategy goes from one schedule to the next, alone or as part of a portfolio.
pub(crate) fn searches(spec: &Spec) -> bool {
    spec.searches()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lesson() -> Lesson {
        Lesson { outcome: Outcome::Passed, steps: 0, conversation: Some(Vec::new()), news: false }
    }

    #[test]
    fn batches_grow_and_number_all_runs_once() {
        let mut learner = Learner::new(&"pct:depth=2".parse().unwrap(), Seed(1));
        let mut seen = Vec::new();
        while seen.len() < 3000 {
            let batch = learner.plan(3000 - seen.len() as u64);
            for planned in batch {
                learner.learn(&planned, lesson());
                seen.push(planned.run.index);
            }
        }
        assert_eq!(seen, (0..3000).collect::<Vec<u64>>());
    }

    #[test]
    fn only_a_portfolio_with_a_search_goes_one_by_one() {
        for (text, expected) in [("portfolio", 4), ("portfolio:pct+dfs", 1)] {
            let mut learner = Learner::new(&text.parse().unwrap(), Seed(1));
            for _ in 0..2 {
                for planned in learner.plan(100) {
                    learner.learn(&planned, lesson());
                }
            }
            assert_eq!(learner.plan(100).len(), expected, "{text}");
        }
    }

    #[test]
    fn a_search_goes_one_by_one_and_comes_to_an_end() {
        let mut learner = Learner::new(&"dfs".parse().unwrap(), Seed(1));
        let first = learner.plan(100);
        assert_eq!(first.len(), 1);
        // A program without choices has one schedule.
        learner.learn(&first[0], lesson());
        assert!(learner.plan(100).is_empty());
        assert!(learner.exhausted());
    }
}
