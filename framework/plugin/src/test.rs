//! What a test is: its description and the calls of its life, in the order in which the host makes them.

use crate::{Context, Failed, Outcome, Worker};

/// A stress test: prepared once, then run again and again on several workers at the same time, until cancelled.
///
/// A panic in any of the calls stops at the boundary and becomes a failure that points at the place that panicked.
/// The host orders the calls: `on_start` before all others, `on_end` after all others, so `&mut self` is exclusive.
pub trait Test: Sized + Send + Sync + 'static {
    /// The test's name, unique in its plugin.
    const NAME: &'static str;
    /// One line: what bug this test would notice.
    const ABOUT: &'static str;
    /// The distributions that the test draws from.
    const PARAMS: &'static [Param] = &[];
    /// Names of the shared kinds that the test can take; see [`Worker::acquire`].
    const TAKES: &'static [&'static str] = &[];
    /// Whether the test runs other tests; see [`Container`](crate::Container).
    const COMBINES: bool = false;

    /// Makes an instance. Cheap: look distributions up here, and leave threads, files and memory to
    /// [`on_start`](Test::on_start).
    fn create(context: &Context<'_>) -> Result<Self, Failed>;

    /// Prepares the test. After a failure the instance is dropped and nothing else is called.
    fn on_start(&mut self, context: &Context<'_>) -> Outcome {
        let _ = context;
        Ok(())
    }

    /// One iteration. Must return well within the test's `hang-timeout`.
    fn main(&self, worker: &Worker<'_>) -> Outcome;

    /// The test is to stop: begin no new work, wake whoever waits, and return at once. Workers may be inside
    /// [`main`](Test::main).
    fn on_cancelled(&self, context: &Context<'_>) {
        let _ = context;
    }

    /// Cleans up, and may check what holds only at the end. No worker is inside any more.
    fn on_end(&mut self, context: &Context<'_>) -> Outcome {
        let _ = context;
        Ok(())
    }
}

/// One parameter of a test: a distribution that the configuration may replace.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub(crate) name: &'static str,
    pub(crate) default: Option<&'static str>,
    pub(crate) about: Option<&'static str>,
}

impl Param {
    /// A parameter with its default as one TOML value, for example `{ uniform = { min = 1, max = 64 } }`.
    pub const fn new(name: &'static str, default: &'static str) -> Self {
        Self { name, default: Some(default), about: None }
    }

    /// A parameter that the configuration must give.
    pub const fn required(name: &'static str) -> Self {
        Self { name, default: None, about: None }
    }

    /// Adds one line for people.
    pub const fn about(self, about: &'static str) -> Self {
        Self { about: Some(about), ..self }
    }
}
