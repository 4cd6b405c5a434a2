//! Suites of unit tests: every case is a program of its own.
//!
//! In the order in which data flows:
//!
//! - [`framework`]: how a binary is recognised, lists its cases, and runs one; `cases`: names in what frameworks print;
//!   [`harness`]: the arguments of `cargo test`'s own
//! - [`passing`], `expression`: when a test of a build folder passes, and regular expressions as CMake knows them;
//!   [`fixtures`]: what has to be set up before one
//! - [`binary`]: the cases of a binary; [`folder`]: those of a build folder of CMake or Meson
//! - [`first_pass`]: which cases start threads
//! - [`together`]: all of these explored, the time shared among them
//! - [`message`]: what a case said of its failure
//! - [`summary`]: what people and machines are told

pub mod binary;
mod cases;
mod expression;
pub mod first_pass;
pub mod fixtures;
pub mod folder;
pub mod framework;
pub mod harness;
pub mod message;
pub mod passing;
pub mod summary;
pub mod together;

use std::path::PathBuf;

use crate::program::{Program, ProgramError};
use fixtures::Fixtures;
use framework::Framework;
use passing::Passing;

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name within its suite.
    pub name: String,
    /// What runs it, alone.
    pub program: Program,
    /// Threads that it has when it starts none.
    pub own_threads: u32,
    /// When it passes, if its status does not say so by itself.
    pub passing: Option<Passing>,
    /// The fixtures that have to be set up for it.
    pub needs: Vec<String>,
}

/// Cases that belong together: those of one binary, or of one build folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// Its name: the binary's without what Cargo appends, or the folder's.
    pub name: String,
    /// What lists and runs its cases.
    pub kind: SuiteKind,
    /// The cases.
    pub cases: Vec<Case>,
    /// What can be set up for them.
    pub fixtures: Fixtures,
}

/// What lists and runs the cases of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SuiteKind {
    /// A framework, in one binary: the binary, and the user's own arguments.
    Binary(Framework, Box<Program>),
    /// A tool that runs programs: CTest or Meson.
    Folder(&'static str),
}

impl Suite {
    /// Calls it, and all that its cases are known by, something else.
    pub fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.name);
        self.cases.iter_mut().for_each(|case| case.program.suite = Some(name.to_owned()));
    }

    /// What lists and runs its cases, for people.
    pub fn kind_name(&self) -> &'static str {
        match &self.kind {
            SuiteKind::Binary(framework, _) => framework.name(),
            SuiteKind::Folder(tool) => tool,
        }
    }
}

/// Why there is no suite.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SuiteError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("{} is no suite of a framework that Waylay knows (libtest, GoogleTest, Catch2, doctest, Boost.Test)", .0.display())]
    NoSuite(PathBuf),
    #[error("{} has the marks of {framework}, but does not list its cases: {why}", .file.display())]
    NoList { file: PathBuf, framework: &'static str, why: String },
    #[error("{} is no build folder of CMake or Meson: there is no CTestTestfile.cmake and no meson-info in it", .0.display())]
    NoFolder(PathBuf),
    #[error("cannot ask {tool} for the tests of {}: {why}", .folder.display())]
    Tool { tool: &'static str, folder: PathBuf, why: String },
}
