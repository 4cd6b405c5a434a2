//! Real multi-threaded programs of the distribution, run under every strategy: their output must not depend on it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::Workplace;

/// Every strategy that can be chosen.
pub(crate) const STRATEGIES: [&str; 11] =
    ["pct", "rpro", "stride", "pos", "surw", "random", "pb", "db", "dfs", "noise", "portfolio"];

/// A program, what it is written in, and its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Real {
    pub(crate) name: &'static str,
    pub(crate) language: &'static str,
    arguments: &'static [&'static str],
}

/// The programs. The Rust one searches a tree in which one file matches, since the order of matches is not defined.
pub(crate) const PROGRAMS: [Real; 3] = [
    Real { name: "pigz", language: "C", arguments: &["-p", "3", "-b", "32", "-n", "-c", "input"] },
    Real { name: "pbzip2", language: "C++", arguments: &["-p3", "-b1", "-c", "input"] },
    Real { name: "rg", language: "Rust", arguments: &["--threads", "3", "--no-config", "needle", "tree"] },
];

/// `.ci/run` installs the programs and sets this; elsewhere a missing one is only mentioned.
const REQUIRED: &str = "WAYLAY_REQUIRE_REAL_PROGRAMS";

impl Real {
    /// Whether the program can be run here.
    pub(crate) fn is_here(&self) -> bool {
        let here = Command::new(self.name).arg("--version").output().is_ok();
        assert!(here || std::env::var_os(REQUIRED).is_none(), "{} is not installed", self.name);
        if !here {
            eprintln!("{} is not installed: not tested", self.name);
        }
        here
    }

    /// Explores the program and returns the summary.
    pub(crate) fn explore(&self, place: &Workplace, strategy: &str, runs: u64) -> Value {
        let reference = self.reference(place);
        let runs = runs.to_string();
        let mut arguments = vec!["explore", "--json", "--quiet", "--seed", "3", "--runs", &runs];
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
