//! What the README promises about the foundation, measured and printed as one table.
//!
//!     cargo bench -p waylay              everything, a few minutes
//!     cargo bench -p waylay -- quick     without leak tracking
//!
//! Every figure is taken from the real command run on real plugins. The last column says whether the promise holds on
//! this machine now; the exit code says whether all do.

mod campaign;
mod failures;
mod hang;
mod iteration;
mod strict;

use std::process::{Command, ExitCode};

/// One line of the table.
pub(crate) struct Line {
    pub(crate) what: String,
    pub(crate) measured: String,
    pub(crate) promised: &'static str,
    pub(crate) holds: bool,
}

fn main() -> ExitCode {
    let quick = std::env::args().any(|argument| argument == "quick");
    let mut lines = Vec::new();
    for (name, measure) in [
        ("iterations", iteration::measure as fn() -> Vec<Line>),
        ("strict schedules", strict::measure),
        ("hangs", hang::measure),
        ("ten thousand failures", failures::measure),
    ] {
        eprintln!("measuring {name} …");
        lines.extend(measure());
    }
    println!("{:<58} {:>24}  {:<22} holds", "", "measured", "promised");
    for line in &lines {
        let holds = if line.holds { "yes" } else { "NO" };
        println!("{:<58} {:>24}  {:<22} {holds}", line.what, line.measured, line.promised);
    }
    let mut all = lines.iter().all(|line| line.holds);
    if !quick {
        println!("\nleak tracking (cargo bench -p waylay-control --bench heap)");
        for extra in [&[][..], &["--", "detect"]] {
            let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
            let status = Command::new(cargo)
                .args(["bench", "-q", "-p", "waylay-control", "--bench", "heap"])
                .args(extra)
                .status();
            all &= status.is_ok_and(|status| status.success());
        }
    }
    if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
