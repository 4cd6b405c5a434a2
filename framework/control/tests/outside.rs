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
