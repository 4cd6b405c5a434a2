//! A schedule as data: who ran, for how many steps, in order.
//!
//! Segments of one thread are kept together, so a million steps with few switches take a few bytes. Each segment
//! also has the kind of its first event, by which a replay notices that the program went another way.
//!
//! Stored form, version 1: `WLSC`, a version byte, the number of segments, then for each its thread, the code of its
//! first event (one byte) and its steps, all numbers as LEB128 in their shortest form, and at the end the FNV-1a
//! checksum of everything before it (four bytes, little endian). Decoding takes exactly what encoding makes.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::event::{EventKind, ThreadId};

/// Consecutive steps of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Segment {
    /// Who ran.
    pub thread: ThreadId,
    /// The kind of its first event.
    pub first: EventKind,
    /// For how many steps, at least 1.
    pub steps: u64,
}

/// The choices of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Schedule {
    segments: Vec<Segment>,
}

/// A switch to be made at a step of the run (0 is the first).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Switch {
    /// The step from which the thread runs.
    pub step: u64,
    /// Who runs.
    pub thread: ThreadId,
}

/// A choice of who runs behind a step of a thread: in whatever order the others make theirs, it stays the same moment of
/// that thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Turn {
    /// Who ran last.
    pub of: ThreadId,
    /// How many steps it has made in the run.
    pub after: u64,
    /// Who runs now.
    pub to: ThreadId,
}

/// Why bytes are not a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// They do not start as one.
    #[error("not a schedule: it does not start with WLSC")]
    Magic,
    /// They were written by a later program.
    #[error("schedule version {0} is not known, this program reads version {VERSION}")]
    Version(u8),
    /// They end too early.
    #[error("the schedule is cut off")]
    CutOff,
    /// Something follows the end.
    #[error("{0} bytes follow the end of the schedule")]
    Trailing(usize),
    /// A number is not in its shortest form or too large.
    #[error("the schedule has a malformed number at byte {0}")]
    Number(usize),
    /// An event kind has no such code.
    #[error("the schedule has an unknown event code {0}")]
    Kind(u8),
    /// A segment has no steps, or the same thread as the one before.
    #[error("segment {0} of the schedule is empty or not merged with the one before")]
    Segment(usize),
    /// The steps do not fit a number.
    #[error("the schedule has more steps than can be counted")]
    Length,
    /// A bit fell over.
    #[error("the checksum of the schedule does not match")]
    Checksum,
}

const MAGIC: &[u8; 4] = b"WLSC";
/// The version of the encoding that is written; others are refused with their number.
pub const VERSION: u8 = 1;
/// The fewest bytes of a segment: one each for thread, kind and steps.
const SEGMENT_BYTES: usize = 3;

impl Schedule {
    /// A schedule of these segments; empty ones are left out and adjacent ones of one thread merged.
    pub fn new(segments: impl IntoIterator<Item = Segment>) -> Schedule {
        let mut schedule = Schedule::default();
        for segment in segments {
            schedule.extend_by(segment);
        }
        schedule
    }

    /// Makes room for this many switches, so that recording does not allocate before.
    pub fn reserve(&mut self, segments: usize) {
        self.segments.reserve(segments);
    }

    /// Empties the schedule and keeps the memory.
    pub fn clear(&mut self) {
        self.segments.clear();
    }

    /// Records one step.
    #[inline]
    pub fn push(&mut self, thread: ThreadId, kind: EventKind) {
        match self.segments.last_mut() {
            Some(last) if last.thread == thread => last.steps += 1,
            _ => self.segments.push(Segment { thread, first: kind, steps: 1 }),
        }
    }

    /// Adds steps of one thread at the end.
    pub fn extend_by(&mut self, segment: Segment) {
        if segment.steps == 0 {
            return;
        }
        match self.segments.last_mut() {
            Some(last) if last.thread == segment.thread => {
                last.steps = last.steps.saturating_add(segment.steps)
            }
            _ => self.segments.push(segment),
        }
    }

    /// The segments; no two neighbours have the same thread and none is empty.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// How many steps there are.
    pub fn steps(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.steps))
    }

    /// How many threads appear, counted by the greatest number.
    pub fn threads(&self) -> usize {
        self.segments.iter().map(|segment| segment.thread.index() + 1).max().unwrap_or(0)
    }

    /// Who ran at each step.
    pub fn iter(&self) -> impl Iterator<Item = ThreadId> + '_ {
        self.segments.iter().flat_map(|segment| (0..segment.steps).map(|_| segment.thread))
    }

    /// The first `steps` steps.
    pub fn prefix(&self, steps: u64) -> Schedule {
        let mut left = steps;
        let cut = self.segments.iter().map_while(|&segment| {
            let taken = segment.steps.min(left);
            left -= taken;
            (taken > 0).then_some(Segment { steps: taken, ..segment })
        });
        Schedule { segments: cut.collect() }
    }

    /// This schedule followed by another.
    pub fn then(&self, rest: &Schedule) -> Schedule {
        Schedule::new(self.segments.iter().chain(&rest.segments).copied())
    }

    /// The switches that make this schedule: what a guided run forces.
    pub fn turns(&self) -> Vec<Turn> {
        let mut made = vec![0_u64; self.threads()];
        let pairs = self.segments.iter().zip(self.segments.iter().skip(1));
        pairs
            .map(|(segment, next)| {
                let made = &mut made[segment.thread.index()];
                *made = made.saturating_add(segment.steps);
                Turn { of: segment.thread, after: *made, to: next.thread }
            })
            .collect()
    }

    /// What a run that went like `other` has to be told so that it goes on like this one at the first step at which the two
    /// differ.
    pub fn correction(&self, other: &Schedule) -> Option<Turn> {
        let mut made = vec![0_u64; self.threads()];
        let mut last: Option<ThreadId> = None;
        let (mut ours, mut theirs) = (self.segments.iter().copied(), other.segments.iter().copied());
        let (mut our, mut their) = (ours.next(), theirs.next());
        while let (Some(a), Some(b)) = (our.as_mut(), their.as_mut()) {
            if a.thread != b.thread {
                let of = last?;
                return Some(Turn { of, after: made[of.index()], to: a.thread });
            }
            let common = a.steps.min(b.steps);
            made[a.thread.index()] += common;
            last = Some(a.thread);
            (a.steps, b.steps) = (a.steps - common, b.steps - common);
            if a.steps == 0 {
                our = ours.next();
            }
            if b.steps == 0 {
                their = theirs.next();
            }
        }
        None
    }

    /// The step of the run at which a turn is taken, if it comes to it.
    pub fn step_of(&self, turn: Turn) -> Option<u64> {
        let (mut made, mut step) = (0_u64, 0_u64);
        for segment in &self.segments {
            if segment.thread == turn.of {
                if made + segment.steps >= turn.after {
                    return Some(step + (turn.after - made));
                }
                made += segment.steps;
            }
            step += segment.steps;
        }
        None
    }

    /// The switches of this schedule by steps of the run, the start of the first thread included.
    pub fn switches(&self) -> Vec<Switch> {
        let mut step = 0_u64;
        self.segments
            .iter()
            .map(|segment| {
                let switch = Switch { step, thread: segment.thread };
                step = step.saturating_add(segment.steps);
                switch
            })
            .collect()
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + self.segments.len() * 4);
        bytes.extend_from_slice(MAGIC);
        bytes.push(VERSION);
        write_number(&mut bytes, self.segments.len() as u64);
        for segment in &self.segments {
            write_number(&mut bytes, u64::from(segment.thread.0));
            bytes.push(segment.first.code());
            write_number(&mut bytes, segment.steps);
        }
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads the stored form, and nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Schedule, DecodeError> {
        if !bytes.starts_with(MAGIC) {
            return Err(DecodeError::Magic);
        }
        let version = *bytes.get(MAGIC.len()).ok_or(DecodeError::CutOff)?;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let mut at = MAGIC.len() + 1;
        let count = read_number(bytes, &mut at)?;
        // A count that the bytes cannot hold must not become an allocation.
        if count > ((bytes.len() - at) / SEGMENT_BYTES) as u64 {
            return Err(DecodeError::CutOff);
        }
        let mut segments: Vec<Segment> = Vec::with_capacity(count as usize);
        let mut total = 0_u64;
        for index in 0..count as usize {
            let start = at;
            let thread =
                u32::try_from(read_number(bytes, &mut at)?).map_err(|_| DecodeError::Number(start))?;
            let code = *bytes.get(at).ok_or(DecodeError::CutOff)?;
            at += 1;
            let first = EventKind::from_code(code).ok_or(DecodeError::Kind(code))?;
            let steps = read_number(bytes, &mut at)?;
            let repeated = segments.last().is_some_and(|last| last.thread.0 == thread);
            if steps == 0 || repeated {
                return Err(DecodeError::Segment(index));
            }
            total = total.checked_add(steps).ok_or(DecodeError::Length)?;
            segments.push(Segment { thread: ThreadId(thread), first, steps });
        }
        let sum = bytes.get(at..at + 4).ok_or(DecodeError::CutOff)?;
        if sum != checksum(&bytes[..at]).to_le_bytes() {
            return Err(DecodeError::Checksum);
        }
        match bytes.len() - (at + 4) {
            0 => Ok(Schedule { segments }),
            more => Err(DecodeError::Trailing(more)),
        }
    }
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(bytes: &[u8], at: &mut usize) -> Result<u64, DecodeError> {
    let start = *at;
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(DecodeError::CutOff)?;
        *at += 1;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part || (byte == 0 && shift > 0) {
            return Err(DecodeError::Number(start));
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(DecodeError::Number(start))
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, &byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests;
