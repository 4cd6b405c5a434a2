//! `waylay doctor` on Windows: suspending, stacks, the compiler.

use std::process::{Command, Stdio};

use waylay_driver::catalog::Installation;

use super::{Check, Health, check, tool, tracing};

/// What this machine allows.
pub(super) fn machine_checks(_installation: &Installation) -> Vec<Check> {
    vec![other_processes(), compiler()]
}

/// Whoever may open a process may suspend its threads; there are no settings for that.
pub(super) fn tracing_limits() -> Vec<Check> {
    Vec::new()
}

/// Looked at is a host that waits for its plan.
fn other_processes() -> Check {
    const NAME: &str = "other processes";
    match std::env::current_exe() {
        Ok(own) => tracing(NAME, Command::new(own).arg("host").stdin(Stdio::piped())),
        Err(error) => check(NAME, Health::Limited, format!("could not be tried: {error}")),
    }
}

fn compiler() -> Check {
    tool("C compiler", "gcc", "gcc is not on PATH: plugins in C and C++ cannot be built here with mingw")
}
