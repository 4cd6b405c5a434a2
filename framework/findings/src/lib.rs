//! What a failure is, once, for whoever finds, keeps, compares or shows one.
//!
//! The modules in reading order; each needs only those above it:
//!
//! - [`escape`]: text of programs under test made harmless for the format that it is put into
//! - [`kind`]: what can break, with everything that reports say about a kind
//! - [`cause`]: the orders of events that a failure needs
//! - [`machine`], [`environment`]: the machine that it was seen on
//! - [`mod@test`]: the numbers of a test
//! - [`mod@format`]: versions of what is stored
//! - [`failure`]: one failure, all of its occurrences, and `failure.json`
//!
//! Nothing here starts, watches or suspends a process, and nothing here knows a campaign.
//!
//! # Example
//!
//! ```
//! use waylay_findings::{Evidence, Kind, Severity};
//!
//! let kind = Kind::from_word("deadlock").unwrap();
//! assert_eq!(kind.severity(), Severity::Error);
//! assert_eq!(kind.evidence(), Evidence::SeveralThreads);
//! println!("{kind}: {}", kind.meaning());
//! ```

pub mod escape;

pub mod kind;

pub mod cause;
pub mod machine;

pub mod environment;

pub mod format;
pub mod test;

pub mod failure;

pub use environment::Environment;
pub use failure::{
    FailureEntry, Finding, Occurrence, PotView, RandomizerTrace, RunningView, Signature, Variant, WorkerView,
    aliases, load_failure,
};
pub use kind::{Evidence, Kind, Severity};
pub use test::{BoundRecord, PotShare, StrictNumbers, TestRecord};
