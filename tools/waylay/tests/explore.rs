//! `waylay explore`, `replay` and `minimize` on small C programs with known bugs.
//!
//! Budgets: each bug here has depth 2 at most in programs of up to 4 threads and 40 steps, so a run of PCT with depth 2
//! finds it with probability 1/160 at least. Runs are a pure function of the seed, which is fixed, so these tests cannot
//! fail by chance.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Ran, Workplace};

const ORDER: &str = r"
#include <pthread.h>
#include <stdlib.h>
static int *p;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *user(void *x) { pthread_mutex_lock(&m); *p = 2; pthread_mutex_unlock(&m); return x; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, user, 0);
    pthread_mutex_lock(&m); p = malloc(4); *p = 1; pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    return 0;
}";

const LOCKS: &str = r"
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *first(void *x) {
    pthread_mutex_lock(&a); pthread_mutex_lock(&b); pthread_mutex_unlock(&b); pthread_mutex_unlock(&a); return x;
}
static void *second(void *x) {
    pthread_mutex_lock(&b); pthread_mutex_lock(&a); pthread_mutex_unlock(&a); pthread_mutex_unlock(&b); return x;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, first, 0); pthread_create(&u, 0, second, 0);
    pthread_join(t, 0); pthread_join(u, 0);
    return 0;
}";

/// Two threads that lose an increment; what the main thread makes of it is put in.
fn counter(verdict: &str) -> String {
    format!(
        r#"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;
static void *add(void *x) {{
    pthread_mutex_lock(&m); int v = n; pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m); n = v + 1; pthread_mutex_unlock(&m);
    return x;
}}
int main(void) {{
    pthread_t t, u;
    pthread_create(&t, 0, add, 0); pthread_create(&u, 0, add, 0);
    pthread_join(t, 0); pthread_join(u, 0);
    {verdict}
}}"#
    )
}

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

fn build(place: &Workplace, source: &str, options: &[&str]) -> String {
    let file = place.write("program.c", source);
    let program = place.path().join("program");
    let built = Command::new("gcc")
        .args(["-std=gnu17", "-g", "-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(file)
        .args(options)
        .output()
        .expect("gcc is installed");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program.to_str().expect("a plain path").to_owned()
}

fn explore(place: &Workplace, options: &[&str], program: &str) -> Ran {
    let mut arguments = vec!["explore", "--json", "--seed", "7"];
    arguments.extend(options);
    arguments.extend(["--", program]);
    place.waylay(&arguments)
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}"))
}

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
    let minimized = place.waylay(&["minimize", "--json", path]);
    assert_eq!(minimized.status.code(), Some(0), "{minimized:#?}");
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

#[test]
fn two_locks_deadlock_with_every_stack() {
    let (_place, summary) = finds(LOCKS, &[], "deadlock", "deadlock in program [first] [main] [second]", 1);
    let stacks = std::fs::read_to_string(folder(&summary).join("stacks.txt")).unwrap();
    assert!(stacks.contains("held by thread 1") && stacks.contains("held by thread 2"), "{stacks}");
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
    let (place, _) = finds(&source, &["--strategy", "pct:depth=2"], "assert", "assert exit 3 in program", 1);
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
    for strategy in ["pct", "random", "pos", "surw", "stride", "rpro", "portfolio"] {
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
fn a_program_that_never_ends_is_a_livelock() {
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
    let summary = json(&explore(&place, &["--runs", "5", "--max-steps", "20000"], &program));
    let found = &summary["found"][0];
    assert_eq!((&found["kind"], &found["confirmed"]), (&"livelock".into(), &true.into()), "{summary}");
    assert_eq!(
        (&found["what"], &summary["failures"]),
        (&"no end after 20000 steps".into(), &5.into()),
        "{summary}"
    );
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

/// Everything that an exploration found, without what depends on the clock or on how runs began.
fn what_was_found(summary: &Value) -> Value {
    let keys =
        ["runs", "failures", "first_failure_run", "kind", "signature", "threads", "steps", "guarantee"];
    assert!(summary["runs"].is_u64(), "{summary:#}");
    keys.iter().map(|key| summary[key].clone()).collect()
}

#[test]
fn restored_runs_find_what_forked_ones_find() {
    let place = Workplace::new();
    for source in [LOCKS.to_owned(), counter("printf(\"%d\\n\", n); assert(n == 2); return 0;")] {
        let program = build(&place, &source, &[]);
        let options = ["--runs", "700", "--patch", "none"];
        let forked = json(&explore(&place, &options, &program));
        for jobs in ["1", "2"] {
            let more = [&options[..], &["--restart", "snapshot", "--jobs", jobs]].concat();
            let restored = json(&explore(&place, &more, &program));
            assert_eq!(restored["fell_back"], 0, "{restored:#}");
            assert_eq!(what_was_found(&restored), what_was_found(&forked), "{jobs} jobs");
            assert_eq!(
                (restored["restart"].as_str(), restored["restored"].as_u64()),
                (Some("snapshot"), Some(700))
            );
            // The first hundred, every 256th of the rest, and some failing ones, but for those that single out an object: up
            // to two of the five strategies' runs.
            assert!(restored["compared"].as_u64() >= Some(60), "{restored:#}");
        }
    }
}

/// Root starts it as nobody, from an installation that everybody may read; others are unprivileged anyway.
#[test]
fn nobody_needs_privileges() {
    let place = Workplace::new();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    open(place.path());
    let program = build(&place, &counter("assert(n == 2); return 0;"), &[]);
    let installed = place.path().join("bin");
    fs::create_dir(&installed).unwrap();
    let ours = Path::new(env!("CARGO_BIN_EXE_waylay"));
    for file in ["waylay", "deps/libwaylay_control.so"] {
        let from = ours.parent().unwrap().join(file);
        let to = installed.join(from.file_name().unwrap());
        fs::copy(from, &to).unwrap();
        open(&to);
    }
    let mut command = Command::new(installed.join("waylay"));
    command
        .args([
            "explore",
            "--json",
            "--seed",
            "7",
            "--runs",
            "700",
            "--restart",
            "snapshot",
            "--patch",
            "none",
            "--",
        ])
        .arg(&program)
        .current_dir(place.path())
        .env("HOME", place.path());
    // SAFETY: the call has no conditions.
    if unsafe { libc::getuid() } == 0 {
        command.uid(65534).gid(65534);
    }
    let ran = place.start_command(command).finish();
    let found = json(&ran);
    assert_eq!(
        (ran.code(), &found["kind"], &found["found"][0]["confirmed"]),
        (Some(1), &"assert".into(), &true.into())
    );
    assert_eq!(found["restored"], 700, "{found:#}");
    assert_eq!(
        what_was_found(&found),
        what_was_found(&json(&explore(&place, &["--runs", "700", "--patch", "none"], &program)))
    );
}

#[test]
fn what_cannot_be_restored_goes_to_the_fork_server_by_itself() {
    let place = Workplace::new();
    let program =
        build(&place, &counter("fork(); return n != 2;").replacen('#', "#include <unistd.h>\n#", 1), &[]);
    let options = ["--runs", "60", "--patch", "none"];
    let forked = json(&explore(&place, &options, &program));
    for way in ["snapshot", "auto"] {
        let summary = json(&explore(&place, &[&options[..], &["--restart", way]].concat(), &program));
        assert_eq!(what_was_found(&summary), what_was_found(&forked), "{way}");
        assert_eq!(summary["restart"], "fork");
        assert!(summary["fell_back"].as_u64() > Some(0), "{summary:#}");
        let notes = summary["notes"].to_string();
        assert!(notes.contains("starts a process"), "{notes}");
    }
}

#[test]
fn several_jobs_keep_their_processes_while_they_grow() {
    // More threads than are made in advance at first, so that each worker starts its process again.
    const MANY: &str = r"
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;
static void *add(void *x) { pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); return x; }
int main(void) {
    pthread_t t[7];
    for (int i = 0; i < 7; i++) pthread_create(&t[i], 0, add, 0);
    for (int i = 0; i < 7; i++) pthread_join(t[i], 0);
    return n != 7;
}";
    let place = Workplace::new();
    let program = build(&place, MANY, &[]);
    let options = ["--runs", "300", "--jobs", "2", "--restart", "snapshot", "--patch", "none"];
    let summary = json(&explore(&place, &options, &program));
    assert_eq!((&summary["restored"], &summary["fell_back"]), (&300.into(), &0.into()), "{summary:#}");
}

/// Objects on the heap lie elsewhere in a process that has its threads in advance: a strategy that singles one out by its
/// address decides otherwise there, which is no fault of restoring.
#[test]
fn objects_of_the_heap_do_not_make_restored_runs_differ() {
    const OBJECT: &str = r"
#include <pthread.h>
#include <stdlib.h>
struct object { pthread_mutex_t m; int n; };
static pthread_mutex_t g = PTHREAD_MUTEX_INITIALIZER;
static void *idle(void *x) { pthread_mutex_lock(&g); pthread_mutex_unlock(&g); return x; }
static void *use(void *x) {
    struct object *o = x;
    for (int i = 0; i < 3; i++) { pthread_mutex_lock(&o->m); o->n++; pthread_mutex_unlock(&o->m); }
    return x;
}
int main(void) {
    pthread_t t[3];
    pthread_create(&t[0], 0, idle, 0);
    struct object *o = malloc(sizeof *o);
    pthread_mutex_init(&o->m, 0);
    o->n = 0;
    for (int i = 1; i < 3; i++) pthread_create(&t[i], 0, use, o);
    for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
    return o->n != 6;
}";
    let place = Workplace::new();
    let program = build(&place, OBJECT, &[]);
    let options = ["--runs", "300", "--strategy", "surw", "--restart", "snapshot", "--patch", "none"];
    let summary = json(&explore(&place, &options, &program));
    assert_eq!(
        (&summary["restored"], &summary["notes"].to_string().contains("FAULT")),
        (&300.into(), &false),
        "{summary:#}"
    );
    assert!(summary["compared"].as_u64() > Some(0), "{summary:#}");
}

/// The heap is as large as it is without the library, under patched code too: nothing lies behind it.
#[test]
fn the_heap_of_a_patched_program_can_grow() {
    const GROWS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int shared;
static void *touch(void *x) { shared++; return x; }
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, touch, 0);
    pthread_create(&u, 0, touch, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    char *before = sbrk(0);
    for (int i = 0; i < 400; i++) if (!malloc(60000)) return 1;
    return (char *)sbrk(0) - before < 20 << 20;
}"#;
    let place = Workplace::new();
    let program = build(&place, GROWS, &[]);
    for way in ["fork", "snapshot"] {
        let summary = json(&explore(&place, &["--runs", "60", "--restart", way], &program));
        assert_eq!(
            (&summary["failures"], &summary["fell_back"]),
            (&0.into(), &0.into()),
            "{way}: {summary:#}"
        );
    }
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
    assert_eq!(lines.iter().filter(|line| line.contains("waits in mutex-lock")).count(), 2, "{lines:#?}");
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

/// Memory of a process that has its threads in advance lies elsewhere: a program that depends on it is told apart from one
/// whose restored runs are wrong.
#[test]
fn a_program_that_depends_on_addresses_is_forked() {
    let place = Workplace::new();
    let program = build(
        &place,
        r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *says(void *x) { printf("%p\n", malloc(100)); return x; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, says, 0);
    printf("%p\n", malloc(100));
    pthread_join(t, 0);
    return 0;
}"#,
        &[],
    );
    let summary =
        json(&explore(&place, &["--runs", "40", "--level", "sync", "--restart", "snapshot"], &program));
    assert_eq!(summary["restart"], "fork", "{summary}");
    let notes = summary["notes"].to_string();
    assert!(notes.contains("depends on where its memory lies"), "{notes}");
}
