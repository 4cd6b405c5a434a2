//! The nightly service: campaigns in time windows, a dashboard, metrics, messages about new failures, retention.
//!
//! One thread runs campaigns, as `waylay run` does, and waits for windows in between; another one, of lower priority,
//! serves the dashboard. They share the [`board`], on which the first notes how things stand, and the history, which the
//! first fills and the other reads. What is served costs the campaign the rendering of one page per second, however
//! many people look.
//!
//! In the order in which data flows:
//!
//! - [`config`]: a TOML file becomes what is to be done
//! - [`window`], [`rotation`], [`stop`]: when, what next, and when it is enough; pure
//! - [`runner`]: who runs a turn
//! - [`serve`](mod@serve): the loop over all of these; [`fleet`]: turns on an engine
//! - [`reporter`]: hears of a campaign, and tells the board and the [`log`]
//! - [`web`]: the dashboard; [`metrics`]: the numbers that machines read
//! - [`webhook`]: tells somebody of new failures
//! - [`manager`]: systemd and the Windows service manager

pub mod board;
pub mod config;
pub mod fleet;
pub mod log;
pub mod manager;
pub mod metrics;
mod reopen;
pub mod reporter;
pub mod rotation;
pub mod runner;
pub mod serve;
pub mod stop;
mod sys;
pub mod web;
pub mod webhook;
pub mod window;
