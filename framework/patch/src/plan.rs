//! All windows of a module, and what could not be done; small enough to be kept in a file between processes.

use crate::code::Code;
use crate::image::{Image, ImageError};
use crate::site::{self, Kind};
use crate::waiting;
use crate::window::{How, Window, Wish, windows};

/// Which instructions are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wanted {
    /// Those that synchronise.
    Atomics,
    /// And every access to memory that others may reach: all but a function's own frame whose address goes nowhere.
    Memory,
    /// Every such access, with a breakpoint where no jump fits: nothing may be missed.
    All,
}

/// What is done with the sites of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// There are so many.
    pub found: u32,
    /// Replaced by a jump.
    pub jumps: u32,
    /// Replaced by a breakpoint.
    pub traps: u32,
}

impl Count {
    /// Left as they are.
    pub fn refused(self) -> u32 {
        self.found - self.jumps - self.traps
    }
}

/// The plan for one module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// By address; they do not overlap.
    pub windows: Vec<Window>,
    /// Registers must be saved in the long way.
    pub wide: bool,
    /// One for each of [`KINDS`].
    pub counts: [Count; KINDS.len()],
    /// Where some of those are that are left as they are, hints apart; 0: no more.
    pub refused: [u32; NAMED],
    /// Bytes of code, and how many of them belong to functions that are known; the rest is left alone.
    pub code: (u64, u64),
}

/// Refused instructions whose places are kept.
pub const NAMED: usize = 8;

/// Names of the kinds, in the order of [`Plan::counts`].
pub const KINDS: [(Kind, &str); 8] = [
    (Kind::Lock, "LOCK"),
    (Kind::Exchange, "XCHG"),
    (Kind::Fence, "MFENCE"),
    (Kind::Pause, "PAUSE"),
    (Kind::Counter, "RDTSC"),
    (Kind::Call, "SYSCALL"),
    (Kind::Wait, "wait"),
    (Kind::Access, "access"),
];

impl Plan {
    /// Analyses a file.
    pub fn of(bytes: &[u8], wanted: Wanted) -> Result<Plan, ImageError> {
        let image = Image::parse(bytes)?;
        Ok(Plan::make(&Code::decode(&image), wanted))
    }

    fn make(code: &Code, wanted: Wanted) -> Plan {
        let mut plan = Plan { wide: code.wide, code: code.bytes, ..Plan::default() };
        let mut sites: Vec<usize> = Vec::new();
        for function in &code.functions {
            sites.clear();
            let waits = waiting::loads(&code.instructions[function.instructions.clone()], function.frame);
            let waits = |index: usize| waits.binary_search(&(index - function.instructions.start)).is_ok();
            let kind_of = |index: usize| {
                let instruction = &code.instructions[index];
                site::synchronises(instruction).or_else(|| {
                    if site::reads_counter(instruction) {
                        return Some(Kind::Counter);
                    }
                    if site::calls_kernel(instruction) {
                        return Some(Kind::Call);
                    }
                    if waits(index) {
                        return Some(Kind::Wait);
                    }
                    let access = wanted != Wanted::Atomics
                        && instruction.ip() >= function.body
                        && site::accesses(instruction, function.frame);
                    access.then_some(Kind::Access)
                })
            };
            sites.extend(function.instructions.clone().filter(|&index| kind_of(index).is_some()));
            if sites.is_empty() {
                continue;
            }
            let wish = |&index: &usize| {
                let kind = kind_of(index);
                // A breakpoint costs more than a microsecond: for what there is little of. A hint can be done without.
                let trap = match kind {
                    Some(Kind::Access) => {
                        wanted == Wanted::All && site::has_address(&code.instructions[index])
                    }
                    kind => kind != Some(Kind::Pause),
                };
                Wish { index, always: kind != Some(Kind::Access), trap }
            };
            let wishes: Vec<Wish> = sites.iter().map(wish).collect();
            let found = windows(code, function, &wishes);
            let mut at = 0;
            for &site in &sites {
                let Some(kind) = kind_of(site) else { continue };
                let count = &mut plan.counts[KINDS.iter().position(|(known, _)| *known == kind).unwrap_or(0)];
                count.found += 1;
                let ip = code.instructions[site].ip();
                while at < found.len() && ip >= u64::from(found[at].start) + u64::from(found[at].length) {
                    at += 1;
                }
                match found.get(at).filter(|window| u64::from(window.start) <= ip) {
                    Some(window) if window.how == How::Trap => count.traps += 1,
                    Some(_) => count.jumps += 1,
                    None if kind == Kind::Pause => {}
                    None => {
                        if let Some(place) = plan.refused.iter_mut().find(|place| **place == 0) {
                            *place = ip as u32;
                        }
                    }
                }
            }
            plan.windows.extend(found);
        }
        plan
    }

    /// What a file of the cache holds; the format is this version's own.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(96 + self.windows.len() * ENTRY);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&u64::from(self.wide).to_le_bytes());
        bytes.extend_from_slice(&self.code.0.to_le_bytes());
        bytes.extend_from_slice(&self.code.1.to_le_bytes());
        for count in &self.counts {
            for number in [count.found, count.jumps, count.traps] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        self.refused.iter().for_each(|place| bytes.extend_from_slice(&place.to_le_bytes()));
        bytes.extend_from_slice(&(self.windows.len() as u32).to_le_bytes());
        for window in &self.windows {
            bytes.extend_from_slice(&window.start.to_le_bytes());
            bytes.extend_from_slice(&[window.length, window.how as u8]);
            bytes.extend_from_slice(&window.sites.to_le_bytes());
            bytes.extend_from_slice(&window.always.to_le_bytes());
        }
        bytes
    }

    /// Reads that back; nothing when it is of another version or cut.
    pub fn from_bytes(bytes: &[u8]) -> Option<Plan> {
        let mut rest = bytes.strip_prefix(&MAGIC)?;
        let mut word = || {
            let (word, after) = rest.split_first_chunk::<8>()?;
            rest = after;
            Some(u64::from_le_bytes(*word))
        };
        let (wide, code) = (word()? != 0, (word()?, word()?));
        let mut half = || {
            let (half, after) = rest.split_first_chunk::<4>()?;
            rest = after;
            Some(u32::from_le_bytes(*half))
        };
        let mut counts = [Count::default(); KINDS.len()];
        for count in &mut counts {
            *count = Count { found: half()?, jumps: half()?, traps: half()? };
        }
        let mut refused = [0; NAMED];
        for place in &mut refused {
            *place = half()?;
        }
        let length = half()? as usize;
        if rest.len() != length * ENTRY {
            return None;
        }
        let window = |bytes: &[u8]| {
            let how = [How::Alone, How::Forward, How::Backward, How::Trap];
            Some(Window {
                start: u32::from_le_bytes(bytes[..4].try_into().ok()?),
                length: bytes[4],
                how: *how.get(usize::from(bytes[5]))?,
                sites: u16::from_le_bytes(bytes[6..8].try_into().ok()?),
                always: u16::from_le_bytes(bytes[8..].try_into().ok()?),
            })
        };
        let windows = rest.chunks_exact(ENTRY).map(window).collect::<Option<Vec<_>>>()?;
        Some(Plan { windows, wide, counts, refused, code })
    }
}

const MAGIC: [u8; 8] = *b"waylayP9";
/// Bytes of a window.
const ENTRY: usize = 10;

/// The name of a plan in a cache: nothing when the file has no identity of its own.
pub fn cache_name(build_id: &[u8], wanted: Wanted) -> String {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    match wanted {
        Wanted::Atomics => format!("{hex}.atomics"),
        Wanted::Memory => format!("{hex}.memory"),
        Wanted::All => format!("{hex}.all"),
    }
}
