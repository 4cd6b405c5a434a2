//! Where events are in the code, and what they and their objects are called: from processes of their own, each held in front
//! of the event.

use std::collections::BTreeMap;
use std::path::Path;

use waylay_control_protocol::Switching;
use waylay_evidence::{Frame, MemoryMap, Origin, Symbolizer, ThreadStack, origin};
use waylay_report::cause::EventPlace;
use waylay_report::timeline::names::Names;
use waylay_schedule::ordered::{Base, EventName, Order};
use waylay_schedule::{EventKind, ObjectId};

use super::trace::{Trace, acts_before};
use crate::confirm::stacks_of;
use crate::held::{HoldAt, hold};
use crate::race;
use crate::recording::StrictRecord;
use crate::server::Guide;
use crate::sys::HOLD_THEMSELVES;
use crate::variable::Variables;

/// Frames of a stack that are kept.
const FRAMES: usize = 6;

/// Occurrences of an event before it that are looked at to count those at its place: each costs a process.
const MOST_COUNTED: u32 = 12;

/// Stacks by the number of the thread in the run.
type Stacks = BTreeMap<u32, ThreadStack>;

/// A run that can be made again, to be looked at.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What happened.
    pub(crate) trace: Trace,
    /// What was held back in it.
    pub(crate) orders: Vec<Order>,
    /// Who ran otherwise.
    pub(crate) base: Base,
}

/// Looks at events of runs, of which the first is the failing one if there is one.
pub(crate) struct Places<'a> {
    record: &'a StrictRecord,
    library: &'a Path,
    names: &'a mut Symbolizer,
    runs: &'a [Seen],
    /// What was looked at, by run and step.
    seen: BTreeMap<(usize, u64), Stacks>,
    variables: Option<Variables>,
    objects: Names,
}

impl<'a> Places<'a> {
    /// `runs`: at least one.
    pub(crate) fn new(
        record: &'a StrictRecord,
        library: &'a Path,
        names: &'a mut Symbolizer,
        runs: &'a [Seen],
    ) -> Places<'a> {
        let objects = Names::default();
        Places { record, library, names, runs, seen: BTreeMap::new(), variables: None, objects }
    }

    /// One event.
    pub(crate) fn event(&mut self, name: &EventName) -> EventPlace {
        let at = self.runs.iter().enumerate().find_map(|(run, seen)| Some((run, seen.trace.step(name)?)));
        // What never happened is where its thread stands when all is over.
        let (run, step) = at.unwrap_or((0, self.runs[0].trace.threads.len() as u64));
        let locks = self.locks(run, step, name);
        // Who wakes others stands there when that is done.
        let stack = self.stack(run, step + u64::from(acts_before(name.kind)), name);
        let frames = stack.as_ref().map(|stack| own(&stack.frames)).unwrap_or_default();
        let first = frames.first();
        let file = first.and_then(|frame| frame.file.clone()).unwrap_or_default();
        let line = first.and_then(|frame| frame.line).unwrap_or(0);
        EventPlace {
            function: first.and_then(|frame| frame.function.clone()).unwrap_or_default(),
            source: source(&file, line),
            file,
            line,
            thread: name.thread.0,
            access: access(name.kind, stack.as_ref().map_or(&[], |stack| &stack.frames)).to_owned(),
            occurrence: name.occurrence,
            step: at.filter(|(run, _)| *run == 0).map(|(_, step)| step),
            stack: frames.iter().take(FRAMES).map(|frame| race::line(frame)).collect(),
            locks,
            offset: first.filter(|_| line == 0).and_then(|frame| frame.function_offset),
            here: 0,
            in_function: 0,
        }
    }

    /// One event, and the how manieth it is at its place and in its function: what is left of its number when other code
    /// comes or goes.
    pub(crate) fn counted(&mut self, name: &EventName) -> EventPlace {
        let mut place = self.event(name);
        if name.occurrence > MOST_COUNTED {
            return place;
        }
        (place.here, place.in_function) = (1, 1);
        for occurrence in 1..name.occurrence {
            let before = self.event(&EventName { occurrence, ..*name });
            let same = before.function == place.function;
            place.in_function += u32::from(same);
            let here = (&before.file, before.line, before.offset) == (&place.file, place.line, place.offset);
            place.here += u32::from(same && here);
        }
        place
    }

    /// The variable at an address.
    pub(crate) fn variable(&mut self, object: ObjectId) -> Option<String> {
        self.stacks(0, self.runs[0].trace.threads.len() as u64);
        self.variables.as_mut().and_then(|variables| variables.at(object.0))
    }

    /// Processes that were looked at.
    pub(crate) fn looks(&self) -> usize {
        self.seen.len()
    }

    /// The stack of a thread in front of an event. It stands there from its step before on, and was the last to run then: of
    /// a thread that waits in the middle of moved code there is no stack later.
    fn stack(&mut self, run: usize, step: u64, name: &EventName) -> Option<ThreadStack> {
        let threads = &self.runs[run].trace.threads;
        let before = &threads[..(step as usize).min(threads.len())];
        let before = before.iter().rposition(|thread| *thread == name.thread);
        let places = before.map(|before| before as u64 + 1).into_iter().chain([step]);
        let mut foreign = None;
        // The first half of an instruction that reads and writes has one, where the second has none.
        for place in places.chain(before.map(|before| before as u64)) {
            let stack = self.stacks(run, place).get(&name.thread.0).cloned();
            match stack.filter(|stack| !own(&stack.frames).is_empty()) {
                Some(stack) if stack.frames.iter().any(is_own) => return Some(stack),
                // Code that was put into that of a runtime has its name, where no lines are known.
                Some(stack) => foreign = foreign.or(Some(stack)),
                None => {}
            }
        }
        foreign
    }

    /// What both events of an order touch.
    pub(crate) fn object(&mut self, order: &Order) -> String {
        // What memory holds is known once a process was looked at.
        self.stacks(0, self.runs[0].trace.threads.len() as u64);
        let lock = is_lock(order.first.kind) || is_lock(order.then.kind);
        // The narrower of the two says more: a block that is freed begins before what is read of it.
        let object = order.first.object.max(order.then.object);
        self.name(object, lock)
    }

    fn name(&mut self, object: ObjectId, lock: bool) -> String {
        let variables = &mut self.variables;
        let mut variable = |address| variables.as_mut().and_then(|variables| variables.at(address));
        let known = variable(object.0).is_some();
        let name = match lock {
            true => self.objects.lock(object.0, &mut variable),
            false => self.objects.other(object.0, &mut variable),
        };
        match (known, lock) {
            (true, _) => format!("`{name}`"),
            (false, true) => format!("lock {name}"),
            (false, false) => format!("memory {name}"),
        }
    }

    /// The locks that a thread holds in front of an event.
    fn locks(&mut self, run: usize, step: u64, name: &EventName) -> Vec<String> {
        use EventKind::*;
        let mut held: Vec<ObjectId> = Vec::new();
        let events = self.runs[run].trace.events.iter().take_while(|event| event.at < step);
        for taken in events.filter(|taken| taken.name.thread == name.thread) {
            match taken.event.kind {
                MutexLock | RwReadLock | RwWriteLock => held.push(taken.event.object),
                MutexUnlock | RwReadUnlock | RwWriteUnlock => {
                    held.iter().rposition(|lock| *lock == taken.event.object).map(|place| held.remove(place));
                }
                _ => {}
            }
        }
        held.into_iter().map(|lock| self.name(lock, true)).collect()
    }

    /// The stacks of all threads in front of a step.
    fn stacks(&mut self, run: usize, step: u64) -> &Stacks {
        if !self.seen.contains_key(&(run, step)) {
            let stacks = self.look(run, step).unwrap_or_default();
            self.seen.insert((run, step), stacks);
        }
        &self.seen[&(run, step)]
    }

    fn look(&mut self, run: usize, step: u64) -> Option<Stacks> {
        let conditions = &self.record.conditions;
        let mut region = conditions.region().ok()?;
        let mut settings = conditions.settings_in(&mut region, self.record.seed, self.record.index);
        settings.switching = Switching::Baton as u32;
        settings.max_steps = step;
        settings.hold = u32::from(HOLD_THEMSELVES);
        let Seen { orders, base, .. } = &self.runs[run];
        Guide::Orders(orders, base).prepare(&mut region, settings).ok()?;
        let held =
            hold(&self.record.program, self.library, &region, conditions.patience(), HoldAt::End).ok()?;
        let stacks = stacks_of(&held, self.names).ok()?;
        if self.variables.is_none() {
            self.variables = MemoryMap::of(held.process()).ok().map(|map| Variables::of(&map));
        }
        let number = |stack: &ThreadStack| held.threads.iter().position(|thread| *thread == stack.id);
        Some(stacks.into_iter().filter_map(|stack| Some((number(&stack)? as u32, stack))).collect())
    }
}

/// The program's own functions; if there are none, all but ours.
fn own(frames: &[Frame]) -> Vec<&Frame> {
    let own: Vec<&Frame> = frames.iter().filter(|frame| is_own(frame)).collect();
    if own.is_empty() { frames.iter().filter(|frame| origin(frame) != Origin::Waylay).collect() } else { own }
}

/// Whether a frame is code that its reader wrote: what comes with a compiler is put into programs, too.
fn is_own(frame: &Frame) -> bool {
    let file = frame.file.as_deref().unwrap_or_default();
    let installed = ["/usr/include/", "/usr/lib/", "/rustc/", "/rustlib/", "\\include\\c++\\"];
    origin(frame) == Origin::Own && !installed.iter().any(|folder| file.contains(folder))
}

/// A line of a file with the one before and the one behind it.
fn source(file: &str, line: u32) -> Vec<String> {
    let text = std::fs::read_to_string(file).ok().filter(|_| line > 0);
    let Some(text) = text else { return Vec::new() };
    let first = line.saturating_sub(1).max(1);
    let lines = text.lines().enumerate().skip(first as usize - 1).take((line - first) as usize + 2);
    lines
        .map(|(number, text)| {
            let number = number as u32 + 1;
            format!("{}{number:>5} │ {text}", if number == line { '>' } else { ' ' })
        })
        .collect()
}

fn is_lock(kind: EventKind) -> bool {
    use EventKind::*;
    matches!(kind, MutexLock | MutexTryLock | RwReadLock | RwTryReadLock | RwWriteLock | RwTryWriteLock)
}

/// What an event does, in a word. A lock that is made of atomics is known by the function that takes it.
fn access(kind: EventKind, frames: &[Frame]) -> &'static str {
    use EventKind::*;
    match kind {
        AtomicRmw | AtomicStore | AtomicLoad => {
            let within = frames.iter().take_while(|frame| origin(frame) != Origin::Own);
            let mut functions = within.filter_map(|frame| frame.function.as_deref());
            match (functions.any(|function| function.contains("utex") && function.contains("lock")), kind) {
                (true, AtomicRmw) => "lock",
                (_, AtomicRmw) => "update",
                (_, AtomicStore) => "write",
                _ => "read",
            }
        }
        PlainRead | UserRead => "read",
        PlainWrite | UserWrite => "write",
        MutexLock | RwWriteLock => "lock",
        MutexTryLock | RwTryReadLock | RwTryWriteLock => "try to lock",
        RwReadLock => "lock for reading",
        CondWait | SemWait | FutexWait | Park | BarrierWait => "wait",
        CondSignal | CondBroadcast | FutexWake | Unpark => "signal",
        SemPost => "post",
        Free => "free",
        Timeout => "give up waiting",
        other => other.name(),
    }
}
