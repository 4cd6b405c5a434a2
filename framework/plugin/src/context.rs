//! What the host does for a test whatever the thread: [`Context`] for an instance, [`Reporter`] for the threads that an
//! iteration starts.

use crate::calls::Calls;
use crate::combine::Container;
use crate::distribution::{Distribution, Value};
use crate::failed::{Cause, Failed};
use crate::generator::Generator;
use crate::shared::{Kept, Shared};
use std::ffi::CString;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use waylay_abi as abi;

/// How much a line in the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Only when something broke.
    Debug,
    /// Worth a line.
    Info,
    /// A person should look.
    Warn,
}

impl Level {
    fn code(self) -> u32 {
        match self {
            Self::Debug => abi::LOG_DEBUG,
            Self::Info => abi::LOG_INFO,
            Self::Warn => abi::LOG_WARN,
        }
    }
}

/// The calls that the host takes from any thread while `'h` lasts, whatever sort of context it is.
#[derive(Clone, Copy)]
pub(crate) struct Line<'h> {
    pub(crate) calls: &'h Calls,
    pub(crate) raw: *mut abi::Context,
}

// SAFETY: `fail`, `log`, `cancelled` and `progress` take any context on any thread until the context ends, by the
// contract; whoever makes a `Line` picks `'h` so that it does not last longer. The other calls are behind unsafe blocks
// of types that know their thread.
unsafe impl Send for Line<'_> {}
// SAFETY: as above.
unsafe impl Sync for Line<'_> {}

impl Line<'_> {
    pub(crate) fn fail(&self, failed: &Failed) {
        let kind = match failed.cause {
            Cause::Assert => abi::FAILURE_ASSERT,
            Cause::Panic => abi::FAILURE_PANIC,
            Cause::Reported => return,
        };
        let frames = failed.frames();
        let failure = abi::Failure {
            size: size_of::<abi::Failure>() as u32,
            kind,
            message: failed.message().as_ptr().cast(),
            message_len: failed.message().len(),
            frames: if frames.is_empty() { std::ptr::null() } else { frames.as_ptr() },
            frame_count: frames.len(),
        };
        // SAFETY: the context is alive (`'h`), and `failure` and what it points to outlive the call.
        unsafe { (self.calls.fail)(self.raw, &raw const failure) }
    }

    pub(crate) fn log(&self, level: Level, text: &str) {
        // SAFETY: the context is alive (`'h`), and `text` outlives the call.
        unsafe { (self.calls.log)(self.raw, level.code(), text.as_ptr().cast(), text.len()) }
    }

    pub(crate) fn cancelled(&self) -> bool {
        // SAFETY: the context is alive (`'h`).
        unsafe { (self.calls.cancelled)(self.raw) != 0 }
    }

    pub(crate) fn progress(&self) {
        // SAFETY: the context is alive (`'h`).
        unsafe { (self.calls.progress)(self.raw) }
    }
}

/// What the host does for an instance. Any thread may use it.
#[derive(Clone, Copy)]
pub struct Context<'h> {
    line: Line<'h>,
    instance: u64,
}

impl<'h> Context<'h> {
    /// # Safety
    ///
    /// `raw` is an instance context that stays valid for `'h`; `instance` is the number of that instance.
    pub(crate) unsafe fn new(calls: &'h Calls, raw: *mut abi::Context, instance: u64) -> Self {
        Self { line: Line { calls, raw }, instance }
    }

    /// Reports a failure and returns after the evidence was taken. Returning an `Err` does the same.
    pub fn fail(&self, failed: Failed) {
        self.line.fail(&failed);
    }

    /// Writes a line to the host's log.
    pub fn log(&self, level: Level, text: &str) {
        self.line.log(level, text);
    }

    /// True once the test is to stop.
    pub fn cancelled(&self) -> bool {
        self.line.cancelled()
    }

    /// The seed of this test.
    pub fn seed(&self) -> u64 {
        // SAFETY: an instance context takes every call on every thread.
        unsafe { (self.line.calls.seed)(self.line.raw) }
    }

    /// A generator that depends only on the test's seed and `index`.
    pub fn generator(&self, index: u64) -> Generator {
        Generator::new(self.seed(), index)
    }

    /// The distribution of that name; `T` says what is drawn from it. Look it up once, in
    /// [`Test::create`](crate::Test::create).
    #[track_caller]
    pub fn distribution<T: Value>(&self, name: &str) -> Result<Distribution<T>, Failed> {
        let wanted = CString::new(name)?;
        // SAFETY: an instance context takes every call on every thread; `wanted` outlives the call.
        let raw = unsafe { (self.line.calls.distribution)(self.line.raw, wanted.as_ptr()) };
        if raw.is_null() {
            return Err(Failed::new(format_args!("the test has no parameter {name:?}; is it in PARAMS?")));
        }
        Ok(Distribution { raw, instance: self.instance, value: PhantomData })
    }

    /// The object that an iteration of this test kept.
    pub fn kept<'k, T: Shared>(&'k self, kept: &'k Kept<T>) -> &'k T {
        kept.object(self.instance)
    }

    /// Gives a kept object back to the pool.
    pub fn give_back<T: Shared>(&self, kept: Kept<T>) {
        // SAFETY: an instance context takes every call on every thread while the instance lives.
        unsafe { kept.release(self.line.calls, self.line.raw, self.instance) }
    }

    /// The tests that this one combines; only for a test with [`COMBINES`](crate::Test::COMBINES).
    pub fn container(&self) -> Option<Container<'_>> {
        // SAFETY: an instance context takes every call on every thread.
        unsafe { Container::new(self.line) }
    }

    /// Draws from a distribution of this test. Unlike [`Worker::draw`](crate::Worker::draw) it may have to wait for
    /// other threads that draw; meant for preparation.
    pub fn draw<T: Value>(&self, distribution: Distribution<T>) -> T {
        let raw = distribution.of(self.instance);
        // SAFETY: an instance context takes every call on every thread; `of` checked whose distribution it is.
        unsafe { T::draw(self.line.calls, self.line.raw, raw) }
    }
}

/// What threads that an iteration started may use of its worker; see [`Worker::reporter`](crate::Worker::reporter).
#[derive(Clone, Copy)]
pub struct Reporter<'w> {
    pub(crate) line: Line<'w>,
    pub(crate) failed: &'w AtomicBool,
}

impl Reporter<'_> {
    /// Reports a failure of the iteration and returns after the evidence was taken.
    pub fn fail(&self, failed: Failed) {
        self.failed.store(true, Ordering::Relaxed);
        self.line.fail(&failed);
    }

    /// Writes a line to the host's log.
    pub fn log(&self, level: Level, text: &str) {
        self.line.log(level, text);
    }

    /// True once the test is to stop.
    pub fn cancelled(&self) -> bool {
        self.line.cancelled()
    }

    /// Says that the iteration is getting somewhere: late, but not stuck.
    pub fn progress(&self) {
        self.line.progress();
    }
}
