//! The smallest programs, whole: what they do under the scheduler, and that equal seeds do equal things.

mod harness;

use harness::{BOTH, Program, parameters};
use waylay_control_protocol::{DEADLOCK_STATUS, Ending, Settings, Switching};

#[test]
fn an_order_violation_happens_in_some_schedules_and_not_in_others() {
    let program = Program::build("order.c");
    for switching in BOTH {
        let mut seen = [0; 2];
        for run in 0..40 {
            let outcome = program.run(switching, 1, run);
            assert_eq!(outcome.ending, Ending::Exited, "{outcome:#?}");
            assert_eq!(outcome.threads, 3);
            // Baton stands in on a machine that cannot carry.
            assert!([Some(switching), Some(Switching::Baton)].contains(&outcome.switching));
            seen[outcome.code.expect("an exit") as usize] += 1;
        }
        // A symmetric race: each side wins with probability near 1/2; one-sided 40 times has odds below 1e-11.
        assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    }
}

#[test]
fn a_deadlock_is_reported_with_every_stack() {
    let program = Program::build("two_locks.c");
    for switching in BOTH {
        let mut deadlocks = 0;
        for run in 0..60 {
            let outcome = program.run(switching, 2, run);
            if outcome.ending != Ending::Deadlock {
                outcome.assert_clean();
                continue;
            }
            deadlocks += 1;
            assert_eq!(outcome.code, Some(DEADLOCK_STATUS));
            for part in [
                "thread 0",
                "thread 1",
                "thread 2",
                " one\n",
                " two\n",
                " main\n",
                "held by thread 2",
                "thread-join",
            ] {
                assert!(outcome.text.contains(part), "{part} is missing in\n{}", outcome.text);
            }
        }
        // A random walk interleaves the two pairs of locks with probability above 1/4.
        assert!(deadlocks > 0 && deadlocks < 60, "{deadlocks}");
        for run in 0..30 {
            program.with(&["same"]).run(switching, 2, run).assert_clean();
        }
    }
}

#[test]
fn equal_seeds_give_equal_schedules_under_baton_and_carrier() {
    for file in ["order.c", "two_locks.c"] {
        let program = Program::build(file);
        for run in 0..30 {
            let baton = program.run(Switching::Baton, 3, run);
            let again = program.run(Switching::Baton, 3, run);
            let carrier = program.run(Switching::Carrier, 3, run);
            assert!(!baton.schedule.is_empty());
            assert_eq!(baton.schedule, again.schedule);
            assert_eq!(baton.schedule, carrier.schedule);
            assert_eq!(
                (baton.code, baton.steps, baton.ending),
                (carrier.code, carrier.steps, carrier.ending)
            );
        }
    }
}

#[test]
fn the_fork_server_runs_the_same_schedules() {
    let program = Program::build("order.c");
    for switching in BOTH {
        let mut server = program.serve();
        for run in 0..50 {
            let served = server.run(Settings::new(switching, 3, run), "");
            let alone = program.run(switching, 3, run);
            assert_eq!((served.code, &served.schedule), (alone.code, &alone.schedule));
        }
    }
}

#[test]
fn a_program_that_never_ends_is_stopped_at_the_step_limit() {
    let program = Program::build("two_locks.c").with(&["same"]);
    for switching in BOTH {
        let mut settings = Settings::new(switching, 1, 1);
        settings.max_steps = 5;
        let outcome = program.run_with(settings, "");
        assert_eq!(outcome.ending, Ending::StepLimit, "{outcome:#?}");
    }
}

#[test]
fn without_a_region_the_library_does_nothing() {
    let program = Program::build("order.c");
    let outcome = program.run(Switching::Free, 0, 0);
    assert_eq!(outcome.ending, Ending::Unfinished);
    assert!(outcome.schedule.is_empty());
    assert!(outcome.code.is_some());
}

#[test]
fn a_program_that_runs_free_calls_libc_directly() {
    let program = Program::build("aside.c");
    assert_eq!(program.run(Switching::Free, 0, 0).stdout, "libc\n");
    assert_eq!(program.run(Switching::Baton, 0, 0).stdout, "library\n");
}

#[test]
fn without_fsgsbase_baton_stands_in() {
    let old = Program::build_with("gcc", &["-shared", "-fPIC"], "old_processor.c");
    let program = Program::build("order.c").behind(&old);
    for run in 0..5 {
        let [baton, carrier] = BOTH.map(|switching| program.run(switching, 3, run));
        assert_eq!((baton.switching, carrier.switching), (Some(Switching::Baton), Some(Switching::Baton)));
        assert_eq!(baton.schedule, carrier.schedule);
    }
}

/// A tenth of the step limit in which nothing changes, but no less than a hundred thousand steps, is the end of a run; steps
/// that change something are not counted.
#[test]
fn threads_that_only_wait_for_each_other_are_a_livelock() {
    const LIMIT: u64 = 1_000_000;
    const QUIET: u64 = 100_000;
    let program = Program::build("patient.c");
    for switching in BOTH {
        let mut settings = Settings::new(switching, 3, 1);
        settings.max_steps = LIMIT;
        let outcome = program.run_with(settings, "");
        assert_eq!(outcome.ending, Ending::Livelock, "{outcome:#?}");
        assert!((QUIET..QUIET + 100).contains(&outcome.steps), "{outcome:#?}");
        assert!(outcome.text.contains("livelock: "), "{outcome:#?}");
        let busy = program.with(&["60000"]).run_with(settings, "");
        assert!(busy.assert_clean().steps > QUIET, "{busy:#?}");
    }
}

/// The address that such a program takes is that of its own stub; bound to it, the stub would jump to itself.
#[test]
fn a_program_at_a_fixed_address_can_take_the_addresses_of_functions() {
    let options = ["-no-pie", "-fno-pic", "-fno-builtin", "-Wl,-z,lazy"];
    let mut server = Program::build_with("gcc", &options, "canonical.c").serve();
    for run in 0..3 {
        server.run(Settings::new(Switching::Carrier, 1, run), &parameters("stride", 0, 0, 0)).assert_clean();
    }
}

/// Its destructor runs after everything of this library, which was loaded first.
#[test]
fn a_library_stops_its_thread_when_the_program_ends() {
    let library = Program::build_with("gcc", &["-shared", "-fPIC", "-DLIBRARY"], "late.c");
    let program = Program::build_with("gcc", &[library.path().to_str().expect("a plain path")], "late.c");
    for run in 0..20 {
        let [baton, carrier] = BOTH.map(|switching| program.run(switching, 5, run));
        assert_eq!(baton.assert_clean().schedule, carrier.assert_clean().schedule);
    }
}

/// Equal schedules under both ways to switch: the kernel keeps the signal, and has no say in who runs.
#[test]
fn signals_are_read_from_a_descriptor_that_is_older_than_the_first_thread() {
    let program = Program::build("signal_reader.c");
    for run in 0..20 {
        let [baton, carrier] = BOTH.map(|switching| program.run(switching, 6, run));
        for outcome in [&baton, &carrier] {
            outcome.assert_clean();
            assert!(!outcome.partly_controlled, "{outcome:#?}");
        }
        assert_eq!(baton.schedule, carrier.schedule, "run {run}");
    }
}
