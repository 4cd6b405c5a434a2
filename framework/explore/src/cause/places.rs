//! Where events are in the code, and what they and their objects are called: from processes of their own, each held in front
//! of the event.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use waylay_control_protocol::{RegionMap, Switching};
use waylay_driver::failure::Kind;
use waylay_evidence::{Frame, MemoryMap, Origin, Symbolizer, ThreadStack, origin, read_memory};
use waylay_report::cause::{Allocated, EventPlace};
use waylay_report::timeline::names::Names;
use waylay_schedule::ordered::{Base, EventName, Order};
use waylay_schedule::{EventKind, ObjectId, ThreadId};

use super::trace::{Step, Trace, acts_before};
use crate::confirm::stacks_of;
use crate::held::{Held, HoldAt, hold};
use crate::race;
use crate::recording::StrictRecord;
use crate::server::Guide;
use crate::sys::HOLD_THEMSELVES;
use crate::variable::Variables;

/// Frames of a stack that are kept.
const FRAMES: usize = 6;

/// Occurrences of an event before it that are looked at to count those at its place: each costs a process.
const MOST_COUNTED: usize = 12;

/// Stacks by the number of the thread in the run.
type Stacks = BTreeMap<u32, ThreadStack>;

/// Lines of the source that are shown before and behind one.
const CONTEXT: u32 = 2;

/// Bytes of memory whose contents are told.
const MOST_BYTES: u32 = 8;

/// A process that was held in front of a step.
#[derive(Debug, Default)]
struct Look {
    stacks: Stacks,
    /// What the memory that orders are about holds, by address: a number, or that it is none.
    values: BTreeMap<ObjectId, String>,
}

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
    seen: BTreeMap<(usize, u64), Look>,
    /// Memory whose contents are of interest, and how long it is.
    watched: BTreeMap<ObjectId, u32>,
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
        let (seen, watched) = (BTreeMap::new(), BTreeMap::new());
        Places { record, library, names, runs, seen, watched, variables: None, objects }
    }

    /// Tells of the events of these orders what they read and write, too.
    pub(crate) fn watch(&mut self, orders: &[Order]) {
        let events = orders.iter().flat_map(|order| [order.first, order.then]);
        for name in events.filter(|name| is_access(name.kind)) {
            let extent =
                self.runs.iter().find_map(|seen| seen.trace.event(&name)).map_or(0, |event| event.extent);
            if extent <= MOST_BYTES && extent.is_power_of_two() {
                self.watched.insert(name.object, extent);
            }
        }
    }

    /// One event.
    pub(crate) fn event(&mut self, name: &EventName) -> EventPlace {
        let at = self.runs.iter().enumerate().find_map(|(run, seen)| Some((run, seen.trace.step(name)?)));
        // What never happened is where its thread stands when all is over.
        let (run, step) = at.unwrap_or((0, self.runs[0].trace.threads.len() as u64));
        let locks = self.locks(run, step, name);
        let step_of_failing = at.filter(|(run, _)| *run == 0).map(|(_, step)| step);
        let (before, after) = step_of_failing.map_or((None, None), |step| self.contents(step, name));
        // Who wakes others stands there when that is done.
        let stack = self.stack(run, step + u64::from(acts_before(name.kind)), name);
        let frames = stack.as_ref().map(|stack| own(&stack.frames)).unwrap_or_default();
        let access = access(name.kind, stack.as_ref().map_or(&[], |stack| &stack.frames));
        let is_lock = access.starts_with("lock");
        // A mutex of atomics is not got by who finds it taken, and in a deadlock nobody comes to it later.
        let taken = self.record.kind == Kind::Deadlock && before.as_ref().is_some_and(|before| before != "0");
        let wanted = is_lock && (step_of_failing.is_none() || taken && access == "lock");
        let value = if is_lock { None } else { value(name.kind, before, after) };
        let first = frames.first();
        let file = first.and_then(|frame| frame.file.clone()).unwrap_or_default();
        let line = first.and_then(|frame| frame.line).unwrap_or(0);
        EventPlace {
            function: first.and_then(|frame| frame.function.clone()).unwrap_or_default(),
            source: source(&file, line),
            file,
            line,
            thread: name.thread.0,
            access: access.to_owned(),
            occurrence: name.occurrence,
            step: step_of_failing,
            stack: frames.iter().take(FRAMES).map(|frame| race::line(frame)).collect(),
            locks,
            value,
            wanted,
            offset: first.filter(|_| line == 0).and_then(|frame| frame.function_offset),
            here: 0,
            in_function: 0,
        }
    }

    /// One event, and the how manieth it is at its place and in its function: what is left of its number when other code
    /// comes or goes.
    pub(crate) fn counted(&mut self, name: &EventName) -> EventPlace {
        let mut place = self.event(name);
        let times = self.runs.iter().map(|seen| seen.trace.times(name)).find(|times| !times.is_empty());
        let Some(times) = times else { return place };
        place.occurrence = times.len() as u32;
        // Looks of a loop are one event, which is looked at once.
        let mut looks: BTreeMap<EventName, u32> = BTreeMap::new();
        times.into_iter().for_each(|name| *looks.entry(name).or_default() += 1);
        if looks.len() > MOST_COUNTED {
            return place;
        }
        for (other, times) in looks {
            let like = if other == *name { place.clone() } else { self.event(&other) };
            let same = like.function == place.function;
            place.in_function += if same { times } else { 0 };
            let here = (&like.file, like.line, like.offset) == (&place.file, place.line, place.offset);
            place.here += if same && here { times } else { 0 };
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

    /// What memory holds before an access of the failing run and behind it, as far as the access reads and writes it.
    fn contents(&mut self, step: u64, name: &EventName) -> (Option<String>, Option<String>) {
        use EventKind::*;
        if !self.watched.contains_key(&name.object) || !is_access(name.kind) {
            return (None, None);
        }
        let mut at = |step| self.held(0, step).values.get(&name.object).cloned();
        let writes = !matches!(name.kind, AtomicLoad | PlainRead);
        let reads = !matches!(name.kind, AtomicStore | PlainWrite);
        (reads.then(|| at(step)).flatten(), writes.then(|| at(step + 1)).flatten())
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
    pub(crate) fn object(&mut self, order: &Order, is_lock_of_atomics: bool) -> String {
        // What memory holds is known once a process was looked at.
        self.stacks(0, self.runs[0].trace.threads.len() as u64);
        let lock = is_lock_of_atomics || is_lock(order.first.kind) || is_lock(order.then.kind);
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

    /// Who allocated what an order frees, and where: its stack is that of the step at which it did.
    pub(crate) fn allocated(&mut self, order: &Order) -> Option<Allocated> {
        let free = [order.first, order.then].into_iter().find(|name| name.kind == EventKind::Free)?;
        let step = self.runs[0].trace.step(&free)?;
        let (region, _held) = self.hold(0, step, free.object.0)?;
        let (thread, step) = region.account().allocated()?;
        // Where the call was no step nobody can be held in front of it.
        let step = step.checked_sub(1)?;
        let is_it = |event: &&Step| event.at == step && event.event.kind == EventKind::Allocate;
        let name = self.runs[0].trace.events.iter().find(is_it)?.name;
        let stack = self.stack(0, step, &name).filter(|_| name.thread == ThreadId(thread))?;
        let frames = own(&stack.frames);
        let place = EventPlace {
            function: frames.first()?.function.clone().unwrap_or_default(),
            file: frames.first()?.file.clone().unwrap_or_default(),
            line: frames.first()?.line.unwrap_or(0),
            offset: frames.first()?.function_offset,
            ..EventPlace::default()
        };
        Some(Allocated { thread, place: place.place() })
    }

    /// The locks that a thread holds in front of an event.
    fn locks(&mut self, run: usize, step: u64, name: &EventName) -> Vec<String> {
        use EventKind::*;
        let mut held: Vec<ObjectId> = Vec::new();
        let trace = &self.runs[run].trace;
        // Who wakes others does so together with the step before, which may have been to give a lock back.
        let end = trace.place(name).unwrap_or_else(|| trace.events.partition_point(|event| event.at < step));
        for taken in trace.events[..end].iter().filter(|taken| taken.name.thread == name.thread) {
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
        &self.held(run, step).stacks
    }

    fn held(&mut self, run: usize, step: u64) -> &Look {
        if !self.seen.contains_key(&(run, step)) {
            let look = self.look(run, step).unwrap_or_default();
            self.seen.insert((run, step), look);
        }
        &self.seen[&(run, step)]
    }

    /// A process that is held in front of a step, and what it told; of the block with the address that is asked for, also who
    /// allocated it.
    fn hold(&self, run: usize, step: u64, asked: u64) -> Option<(RegionMap, Held)> {
        let conditions = &self.record.conditions;
        let mut region = conditions.region().ok()?;
        let mut settings = conditions.settings_in(&mut region, self.record.seed, self.record.index);
        settings.switching = Switching::Baton as u32;
        settings.max_steps = step;
        settings.hold = u32::from(HOLD_THEMSELVES);
        settings.asked = asked;
        let Seen { orders, base, .. } = &self.runs[run];
        Guide::Orders(orders, base).prepare(&mut region, settings).ok()?;
        let held =
            hold(&self.record.program, self.library, &region, conditions.patience(), HoldAt::End).ok()?;
        Some((region, held))
    }

    fn look(&mut self, run: usize, step: u64) -> Option<Look> {
        let (region, held) = self.hold(run, step, 0)?;
        // A process that ended before tells nothing of what memory holds there.
        let reached = region.report().steps.load(Ordering::Relaxed) == step;
        let stacks = stacks_of(&held, self.names).ok()?;
        let map = MemoryMap::of(held.process()).ok();
        if let (None, Some(map)) = (&self.variables, &map) {
            self.variables = Some(Variables::of(map));
        }
        let contents = |(&object, &bytes): (&ObjectId, &u32)| {
            let bytes = read_memory(held.process(), object.0, bytes as usize).ok()?;
            Some((object, number(&bytes, map.as_ref()?)))
        };
        let values = self.watched.iter().filter(|_| reached).filter_map(contents).collect();
        let number = |stack: &ThreadStack| held.threads.iter().position(|thread| *thread == stack.id);
        let stacks = stacks.into_iter().filter_map(|stack| Some((number(&stack)? as u32, stack))).collect();
        Some(Look { stacks, values })
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

/// What an access reads or writes, in words.
fn value(kind: EventKind, before: Option<String>, after: Option<String>) -> Option<String> {
    match (kind, before, after) {
        (EventKind::AtomicRmw, Some(before), Some(after)) if before == after => {
            Some(format!("which stays {after}"))
        }
        (EventKind::AtomicRmw, Some(before), Some(after)) => Some(format!("from {before} to {after}")),
        (EventKind::AtomicRmw, ..) => None,
        (_, before, after) => before.or(after),
    }
}

/// Whether an event reads or writes memory, and nothing else.
fn is_access(kind: EventKind) -> bool {
    use EventKind::*;
    matches!(kind, AtomicLoad | AtomicStore | AtomicRmw | PlainRead | PlainWrite)
}

/// What memory holds, in words: a number, which is negative if that is shorter by far; what leads somewhere is no number.
fn number(bytes: &[u8], map: &MemoryMap) -> String {
    let bits = bytes.iter().rev().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    // What control fills freed blocks with.
    if bytes.len() > 1 && bytes.iter().all(|byte| *byte == 0xdb) {
        return "memory that was freed".to_owned();
    }
    if bytes.len() == 8 && map.find(bits).is_some() {
        return "a pointer".to_owned();
    }
    let unused = 64 - 8 * bytes.len() as u32;
    let signed = ((bits << unused) as i64) >> unused;
    if (-9_999..0).contains(&signed) { signed.to_string() } else { bits.to_string() }
}

/// A line of a file with two before and two behind it.
fn source(file: &str, line: u32) -> Vec<String> {
    let text = std::fs::read_to_string(file).ok().filter(|_| line > 0);
    let Some(text) = text else { return Vec::new() };
    let first = line.saturating_sub(CONTEXT).max(1);
    let lines = text.lines().enumerate().skip(first as usize - 1).take((line - first + CONTEXT + 1) as usize);
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
            let functions = within.filter_map(|frame| frame.function.as_deref());
            let lock = functions.filter(|function| function.contains("utex") && function.contains("lock"));
            let gives_back = lock.clone().any(|function| function.contains("unlock"));
            let reads = lock.clone().any(|function| function.contains("::read"));
            match (lock.count() > 0, kind) {
                (true, AtomicRmw) if gives_back => "unlock",
                (true, AtomicRmw) if reads => "lock for reading",
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
