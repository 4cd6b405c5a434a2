//! Strategies that decide which thread runs next: pure, deterministic, seeded.
//!
//! One question is answered here: given the enabled threads and the event each is about to do, who runs next? Nothing
//! here knows an operating system, starts a thread or reads a clock; the controller reports what happens and carries
//! the answer out.
//!
//! To read: [`event`] (what threads are about to do), [`run`] (what a run is given and what comes out), [`strategy`]
//! (the conversation with the controller), then one file per strategy: [`random_walk`], [`pct`] and [`rpro`] over
//! [`prioritized`] and [`priority`], [`stride`], [`pos`], [`surw`], [`idiom`], [`systematic`], [`noise`], [`portfolio`], [`replay`], [`guided`], [`ordered`].
//! [`spec`] names them in text, [`bound`] and [`guarantee`] say what they promise, [`ledger`] what that leaves out, [`schedule`], [`trace`] and
//! [`conversation`] hold what happened, [`happened`], [`orders`] and [`coverage`] which events came in which order. All chance comes through [`source`].

#![forbid(unsafe_code)]

pub mod any;
pub mod bound;
pub mod census;
pub mod conflicts;
pub mod conversation;
pub mod coverage;
pub mod depth;
pub mod event;
pub mod guarantee;
pub mod guided;
pub mod happened;
pub mod idiom;
pub mod learned;
pub mod ledger;
pub mod meeting;
pub mod named;
pub mod noise;
pub mod ordered;
pub mod orders;
pub mod pct;
pub mod portfolio;
pub mod pos;
pub mod prioritized;
pub mod priority;
pub mod promise;
pub mod random_walk;
pub mod ready;
pub mod replay;
pub mod rotation;
pub mod rpro;
pub mod run;
pub mod schedule;
pub mod shard;
pub mod source;
pub mod spec;
mod spec_text;
pub mod strategy;
pub mod stride;
pub mod surw;
pub mod systematic;
pub mod tournament;
pub mod trace;
pub mod weights;

pub use any::AnyStrategy;
pub use conversation::{Disagreement, Listener, Overheard, Said, retell};
pub use event::{Event, EventKind, ObjectId, Space, ThreadId};
pub use guarantee::Guarantee;
pub use guided::Guided;
pub use random_walk::RandomWalk;
pub use replay::{Divergence, Replay};
pub use run::{Focus, Handover, Outcome, Run, RunParameters, RunReport, Seed};
pub use schedule::{DecodeError, Schedule, Segment, Switch, Turn};
pub use shard::Shard;
pub use source::{ChaCha, Source};
pub use spec::Spec;
pub use spec_text::SpecError;
pub use strategy::Strategy;
pub use trace::{Step, Trace};
