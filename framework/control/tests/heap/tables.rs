//! Every way to allocate and free, and what the tables say afterwards.

use crate::program::{EVERYTHING, Program};
use waylay_leaks::region::Sampling;

#[test]
fn every_function_of_the_family_is_counted() {
    let ended = Program::c("heap.c").run(&["aligned"], EVERYTHING);
    let expected = [10_001, 20_480, 30_003, 40_004, 50_005, 60_006, 70_007, 80_008];
    assert_eq!(ended.live_sizes_of("aligned"), expected);
}

#[test]
fn reallocs_move_their_samples() {
    let ended = Program::c("heap.c").run(&["reallocs", "20000"], EVERYTHING);
    let live: u64 = ended.live_sizes_of("grow_here").iter().sum();
    assert_eq!(live, ended.printed("live"));
}

#[test]
fn blocks_freed_by_another_thread_are_gone() {
    let ended = Program::c("heap.c").run(&["across", "30000"], EVERYTHING);
    assert_eq!(ended.live_sizes_of("produce"), []);
    assert!(ended.snapshot.deaths > 25_000, "{}", ended.snapshot.deaths);
}

/// The program checks the contents of its blocks; here nothing may be left of them, at any sampling.
#[test]
fn stress_leaves_nothing() {
    let program = Program::c("heap.c");
    for period in [1, 1000, 100_000] {
        let ended = program.run(&["stress", "4", "40000"], Sampling { period, seed: None });
        assert_eq!(ended.live_sizes_of("churn"), [], "period {period}");
        assert!(ended.snapshot.deaths > 0);
    }
}

#[test]
fn blocks_from_before_the_beginning_can_be_freed() {
    let program = Program::build("cc", "early.c", &["-O2", "-fPIC", "-shared"]);
    program.compile("cc", "early.c", &["-O2", "-fPIC", "-shared"], "libearly.so");
    program.compile("cc", "early_user.c", &["-O2", "-g", "-no-pie", "-L.", "-learly"], "program");
    let ended = program.run(&[], EVERYTHING);
    assert_eq!(ended.live_sizes_of("main"), []);
}
