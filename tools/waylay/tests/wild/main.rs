//! Programs as they are found in the wild, through `waylay explore` with nothing but a seed: what is wrong is found and
//! confirmed, what is right stays clean, and nothing hangs.
//!
//! The first line of each program says what is expected: `clean`, or a kind and a part of what is reported. The seed is fixed, so
//! that the tests cannot fail by chance: in each program that has a bug, the last of its failures that differ is seen for the
//! first time by run 16, so 40 runs show all of them and that nothing else is reported. A clean one has 100, of each build.

#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::Workplace;

/// Ways to build a program.
const BUILDS: [&[&str]; 2] = [&["-O0", "-g"], &["-O2"]];

fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wild/programs");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the programs are there")
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension != "h"));
    files.sort();
    files
}

fn build(place: &Workplace, source: &Path, options: &[&str]) -> String {
    let (compiler, standard) = match source.extension().and_then(|extension| extension.to_str()) {
        Some("cpp") => ("g++", "-std=c++20"),
        _ => ("gcc", "-std=gnu17"),
    };
    let program = place.path().join("program");
    let name = source.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let threads = if name.starts_with("openmp_") { "-fopenmp" } else { "-pthread" };
    let built = Command::new(compiler)
        .args([standard, threads, "-w"])
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .output()
        .expect("a compiler is installed");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program.to_str().expect("a plain path").to_owned()
}

fn explore(place: &Workplace, options: &[&str], program: &str) -> Value {
    // What fails is confirmed all the same; minimising each program would take longer than finding its bug.
    let mut arguments = vec!["explore", "--json", "--seed", "7", "--minimize", "off"];
    arguments.extend(options);
    arguments.extend(["--", program]);
    let ran = place.waylay(&arguments);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{program}: {error}: {ran:#?}"))
}

/// Runs of a program whose runs take long by themselves, and how long one may take.
fn slow(source: &Path) -> Option<(&'static str, &'static str)> {
    match source.file_stem().and_then(|stem| stem.to_str())? {
        "spins_for_ever" => Some(("1", QUICK)),
        "fifteen_hundred_threads" => Some(("2", "60s")),
        "waits_for_each_other" => Some(("8", QUICK)),
        "much_output" => Some(("20", QUICK)),
        // A thread that computes is recognised by the processor time that it has used, which is slow in coming on a busy machine.
        "waits_for_a_plain_variable" | "cancelled_anywhere" => Some(("5", "60s")),
        _ => None,
    }
}

/// How long a run may take that takes no time by itself.
const QUICK: &str = "4s";

fn check(source: &Path, options: &[&str]) {
    let text = std::fs::read_to_string(source).expect("a program");
    let expected = text.lines().next().unwrap_or_default().trim_start_matches("// ").to_owned();
    let name = format!("{} {options:?}", source.file_name().unwrap_or_default().display());
    let place = Workplace::new();
    let program = build(&place, source, options);
    let usual = if expected == "clean" { "100" } else { "40" };
    let (runs, timeout) = slow(source).unwrap_or((usual, QUICK));
    let summary = explore(&place, &["--runs", runs, "--timeout", timeout, "--isolate"], &program);
    let found = summary["found"].as_array().unwrap_or_else(|| panic!("{name}: {summary:#}"));
    if expected == "clean" {
        assert!(found.is_empty(), "{name}: {summary:#}");
        assert_eq!(summary["runs"].as_u64(), runs.parse().ok(), "{name}: {summary:#}");
        return;
    }
    let (kind, part) = expected.trim_start_matches("finds: ").split_once(' ').expect("a kind and a part");
    assert!(!found.is_empty(), "{name}: nothing found: {summary:#}");
    assert!(found.iter().all(|one| one["confirmed"] == true), "{name}: {summary:#}");
    assert!(found.iter().all(|one| one["kind"] == kind), "{name}: {summary:#}");
    let what = |one: &Value| one["what"].as_str().is_some_and(|what| what.contains(part));
    assert!(found.iter().any(what), "{name}: {part} is not in {summary:#}");
}

#[test]
fn built_for_debugging() {
    programs().iter().for_each(|source| check(source, BUILDS[0]));
}

#[test]
fn built_for_speed() {
    // Those that take long by themselves do the same as before.
    let quick = programs().into_iter().filter(|source| slow(source).is_none());
    quick.for_each(|source| check(&source, BUILDS[1]));
}

#[test]
fn built_with_a_sanitizer() {
    let named = |name: &str| programs().into_iter().find(|file| file.ends_with(name)).expect("a program");
    let asan: &[&str] = &["-O1", "-g", "-fsanitize=address"];
    for (name, report) in [
        ("write_after_free.c", "heap-use-after-free"),
        ("freed_twice_without_a_lock.c", "double-free"),
        ("overflow_of_a_stale_length.c", "heap-buffer-overflow"),
    ] {
        let place = Workplace::new();
        let program = build(&place, &named(name), asan);
        let summary = explore(&place, &["--runs", "40", "--timeout", QUICK], &program);
        let found = &summary["found"][0];
        assert_eq!(
            (&found["kind"], &found["confirmed"]),
            (&Value::from("crash"), &Value::from(true)),
            "{summary:#}"
        );
        assert!(found["what"].as_str().is_some_and(|what| what.contains(report)), "{name}: {summary:#}");
    }
    for name in ["grows_and_shrinks.c", "daemon_that_waits.c", "starts_processes.c"] {
        check(&named(name), asan);
    }
}

#[test]
fn calls_and_guard_can_be_switched_off() {
    let place = Workplace::new();
    let source = programs().into_iter().find(|file| file.ends_with("freed_twice_without_a_lock.c")).unwrap();
    let program = build(&place, &source, BUILDS[0]);
    // Without steps at `free`, and at the accesses around it, the two threads run one after the other, whole.
    let summary =
        explore(&place, &["--runs", "200", "--timeout", QUICK, "--no-calls", "--level", "atomics"], &program);
    assert_eq!(summary["failures"], 0, "{summary:#}");
    // Without the guard it is libc that notices, here or there.
    let summary = explore(&place, &["--runs", "40", "--timeout", QUICK, "--no-guard"], &program);
    let what = summary["found"][0]["what"].as_str().expect("a failure");
    assert!(what.starts_with("SIGABRT: ") && !what.contains("freed them"), "{summary:#}");
}
