//! Three real programs, in C, C++ and Rust, run to completion under every strategy with the right output.
//!
//! Some runs of each; `cargo bench -p waylay --bench real_programs` makes 1,000.

mod support;

use support::real::{PROGRAMS, STRATEGIES, workplace};

const RUNS: u64 = 12;

#[test]
fn real_programs_do_the_same_under_every_strategy() {
    let place = workplace();
    for program in PROGRAMS.iter().filter(|program| program.is_here()) {
        for strategy in STRATEGIES {
            let summary = program.explore(&place, strategy, RUNS);
            let name = program.name;
            assert_eq!(
                (&summary["failures"], &summary["runs"]),
                (&0.into(), &RUNS.into()),
                "{name}: {summary:#}"
            );
            assert!(summary["threads"].as_u64().is_some_and(|threads| threads >= 3), "{name}: {summary:#}");
        }
    }
}
