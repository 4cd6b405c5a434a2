//! What a search that was aimed is summed up to: one object for machines, a few lines for people.

use std::path::PathBuf;

use serde::Serialize;
use waylay_driver::report::{count, plural};

use super::spot::{Spot, Target};
use crate::summary::Found;

/// Runs in which two events came in one order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// How many.
    pub runs: u64,
    /// How many of them failed.
    pub failures: u64,
}

/// What became of one target.
#[derive(Clone, Debug, Serialize)]
pub struct Tracked {
    /// The places.
    #[serde(flatten)]
    pub target: Target,
    /// Pairs of events of two threads that are there.
    pub pairs: u64,
    /// Runs in which the first place came first.
    pub one_first: Tried,
    /// Runs in which the other did.
    pub other_first: Tried,
    /// Runs in which they did not both come.
    pub neither: Tried,
}

/// What `waylay explore --between` and `--reproduce` print with `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Directed {
    /// The program.
    pub program: String,
    /// The seed.
    pub seed: String,
    /// Runs, those that only looked what happens there among them.
    pub runs: u64,
    /// Those that only looked.
    pub unaimed: Tried,
    /// Those that failed.
    pub failures: u64,
    /// The places, and how often each order came.
    pub targets: Vec<Tracked>,
    /// Places at which nothing was seen that could meet something of another thread.
    pub missing: Vec<Spot>,
    /// Folder of the first failure.
    pub failure_dir: Option<PathBuf>,
    /// The command that runs it again.
    pub replay: Option<String>,
    /// Every signature.
    pub found: Vec<Found>,
    /// The user stopped it.
    pub interrupted: bool,
    /// Wall time in seconds.
    pub seconds: f64,
    /// The campaign's folder.
    pub folder: PathBuf,
}

impl Directed {
    /// A few lines for people.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        for tracked in &self.targets {
            let Tracked { target: Target { one, other }, pairs, one_first, other_first, neither } = tracked;
            if *pairs == 0 {
                lines.push(format!("{one} and {other}: no two threads were seen there"));
                continue;
            }
            let told = |tried: &Tried| match (tried.runs, tried.failures) {
                (0, _) => "never".to_owned(),
                (runs, 0) => format!("{}, it passed", plural(runs, "run")),
                (runs, failures) => format!("{}, it failed in {}", plural(runs, "run"), count(failures)),
            };
            let pairs = plural(*pairs, "pair");
            lines.push(format!("{pairs} of events at {one} and {other}:"));
            lines.push(format!("  {one} first: {}", told(one_first)));
            lines.push(format!("  {other} first: {}", told(other_first)));
            if neither.runs > 0 {
                lines.push(format!("  not both: {}", told(neither)));
            }
        }
        for spot in &self.missing {
            lines.push(format!(
                "{spot}: nothing was seen there that could meet something of another thread (is it a line that runs, in code with \
                 debug information, and no access that one thread makes alone?)"
            ));
        }
        lines.extend(self.found.iter().map(|found| found.block(&self.program, self.runs)));
        let aimed = plural(self.runs - self.unaimed.runs, "aimed run");
        match self.unaimed.failures {
            0 if self.found.is_empty() => lines.push(format!("no failure in {aimed}")),
            0 => {}
            failures => lines.push(format!(
                "it failed without being aimed, too: in {} of {} that only looked what happens there",
                count(failures),
                plural(self.unaimed.runs, "run")
            )),
        }
        lines.join("\n") + "\n"
    }
}
