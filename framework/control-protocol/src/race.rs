//! Two accesses that nothing orders: what the library tells of them, and how the driver names those it knows.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::instrumentation::Site;

/// Pairs that can be named as known.
pub const RACES: usize = 1 << 12;
/// Locks of one thread that are told.
pub const LOCKS: usize = 8;
/// Registers by which the stack at an access can be walked: instruction, RSP, RBP, RBX and R12 to R15.
pub const REGISTERS: usize = 8;

/// The places of two accesses, whichever came first.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair(Site, Site);

impl Pair {
    /// The pair of two places.
    pub fn new(one: Site, other: Site) -> Pair {
        Pair(one.min(other), one.max(other))
    }

    /// Both, the lesser first.
    pub fn sites(self) -> [Site; 2] {
        [self.0, self.1]
    }
}

/// One access of a race.
#[repr(C)]
#[derive(Debug)]
pub struct AccessReport {
    /// The instruction, or where the call that reports it returns to.
    pub code: AtomicU64,
    /// The same as others know it.
    pub site: AtomicU64,
    /// Who.
    pub thread: AtomicU64,
    /// How many bytes, from where.
    pub bytes: AtomicU64,
    /// See `bytes`.
    pub address: AtomicU64,
    /// The sum of [`AccessReport::WRITES`] and its like.
    pub flags: AtomicU64,
    /// Its number among the accesses of the run that were looked at, from 1.
    pub serial: AtomicU64,
    /// The locks that the thread held; 0 ends the list.
    pub locks: [AtomicU64; LOCKS],
}

impl AccessReport {
    /// It writes.
    pub const WRITES: u64 = 1;
    /// A compiler reported it; otherwise it is a patched instruction.
    pub const COMPILED: u64 = 2;
    /// It cannot be an atomic operation: a compiler says so, or no compiler makes one that way.
    pub const PLAIN: u64 = 4;
    /// One instruction that reads and then writes, without a lock.
    pub const UPDATES: u64 = 8;
    /// The memory is given back: freed, reallocated or unmapped.
    pub const FREES: u64 = 16;
    /// It is atomic by its own instruction, or because a compiler says so.
    pub const ATOMIC: u64 = 32;

    /// All numbers.
    fn words(&self) -> impl Iterator<Item = &AtomicU64> {
        [&self.code, &self.site, &self.thread, &self.bytes, &self.address, &self.flags, &self.serial]
            .into_iter()
            .chain(&self.locks)
    }

    /// Whether one of the properties above holds.
    pub fn is(&self, flag: u64) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }
}

/// A race.
#[repr(C)]
#[derive(Debug)]
pub struct RaceReport {
    /// A byte that both touch; 0: there is no race.
    pub address: AtomicU64,
    /// The access that came first in the run.
    pub first: AccessReport,
    /// The one at which the run ended.
    pub second: AccessReport,
    /// The heap block around the address: where it begins, its length, who allocated it and from where.
    pub block: AtomicU64,
    /// See `block`.
    pub block_bytes: AtomicU64,
    /// See `block`.
    pub block_thread: AtomicU64,
    /// See `block`.
    pub block_code: AtomicU64,
    /// Registers at the access at which the run ended, if it is a patched instruction; all 0 otherwise.
    pub registers: [AtomicU64; REGISTERS],
}

impl RaceReport {
    pub(crate) fn words(&self) -> impl Iterator<Item = &AtomicU64> {
        [&self.address, &self.block, &self.block_bytes, &self.block_thread, &self.block_code]
            .into_iter()
            .chain(self.first.words())
            .chain(self.second.words())
            .chain(&self.registers)
    }

    /// The places, if there is a race.
    pub fn pair(&self) -> Option<Pair> {
        let site = |access: &AccessReport| Site(access.site.load(Ordering::Relaxed));
        (self.address.load(Ordering::Acquire) != 0).then(|| Pair::new(site(&self.first), site(&self.second)))
    }
}
