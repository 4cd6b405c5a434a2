//! A recorded schedule can be followed exactly, and leaving it is noticed.

mod harness;

use harness::{BOTH, Program, parameters};
use waylay_control_protocol::{Ending, Settings, Switching};

const STRATEGIES: [&str; 7] = ["random", "pct:depth=3", "pos", "surw", "idiom", "stride", "rpro"];

#[test]
fn every_strategy_records_what_replay_follows() {
    for (file, argument) in
        [("order.c", ""), ("two_locks.c", ""), ("families.c", "conditions"), ("families.c", "sleeps")]
    {
        let program = Program::build(file).with(&[argument][..usize::from(!argument.is_empty())]);
        for strategy in STRATEGIES {
            for run in 0..4 {
                let settings = Settings::new(Switching::Baton, 5, run);
                let recorded = program.run_with(settings, &parameters(strategy, 3, 60, 3));
                assert_ne!(recorded.ending, Ending::Refused, "{recorded:#?}");
                for switching in BOTH {
                    // The seed has no part in a replay.
                    let again = program.replay(Settings::new(switching, 99, 0), &recorded.schedule);
                    assert_eq!(again.diverged, 0, "{}", again.text);
                    assert_eq!(again.schedule, recorded.schedule, "{strategy} run {run}");
                    assert_eq!((again.code, again.ending), (recorded.code, recorded.ending));
                }
            }
        }
    }
}

#[test]
fn a_program_that_goes_another_way_is_found_out() {
    let buggy = Program::build("two_locks.c");
    let mut runs = (0..60).map(|run| buggy.run(Switching::Carrier, 1, run));
    let recorded =
        runs.find(|run| run.ending == Ending::Deadlock).expect("one in four runs of a random walk");
    let other = buggy.with(&["same"]).replay(Settings::new(Switching::Carrier, 1, 1), &recorded.schedule);
    // The correct twin cannot come to the deadlock: one of its threads is not enabled where the schedule needs it.
    assert!(other.diverged > 0, "{other:#?}");
    let shorter = &recorded.schedule[..recorded.schedule.len() / 2];
    let cut = buggy.replay(Settings::new(Switching::Baton, 1, 1), shorter);
    assert_eq!(cut.diverged, shorter.iter().map(|stretch| stretch.steps).sum::<u64>() + 1, "{}", cut.text);
}

#[test]
fn an_unknown_strategy_is_refused() {
    let program = Program::build("order.c");
    let outcome = program.run_with(Settings::new(Switching::Baton, 1, 1), &parameters("pcd", 0, 0, 0));
    assert_eq!((outcome.ending, outcome.code), (Ending::Refused, Some(3)));
    assert!(outcome.text.contains("pct"), "{}", outcome.text);
}

#[test]
fn ten_million_steps_are_replayed_to_the_end() {
    // Two threads that yield five million times each; a random walk switches at every second step.
    let program = Program::build("yields.c").with(&["5000000"]);
    let mut settings = Settings::new(Switching::Carrier, 5, 1);
    settings.max_steps = 0;
    let recorded = program.run_with(settings, "");
    recorded.assert_clean();
    assert!(recorded.steps > 10_000_000 && recorded.schedule.len() > 4_000_000, "{}", recorded.steps);
    let again = program.replay(settings, &recorded.schedule);
    assert_eq!((again.diverged, again.steps), (0, recorded.steps), "{}", again.text);
    assert!(again.schedule == recorded.schedule);
}
