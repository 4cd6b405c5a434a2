//! A data race as the library told of it, and as people read it.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use waylay_control_protocol::{AccessReport, Pair, RaceReport, Site};
use waylay_evidence::{Frame, Origin, Registers, ThreadStack, base_name, origin};

/// Frames of a stack that people are shown.
const SHOWN: usize = 6;

/// One of the two accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The instruction, or where the call that reports it returns to.
    pub code: u64,
    /// The same in every process.
    pub site: Site,
    /// Who.
    pub thread: u64,
    /// How many bytes.
    pub bytes: u64,
    /// It writes.
    pub writes: bool,
    /// It cannot be an atomic operation.
    pub plain: bool,
    /// It is one instruction that reads and then writes.
    pub updates: bool,
    /// It gives the memory back.
    pub frees: bool,
    /// It is certainly an atomic operation.
    pub atomic: bool,
    /// Its number in the run.
    pub serial: u64,
    /// Locks that the thread held.
    pub locks: Vec<u64>,
}

/// A heap block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it begins.
    pub start: u64,
    /// Its length.
    pub bytes: u64,
    /// Who allocated it.
    pub thread: u64,
    /// Where that call returned to; 0: not known.
    pub code: u64,
}

/// Two accesses that nothing orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// A byte that both touch.
    pub address: u64,
    /// The access that came first.
    pub first: Access,
    /// The one that followed.
    pub second: Access,
    /// The heap block around the address.
    pub block: Option<Block>,
}

fn number(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

impl Access {
    fn of(report: &AccessReport) -> Access {
        Access {
            code: number(&report.code),
            site: Site(number(&report.site)),
            thread: number(&report.thread),
            bytes: number(&report.bytes),
            writes: report.is(AccessReport::WRITES),
            plain: report.is(AccessReport::PLAIN),
            updates: report.is(AccessReport::UPDATES),
            frees: report.is(AccessReport::FREES),
            atomic: report.is(AccessReport::ATOMIC),
            serial: number(&report.serial),
            locks: report.locks.iter().map(number).take_while(|&lock| lock != 0).collect(),
        }
    }

    /// What it does.
    pub fn verb(&self) -> &'static str {
        match (self.frees, self.updates, self.writes) {
            (true, _, _) => "free",
            (_, true, _) if self.atomic => "atomic update",
            (_, _, true) if self.atomic => "atomic write",
            _ if self.atomic => "atomic read",
            (_, true, _) => "update",
            (_, _, true) => "write",
            _ => "read",
        }
    }
}

impl Race {
    /// The race that ended a run, if one did.
    pub fn of(report: &RaceReport) -> Option<Race> {
        report.pair()?;
        let block = Block {
            start: number(&report.block),
            bytes: number(&report.block_bytes),
            thread: number(&report.block_thread),
            code: number(&report.block_code),
        };
        Some(Race {
            address: number(&report.address),
            first: Access::of(&report.first),
            second: Access::of(&report.second),
            block: (block.start != 0).then_some(block),
        })
    }

    /// The two places.
    pub fn pair(&self) -> Pair {
        Pair::new(self.first.site, self.second.site)
    }
}

/// Where the thread was that ended a run, if the code that was there is patched: the stub it went through has no unwind
/// tables.
pub fn registers(report: &RaceReport) -> Option<Registers> {
    /// RIP, RSP, RBP, RBX and R12 to R15, as DWARF numbers them.
    const NUMBERS: [u16; 8] = [16, 7, 6, 3, 12, 13, 14, 15];
    let mut registers = Registers::unknown();
    // One that holds 0 may as well be one that is not known.
    for (name, word) in NUMBERS.into_iter().zip(&report.registers).filter(|(_, word)| number(word) != 0) {
        registers.set(name, number(word));
    }
    (number(&report.registers[0]) != 0).then_some(registers)
}

/// One access, for people and machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccessText {
    /// Number of the thread, 0 being the main one.
    pub thread: u64,
    /// `read`, `write`, `update` or `free`; `atomic update` and so on where it is certain.
    pub access: &'static str,
    /// Of how many bytes.
    pub bytes: u64,
    /// The locks that the thread held.
    pub locks: Vec<String>,
    /// Functions and lines, from the inside out.
    pub stack: Vec<String>,
}

/// A race, for people and machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RaceText {
    /// What the memory is.
    pub memory: String,
    /// The access at which the run ended.
    pub second: AccessText,
    /// The one before, which nothing orders with it.
    pub first: AccessText,
}

impl RaceText {
    /// Puts it in words. `stacks`: of the first access and of the second; `name` says what lies at an address.
    pub fn new(
        race: &Race,
        stacks: [&[Frame]; 2],
        memory: String,
        mut name: impl FnMut(u64) -> String,
    ) -> RaceText {
        let mut text = |access: &Access, frames: &[Frame]| AccessText {
            thread: access.thread,
            access: access.verb(),
            bytes: access.bytes,
            locks: access.locks.iter().map(|&lock| name(lock)).collect(),
            stack: own(frames).into_iter().map(line).collect(),
        };
        let (first, second) = (text(&race.first, stacks[0]), text(&race.second, stacks[1]));
        RaceText { memory, first, second }
    }

    /// One line.
    pub fn what(&self) -> String {
        let place = |access: &AccessText| access.stack.first().cloned().unwrap_or_else(|| "??".to_owned());
        let (freed, used) = match (self.second.access, self.first.access) {
            ("free", _) => (Some(&self.second), &self.first),
            (_, "free") => (Some(&self.first), &self.second),
            _ => (None, &self.second),
        };
        if let Some(freed) = freed {
            let (memory, by, other) = (&self.memory, place(freed), place(used));
            let done = done(used.access, true);
            return format!("data race on {memory}: freed in {by} while {other} {done} it, unordered");
        }
        format!(
            "data race on {}: {} in {}, {} in {}",
            self.memory,
            self.second.access,
            place(&self.second),
            self.first.access,
            place(&self.first)
        )
    }

    /// Both accesses with their stacks and locks.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (access, when) in [(&self.second, ""), (&self.first, " before, and nothing orders the two")] {
            let locks = match access.locks.as_slice() {
                [] => "no lock held".to_owned(),
                locks => format!("holding {}", locks.join(", ")),
            };
            let done = done(access.access, when.is_empty());
            lines.push(format!("thread {} {done} {} bytes{when} ({locks})", access.thread, access.bytes));
            lines.extend(access.stack.iter().take(SHOWN).map(|frame| format!("    {frame}")));
        }
        lines
    }

    /// The same as one text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in std::iter::once(self.what()).chain(self.lines()) {
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

/// What an access does now, or did before.
fn done(access: &str, now: bool) -> &'static str {
    match (access, now) {
        ("atomic read", true) => "atomically reads",
        ("atomic write", true) => "atomically writes",
        ("atomic update", true) => "atomically updates",
        ("atomic read", _) => "atomically read",
        ("atomic write", _) => "atomically wrote",
        ("atomic update", _) => "atomically updated",
        ("read", true) => "reads",
        ("write", true) => "writes",
        ("free", true) => "frees",
        (_, true) => "updates",
        ("read", _) => "read",
        ("write", _) => "wrote",
        ("free", _) => "freed",
        _ => "updated",
    }
}

/// The program's own functions; if there are none, all but ours.
fn own(frames: &[Frame]) -> Vec<&Frame> {
    let own: Vec<&Frame> = frames.iter().filter(|frame| origin(frame) == Origin::Own).collect();
    if own.is_empty() { frames.iter().filter(|frame| origin(frame) != Origin::Waylay).collect() } else { own }
}

/// A frame in one line.
pub fn line(frame: &Frame) -> String {
    let function = frame.function.as_deref().unwrap_or("??");
    let last = |path: &str| base_name(path).to_owned();
    match (&frame.file, frame.line, &frame.module) {
        (Some(file), Some(line), _) => format!("{function} ({}:{line})", last(file)),
        (_, _, Some(module)) => format!("{function} ({}+{:#x})", last(module), frame.offset),
        _ => format!("{function} ({:#x})", frame.address),
    }
}

/// The functions at the access itself: those that were put into each other there.
pub fn innermost(stack: &ThreadStack) -> Vec<&Frame> {
    let mut frames = stack.frames.iter().skip_while(|frame| origin(frame) == Origin::Waylay);
    let Some(first) = frames.next() else { return Vec::new() };
    std::iter::once(first).chain(frames.take_while(|frame| frame.address == first.address)).collect()
}
