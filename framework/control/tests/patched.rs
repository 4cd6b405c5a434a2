//! Unmodified code whose instructions are replaced in memory: it computes what it computed before, and its atomics, at the
//! memory level also its accesses, are steps.
//!
//! Runs are functions of their number, so these tests count the same every time.

mod harness;

use std::sync::atomic::Ordering;

use harness::{BOTH, Program, parameters};
use waylay_control_protocol::{ClockSource, Ending, Instrumentation, Level, Settings, Switching};

#[test]
fn what_is_patched_computes_what_it_did() {
    for options in [&[][..], &["-DWIDE"]] {
        let program = Program::build_with("gcc", options, "patched.c").with(&["everything"]);
        for level in [Level::Atomics, Level::Memory] {
            let mut server = program.serve_with(Instrumentation::new(level, true));
            for switching in BOTH {
                for run in 0..20 {
                    let outcome =
                        server.run(Settings::new(switching, 3, run), &parameters("random", 3, 500, 2));
                    assert_eq!(
                        outcome.code,
                        Some(0),
                        "{options:?} {level} {switching:?} run {run}: {outcome:#?}"
                    );
                    assert!(!outcome.partly_controlled, "{options:?} {level} {switching:?}: {outcome:#?}");
                    let report = server.region.report();
                    assert!(report.patched.load(Ordering::Relaxed) > 8, "{report:#?}");
                    // Some accesses do not fit; atomics always do.
                    let refused = report.refused.load(Ordering::Relaxed);
                    assert!(refused == 0 || level == Level::Memory, "{report:#?}");
                    // At least every fetch_add, exchange, increment and fence of two threads.
                    assert!(outcome.steps > 2 * 20 * 5, "{options:?}: {} steps", outcome.steps);
                }
            }
        }
    }
}

/// How many of 60 runs lose an update, and the steps of them all.
fn lost(program: &Program, switching: Switching, level: Level) -> (u32, u64) {
    let mut server = program.serve_with(Instrumentation::new(level, true));
    let (mut lost, mut steps) = (0, 0);
    for run in 0..60 {
        let outcome = server.run(Settings::new(switching, 7, run), &parameters("pct", 3, 12, 2));
        assert_eq!(outcome.ending, Ending::Exited, "{outcome:#?}");
        lost += u32::from(outcome.code == Some(7));
        steps += outcome.steps;
    }
    (lost, steps)
}

/// PCT of depth 2 with n = 3 and k = 12 finds each with probability 1/36 at least per run.
#[test]
fn a_lost_update_is_found_in_code_that_nobody_compiled_for_it() {
    let built = Program::build("patched.c");
    for (mode, from) in [("plain", Some(Level::Memory)), ("exchange", Some(Level::Atomics)), ("good", None)] {
        let program = built.with(&[mode]);
        for level in [Level::Sync, Level::Atomics, Level::Memory] {
            let found = lost(&program, Switching::Carrier, level);
            let expected = from.is_some_and(|from| level >= from);
            assert_eq!(found.0 > 0, expected, "{mode} at {level}: {found:?}");
            assert_eq!(lost(&program, Switching::Baton, level), found, "{mode} at {level}");
        }
    }
}

#[test]
fn a_library_that_is_loaded_later_is_patched_too() {
    let library = Program::build_with("gcc", &["-shared", "-fPIC"], "later.c");
    let program =
        Program::build("patched.c").with(&["later", library.path().to_str().expect("a plain path")]);
    let steps = |patch| {
        let mut server = program.serve_with(Instrumentation::new(Level::Atomics, patch));
        let outcome = server.run(Settings::new(Switching::Carrier, 1, 0), "");
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        outcome.steps
    };
    assert!(steps(true) >= steps(false) + 100, "{} and {}", steps(true), steps(false));
}

/// A run that is looked at shows which accesses conflict, and runs that have those as steps find what needs them: the same
/// accesses and the same schedules under both ways to switch.
#[test]
fn what_is_learned_is_the_same_however_threads_are_switched() {
    let built = Program::build("patched.c");
    for (mode, expected) in [("plain", true), ("good", false)] {
        let mut server = built.with(&[mode]).serve_with(Instrumentation::new(Level::Auto, true));
        let mut seen = Vec::new();
        for switching in BOTH {
            let mut settings = Settings::new(switching, 7, 0);
            settings.profile = 1;
            server.region.choose(&mut settings, &[]);
            let first = server.run(settings, &parameters("pct", 3, 12, 2));
            let mut sites = server.region.conflicting().to_vec();
            sites.sort_unstable();
            // The good one has a plain load of an atomic.
            assert!(!sites.is_empty(), "{mode}: {first:#?}");
            let (mut lost, mut schedules) = (0, vec![first.schedule]);
            for run in 0..60 {
                let mut settings = Settings::new(switching, 7, run);
                server.region.choose(&mut settings, &sites);
                let outcome = server.run(settings, &parameters("pct", 3, 12, 2));
                assert_eq!(outcome.ending, Ending::Exited, "{outcome:#?}");
                lost += u32::from(outcome.code == Some(7));
                schedules.push(outcome.schedule);
            }
            assert_eq!(lost > 0, expected, "{mode} {switching:?}");
            seen.push((sites, lost, schedules));
        }
        assert_eq!(seen[0], seen[1], "{mode}");
    }
}

/// The processor's counter is the virtual clock: a program whose way depends on it goes the same way in every run with a seed,
/// however threads are switched and whatever the machine does meanwhile.
#[test]
fn what_the_counter_says_repeats() {
    for options in [&["-O0"][..], &["-O2"]] {
        let program = Program::build_with("gcc", options, "counter.c");
        for level in [Level::Atomics, Level::Auto] {
            for run in 0..4 {
                let mut said = Vec::new();
                for switching in [BOTH, BOTH].concat() {
                    let wanted = Instrumentation::new(level, true);
                    let settings = Settings::new(switching, 5, run);
                    let outcome =
                        program.run_instrumented(wanted, settings, &parameters("random", 3, 500, 2));
                    outcome.assert_clean();
                    assert!(!outcome.partly_controlled, "{outcome:#?}");
                    said.push((outcome.stdout, outcome.steps, outcome.schedule));
                }
                assert!(!said[0].0.is_empty(), "{options:?} {level}");
                assert!(
                    said.windows(2).all(|pair| pair[0] == pair[1]),
                    "{options:?} {level} run {run}: {said:#?}"
                );
            }
        }
    }
}

/// The counter never stands still, so that no two runs read the same.
#[test]
fn the_counter_is_real_where_time_is() {
    let program = Program::build_with("gcc", &["-O2"], "counter.c").with(&["real"]);
    let said = |clock: ClockSource| {
        let mut settings = Settings::new(Switching::Carrier, 5, 0);
        settings.clock = clock as u32;
        let wanted = Instrumentation::new(Level::Atomics, true);
        let outcome = program.run_instrumented(wanted, settings, &parameters("random", 3, 500, 2));
        outcome.assert_clean();
        outcome.stdout
    };
    assert_ne!(said(ClockSource::Real), said(ClockSource::Real));
    assert_eq!(said(ClockSource::Virtual), said(ClockSource::Virtual));
}

/// Locks that call the kernel themselves are locks: nobody stands still, whoever waits is known, and a deadlock is one at once.
#[test]
fn calls_of_the_kernel_without_libc_are_under_control() {
    for options in [&["-O0"][..], &["-O2"]] {
        let built = Program::build_with("gcc", options, "kernel.c");
        for (mode, most) in [("plain", 0), ("blocked", 0), ("early", 0), ("deadlock", 40)] {
            let program = built.with(&[mode]);
            let ends = |switching| {
                let mut server = program.serve_with(Instrumentation::new(Level::Atomics, true));
                let run = |run| {
                    let outcome = server.run(Settings::new(switching, 5, run), &parameters("pos", 3, 150, 2));
                    assert!(!outcome.partly_controlled, "{options:?} {mode} {switching:?}: {outcome:#?}");
                    assert!(
                        matches!(
                            (outcome.ending, outcome.code),
                            (Ending::Exited, Some(0)) | (Ending::Deadlock, _)
                        ),
                        "{options:?} {mode} {switching:?} run {run}: {outcome:#?}"
                    );
                    (outcome.ending, outcome.steps)
                };
                (0..40).map(run).collect::<Vec<_>>()
            };
            let seen = ends(Switching::Carrier);
            let deadlocks = seen.iter().filter(|(ending, _)| *ending == Ending::Deadlock).count();
            assert!(deadlocks <= most && (most == 0 || deadlocks > 0), "{options:?} {mode}: {deadlocks}");
            assert_eq!(seen, ends(Switching::Baton), "{options:?} {mode}");
        }
    }
}
