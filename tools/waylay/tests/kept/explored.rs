//! Programs as they come from the compiler, explored with nothing but a strategy and a number of schedules.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use waylay_schedule::promise::Promise;

use super::Kept;
use crate::support::Workplace;

/// A source and the depth of its bug; the first line of each says what it is. That what a thread spins for comes first is a
/// constraint like any other.
pub(crate) const ALL: [(&str, u32); 16] = [
    ("late.c", 2),
    ("long.c", 1),
    ("late_locks.c", 2),
    ("leaves.c", 2),
    ("destroyed.cpp", 3),
    ("yields.c", 3),
    ("looks.cpp", 3),
    ("tries.c", 3),
    ("freed.c", 2),
    ("expires.c", 3),
    ("gives_up.c", 1),
    ("handler.c", 2),
    ("phases.c", 2),
    ("wakes.cpp", 2),
    ("checks.rs", 2),
    ("torn.rs", 2),
];

/// Compiles a program without any flag that is ours.
pub(crate) fn build(place: &Workplace, file: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept/programs").join(file);
    let program = place.path().join(format!("{file}.program"));
    let (compiler, options): (_, &[&str]) = match file.rsplit_once('.') {
        Some((_, "rs")) => ("rustc", &["--edition=2024", "-O"]),
        Some((_, "cpp")) => ("g++", &["-std=c++20", "-O1", "-pthread"]),
        _ => ("gcc", &["-std=gnu17", "-O1", "-pthread"]),
    };
    let mut command = Command::new(compiler);
    let built = command.args(options).arg("-o").arg(&program).arg(source).output().expect("a compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program.to_str().expect("a plain path").to_owned()
}

pub(crate) fn summary(place: &Workplace, program: &str, strategy: &str, runs: u64) -> Value {
    let runs = runs.to_string();
    let options = [
        "explore",
        "--json",
        "--quiet",
        "--seed",
        "3",
        "--minimize",
        "off",
        "--strategy",
        strategy,
        "--runs",
        &runs,
    ];
    let ran = place.waylay(&[&options[..], &["--", program]].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}"))
}

pub(crate) fn keep(place: &Workplace, (file, depth): (&str, u32), strategy: &str, runs: u64) -> Kept {
    let program = place.path().join(format!("{file}.program"));
    let program = if program.exists() {
        program.to_str().expect("a plain path").to_owned()
    } else {
        build(place, file)
    };
    let summary = summary(place, &program, strategy, runs);
    let promises: Vec<Promise> =
        serde_json::from_value(summary["guarantees"].clone()).expect("promises as they are written");
    let (runs, found) = (&summary["runs"], &summary["failures"]);
    let counts = (runs.as_u64().expect("a number"), found.as_u64().expect("a number"));
    Kept::new((file, depth), strategy, counts, &promises)
}
