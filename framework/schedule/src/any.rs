//! One type for all strategies, so that a controller needs neither a type parameter nor a call through a pointer.

use crate::conversation::Overheard;
use crate::event::{Event, ThreadId};
use crate::guided::Guided;
use crate::idiom::Idiom;
use crate::noise::Noise;
use crate::ordered::Ordered;
use crate::pct::Pct;
use crate::portfolio::Portfolio;
use crate::pos::Pos;
use crate::random_walk::RandomWalk;
use crate::replay::Replay;
use crate::rpro::RPro;
use crate::run::{Run, RunParameters, RunReport};
use crate::strategy::Strategy;
use crate::stride::Stride;
use crate::surw::Surw;
use crate::systematic::Systematic;

macro_rules! strategies {
    ($($(#[doc = $doc:literal])+ $name:ident($type:ty),)+) => {
        /// Any of the strategies of this crate; [`Spec`](crate::spec::Spec) builds one from text.
        #[derive(Debug)]
        #[allow(clippy::large_enum_variant, reason = "there is one per run, and a box would be in every step's way")]
        pub enum AnyStrategy {
            $($(#[doc = $doc])+ $name($type),)+
        }

        impl Strategy for AnyStrategy {
            fn plan(&mut self, run: Run) -> Option<RunParameters> {
                match self { $(AnyStrategy::$name(strategy) => strategy.plan(run),)+ }
            }
            fn begin(&mut self, run: Run, parameters: &RunParameters) {
                match self { $(AnyStrategy::$name(strategy) => strategy.begin(run, parameters),)+ }
            }
            fn spawned(&mut self, thread: ThreadId, parent: Option<ThreadId>) {
                match self { $(AnyStrategy::$name(strategy) => strategy.spawned(thread, parent),)+ }
            }
            #[inline]
            fn ready(&mut self, thread: ThreadId, next: Event) {
                match self { $(AnyStrategy::$name(strategy) => strategy.ready(thread, next),)+ }
            }
            #[inline]
            fn blocked(&mut self, thread: ThreadId) {
                match self { $(AnyStrategy::$name(strategy) => strategy.blocked(thread),)+ }
            }
            fn finished(&mut self, thread: ThreadId) {
                match self { $(AnyStrategy::$name(strategy) => strategy.finished(thread),)+ }
            }
            #[inline]
            fn pick(&mut self) -> Option<ThreadId> {
                match self { $(AnyStrategy::$name(strategy) => strategy.pick(),)+ }
            }
            #[inline]
            fn step(&mut self, current: ThreadId, next: Event) -> ThreadId {
                match self { $(AnyStrategy::$name(strategy) => strategy.step(current, next),)+ }
            }
            fn end(&mut self, report: &RunReport<'_>) {
                match self { $(AnyStrategy::$name(strategy) => strategy.end(report),)+ }
            }
            fn steps_changed(&mut self) {
                match self { $(AnyStrategy::$name(strategy) => strategy.steps_changed(),)+ }
            }
            fn reach(&self) -> u64 {
                match self { $(AnyStrategy::$name(strategy) => strategy.reach(),)+ }
            }
            fn was_long(&mut self, parameters: &RunParameters, steps: u64) {
                match self { $(AnyStrategy::$name(strategy) => strategy.was_long(parameters, steps),)+ }
            }
        }

        $(impl From<$type> for AnyStrategy {
            fn from(strategy: $type) -> AnyStrategy {
                AnyStrategy::$name(strategy)
            }
        })+
    };
}

strategies! {
    /// Random walk.
    Random(RandomWalk),
    /// PCT.
    Pct(Pct),
    /// RPro.
    RPro(RPro),
    /// Randomised stride.
    Stride(Stride),
    /// Partial order sampling.
    Pos(Pos),
    /// Selectively uniform random walk.
    Surw(Surw),
    /// Orders that were not seen yet.
    Idiom(Idiom),
    /// Depth-first search, preemption bounding, delay bounding.
    Systematic(Systematic),
    /// Random pauses.
    Noise(Noise),
    /// Several that take turns.
    Portfolio(Portfolio),
    /// A recorded schedule.
    Replay(Replay),
    /// Forced switches.
    Guided(Guided),
    /// Events in a given order.
    Ordered(Ordered),
    /// Any of the others, with somebody who listens.
    Overheard(Overheard),
}

impl AnyStrategy {
    /// The recorded schedule that is followed, if one is.
    pub fn as_replay(&self) -> Option<&Replay> {
        match self {
            AnyStrategy::Replay(replay) => Some(replay),
            AnyStrategy::Overheard(overheard) => overheard.inner().as_replay(),
            _ => None,
        }
    }
}
