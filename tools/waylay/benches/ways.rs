//! Five ways of running the same tests, and the different bugs that each finds in an hour.
//!
//!     cargo bench -p waylay --bench ways [-- --seconds 2] [--markdown FILE]
//!
//! After section 5.2.1 of the concurrency testing model: tests that are repeated as they are, with numbers that are drawn,
//! together in a melting pot, in the pot while a randomizer suspends threads, and in strict mode. Every way gets the same
//! time for each test; a test is retired with its first failure, and its bug counts once. Nothing here decides what is a
//! bug: that is the campaign's own summary.

#[path = "foundation/campaign.rs"]
#[allow(dead_code)]
mod campaign;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use campaign::Campaign;

/// A test with a bug, and what is drawn for it where numbers are drawn.
struct Bug {
    plugin: &'static str,
    test: &'static str,
    drawn: &'static str,
}

const fn bug(plugin: &'static str, test: &'static str, drawn: &'static str) -> Bug {
    Bug { plugin, test, drawn }
}

const LENGTH: &str = "length = { uniform = { min = 1, max = 60 } }";
const THREADS: &str = "threads = { uniform = { min = 2, max = 6 } }";

const BUGS: &[Bug] = &[
    bug("waylay_zoo_c", "order", ""),
    bug("waylay_zoo_c", "order-event", ""),
    bug("waylay_zoo_c", "order-branch", ""),
    bug("waylay_zoo_c", "left-first", LENGTH),
    bug("waylay_zoo_c", "right-first", LENGTH),
    bug("waylay_zoo_c", "atomicity", ""),
    bug("waylay_zoo_c", "deadlock", ""),
    bug("waylay_zoo_c", "decompress", "blocks = { uniform = { min = 1, max = 12 } }"),
    bug("waylay_zoo_c", "ends-meet", LENGTH),
    bug("waylay_zoo_c", "fft", ""),
    bug("waylay_zoo_c", "lu", ""),
    bug("waylay_zoo_c", "barnes", "bodies = { uniform = { min = 2, max = 48 } }"),
    bug("waylay_zoo_c", "philosophers", "seats = { uniform = { min = 2, max = 5 } }"),
    bug("waylay_zoo_c", "wrong-lock", ""),
    bug("waylay_zoo_c", "two-phases", LENGTH),
    bug("waylay_zoo_c", "circle", ""),
    bug("waylay_zoo_cpp", "reorder", THREADS),
    bug("waylay_zoo_cpp", "twostage", THREADS),
    bug("waylay_zoo_cpp", "work-stealing", "items = { uniform = { min = 1, max = 16 } }"),
    bug("waylay_zoo_cpp", "stack", ""),
    bug("waylay_zoo_cpp", "queue", ""),
    bug("waylay_zoo_cpp", "bounded-buffer", ""),
    bug("waylay_zoo_cpp", "channel", "items = { uniform = { min = 1, max = 40 } }"),
    bug("waylay_zoo_cpp", "account", ""),
    bug("waylay_zoo_cpp", "lazy-init", ""),
    bug("waylay_zoo", "token-ring", "nodes = { uniform = { min = 2, max = 6 } }"),
    bug("waylay_zoo", "relay", LENGTH),
    bug("waylay_zoo", "lost-update", "times = { uniform = { min = 1, max = 6 } }"),
    bug("waylay_zoo", "overdrawn", ""),
    bug("waylay_zoo", "torn-pair", LENGTH),
    bug("waylay_zoo", "owner-count", ""),
    bug("waylay_zoo", "door", ""),
    bug("waylay_zoo", "shutdown", LENGTH),
    // Needs the two tests of its plugin on one object, so that only a pot can find it.
    bug("waylay_together", "read", ""),
];

/// What the bug of `together` needs beside its own test.
const BESIDE: Bug = bug("waylay_together", "resize", "");

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Repeated,
    Drawn,
    Pot,
    RandomizedPot,
    Strict,
}

impl Way {
    const ALL: [Way; 5] = [Way::Repeated, Way::Drawn, Way::Pot, Way::RandomizedPot, Way::Strict];

    fn label(self) -> &'static str {
        match self {
            Way::Repeated => "repeated as they are, one after the other",
            Way::Drawn => "the same with numbers from distributions, on two workers",
            Way::Pot => "in a melting pot",
            Way::RandomizedPot => "in the pot, with the randomizer",
            Way::Strict => "strict mode, the default strategy",
        }
    }

    /// The campaign of this way, with that many seconds for each test.
    fn config(self, seconds: f64) -> String {
        let all = seconds * BUGS.len() as f64;
        let mut text =
            "seed = 1\n[defaults]\nmax-failures = 1\nhang-timeout = '1s'\n[leaks]\nenabled = false\n"
                .to_owned();
        match self {
            Way::Repeated | Way::Drawn => {
                for bug in BUGS.iter().filter(|bug| bug.plugin != BESIDE.plugin) {
                    scenario(&mut text, bug.test, "free", seconds);
                    let workers = if self == Way::Repeated { 1 } else { 2 };
                    test(&mut text, "test", bug, workers, self != Way::Repeated);
                }
                // Its tests run beside each other, but with nothing to share: alone is how they are used here.
                scenario(&mut text, "together", "free", seconds);
                pot(&mut text, 1);
                test(&mut text, "test.contains", &BUGS[BUGS.len() - 1], 0, false);
            }
            Way::Pot | Way::RandomizedPot => {
                let mode = if self == Way::Pot { "free" } else { "randomized" };
                scenario(&mut text, "pot", mode, all);
                pot(&mut text, 4);
                for bug in BUGS.iter().chain([&BESIDE]) {
                    test(&mut text, "test.contains", bug, 0, true);
                }
                row(&mut text);
            }
            Way::Strict => {
                for bug in BUGS.iter().filter(|bug| bug.plugin != BESIDE.plugin) {
                    scenario(&mut text, bug.test, "strict", seconds);
                    test(&mut text, "test", bug, 1, true);
                }
                scenario(&mut text, "together", "strict", seconds);
                pot(&mut text, 2);
                for bug in [&BUGS[BUGS.len() - 1], &BESIDE] {
                    test(&mut text, "test.contains", bug, 0, true);
                }
                row(&mut text);
            }
        }
        text
    }
}

fn scenario(text: &mut String, name: &str, mode: &str, seconds: f64) {
    let _ = writeln!(text, "[[scenario]]\nname = '{name}'\nmode = '{mode}'\nduration = '{seconds}s'");
}

fn pot(text: &mut String, workers: u32) {
    let _ = writeln!(text, "[[scenario.test]]\nplugin = 'waylay_melting_pot'\nworkers = {workers}");
}

fn row(text: &mut String) {
    text.push_str("[[scenario.test.objects]]\nkind = 'row'\ncount = 1\n");
}

fn test(text: &mut String, table: &str, bug: &Bug, workers: u32, drawn: bool) {
    let _ = writeln!(text, "[[scenario.{table}]]\nplugin = '{}'\nname = '{}'", bug.plugin, bug.test);
    if workers > 0 {
        let _ = writeln!(text, "workers = {workers}");
    }
    if drawn && !bug.drawn.is_empty() {
        let _ = writeln!(text, "[scenario.{table}.params]\n{}", bug.drawn);
    }
}

/// What a campaign found, and how long it took.
struct Found {
    way: Way,
    bugs: BTreeSet<String>,
    seconds: f64,
}

impl Found {
    fn per_hour(&self) -> f64 {
        self.bugs.len() as f64 / self.seconds * 3600.0
    }

    fn missed(&self) -> Vec<&'static str> {
        BUGS.iter().map(|bug| bug.test).filter(|test| !self.bugs.contains(*test)).collect()
    }
}

fn run(way: Way, seconds: f64) -> Found {
    let ran = Campaign::run(&way.config(seconds));
    let problems = ran.summary["campaign"]["problems"].as_array().expect("problems");
    assert!(problems.is_empty(), "{problems:?}");
    let failures = ran.summary["failures"].as_array().expect("failures");
    let names: BTreeSet<String> = BUGS.iter().map(|bug| bug.test.to_owned()).collect();
    let bugs = failures.iter().filter_map(|failure| failure["test"].as_str().map(str::to_owned));
    let scenarios = ran.summary["campaign"]["scenarios"].as_array().expect("scenarios");
    let seconds = scenarios.iter().map(|scenario| scenario["seconds"].as_f64().expect("a time")).sum();
    Found { way, bugs: bugs.filter(|bug| names.contains(bug)).collect(), seconds }
}

fn table(found: &[Found]) -> String {
    let mut text =
        "| way of running | different bugs | in | bugs in an hour | not found |\n|---|---|---|---|---|\n"
            .to_owned();
    for found in found {
        let _ = writeln!(
            text,
            "| {} | {} of {} | {:.0} s | {:.0} | {} |",
            found.way.label(),
            found.bugs.len(),
            BUGS.len(),
            found.seconds,
            found.per_hour(),
            found.missed().join(", ")
        );
    }
    text
}

fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

fn main() {
    let seconds: f64 =
        option("--seconds").map_or(2.0, |text| text.parse().expect("--seconds takes a number"));
    let found: Vec<Found> = Way::ALL
        .into_iter()
        .map(|way| {
            eprintln!("{} …", way.label());
            run(way, seconds)
        })
        .collect();
    let table = table(&found);
    println!("{table}");
    if let Some(path) = option("--markdown") {
        std::fs::write(&path, table).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let strict = found.last().expect("the last way is strict mode");
    let others = found[..found.len() - 1].iter().map(Found::per_hour).fold(0.0, f64::max);
    if strict.per_hour() < others || !strict.missed().is_empty() {
        eprintln!("strict mode is not the best, or missed a bug");
        std::process::exit(1);
    }
}
