//! The race detector: programs whose threads are ordered in every way that their language offers, and the same with the
//! order left out. What is ordered must never be reported, what is not must be.
//!
//! Built as they are (the accesses are patched; debug information says which are atomic) and for Waylay (the compiler
//! says it). Runs are a pure function of the seed, which is fixed, so nothing here fails by chance.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::Workplace;

/// Schedules that what is ordered is looked at for, and within which a race has to be seen. It is seen in any schedule in
/// which both accesses are made and no lock happens to order them, so in one of a few: 40 would miss one that every
/// second schedule shows in fewer than one of 1e12 seeds.
const RUNS: &str = "40";

const C: [&str; 20] = [
    "mutex",
    "trylock",
    "rwlock",
    "spinlock",
    "condition",
    "barrier",
    "semaphore",
    "once",
    "pipe",
    "join",
    "release",
    "waiting",
    "sequential",
    "own-lock",
    "pointer",
    "heap",
    "stack",
    "signal",
    "owners",
    "count",
];
const CPP: [&str; 9] = [
    "shared-mutex",
    "condition",
    "static",
    "call-once",
    "shared-pointer",
    "promise",
    "ring",
    "latch",
    "owners",
];
const RUST: [&str; 7] = ["mutex", "channel", "once", "arc", "release", "park", "owners"];

fn run(command: &mut Command) {
    let ran = command.output().expect("the compiler is installed");
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

fn source(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/races").join(file)
}

/// Builds a program as it is.
fn build(place: &Workplace, file: &str, options: &[&str]) -> String {
    let program = place.path().join(format!("{file}{}.out", options.concat()));
    let (compiler, language): (_, &[&str]) = match file.rsplit_once('.') {
        Some((_, "rs")) => ("rustc", &["--edition=2024"]),
        Some((_, "cpp")) => ("g++", &["-std=c++20", "-pthread"]),
        _ => ("gcc", &["-std=gnu17", "-pthread"]),
    };
    run(Command::new(compiler).args(language).args(options).arg("-o").arg(&program).arg(source(file)));
    program.to_str().expect("a plain path").to_owned()
}

fn flags(place: &Workplace, command: &[&str]) -> Vec<String> {
    let ran = place.waylay(command);
    assert!(ran.status.success(), "{ran:#?}");
    ran.stdout.split_whitespace().map(str::to_owned).collect()
}

/// Builds a program for Waylay; without debug information, which nothing depends on then.
fn build_for_waylay(place: &Workplace, compiler: &str, file: &str) -> String {
    let program = place.path().join(format!("{file}.{compiler}"));
    if file.ends_with(".rs") {
        let flags = flags(place, &["rustflags"]);
        let target = ["--edition=2024", "-O", "--target", "x86_64-unknown-linux-gnu"];
        run(Command::new("rustc").args(target).args(flags).arg("-o").arg(&program).arg(source(file)));
    } else {
        let object = program.with_extension("o");
        let standard = if file.ends_with(".cpp") { "-std=c++20" } else { "-std=gnu17" };
        let cflags = flags(place, &["cflags", "--compiler", compiler]);
        let mut compile = Command::new(compiler);
        compile.args([standard, "-O1", "-pthread", "-c"]).args(cflags);
        run(compile.arg(source(file)).arg("-o").arg(&object));
        let ldflags = flags(place, &["ldflags"]);
        run(Command::new(compiler).arg(&object).args(ldflags).args(["-pthread", "-o"]).arg(&program));
    }
    program.to_str().expect("a plain path").to_owned()
}

fn explore(place: &Workplace, options: &[&str], program: &[&str]) -> (Option<i32>, Value, String) {
    let command = ["explore", "--json", "--quiet", "--races", "--seed", "1", "--runs", RUNS];
    let ran = place.waylay(&[&command, options, &["--"], program].concat());
    let summary = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}"));
    (ran.status.code(), summary, ran.stderr)
}

/// Nothing is reported of these ways, and a race of each with the order left out.
fn told_apart(place: &Workplace, program: &str, ways: &[&str]) {
    for way in ways {
        let (code, clean, _) = explore(place, &[], &[program, way]);
        assert_eq!((code, &clean["failures"]), (Some(0), &0.into()), "{program} {way}: {clean:#}");
        let (code, found, text) = explore(place, &["--stop-on-first"], &[program, way, "broken"]);
        assert_eq!((code, &found["kind"]), (Some(1), &"race".into()), "{program} {way}: {found:#}");
        let first = &found["found"][0];
        assert_eq!(first["confirmed"], true, "{program} {way}: {found:#}");
        for access in ["first", "second"] {
            let stack = first["race"][access]["stack"].as_array().expect("a stack");
            assert!(!stack.is_empty(), "{program} {way}: {found:#}");
        }
        assert!(text.contains("nothing orders the two"), "{text}");
    }
}

#[test]
fn c_as_it_is() {
    let place = Workplace::new();
    told_apart(&place, &build(&place, "ways.c", &["-g", "-O2"]), &C);
}

/// The runtime orders threads by accesses that look like any other, in a library of the system.
#[test]
fn openmp_as_it_is() {
    let place = Workplace::new();
    let program = build(&place, "openmp.c", &["-g", "-O2", "-fopenmp"]);
    told_apart(&place, &program, &["reduction", "critical", "barrier", "lock", "task"]);
}

/// The runtime frees what it counts tasks in, while another of its threads has just looked at that: nothing of the program's.
#[test]
fn what_a_runtime_does_to_its_own_memory_is_not_told() {
    let place = Workplace::new();
    let program = build(&place, "taskgroup.c", &["-g", "-O1", "-fopenmp"]);
    let (code, clean, _) = explore(&place, &[], &[&program]);
    assert_eq!((code, &clean["failures"]), (Some(0), &0.into()), "{clean:#}");
}

/// A plain access races with an atomic one, where it is certain that it is plain; where a compiler may have made one
/// instruction of both it is not told.
#[test]
fn atomic_and_plain() {
    let place = Workplace::new();
    for level in ["-O1", "-O2"] {
        let (plain, atomic) =
            (build(&place, "mixed.c", &["-g", level]), build(&place, "atomic.c", &["-g", level, "-fopenmp"]));
        for way in ["read", "write", "add"] {
            let (code, found, _) = explore(&place, &["--stop-on-first"], &[&plain, way]);
            assert_eq!((code, &found["kind"]), (Some(1), &"race".into()), "{level} {way}: {found:#}");
            let accesses = found["found"][0]["race"].to_string();
            assert!(accesses.contains("\"atomic update\""), "{level} {way}: {found:#}");
        }
        for way in ["read", "write", "directive", "merged", "merged-directive", "stored"] {
            let (code, clean, _) = explore(&place, &[], &[&atomic, way]);
            assert_eq!((code, &clean["failures"]), (Some(0), &0.into()), "{level} {way}: {clean:#}");
        }
    }
}

#[test]
fn cpp_as_it_is() {
    let place = Workplace::new();
    told_apart(&place, &build(&place, "ways.cpp", &["-g", "-O2"]), &CPP);
}

#[test]
fn rust_as_it_is() {
    let place = Workplace::new();
    // A channel without a receiver is an error of its own there.
    let ways: Vec<&str> = RUST.into_iter().filter(|way| *way != "channel").collect();
    let program = build(&place, "ways.rs", &["-g", "-O"]);
    told_apart(&place, &program, &ways);
    let (code, clean, _) = explore(&place, &[], &[&program, "channel"]);
    assert_eq!(code, Some(0), "{clean:#}");
}

#[test]
fn compiled_for_it() {
    let place = Workplace::new();
    told_apart(
        &place,
        &build_for_waylay(&place, "gcc", "ways.c"),
        &["mutex", "release", "waiting", "pointer", "pipe", "annotation", "owners"],
    );
    told_apart(
        &place,
        &build_for_waylay(&place, "g++", "ways.cpp"),
        &["static", "ring", "promise", "shared-pointer", "owners"],
    );
    told_apart(&place, &build_for_waylay(&place, "rustc", "ways.rs"), &["mutex", "arc", "pointer", "owners"]);
    if Command::new("clang").arg("--version").output().is_ok() {
        told_apart(&place, &build_for_waylay(&place, "clang", "ways.c"), &["mutex", "release"]);
    }
}

/// A compiler says which memory orders the program names, and the language says what they order. Where nobody says it, each
/// orders as much as any could.
#[test]
fn memory_orders_count_where_they_are_known() {
    const ORDERS: [&str; 7] = ["release", "acquire", "fences", "updates", "own-lock", "pointer", "owners"];
    let place = Workplace::new();
    told_apart(&place, &build_for_waylay(&place, "gcc", "orders.c"), &ORDERS);
    if Command::new("clang").arg("--version").output().is_ok() {
        told_apart(&place, &build_for_waylay(&place, "clang", "orders.c"), &["release", "fences"]);
    }
    told_apart(
        &place,
        &build_for_waylay(&place, "rustc", "orders.rs"),
        &["release", "exchange", "fences", "claim"],
    );
    let program = build(&place, "orders.c", &["-g", "-O2"]);
    for way in ["release", "acquire"] {
        let (code, clean, _) = explore(&place, &[], &[&program, way, "broken"]);
        assert_eq!((code, &clean["failures"]), (Some(0), &0.into()), "{way}: {clean:#}");
    }
}

/// A free is told as one, with the stacks of both.
#[test]
fn a_free_is_told_as_one() {
    let place = Workplace::new();
    let program = build(&place, "ways.c", &["-g", "-O1"]);
    let (_, found, text) = explore(&place, &["--stop-on-first"], &[&program, "owners", "broken"]);
    let race = &found["found"][0]["race"];
    let accesses = ["first", "second"].map(|access| race[access]["access"].as_str().unwrap_or_default());
    assert!(accesses.contains(&"free") && accesses.contains(&"read"), "{found:#}");
    assert!(text.contains("freed in with_owners (ways.c:") && text.contains("reads it"), "{text}");
}

/// What is beyond the memory that is looked at is said.
#[test]
fn a_run_that_touches_too_much_memory_is_not_called_clean() {
    let place = Workplace::new();
    let program = build(&place, "large.c", &["-g", "-O1"]);
    let note = |megabytes: &str| {
        let options = ["explore", "--json", "--quiet", "--races", "--runs", "1", "--timeout", "120s"];
        let ran = place.waylay(&[&options[..], &["--", &program, megabytes]].concat());
        let summary: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}"));
        assert_eq!(ran.status.code(), Some(0), "{summary:#}");
        let noted = summary["notes"].to_string().contains("touched more than 12 MiB");
        assert_eq!(summary["races_over"].as_u64() > Some(0), noted, "{summary:#}");
        noted
    };
    assert!(!note("5") && note("13"));
}

/// Every pair once, each with what it is about; the same for any number of jobs; the same again from what was stored.
#[test]
fn each_is_told_once_and_can_be_run_again() {
    let place = Workplace::new();
    let program = build(&place, "account.c", &["-g", "-O0"]);
    let (code, found, text) = explore(&place, &[], &[&program]);
    assert_eq!((code, found["found"].as_array().map(Vec::len)), (Some(1), Some(2)), "{found:#}");
    let race = |memory: &str| {
        let all = found["found"].as_array().expect("a list").iter();
        all.clone().find(|found| found["race"]["memory"].as_str().expect("a text").contains(memory))
    };
    let counter = race("visits").expect("a global variable");
    let held = |access: &str| counter["race"][access]["locks"].as_array().expect("a list").len();
    assert_eq!(held("first") + held("second"), 1, "one of them holds the lock: {counter:#}");
    assert!(counter["race"].to_string().contains("\"guard\""), "{counter:#}");
    let heap = race("a heap block of 16 bytes").expect("a block");
    let memory = heap["race"]["memory"].as_str().expect("a text");
    assert!(memory.contains("byte 8") && memory.contains("open_account (account.c:"), "{memory}");
    assert!(heap["race"]["second"]["stack"].as_array().expect("a stack").len() >= 2, "{heap:#}");
    assert!(text.contains("thread") && text.contains("deposit (account.c:"), "{text}");

    let (_, several, _) = explore(&place, &["--jobs", "3"], &[&program]);
    let known = |summary: &Value| {
        let all = summary["found"].as_array().expect("a list").iter();
        let mut known: Vec<(String, u64)> = all
            .map(|found| (found["signature"].to_string(), found["first_run"].as_u64().expect("a number")))
            .collect();
        known.sort();
        known
    };
    assert_eq!(known(&found), known(&several));

    for found in found["found"].as_array().expect("a list") {
        let folder = found["failure_dir"].as_str().expect("a folder");
        let again = place.waylay(&["replay", "--json", folder, "--times", "3"]);
        let again: Value = serde_json::from_str(&again.stdout).expect("JSON");
        assert_eq!((&again["reproduced"], &again["diverged"]), (&3.into(), &0.into()), "{again:#}");
        let shown = place.waylay(&["show", folder]);
        assert!(shown.stdout.contains("data race on"), "{shown:#?}");
    }
    let report = place.path().join("report.sarif");
    place.waylay(&["report", "--sarif", report.to_str().expect("a plain path")]);
    let sarif = std::fs::read_to_string(&report).expect("a report");
    assert!(sarif.contains("\"ruleId\": \"race\"") || sarif.contains("\"ruleId\":\"race\""), "{sarif}");
}

/// Without debug information it cannot be told whether a move is atomic: nothing is claimed, and that is said. Two updates
/// without a lock lose one of them, whatever they are.
#[test]
fn what_cannot_be_told_is_not_claimed() {
    let place = Workplace::new();
    let program = build(&place, "ways.c", &["-O2", "-s"]);
    let (code, clean, _) = explore(&place, &[], &[&program, "release"]);
    assert_eq!(code, Some(0), "{clean:#}");
    assert!(clean["doubtful_races"].as_u64() > Some(0), "{clean:#}");
    assert!(clean["notes"].to_string().contains("may be atomic"), "{clean:#}");
    let (code, found, _) = explore(&place, &[], &[&program, "mutex", "broken"]);
    assert_eq!((code, &found["kind"]), (Some(1), &"race".into()), "{found:#}");
}

#[test]
fn it_is_off_unless_asked_for_and_needs_accesses() {
    let place = Workplace::new();
    let program = build(&place, "ways.c", &["-O0"]);
    let quiet =
        ["explore", "--json", "--quiet", "--runs", RUNS, "--seed", "1", "--", &program, "mutex", "broken"];
    let ran = place.waylay(&quiet);
    assert_eq!(ran.status.code(), Some(0), "{ran:#?}");
    let ran = place.waylay(&["explore", "--races", "--level", "atomics", "--", &program, "mutex"]);
    assert_eq!(ran.status.code(), Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("--races needs --level auto or memory"), "{ran:#?}");
    let ran = place.waylay(&["explore", "--races", "--patch", "none", "--", &program, "mutex"]);
    assert_eq!(ran.status.code(), Some(2), "{ran:#?}");
}
