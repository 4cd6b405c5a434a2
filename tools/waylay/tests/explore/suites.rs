//! `waylay suite` and `waylay cargo test` on small suites with seeded bugs, one in each framework.
//!
//! Budgets: every bug is found within 200 schedules of the default, with a fixed seed: nothing here depends on chance or on how
//! busy the machine is. The same binaries with their bugs mended stay clean.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::support::{Ran, Workplace, list, number, text};

/// Where the sources are.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suites").join(name)
}

/// Builds a suite of C++; nothing where the framework is not installed, unless it has to be.
fn build(place: &Workplace, name: &str, libraries: &[&str]) -> Option<String> {
    let file = place.path().join(name.trim_end_matches(".cpp"));
    let mut command = Command::new("g++");
    command.args(["-std=c++17", "-g", "-pthread"]).arg(source(name)).arg("-o").arg(&file).args(libraries);
    let built = command.output().expect("a compiler");
    let said = String::from_utf8_lossy(&built.stderr);
    if !built.status.success() && said.contains("No such file or directory") {
        let required = std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_some();
        assert!(!required, "{name}: {said}");
        eprintln!("{name}: its framework is not installed, so nothing was done");
        return None;
    }
    assert!(built.status.success(), "{said}");
    Some(file.to_str().expect("a plain path").to_owned())
}

fn build_rust(place: &Workplace, file: &Path, name: &str) -> String {
    let out = place.path().join(name);
    let mut command = Command::new("rustc");
    let built = command.args(["--edition", "2024", "--test", "-g"]).arg(file).arg("-o").arg(&out).output();
    let built = built.expect("rustc");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    out.to_str().expect("a plain path").to_owned()
}

fn suite(place: &Workplace, options: &[&str], binary: &str) -> Ran {
    place.waylay(&[&["suite", "--json", "--seed", "1"], options, &["--", binary]].concat())
}

fn of_case<'a>(summary: &'a Value, name: &str) -> &'a Value {
    let cases = list(&summary["explored"]);
    cases.iter().find(|case| case["case"] == name).unwrap_or_else(|| panic!("{name} in {summary:#}"))
}

/// Finds three bugs: the assertion's words and its place, a deadlock, and the last one's kind; and none when they are mended.
fn finds(
    place: &Workplace,
    binary: &str,
    cases: [&str; 3],
    all: u64,
    said: (&str, &str),
    last: (&str, &str),
) {
    let ran = suite(place, &["--runs", "200"], binary);
    assert_eq!(ran.code(), Some(1), "{ran:#?}");
    let summary = ran.json();
    assert_eq!((number(&summary["cases"]), number(&summary["threaded"])), (all, 3), "{ran:#?}");
    let found = |name: &str| &list(&of_case(&summary, name)["found"])[0];
    let (place_of_it, words) = said;
    let counter = found(cases[0]);
    assert_eq!(counter["kind"], "assert", "{counter:#}");
    assert!(
        text(&counter["what"]).contains(place_of_it) && text(&counter["what"]).contains(words),
        "{counter:#}"
    );
    assert!(text(&counter["where"][0]).ends_with(place_of_it), "{counter:#}");
    assert_eq!(found(cases[1])["kind"], "deadlock");
    assert_eq!(found(cases[2])["kind"], last.0);
    assert!(text(&found(cases[2])["what"]).contains(last.1), "{:#}", found(cases[2]));
    let mended = suite(place, &["--runs", "200", "--env", "FIXED=1"], binary);
    assert_eq!(mended.code(), Some(0), "{mended:#?}");
    for name in cases {
        let case = of_case(&mended.json(), name).clone();
        assert_eq!((number(&case["runs"]), number(&case["failures"])), (200, 0), "{case:#}");
    }
}

#[test]
fn bugs_in_a_suite_of_rust_are_found_case_by_case() {
    let place = Workplace::new();
    // As Cargo calls it.
    let binary = build_rust(&place, &source("libtest.rs"), "shared-0123456789abcdef");
    let cases = ["counter::loses_nothing", "account::transfers_both_ways", "given::is_there"];
    finds(&place, &binary, cases, 4, ("libtest.rs:42", "one was lost"), ("assert", "nothing is there"));
    let ran = suite(&place, &["--runs", "200", "--filter", "counter::loses_nothing", "--exact"], &binary);
    let found = of_case(&ran.json(), cases[0])["found"][0].clone();
    assert_eq!(found["confirmed"], true, "{found:#}");
    assert!(found["forced"].as_u64().is_some_and(|forced| forced > 0), "{found:#}");
    // Suite, case, kind and place, and nothing of the digest in the binary's name.
    let signature = text(&found["text"]);
    assert!(signature.starts_with("assert in shared::counter::loses_nothing at "), "{signature}");
    assert!(signature.ends_with("libtest.rs:42"), "{signature}");
    let folder = text(&found["failure_dir"]);
    let replay = place.waylay(&["replay", "--json", "--times", "5", folder]);
    assert_eq!(replay.json()["reproduced"], 5, "{replay:#?}");
}

#[test]
fn bugs_in_a_suite_of_google_test_are_found_case_by_case() {
    let place = Workplace::new();
    let Some(binary) = build(&place, "gtest.cpp", &["-lgtest", "-lgtest_main"]) else { return };
    let cases = ["Counter.LosesNothing", "Account.TransfersBothWays", "Box.IsFull"];
    finds(&place, &binary, cases, 6, ("gtest.cpp:7", "Which is: 1"), ("exception", "the box is empty"));
}

#[test]
fn bugs_in_a_suite_of_catch2_are_found_case_by_case() {
    let place = Workplace::new();
    let Some(binary) = build(&place, "catch2.cpp", &[]) else { return };
    let cases = ["counter: loses nothing", "account: transfers both ways", "box: is full"];
    finds(&place, &binary, cases, 4, ("catch2.cpp:9", "1 == 2"), ("exception", "the box is empty"));
}

#[test]
fn bugs_in_a_suite_of_doctest_are_found_case_by_case() {
    let place = Workplace::new();
    let Some(binary) = build(&place, "doctest.cpp", &[]) else { return };
    let cases = ["counter: loses nothing", "account: transfers both ways", "box: is full"];
    finds(
        &place,
        &binary,
        cases,
        4,
        ("doctest.cpp:9", "REQUIRE( 1 == 2 )"),
        ("exception", "the box is empty"),
    );
}

#[test]
fn bugs_in_a_suite_of_boost_test_are_found_case_by_case() {
    let place = Workplace::new();
    let Some(binary) = build(&place, "boost.cpp", &["-lboost_unit_test_framework"]) else { return };
    let cases = ["shared/counter_loses_nothing", "shared/account_transfers_both_ways", "shared/box_is_full"];
    finds(&place, &binary, cases, 4, ("boost.cpp:11", "[1 != 2]"), ("exception", "the box is empty"));
    // Boost.Test walks up the tree of processes, and a fresh process has fewer above it than those that found the failure.
    let summary = suite(&place, &["--runs", "200"], &binary).json();
    for name in cases {
        let found = &of_case(&summary, name)["found"][0];
        assert_eq!(found["confirmed"], true, "{found:#}");
    }
}

const STRANGE: &str = r#"
use std::thread;
#[test] fn plain() {}
#[test] fn forks() {
    let ended = std::process::Command::new("true").status().unwrap();
    thread::spawn(|| {}).join().unwrap();
    assert!(ended.success());
}
#[test] fn threads() { thread::spawn(|| {}).join().unwrap(); }
#[test] fn speaks_for_ever() {
    use std::io::Write;
    while std::env::var_os("WAIT").is_some() {
        std::io::stdout().write_all(b"still here\n").unwrap();
        thread::sleep(std::time::Duration::from_millis(5));
    }
}
#[test] fn waits_for_ever() { if std::env::var_os("WAIT").is_some() { loop { thread::park(); } } }
"#;

#[test]
fn suites_that_are_strange_are_told_so() {
    let place = Workplace::new();
    let file = place.write("strange.rs", STRANGE);
    let binary = build_rust(&place, &file, "strange");
    let refused = |options: &[&str], sentence: &str| {
        let ran = suite(&place, options, &binary);
        assert_eq!(ran.code(), Some(2), "{ran:#?}");
        assert!(ran.stderr.contains(sentence), "{ran:#?}");
    };
    refused(&["--filter", "nowhere"], "`nowhere` matches none of the 5 cases: nothing ran");
    refused(&["--filter", "plain"], "1 case, 0 start threads: no case has threads");
    refused(&["--flaky", "plain"], "no case has threads");
    let listed = place.waylay(&["suite", "--list", "--json", "--", &binary]);
    assert_eq!(
        listed.json()["suites"][0]["cases"],
        serde_json::json!(["forks", "plain", "speaks_for_ever", "threads", "waits_for_ever"])
    );
    // A case that does not end costs its patience, and nothing of the others, whether it is silent or not.
    let ran = suite(&place, &["--runs", "20", "--timeout", "1s", "--env", "WAIT=1"], &binary);
    assert_eq!(ran.code(), Some(0), "{ran:#?}");
    let summary = ran.json();
    assert_eq!((number(&summary["cases"]), number(&summary["threaded"])), (5, 2), "{ran:#?}");
    for (place, name) in ["speaks_for_ever", "waits_for_ever"].into_iter().enumerate() {
        let sentence = format!("strange::{name} starts no threads and does not end");
        assert!(text(&summary["notes"][place]).contains(&sentence), "{ran:#?}");
        assert!(ran.stderr.contains(&format!("waylay: strange::{name} does not end within 1s")), "{ran:#?}");
    }
    assert_eq!(number(&of_case(&summary, "forks")["runs"]), 20);
    // A part of the cases each.
    let part = |shard: &str| {
        let listed = place.waylay(&["suite", "--list", "--json", "--shard", shard, "--", &binary]);
        list(&listed.json()["suites"][0]["cases"]).len()
    };
    assert_eq!((part("1/3"), part("2/3"), part("3/3")), (2, 2, 1));
}

#[test]
fn a_thread_that_an_earlier_case_left_is_no_thread_of_the_later_ones() {
    let place = Workplace::new();
    let text = "#[test] fn a_leaves_one() { std::thread::spawn(|| loop { std::thread::park() }); }\n\
                #[test] fn b_has_none() {}\n#[test] fn c_has_none() {}\n";
    let binary = build_rust(&place, &place.write("left.rs", text), "left");
    let ran = suite(&place, &["--runs", "20"], &binary);
    assert_eq!(ran.code(), Some(0), "{ran:#?}");
    // Said before anything is explored.
    let first = ran.stderr.lines().find(|line| line.contains("3 cases")).unwrap_or_default();
    assert!(first.ends_with("left (libtest): 3 cases, 1 starts threads"), "{ran:#?}");
}

/// Has the marks of libtest, and another list each time: a case is gone when it is to be run.
const FICKLE: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
const char *marks[] = {"RUST_TEST_THREADS", "--test-threads"};
static void *nothing(void *p) { return p; }
static void *harness(void *p) {
    pthread_t thread;
    pthread_create(&thread, 0, nothing, 0);
    pthread_join(thread, 0);
    return p;
}
int main(int argc, char **argv) {
    int list = 0, ignored = 0, stays = 0;
    for (int i = 1; i < argc; i++) {
        list |= !strcmp(argv[i], "--list");
        ignored |= !strcmp(argv[i], "--ignored");
        stays |= !strcmp(argv[i], "stays");
    }
    if (list && !ignored) {
        FILE *seen = fopen("listed", "r");
        puts(seen ? "stays: test" : "goes: test\nstays: test");
        if (!seen) seen = fopen("listed", "w");
        fclose(seen);
    }
    if (stays) {
        pthread_t thread;
        pthread_create(&thread, 0, harness, 0);
        pthread_join(thread, 0);
    }
    return argc > 1000 ? !marks[argc] : 0;
}
"#;

/// Of two cases that use a library of the system, that one is promised less in which accesses inside of the library conflict.
#[test]
fn a_library_is_left_out_where_it_conflicts_in_a_case() {
    let place = Workplace::new();
    let part = place.write(
        "text.cpp",
        "#include <string>\nstatic std::string shared;\n\
         extern \"C\" void own() { std::string own(\"what is on the heap, because it is long\"); own.append(\"x\"); }\n\
         extern \"C\" void all() { shared.clear(); shared.append(\"x\"); }\n",
    );
    let object = place.path().join("text.o");
    let built = Command::new("g++").args(["-std=c++17", "-O1", "-c", "-o"]).args([&object, &part]).output();
    assert!(built.expect("a compiler").status.success());
    let text = "use std::thread;\nunsafe extern \"C\" { safe fn own(); safe fn all(); }\n\
                fn twice(what: fn()) { let other = thread::spawn(what); what(); other.join().unwrap(); }\n\
                #[test] fn of_each() { twice(|| own()) }\n#[test] fn of_all() { twice(|| all()) }\n";
    let file = place.write("suite.rs", text);
    let out = place.path().join("suite");
    let built = Command::new("rustc")
        .args(["--edition", "2024", "--test", "-g", "-o"])
        .args([&out, &file])
        .args([&format!("-Clink-arg={}", object.display()), "-Clink-arg=-lstdc++"])
        .output()
        .expect("rustc");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = suite(&place, &["--runs", "200"], out.to_str().expect("a plain path"));
    let summary = ran.json();
    let left_out = |name| of_case(&summary, name)["guarantee"]["leaves_out"].clone();
    assert_eq!(list(&left_out("of_each")), &[] as &[Value], "{:#}", of_case(&summary, "of_each"));
    let conflicts = left_out("of_all");
    let place = conflicts[0]["places"][0].as_str().unwrap_or_default();
    assert!(place.starts_with("libstdc++.so.6 ("), "{conflicts:#}");
}

#[test]
fn a_case_that_is_gone_when_it_is_run_is_told_apart() {
    let place = Workplace::new();
    let program = super::build(&place, FICKLE, &["-pthread"]);
    let ran = suite(&place, &["--runs", "20"], &program);
    assert_eq!(ran.code(), Some(0), "{ran:#?}");
    let summary = ran.json();
    assert_eq!((number(&summary["cases"]), number(&summary["threaded"])), (2, 1), "{ran:#?}");
    assert_eq!(number(&of_case(&summary, "stays")["runs"]), 20);
}

#[test]
fn a_case_with_threads_that_never_ends_is_a_failure_of_its_own() {
    let place = Workplace::new();
    let source = "use std::thread;\n#[test] fn ends() { thread::spawn(|| {}).join().unwrap(); }\n\
                #[test] fn waits() { thread::spawn(|| loop { thread::park() }).join().unwrap(); }\n\
                #[test] fn sleeps() {\n\
                use std::sync::atomic::{AtomicBool, Ordering::SeqCst};\n\
                static READY: AtomicBool = AtomicBool::new(false);\n\
                let other = thread::spawn(|| READY.store(true, SeqCst));\n\
                thread::sleep(std::time::Duration::from_millis(100));\n\
                assert!(READY.load(SeqCst), \"not ready\"); other.join().unwrap(); }\n";
    let binary = build_rust(&place, &place.write("waiting.rs", source), "waiting");
    let mut options = vec!["--runs", "20", "--timeout", "1s", "--minimize", "off"];
    let files = ["r.xml", "r.sarif"].map(|name| place.path().join(name).display().to_string());
    options.extend(["--junit", &files[0], "--sarif", &files[1]]);
    let ran = suite(&place, &options, &binary);
    assert_eq!(ran.code(), Some(1), "{ran:#?}");
    let [junit, sarif] = files.map(|file| std::fs::read_to_string(file).expect("a report"));
    assert!(junit.contains("<testcase classname=\"waiting\" name=\"waits\""), "{junit}");
    assert!(junit.contains("<failure type=\"deadlock\"") && junit.contains("name=\"ends\""), "{junit}");
    let sarif: Value = serde_json::from_str(&sarif).expect("JSON");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "deadlock", "{sarif:#}");
    let summary = ran.json();
    assert_eq!(of_case(&summary, "waits")["found"][0]["kind"], "deadlock", "{ran:#?}");
    assert_eq!(number(&of_case(&summary, "ends")["runs"]), 20);
    // One that waits by sleeping is right on any machine that is fast enough, so sleeps are long unless that is turned off.
    assert_eq!(number(&of_case(&summary, "sleeps")["failures"]), 0, "{ran:#?}");
    let options = ["--runs", "6", "--flaky", "sleeps", "--idle-timeouts=false", "--minimize", "off"];
    let ran = suite(&place, &options, &binary);
    assert_eq!(ran.code(), Some(1), "{ran:#?}");
    let answer = ran.json();
    assert!(text(&answer["result"]["found"][0]["what"]).contains("not ready"), "{answer:#}");
    // How often under which strategy, and the line that runs exactly that.
    let rates = list(&answer["rates"]);
    assert!(rates.len() > 1 && rates.iter().any(|rate| number(&rate["failures"]) > 0), "{answer:#}");
    assert!(text(&answer["replay"]).starts_with("waylay replay "), "{answer:#}");
    assert!(ran.stderr.contains("how often it fails:"), "{ran:#?}");
}

#[test]
fn what_is_no_suite_is_explored_as_a_program() {
    let place = Workplace::new();
    let program = super::build(&place, super::CLEAN, &[]);
    let ran = suite(&place, &["--runs", "10"], &program);
    assert_eq!(ran.code(), Some(0), "{ran:#?}");
    assert!(ran.stderr.contains("is no suite of a framework that Waylay knows"), "{ran:#?}");
    assert_eq!(ran.json()["runs"], 10);
}

/// One program for all tests of a project; what it does its argument says.
const OF_A_PROJECT: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int counter;
static void *add(void *p) {
    int seen = __atomic_load_n(&counter, __ATOMIC_SEQ_CST);
    __atomic_store_n(&counter, seen + 1, __ATOMIC_SEQ_CST);
    return p;
}
static int is(const char *name, const char *value) {
    const char *now = getenv(name);
    return value ? now && !strcmp(now, value) : !now;
}
int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "skipped")) {
        puts("there is no device");
        return 77;
    }
    pthread_t thread;
    pthread_create(&thread, 0, add, 0);
    add(0);
    pthread_join(thread, 0);
    int lost = counter != 2;
    if (!strcmp(what, "silent")) { puts(lost ? "1 of 2 lost" : "none of 2 lost"); return 0; }
    if (!strcmp(what, "says")) { puts(lost ? "done" : "all 2 are there"); return 3; }
    if (!strcmp(what, "wrong")) return lost ? 0 : 1;
    if (!strcmp(what, "surroundings"))
        return !is("ONE", "12") || !is("TWO", 0) || access("here", F_OK) || access("../data", F_OK);
    return lost;
}
"#;

const PROJECT: &str = r#"
cmake_minimum_required(VERSION 3.13)
project(stock C)
enable_testing()
find_package(Threads REQUIRED)
add_executable(stock stock.c)
target_link_libraries(stock Threads::Threads)
foreach(name counts silent says wrong skipped off surroundings late)
  add_test(NAME ${name} COMMAND stock ${name})
endforeach()
add_test(NAME units COMMAND ${UNITS})
add_test(NAME fill COMMAND sh -c "echo once >> ${CMAKE_BINARY_DIR}/data")
add_test(NAME empty COMMAND rm ${CMAKE_BINARY_DIR}/data)
add_test(NAME broken COMMAND false)
file(WRITE ${CMAKE_BINARY_DIR}/place/here "")
set_tests_properties(silent PROPERTIES FAIL_REGULAR_EXPRESSION "[1-9] of [0-9] lost")
set_tests_properties(says PROPERTIES PASS_REGULAR_EXPRESSION "nothing;all [0-9] (are|were) there")
set_tests_properties(wrong PROPERTIES WILL_FAIL TRUE)
set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(off PROPERTIES DISABLED TRUE)
set_tests_properties(surroundings PROPERTIES ENVIRONMENT "ONE=1;TWO=2" WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/place
  ENVIRONMENT_MODIFICATION "ONE=string_append:2;TWO=unset:" FIXTURES_REQUIRED data)
set_tests_properties(fill PROPERTIES FIXTURES_SETUP data)
set_tests_properties(empty PROPERTIES FIXTURES_CLEANUP data)
set_tests_properties(broken PROPERTIES FIXTURES_SETUP server)
set_tests_properties(late PROPERTIES FIXTURES_REQUIRED server)
"#;

/// A program that these tests need beside the compilers.
fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        let required = std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_some();
        assert!(!required, "{program} is not installed");
        eprintln!("{program} is not installed, so nothing was done");
    }
    there
}

#[test]
fn tests_of_a_project_of_cmake_are_judged_as_ctest_judges_them() {
    let place = Workplace::new();
    if !has("cmake") {
        return;
    }
    let units = "use std::sync::atomic::{AtomicU32, Ordering::SeqCst};\nfn twice() -> u32 {\n\
                 static N: AtomicU32 = AtomicU32::new(0);\nfn add() { N.store(N.load(SeqCst) + 1, SeqCst); }\n\
                 std::thread::scope(|scope| { scope.spawn(add); scope.spawn(add); });\nN.load(SeqCst)\n}\n\
                 #[test] fn counts() { assert_eq!(twice(), 2); }\n#[test] fn plain() {}\n";
    let units = build_rust(&place, &place.write("units.rs", units), "units");
    std::fs::create_dir_all(place.path().join("stock")).expect("a folder");
    place.write("stock/CMakeLists.txt", PROJECT);
    place.write("stock/stock.c", OF_A_PROJECT);
    let (source, folder) = (place.path().join("stock"), place.path().join("stock/build"));
    let cmake = |arguments: &[&std::ffi::OsStr]| {
        let ran = Command::new("cmake").args(arguments).output().expect("cmake");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    let units = format!("-DUNITS={units}");
    cmake(&["-S".as_ref(), source.as_ref(), "-B".as_ref(), folder.as_ref(), units.as_ref()]);
    cmake(&["--build".as_ref(), folder.as_ref()]);
    let folder = folder.to_str().expect("a plain path");
    let ran = suite(&place, &["--runs", "60", "--minimize", "off"], folder);
    assert_eq!(ran.code(), Some(1), "{ran:#?}");
    let summary = ran.json();
    // Each fails where an update is lost, and passes otherwise, which is in nearly all schedules.
    for (name, words) in [
        ("counts", "exited with status 1"),
        ("silent", "its output has \"[1-9] of [0-9] lost\""),
        ("says", "its output has none of \"nothing\", \"all [0-9] (are|were) there\""),
        ("wrong", "exited with status 0, but is meant to fail"),
    ] {
        let cases = list(&summary["explored"]);
        let case = cases.iter().find(|case| case["case"] == name && case["suite"] == "stock");
        let case = case.unwrap_or_else(|| panic!("{name} in {summary:#}"));
        let found = &case["found"][0];
        assert!(text(&found["what"]).contains(words), "{name}: {case:#}");
        assert!(number(&found["first_run"]) > 1 && found["confirmed"] == true, "{name}: {case:#}");
    }
    // Its variables, its folder, and what has to be set up for it.
    let surroundings = of_case(&summary, "surroundings");
    assert_eq!(
        (number(&surroundings["runs"]), number(&surroundings["failures"])),
        (60, 0),
        "{surroundings:#}"
    );
    assert!(!place.path().join("stock/build/data").exists(), "it was put away");
    // A test that is a whole suite is one here, too.
    assert_eq!(summary["suites"][1]["name"], "stock::units", "{ran:#?}");
    let cases = list(&summary["explored"]);
    let unit = cases.iter().find(|case| case["suite"] == "stock::units").expect("a case");
    assert_eq!((&unit["case"], &unit["found"][0]["kind"]), (&"counts".into(), &"assert".into()), "{unit:#}");
    let notes: Vec<&str> = list(&summary["notes"]).iter().map(text).collect();
    for note in [
        "left out: off: it is disabled",
        "left out: fill: it sets up a fixture",
        "stock::skipped says that it is skipped",
        "left out: stock::late: its fixture server is not there: broken failed",
    ] {
        assert!(notes.iter().any(|one| one.starts_with(note)), "{note}: {notes:#?}");
    }
}

/// Not among the programs that CI installs.
#[test]
fn tests_of_a_project_of_meson_are_judged_as_meson_judges_them() {
    let place = Workplace::new();
    if Command::new("meson").arg("--version").output().is_err() {
        eprintln!("meson is not installed, so nothing was done");
        return;
    }
    std::fs::create_dir_all(place.path().join("shop/place")).expect("a folder");
    place.write("shop/stock.c", OF_A_PROJECT);
    place.write("shop/place/here", "");
    place.write("shop/data", "");
    place.write(
        "shop/meson.build",
        "project('shop', 'c')\nit = executable('stock', 'stock.c', dependencies: dependency('threads'))\n\
         test('counts', it)\ntest('wrong', it, args: ['wrong'], should_fail: true)\ntest('skipped', it, args: ['skipped'])\n\
         test('surroundings', it, args: ['surroundings'], env: {'ONE': '12'}, workdir: meson.current_source_dir() / 'place')\n",
    );
    let (source, folder) = (place.path().join("shop"), place.path().join("shop/build"));
    let made = Command::new("meson").arg("setup").args([&folder, &source]).output().expect("meson");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    let built = Command::new("ninja").arg("-C").arg(&folder).output().expect("ninja");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stdout));
    let ran = suite(&place, &["--runs", "60", "--minimize", "off"], folder.to_str().expect("a plain path"));
    let summary = ran.json();
    for (name, words) in [("counts", "exited with status 1"), ("wrong", "but is meant to fail")] {
        let found = &of_case(&summary, name)["found"][0];
        assert!(text(&found["what"]).contains(words), "{ran:#?}");
    }
    assert_eq!(number(&of_case(&summary, "surroundings")["failures"]), 0, "{ran:#?}");
    assert_eq!(number(&summary["threaded"]), 3, "{ran:#?}");
}

#[test]
fn a_workspace_of_cargo_is_built_and_explored() {
    let place = Workplace::new();
    std::fs::create_dir_all(place.path().join("w/src")).expect("a folder");
    place.write(
        "w/Cargo.toml",
        "[package]\nname = \"queue\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n",
    );
    let lib = std::fs::read_to_string(source("libtest.rs")).expect("the suite");
    place.write("w/src/lib.rs", &lib);
    let cargo = |words: &str| {
        let words: Vec<&str> =
            ["cargo", "test", "--offline", "--lib"].into_iter().chain(words.split(' ')).collect();
        let mut command = place.command(&words);
        command.current_dir(place.path().join("w")).env("CARGO_TARGET_DIR", place.path().join("target"));
        place.start_command(command).finish()
    };
    // As `cargo test` is called, with options of ours wherever they are thought of.
    let ran = cargo("--json --runs 200 counter --seed 1 -- --skip given --nocapture --test-threads 4");
    assert_eq!(ran.code(), Some(1), "{ran:#?}");
    let summary = ran.json();
    assert_eq!(summary["suites"][0]["name"], "queue", "{ran:#?}");
    assert_eq!((number(&summary["cases"]), number(&summary["threaded"])), (1, 1), "{ran:#?}");
    let found = &of_case(&summary, "counter::loses_nothing")["found"][0];
    assert_eq!(text(&found["text"]), "assert in queue::counter::loses_nothing at src/lib.rs:42");
    let listed = |words: &str| cargo(words).json()["suites"][0]["cases"].clone();
    assert_eq!(listed("--json -- --list --exact given::is_there"), serde_json::json!(["given::is_there"]));
    assert_eq!(
        listed("--json -- --list --skip counter --skip given"),
        serde_json::json!(["account::transfers_both_ways", "adds"])
    );
    let none = cargo("counter --exact --runs 10");
    assert_eq!(none.code(), Some(2), "{none:#?}");
    assert!(
        none.stderr.contains("`counter --exact` leaves no case of 1 test binaries: nothing ran"),
        "{none:#?}"
    );
}
