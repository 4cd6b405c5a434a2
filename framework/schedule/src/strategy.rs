//! The question a strategy answers, and how the controller asks it.
//!
//! The controller reports transitions as they happen and then asks who runs next:
//!
//! ```text
//! plan(run) -> parameters            what earlier runs taught, as data; None: the space is exhausted
//! begin(run, &parameters)
//! spawned(main, None)  ready(main, first event)
//! loop:
//!     pick() -> t                    t now carries out the event it announced; meanwhile, in any order:
//!         spawned(child, Some(t))    a thread exists (not enabled yet)
//!         ready(u, event)            u is enabled and about to do this event; again with another event: replaced
//!         blocked(u)                 u is not enabled any more, but keeps its place in its program
//!         finished(u)
//!     step(t, event) -> next         t stays enabled: the same as ready(t, event) and pick(), in one cheap call
//! end(&report)
//! ```
//!
//! The thread that was picked counts as ready until the controller says otherwise, so one of `step`, `ready`,
//! `blocked` and `finished` must be called for it before the next `pick`. Memory is reserved in `spawned`;
//! nothing else allocates during a run. No call panics on a sequence that breaks these rules, though what is
//! picked then is unspecified.

use crate::event::{Event, ThreadId};
use crate::run::{Run, RunParameters, RunReport};

/// Decides which thread runs next, one run after the other.
pub trait Strategy: Send {
    /// What the next run will be given. This is where learning ends: the run depends on `run` and the answer
    /// alone. `None` when a systematic search has seen everything.
    fn plan(&mut self, run: Run) -> Option<RunParameters>;

    /// Starts a run with planned or stored parameters.
    fn begin(&mut self, run: Run, parameters: &RunParameters);

    /// A thread exists; it takes part once it is ready.
    fn spawned(&mut self, thread: ThreadId, parent: Option<ThreadId>);

    /// The thread is enabled and about to do `next`.
    fn ready(&mut self, thread: ThreadId, next: Event);

    /// The thread cannot carry out its next event for now.
    fn blocked(&mut self, thread: ThreadId);

    /// The thread is gone.
    fn finished(&mut self, thread: ThreadId);

    /// The thread to run, or `None` when none is enabled: the end, or a deadlock.
    fn pick(&mut self) -> Option<ThreadId>;

    /// The running thread reached `next` and stays enabled: who runs?
    #[inline]
    fn step(&mut self, current: ThreadId, next: Event) -> ThreadId {
        self.ready(current, next);
        self.pick().unwrap_or(current)
    }

    /// The run is over.
    fn end(&mut self, report: &RunReport<'_>);

    /// Other events are steps from the next run on: what was measured before is measured again. Strategies whose measures
    /// only ever grow need not know.
    fn steps_changed(&mut self) {}

    /// The steps of the run so far that may count in another schedule, for a strategy whose promise depends on their number; 0
    /// for others.
    fn reach(&self) -> u64 {
        0
    }

    /// A run with these parameters had so many steps that may count in another schedule, whatever else is heard of it.
    fn was_long(&mut self, parameters: &RunParameters, steps: u64) {
        let _ = (parameters, steps);
    }
}

impl<S: Strategy + ?Sized> Strategy for Box<S> {
    fn plan(&mut self, run: Run) -> Option<RunParameters> {
        (**self).plan(run)
    }
    fn begin(&mut self, run: Run, parameters: &RunParameters) {
        (**self).begin(run, parameters);
    }
    fn spawned(&mut self, thread: ThreadId, parent: Option<ThreadId>) {
        (**self).spawned(thread, parent);
    }
    fn ready(&mut self, thread: ThreadId, next: Event) {
        (**self).ready(thread, next);
    }
    fn blocked(&mut self, thread: ThreadId) {
        (**self).blocked(thread);
    }
    fn finished(&mut self, thread: ThreadId) {
        (**self).finished(thread);
    }
    #[inline]
    fn pick(&mut self) -> Option<ThreadId> {
        (**self).pick()
    }
    #[inline]
    fn step(&mut self, current: ThreadId, next: Event) -> ThreadId {
        (**self).step(current, next)
    }
    fn end(&mut self, report: &RunReport<'_>) {
        (**self).end(report);
    }
    fn steps_changed(&mut self) {
        (**self).steps_changed();
    }
    fn reach(&self) -> u64 {
        (**self).reach()
    }
    fn was_long(&mut self, parameters: &RunParameters, steps: u64) {
        (**self).was_long(parameters, steps);
    }
}
