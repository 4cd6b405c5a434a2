//! Scheduling by priority with change points: the machine that PCT and RPro share.
//!
//! The enabled thread of greatest priority runs. A thread gets a random priority when it is created; at change
//! points, which are counted in steps, the thread that just ran drops to a priority below all of those. This is
//! Fig. 7 of "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs" (Burckhardt, Kothari,
//! Musuvathi, Nagarakatte, ASPLOS 2010) with the practical parts of its section 4.
//!
//! Which steps count. Section 4.2 leaves out steps of sequential phases. Precisely, a step of thread t is not
//! counted when afterwards t is the only enabled thread (it goes on whatever its priority is, and dropping it at
//! the next counted step has the same effect) or when t is finished (its priority means nothing any more). When
//! t blocks itself the step counts even if just one other thread is enabled: nobody else's step can stand in for
//! the drop of t. With this rule the theorem holds for the number of counted steps.
//!
//! Phases. At a join point (all other threads were joined, or on request one thread is enabled) everything is drawn
//! afresh when concurrency begins again, so each phase is a run of the algorithm of its own, with the steps of the
//! longest phase as k.
//!
//! Starvation. A thread that spins is lowered, and so are threads that go on and on while another, which could run, does
//! not: what they wait for may be its to do. The signs are those of `starvation`.
//!
//! Bare runs. Each of the last two parts, and the main thread's wait before it exits, keeps some schedules from ever
//! happening, and with them the bugs that need those. A bare run has none of these parts, so the theorem holds for every
//! bug. Only when a thread was starved for longer than any schedule of k steps lasts, or idled for [`MOST_IDLE`] steps in a
//! row, the run is none that the theorem speaks of any more, and the rule against starvation takes over so that it ends.
//!
//! The parts: `changes` draws the points, `length` tells how long the run is, `timers` knows the waits that can expire,
//! `starvation` the signs that a thread spins or is kept from running, `rules` what can be switched off.

mod changes;
mod length;
mod rules;
mod starvation;
mod timers;

pub use changes::Changes;
pub use rules::{Phases, Rules};
pub use starvation::MOST_IDLE;

use changes::Points;
use length::Length;
use starvation::{Idling, Turns, patience};
use timers::Timers;

use crate::event::{Event, EventKind, ObjectId, ThreadId};
use crate::run::Run;
use crate::source::Source;
use crate::tournament::Tournament;

/// Priorities of threads that were never lowered: the upper half of the numbers.
const INITIAL: u64 = 1 << 63;
/// Priorities set by change points: `LEVEL + (d − i)` for the i-th.
const LEVEL: u64 = 1 << 62;
/// A thread that seems to spin is lowered with this probability at each step: the paper's "small probability". It gives way
/// after 13 idle steps on average, and one that stops by itself after a few is rarely disturbed.
const LOWER_ONE_IN: u64 = 10;

/// The scheduler.
#[derive(Clone, Debug)]
pub struct Priorities<S> {
    source: S,
    /// Those of runs that are not bare.
    usual: Rules,
    /// Those of this run.
    rules: Rules,
    bare: bool,
    changes: Changes,
    enabled: Tournament,
    /// Priority of each thread; 0 once it is finished.
    priorities: Vec<u64>,
    timers: Timers,
    /// The step of `running` is one of its timer.
    expires: bool,
    unfinished: usize,
    /// Threads somebody waited for.
    joined: Vec<bool>,
    joins: usize,
    points: Points,
    length: Length,
    turns: Turns,
    idling: Idling,
    /// The count at which starved threads are looked for.
    review: u64,
    /// A thread that is starved: others are lowered until it runs.
    starved: Option<ThreadId>,
    /// A thread of this run was lowered because it seemed to spin.
    suspected: bool,
    /// The count at which the next change point or starvation has to be looked at.
    attention: u64,
    running: ThreadId,
    /// The step of `running` is not accounted for yet.
    owed: bool,
    /// The next priority below all others.
    lowest: u64,
}

impl<S: Source> Priorities<S> {
    /// A scheduler that draws from `source`.
    pub fn new(source: S, rules: Rules) -> Priorities<S> {
        Priorities {
            source,
            usual: rules,
            rules,
            bare: false,
            changes: Changes::default(),
            enabled: Tournament::default(),
            priorities: Vec::new(),
            timers: Timers::default(),
            expires: false,
            unfinished: 0,
            joined: Vec::new(),
            joins: 0,
            points: Points::default(),
            length: Length::default(),
            turns: Turns::default(),
            idling: Idling::new(),
            review: 0,
            starved: None,
            suspected: false,
            attention: u64::MAX,
            running: ThreadId::MAIN,
            owed: false,
            lowest: LEVEL,
        }
    }

    /// Starts a run; a bare one has none of the practical parts.
    pub fn begin(&mut self, run: Run, changes: Changes, bare: bool) {
        self.source.begin(run);
        self.changes = changes;
        self.bare = bare;
        self.rules = match self.usual {
            Rules { starvation, .. } if bare => Rules { phases: Phases::None, final_wait: false, starvation },
            usual => usual,
        };
        self.enabled.clear();
        self.priorities.clear();
        self.timers.clear();
        self.expires = false;
        self.unfinished = 0;
        self.joined.clear();
        self.joins = 0;
        self.length = Length::default();
        self.idling.clear();
        self.idling.lenient = bare;
        self.owed = false;
        self.suspected = false;
        self.lowest = LEVEL;
        self.draw_points();
    }

    fn draw_points(&mut self) {
        self.turns.begin_phase();
        self.review = self.patience();
        self.starved = None;
        self.points.draw(self.changes, &mut self.source);
        self.set_attention();
    }

    fn patience(&self) -> u64 {
        if self.rules.starvation { patience(self.changes.steps, self.bare) } else { u64::MAX }
    }

    fn set_attention(&mut self) {
        let review = if self.starved.is_some() { self.length.counted + 1 } else { self.review };
        self.attention = self.points.next_step().min(review);
    }

    fn begin_phase(&mut self) {
        self.length.begin_phase();
        for index in 0..self.priorities.len() {
            let thread = ThreadId(index as u32);
            if self.timers.priority(thread) != 0 {
                let priority = self.initial();
                self.timers.set(thread, priority);
            }
            if self.priorities[index] != 0 {
                let priority = self.initial();
                self.assign(thread, priority);
            }
        }
        self.draw_points();
    }

    fn initial(&mut self) -> u64 {
        initial(&mut self.source)
    }

    fn assign(&mut self, thread: ThreadId, priority: u64) {
        self.priorities[thread.index()] = priority;
        self.enter(thread);
    }

    /// The thread or its timer, if one of them is enabled, takes part with its priority as it is now.
    fn enter(&mut self, thread: ThreadId) {
        if self.enabled.key(thread) != 0 {
            let of_thread = self.priorities[thread.index()];
            let waits = self.timers.is_waiting(thread);
            self.enabled.set(thread, if waits { self.timers.priority(thread) } else { of_thread });
        }
    }

    fn lower(&mut self, thread: ThreadId) {
        // Runs out after 2⁶¹ lowerings.
        if self.timers.priority(thread) != 0 {
            // Or it would spin on with waits that expire.
            self.lowest -= 1;
            self.timers.set(thread, self.lowest);
        }
        self.lowest -= 1;
        self.assign(thread, self.lowest);
        self.turns.lowered(thread);
        if thread == self.running {
            self.turns.begin(&self.length);
        }
        self.idling.clear();
    }

    /// A thread exists.
    pub fn spawned(&mut self, thread: ThreadId) {
        let all_joined = self.unfinished == 1 && self.joins + 1 == self.priorities.len();
        if all_joined && self.length.counted > 0 && self.rules.phases == Phases::Joined {
            self.begin_phase();
        }
        self.enabled.reserve(thread);
        if self.priorities.len() <= thread.index() {
            self.priorities.resize(thread.index() + 1, 0);
            self.timers.reserve(thread);
            self.joined.resize(thread.index() + 1, false);
            self.turns.reserve(thread);
        }
        self.turns.created(thread, &self.length);
        self.priorities[thread.index()] = self.initial();
        self.unfinished += 1;
    }

    /// The thread is enabled and about to do `next`.
    #[inline]
    pub fn ready(&mut self, thread: ThreadId, next: Event) {
        let priority = match next.kind {
            EventKind::Timeout | EventKind::Sleep => self.timer(thread),
            _ => {
                self.timers.stop_waiting(thread);
                self.priorities.get(thread.index()).copied().unwrap_or(0)
            }
        };
        self.enabled.set(thread, priority);
        self.notice(thread, next);
    }

    /// The thread's wait can expire: the priority of its timer.
    #[cold]
    fn timer(&mut self, thread: ThreadId) -> u64 {
        match self.priorities.get(thread.index()) {
            None | Some(0) => 0,
            Some(_) => self.timers.wait(thread, || initial(&mut self.source)),
        }
    }

    /// The thread is not enabled any more.
    #[inline]
    pub fn blocked(&mut self, thread: ThreadId) {
        self.timers.stop_waiting(thread);
        self.enabled.set(thread, 0);
    }

    /// The thread is gone.
    pub fn finished(&mut self, thread: ThreadId) {
        self.timers.stop_waiting(thread);
        self.enabled.set(thread, 0);
        if let Some(priority) = self.priorities.get_mut(thread.index())
            && *priority != 0
        {
            *priority = 0;
            self.unfinished -= 1;
        }
        if thread == self.running {
            self.owed = false;
        }
        if self.starved == Some(thread) {
            self.starved = None;
        }
    }

    /// The next thread.
    #[inline]
    pub fn pick(&mut self) -> Option<ThreadId> {
        if self.owed {
            self.owed = false;
            // A timer is blocked behind each of its steps, and a thread behind the one with which its wait begins.
            let goes_on =
                self.enabled.key(self.running) != 0 && !self.expires && !self.timers.is_waiting(self.running);
            if self.enabled.len() != 1 || !goes_on {
                self.count();
            } else {
                self.length.alone += u64::from(self.joins + 1 < self.priorities.len());
            }
        }
        if self.rules.phases == Phases::Idle && self.length.counted > 0 && self.enabled.len() == 1 {
            self.begin_phase();
        }
        let next = self.enabled.winner()?;
        self.switch(next);
        self.expires = self.timers.is_waiting(next);
        self.owed = true;
        Some(next)
    }

    /// The running thread stays enabled and is about to do `next`.
    #[inline(always)]
    pub fn step(&mut self, current: ThreadId, next: Event) -> ThreadId {
        if current != self.running || self.enabled.key(current) == 0 || self.expires {
            self.ready(current, next);
            return self.pick().unwrap_or(current);
        }
        let others = self.enabled.len() > 1;
        if others {
            self.count();
        }
        self.notice(current, next);
        if others {
            let winner = self.enabled.winner().unwrap_or(current);
            self.switch(winner);
            return winner;
        }
        self.length.alone += u64::from(self.owed && self.joins + 1 < self.priorities.len());
        self.owed = true;
        if self.rules.phases == Phases::Idle && self.length.counted > 0 {
            self.begin_phase();
        }
        current
    }

    #[inline]
    fn switch(&mut self, next: ThreadId) {
        if next != self.running {
            self.turns.over(self.running, &self.length);
            if self.starved == Some(next) {
                self.starved = None;
                self.review = self.length.counted + 1;
            }
            self.running = next;
            self.expires = self.timers.is_waiting(next);
            self.idling.clear();
            self.set_attention();
        }
    }

    #[inline]
    fn count(&mut self) {
        self.length.counted += 1;
        if self.length.counted >= self.attention {
            self.attend();
        }
    }

    #[cold]
    fn attend(&mut self) {
        while let Some(point) = self.points.pass(self.length.counted) {
            // It may have spun all the while, up to the last step that a change point reaches: k would grow and grow. Of a
            // thread that worked, other runs show as much without a break.
            self.length.forget(u64::MAX, self.turns.since_at);
            match self.priorities[self.running.index()] {
                0 => {}
                // It was lowered because it seemed to spin: the point's own priority could be above all others.
                lowered if lowered < LEVEL => self.lower(self.running),
                _ if self.expires => {
                    self.timers.set(self.running, point.priority);
                    self.enter(self.running);
                }
                _ => self.assign(self.running, point.priority),
            }
        }
        if self.starved.is_none() && self.length.counted >= self.review {
            self.look_for_starved();
        }
        if let Some(starved) = self.starved {
            self.length.forget(u64::MAX, self.turns.last_at(starved));
            // Only where it would run instead: it may be in line for what others hold most of the time.
            let of = self.unfinished as u64;
            if self.enabled.key(starved) != 0
                && self.turns.took_its_share(self.running, starved, of, &self.length)
            {
                self.suspect(self.running);
            }
        }
        self.set_attention();
    }

    fn look_for_starved(&mut self) {
        let (patience, counted) = (self.patience(), self.length.counted);
        let mut next = u64::MAX;
        for index in 0..self.turns.threads() {
            let thread = ThreadId(index as u32);
            if thread == self.running || self.priorities[index] == 0 {
                continue;
            }
            let due = self.turns.last(thread).saturating_add(patience);
            if due > counted {
                next = next.min(due);
            } else if self.enabled.key(thread) != 0 {
                self.starved = Some(thread);
                self.idling.lenient = false;
                return;
            } else {
                // It may be enabled in between, now and then: at no fixed distance, which a loop could have as well.
                next = next.min(counted + 1 + self.source.below(patience / 16));
            }
        }
        self.review = next.min(counted.saturating_add(patience));
    }

    /// Looks for joins and for signs that the thread spins or that the main thread is about to leave.
    #[inline(always)]
    fn notice(&mut self, thread: ThreadId, next: Event) {
        match next.kind {
            EventKind::ThreadJoin => self.notice_join(next.object),
            EventKind::ThreadExit | EventKind::ProcessExit => {
                if thread == ThreadId::MAIN && self.rules.final_wait && self.unfinished > 1 {
                    self.lower(thread);
                }
            }
            _ if thread != self.running || !self.rules.starvation => {}
            _ => {
                if self.idling.notice(next) {
                    self.suspect(thread);
                }
            }
        }
    }

    #[cold]
    fn notice_join(&mut self, target: ObjectId) {
        let index = target.0.wrapping_sub(ObjectId::of_thread(ThreadId::MAIN).0) as usize;
        if let Some(joined) = self.joined.get_mut(index)
            && !std::mem::replace(joined, true)
        {
            self.joins += 1;
        }
    }

    #[cold]
    fn suspect(&mut self, thread: ThreadId) {
        if self.enabled.len() > 1 && self.source.one_in(LOWER_ONE_IN) {
            self.length.forget(self.idling.steps(), self.turns.since_at);
            self.suspected = true;
            self.lower(thread);
        }
    }

    /// The most steps that may count in a phase of another schedule, judging by this run.
    pub fn reach(&self) -> u64 {
        self.length.reach()
    }

    /// The most steps that may count in another schedule of one phase, judging by this run.
    pub fn whole_reach(&self) -> u64 {
        self.length.whole_reach()
    }

    /// Whether a thread came to its end in this run.
    pub fn has_finished(&self, thread: ThreadId) -> bool {
        self.priorities.get(thread.index()) == Some(&0)
    }

    /// Whether a thread was still there when another one ended the run.
    pub fn was_cut_off(&self, thread: ThreadId) -> bool {
        thread != self.running && self.priorities.get(thread.index()).is_some_and(|&priority| priority != 0)
    }

    /// Whether a thread of the run was lowered because it seemed to spin.
    pub fn suspected(&self) -> bool {
        self.suspected
    }

    /// How many threads waited with a deadline.
    pub fn timer_count(&self) -> usize {
        self.timers.count()
    }
}

fn initial(source: &mut impl Source) -> u64 {
    INITIAL | (source.key() >> 1)
}

#[cfg(test)]
mod tests;
