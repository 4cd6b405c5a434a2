//! The same seed gives the same schedule, step for step: under carrier and baton, run after run, in fresh processes and
//! in children of a fork server, for every program here that is itself deterministic.

mod harness;

use harness::{BOTH, Program, parameters};
use waylay_control_protocol::{Settings, Switching};

const PROGRAMS: [(&str, &[&str]); 24] = [
    ("order.c", &[]),
    ("two_locks.c", &[]),
    ("identity.c", &[]),
    ("standard_library.cpp", &[]),
    ("standard_library.rs", &[]),
    ("churn.c", &["12", "3"]),
    ("families.c", &["mutexes"]),
    ("families.c", &["robust"]),
    ("families.c", &["conditions"]),
    ("families.c", &["rwlocks"]),
    ("families.c", &["semaphores"]),
    ("families.c", &["barriers"]),
    ("families.c", &["sleeps"]),
    ("families.c", &["joins"]),
    ("families.c", &["c11"]),
    ("hazards.c", &["pipe"]),
    ("hazards.c", &["polling"]),
    ("hazards.c", &["randomness"]),
    ("hazards.c", &["kill_thread"]),
    ("zoo.c", &["philosophers"]),
    ("zoo.c", &["aba"]),
    ("zoo.cpp", &["stale_size"]),
    ("zoo.cpp", &["lock_order"]),
    ("zoo.rs", &["lost_wake_up"]),
];

#[test]
fn equal_seeds_give_equal_schedules() {
    for (file, arguments) in PROGRAMS {
        let program = Program::build(file).with(arguments);
        let mut servers = BOTH.map(|switching| (switching, program.serve()));
        for strategy in ["random", "pct:depth=3", "pos"] {
            let parameters = parameters(strategy, 4, 100, 3);
            for seed in 0..5 {
                let with = |switching: Switching| {
                    let mut settings = Settings::new(switching, seed, seed);
                    (settings.calls, settings.guard) = (1, 1);
                    settings
                };
                let first = program.run_with(with(Switching::Carrier), &parameters);
                assert!(
                    !first.schedule.is_empty() && !first.partly_controlled,
                    "{file} {arguments:?}: {first:#?}"
                );
                for (switching, server) in &mut servers {
                    for again in 0..2 {
                        let next = server.run(with(*switching), &parameters);
                        let name =
                            format!("{file} {arguments:?} {strategy} seed {seed} {switching:?} {again}");
                        assert_eq!(
                            (first.code, first.ending, first.steps),
                            (next.code, next.ending, next.steps),
                            "{name}"
                        );
                        assert!(first.schedule == next.schedule, "{name}");
                    }
                }
            }
        }
    }
}
