//! Real multi-threaded programs of the distribution: their output must not depend on the schedule.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::Workplace;

/// How many schedules of each program a test makes, unless this variable says otherwise: 200 of each take some minutes.
pub(crate) fn runs(usual: u64) -> u64 {
    std::env::var("WAYLAY_REAL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(usual)
}

/// What is told of a program's schedules.
pub(crate) fn row(name: &str, summary: &Value) -> String {
    let number = |name: &str| summary[name].as_u64().unwrap_or(u64::MAX);
    format!(
        "{name:<24} {:>5} runs {:>2} failures {:>2} threads {:>6} steps {:>3} partly {:>6.0}/s",
        number("runs"),
        number("failures"),
        number("threads"),
        number("steps"),
        number("partly_controlled"),
        summary.get("schedules_per_second").and_then(Value::as_f64).unwrap_or(0.0)
    )
}

/// Every strategy that can be chosen.
pub(crate) const STRATEGIES: [&str; 12] =
    ["pct", "rpro", "stride", "pos", "surw", "idiom", "random", "pb", "db", "dfs", "noise", "portfolio"];

/// A program, what it is written in, and its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Real {
    pub(crate) name: &'static str,
    pub(crate) language: &'static str,
    arguments: &'static [&'static str],
}

/// Programs that are run under every strategy. The Rust one searches a tree in which one file matches, since the order of matches
/// is not defined.
pub(crate) const PROGRAMS: [Real; 3] = [
    Real { name: "pigz", language: "C", arguments: &["-p", "3", "-b", "32", "-n", "-c", "input"] },
    Real { name: "pbzip2", language: "C++", arguments: &["-p3", "-b1", "-c", "input"] },
    Real { name: "rg", language: "Rust", arguments: &["--threads", "3", "--no-config", "needle", "tree"] },
];

/// Programs that are run under the default strategy alone.
pub(crate) const MORE: [Real; 10] = [
    Real { name: "xz", language: "C", arguments: &["-T3", "--block-size=32KiB", "-c", "input"] },
    Real { name: "zstd", language: "C", arguments: &["-T3", "-B65536", "-c", "input"] },
    Real { name: "pixz", language: "C", arguments: &["-p", "3", "-t", "input", "/dev/stdout"] },
    Real { name: "lbzip2", language: "C", arguments: &["-n3", "-c", "input"] },
    Real { name: "plzip", language: "C++", arguments: &["-n3", "-1", "-B", "65536", "-c", "input"] },
    Real {
        name: "x264",
        language: "C",
        arguments: &[
            "--quiet",
            "--threads",
            "3",
            "--input-res",
            "64x64",
            "--preset",
            "ultrafast",
            "--muxer",
            "raw",
            "-o",
            "/dev/stdout",
            "frames.yuv",
        ],
    },
    Real { name: "ag", language: "C", arguments: &["--workers", "3", "needle", "tree"] },
    Real { name: "fdfind", language: "Rust", arguments: &["-j", "3", "1.txt", "tree/3"] },
    Real { name: "ugrep", language: "C++", arguments: &["-J3", "-r", "needle", "tree"] },
    Real {
        name: "git",
        language: "C",
        arguments: &["grep", "--no-index", "--threads", "3", "needle", "tree"],
    },
];

/// `.ci/run` installs the programs and sets this; elsewhere a missing one is only mentioned.
const REQUIRED: &str = "WAYLAY_REQUIRE_REAL_PROGRAMS";

/// Whether a program can be run here.
pub(crate) fn is_here(name: &str) -> bool {
    let here = Command::new(name).arg("--version").output().is_ok();
    assert!(here || std::env::var_os(REQUIRED).is_none(), "{name} is not installed");
    if !here {
        eprintln!("{name} is not installed: not tested");
    }
    here
}

impl Real {
    /// Whether the program can be run here.
    pub(crate) fn is_here(&self) -> bool {
        is_here(self.name)
    }

    /// Explores the program and returns the summary.
    pub(crate) fn explore(&self, place: &Workplace, strategy: &str, runs: u64) -> Value {
        let reference = self.reference(place);
        let runs = runs.to_string();
        // Runs that are looked at take long on a machine that has other things to do.
        let mut arguments =
            vec!["explore", "--json", "--quiet", "--seed", "3", "--timeout", "250s", "--runs", &runs];
        arguments.extend([
            "--strategy",
            strategy,
            "--expect-stdout",
            reference.to_str().expect("a plain path"),
        ]);
        arguments.extend(["--", self.name]);
        arguments.extend(self.arguments);
        let ran = place.waylay(&arguments);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{self:?}: {error}: {ran:#?}"))
    }

    /// What the program writes when nobody disturbs it.
    fn reference(&self, place: &Workplace) -> PathBuf {
        let output = Command::new(self.name).args(self.arguments).current_dir(place.path()).output();
        let output = output.expect("the program runs");
        assert!(output.status.success() && !output.stdout.is_empty(), "{self:?}: {output:?}");
        let path = place.path().join(format!("{}.expected", self.name));
        fs::write(&path, output.stdout).expect("a file");
        path
    }
}

/// A folder with what the programs read.
pub(crate) fn workplace() -> Workplace {
    let place = Workplace::new();
    let mut text = String::new();
    let mut state = 1u32;
    while text.len() < 150_000 {
        // Words that neither repeat nor are noise.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text += &format!("{} ", state >> 20);
    }
    place.write("input", &text);
    let frames: Vec<u8> =
        (0..4 * 64 * 96u32).map(|place| (place * 7 + place / 64 * 5 + place / 6144 * 11) as u8).collect();
    fs::write(place.path().join("frames.yuv"), frames).expect("a file");
    for folder in 0..5 {
        let path = place.path().join(format!("tree/{folder}"));
        fs::create_dir_all(&path).expect("a folder");
        for file in 0..3 {
            fs::write(path.join(format!("{file}.txt")), "nothing but hay\n").expect("a file");
        }
    }
    place.write("tree/3/1.txt", "hay\na needle in it\n");
    place
}
