//! A short storm and short fuzzing with fixed seeds: the number of campaigns and cases decides when they are over, not the
//! clock. The long ones are `cargo bench -p waylay --bench storm` and `--bench fuzz`.

#![cfg(target_os = "linux")]
#![allow(dead_code, reason = "what only the long ones need")]

#[path = "../benches/fuzz/mod.rs"]
mod fuzz;
#[path = "../benches/storm/mod.rs"]
mod storm;

use waylay_dist::Seed;

const CAMPAIGNS: u32 = 60;
const CASES: u32 = 4_000;
const ALONE: &str = "WAYLAY_TEST_FUZZ_ALONE";

#[test]
fn nothing_is_left_lost_or_broken_after_a_storm() {
    const { assert!(storm::KINDS.0 >= 30 && storm::KINDS.1 >= 25) };
    let length = storm::Length::Campaigns(CAMPAIGNS);
    let report = storm::Storm { seed: Seed::new(20), length, lanes: 2 }.rage();
    assert!(report.violations.is_empty(), "{report}");
    // Most faults find something to be done to.
    assert!(report.made() > u64::from(CAMPAIGNS), "{report}");
}

/// In a process of its own, because a reader that takes too much can only be stopped by ending its process.
#[test]
fn no_reader_panics_or_takes_more_than_it_may() {
    const NAME: &str = "no_reader_panics_or_takes_more_than_it_may";
    if std::env::var_os(ALONE).is_some() {
        let length = fuzz::Length::Cases(CASES);
        let found = fuzz::Fuzzing { seed: Seed::new(20), length, target: None, input: None }.run();
        assert!(found.is_empty(), "{}", found.join("\n"));
        return;
    }
    let mut command = std::process::Command::new(std::env::current_exe().expect("this test"));
    let output = command.args(["--exact", NAME, "--nocapture"]).env(ALONE, "1").output().expect("it runs");
    let words = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{}", words.join("\n"));
    assert!(words[0].contains(": 0 findings"), "{}", words[0]);
}
