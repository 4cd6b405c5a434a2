//! What is chosen by itself against what one could ask for, the same seeds of the same programs in turn:
//! `cargo bench -p waylay --bench auto`.
//!
//! - `--restart auto` against `--restart fork`: fails when auto is below 0.9 times fork for any program.
//! - the level `auto` of plugin tests against `atomics`, where nothing conflicts: fails when its schedules take more than 1.3
//!   times the processor's time. Alone: `cargo bench -p waylay --bench auto -- hosts`.

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;

use support::Workplace;

/// How long one turn explores, and how many turns each way has. Short and many: what else the machine does changes.
const TURN: &str = "2s";
const TURNS: usize = 7;
const WANTED: f64 = 0.9;

/// What is measured, the source and the arguments. The last two cannot be restored, and one is so heavy that forking it
/// could be cheaper.
const PROGRAMS: [(&str, &str, &[&str]); 8] = [
    ("3 threads, about 50 steps", "order.c", &[]),
    ("three locks in Rust", "zoo.rs", &["lost_update", "fixed"]),
    ("C++ standard library", "standard_library.cpp", &[]),
    ("100 MB mapped, 1,000 pages changed", "heavy.c", &[]),
    ("100 threads at once", "churn.c", &["100", "100"]),
    ("100 threads, 3 at once", "churn.c", &["100", "3"]),
    ("starts a process", "fork", &[]),
    ("writes a file", "file", &[]),
];

const FORKS: &str = r"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *turn(void *x) { for (int i = 0; i < 10; i++) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); } return x; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, turn, 0);
    turn(0);
    pthread_join(t, 0);
    pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, 0, 0);
    return 0;
}";

const WRITES: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *turn(void *x) { for (int i = 0; i < 10; i++) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); } return x; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, turn, 0);
    turn(0);
    pthread_join(t, 0);
    int file = open("written", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (write(file, "x", 1) != 1) abort();
    close(file);
    return unlink("written");
}"#;

fn main() {
    let alone = std::env::args().any(|argument| argument == "hosts");
    if !alone {
        restarts();
    }
    hosts();
}

/// Schedules of each turn, and how much longer they may take at the level auto.
const SCHEDULES: u64 = 200_000;
const AT_MOST: f64 = 1.3;

/// Tests of plugins in which no plain accesses conflict.
const TESTS: [(&str, &str); 3] =
    [("schedules_c", "pair"), ("schedules_c", "apart"), ("schedules_cpp", "stock-fixed")];

fn hosts() {
    println!("| test | at atomics | at auto | auto to atomics, median of {TURNS} turns |");
    println!("|---|---|---|---|");
    let mut slow = Vec::new();
    for (plugin, test) in TESTS {
        let mut times = [Vec::new(), Vec::new()];
        let mut ratios = Vec::new();
        for _ in 0..TURNS {
            let turn = ["atomics", "auto"].map(|level| schedules_at(level, plugin, test));
            ratios.push(turn[1] / turn[0]);
            times.iter_mut().zip(turn).for_each(|(times, time)| times.push(time));
        }
        let [atomics, auto] = times.map(|mut times| median(&mut times) / SCHEDULES as f64 * 1e6);
        let ratio = median(&mut ratios);
        println!("| {test} | {atomics:.2} us | {auto:.2} us | {ratio:.2} |");
        if ratio > AT_MOST {
            slow.push(test);
        }
    }
    assert!(slow.is_empty(), "the level auto takes more than {AT_MOST} times atomics: {}", slow.join(", "));
}

/// Seconds of processor time that a campaign takes, all of its processes together.
fn schedules_at(level: &str, plugin: &str, test: &str) -> f64 {
    let place = Workplace::with(&format!(
        "seed = '0x5eed'\n[[scenario]]\nname = 's'\nmode = 'strict'\nminimize = 'off'\nstrategy = 'pct'\nruns = {SCHEDULES}\nlevel = '{level}'\n\
         [[scenario.test]]\nplugin = 'waylay_{plugin}'\nname = '{test}'\n"
    ));
    let before = children_seconds();
    place.run(0, &[]);
    children_seconds() - before
}

fn children_seconds() -> f64 {
    // SAFETY: all zero is a valid record, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage), 0);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn restarts() {
    let place = Workplace::new();
    println!("| program | fork/s | auto/s | auto chose | auto to fork, median of {TURNS} turns (worst) |");
    println!("|---|---|---|---|---|");
    let mut slow = Vec::new();
    for (what, source, arguments) in PROGRAMS {
        let program = build(&place, source);
        let mut ratios = Vec::new();
        let (mut forks, mut autos, mut chose) = (Vec::new(), Vec::new(), String::new());
        for _ in 0..TURNS {
            let (fork, _) = rate(&place, "fork", &program, arguments);
            let (auto, way) = rate(&place, "auto", &program, arguments);
            ratios.push(auto / fork);
            forks.push(fork);
            autos.push(auto);
            chose = way;
        }
        let ratio = median(&mut ratios);
        println!(
            "| {what} | {:.0} | {:.0} | {chose} | {ratio:.2} ({:.2}) |",
            median(&mut forks),
            median(&mut autos),
            ratios[0]
        );
        if ratio < WANTED {
            slow.push(what);
        }
    }
    assert!(slow.is_empty(), "auto is below {WANTED} times fork: {}", slow.join(", "));
}

fn build(place: &Workplace, source: &str) -> String {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../framework/control/tests/programs");
    let file = match source {
        "fork" => place.write("fork.c", FORKS),
        "file" => place.write("file.c", WRITES),
        other => programs.join(other),
    };
    let program = place.path().join(source.replace('.', "-"));
    let compiler: &[&str] = match file.extension().and_then(|end| end.to_str()) {
        Some("rs") => &["rustc", "--edition=2024", "-O", "-g"],
        Some("cpp") => &["g++", "-std=c++20", "-O1", "-g", "-pthread"],
        _ => &["gcc", "-std=gnu17", "-O1", "-g", "-pthread"],
    };
    let built = Command::new(compiler[0]).args(&compiler[1..]).arg(&file).arg("-o").arg(&program).output();
    let built = built.expect("the compiler is installed");
    assert!(built.status.success(), "{source}: {}", String::from_utf8_lossy(&built.stderr));
    program.to_str().expect("a plain path").to_owned()
}

/// Schedules per second over the whole turn, start and choice of the way included; and the way.
fn rate(place: &Workplace, way: &str, program: &str, arguments: &[&str]) -> (f64, String) {
    let options = [
        "explore",
        "--json",
        "--quiet",
        "--seed",
        "7",
        "--patch",
        "none",
        "--duration",
        TURN,
        "--restart",
        way,
        "--",
        program,
    ];
    let ran = place.waylay(&[&options[..], arguments].concat());
    let summary = ran.json();
    let number = |name: &str| summary[name].as_f64().unwrap_or_else(|| panic!("{name}: {summary:#}"));
    (number("runs") / number("seconds"), summary["restart"].as_str().unwrap_or_default().to_owned())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
