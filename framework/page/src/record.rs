//! Handing one failure from host to driver.
//!
//! A record goes Free -> Claimed (host fills it) -> Filled (driver looks: takes evidence from outside while the thread
//! waits) -> Released (thread goes on) -> Free. The thread that failed waits in between, so what it was doing is still
//! there to be seen. All host-side steps are safe inside a signal handler: atomics and one wait primitive.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Longest message that is kept; longer ones are cut at a character boundary.
pub const MESSAGE_BYTES: usize = 2048;
/// Most return addresses that are kept.
pub const MAX_FRAMES: usize = 128;
/// Room for the machine state that a signal handler is given: siginfo and ucontext with the floating-point state.
pub const MACHINE_BYTES: usize = 4096;

/// Worker index of a failure that no worker is to blame for.
pub const NO_WORKER: u32 = u32::MAX;
/// Test index of a failure that no test is to blame for.
pub const NO_TEST: u32 = u32::MAX;

/// What sort of failure the host reports. Classes that only the driver can tell (hangs, leaks) are not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Sort {
    /// The test called `fail`.
    Assert = 1,
    /// A Rust panic reached the boundary.
    Panic = 2,
    /// A C++ exception reached the boundary.
    Exception = 3,
    /// A fatal signal or an unhandled exception of the system; the process cannot go on.
    Fatal = 4,
    /// `exit` was called from a test; the process cannot go on.
    Exit = 5,
}

impl Sort {
    fn from_number(number: u32) -> Option<Sort> {
        [Sort::Assert, Sort::Panic, Sort::Exception, Sort::Fatal, Sort::Exit]
            .into_iter()
            .find(|sort| *sort as u32 == number)
    }

    /// Whether the process can only be thrown away.
    pub fn ends_the_host(self) -> bool {
        matches!(self, Sort::Fatal | Sort::Exit)
    }
}

const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const FILLED: u32 = 2;
const RELEASED: u32 = 3;

/// One failure on its way.
#[repr(C, align(64))]
pub struct FailureRecord {
    state: AtomicU32,
    sort: AtomicU32,
    test: AtomicU32,
    worker: AtomicU32,
    tid: AtomicU32,
    signal: AtomicU32,
    iteration: AtomicU64,
    seed: AtomicU64,
    address: AtomicU64,
    message_len: AtomicU32,
    frame_count: AtomicU32,
    machine_len: AtomicU32,
    siginfo_len: AtomicU32,
    body: UnsafeCell<Body>,
}

#[repr(C)]
struct Body {
    message: [u8; MESSAGE_BYTES],
    frames: [u64; MAX_FRAMES],
    machine: [u8; MACHINE_BYTES],
}

// SAFETY: `body` is written only by the thread that moved `state` from FREE to CLAIMED, and after an acquire load saw FILLED
// it is copied with volatile reads of integers, for which any bytes are valid.
unsafe impl Sync for FailureRecord {}

/// What the host says about a failure.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The sort.
    pub sort: Sort,
    /// Index of the test or [`NO_TEST`].
    pub test: u32,
    /// Index of the worker or [`NO_WORKER`].
    pub worker: u32,
    /// Kernel thread id of the thread that failed.
    pub tid: u32,
    /// Number of the iteration.
    pub iteration: u64,
    /// Seed of the iteration.
    pub seed: u64,
    /// Signal number, exit code or exception code; 0 when it has none.
    pub signal: u32,
    /// Faulting address when there is one.
    pub address: u64,
    /// What is wrong.
    pub message: &'a [u8],
    /// Return addresses, innermost first.
    pub frames: &'a [usize],
    /// siginfo bytes (Linux).
    pub siginfo: &'a [u8],
    /// Register state: ucontext followed by the floating-point state (Linux).
    pub machine: &'a [u8],
}

/// A failure as the driver received it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields mirror `Report`
pub struct Received {
    pub sort: Sort,
    pub test: Option<u32>,
    pub worker: Option<u32>,
    pub tid: u32,
    pub iteration: u64,
    pub seed: u64,
    pub signal: u32,
    pub address: u64,
    pub message: String,
    pub frames: Vec<u64>,
    pub siginfo: Vec<u8>,
    pub machine: Vec<u8>,
}

/// A filled record in the driver's hands; the failing thread waits until [`Pending::release`].
pub struct Pending<'a> {
    record: &'a FailureRecord,
    /// What the host said.
    pub failure: Received,
}

impl FailureRecord {
    /// Host: takes the record if nobody has it.
    pub(crate) fn claim(&self) -> bool {
        self.state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Host: fills a record that it claimed. The driver sees it from now on.
    pub(crate) fn hand_over(&self, report: &Report<'_>) {
        self.fill(report);
        self.state.store(FILLED, Ordering::Release);
    }

    /// Host: waits until the driver has looked, and gives the record back.
    pub(crate) fn await_release(&self) {
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state == RELEASED {
                break;
            }
            crate::sys::wait_until_changed(&self.state, state, Some(std::time::Duration::from_secs(1)));
        }
        self.state.store(FREE, Ordering::Release);
    }

    /// Driver: whether it is on its way, in whichever direction.
    pub(crate) fn is_in_use(&self) -> bool {
        self.state.load(Ordering::Acquire) != FREE
    }

    fn fill(&self, report: &Report<'_>) {
        self.sort.store(report.sort as u32, Ordering::Relaxed);
        self.test.store(report.test, Ordering::Relaxed);
        self.worker.store(report.worker, Ordering::Relaxed);
        self.tid.store(report.tid, Ordering::Relaxed);
        self.signal.store(report.signal, Ordering::Relaxed);
        self.iteration.store(report.iteration, Ordering::Relaxed);
        self.seed.store(report.seed, Ordering::Relaxed);
        self.address.store(report.address, Ordering::Relaxed);
        let message_len = report.message.len().min(MESSAGE_BYTES);
        let frame_count = report.frames.len().min(MAX_FRAMES);
        let siginfo_len = report.siginfo.len().min(MACHINE_BYTES);
        let machine_len = report.machine.len().min(MACHINE_BYTES - siginfo_len);
        // SAFETY: this thread moved the record to CLAIMED, so nobody else touches the body until FILLED is stored.
        let body = unsafe { &mut *self.body.get() };
        body.message[..message_len].copy_from_slice(&report.message[..message_len]);
        for (to, from) in body.frames.iter_mut().zip(&report.frames[..frame_count]) {
            *to = *from as u64;
        }
        body.machine[..siginfo_len].copy_from_slice(&report.siginfo[..siginfo_len]);
        body.machine[siginfo_len..siginfo_len + machine_len].copy_from_slice(&report.machine[..machine_len]);
        self.message_len.store(message_len as u32, Ordering::Relaxed);
        self.frame_count.store(frame_count as u32, Ordering::Relaxed);
        self.siginfo_len.store(siginfo_len as u32, Ordering::Relaxed);
        self.machine_len.store(machine_len as u32, Ordering::Relaxed);
    }

    pub(crate) fn impossible(&self, tests: usize, workers: usize) -> Option<String> {
        let state = self.state.load(Ordering::Acquire);
        if state > RELEASED {
            return Some(format!("a failure record is in state {state}"));
        }
        if state != FILLED {
            return None;
        }
        let value = |word: &AtomicU32| word.load(Ordering::Relaxed);
        let index =
            |word: &AtomicU32, none: u32, most: usize| value(word) == none || (value(word) as usize) < most;
        let lengths = [
            (&self.message_len, MESSAGE_BYTES),
            (&self.frame_count, MAX_FRAMES),
            (&self.siginfo_len, MACHINE_BYTES),
            (&self.machine_len, MACHINE_BYTES),
        ];
        if Sort::from_number(value(&self.sort)).is_none() {
            return Some(format!("a failure is of sort {}", value(&self.sort)));
        }
        if !index(&self.test, NO_TEST, tests) {
            return Some(format!("a failure is of test {} of {tests}", value(&self.test)));
        }
        if !index(&self.worker, NO_WORKER, workers) {
            return Some(format!("a failure is of worker {} of {workers}", value(&self.worker)));
        }
        let long = lengths.into_iter().find(|(word, most)| value(word) as usize > *most);
        long.map(|(word, most)| format!("a part of a failure has {} bytes of {most}", value(word)))
    }

    pub(crate) fn take(&self) -> Option<Pending<'_>> {
        if self.state.load(Ordering::Acquire) != FILLED {
            return None;
        }
        // A record of an unknown sort is none: `impossible` says so to whoever asks.
        let sort = Sort::from_number(self.sort.load(Ordering::Relaxed))?;
        // The host leaves the body alone until RELEASED, but a test can scribble over it at any time: there is no reference to it,
        // and what is used is a copy.
        let body = self.body.get();
        let count = |word: &AtomicU32, most: usize| (word.load(Ordering::Relaxed) as usize).min(most);
        let siginfo_len = count(&self.siginfo_len, MACHINE_BYTES);
        let machine_len = count(&self.machine_len, MACHINE_BYTES - siginfo_len);
        let index = |word: &AtomicU32, none: u32| {
            let value = word.load(Ordering::Relaxed);
            (value != none).then_some(value)
        };
        // SAFETY: the arrays are mapped for as long as `self` lives, the counts are at most their lengths, and numbers are valid
        // whatever they are.
        let (message, frames, machine) = unsafe {
            (
                copied(&raw const (*body).message, count(&self.message_len, MESSAGE_BYTES)),
                copied(&raw const (*body).frames, count(&self.frame_count, MAX_FRAMES)),
                copied(&raw const (*body).machine, siginfo_len + machine_len),
            )
        };
        let failure = Received {
            sort,
            test: index(&self.test, NO_TEST),
            worker: index(&self.worker, NO_WORKER),
            tid: self.tid.load(Ordering::Relaxed),
            iteration: self.iteration.load(Ordering::Relaxed),
            seed: self.seed.load(Ordering::Relaxed),
            signal: self.signal.load(Ordering::Relaxed),
            address: self.address.load(Ordering::Relaxed),
            message: String::from_utf8_lossy(&message).into_owned(),
            frames,
            siginfo: machine[..siginfo_len].to_vec(),
            machine: machine[siginfo_len..].to_vec(),
        };
        Some(Pending { record: self, failure })
    }
}

/// The first `count` numbers of an array that somebody else may be writing.
///
/// # Safety
/// The array is mapped for as long as the call takes, has so many, and any bits are a number.
unsafe fn copied<T: Copy, const N: usize>(array: *const [T; N], count: usize) -> Vec<T> {
    let first = array.cast::<T>();
    // SAFETY: by the caller's promise.
    (0..count).map(|place| unsafe { first.add(place).read_volatile() }).collect()
}

impl Pending<'_> {
    /// Lets the failing thread go on.
    pub fn release(self) {
        self.record.state.store(RELEASED, Ordering::Release);
        crate::sys::wake_all(&self.record.state);
    }
}
