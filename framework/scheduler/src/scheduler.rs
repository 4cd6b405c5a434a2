//! The scheduler: keeps the threads' states, tells the strategy, and turns its pick into a [`Choice`].

mod alarms;
mod flushing;
mod handlers;

use std::collections::BTreeSet;

use waylay_schedule::{AnyStrategy, Event, EventKind, ObjectId, RunReport, Strategy, ThreadId};

use crate::clock::{Clock, Moment};
use crate::recording::Recording;
use crate::thread::{Acquire, Key, Outcome, Shares, State, Thread};
use crate::waiting::Lines;
use alarms::Alarms;
pub use flushing::Flush;
use flushing::Flushers;
use handlers::Suspensions;

/// When a wait with a deadline may give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutPolicy {
    /// Whenever the strategy says so: the processor may have been busy with other things for that long.
    Choice,
    /// Only when nothing else can run: as on an infinitely fast machine.
    Idle,
}

/// What the caller has to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Let this thread continue.
    Run(ThreadId),
    /// Nobody can run until a thread that is away arrives.
    Idle,
    /// Nobody can run, ever.
    Deadlock,
    /// Every thread has finished.
    Finished,
}

/// One run's threads and the strategy that orders them.
pub struct Scheduler {
    pub(super) strategy: AnyStrategy,
    pub(super) threads: Vec<Thread>,
    pub(super) lines: Lines,
    /// Waits that a signal handler interrupts.
    suspensions: Suspensions,
    /// Deadlines that wait for an idle moment, or for an alarm.
    pub(super) deadlines: BTreeSet<(Moment, ThreadId)>,
    alarms: Alarms,
    /// What lets stores of threads become visible later than they are made.
    flushers: Flushers,
    pub(super) policy: TimeoutPolicy,
    /// Virtual time.
    pub clock: Clock,
    /// The schedule as it happens.
    pub recording: Recording,
    /// Choices made in this run.
    pub steps: u64,
    /// Choices that changed the running thread.
    pub switches: u64,
    current: ThreadId,
    live: u32,
    away: u32,
    /// How many of those that are away wait for a signal.
    patient: u32,
    /// Whether a signal may come that no thread sends.
    pub signals_may_come: bool,
    /// A wait ended by its deadline although others could run, for the first time since that was asked last.
    hurry: bool,
    /// One did in this run.
    hurried: bool,
}

/// A deadline, unless it never comes: then it is none.
fn that_comes(deadline: Option<Moment>) -> Option<Moment> {
    deadline.filter(|&moment| moment != Moment::NEVER)
}

impl Scheduler {
    /// Without threads: the first one that is added is the main thread.
    pub fn new(strategy: AnyStrategy, policy: TimeoutPolicy, recording: Recording) -> Self {
        Self {
            strategy,
            threads: Vec::new(),
            lines: Lines::default(),
            suspensions: Suspensions::default(),
            alarms: Alarms::default(),
            flushers: Flushers::default(),
            deadlines: BTreeSet::new(),
            policy,
            clock: Clock::default(),
            recording,
            steps: 0,
            switches: 0,
            current: ThreadId::MAIN,
            live: 0,
            away: 0,
            patient: 0,
            signals_may_come: false,
            hurry: false,
            hurried: false,
        }
    }

    /// Forgets all threads; the strategy is told by the caller.
    pub fn clear(&mut self) {
        self.threads.clear();
        self.lines.clear();
        self.suspensions.clear();
        self.alarms.clear();
        self.flushers.clear();
        self.deadlines.clear();
        self.clock = Clock::default();
        self.recording.clear();
        (self.steps, self.switches, self.live, self.away, self.patient) = (0, 0, 0, 0, 0);
        self.signals_may_come = false;
        (self.hurry, self.hurried) = (false, false);
        self.current = ThreadId::MAIN;
    }

    /// The strategy, for the conversation around a run.
    pub fn strategy(&mut self) -> &mut AnyStrategy {
        &mut self.strategy
    }

    /// The running thread looks at a clock; `change` is a number that is another one whenever something has changed. Deadlines
    /// that its looks have moved the clock past are over.
    pub fn look(&mut self, change: u64) -> Moment {
        let before = self.clock.busy();
        let now = self.clock.look(change);
        self.threads[self.current.index()].busy += self.clock.busy() - before;
        while self.policy == TimeoutPolicy::Idle
            && let Some(&(moment, thread)) = self.deadlines.first()
            && moment <= now
        {
            self.deadlines.remove(&(moment, thread));
            self.offer_timeout(thread);
        }
        now
    }

    /// One thread.
    pub fn thread(&self, thread: ThreadId) -> &Thread {
        &self.threads[thread.index()]
    }

    /// Why the thread runs again; the answer is given once.
    pub fn take_outcome(&mut self, thread: ThreadId) -> Outcome {
        core::mem::replace(&mut self.threads[thread.index()].outcome, Outcome::Woken)
    }

    /// Tells the strategy that the run is over.
    pub fn end(&mut self, report: &RunReport<'_>) {
        self.strategy.end(report);
    }

    /// How many threads there have been.
    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// The thread that was chosen last.
    pub fn current(&self) -> ThreadId {
        self.current
    }

    /// How many threads have not finished.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// Whether, for the first time in this run, a wait was ended by its deadline although others could run.
    #[inline]
    pub fn takes_first_hurry(&mut self) -> bool {
        core::mem::take(&mut self.hurry)
    }

    /// Whether another thread than this one could run at the moment at which it gives up waiting: one that is ready, or one
    /// whose own deadline was earlier. Of two sleeping threads the one that sleeps longer may be chosen first.
    fn could_another_run(&self, waiter: ThreadId, deadline: Option<Moment>) -> bool {
        let is_ready = |thread: &Thread| thread.state == State::Ready;
        let is_over =
            |thread: &Thread| deadline.is_some_and(|end| thread.deadline.is_some_and(|one| one < end));
        let mut threads = self.threads.iter().enumerate();
        threads.any(|(number, thread)| number != waiter.index() && (is_ready(thread) || is_over(thread)))
    }

    /// How many threads wait in the kernel.
    pub fn away(&self) -> u32 {
        self.away
    }

    /// Whether the thread that was chosen last runs because its time came, and nobody but such threads can run.
    pub fn only_time_passes(&self) -> bool {
        self.threads[self.current.index()].outcome == Outcome::TimedOut && self.is_alone()
    }

    /// Whether nobody but the running thread could run, as long as no deadline passes.
    pub fn is_alone(&self) -> bool {
        self.threads.iter().filter(|thread| thread.state == State::Ready).count() <= 1
    }

    /// A thread exists and is ready to start. The first one is the running thread.
    pub fn add_thread(&mut self) -> ThreadId {
        let thread = ThreadId(self.threads.len() as u32);
        let first = Event::on_thread(EventKind::ThreadStart, thread);
        let parent = (thread != ThreadId::MAIN).then_some(self.current);
        self.threads.push(Thread::new(first));
        self.live += 1;
        self.strategy.spawned(thread, parent);
        self.strategy.ready(thread, first);
        if parent.is_none() {
            // Only one can be picked; the strategy has to see its first step all the same.
            self.strategy.pick();
            self.chose(thread);
        }
        thread
    }

    /// The running thread announces `event` and could do it right away.
    #[inline(always)]
    pub fn step(&mut self, event: Event) -> ThreadId {
        self.step_by_parts(event.kind, event.place, event.extent, event.object, event.also)
    }

    /// An event of three words would travel through memory, written in halves and read whole, which stalls the
    /// processor for longer than all the rest takes; in registers it does not.
    #[inline(never)]
    fn step_by_parts(
        &mut self,
        kind: EventKind,
        place: u16,
        extent: u32,
        object: ObjectId,
        also: ObjectId,
    ) -> ThreadId {
        let me = self.current;
        let pending = &mut self.threads[me.index()].pending;
        (pending.kind, pending.place, pending.extent) = (kind, place, extent);
        (pending.object, pending.also) = (object, also);
        let mut next = self.strategy.step(me, Event { object, also, extent, kind, place });
        if next != me {
            if self.flushers.are_there() {
                next = self.flush_until_thread(next);
            }
            self.chose(next);
            return next;
        }
        self.steps += 1;
        self.threads[me.index()].steps += 1;
        self.recording.again(me, kind);
        me
    }

    /// The running thread announces that it will take what `key` names, which is free right now.
    #[inline(always)]
    pub fn step_acquire(
        &mut self,
        event: Event,
        key: Key,
        shares: Shares,
        deadline: Option<Moment>,
    ) -> ThreadId {
        let me = self.current;
        let next = self.step(event);
        if next != me {
            self.stand_in_line(me, key, shares, deadline);
        }
        next
    }

    /// A thread that announced what it will take is not the one that runs. Should another take it first, the wait that
    /// begins then has the deadline of this one.
    fn stand_in_line(&mut self, thread: ThreadId, key: Key, shares: Shares, deadline: Option<Moment>) {
        let entry = &mut self.threads[thread.index()];
        (entry.shares, entry.deadline) = (shares, that_comes(deadline));
        self.lines.join(&mut self.threads, thread, key);
    }

    /// The running thread announces `event` but has to wait until `key` is freed or signalled, or for `deadline`.
    pub fn wait(
        &mut self,
        event: Event,
        key: Key,
        shares: Shares,
        deadline: Option<Moment>,
        then: Option<Acquire>,
    ) -> Choice {
        let me = self.current;
        let thread = &mut self.threads[me.index()];
        if thread.called_off {
            return self.do_not_wait(event);
        }
        (thread.pending, thread.shares, thread.then) = (event, shares, then);
        thread.deadline = that_comes(deadline);
        thread.outcome = Outcome::Woken;
        self.lines.join(&mut self.threads, me, key);
        self.block(me);
        self.choose()
    }

    /// The running thread sleeps until `deadline`.
    pub fn sleep(&mut self, deadline: Moment) -> Choice {
        let me = self.current;
        let thread = &mut self.threads[me.index()];
        if thread.called_off {
            return self.do_not_wait(Event::local(EventKind::Sleep));
        }
        (thread.pending, thread.deadline) = (Event::local(EventKind::Sleep), that_comes(Some(deadline)));
        thread.outcome = Outcome::Woken;
        self.block(me);
        self.choose()
    }

    /// What `key` names was taken in a way that stops those who want one of `shares`.
    #[inline]
    pub fn taken(&mut self, key: Key, shares: Shares) {
        if self.lines.is_quiet(key) {
            return;
        }
        let mut at = self.lines.first(key);
        while let Some(thread) = at {
            let entry = &self.threads[thread.index()];
            at = entry.next;
            if entry.state == State::Ready && entry.shares.meets(shares) && thread != self.current {
                self.block(thread);
            }
        }
    }

    /// What `key` names can be had again by those who want one of `shares`: they all become ready.
    #[inline]
    pub fn freed(&mut self, key: Key, shares: Shares) {
        if self.lines.is_quiet(key) {
            return;
        }
        let mut at = self.lines.first(key);
        while let Some(thread) = at {
            let entry = &self.threads[thread.index()];
            at = entry.next;
            if entry.state == State::Blocked && entry.shares.meets(shares) {
                // It keeps its place in line: if another takes the object first it has to wait again.
                self.unblock(thread);
            }
        }
    }

    /// Ends the wait of up to `count` threads, first come first. Returns how many there were.
    pub fn wake(&mut self, key: Key, count: u32, shares: Shares) -> u32 {
        let mut woken = self.suspensions.wake(key, count, shares);
        let mut at = self.lines.first(key);
        while let Some(thread) = at
            && woken < count
        {
            let entry = &self.threads[thread.index()];
            at = entry.next;
            if entry.state == State::Blocked && entry.shares.meets(shares) {
                self.end_wait(thread, Outcome::Woken);
                woken += 1;
            }
        }
        woken
    }

    /// Moves up to `count` waiting threads from one line to another, as a futex requeue does.
    pub fn requeue(&mut self, from: Key, to: Key, count: u32) -> u32 {
        let mut moved = 0;
        let mut at = self.lines.first(from);
        while let Some(thread) = at
            && moved < count
        {
            let entry = &self.threads[thread.index()];
            at = entry.next;
            if entry.state == State::Blocked {
                self.lines.leave(&mut self.threads, thread);
                self.lines.join(&mut self.threads, thread, to);
                moved += 1;
            }
        }
        moved
    }

    /// Ends the wait of one thread, if it is waiting.
    pub fn interrupt(&mut self, thread: ThreadId) {
        if self.threads[thread.index()].state == State::Blocked {
            self.end_wait(thread, Outcome::Interrupted);
        }
    }

    /// Ends the wait of one thread, or the next one that it begins.
    pub fn call_off(&mut self, thread: ThreadId) {
        self.threads[thread.index()].called_off = self.threads[thread.index()].state != State::Blocked;
        self.interrupt(thread);
    }

    /// The running thread goes on, or would, where it was about to wait.
    fn do_not_wait(&mut self, event: Event) -> Choice {
        let me = self.current;
        let thread = &mut self.threads[me.index()];
        (thread.called_off, thread.pending, thread.outcome) = (false, event, Outcome::Interrupted);
        self.strategy.ready(me, event);
        self.choose()
    }

    /// How many threads wait for `key`, those that handle a signal meanwhile included.
    pub fn waiting_on(&self, key: Key) -> u32 {
        let mut count = self.suspensions.waiting_on(key);
        let mut at = self.lines.first(key);
        while let Some(thread) = at {
            let entry = &self.threads[thread.index()];
            count += u32::from(entry.state == State::Blocked);
            at = entry.next;
        }
        count
    }

    /// The running thread goes into a call that the kernel may block.
    pub fn leave(&mut self, event: Event) -> Choice {
        let me = self.current;
        let thread = &mut self.threads[me.index()];
        (thread.state, thread.pending) = (State::Away, event);
        self.away += 1;
        self.strategy.blocked(me);
        self.choose()
    }

    /// The running thread is about to leave for a call that only a signal ends.
    pub fn will_wait_for_signal(&mut self) {
        self.threads[self.current.index()].patient = true;
        self.patient += 1;
    }

    /// A thread that was away is back and wants to go on.
    pub fn arrive(&mut self, thread: ThreadId) {
        let event = Event::new(EventKind::BlockingReturn, ObjectId::UNKNOWN);
        let entry = &mut self.threads[thread.index()];
        self.patient -= u32::from(core::mem::take(&mut entry.patient));
        debug_assert_eq!(entry.state, State::Away);
        (entry.state, entry.pending) = (State::Ready, event);
        self.away -= 1;
        self.strategy.ready(thread, event);
    }

    /// The running thread is gone.
    pub fn finish(&mut self) -> Choice {
        let me = self.current;
        self.threads[me.index()].state = State::Finished;
        self.suspensions.forget(me);
        self.end_flusher(me);
        self.live -= 1;
        self.strategy.finished(me);
        self.choose()
    }

    /// Asks the strategy who runs, without a step of the running thread.
    pub fn choose(&mut self) -> Choice {
        loop {
            if let Some(next) = self.strategy.pick() {
                if self.flush_by(next) {
                    continue;
                }
                self.chose(next);
                self.settle(next);
                return Choice::Run(next);
            }
            if self.live == 0 {
                return Choice::Finished;
            }
            // A thread that is away may come back before any deadline; virtual time waits for it, unless only a signal
            // could bring it back and nobody is left to send one.
            let expected = self.away - if self.signals_may_come { 0 } else { self.patient };
            if expected > 0 {
                return Choice::Idle;
            }
            let Some(&(moment, thread)) = self.deadlines.first() else { return Choice::Deadlock };
            self.clock.advance_to(moment);
            self.deadlines.remove(&(moment, thread));
            self.offer_timeout(thread);
        }
    }

    #[inline]
    fn chose(&mut self, next: ThreadId) {
        self.steps += 1;
        self.threads[next.index()].steps += 1;
        if next == self.current && !self.flushers.take_interruption() {
            let first = self.threads[next.index()].pending.kind;
            self.recording.again(next, first);
        } else {
            let first = self.offered(next).kind;
            self.recording.begin(next, first);
            self.flushers.take_interruption();
            self.switches += 1;
            self.current = next;
            self.settle(next);
        }
    }

    /// What the strategy was told that the thread is about to do.
    fn offered(&self, thread: ThreadId) -> Event {
        match self.threads[thread.index()].state {
            State::Blocked => self.timeout_event(thread),
            _ => self.threads[thread.index()].pending,
        }
    }

    /// The chosen thread is about to run: it stands in no line and has no deadline any more.
    fn settle(&mut self, next: ThreadId) {
        let entry = &mut self.threads[next.index()];
        entry.continues = false;
        if entry.state == State::Blocked {
            entry.state = State::Ready;
            entry.outcome = Outcome::TimedOut;
            entry.then = None;
            let deadline = entry.deadline;
            if let Some(deadline) = deadline {
                self.clock.advance_to(deadline);
            }
            if !self.hurried && self.could_another_run(next, deadline) {
                (self.hurry, self.hurried) = (true, true);
            }
        }
        if self.threads[next.index()].deadline.is_some() {
            self.forget_deadline(next);
        }
        if self.threads[next.index()].interest.is_some() {
            self.lines.leave(&mut self.threads, next);
        }
    }

    fn block(&mut self, thread: ThreadId) {
        let entry = &mut self.threads[thread.index()];
        entry.state = State::Blocked;
        entry.blocked_at = self.steps;
        match (entry.deadline, self.policy) {
            (Some(deadline), TimeoutPolicy::Choice) if !self.alarms.any_before(deadline) => {
                self.offer_timeout(thread);
            }
            (Some(deadline), _) => {
                self.deadlines.insert((deadline, thread));
                self.strategy.blocked(thread);
            }
            (None, _) => self.strategy.blocked(thread),
        }
    }

    fn unblock(&mut self, thread: ThreadId) {
        let entry = &mut self.threads[thread.index()];
        entry.state = State::Ready;
        let event = entry.pending;
        self.strategy.ready(thread, event);
    }

    pub(super) fn end_wait(&mut self, thread: ThreadId, outcome: Outcome) {
        self.lines.leave(&mut self.threads, thread);
        self.forget_deadline(thread);
        let entry = &mut self.threads[thread.index()];
        // A wait that is over already stays what it was; what is broken off is the one for what comes then.
        if !core::mem::take(&mut entry.continues) {
            entry.outcome = outcome;
        }
        let Some(acquire) = entry.then.take() else { return self.unblock(thread) };
        (entry.pending, entry.shares, entry.continues) = (acquire.event, Shares::ALL, true);
        self.lines.join(&mut self.threads, thread, acquire.key);
        if (acquire.is_free)(acquire.key) {
            self.unblock(thread);
        } else {
            // The timed wait is over; what follows is an ordinary one.
            self.strategy.blocked(thread);
        }
    }

    fn forget_deadline(&mut self, thread: ThreadId) {
        if let Some(deadline) = self.threads[thread.index()].deadline.take() {
            self.deadlines.remove(&(deadline, thread));
        }
    }

    /// The strategy may end the wait of a thread that has a deadline.
    pub(super) fn offer_timeout(&mut self, thread: ThreadId) {
        let event = self.timeout_event(thread);
        self.strategy.ready(thread, event);
    }

    fn timeout_event(&self, thread: ThreadId) -> Event {
        let pending = self.threads[thread.index()].pending;
        match pending.kind {
            EventKind::Sleep => pending,
            _ => Event::new(EventKind::Timeout, pending.object),
        }
    }
}
