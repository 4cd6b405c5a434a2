//! Published Rust crates at versions with a published concurrency bug, found from small tests that know nothing of us:
//! `cargo bench -p waylay --bench advisories [-- RUNS]`.
//!
//! Each test is a Cargo project of its own, twice: with the version that the advisory is about, and with the one that
//! fixes it. The first has to fail within [`FOUND_WITHIN`] schedules, the second must be clean for 100,000, or for as many
//! as are asked for.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Test, advisory, crate with the two versions.
const ADVISORIES: [(&str, &str, &str); 3] = [
    ("channel", "RUSTSEC-2025-0024", "crossbeam-channel 0.5.14, 0.5.15"),
    ("oneshot", "RUSTSEC-2021-0124", "tokio 1.13.0, 1.13.1"),
    ("deque", "RUSTSEC-2021-0093", "crossbeam-deque 0.8.0, 0.8.1"),
];
const FOUND_WITHIN: u64 = 5_000;
const CLEAN_FOR: u64 = 100_000;

/// Builds a test; none when its crates can be had neither from the network nor from Cargo's own store.
fn build(test: &str, version: &str) -> Option<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/advisories").join(test).join(version);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("advisories").join(test).join(version);
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--locked", "--quiet"]).current_dir(project);
    command.env("CARGO_TARGET_DIR", &target).env_remove("RUSTFLAGS");
    command
        .status()
        .is_ok_and(|status| status.success())
        .then(|| target.join(format!("release/advisory-{test}")))
}

fn explore(program: &Path, runs: u64, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_waylay"))
        .args([
            "explore",
            "--json",
            "--quiet",
            "--seed",
            "1",
            "--strategy",
            "pos",
            "--runs",
            &runs.to_string(),
        ])
        .args(more)
        .arg("--")
        .arg(program)
        .current_dir(folder.path())
        .output()
        .expect("waylay starts");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn main() {
    let asked = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let clean_for = asked.unwrap_or(CLEAN_FOR);
    let mut wrong = 0;
    for (test, advisory, versions) in ADVISORIES {
        let (Some(broken), Some(fixed)) = (build(test, "broken"), build(test, "fixed")) else {
            println!("{advisory}  {versions}: cannot be built here");
            continue;
        };
        let found = explore(&broken, FOUND_WITHIN, &["--stop-on-first"]);
        let clean = explore(&fixed, clean_for, &[]);
        wrong += u32::from(found["failures"] == 0 || clean["failures"] != 0);
        println!("{advisory}  {versions}");
        println!(
            "    found in schedule {} (n = {}, k = {}): {}",
            found["first_failure_run"],
            found["threads"],
            found["steps"],
            found["found"][0]["what"].as_str().unwrap_or("nothing")
        );
        println!("    fixed: {} failures in {} schedules", clean["failures"], clean["runs"]);
    }
    assert_eq!(wrong, 0, "advisories for which versions were not told apart");
}
