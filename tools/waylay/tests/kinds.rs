//! Every kind of failure is found, called by its name, recorded once, and its evidence is complete.

mod support;

use support::{Failure, REPLAY_SCRIPT, Ran, SYSTEM, Workplace, list, number, text};

const RUST: &str = "waylay_faults";
const C: &str = "waylay_faults_c";
const CPP: &str = "waylay_faults_cpp";

/// One test that fails, and how that must be told.
struct Expected {
    plugin: &'static str,
    test: &'static str,
    kind: &'static str,
    /// Part of the line that says what happened.
    what: &'static str,
    /// A function of the stack that is shown first.
    guilty: &'static str,
    count: u64,
}

#[cfg(target_os = "linux")]
const fn expect(
    plugin: &'static str,
    test: &'static str,
    kind: &'static str,
    what: &'static str,
    guilty: &'static str,
) -> Expected {
    Expected { plugin, test, kind, what, guilty, count: 2 }
}

/// Failures that end the host.
#[cfg(target_os = "linux")]
const FATAL: [Expected; 9] = [
    expect(RUST, "crash", "crash", "SIGSEGV at address 0x10", "strike"),
    expect(C, "crash", "crash", "SIGSEGV at address 0x8", "crash"),
    expect(RUST, "abort", "crash", "abort() was called", "strike"),
    expect(RUST, "exit", "exit", "called exit()", "strike"),
    expect(C, "exit", "exit", "called exit()", "exits"),
    expect(RUST, "stack-overflow", "crash", "stack overflow", "descend"),
    expect(C, "assert", "assert", "balance >= 0 && \"the balance is never negative\"", "assert_fails"),
    expect(CPP, "thread-exception", "exception", "Unbalanced", "operator()"),
    expect(CPP, "noexcept-exception", "exception", "out_of_range", "Promises"),
];

/// Failures that the host survives.
#[cfg(target_os = "linux")]
const REPORTED: [Expected; 6] = [
    expect(RUST, "assert", "assert", "a sum of two parts: sum is 7, not 8", "strike"),
    expect(RUST, "panic", "assert", "an entry that should be there", "strike"),
    expect(RUST, "thread-panic", "assert", "index out of bounds", "strike"),
    expect(C, "failed", "assert", "the sum is 7, not 8", "fails"),
    expect(CPP, "exception", "exception", "Unbalanced: the balance is 7", "Withdraw"),
    expect(CPP, "number", "exception", "exception", "Strike"),
];

#[cfg(target_os = "linux")]
/// One worker, so that the number of failures is exact: a test that ends its host is retired after its second; one that
/// does not runs two iterations, which both fail. The second uncaught exception has a scenario of its own: of two that
/// come at once, the C++ runtime names only the first.
fn sudden() -> String {
    let scenario = |name: &str| format!("[[scenario]]\nname = \"{name}\"\nduration = \"280s\"\n");
    let mut config = "seed = 7\n[defaults]\nworkers = 1\n".to_owned() + &scenario("sudden");
    for (expected, end) in
        REPORTED.iter().map(|e| (e, "iterations = 2")).chain(FATAL.iter().map(|e| (e, "max-failures = 2")))
    {
        if expected.test == "noexcept-exception" {
            config += &scenario("exception");
        }
        config += &format!(
            "[[scenario.test]]\nplugin = \"{}\"\nname = \"{}\"\nparams = {{ after = {{ uniform = {{ min = 0, max = 0 }} }} }}\n{end}\n",
            expected.plugin, expected.test
        );
    }
    config
}

fn check(ran: &Ran, expected: &Expected, workers: u64) -> Failure {
    let failure = ran.failure(expected.plugin, expected.test);
    let Expected { plugin, test, kind, what, guilty, count } = expected;
    assert_eq!(failure.kind(), *kind, "{plugin} {test}: {:#}", failure.json);
    assert!(failure.what().contains(what), "{plugin} {test}: {}", failure.what());
    let first = failure.first_stack();
    assert!(first.iter().any(|function| function.contains(guilty)), "{plugin} {test}: {first:#?}");
    if *count > 0 {
        assert_eq!(failure.count(), *count, "{plugin} {test}");
        assert_eq!(number(&ran.test(plugin, test)["failures"]), *count, "{plugin} {test}");
    }
    complete(&failure, workers);
    assert!(failure.file("stacks.txt").contains(guilty), "{plugin} {test}");
    failure
}

/// Everything that evidence consists of is there.
fn complete(failure: &Failure, workers: u64) {
    let json = &failure.json;
    let name = failure.signature();
    assert_eq!(list(&json["gaps"]).len(), 0, "{name}: {json:#}");
    assert!(number(&json["dump_threads"]) >= workers.max(1), "{name}: {json:#}");
    assert!(failure.folder.join("dump.dmp").metadata().is_ok_and(|file| file.len() > 1000), "{name}");
    assert!(failure.folder.join("log.txt").is_file(), "{name}");
    assert!(name.starts_with(failure.kind()) && failure.folder.ends_with(name), "{name}");
    assert!(text(&json["signature"]["text"]).contains(text(&json["test"])), "{name}: {json:#}");
    assert_eq!(list(&json["occurrences"]).len() as u64, failure.count().min(20), "{name}");
    let first = &json["occurrences"][0];
    assert!(!list(&first["workers"]).is_empty() && number(&first["pid"]) > 0, "{name}: {first:#}");
    assert!(text(&json["environment"]["system"]).starts_with(SYSTEM), "{name}");
    let replay = text(&json["replay"]);
    assert!(replay.contains(&failure.folder.display().to_string()), "{name}: {replay}");
    assert!(failure.file(REPLAY_SCRIPT).contains(replay), "{name}");
}

// Names signals; `windows/faults.rs` has its twin.
#[cfg(target_os = "linux")]
#[test]
fn sudden_failures_are_told_apart_counted_and_stable() {
    let place = Workplace::with(&sudden());
    let ran = place.run(1, &[]);
    for expected in FATAL.iter().chain(&REPORTED) {
        check(&ran, expected, 1);
    }
    let failures = ran.failures();
    assert_eq!(failures.len(), FATAL.len() + REPORTED.len(), "one entry per failure:\n{}", ran.stderr);
    for failure in &failures {
        assert!(
            ran.stderr.matches(&failure.folder.display().to_string()).count() >= 2,
            "told and repeated at the end"
        );
    }
    // The same again, in other processes at other addresses: the same names.
    let again = place.run(1, &["--seed", "8"]);
    let names = |ran: &Ran| -> Vec<String> {
        let mut names: Vec<String> = ran.failures().iter().map(|f| f.signature().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&ran), names(&again));

    let script = ran.failure(RUST, "assert").folder.join("replay.sh");
    let mut command = std::process::Command::new(script);
    let beside = std::path::Path::new(env!("CARGO_BIN_EXE_waylay")).parent().expect("a folder");
    let path = format!("{}:{}", beside.display(), std::env::var("PATH").unwrap_or_default());
    command.args(["--duration", "280s"]).env("PATH", path).current_dir(place.path());
    let replayed = place.start_command(command).finish();
    assert_eq!(replayed.code(), Some(1), "{}", replayed.stderr);
    assert!(replayed.stderr.contains("reproduced 1 time in"), "{}", replayed.stderr);

    for (plugin, test) in [(RUST, "assert"), (C, "crash"), (C, "assert"), (CPP, "thread-exception")] {
        replays(&place, &ran.failure(plugin, test));
    }
}

/// The line that is printed for people works as it is, from another folder.
fn replays(place: &Workplace, failure: &Failure) {
    let elsewhere = Workplace::new();
    let line = text(&failure.json["replay"]);
    let command = line.strip_prefix("waylay ").expect("a waylay command");
    let mut arguments: Vec<&str> = command.split(' ').collect();
    arguments.extend(["--json", "--duration", "280s"]);
    let ran = elsewhere.waylay(&arguments);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    let json = ran.json();
    assert!(number(&json["reproduced"]) >= 1, "{json:#}\n{}", ran.stderr);
    assert_eq!(json["signature"], failure.signature());
    assert_eq!(number(&json["other_failures"]), 0, "{json:#}\n{}", ran.stderr);
    assert!(place.path().exists());
}

fn hanging(together: bool) -> String {
    let mut config = "[defaults]\nworkers = 2\nhang-timeout = \"400ms\"\nmax-failures = 1\n".to_owned();
    for (number, (plugin, test, params)) in HANGS.iter().enumerate() {
        if !together || number == 0 {
            config += &format!("[[scenario]]\nname = \"hangs-{number}\"\nduration = \"280s\"\n");
        }
        config += &format!("[[scenario.test]]\nplugin = \"{plugin}\"\nname = \"{test}\"\n{params}\n");
    }
    config
}

const SLOW: &str = "params = { work = { uniform = { min = \"550ms\", max = \"600ms\" } } }";
const HANGS: [(&str, &str, &str); 6] = [
    (RUST, "deadlock", ""),
    (C, "deadlock", ""),
    (CPP, "deadlock", ""),
    (RUST, "livelock", ""),
    (RUST, "slow", SLOW),
    (RUST, "starvation", ""),
];

fn check_hangs(ran: &Ran) {
    for (plugin, test, guilty) in [
        (RUST, "deadlock", "transfer"),
        (C, "deadlock", "move_money"),
        (CPP, "deadlock", "operator()"),
        (RUST, "livelock", "pass"),
        (RUST, "slow", "Slow"),
        (RUST, "starvation", "write"),
    ] {
        let expected =
            Expected { plugin, test, kind: test, what: "TestMain has not returned", guilty, count: 0 };
        let failure = check(ran, &expected, 2);
        assert!(failure.json["reason"].is_string(), "{:#}", failure.json);
    }
    assert_eq!(ran.failures().len(), HANGS.len(), "{}", ran.stderr);
    all_is_decided(ran);
}

/// Evidence that waited for a decision has found its place.
fn all_is_decided(ran: &Ran) {
    for entry in std::fs::read_dir(ran.folder().join("failures")).expect("failures") {
        let name = entry.expect("readable").file_name().to_string_lossy().into_owned();
        assert!(!name.starts_with("undecided"), "{name}");
    }
}

/// Fifteen failures: the first ones as blocks, the others as a line each, and tests by scenario.
#[test]
#[cfg(target_os = "linux")]
fn many_failures_fit_on_a_page() {
    let place = Workplace::with(&sudden());
    let mut command = place.command(&["run", "waylay.toml"]);
    command.env_remove("WAYLAY_VERBOSE");
    let ran = place.start_command(command).finish();
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    let page = ran.stderr;
    // A line every few seconds comes beside these: how many depends on how busy the machine is.
    let lines = page.lines().filter(|line| !line.starts_with('[')).count();
    assert!(lines <= 60, "{lines} lines:\n{page}");
    let blocks = |text: &str| text.lines().filter(|line| line.starts_with("   replay ")).count();
    assert!((1..=2).contains(&blocks(&page)), "{page}");
    let ids = page
        .lines()
        .filter_map(|line| line.strip_suffix(')')?.split_once(" (waylay show "))
        .map(|(_, id)| id);
    let ids: Vec<&str> = ids.collect();
    assert_eq!(ids.len() + blocks(&page), 15, "{page}");
    let shown = place.waylay(&["show", ids[0]]);
    assert!(shown.code() == Some(0) && shown.stdout.contains(ids[0]), "{}{}", shown.stdout, shown.stderr);
    assert!(page.contains("next: waylay show 1"), "{page}");
}

#[test]
fn hangs_are_told_apart_and_replay() {
    let place = Workplace::with(&hanging(false));
    let ran = place.run(1, &[]);
    check_hangs(&ran);
    let deadlock = ran.failure(C, "deadlock");
    replays(&place, &deadlock);
}

/// In one process, on one machine that is busy with the others' spinning: each still gets its own name.
#[test]
fn hangs_that_share_a_host_are_told_apart() {
    let place = Workplace::with(&hanging(true));
    check_hangs(&place.run(1, &[]));
}

// Windows counts handles without names, and Wine does not; `windows/leaks.rs` has its twin.
#[cfg(target_os = "linux")]
#[test]
fn descriptors_and_threads_left_behind_are_leaks_of_the_test_that_left_them() {
    let config = format!(
        "[defaults]\niterations = 200\nhang-timeout = \"60s\"\n[[scenario]]\nname = \"leaks\"\nduration = \"280s\"\n\
         [[scenario.test]]\nplugin = \"{RUST}\"\nname = \"fd-leak\"\n\
         [[scenario.test]]\nplugin = \"{C}\"\nname = \"thread-leak\"\n\
         [[scenario.test]]\nplugin = \"{RUST}\"\nname = \"nothing\"\n"
    );
    let place = Workplace::with(&config);
    let ran = place.run(1, &[]);
    let files = ran.failure(RUST, "fd-leak");
    assert_eq!(files.kind(), "leak");
    assert!(files.what().contains("descriptors") && files.what().contains("waylay"), "{}", files.what());
    let threads = ran.failure(C, "thread-leak");
    assert_eq!(threads.kind(), "leak");
    assert!(
        threads.what().contains("8 threads") && threads.what().contains("left-behind"),
        "{}",
        threads.what()
    );
    assert!(threads.first_stack().iter().any(|function| function == "waits_for_ever"), "{:#}", threads.json);
    assert_eq!(ran.failures().len(), 2, "{}", ran.stderr);
    all_is_decided(&ran);
    assert_eq!(number(&ran.test(RUST, "nothing")["failures"]), 0);
}

/// One block of a hundred, in three languages; the stack that is named is the one that forgets, not the one that frees.
/// The warm-up of a second puts the first finding after 4.5 s; the sampling is dense because the run is short.
// `windows/leaks.rs` has its twin.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_is_never_freed_is_a_leak_with_the_stack_that_allocated_it() {
    let mut config = "duration = \"280s\"\n[leaks]\nwarm-up = \"1s\"\nsample-bytes = \"4KiB\"\n\
         [[scenario]]\nname = \"leaks\"\n"
        .to_owned();
    for (plugin, more) in
        [(RUST, "params = { pause = { uniform = { min = \"50us\", max = \"100us\" } } }"), (C, ""), (CPP, "")]
    {
        config += &format!(
            "[[scenario.test]]\nplugin = \"{plugin}\"\nname = \"memory-leak\"\nmax-failures = 1\n{more}\n"
        );
    }
    let place = Workplace::with(&config);
    let ran = place.run(1, &[]);
    for (plugin, guilty) in [(RUST, "forgets"), (C, "leaks_a_block"), (CPP, "Forgotten")] {
        let failure = ran.failure(plugin, "memory-leak");
        assert_eq!(failure.kind(), "leak", "{:#}", failure.json);
        assert!(failure.what().contains("memory grows"), "{}", failure.what());
        let stack = failure.first_stack();
        assert!(stack.iter().any(|function| function.contains(guilty)), "{stack:#?}");
        complete(&failure, 1);
        // The curve that its page shows: it rises, and has points of several seconds.
        let growth: serde_json::Value = serde_json::from_str(&failure.file("growth.json")).unwrap();
        let points: Vec<(f64, f64)> = serde_json::from_value(growth["points"].clone()).unwrap();
        let (first, last) = (points[0], points[points.len() - 1]);
        assert!(points.len() >= 10 && last.1 > 2.0 * first.1 && last.0 - first.0 > 1.0, "{points:?}");
        assert!(points.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{points:?}");
    }
    assert_eq!(ran.failures().len(), 3, "{}", ran.stderr);
}
