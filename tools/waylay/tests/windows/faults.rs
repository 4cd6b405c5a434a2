//! What goes wrong in a test is found, named, and told with the stacks of all threads.

use serde_json::Value;

use crate::place::{Failure, Place, config};

/// Runs one faulty test and checks what is said about it.
fn expect(plugin: &str, test: &str, kind: &str, what: &str, frame: &str) -> Failure {
    let place = Place::with(&config(plugin, test, "hang-timeout = \"3s\""));
    let mut failures = place.failures();
    let seen: Vec<_> = failures
        .iter()
        .map(|failure| (failure.text("kind").to_owned(), failure.text("what").to_owned()))
        .collect();
    let at = failures.iter().position(|failure| failure.text("kind") == kind);
    let failure =
        failures.swap_remove(at.unwrap_or_else(|| panic!("no {kind}: {seen:?}\n{}", place.host_log())));
    assert!(failure.text("what").contains(what), "{seen:?}");
    assert!(failure.stacks().contains(frame), "no {frame} in\n{}", failure.stacks());
    failure.expect_dump(3);
    failure
}

/// Runs one faulty test that ends its process past everybody: there is a failure, but nothing to look at.
fn expect_sudden_end(plugin: &str, test: &str, what: &str) {
    let place = Place::with(&config(plugin, test, ""));
    let failures = place.failures();
    let [failure] = &failures[..] else { panic!("{} failures\n{}", failures.len(), place.host_log()) };
    assert_eq!(failure.text("kind"), "crash");
    assert!(failure.text("what").contains(what), "{}", failure.text("what"));
    assert_eq!(failure.text("test"), test, "{:#}", failure.json);
}

#[test]
fn a_crash_in_rust() {
    expect("waylay_faults", "crash", "crash", "EXCEPTION_ACCESS_VIOLATION", "waylay_faults::sudden");
}

/// Under Wine programs are lost while they start; tools/windows/bcryptprimitives.c starts them again, and can be told to
/// have every start fail at first. Without that no host would ever run here.
#[test]
fn a_host_that_wine_loses_while_it_starts_is_started_again() {
    let place = Place::with(&config("waylay_faults", "panic", ""));
    let mut command = place.command(&["run", "waylay.toml", "--json", "--quiet"]);
    let output = command.env("WAYLAY_WINE_LOSES", "3").output().expect("the command runs");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_panic_and_an_assertion_in_rust() {
    expect("waylay_faults", "panic", "assert", "", "waylay_faults::sudden");
    expect("waylay_faults", "assert", "assert", "", "waylay_faults::sudden");
}

#[test]
fn a_deadlock_in_rust() {
    expect("waylay_faults", "deadlock", "deadlock", "", "waylay_faults::hanging");
}

#[test]
fn a_livelock_in_rust() {
    expect("waylay_faults", "livelock", "livelock", "", "waylay_faults::hanging");
}

#[test]
fn a_crash_an_abort_and_an_exit_in_c() {
    expect("waylay_faults_c", "crash", "crash", "EXCEPTION_ACCESS_VIOLATION", "faults.c");
    expect("waylay_faults_c", "abort", "crash", "abort", "faults.c");
    expect("waylay_faults_c", "exit", "exit", "exit()", "faults.c");
}

#[test]
fn an_exception_in_cpp() {
    expect("waylay_faults_cpp", "exception", "exception", "Unbalanced: the balance is 7", "Withdraw");
}

#[test]
fn a_stack_overflow_in_rust_and_in_c() {
    expect("waylay_faults", "stack-overflow", "crash", "stack overflow", "descend");
    expect("waylay_faults_c", "stack-overflow", "crash", "stack overflow", "descend");
}

#[test]
fn a_crash_and_a_stack_overflow_on_threads_that_a_test_started() {
    let crash =
        expect("waylay_faults_c", "thread-crash", "crash", "EXCEPTION_ACCESS_VIOLATION", "crashes_there");
    assert_eq!(crash.text("test"), "thread-crash", "{:#}", crash.json);
    let overflow = expect("waylay_faults_c", "thread-overflow", "crash", "stack overflow", "descend");
    assert_eq!(overflow.text("test"), "thread-overflow", "{:#}", overflow.json);
}

#[test]
fn exceptions_that_nobody_handles() {
    expect("waylay_faults_c", "seh-exception", "crash", "exception 0xe0574c01", "raises");
    expect("waylay_faults_c", "divide", "crash", "EXCEPTION_INT_DIVIDE_BY_ZERO", "divides");
    expect("waylay_faults_c", "heap-corruption", "crash", "STATUS_HEAP_CORRUPTION", "corrupts");
}

#[test]
fn an_exception_that_is_handled_is_no_failure() {
    let place = Place::with(
        &config("waylay_faults_c", "handled-exception", "")
            .replace("duration = \"60s\"", "duration = \"2s\""),
    );
    let output = place.waylay(&["run", "waylay.toml", "--json", "--quiet"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}\n{}", place.host_log());
}

#[test]
fn a_pure_call_and_an_invalid_parameter() {
    expect("waylay_faults_c", "invalid-parameter", "crash", "invalid parameter", "closes_nothing");
    expect("waylay_faults_c", "pure-call", "crash", "pure virtual function", "calls_nothing");
    // mingw has nothing but a null pointer in the place of a pure function.
    expect(
        "waylay_faults_cpp",
        "pure-virtual",
        "crash",
        "EXCEPTION_ACCESS_VIOLATION at address 0x0",
        "Shape::Count",
    );
}

#[test]
fn the_ways_of_the_system_to_end_a_process() {
    expect("waylay_faults_c", "exit-process", "exit", "called ExitProcess()", "exits_process");
    expect("waylay_faults_c", "terminate-process", "exit", "called TerminateProcess()", "terminates_process");
    expect("waylay_faults", "exit", "exit", "called ExitProcess()", "waylay_faults::sudden");
}

#[test]
fn a_fast_fail_is_told_with_its_code() {
    expect_sudden_end("waylay_faults_c", "fast-fail", "fast fail");
    expect_sudden_end("waylay_faults", "abort", "fast fail");
}

#[test]
fn a_randomized_scenario_suspends_threads_and_still_finds_the_bug() {
    let _turn = crate::in_turn();
    let map = "[[scenario.test]]\nplugin = \"waylay_libraries\"\nname = \"map\"\n";
    let place =
        Place::with(&format!("[[scenario]]\nname = \"s\"\nduration = \"15s\"\nmode = \"randomized\"\n{map}"));
    let output = place.waylay(&["run", "waylay.toml", "--json", "--quiet"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}\n{}", place.host_log());
    let summary: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let record = &summary["campaign"]["scenarios"][0]["randomizer"];
    assert!(record["suspensions"].as_u64().is_some_and(|count| count > 0), "{record:#}");
    assert!(record["suspended_s"].as_f64().is_some_and(|time| time > 0.0), "{record:#}");

    let faulty = config("waylay_faults", "deadlock", "hang-timeout = \"3s\"")
        .replace("duration = \"60s\"", "duration = \"60s\"\nmode = \"randomized\"");
    let place = Place::with(&faulty);
    let failures = place.failures();
    let deadlock = failures.iter().find(|failure| failure.text("kind") == "deadlock").expect("found");
    deadlock.expect_dump(3);
}
