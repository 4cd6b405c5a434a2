//! Reports: what a night found and what it guarantees, for people and for machines.
//!
//! Data in, text out: nothing here reads a file, asks the clock or opens a connection, so a report of stored data is the
//! same today and next year. [`model`] is what goes in.

pub mod chart;
pub mod confidence;
pub mod guarantee;
pub mod html;
pub mod junit;
pub mod markdown;
pub mod model;
pub mod night;
pub mod numbers;
pub mod page;
pub mod sarif;
pub mod shell;
mod sys;
pub mod text;
pub mod timeline;

pub use waylay_findings::{cause, escape};
