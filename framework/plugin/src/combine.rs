//! What the host does for a test that runs other tests: a combiner. Which test runs when is the combiner's to decide;
//! creating, running, timing and blaming them is the host's.

use crate::context::Line;
use std::ffi::CStr;
use std::time::Duration;
use waylay_abi as abi;

/// The tests that a combiner contains; see [`Worker::container`](crate::Worker::container).
#[derive(Clone, Copy)]
pub struct Container<'c> {
    line: Line<'c>,
    table: &'c abi::Combine,
}

/// How a contained test stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainedState {
    /// Not loaded yet, or unloaded.
    Unloaded,
    /// Can be run.
    Ready,
    /// Failed too often, had nothing more to do, could not be loaded, or is cancelled.
    Retired,
}

impl ContainedState {
    fn of(code: u32) -> Self {
        match code {
            abi::CONTAINED_READY => Self::Ready,
            abi::CONTAINED_RETIRED => Self::Retired,
            _ => Self::Unloaded,
        }
    }
}

/// One contained test.
#[derive(Clone, Debug, PartialEq)]
pub struct Contained {
    /// Its name.
    pub name: String,
    /// How it stands.
    pub state: ContainedState,
    /// The share of the time that the configuration asks for, relative to the others.
    pub share: f64,
    /// Average duration of an iteration, if it is known from before this process.
    pub average: Option<Duration>,
    /// Time that it was given in this campaign before this process.
    pub given: Duration,
}

impl Contained {
    /// # Safety
    ///
    /// `info.name` is null or a NUL-terminated text.
    pub(crate) unsafe fn read(info: &abi::ContainedInfo) -> Self {
        let name = match info.name.is_null() {
            true => String::new(),
            // SAFETY: passed on to our caller.
            false => unsafe { CStr::from_ptr(info.name) }.to_string_lossy().into_owned(),
        };
        let average = (info.average_nanos > 0.0).then(|| Duration::from_secs_f64(info.average_nanos / 1e9));
        Self {
            name,
            state: ContainedState::of(info.state),
            share: info.share,
            average,
            given: Duration::from_secs_f64(info.given_nanos.max(0.0) / 1e9),
        }
    }
}

/// What a combiner asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Which contained test.
    pub test: usize,
    /// At most so many iterations.
    pub times: u64,
    /// No further iteration begins after that.
    pub limit: Option<Duration>,
    /// Run that iteration's random numbers again and again instead of going on.
    pub repeat: Option<u64>,
}

/// What came of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// How the test stands now.
    pub state: ContainedState,
    /// Iterations that were run.
    pub times: u64,
    /// Time inside the test.
    pub time: Duration,
    /// Iterations that failed.
    pub failures: u64,
}

impl Ran {
    pub(crate) fn of(raw: &abi::Ran) -> Self {
        Self {
            state: ContainedState::of(raw.state),
            times: raw.times,
            time: Duration::from_nanos(raw.nanos),
            failures: raw.failures,
        }
    }
}

impl<'c> Container<'c> {
    /// None when the test does not combine others, or the host is too old to know of it.
    ///
    /// # Safety
    ///
    /// The calling thread may use the line's context for every call.
    pub(crate) unsafe fn new(line: Line<'c>) -> Option<Self> {
        // SAFETY: the contract says that the table is null or lives as long as the services, and begins with its size.
        let table = unsafe { line.calls.combine.as_ref() }?;
        (table.size as usize >= size_of::<abi::Combine>()).then_some(Self { line, table })
    }

    fn info(&self) -> abi::ContainerInfo {
        let mut info = abi::ContainerInfo {
            size: size_of::<abi::ContainerInfo>() as u32,
            tests: 0,
            workers: 0,
            worker: 0,
            settings: std::ptr::null(),
        };
        if let Some(container) = self.table.container {
            // SAFETY: the thread may use the context, by the condition of `new`; `info` outlives the call.
            unsafe { container(self.line.raw, &raw mut info) };
        }
        info
    }

    /// How many tests there are.
    pub fn len(&self) -> usize {
        self.info().tests as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many threads call the combiner's main at the same time.
    pub fn workers(&self) -> usize {
        self.info().workers as usize
    }

    /// Number of the worker that asks; 0 when no worker does.
    pub fn worker(&self) -> usize {
        self.info().worker as usize
    }

    /// The `pot` table of the configuration, as one JSON object.
    pub fn settings(&self) -> String {
        let settings = self.info().settings;
        if settings.is_null() {
            return "{}".to_owned();
        }
        // SAFETY: the contract says that it is NUL-terminated and lives as long as the instance.
        unsafe { CStr::from_ptr(settings) }.to_string_lossy().into_owned()
    }

    /// Describes a contained test.
    pub fn contained(&self, test: usize) -> Option<Contained> {
        let mut info = abi::ContainedInfo {
            size: size_of::<abi::ContainedInfo>() as u32,
            state: 0,
            name: std::ptr::null(),
            share: 1.0,
            average_nanos: 0.0,
            given_nanos: 0.0,
        };
        // SAFETY: the thread may use the context, by the condition of `new`; `info` outlives the call.
        let found = unsafe { self.table.contained?(self.line.raw, u32::try_from(test).ok()?, &raw mut info) };
        // SAFETY: the contract says that the host fills in a NUL-terminated name.
        (found != 0).then(|| unsafe { Contained::read(&info) })
    }

    /// Creates and starts a contained test. False when it cannot run, which was reported then.
    pub fn load(&self, test: usize) -> bool {
        // SAFETY: the thread may use the context, by the condition of `new`.
        self.table.load.is_some_and(|load| unsafe { load(self.line.raw, test as u32) } == abi::STATUS_OK)
    }

    /// Runs a contained test on this thread; only from a worker.
    pub fn run(&self, turn: Turn) -> Ran {
        let raw = abi::Turn {
            size: size_of::<abi::Turn>() as u32,
            test: turn.test as u32,
            times: turn.times,
            limit_nanos: turn.limit.map_or(0, |limit| limit.as_nanos().try_into().unwrap_or(u64::MAX)),
            flags: if turn.repeat.is_some() { abi::TURN_REPEAT } else { 0 },
            reserved: 0,
            iteration: turn.repeat.unwrap_or(0),
        };
        let mut ran = abi::Ran {
            size: size_of::<abi::Ran>() as u32,
            state: abi::CONTAINED_RETIRED,
            times: 0,
            nanos: 0,
            failures: 0,
        };
        if let Some(run) = self.table.run {
            // SAFETY: the thread may use the context, by the condition of `new`; both structs outlive the call.
            unsafe { run(self.line.raw, &raw const raw, &raw mut ran) };
        }
        Ran::of(&ran)
    }

    /// Says that this worker waits for others from now on, or no longer: meanwhile it is not late.
    pub fn waiting(&self, waits: bool) {
        if let Some(waiting) = self.table.waiting {
            // SAFETY: the thread may use the context, by the condition of `new`.
            unsafe { waiting(self.line.raw, i32::from(waits)) };
        }
    }

    /// Tells the share of the time that a test is meant to get, for the report.
    pub fn ask(&self, test: usize, share: f64) {
        if let Some(ask) = self.table.ask {
            // SAFETY: the thread may use the context, by the condition of `new`.
            unsafe { ask(self.line.raw, test as u32, share) };
        }
    }

    /// Cancels a contained test.
    pub fn cancel(&self, test: usize) {
        if let Some(cancel) = self.table.cancel {
            // SAFETY: the thread may use the context, by the condition of `new`.
            unsafe { cancel(self.line.raw, test as u32) };
        }
    }

    /// Ends and destroys a contained test. The host ignores it while somebody runs the test.
    pub fn unload(&self, test: usize) {
        if let Some(unload) = self.table.unload {
            // SAFETY: the thread may use the context, by the condition of `new`.
            unsafe { unload(self.line.raw, test as u32) };
        }
    }
}
