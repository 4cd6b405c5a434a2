//! Fifteen real programs, in C, C++ and Rust, run to completion with the right output: some under every strategy, the others under
//! the default one, and two servers with a client that is not part of the schedule.
//!
//! Some runs of each; `WAYLAY_REAL_RUNS=200 cargo test -p waylay --test real_programs -- --nocapture` makes 200 and prints a table,
//! `cargo bench -p waylay --bench real_programs` makes 1,000 of three under every strategy.

mod support;

use support::real::{MORE, PROGRAMS, Real, STRATEGIES, row, runs, workplace};
use support::served::SERVERS;

/// Explores a program and says that nothing is wrong with it.
fn is_right(program: &Real, strategy: &str, runs: u64) {
    let summary = program.explore(&workplace(), strategy, runs);
    let name = program.name;
    println!("{}", row(name, &summary));
    assert_eq!((&summary["failures"], &summary["runs"]), (&0.into(), &runs.into()), "{name}: {summary:#}");
    assert!(summary["threads"].as_u64().is_some_and(|threads| threads >= 3), "{name}: {summary:#}");
    assert!(!summary["notes"].to_string().contains("FAULT"), "{name}: {summary:#}");
}

#[test]
fn real_programs_do_the_same_under_every_strategy() {
    for program in PROGRAMS.iter().filter(|program| program.is_here()) {
        for strategy in STRATEGIES {
            is_right(program, strategy, 4);
        }
    }
}

#[test]
fn more_real_programs_do_the_same_in_every_schedule() {
    for program in MORE.iter().filter(|program| program.is_here()) {
        is_right(program, "portfolio", runs(6));
    }
}

#[test]
fn servers_answer_the_same_in_every_schedule() {
    for server in SERVERS.iter().filter(|server| server.is_here()) {
        let runs = runs(6);
        let (summary, right) = server.explore(runs);
        println!("{}", row(server.name, &summary));
        assert_eq!((&summary["failures"], &summary["runs"]), (&0.into(), &runs.into()), "{summary:#}");
        assert!(right >= runs, "{right} conversations of {runs}: {summary:#}");
    }
}
