//! A controlled run above one system: what a step does, who gets the token next, how a run ends and what is told of it.
//!
//! Exactly one logical thread holds the *token* and executes program code under control; only the token's holder touches
//! the [`Run`]. A [`Token`] is a value, which the functions here are given. A choice of `waylay-scheduler` passes the token
//! on. How a thread is parked and woken, which functions and instructions become steps, and what happens around a run is the
//! system's: a [`Platform`], which `waylay-control` and `waylay-control-windows` each implement once. Policy lives below
//! (`waylay-scheduler`, `waylay-accesses`), mechanism above; here is the order in which the two are asked. In the order in
//! which to read them:
//!
//! - [`platform`]: what a system has to bring
//! - [`run`]: what a run consists of; [`token`]: who may touch it
//! - [`point`]: what the interposed functions call: steps and waits of the running thread
//! - [`program`]: code of the program that the library calls
//! - [`handover`]: whom a choice gives the token, also when nobody can run for the moment
//! - [`posix`]: objects of POSIX threads; [`outside`]: threads that are not under control
//! - [`edge`]: what orders threads, told to whoever looks at accesses
//! - [`session`], [`in_process`]: beginning runs, and run after run in one process; [`closing`]: what a run leaves running
//! - [`ending`]: how a run ends; [`inspect`]: stacks of suspended threads; [`text`]: words without the heap

pub mod closing;
pub mod edge;
pub mod ending;
pub mod handover;
pub mod in_process;
pub mod inspect;
pub mod outside;
pub mod platform;
pub mod point;
pub mod posix;
pub mod program;
pub mod run;
pub mod session;
pub mod text;
pub mod token;

pub use platform::{Platform, Stacks, Thread};
pub use run::{Run, Shared, Slot};
pub use token::Token;
