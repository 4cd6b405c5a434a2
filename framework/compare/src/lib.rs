//! Comparisons: strategies × tests × trials. What is run, how it is resumed, and what it says in the end.
//!
//! Nothing here starts a process or knows an operating system. In the order in which data flows:
//!
//! - [`config`]: a TOML file becomes strategies, tests and a budget
//! - [`plan`]: these become trials, each with a seed and a key of its own
//! - [`journal`]: what trials gave, one line each, so that a comparison that was killed goes on where it was
//! - [`runner`]: the trials that are left, on several threads; how one is run is the caller's
//! - [`statistics`]: medians and intervals
//! - [`results`]: cells, strategies and tests as numbers
//! - [`gate`]: what has to hold of them
//! - [`text`], [`markdown`], [`page`]: what people read

#![forbid(unsafe_code)]

pub mod config;
pub mod gate;
pub mod journal;
pub mod markdown;
pub mod page;
pub mod plan;
pub mod results;
pub mod runner;
pub mod statistics;
pub mod text;
