//! Threads that are not under control: no false deadlocks, and the report says that they were there.

mod harness;

use harness::{BOTH, Program};

#[test]
fn outsiders_wake_logical_threads_and_the_run_says_so() {
    for what in ["semaphore", "condition", "mutex"] {
        let program = Program::build("outside.c").with(&[what]);
        for run in 0..5 {
            for switching in BOTH {
                let outcome = program.run(switching, 4, run);
                outcome.assert_clean();
                assert!(outcome.partly_controlled, "{what}");
            }
        }
    }
}

/// Who counts is in another state each time, and would be left alone for half a second of its own.
#[test]
fn a_thread_that_computes_until_it_is_cancelled_gives_way_soon() {
    let program = Program::build("outside.c").with(&["cancelled"]);
    for switching in BOTH {
        let outcomes: Vec<_> = (0..6).map(|run| program.run(switching, 4, run)).collect();
        outcomes.iter().for_each(|outcome| {
            outcome.assert_clean();
        });
        // The counter comes first in at least one of six runs; the runs are fixed.
        assert!(outcomes.iter().any(|run| run.partly_controlled), "{outcomes:#?}");
    }
}

/// Nobody else can open a circle of mutexes, whatever runs beside it.
#[test]
fn a_circle_of_mutexes_is_a_deadlock_beside_a_thread_that_is_not_under_control() {
    let program = Program::build("outside.c").with(&["circle"]);
    for switching in BOTH {
        let outcome = program.run(switching, 4, 0);
        assert_eq!(outcome.ending, waylay_control_protocol::Ending::Deadlock, "{outcome:#?}");
    }
}

/// Threads that wait for each other through what only this process has: who waits for what is said, and nothing waits for the world.
#[test]
fn a_deadlock_through_descriptors_of_the_process_is_one() {
    for (what, text) in [
        ("pipe", "waits in read of descriptor"),
        ("pair", "a socket whose peer only this process has"),
        ("counter", "an eventfd that only this process has"),
        ("full", "waits in write of descriptor"),
        ("polled", "waits in poll of descriptor"),
    ] {
        let program = Program::build("descriptors.c").with(&[what]);
        for switching in BOTH {
            let outcome = program.run(switching, 4, 0);
            assert_eq!(outcome.ending, waylay_control_protocol::Ending::Deadlock, "{what}: {outcome:#?}");
            assert!(outcome.text.contains(text) && outcome.text.contains("mutex-lock"), "{}", outcome.text);
            assert!(!outcome.partly_controlled, "{what}");
        }
    }
}

/// The other end may be elsewhere: the parent of the program, which holds it, answers when the program has waited for a while.
#[test]
fn what_others_may_have_is_waited_for() {
    for what in ["fifo", "passed", "handler"] {
        let program = Program::build("descriptors.c").with(&[what]);
        for switching in BOTH {
            program.run(switching, 4, 0).assert_clean();
        }
    }
}

/// Another process that the program has not started has the same memory, or a semaphore of that name.
#[test]
fn what_lies_in_memory_that_others_may_have_is_waited_for() {
    for what in ["named", "file", "segment", "mutex", "condition", "barrier", "futex", "sleeper"] {
        let program = Program::build("shared.c").with(&[what]);
        for switching in BOTH {
            let outcome = program.run(switching, 4, 0);
            outcome.assert_clean();
        }
    }
    let outcome = Program::build("shared.c").with(&["anonymous"]).run(BOTH[0], 4, 0);
    assert_eq!(outcome.ending, waylay_control_protocol::Ending::Deadlock, "{outcome:#?}");
}

#[test]
fn a_thread_that_blocks_with_the_token_gives_way() {
    for what in ["inline", "stream"] {
        let program = Program::build("outside.c").with(&[what]);
        for switching in BOTH {
            let outcomes: Vec<_> = (0..6).map(|run| program.run(switching, 4, run)).collect();
            outcomes.iter().for_each(|outcome| {
                outcome.assert_clean();
            });
            // The waiter comes first in at least one of six runs, with probability above 1 - 2^-6; the runs are fixed.
            let named = |text: &str| text.contains("waits in a system call that is not under control");
            assert!(
                outcomes.iter().any(|run| run.partly_controlled && named(&run.text)),
                "{what}: {outcomes:#?}"
            );
        }
    }
}
