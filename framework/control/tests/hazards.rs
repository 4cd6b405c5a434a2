//! What real programs do that a scheduler inside the process has to survive, one test per hazard.

mod harness;

use harness::{BOTH, Outcome, Program};
use waylay_control_protocol::Ending;

const RUNS: u64 = 8;

fn runs(hazard: &str) -> Vec<[Outcome; 2]> {
    let program = Program::build("hazards.c").with(&[hazard]);
    (0..RUNS).map(|run| BOTH.map(|switching| program.run(switching, 21, run))).collect()
}

/// Clean under baton and carrier, with equal schedules.
fn survives_exactly(hazard: &str) {
    for (run, [baton, carrier]) in runs(hazard).iter().enumerate() {
        baton.assert_clean();
        carrier.assert_clean();
        assert_eq!(baton.schedule, carrier.schedule, "run {run}");
        assert_eq!(baton.stdout, carrier.stdout, "run {run}");
        assert!(!baton.partly_controlled && !carrier.partly_controlled, "run {run}");
    }
}

/// Clean under baton and carrier; the kernel has a say in the schedule.
fn survives(hazard: &str) {
    for outcome in runs(hazard).iter().flatten() {
        outcome.assert_clean();
    }
}

macro_rules! hazards {
    ($how:ident: $($name:ident)+) => {$(
        #[test]
        fn $name() {
            $how(stringify!($name));
        }
    )+};
}

hazards! { survives_exactly:
    pipe full_pipe polling event_descriptor fault_handler kill_thread handler_posts signal_masks alternate_stacks
    cancellation credentials processor_clocks clock_loop processors randomness main_leaves cancelled_before_waiting
    leaving_from_within leaving_unnoticed main_is_joined direct_calls message_queue
}
hazards! { survives:
    spinning from_outside child_with_pipe forking shell call_while_suspended call_with_information call_in_time
    calls_of_two
}

/// Who computes is not taken for one who waits: the schedule is nobody's but the strategy's.
#[test]
fn computing() {
    let program = Program::build("hazards.c").with(&["computing"]);
    let [baton, carrier] = BOTH.map(|switching| program.run(switching, 21, 0));
    for outcome in [&baton, &carrier] {
        assert!(!outcome.assert_clean().partly_controlled, "{outcome:#?}");
    }
    assert_eq!(baton.schedule, carrier.schedule);
}

#[test]
fn locked_stream() {
    for outcome in runs("locked_stream").iter().flatten() {
        assert_eq!(outcome.assert_clean().stdout, "one line\none line\n");
    }
}

#[test]
fn exit_from_thread() {
    for outcome in runs("exit_from_thread").iter().flatten() {
        assert_eq!((outcome.code, outcome.ending), (Some(7), Ending::Exited), "{outcome:#?}");
        assert_eq!(outcome.stdout, "exit handler\n");
    }
}

#[test]
fn main_returns() {
    for outcome in runs("main_returns").iter().flatten() {
        assert_eq!(outcome.assert_clean().stdout, "exit handler\n");
    }
}

#[test]
fn many_threads() {
    for (count, at_once) in [("600", "3"), ("300", "300")] {
        let program = Program::build("churn.c").with(&[count, at_once]);
        let [baton, carrier] = BOTH.map(|switching| program.run(switching, 1, 1));
        baton.assert_clean();
        carrier.assert_clean();
        assert_eq!(baton.schedule, carrier.schedule);
        assert_eq!(baton.threads, count.parse::<u32>().expect("a number") + 1);
    }
}

#[test]
fn interrupted() {
    let program = Program::build("interrupted.c");
    for run in 0..RUNS {
        for switching in BOTH {
            program.run(switching, 1, run).assert_clean();
        }
    }
}
