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
//! How many steps there are. Few steps count in a run whose threads happen to come one after the other, more when they
//! are interleaved, and the theorem asks for the most of any schedule. So the estimate handed on is all steps taken while
//! some thread was not joined yet: the others can count in no schedule. Left out are steps that may be those of a thread
//! that spins, because they say nothing about the program; of a thread that works, others of many runs show as much.
//!
//! Waits with a deadline. That a wait expires is not the waiting thread's doing: while it lasts, the thread is blocked. So
//! the expiries of a thread's waits are the steps of a second thread, its timer, with a priority of its own, which is drawn
//! when the thread first waits like this. The theorem holds with n as the number of threads and timers. Were an expiry a
//! step of the waiting thread, one that runs before all others would never stay parked.
//!
//! Phases. At a join point (all other threads were joined, or on request one thread is enabled) everything is drawn
//! afresh when concurrency begins again, so each phase is a run of the algorithm of its own, with the steps of the
//! longest phase as k.
//!
//! Starvation. A thread that spins is lowered, and so are threads that go on and on while another, which could run, does
//! not: what they wait for may be its to do. Idle steps show that soon. Work does not look like waiting, whether one thread
//! does it or several that hand over to each other, so there it takes the time that the waiting thread has not run: several
//! times the steps of a whole earlier run, which no schedule of a program with k steps reaches. So the theorem is not touched
//! where k is right. Those are lowered that took their share of that time: a thread that just came to do what is waited for
//! has not.
//!
//! Bare runs. Each of the last two parts, and the main thread's wait before it exits, keeps some schedules from ever
//! happening, and with them the bugs that need those. A bare run has none of these parts, so the theorem holds for every
//! bug. Only when a thread was starved for longer than any schedule of k steps lasts, or idled for [`MOST_IDLE`] steps in a
//! row, the run is none that the theorem speaks of any more, and the rule against starvation takes over so that it ends.

use crate::event::{Event, EventKind, ObjectId, ThreadId};
use crate::run::Run;
use crate::source::Source;
use crate::tournament::Tournament;

/// Priorities of threads that were never lowered: the upper half of the numbers.
const INITIAL: u64 = 1 << 63;
/// Priorities set by change points: `LEVEL + (d − i)` for the i-th.
const LEVEL: u64 = 1 << 62;

/// Idle steps in a row (yields, sleeps, timeouts) that are free: a thread that yields a few times is polite.
const FREE_IDLE: u32 = 3;
/// Each further idle step lowers the thread with this probability: the paper's "small probability". A spinning
/// thread gives way after 13 steps on average, and one that stops by itself after a few is rarely disturbed.
const LOWER_ONE_IN: u64 = 10;
/// Loads of one object in a row, with nothing else in between, after which they count as idle steps.
const FREE_LOADS: u32 = 64;
/// A thread that could run and did not for this many times the steps of a whole earlier run is starved.
const PATIENCE_FACTOR: u64 = 4;
/// The least patience, for runs about which nothing is known.
const PATIENCE_LEAST: u64 = 1000;
/// The patience of a bare run: one would do where k is right.
const BARE_PATIENCE_FACTOR: u64 = 2;
/// Idle steps of one thread in a row after which even a bare run takes it to spin, as a systematic search does: no run may
/// come near the steps without change that are called a livelock.
pub const MOST_IDLE: u32 = 20_000;

/// When a new phase begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phases {
    /// Never: the whole run is one.
    None,
    /// When a thread is created after all others but its parent were joined. Joins belong to the program, not to
    /// the schedule, so the same events lie in one phase whatever the threads' order.
    #[default]
    Joined,
    /// When one thread is enabled, as the paper has it. Contention for one lock can look like this, too.
    Idle,
}

/// The practical parts that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// When a new phase begins.
    pub phases: Phases,
    /// Whether the main thread drops to the lowest priority before it exits.
    pub final_wait: bool,
    /// Whether spinning threads are lowered.
    pub starvation: bool,
}

impl Rules {
    /// None of the practical parts: Fig. 7 of the paper.
    pub const BARE: Rules = Rules { phases: Phases::None, final_wait: false, starvation: false };
}

impl Default for Rules {
    fn default() -> Self {
        Rules { phases: Phases::Joined, final_wait: true, starvation: true }
    }
}

/// How many change points, and where they may lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// d: one more than the change points.
    pub depth: u32,
    /// k: the first change point is uniform in `1..=steps`; 0 means no change points at all.
    pub steps: u64,
    /// The later ones are uniform in this many steps from the first on; `None`: anywhere in `1..=steps`.
    pub radius: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct ChangePoint {
    step: u64,
    priority: u64,
}

/// The scheduler.
#[derive(Clone, Debug)]
pub struct Priorities<S> {
    source: S,
    /// Those of runs that are not bare.
    usual: Rules,
    /// Those of this run.
    rules: Rules,
    bare: bool,
    /// Spinning threads are not lowered yet: no thread was starved so far.
    lenient: bool,
    changes: Changes,
    enabled: Tournament,
    /// Priority of each thread; 0 once it is finished.
    priorities: Vec<u64>,
    /// Priority of each thread's timer; 0 as long as it never waited with a deadline.
    timers: Vec<u64>,
    /// Whether the thread is in a wait that can expire: what is enabled is its timer.
    waits: Vec<bool>,
    /// The step of `running` is one of its timer.
    expires: bool,
    unfinished: usize,
    /// Threads somebody waited for.
    joined: Vec<bool>,
    joins: usize,
    /// Change points of this phase in the order they take effect.
    points: Vec<ChangePoint>,
    passed: usize,
    /// Counted steps of this phase.
    counted: u64,
    /// Steps of this phase that were not counted although another thread was not joined yet.
    alone: u64,
    /// Steps of this phase, of those and of the counted ones, that do not belong to the program's length.
    spun: u64,
    /// The length up to which steps are among those if they are at all.
    spun_until: u64,
    /// The length when each thread last ran.
    ran_at: Vec<u64>,
    /// The length when `running` began to run without a break, or was lowered.
    since_at: u64,
    /// The count when each thread last ran; of a thread that has not yet, when it was created.
    ran: Vec<u64>,
    /// Counted steps of each thread since it was last lowered, but for those since it runs now.
    taken: Vec<u64>,
    /// The count when `running` began to run without a break, or was lowered.
    since: u64,
    /// The count at which starved threads are looked for.
    review: u64,
    /// A thread that is starved: others are lowered until it runs.
    starved: Option<ThreadId>,
    /// The estimate of steps for the longest earlier phase.
    longest: u64,
    /// The estimates of all earlier phases together.
    before: u64,
    /// The count at which the next change point or starvation has to be looked at.
    attention: u64,
    running: ThreadId,
    /// The step of `running` is not accounted for yet.
    owed: bool,
    idle: u32,
    loads: u32,
    loaded: ObjectId,
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
            lenient: false,
            changes: Changes::default(),
            enabled: Tournament::default(),
            priorities: Vec::new(),
            timers: Vec::new(),
            waits: Vec::new(),
            expires: false,
            unfinished: 0,
            joined: Vec::new(),
            joins: 0,
            points: Vec::new(),
            passed: 0,
            counted: 0,
            alone: 0,
            spun: 0,
            spun_until: 0,
            ran_at: Vec::new(),
            since_at: 0,
            ran: Vec::new(),
            taken: Vec::new(),
            since: 0,
            review: 0,
            starved: None,
            longest: 0,
            before: 0,
            attention: u64::MAX,
            running: ThreadId::MAIN,
            owed: false,
            idle: 0,
            loads: 0,
            loaded: ObjectId::NONE,
            lowest: LEVEL,
        }
    }

    /// Starts a run; a bare one has none of the practical parts.
    pub fn begin(&mut self, run: Run, changes: Changes, bare: bool) {
        self.source.begin(run);
        self.changes = changes;
        self.bare = bare;
        self.lenient = bare;
        self.rules = match self.usual {
            Rules { starvation, .. } if bare => Rules { phases: Phases::None, final_wait: false, starvation },
            usual => usual,
        };
        self.enabled.clear();
        self.priorities.clear();
        self.timers.clear();
        self.waits.clear();
        self.expires = false;
        self.unfinished = 0;
        self.joined.clear();
        self.joins = 0;
        self.longest = 0;
        self.before = 0;
        self.owed = false;
        self.idle = 0;
        self.loads = 0;
        self.lowest = LEVEL;
        self.draw_points();
    }

    fn draw_points(&mut self) {
        self.counted = 0;
        self.alone = 0;
        self.spun = 0;
        self.spun_until = 0;
        self.ran.fill(0);
        self.ran_at.fill(0);
        self.taken.fill(0);
        self.since = 0;
        self.since_at = 0;
        self.review = self.patience();
        self.starved = None;
        self.passed = 0;
        self.points.clear();
        let Changes { depth, steps, radius } = self.changes;
        if steps > 0 {
            let mut first = 0;
            for i in 1..depth {
                let step = match radius {
                    // Beyond the length of a run nothing changes, and the bound does not count it.
                    Some(radius) if i > 1 => first + self.source.below(radius.min(steps).max(1)),
                    _ => 1 + self.source.below(steps),
                };
                if i == 1 {
                    first = step;
                }
                self.points.push(ChangePoint { step, priority: LEVEL + u64::from(depth - i) });
            }
            // Stable, so of two points at one step the later has the last word, as in Fig. 7.
            self.points.sort_by_key(|point| point.step);
        }
        self.set_attention();
    }

    fn patience(&self) -> u64 {
        match self.changes.steps {
            _ if !self.rules.starvation => u64::MAX,
            // Beside the factor a little for runs of a few steps.
            steps if self.bare && steps > 0 => steps.saturating_mul(BARE_PATIENCE_FACTOR).saturating_add(64),
            steps => steps.saturating_mul(PATIENCE_FACTOR).max(PATIENCE_LEAST),
        }
    }

    fn set_attention(&mut self) {
        let change = self.points.get(self.passed).map_or(u64::MAX, |point| point.step);
        let review = if self.starved.is_some() { self.counted + 1 } else { self.review };
        self.attention = change.min(review);
    }

    fn begin_phase(&mut self) {
        self.before = self.whole_reach();
        self.longest = self.reach();
        for index in 0..self.priorities.len() {
            if self.timers[index] != 0 {
                self.timers[index] = self.initial();
            }
            if self.priorities[index] != 0 {
                let priority = self.initial();
                self.assign(ThreadId(index as u32), priority);
            }
        }
        self.draw_points();
    }

    fn initial(&mut self) -> u64 {
        INITIAL | (self.source.key() >> 1)
    }

    fn assign(&mut self, thread: ThreadId, priority: u64) {
        self.priorities[thread.index()] = priority;
        self.enter(thread);
    }

    /// The thread or its timer, if one of them is enabled, takes part with its priority as it is now.
    fn enter(&mut self, thread: ThreadId) {
        if self.enabled.key(thread) != 0 {
            let of = if self.waits[thread.index()] { &self.timers } else { &self.priorities };
            self.enabled.set(thread, of[thread.index()]);
        }
    }

    fn lower(&mut self, thread: ThreadId) {
        // Runs out after 2⁶¹ lowerings.
        if let Some(timer) = self.timers.get_mut(thread.index())
            && *timer != 0
        {
            // Or it would spin on with waits that expire.
            self.lowest -= 1;
            *timer = self.lowest;
        }
        self.lowest -= 1;
        self.assign(thread, self.lowest);
        if let Some(taken) = self.taken.get_mut(thread.index()) {
            *taken = 0;
        }
        if thread == self.running {
            self.since = self.counted;
            self.since_at = self.length();
        }
        self.idle = 0;
        self.loads = 0;
    }

    /// A thread exists.
    pub fn spawned(&mut self, thread: ThreadId) {
        let all_joined = self.unfinished == 1 && self.joins + 1 == self.priorities.len();
        if all_joined && self.counted > 0 && self.rules.phases == Phases::Joined {
            self.begin_phase();
        }
        self.enabled.reserve(thread);
        if self.priorities.len() <= thread.index() {
            self.priorities.resize(thread.index() + 1, 0);
            self.timers.resize(thread.index() + 1, 0);
            self.waits.resize(thread.index() + 1, false);
            self.joined.resize(thread.index() + 1, false);
            self.ran.resize(thread.index() + 1, 0);
            self.ran_at.resize(thread.index() + 1, 0);
            self.taken.resize(thread.index() + 1, 0);
        }
        self.ran[thread.index()] = self.counted;
        self.ran_at[thread.index()] = self.length();
        self.priorities[thread.index()] = self.initial();
        self.unfinished += 1;
    }

    /// The thread is enabled and about to do `next`.
    #[inline]
    pub fn ready(&mut self, thread: ThreadId, next: Event) {
        let priority = match next.kind {
            EventKind::Timeout | EventKind::Sleep => self.timer(thread),
            _ => {
                self.stop_waiting(thread);
                self.priorities.get(thread.index()).copied().unwrap_or(0)
            }
        };
        self.enabled.set(thread, priority);
        self.notice(thread, next);
    }

    /// The thread's wait can expire: the priority of its timer.
    #[cold]
    fn timer(&mut self, thread: ThreadId) -> u64 {
        if self.timers.get(thread.index()).is_none_or(|_| self.priorities[thread.index()] == 0) {
            return 0;
        }
        self.waits[thread.index()] = true;
        if self.timers[thread.index()] == 0 {
            self.timers[thread.index()] = self.initial();
        }
        self.timers[thread.index()]
    }

    #[inline]
    fn is_waiting(&self, thread: ThreadId) -> bool {
        self.waits.get(thread.index()).is_some_and(|&waits| waits)
    }

    #[inline]
    fn stop_waiting(&mut self, thread: ThreadId) {
        if let Some(waits) = self.waits.get_mut(thread.index()) {
            *waits = false;
        }
    }

    /// The thread is not enabled any more.
    #[inline]
    pub fn blocked(&mut self, thread: ThreadId) {
        self.stop_waiting(thread);
        self.enabled.set(thread, 0);
    }

    /// The thread is gone.
    pub fn finished(&mut self, thread: ThreadId) {
        self.stop_waiting(thread);
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
                self.enabled.key(self.running) != 0 && !self.expires && !self.is_waiting(self.running);
            if self.enabled.len() != 1 || !goes_on {
                self.count();
            } else {
                self.alone += u64::from(self.joins + 1 < self.priorities.len());
            }
        }
        if self.rules.phases == Phases::Idle && self.counted > 0 && self.enabled.len() == 1 {
            self.begin_phase();
        }
        let next = self.enabled.winner()?;
        self.switch(next);
        self.expires = self.is_waiting(next);
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
        self.alone += u64::from(self.owed && self.joins + 1 < self.priorities.len());
        self.owed = true;
        if self.rules.phases == Phases::Idle && self.counted > 0 {
            self.begin_phase();
        }
        current
    }

    #[inline]
    fn switch(&mut self, next: ThreadId) {
        if next != self.running {
            if let Some(ran) = self.ran.get_mut(self.running.index()) {
                *ran = self.counted;
                self.ran_at[self.running.index()] = self.counted + self.alone;
                self.taken[self.running.index()] += self.counted - self.since;
            }
            self.since = self.counted;
            self.since_at = self.length();
            if self.starved == Some(next) {
                self.starved = None;
                self.review = self.counted + 1;
            }
            self.running = next;
            self.expires = self.is_waiting(next);
            self.idle = 0;
            self.loads = 0;
            self.set_attention();
        }
    }

    #[inline]
    fn count(&mut self) {
        self.counted += 1;
        if self.counted >= self.attention {
            self.attend();
        }
    }

    #[cold]
    fn attend(&mut self) {
        while let Some(&point) = self.points.get(self.passed)
            && point.step <= self.counted
        {
            self.passed += 1;
            // It may have spun all the while, up to the last step that a change point reaches: k would grow and grow. Of a
            // thread that worked, other runs show as much without a break.
            self.forget(u64::MAX, self.since_at);
            match self.priorities[self.running.index()] {
                0 => {}
                // It was lowered because it seemed to spin: the point's own priority could be above all others.
                lowered if lowered < LEVEL => self.lower(self.running),
                _ if self.expires => {
                    self.timers[self.running.index()] = point.priority;
                    self.enter(self.running);
                }
                _ => self.assign(self.running, point.priority),
            }
        }
        if self.starved.is_none() && self.counted >= self.review {
            self.look_for_starved();
        }
        if let Some(starved) = self.starved {
            self.forget(u64::MAX, self.ran_at[starved.index()]);
            // Only where it would run instead: it may be in line for what others hold most of the time.
            let taken = self.taken[self.running.index()] + self.counted - self.since;
            let share = (self.counted - self.ran[starved.index()]) / self.unfinished.max(1) as u64;
            if self.enabled.key(starved) != 0 && taken >= share {
                self.suspect(self.running);
            }
        }
        self.set_attention();
    }

    fn look_for_starved(&mut self) {
        let patience = self.patience();
        let mut next = u64::MAX;
        for index in 0..self.ran.len() {
            let (thread, ran) = (ThreadId(index as u32), self.ran[index]);
            if thread == self.running || self.priorities[index] == 0 {
                continue;
            }
            let due = ran.saturating_add(patience);
            if due > self.counted {
                next = next.min(due);
            } else if self.enabled.key(thread) != 0 {
                self.starved = Some(thread);
                self.lenient = false;
                return;
            } else {
                // It may be enabled in between, now and then: at no fixed distance, which a loop could have as well.
                next = next.min(self.counted + 1 + self.source.below(patience / 16));
            }
        }
        self.review = next.min(self.counted.saturating_add(patience));
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
            EventKind::AtomicLoad if next.object == self.loaded => {
                self.loads += 1;
                if self.loads > FREE_LOADS && self.is_idle_for(self.loads) {
                    self.suspect(thread);
                }
            }
            EventKind::AtomicLoad => {
                self.loaded = next.object;
                self.loads = 1;
            }
            kind if kind.is_idle() => {
                self.idle += 1;
                if self.idle > FREE_IDLE && self.is_idle_for(self.idle) {
                    self.suspect(thread);
                }
            }
            _ => self.loads = 0,
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

    /// Whether so many idle steps in a row are enough to take the thread to spin.
    fn is_idle_for(&mut self, steps: u32) -> bool {
        self.lenient &= steps < MOST_IDLE;
        !self.lenient
    }

    #[cold]
    fn suspect(&mut self, thread: ThreadId) {
        if self.enabled.len() > 1 && self.source.one_in(LOWER_ONE_IN) {
            self.forget(u64::from(self.idle) + u64::from(self.loads), self.since_at);
            self.lower(thread);
        }
    }

    /// Up to so many steps since then do not belong to the program's length: with fewer of them it comes as far.
    fn forget(&mut self, most: u64, since: u64) {
        self.spun += most.min(self.length() - since.max(self.spun_until));
        self.spun_until = self.length();
    }

    /// Steps of this phase that may count in another schedule.
    fn length(&self) -> u64 {
        self.counted + self.alone
    }

    /// The most steps that may count in a phase of another schedule, judging by this run.
    pub fn reach(&self) -> u64 {
        self.longest.max(self.length() - self.spun)
    }

    /// The most steps that may count in another schedule of one phase, judging by this run.
    pub fn whole_reach(&self) -> u64 {
        self.before + self.length() - self.spun
    }

    /// How many threads waited with a deadline.
    pub fn timer_count(&self) -> usize {
        self.timers.iter().filter(|&&timer| timer != 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lowers whenever it may; the change point is at the step with this number, and of two threads the first is on top.
    struct Fixed {
        point: u64,
        keys: u64,
    }

    impl Source for Fixed {
        fn begin(&mut self, _: Run) {}

        fn below(&mut self, bound: u64) -> u64 {
            if bound == LOWER_ONE_IN { 0 } else { self.point - 1 }
        }

        fn key(&mut self) -> u64 {
            self.keys -= 2;
            self.keys
        }
    }

    #[test]
    fn a_change_point_lowers_a_thread_that_was_taken_to_spin() {
        let (one, other) = (ThreadId(0), ThreadId(1));
        let idle = Event::local(EventKind::Yield);
        let work = Event::local(EventKind::UserWrite);
        let point = 2 * u64::from(FREE_IDLE) + 6;
        let mut threads = Priorities::new(Fixed { point, keys: 100 }, Rules::default());
        threads.begin(Run::default(), Changes { depth: 2, steps: 100, radius: None }, false);
        for thread in [one, other] {
            threads.spawned(thread);
            threads.ready(thread, work);
        }
        let mut current = threads.pick().unwrap();
        assert_eq!(current, one);
        // Both idle until they are lowered: the first is on top again.
        for thread in [one, other] {
            while current == thread {
                current = threads.step(thread, idle);
            }
        }
        assert_eq!(current, one);
        let mut steps = threads.counted;
        while current == one {
            current = threads.step(one, work);
            steps += 1;
            assert!(steps <= point, "the change point does nothing");
        }
        assert_eq!(steps, point);
    }
}
