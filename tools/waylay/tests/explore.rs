//! `waylay explore`, `replay` and `minimize` on small C programs with known bugs.
//!
//! Budgets: each bug here has depth 2 at most in programs of up to 4 threads and 40 steps, so a run of PCT with depth 2
//! finds it with probability 1/160 at least. Runs are a pure function of the seed, which is fixed, so these tests cannot
//! fail by chance.

#[path = "explore/aimed.rs"]
mod aimed;
#[path = "explore/causes.rs"]
mod causes;
#[cfg(target_os = "linux")]
#[path = "explore/conformance.rs"]
mod conformance;
#[path = "explore/edited.rs"]
mod edited;
#[path = "explore/endings.rs"]
mod endings;
#[cfg(target_os = "linux")]
#[path = "explore/found.rs"]
mod found;
#[cfg(target_os = "linux")]
#[path = "explore/libraries.rs"]
mod libraries;
#[path = "explore/orders.rs"]
mod orders;
#[path = "explore/outside.rs"]
mod outside;
#[path = "explore/promised.rs"]
mod promised;
#[path = "explore/rebuilt.rs"]
mod rebuilt;
#[cfg(target_os = "linux")]
#[path = "explore/runtimes.rs"]
mod runtimes;
#[path = "explore/suites.rs"]
mod suites;
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::Workplace;
use support::fields::{CAUSE, EXPLORED, FOUND, MINIMIZED, REPLAYED, SWITCH, expect_fields};
use support::small::{LOCKS, ORDER, build, counter, explore, json};

const CLEAN: &str = r#"
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;
static void *add(void *x) { pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); return x; }
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, add, 0); pthread_create(&u, 0, add, 0);
    pthread_join(t, 0); pthread_join(u, 0);
    printf("%d\n", n);
    return n == 2 ? 0 : 3;
}"#;

fn folder(summary: &Value) -> PathBuf {
    PathBuf::from(summary["failure_dir"].as_str().expect("a failure has a folder"))
}

/// Finds the bug, replays it every time, and reduces it to at most `forced` forced switches.
fn finds(source: &str, options: &[&str], kind: &str, signature: &str, forced: u64) -> (Workplace, Value) {
    let place = Workplace::new();
    let program = build(&place, source, &[]);
    let ran = explore(&place, &[&["--runs", "400"], options].concat(), &program);
    assert_eq!(ran.status.code(), Some(1), "{ran:#?}");
    let summary = json(&ran);
    assert_eq!(summary["kind"], kind, "{ran:#?}");
    assert_eq!(summary["found"][0]["confirmed"], true, "{ran:#?}");
    assert_eq!(summary["found"][0]["text"], signature, "{ran:#?}");
    expect_fields(&summary, EXPLORED);
    expect_fields(&summary["found"][0], FOUND);
    expect_fields(&summary["found"][0]["cause"], CAUSE);
    let folder = folder(&summary);
    for file in
        ["failure.json", "stacks.txt", "schedule.bin", "strict.json", "replay.sh", "dump.dmp", "stderr.txt"]
    {
        assert!(folder.join(file).is_file(), "{file} is missing");
    }
    let path = folder.to_str().expect("a plain path");
    let replay = place.waylay(&["replay", "--json", "--times", "20", path]);
    assert_eq!(
        (replay.status.code(), &json(&replay)["reproduced"]),
        (Some(1), &Value::from(20)),
        "{replay:#?}"
    );
    expect_fields(&json(&replay), REPLAYED);
    let minimized = place.waylay(&["minimize", "--json", path]);
    assert_eq!(minimized.status.code(), Some(0), "{minimized:#?}");
    expect_fields(&json(&minimized), MINIMIZED);
    json(&minimized)["switches"].as_array().into_iter().flatten().for_each(|it| expect_fields(it, SWITCH));
    let after = json(&minimized)["after"].as_u64().expect("a number");
    assert!(after <= forced, "{minimized:#?}");
    let replay = place.waylay(&["replay", "--json", "--minimized", "--times", "5", path]);
    assert_eq!(json(&replay)["reproduced"], 5, "{replay:#?}");
    (place, summary)
}

#[test]
fn an_order_violation_is_a_crash_with_the_place() {
    let (_place, summary) = finds(ORDER, &[], "crash", "crash SIGSEGV in program at user", 1);
    let stacks = std::fs::read_to_string(folder(&summary).join("stacks.txt")).unwrap();
    assert!(stacks.contains("crashed here") && stacks.contains("program.c:6"), "{stacks}");
    assert!(stacks.contains("main  at"), "the other thread has a stack too: {stacks}");
}

/// The order of moments and the sum of stages hold on any machine, however busy.
#[test]
fn timings_say_where_all_of_the_time_went() {
    let place = Workplace::new();
    let program = build(&place, ORDER, &[]);
    let ran = explore(&place, &["--runs", "400", "--stop-on-first", "--timings"], &program);
    assert_eq!(ran.status.code(), Some(1), "{ran:#?}");
    let timings = &json(&ran)["timings"];
    let seconds = |value: &Value| value.as_f64().expect("a number of seconds");
    let moments = ["to_first_schedule", "to_first_failure", "to_first_report", "seconds"];
    let moments = moments.map(|name| seconds(&timings[name]));
    assert!(moments[0] > 0.0 && moments.is_sorted(), "{timings}");
    let stages = timings["stages"].as_array().expect("a list");
    let sum: f64 = stages.iter().map(|stage| seconds(&stage["seconds"])).sum();
    assert!((sum - moments[3]).abs() < 1e-6, "{timings}");
    for name in ["start", "runs", "confirm", "names", "minimize", "cause", "keep", "history"] {
        let stage = stages.iter().find(|stage| stage["stage"] == name);
        assert!(stage.is_some_and(|stage| seconds(&stage["seconds"]) > 0.0), "{name}: {timings}");
    }
    let text = &ran.stderr;
    assert!(
        text.contains("where the time went") && text.contains("the first failure was told after"),
        "{text}"
    );
    let without = explore(&place, &["--runs", "5"], &program);
    assert!(json(&without).get("timings").is_none(), "{without:#?}");
}

#[test]
fn two_locks_deadlock_with_every_stack() {
    let (_place, summary) = finds(LOCKS, &[], "deadlock", "deadlock in program [first] [main] [second]", 1);
    let stacks = std::fs::read_to_string(folder(&summary).join("stacks.txt")).unwrap();
    assert!(stacks.contains("held by thread 1") && stacks.contains("held by thread 2"), "{stacks}");
    assert!(stacks.contains("thread 1 [") && stacks.contains("thread 2 ["), "{stacks}");
    assert!(summary["guarantee"]["per_run"].as_f64().is_some_and(|chance| chance > 0.0), "{summary}");
    for field in [
        "strategy",
        "seed",
        "runs",
        "failures",
        "first_failure_run",
        "signature",
        "threads",
        "steps",
        "depth",
    ] {
        assert!(!summary[field].is_null(), "{field}: {summary}");
    }
    for field in ["schedules_per_second", "steps_per_second", "replay"] {
        assert!(!summary[field].is_null(), "{field}: {summary}");
    }
    assert_eq!(summary["threads"], 3);
}

#[test]
fn a_lost_update_is_an_assert() {
    let place = Workplace::new();
    let program = build(&place, &counter("assert(n == 2); return 0;"), &[]);
    let summary = json(&explore(&place, &["--runs", "400"], &program));
    let found = &summary["found"][0];
    assert_eq!(
        (&found["kind"], &found["confirmed"]),
        (&Value::from("assert"), &Value::from(true)),
        "{summary}"
    );
    // Between these stands what the program said, with the path of its source.
    let text = found["text"].as_str().expect("a text");
    assert!(text.starts_with("assert SIGABRT in program: ") && text.ends_with(" at main"), "{text}");
}

#[test]
fn a_wrong_exit_status_can_be_made_good() {
    let source = counter("return n == 2 ? 0 : 3;");
    let (place, _) = finds(&source, &["--strategy", "pct:depth=2"], "exit", "exit status 3 in program", 1);
    let program = place.path().join("program");
    let ran = explore(&place, &["--runs", "200", "--good-exit", "0,3"], program.to_str().unwrap());
    assert_eq!((ran.status.code(), &json(&ran)["failures"]), (Some(0), &Value::from(0)), "{ran:#?}");
}

#[test]
fn output_and_error_output_are_looked_at() {
    let source = counter(r#"if (n != 2) fprintf(stderr, "lost %d\n", 2 - n); printf("%d\n", n); return 0;"#);
    let place = Workplace::new();
    let program = build(&place, &source, &[]);
    let ran = explore(&place, &["--runs", "200"], &program);
    assert_eq!(ran.status.code(), Some(0), "{ran:#?}");
    let ran = explore(&place, &["--runs", "200", "--bad-stderr", "lost"], &program);
    assert_eq!(
        (ran.status.code(), &json(&ran)["found"][0]["what"]),
        (Some(1), &Value::from("wrote \"lost 1\""))
    );
    let reference = place.write("reference.txt", "2\n");
    let ran = explore(&place, &["--runs", "200", "--expect-stdout", reference.to_str().unwrap()], &program);
    let what = json(&ran)["found"][0]["what"].clone();
    assert_eq!(what, "output differs in line 1: \"1\" instead of \"2\"", "{ran:#?}");
}

#[test]
fn a_correct_program_passes_and_a_search_ends() {
    let place = Workplace::new();
    let program = build(&place, CLEAN, &[]);
    for strategy in ["pct", "random", "pos", "surw", "idiom", "stride", "rpro", "portfolio"] {
        let ran = explore(&place, &["--runs", "150", "--strategy", strategy], &program);
        let summary = json(&ran);
        assert_eq!(
            (ran.status.code(), &summary["runs"]),
            (Some(0), &Value::from(150)),
            "{strategy}: {ran:#?}"
        );
        assert!(summary["notes"].as_array().is_some_and(Vec::is_empty), "{strategy}: {ran:#?}");
    }
    let ran = explore(&place, &["--strategy", "pb:bound=1", "--runs", "5000"], &program);
    assert_eq!((ran.status.code(), &json(&ran)["exhausted"]), (Some(0), &Value::from(true)), "{ran:#?}");
}

#[test]
fn a_search_finds_the_deadlock() {
    let place = Workplace::new();
    let program = build(&place, LOCKS, &[]);
    let ran = explore(&place, &["--strategy", "dfs", "--stop-on-first", "--runs", "5000"], &program);
    assert_eq!(json(&ran)["kind"], "deadlock", "{ran:#?}");
}

#[test]
fn the_number_of_jobs_changes_nothing() {
    let place = Workplace::new();
    let program = build(&place, &counter("return n == 2 ? 0 : 3;"), &[]);
    let numbers = |jobs: &str, more: &[&str]| {
        let summary = json(&explore(&place, &[&["--runs", "300", "--jobs", jobs], more].concat(), &program));
        ["runs", "failures", "first_failure_run", "threads", "steps", "guarantees"]
            .map(|name| summary[name].clone())
    };
    assert_eq!(numbers("1", &[]), numbers("3", &[]));
    assert_eq!(numbers("1", &["--stop-on-first"]), numbers("3", &["--stop-on-first"]));
}

#[test]
fn what_cannot_work_is_said() {
    let place = Workplace::new();
    let alone = build(&place, "int main(void) { return 0; }", &[]);
    let ran = explore(&place, &[], &alone);
    assert_eq!(ran.status.code(), Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("one thread in every run"), "{ran:#?}");
    let fixed = build(&place, CLEAN, &["-static"]);
    let ran = explore(&place, &[], &fixed);
    assert_eq!(ran.status.code(), Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("statically linked"), "{ran:#?}");
    let ran = explore(&place, &[], "./nowhere");
    assert_eq!(ran.status.code(), Some(2), "{ran:#?}");
    let dynamic = build(&place, CLEAN, &[]);
    let ran = explore(&place, &["--strategy", "pcd"], &dynamic);
    assert!(ran.status.code() == Some(2) && ran.stderr.contains("did you mean \"pct\""), "{ran:#?}");
}

#[test]
fn a_missing_library_is_named() {
    let place = Workplace::new();
    let source = place.write("gone.c", "int gone(void) { return 1; }");
    let library = place.path().join("libgone.so");
    let built =
        Command::new("gcc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status().unwrap();
    assert!(built.success());
    let folder = format!("-L{}", place.path().display());
    let user = "int gone(void); int main(void) { return gone(); }";
    let program = build(&place, user, &[&folder, "-lgone", "-Wl,--no-as-needed"]);
    std::fs::remove_file(library).unwrap();
    let ran = explore(&place, &[], &program);
    assert_eq!(ran.status.code(), Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("did not reach main") && ran.stderr.contains("libgone.so"), "{ran:#?}");
}

#[test]
fn another_program_does_not_follow_the_schedule() {
    let (place, summary) = finds(LOCKS, &[], "deadlock", "deadlock in program [first] [main] [second]", 1);
    build(&place, CLEAN, &[]);
    let replay = place.waylay(&["replay", "--json", "--times", "3", folder(&summary).to_str().unwrap()]);
    let outcome = json(&replay);
    assert_eq!((replay.status.code(), &outcome["reproduced"]), (Some(0), &Value::from(0)), "{replay:#?}");
    assert_eq!(outcome["diverged"], 3, "{replay:#?}");
    assert!(outcome["first_divergence"].is_u64(), "{replay:#?}");
}

/// Code that looks at bytes many at a time takes other steps where they are aligned otherwise: a fresh process that follows a
/// schedule has the heap and the main stack where the forked one that found the failure had them.
#[test]
fn a_fresh_process_has_the_addresses_of_the_one_that_failed() {
    let place = Workplace::new();
    let file = place.path().join("addresses.txt");
    let source = format!(
        r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *small, *large, *of_thread;
static void *allocate(void *x) {{ of_thread = malloc(100); return x; }}
int main(void) {{
    pthread_t t;
    char line[200];
    small = malloc(24); large = malloc(2000);
    pthread_create(&t, 0, allocate, 0);
    pthread_join(t, 0);
    snprintf(line, sizeof line, "%p %p %p %p\n", small, large, of_thread, (void *)&t);
    int out = open("{}", O_CREAT | O_APPEND | O_WRONLY, 0600);
    if (write(out, line, strlen(line)) < 0) return 4;
    return 3;
}}"#,
        file.display()
    );
    let program = build(&place, &source, &[]);
    for options in [["--restart", "fork"].as_slice(), &["--baton"]] {
        let _ = fs::remove_file(&file);
        let summary = json(&explore(&place, &[&["--runs", "2"], options].concat(), &program));
        assert_eq!(summary["found"][0]["confirmed"], true, "{summary:#}");
        let seen = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = seen.lines().collect();
        assert!(lines.len() >= 3, "two runs, and one again: {seen}");
        assert!(lines.iter().all(|line| *line == lines[0]), "{options:?}: {seen}");
    }
}

/// Processes that run a program in this folder.
fn running_in(place: &Workplace) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let here = |pid: &i32| {
        std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.starts_with(place.path()))
    };
    pids.filter(here).collect()
}

#[test]
fn a_killed_explorer_leaves_nothing_running() {
    let place = Workplace::new();
    let endless = r"
#include <pthread.h>
static volatile long n;
static void *spin(void *x) { for (;;) n++; return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, spin, 0); return pthread_join(t, 0); }";
    let program = build(&place, endless, &[]);
    for (killed, way) in [("explorer", "fork"), ("server", "fork"), ("explorer", "snapshot")] {
        let options = ["explore", "--timeout", "300s", "--restart", way, "--", &program];
        let mut explorer = place.start(&options);
        let until = |what: &str, reached: &dyn Fn(usize) -> bool| {
            let began = Instant::now();
            while !reached(running_in(&place).len()) {
                assert!(began.elapsed() < support::PATIENCE, "{what}: {:?}", running_in(&place));
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        until("the server and its child", &|count| count >= 2);
        match killed {
            "explorer" => explorer.child.kill().unwrap(),
            // The explorer starts another; what counts is that the run does not outlive its server.
            _ => {
                let old = running_in(&place);
                support::kill(old[0]);
                until("the old ones are gone", &|_| !old.iter().any(|pid| support::is_alive(*pid)));
                explorer.child.kill().unwrap();
            }
        }
        explorer.child.wait().unwrap();
        until("nothing is left", &|count| count == 0);
    }
}

#[test]
fn a_program_that_never_ends_reaches_a_limit_which_is_a_failure_if_that_is_asked_for() {
    let source = r"
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int never;
static void *waits(void *x) {
    for (int done = 0; !done; sched_yield()) {
        pthread_mutex_lock(&m); done = never; pthread_mutex_unlock(&m);
    }
    return x;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, waits, 0); pthread_create(&u, 0, waits, 0);
    pthread_join(t, 0); pthread_join(u, 0);
    return 0;
}";
    let place = Workplace::new();
    let program = build(&place, source, &[]);
    let ran = explore(&place, &["--runs", "5", "--max-steps", "20000"], &program);
    let summary = json(&ran);
    assert_eq!((&summary["failures"], &summary["limit_reached"]), (&0.into(), &5.into()), "{summary}");
    assert_eq!(ran.status.code(), Some(2), "nothing was judged: {ran:#?}");
    assert!(ran.stderr.contains("5 of 5 runs reached the limit of steps"), "{ran:#?}");
    let options = ["--runs", "5", "--max-steps", "20000", "--limit-is-failure"];
    let summary = json(&explore(&place, &options, &program));
    let found = &summary["found"][0];
    assert_eq!((&found["kind"], &found["confirmed"]), (&"livelock".into(), &true.into()), "{summary}");
    assert_eq!(
        (&found["what"], &summary["failures"]),
        (&"no end after 20000 steps: limit reached".into(), &5.into()),
        "{summary}"
    );
}

/// How far a run comes within a time depends on the machine. One that makes steps is not judged; one that makes none for that
/// time hangs.
#[test]
fn a_run_that_still_makes_steps_when_its_time_is_over_is_not_judged() {
    let program = |body: &str| {
        format!(
            "#include <pthread.h>\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic volatile unsigned long long n;\n\
             static void *counts(void *x) {{ for (int done = 0; !done;) {{ {body} }} return x; }}\n\
             int main(void) {{ pthread_t t; pthread_create(&t, 0, counts, 0); return pthread_join(t, 0); }}\n"
        )
    };
    let place = Workplace::new();
    let works =
        build(&place, &program("pthread_mutex_lock(&m); done = ++n == 0; pthread_mutex_unlock(&m);"), &[]);
    let options = ["--runs", "2", "--level", "sync", "--timeout", "1s", "--max-steps", "1000000000000"];
    let ran = explore(&place, &options, &works);
    let summary = json(&ran);
    assert_eq!((&summary["failures"], &summary["limit_reached"]), (&0.into(), &2.into()), "{summary}");
    assert_eq!(ran.status.code(), Some(2), "nothing was judged: {ran:#?}");
    let ran = explore(&place, &[&options[..], &["--limit-is-failure"]].concat(), &works);
    let found = &json(&ran)["found"][0];
    let text = found["what"].as_str().unwrap();
    assert!(text.starts_with("no end within 1s, after ") && text.ends_with("limit reached"), "{ran:#?}");
    assert_eq!((ran.status.code(), &found["kind"]), (Some(1), &"livelock".into()), "{ran:#?}");
    let hangs = build(&place, &program("done = ++n == 0;"), &[]);
    let ran = explore(&place, &options, &hangs);
    assert_eq!(ran.status.code(), Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("it is still computing"), "{ran:#?}");
}

/// What gdb says when it runs a failure to its end and looks at all threads; nothing where there is no gdb.
fn under_gdb(place: &Workplace, summary: &Value) -> Option<String> {
    if Command::new("gdb").arg("--version").output().is_err() {
        assert!(std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_none(), "gdb is not installed");
        eprintln!("gdb is not installed: not tested");
        return None;
    }
    let input = place
        .write("commands", "set confirm off\nset pagination off\nrun\nthread apply all backtrace\nquit\n");
    let output = place
        .command(&["replay", "--debugger", "gdb", folder(summary).to_str().unwrap()])
        .stdin(std::fs::File::open(input).unwrap())
        .output()
        .expect("waylay starts");
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_debugger_shows_every_thread() {
    let place = Workplace::new();
    let program = build(&place, ORDER, &[]);
    let summary = json(&explore(&place, &["--runs", "100", "--stop-on-first"], &program));
    let Some(text) = under_gdb(&place, &summary) else { return };
    for part in ["SIGSEGV", "user (x=", "program.c:6", "in main () at"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
}

/// Four bytes at the very end of the code: no jump fits, a breakpoint does. What it does not fit into is a step all the same, with
/// every signal blocked, and the debugger, which has breakpoints of its own, follows the schedule.
#[test]
fn no_access_is_too_short_to_be_a_step() {
    const SHORT: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <signal.h>
void add(int *);
static int n;
static void *run(void *x) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, 0);
    add(&n);
    return x;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, run, 0); pthread_create(&u, 0, run, 0);
    pthread_join(t, 0); pthread_join(u, 0);
    assert(n == 2);
    return 0;
}"#;
    let place = Workplace::new();
    let add = |instruction: &str| {
        let text =
            format!(".globl add\n.type add,@function\nadd: {instruction} (%rdi)\nret\n.size add, .-add\n");
        place.write("add.s", &format!("{text}.section .note.GNU-stack,\"\",@progbits\n"))
    };
    let options = ["--runs", "100", "--stop-on-first"];
    let right = build(&place, SHORT, &[add("lock incl").to_str().unwrap()]);
    for way in ["snapshot", "fork"] {
        let summary = json(&explore(&place, &[&options[..], &["--restart", way]].concat(), &right));
        assert_eq!(
            (&summary["found"], &summary["refused"]),
            (&Value::Array(Vec::new()), &0.into()),
            "{summary:#}"
        );
    }
    let wrong = build(&place, SHORT, &[add("incl").to_str().unwrap()]);
    let summary = json(&explore(&place, &options, &wrong));
    assert_eq!(summary["kind"], "assert", "{summary:#}");
    let Some(text) = under_gdb(&place, &summary) else { return };
    assert!(text.contains("SIGABRT") && text.contains("in main () at"), "{text}");
}

/// Which line lost the update is said, although the thread was stopped in code that stands in for it.
#[test]
fn a_thread_stopped_at_an_access_is_shown_there() {
    let place = Workplace::new();
    let plain = counter("return n != 2;")
        .replace("pthread_mutex_lock(&m);", "")
        .replace("pthread_mutex_unlock(&m);", "");
    let program = build(&place, &plain, &["-O0"]);
    let ran = explore(&place, &["--runs", "400", "--stop-on-first"], &program);
    let path = folder(&json(&ran)).to_str().expect("a plain path").to_owned();
    let minimized = json(&place.waylay(&["minimize", "--json", &path]));
    assert_eq!(minimized["after"], 1, "{minimized:#}");
    let stopped = minimized["switches"][0]["from_stack"].as_str().expect("a stack");
    assert!(stopped.contains("  add  at ") && stopped.contains("program.c:"), "{stopped}");
}

/// What is printed says where each thread is and what it waits for.
#[test]
fn a_deadlock_is_told_in_one_block() {
    let place = Workplace::new();
    let program = build(&place, LOCKS, &[]);
    let ran = explore(&place, &["--runs", "400", "--stop-on-first"], &program);
    let summary = json(&ran);
    let places = summary["found"][0]["where"].as_array().expect("lines");
    let lines: Vec<&str> = places.iter().filter_map(Value::as_str).collect();
    let waits = |lock: &str| {
        lines.iter().any(|line| line.contains(&format!("waits in mutex-lock {lock} since step ")))
    };
    assert!(waits("a") && waits("b"), "the locks are variables with names: {lines:#?}");

    // The record, its picture and what is shown of it later call threads and locks the same.
    let folder = folder(&summary);
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    let record: Value = serde_json::from_str(&read("failure.json")).unwrap();
    let reason = record["reason"].as_str().expect("who waits for what");
    assert!(
        reason.contains("waits in mutex-lock a since step ")
            && reason.contains(", held by thread")
            && !reason.contains("0x"),
        "{reason}"
    );
    let picture = read("timeline.svg");
    for name in ["lock a held", "lock b held", "waits: mutex-lock a", "waits: mutex-lock b", ">thread 1<"] {
        assert!(picture.contains(name), "{name}: {picture}");
    }
    let shown = place.waylay(&["show", folder.to_str().unwrap()]).stdout;
    let often = summary["found"][0]["count"].as_u64().unwrap();
    assert_eq!(record["count"], often, "also those that were only counted");
    let names: Vec<&Value> =
        record["stacks"].as_array().unwrap().iter().map(|stack| &stack["name"]).collect();
    assert_eq!(names, ["thread 1", "thread 2", "thread 0"], "who waits for their ends comes last");
    for thread in [1, 2] {
        let told = format!("\n   thread {thread} waits in mutex-lock ");
        assert!(shown.contains(&told), "{told}: {shown}");
    }
    for part in [
        "━━ deadlock in ",
        "held by thread",
        "first  ",
        "second  ",
        "program.c:",
        "   replay  waylay replay ",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

/// What explorations leave behind is counted and promised in reports as in the summary.
#[test]
fn a_report_of_an_exploration_says_what_the_summary_says() {
    let place = Workplace::new();
    let program = build(&place, LOCKS, &[]);
    let summary = json(&explore(&place, &["--runs", "600", "--strategy", "pct:depth=2"], &program));
    let often = summary["found"][0]["count"].as_u64().unwrap();
    assert!(often > 5, "more than are looked at: {summary:#}");
    let night = json(&place.waylay(&["report", "--json"]));
    let failure = &night["failures"][0];
    assert_eq!(failure["count"], often, "{failure:#}");
    assert_eq!((&failure["rate"]["reproduced"], &failure["rate"]["runs"]), (&often.into(), &600.into()));
    let strict = &night["campaign"]["scenarios"][0]["tests"][0]["strict"];
    assert_eq!((&strict["runs"], &strict["threads"]), (&600.into(), &3.into()), "{strict:#}");
    let told = place.waylay(&["report"]).stdout;
    assert!(
        told.contains("600 schedules with pct:depth=2: a bug of depth 2 or less would have been found"),
        "{told}"
    );
}

/// The line for people is run by a shell as it stands, whatever the folder is called.
#[test]
fn the_line_that_runs_it_again_survives_every_folder() {
    let place = Workplace::new();
    let program = build(&place, ORDER, &[]);
    let out = place.path().join("it's $HOME \"a\" `id`\nof 100%d\\n\t*");
    let ran =
        explore(&place, &["--runs", "400", "--stop-on-first", "--out", out.to_str().unwrap()], &program);
    let summary = json(&ran);
    let line = summary["found"][0]["replay"].as_str().expect("a line");
    assert!(ran.stderr.contains(line), "what is shown can be copied: {}", ran.stderr);
    let record = fs::read_to_string(folder(&summary).join("failure.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&record).unwrap()["replay"], line);
    let beside = Path::new(env!("CARGO_BIN_EXE_waylay")).parent().expect("a folder");
    let path = format!("{}:{}", beside.display(), std::env::var("PATH").unwrap_or_default());
    let elsewhere = Workplace::new();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{line} --times 3")]).env("PATH", &path).current_dir(elsewhere.path());
    let again = elsewhere.start_command(shell).finish();
    assert_eq!(again.code(), Some(1), "{line}\n{}", again.stderr);
    assert!(again.stderr.contains("reproduced 3 of 3"), "{}", again.stderr);

    // So is the script beside the evidence, also when the folder was sent to somebody.
    let moved = elsewhere.path().join("a b");
    fs::rename(folder(&summary), &moved).unwrap();
    let mut script = Command::new(moved.join("replay.sh"));
    script.args(["--times", "2"]).env("PATH", &path).current_dir(elsewhere.path());
    let again = elsewhere.start_command(script).finish();
    assert!(again.stderr.contains("reproduced 2 of 2"), "{}", again.stderr);
}
