//! Runs repeated inside one process: as many as wanted, each fresh, alike under baton and carrier.

mod harness;

use harness::{BOTH, Outcome, Program, parameters};
use waylay_control_protocol::{Ending, Settings, Switching};
use waylay_schedule::Handover;

fn settings(switching: Switching) -> Settings {
    let mut settings = Settings::new(switching, 9, 0);
    settings.in_process = 1;
    settings
}

fn repeat(kind: &str, runs: u64, strategy: &str) -> [Outcome; 2] {
    let program = Program::build("host.c").with(&[kind, &runs.to_string()]);
    BOTH.map(|switching| {
        let outcome = program.run_with(settings(switching), &parameters(strategy, 0, 0, 0));
        assert!(outcome.code == Some(0) && outcome.ending == Ending::Unfinished, "{outcome:#?}");
        outcome
    })
}

#[test]
fn the_same_runs_find_the_same_bugs_under_baton_and_carrier() {
    for strategy in ["random", "pct:depth=1", "pct:depth=2", "pos", "surw", "idiom", "stride", "rpro"] {
        let [baton, carrier] = repeat("order", 2000, strategy);
        assert_eq!(baton.stdout, carrier.stdout, "{strategy}");
        assert_eq!(baton.schedule, carrier.schedule, "{strategy}");
        assert!(!baton.stdout.contains("bugs=0 "), "{strategy}: {}", baton.stdout);
    }
}

#[test]
fn recycled_threads_look_new() {
    repeat("fresh", 300, "random");
}

/// A tick that comes at the same step of another run does not see a thread that computes without a step.
#[test]
fn runs_that_look_alike_are_not_one_that_does_not_end() {
    repeat("busy", 1000, "random");
}

#[test]
fn detached_threads_end_before_the_run_does() {
    repeat("detached", 300, "random");
}

#[test]
fn threads_that_wait_for_good_are_left_behind_and_end_the_series() {
    for kind in ["pool", "reader", "ticker"] {
        for switching in BOTH {
            let program = Program::build("host.c").with(&[kind, "1"]);
            let outcome = program.run_with(settings(switching), &parameters("random", 0, 0, 0));
            assert_eq!(outcome.stdout, "left=1 threads=2 refused=1\n", "{kind} {switching:?}: {outcome:#?}");
            let handed: Handover = serde_json::from_str(&outcome.handed).unwrap();
            assert_eq!(handed.next.unwrap().strategy, "random");
        }
    }
}

#[test]
fn a_thread_left_waiting_for_a_lock_is_a_deadlock() {
    for switching in BOTH {
        let program = Program::build("host.c").with(&["stuck", "1"]);
        let outcome = program.run_with(settings(switching), &parameters("random", 0, 0, 0));
        assert_eq!((outcome.code, outcome.ending), (Some(86), Ending::Deadlock), "{outcome:#?}");
        assert!(outcome.text.contains("mutex-lock"), "{}", outcome.text);
    }
}

#[test]
fn nothing_moves_after_a_stop() {
    for switching in BOTH {
        let program = Program::build("host.c").with(&["stopping", "1"]);
        let outcome = program.run_with(settings(switching), &parameters("pct:depth=2", 0, 0, 0));
        assert_eq!(outcome.stdout, "still=1 refused=1\n", "{switching:?}: {outcome:#?}");
        let handed: Handover = serde_json::from_str(&outcome.handed).unwrap();
        assert!(handed.run.depth > 0 && handed.next.is_some(), "{handed:?}");
    }
}

/// A failure ends the process, so a search has to go on in the next one: no schedule twice, and an end.
#[test]
fn a_search_goes_on_in_the_next_process() {
    for strategy in ["dfs", "pb:bound=2"] {
        let (mut failing, mut from, mut given) = (Vec::new(), 0u64, parameters(strategy, 0, 0, 0));
        let runs = loop {
            let program = Program::build("host.c").with(&["deadlock", &from.to_string()]);
            let outcome = program.run_with(settings(Switching::Carrier), &given);
            if outcome.code == Some(0) {
                break outcome.stdout.trim().trim_start_matches("exhausted=").parse::<u64>().unwrap();
            }
            assert_eq!(outcome.ending, Ending::Deadlock, "{outcome:#?}");
            let handed: Handover = serde_json::from_str(&outcome.handed).unwrap();
            if strategy == "dfs" {
                assert!(!failing.contains(&outcome.schedule), "{strategy}: twice {:?}", outcome.schedule);
            }
            failing.push(outcome.schedule);
            // The tally counts the runs that began, the failing one too.
            from += outcome.begun;
            let Some(next) = handed.next else { break from };
            given = serde_json::to_string(&next).unwrap();
        };
        assert!(failing.len() > 3, "{strategy}: {} of {runs}", failing.len());
        assert!(runs > failing.len() as u64 && runs < 20_000, "{strategy}: {runs}");
    }
}

/// The kernel thread of a thread that has ended waits for another routine: it is not outside the schedule.
#[test]
fn a_deadlock_that_an_ending_thread_finds_is_reported_at_once() {
    for switching in BOTH {
        for seed in 0..8 {
            let mut settings = settings(switching);
            settings.seed = seed;
            let program = Program::build("host.c").with(&["last", "1"]);
            let outcome = program.run_with(settings, &parameters("random", 0, 0, 0));
            assert_eq!((outcome.code, outcome.ending), (Some(86), Ending::Deadlock), "{outcome:#?}");
            assert!(
                !outcome.partly_controlled && outcome.text.starts_with("deadlock: 2 threads"),
                "{outcome:#?}"
            );
            assert!(!outcome.text.contains("thread 1 "), "{}", outcome.text);
        }
    }
}
