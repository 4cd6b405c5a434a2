//! Whether PCT keeps its promise on programs with known bugs: `cargo bench -p waylay-control --bench evidence`.
//!
//! 20,000 schedules of each animal of the zoo, whose bug has to show at least as often as the guarantee says, and 100,000
//! of its correct twin, which must never fail. The runs are a function of their numbers: every machine counts the same.

#[path = "../tests/harness/mod.rs"]
mod harness;

use harness::zoo::{ANIMALS, detect, repeat};

const RUNS: u64 = 20_000;
const RUNS_OF_TWINS: u64 = 100_000;

fn main() {
    println!("{:<34} {:>5} {:>4} {:>5} {:>9} {:>9}   twin", "", "depth", "n", "k", "promised", "found");
    let mut broken = 0;
    for (file, name, depth) in ANIMALS {
        let detection = detect(file, name, depth, RUNS);
        let twin = repeat(file, name, "fixed", "pct:depth=3", RUNS_OF_TWINS);
        let kept = detection.is_kept() && twin.failures == 0;
        broken += u32::from(!kept);
        println!(
            "{:<34} {depth:>5} {:>4} {:>5} {:>8.3} % {:>7.2} %   {} of {RUNS_OF_TWINS}{}",
            format!("{file} {name}"),
            detection.tally.threads,
            detection.tally.steps,
            detection.promised * 100.0,
            detection.found * 100.0,
            twin.failures,
            if kept { "" } else { "   BROKEN" }
        );
    }
    assert_eq!(broken, 0, "promises broken");
}
