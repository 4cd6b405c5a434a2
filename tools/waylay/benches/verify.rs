//! How often `waylay verify` calls a bug fixed that is still there: `cargo bench -p waylay --bench verify [-- SEEDS]`.
//!
//! A failure is found, and the run that found it stops at it: the rate that this shows is the one that flatters most. Then the
//! program is built with a function more, which changes nothing, and verified. Four programs, the rarer the more pairs of threads
//! have to meet, 60 seeds each. It may be wrong in at most 5 % of them, as `verify` says of itself.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const PAIRS: [u32; 4] = [2, 4, 6, 8];
const SEEDS: u64 = 60;
/// Of all, in percent.
const MOST_WRONG: u64 = 5;

fn build(program: &Path, options: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/verify/rare.c");
    // Not in place: a new program has a new file, as a linker makes it.
    let _ = std::fs::remove_file(program);
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-pthread"]).args(options).arg("-o").arg(program).arg(source);
    assert!(gcc.status().expect("gcc is installed").success());
}

fn waylay(folder: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waylay"));
    let output = command.args(arguments).current_dir(folder).output().expect("waylay starts");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn main() {
    let asked = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let seeds: u64 = asked.unwrap_or(SEEDS);
    let (mut all, mut wrong) = (0, 0);
    println!("pairs  found in schedule (median)  came back  undecided  called fixed");
    for pairs in PAIRS {
        let pairs = format!("-DPAIRS={pairs}");
        let (mut first, mut back, mut fixed) = (Vec::new(), 0, 0);
        for seed in 1..=seeds {
            let place = tempfile::tempdir().expect("a temporary folder");
            let program = place.path().join("rare");
            let file = program.to_str().expect("a plain path");
            build(&program, &[&pairs]);
            let seed = seed.to_string();
            let explore = [
                "explore",
                "--json",
                "-q",
                "--stop-on-first",
                "--minimize",
                "off",
                "--runs",
                "20000",
                "--seed",
            ];
            let found = waylay(place.path(), &[&explore[..], &[&seed, "--", file]].concat());
            let Some(failure) = found["failure_dir"].as_str() else { continue };
            first.push(found["first_failure_run"].as_u64().unwrap_or_default());
            build(&program, &[&pairs, "-DCHANGE=3"]);
            let verdict = waylay(place.path(), &["verify", "--json", "--duration", "60s", failure]);
            assert_eq!(verdict["unchanged"], false, "{verdict:#}");
            let is_sure = verdict["runs"].as_u64() >= verdict["needed"].as_u64();
            back += u64::from(verdict["reproduced"] == true);
            fixed += u64::from(verdict["reproduced"] == false && is_sure);
        }
        first.sort_unstable();
        let (count, median) = (first.len() as u64, first.get(first.len() / 2).copied().unwrap_or_default());
        println!("{:5}  {median:26}  {back:9}  {:9}  {fixed:12}", &pairs[8..], count - back - fixed);
        (all, wrong) = (all + count, wrong + fixed);
    }
    println!("{wrong} of {all} wrong");
    assert!(all > 0 && wrong * 100 <= MOST_WRONG * all, "verify is wrong more often than it says");
}
