//! Whatever happens in the middle of a suspension, no thread stays stopped and nobody waits for ever.

#![cfg(target_os = "linux")]

mod target;

use std::time::Duration;

use target::{Randomizer, Target, Watchdog, eventually};
use waylay_randomizer::report::Ending;

/// Holds all threads for longer than any test lasts.
const HOLD_ALL: [&str; 6] = ["--period", "0s", "--suspend", "10m", "--count", "1000"];

#[test]
fn killed_in_mid_suspension() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&["spin:s1", "nap:n1", "nap:n2"]);
    for _ in 0..5 {
        let randomizer = Randomizer::start(target.pid(), &HOLD_ALL);
        target.expect_states("tttt");
        let before = target.counters();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(target.counters(), before, "held");
        randomizer.signal(libc::SIGKILL);
        randomizer.output();
        target.expect_all_running();
    }
}

#[test]
fn interrupted_in_mid_suspension() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&["spin:s1", "nap:n1"]);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let randomizer = Randomizer::start(target.pid(), &HOLD_ALL);
        target.expect_states("ttt");
        randomizer.signal(signal);
        let (code, report) = randomizer.finish();
        assert_eq!((code, report.ending, report.progress.counts.suspensions), (0, Ending::Stopped, 3));
        target.expect_all_running();
    }
}

#[test]
fn stopped_from_the_keyboard_in_mid_suspension() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&["nap:n1"]);
    let randomizer =
        Randomizer::start(target.pid(), &["--period", "1ms", "--suspend", "200ms", "--count", "9"]);
    target.expect_states("tt");
    randomizer.signal(libc::SIGTSTP);
    let state = format!("/proc/{}/stat", randomizer.pid());
    eventually("Ctrl-Z", || {
        let stat = std::fs::read_to_string(&state).expect("alive");
        if stat.contains(") T ") { Ok(()) } else { Err(stat) }
    });
    target.expect_all_running();
    randomizer.signal(libc::SIGCONT);
    target.expect_states("tt");
    randomizer.signal(libc::SIGINT);
    assert_eq!(randomizer.finish().0, 0);
    target.expect_all_running();
}

#[test]
fn the_target_is_killed_in_mid_suspension() {
    let _watchdog = Watchdog::new();
    // The kernel shows the threads as stopped a moment before the randomizer has noticed it. A target that is killed in
    // that moment was held by nobody who knew; such a round says nothing and is not counted.
    let mut held = 0;
    for _ in 0..40 {
        let mut target = Target::start(&["spin:s1", "nap:n1", "block:b1", "block:b2"]);
        let randomizer = Randomizer::start(target.pid(), &HOLD_ALL);
        target.expect_states("ttttt");
        target.kill();
        target.wait();
        let (code, report) = randomizer.finish();
        assert_eq!(report.ending, Ending::TargetEnded);
        if code == 0 {
            assert_eq!(report.progress.counts.ended_while_held, 5, "{report}");
            held += 1;
        } else {
            assert_eq!((code, report.progress.counts.suspensions), (4, 0), "{report}");
        }
        if held == 10 {
            return;
        }
    }
    panic!("held in only {held} of 40 rounds");
}

#[test]
fn the_target_dies_while_windows_open_and_close() {
    let _watchdog = Watchdog::new();
    for round in 0..30 {
        let mut target = Target::start(&["spin:s1", "nap:n1", "churn:c1", "block:b1"]);
        let randomizer =
            Randomizer::start(target.pid(), &["--period", "0s", "--suspend", "0s..300us", "--count", "1..6"]);
        std::thread::sleep(Duration::from_millis(20 + round));
        if round % 2 == 0 {
            target.kill()
        } else {
            target.say("quit")
        }
        target.wait();
        // A target that ended before the first look at it is an error, told as such.
        let output = randomizer.output();
        assert!(matches!(output.status.code(), Some(0 | 2 | 4)), "{output:?}");
    }
}

#[test]
fn another_thread_replaces_the_program_in_mid_suspension() {
    let _watchdog = Watchdog::new();
    for _ in 0..10 {
        let mut target = Target::start(&["spin:s1", "nap:n1", "block:b1"]);
        let all_but_main = [&HOLD_ALL[..], &["--include", "??"]].concat();
        let randomizer = Randomizer::start(target.pid(), &all_but_main);
        target.expect_states("Sttt");
        target.say("exec");
        assert_eq!(target.line(), "execd", "held threads do not keep the exec waiting");
        randomizer.signal(libc::SIGINT);
        let (_, report) = randomizer.finish();
        assert_eq!(report.progress.counts.ended_while_held, 3, "{report}");
        target.expect_states("S");
    }
}

#[test]
fn the_program_is_replaced_while_windows_open_and_close() {
    let _watchdog = Watchdog::new();
    for _ in 0..20 {
        let mut target = Target::start(&["spin:s1", "nap:n1", "block:b1"]);
        let randomizer =
            Randomizer::start(target.pid(), &["--period", "0s", "--suspend", "0s..300us", "--count", "9"]);
        target.say("exec");
        assert_eq!(target.line(), "execd");
        std::thread::sleep(Duration::from_millis(5));
        randomizer.signal(libc::SIGINT);
        randomizer.output();
        target.expect_states("S");
    }
}

#[test]
fn a_thread_that_cannot_be_stopped_is_let_go() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&["vfork:v1", "nap:n1", "spin:s1"]);
    let randomizer = Randomizer::start(
        target.pid(),
        &["--period", "0s..1ms", "--suspend", "1ms", "--count", "9", "--duration", "1500ms"],
    );
    let (code, report) = randomizer.finish();
    assert_eq!(code, 0);
    assert!(report.progress.counts.unstoppable > 0, "{report}");
    let windows = report.progress.counts.windows;
    assert!(windows > report.progress.counts.unstoppable, "the others go on: {report}");
    eventually("let go", || match std::fs::read_to_string(format!("/proc/{}/status", target.thread("v1"))) {
        Ok(status) if status.contains("TracerPid:\t0\n") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let after = target.counters();
    eventually("the others run", || {
        let now = target.counters();
        if now[1] > after[1] && now[2] > after[2] { Ok(()) } else { Err(format!("{now:?}")) }
    });
}

#[test]
fn a_debugger_attaches_and_leaves() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&["nap:n1", "nap:n2"]);
    let randomizer =
        Randomizer::start(target.pid(), &["--period", "0s..1ms", "--suspend", "0s..1ms", "--count", "9"]);
    let thread = target.thread("n1") as libc::pid_t;
    let request = |operation| {
        // SAFETY: these requests take no memory.
        let result = unsafe { libc::ptrace(operation, thread, 0_usize, 0_usize) };
        if result < 0 { Err(std::io::Error::last_os_error().to_string()) } else { Ok(()) }
    };
    for _ in 0..3 {
        eventually("attach", || request(libc::PTRACE_SEIZE));
        eventually("interrupt", || request(libc::PTRACE_INTERRUPT));
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(thread, &mut status, libc::__WALL) }, thread);
        std::thread::sleep(Duration::from_millis(50));
        // Now and then it looks whether we are still here, by trying.
        let looks: Vec<String> = (0..20)
            .map(|_| {
                std::thread::sleep(Duration::from_millis(5));
                target.states()
            })
            .collect();
        // Before anything is checked: a thread that stays ours keeps its process from ending.
        request(libc::PTRACE_DETACH).expect("stopped");
        let alone = looks.iter().filter(|states| states.matches('t').count() == 1).count();
        assert!(alone >= 15, "the randomizer has stepped back: {looks:?}");
        target.expect_all_running();
    }
    randomizer.signal(libc::SIGINT);
    let (code, report) = randomizer.finish();
    assert_eq!(code, 0, "{report}");
    assert!(report.progress.counts.refused > 0);
    let tracer = report.progress.refused_for.expect("told by whom");
    assert_eq!(tracer.pid.0, std::process::id());
    target.expect_all_running();
}

#[test]
fn signals_arrive_although_threads_are_suspended() {
    let _watchdog = Watchdog::new();
    let mut target = Target::start(&["spin:s1", "nap:n1", "nap:n2"]);
    let randomizer =
        Randomizer::start(target.pid(), &["--period", "0s", "--suspend", "0s..200us", "--count", "9"]);
    std::thread::sleep(Duration::from_millis(50));
    target.say("segv");
    assert!(target.line().starts_with("crash "), "the handler runs");
    randomizer.signal(libc::SIGINT);
    randomizer.output();
    target.expect_all_running();
}
