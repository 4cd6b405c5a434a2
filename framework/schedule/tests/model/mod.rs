//! A tiny model of concurrent programs: threads are lists of operations on variables, locks and flags.
//!
//! The machine carries a program out under a strategy exactly as a controller would, with nothing but data: so all
//! random choices of a strategy can be enumerated and its probabilities computed without error.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "every test file is a crate that uses its own part of the model"
)]

pub mod directive;
pub mod enumerate;
pub mod figures;

use waylay_schedule::{
    Event, EventKind, ObjectId, Outcome, Run, RunParameters, RunReport, Schedule, Strategy, ThreadId, Trace,
};

/// One operation of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Touches nothing.
    Local,
    /// Writes a variable.
    Write(u8, u8),
    /// Reads a variable.
    Read(u8),
    /// Reads a variable and fails if it has this value.
    FailIf(u8, u8),
    /// Reads a variable and leaves out the next operations unless it has this value.
    SkipUnless(u8, u8, usize),
    /// Acquires a lock.
    Lock(u8),
    /// Releases it.
    Unlock(u8),
    /// Sets a flag.
    Set(u8),
    /// Waits for a flag, blocked.
    Wait(u8),
    /// Waits for a flag, blocked, and gives up some time.
    WaitFor(u8),
    /// Waits for a flag by loading it again and again, with a yield after each load if so said.
    Spin { flag: u8, polite: bool },
    /// The same with two loads in turn.
    SpinTwo(u8, u8),
    /// Waits for a flag by loading it, and writes something after each load.
    SpinBusy(u8),
    /// Waits for the first flag, blocked, takes it back, and sets the second, again and again until the third is set: then
    /// sets the second for good.
    Relay(u8, u8, u8),
    /// Takes lock 0, loads a flag and releases the lock, until the flag is set.
    RelayLocked(u8),
    /// Creates a thread.
    Spawn(u32),
    /// Waits for a thread.
    Join(u32),
    /// Ends the process.
    Exit,
}

/// Threads by number; the first `initial` exist from the beginning, the others are spawned.
#[derive(Clone, Debug)]
pub struct Program {
    pub threads: Vec<Vec<Op>>,
    pub initial: usize,
    /// Whether every thread begins with a step of its own that does nothing, as real threads do.
    pub starts: bool,
}

impl Program {
    /// Threads that all exist from the beginning and begin with their first operation.
    pub fn flat(threads: Vec<Vec<Op>>) -> Program {
        Program { initial: threads.len(), threads, starts: false }
    }

    /// Threads of which the first creates the others.
    pub fn spawning(threads: Vec<Vec<Op>>) -> Program {
        Program { initial: 1, threads, starts: true }
    }

    pub fn steps(&self) -> u64 {
        let starts = if self.starts { self.threads.len() } else { 0 };
        (self.threads.iter().map(Vec::len).sum::<usize>() + starts) as u64
    }
}

fn variable(index: u8) -> u64 {
    0x1000 + 8 * u64::from(index)
}

/// How an execution went.
#[derive(Clone, Debug, Default)]
pub struct Execution {
    pub failed: bool,
    pub deadlocked: bool,
    pub cut: bool,
    pub trace: Trace,
    pub lengths: Vec<u64>,
    /// Steps at which a change of priority can make a difference: not the last of a thread, and not those after
    /// which the thread itself is the only enabled one.
    pub counted: u64,
}

impl Execution {
    pub fn order(&self) -> Vec<u32> {
        self.trace.steps.iter().map(|step| step.thread.0).collect()
    }

    pub fn schedule(&self) -> Schedule {
        self.trace.schedule()
    }

    /// Whether the first of these operations (thread and place in its list) came before the second.
    pub fn before(&self, first: (u32, usize), second: (u32, usize)) -> bool {
        let place = |(thread, op): (u32, usize)| {
            let steps = self.trace.steps.iter().enumerate().filter(|(_, step)| step.thread.0 == thread);
            steps.map(|(place, _)| place).nth(op).unwrap_or(usize::MAX)
        };
        place(first) < place(second)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Thread {
    exists: bool,
    started: bool,
    pc: usize,
    /// Where in a spin loop it is.
    phase: u8,
    finished: bool,
}

/// A state of a machine, to be looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    threads: Vec<Thread>,
    variables: [u8; 16],
    locks: [Option<u32>; 8],
    flags: [bool; 8],
    exited: bool,
}

/// A program in the middle of its execution.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    program: &'a Program,
    threads: Vec<Thread>,
    variables: [u8; 16],
    locks: [Option<u32>; 8],
    flags: [bool; 8],
    pub failed: bool,
    exited: bool,
}

impl<'a> Machine<'a> {
    pub fn new(program: &'a Program) -> Machine<'a> {
        let thread = |index: usize| Thread {
            exists: index < program.initial,
            started: !program.starts,
            pc: 0,
            phase: 0,
            finished: false,
        };
        let mut machine = Machine {
            program,
            threads: (0..program.threads.len()).map(thread).collect(),
            variables: [0; 16],
            locks: [None; 8],
            flags: [false; 8],
            failed: false,
            exited: false,
        };
        for index in 0..program.threads.len() {
            machine.settle(index);
        }
        machine
    }

    pub fn exists(&self, thread: usize) -> bool {
        self.threads[thread].exists
    }

    pub fn finished(&self, thread: usize) -> bool {
        self.threads[thread].finished
    }

    /// The operation the thread is at, as (thread, place); `None` at its start and end. That a wait expires is a step of the
    /// thread's timer, whose number is that of the thread beyond all threads.
    pub fn label(&self, thread: usize) -> Option<(u32, usize)> {
        let Thread { exists, started, pc, .. } = self.threads[thread];
        let of = if self.expires(thread) { thread + self.threads.len() } else { thread };
        (exists && started && pc < self.program.threads[thread].len()).then_some((of as u32, pc))
    }

    /// Whether the thread is in a wait that can only expire as things are.
    pub fn expires(&self, thread: usize) -> bool {
        let Thread { exists, started, pc, finished, .. } = self.threads[thread];
        let waits = || match self.program.threads[thread][pc] {
            Op::WaitFor(flag) => !self.flags[flag as usize],
            _ => false,
        };
        exists && started && !finished && waits()
    }

    /// Whether a step counts for PCT after which the machine is as it is: dropping who made it can make a difference.
    fn counts(&self, thread: usize, expired: bool) -> bool {
        let goes_on = !expired && !self.expires(thread);
        let alone = goes_on && self.enabled_threads() == [thread];
        !self.finished(thread) && !alone
    }

    fn settle(&mut self, thread: usize) {
        let done = self.threads[thread].pc >= self.program.threads[thread].len();
        self.threads[thread].finished = self.threads[thread].started && done;
    }

    pub fn enabled(&self, thread: usize) -> bool {
        let Thread { exists, started, pc, phase, finished } = self.threads[thread];
        if self.exited || !exists || finished {
            return false;
        }
        if !started {
            return true;
        }
        match self.program.threads[thread][pc] {
            Op::Lock(lock) => self.locks[lock as usize].is_none(),
            Op::Wait(flag) => self.flags[flag as usize],
            Op::Relay(mine, ..) if phase == 0 => self.flags[mine as usize],
            Op::RelayLocked(_) if phase == 0 => self.locks[0].is_none(),
            Op::Join(other) => self.threads[other as usize].finished,
            _ => true,
        }
    }

    pub fn next_event(&self, thread: usize) -> Event {
        let Thread { started, pc, phase, .. } = self.threads[thread];
        let me = ThreadId(thread as u32);
        if !started {
            return Event::on_thread(EventKind::ThreadStart, me);
        }
        let flag = |index: u8| Event::access(EventKind::AtomicLoad, 0x3000 + 8 * u64::from(index), 4);
        match self.program.threads[thread][pc] {
            Op::Local => Event::local(EventKind::UserWrite),
            Op::Write(index, _) => Event::access(EventKind::AtomicStore, variable(index), 4),
            Op::Read(index) | Op::FailIf(index, _) | Op::SkipUnless(index, ..) => {
                Event::access(EventKind::AtomicLoad, variable(index), 4)
            }
            Op::Lock(lock) => Event::new(EventKind::MutexLock, ObjectId(0x2000 + 8 * u64::from(lock))),
            Op::Unlock(lock) => Event::new(EventKind::MutexUnlock, ObjectId(0x2000 + 8 * u64::from(lock))),
            Op::Set(index) => Event::access(EventKind::AtomicStore, 0x3000 + 8 * u64::from(index), 4),
            Op::WaitFor(_) if self.expires(thread) => Event::new(EventKind::Timeout, ObjectId(0x3000)),
            Op::Wait(index) | Op::WaitFor(index) => flag(index),
            Op::Spin { polite: true, .. } if phase == 1 => Event::local(EventKind::Yield),
            Op::Spin { flag: index, .. } => flag(index),
            Op::SpinTwo(first, second) => flag(if phase == 0 { first } else { second }),
            Op::SpinBusy(_) if phase == 1 => Event::access(EventKind::AtomicStore, variable(15), 4),
            Op::SpinBusy(index) => flag(index),
            Op::Relay(mine, theirs, end) => flag([mine, end, theirs][phase as usize]),
            Op::RelayLocked(end) => match phase {
                0 => Event::new(EventKind::MutexLock, ObjectId(0x2000)),
                1 => flag(end),
                _ => Event::new(EventKind::MutexUnlock, ObjectId(0x2000)),
            },
            Op::Spawn(other) => Event::on_thread(EventKind::ThreadSpawn, ThreadId(other)),
            Op::Join(other) => Event::on_thread(EventKind::ThreadJoin, ThreadId(other)),
            Op::Exit => Event::local(EventKind::ProcessExit),
        }
    }

    /// Carries out the next operation of the thread; the thread it created, if it did.
    pub fn advance(&mut self, thread: usize) -> Option<usize> {
        let mut spawned = None;
        if !self.threads[thread].started {
            self.threads[thread].started = true;
            self.settle(thread);
            return None;
        }
        let pc = self.threads[thread].pc;
        let mut next = pc + 1;
        let mut phase = 0;
        match self.program.threads[thread][pc] {
            Op::Local | Op::Read(_) | Op::Wait(_) | Op::WaitFor(_) | Op::Join(_) => {}
            Op::Write(index, value) => self.variables[index as usize] = value,
            Op::FailIf(index, value) => self.failed |= self.variables[index as usize] == value,
            Op::SkipUnless(index, value, count) => {
                if self.variables[index as usize] != value {
                    next += count;
                }
            }
            Op::Lock(lock) => self.locks[lock as usize] = Some(thread as u32),
            Op::Unlock(lock) => self.locks[lock as usize] = None,
            Op::Set(flag) => self.flags[flag as usize] = true,
            Op::Spin { flag, polite } => {
                if self.threads[thread].phase == 1 || !self.flags[flag as usize] {
                    next = pc;
                    phase = u8::from(polite && self.threads[thread].phase == 0);
                }
            }
            Op::SpinTwo(first, second) => {
                let flag = if self.threads[thread].phase == 0 { first } else { second };
                if !self.flags[flag as usize] {
                    next = pc;
                    phase = 1 - self.threads[thread].phase;
                }
            }
            Op::SpinBusy(flag) => {
                if self.threads[thread].phase == 1 || !self.flags[flag as usize] {
                    next = pc;
                    phase = 1 - self.threads[thread].phase;
                }
            }
            Op::Relay(mine, theirs, end) => {
                phase = (self.threads[thread].phase + 1) % 3;
                match phase {
                    1 => self.flags[mine as usize] = false,
                    2 if self.flags[end as usize] => {
                        self.flags[theirs as usize] = true;
                        phase = 0;
                    }
                    2 => {}
                    _ => self.flags[theirs as usize] = true,
                }
                if phase != 0 || !self.flags[end as usize] {
                    next = pc;
                }
            }
            Op::RelayLocked(end) => {
                phase = (self.threads[thread].phase + 1) % 3;
                match phase {
                    1 => self.locks[0] = Some(thread as u32),
                    2 => {}
                    _ => self.locks[0] = None,
                }
                if phase != 0 || !self.flags[end as usize] {
                    next = pc;
                }
            }
            Op::Spawn(other) => {
                self.threads[other as usize].exists = true;
                spawned = Some(other as usize);
            }
            Op::Exit => self.exited = true,
        }
        self.threads[thread].pc = next;
        self.threads[thread].phase = phase;
        self.settle(thread);
        spawned
    }

    pub fn enabled_threads(&self) -> Vec<usize> {
        (0..self.threads.len()).filter(|&thread| self.enabled(thread)).collect()
    }

    /// What the rest of the execution depends on.
    pub fn state(&self) -> State {
        State {
            threads: self.threads.clone(),
            variables: self.variables,
            locks: self.locks,
            flags: self.flags,
            exited: self.exited,
        }
    }

    fn stuck(&self) -> bool {
        !self.exited && self.threads.iter().any(|thread| thread.exists && !thread.finished)
    }
}

/// The most steps of any schedule that count for PCT.
pub fn most_counted(program: &Program) -> u64 {
    let mut known = std::collections::HashMap::new();
    counted_from(&Machine::new(program), &mut known)
}

fn counted_from(machine: &Machine<'_>, known: &mut std::collections::HashMap<State, u64>) -> u64 {
    let key = machine.state();
    if let Some(&most) = known.get(&key) {
        return most;
    }
    let mut most = 0;
    for thread in machine.enabled_threads() {
        let mut next = machine.clone();
        next.advance(thread);
        let counts = next.counts(thread, machine.expires(thread));
        most = most.max(u64::from(counts) + counted_from(&next, known));
    }
    known.insert(key, most);
    most
}

/// More steps than any program here needs unless it spins for ever.
pub const STEP_LIMIT: usize = 100_000;

/// One execution under a strategy that has begun its run.
pub fn execute(program: &Program, strategy: &mut impl Strategy) -> Execution {
    let mut machine = Machine::new(program);
    let mut execution = Execution { lengths: vec![0; program.initial], ..Execution::default() };
    let mut was_enabled = vec![false; program.threads.len()];
    let mut could_expire = vec![false; program.threads.len()];
    for (thread, was) in was_enabled.iter_mut().enumerate().take(program.initial) {
        let id = ThreadId(thread as u32);
        strategy.spawned(id, None);
        *was = machine.enabled(thread);
        could_expire[thread] = machine.expires(thread);
        if *was {
            strategy.ready(id, machine.next_event(thread));
        } else if machine.finished(thread) {
            strategy.finished(id);
        }
    }
    let mut next = strategy.pick();
    while let Some(current) = next {
        if execution.trace.steps.len() >= STEP_LIMIT {
            execution.cut = true;
            break;
        }
        let thread = current.index();
        assert!(machine.enabled(thread), "{current} was picked but is not enabled");
        execution.trace.push(current, machine.next_event(thread));
        execution.lengths[thread] += 1;
        let expired = machine.expires(thread);
        if let Some(child) = machine.advance(thread) {
            strategy.spawned(ThreadId(child as u32), Some(current));
            execution.lengths.resize(execution.lengths.len().max(child + 1), 0);
            if machine.finished(child) {
                strategy.finished(ThreadId(child as u32));
            }
        }
        // Who could expire and does not any more was woken: it is told what it does now.
        for other in (0..program.threads.len()).filter(|&other| other != thread) {
            let enabled = machine.enabled(other);
            let woken = std::mem::replace(&mut could_expire[other], machine.expires(other))
                && !machine.expires(other);
            if enabled && (!was_enabled[other] || woken) {
                strategy.ready(ThreadId(other as u32), machine.next_event(other));
            } else if !enabled && was_enabled[other] {
                strategy.blocked(ThreadId(other as u32));
            }
            was_enabled[other] = enabled;
        }
        was_enabled[thread] = machine.enabled(thread);
        could_expire[thread] = machine.expires(thread);
        execution.counted += u64::from(machine.counts(thread, expired));
        next = if could_expire[thread] {
            strategy.ready(current, machine.next_event(thread));
            strategy.pick()
        } else if was_enabled[thread] {
            Some(strategy.step(current, machine.next_event(thread)))
        } else {
            if machine.finished(thread) {
                strategy.finished(current);
            } else {
                strategy.blocked(current);
            }
            strategy.pick()
        };
    }
    execution.failed = machine.failed;
    execution.deadlocked = !execution.cut && machine.stuck();
    execution
}

/// One run from plan to end.
pub fn run_once(
    program: &Program,
    strategy: &mut impl Strategy,
    run: Run,
) -> Option<(RunParameters, Execution)> {
    let parameters = strategy.plan(run)?;
    strategy.begin(run, &parameters);
    let execution = execute(program, strategy);
    finish(strategy, &execution);
    Some((parameters, execution))
}

/// Tells the strategy how it went.
pub fn finish(strategy: &mut impl Strategy, execution: &Execution) {
    let outcome = match execution {
        Execution { cut: true, .. } => Outcome::Cut,
        Execution { failed: true, .. } | Execution { deadlocked: true, .. } => Outcome::Failed,
        _ => Outcome::Passed,
    };
    strategy.end(&RunReport {
        outcome,
        steps: execution.trace.steps.len() as u64,
        lengths: &execution.lengths,
        news: outcome == Outcome::Failed,
    });
}
