//! The Rust SDK: implement [`Test`], list the tests in [`export!`], build a `cdylib`, and Waylay runs it.
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker, ensure};
//!
//! /// Threads add to one counter; none of the additions may get lost.
//! struct Additions {
//!     batch: Distribution<u64>,
//!     sum: AtomicU64,
//! }
//!
//! impl Test for Additions {
//!     const NAME: &'static str = "additions";
//!     const ABOUT: &'static str = "an addition that is lost when threads add at the same time";
//!     const PARAMS: &'static [Param] = &[Param::new("batch", "{ uniform = { min = 1, max = 64 } }")];
//!
//!     fn create(context: &Context<'_>) -> Result<Self, Failed> {
//!         Ok(Self { batch: context.distribution("batch")?, sum: AtomicU64::new(0) })
//!     }
//!
//!     fn main(&self, worker: &Worker<'_>) -> Outcome {
//!         let batch = worker.draw(self.batch);
//!         let before = self.sum.fetch_add(batch, Ordering::Relaxed);
//!         let after = self.sum.load(Ordering::Relaxed);
//!         ensure!(after >= before + batch, "{after} is less than {before} + {batch}");
//!         Ok(())
//!     }
//! }
//!
//! waylay_plugin::export! { name: "sums", tests: [Additions] }
//! # fn main() {}
//! ```
//!
//! What you meet, in the order you meet it: [`Test`] and [`Param`] describe a test; [`Context`] is what the host does
//! for an instance and [`Worker`] what it does for one iteration; [`Distribution`] is where every number comes from;
//! [`Failed`] is how an iteration says that something is wrong, with `?`, [`ensure!`] or a panic; [`Shared`] and
//! [`Kind`] are objects that several tests work on; [`Worker::scope`] runs threads inside one iteration;
//! [`Stateless`] and [`Scenario`] are the two usual shapes of a test; [`Container`] is for a test that runs other tests,
//! and [`Hooks`] look into one.
//!
//! Not here: how tests are scheduled, watched and repeated. That is the host's, and a test cannot tell the difference.

mod boundary;
mod calls;
mod combine;
mod context;
mod describe;
mod distribution;
mod export;
mod failed;
mod frames;
mod generator;
mod hooks;
mod panic_site;
mod scenario;
mod shared;
mod stateless;
mod test;
mod threads;
mod worker;

pub use combine::{Contained, ContainedState, Container, Ran, Turn};
pub use context::{Context, Level, Reporter};
pub use distribution::{Distribution, Value};
pub use failed::{Failed, Outcome};
pub use generator::Generator;
pub use hooks::Hooks;
pub use scenario::{Group, Scenario};
pub use shared::{Kept, Kind, Lent, Shared};
pub use stateless::{Object, Stateless};
pub use test::{Param, Test};
pub use threads::{Scope, Thread};
pub use worker::Worker;

/// What [`export!`] expands to; not for other use.
#[doc(hidden)]
pub mod exported {
    pub use crate::boundary::{create_instance, destroy_instance};
    pub use crate::describe::{Described, KindEntry, Table, TestEntry, check_names};
    pub use crate::hooks::HooksEntry;
    pub use waylay_abi as abi;
}

/// The Rust example of the page compiles. Not part of what generated projects build, so the path need not exist there.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/plugins.md")]
struct Page;
