//! Runs repeated inside one process: as many as wanted, each fresh, alike under baton and carrier.

mod harness;

use harness::{BOTH, Outcome, Program, parameters};
use waylay_control_protocol::{Ending, Settings};

fn repeat(kind: &str, runs: u64, strategy: &str) -> [Outcome; 2] {
    let program = Program::build("host.c").with(&[kind, &runs.to_string()]);
    BOTH.map(|switching| {
        let mut settings = Settings::new(switching, 9, 0);
        settings.in_process = 1;
        let outcome = program.run_with(settings, &parameters(strategy, 0, 0, 0));
        assert!(outcome.code == Some(0) && outcome.ending == Ending::Unfinished, "{outcome:#?}");
        outcome
    })
}

#[test]
fn the_same_runs_find_the_same_bugs_under_baton_and_carrier() {
    for strategy in ["random", "pct:depth=1", "pct:depth=2", "pos", "surw", "stride", "rpro"] {
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

#[test]
fn detached_threads_end_before_the_run_does() {
    repeat("detached", 300, "random");
}
