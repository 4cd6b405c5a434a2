//! For every program of the zoo: the cause that its comment states, and the one that is computed.
//!
//!     cargo bench -p waylay --bench causes [-- --budget 5s] [NAME ...]
//!
//! Each test runs alone until it fails. Promised are, of the programs, 95 % whose cause is found within the budget and by at most
//! 2,000 schedules, and 90 % whose depth is the stated one; the last lines say how many there are. It ends with 1 when less.

#[path = "../tests/stated/mod.rs"]
mod stated;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use serde_json::Value;
use stated::{Computed, computed, stated};

/// The bugs of the zoo.
const ZOO: &str = include_str!("../../../configs/compare/zoo.toml");
const MOST_SCHEDULES: u64 = 2_000;

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let budget = match arguments.iter().position(|word| word == "--budget") {
        Some(place) => arguments.drain(place..=place + 1).nth(1).expect("a duration"),
        None => "5s".to_owned(),
    };
    let tests = waylay_compare::config::Config::parse(ZOO).expect("the comparison is in order").tests;
    println!(
        "{:<16} {:>6} {:>8} {:>9} {:>7}  cause",
        "program", "stated", "computed", "schedules", "seconds"
    );
    let (mut all, mut found, mut deep, mut named, mut passed) = (0, 0, 0, 0, true);
    let mut seen = std::collections::BTreeSet::new();
    for test in tests {
        let wanted = arguments.is_empty() || arguments.contains(&test.name);
        if !wanted || !seen.insert(test.name.clone()) {
            continue;
        }
        let stated = stated(&test.plugin, &test.name);
        let began = Instant::now();
        let computed = explained(&test.plugin, &test.name, &budget);
        let names = computed.depth > 0 && stated.names(&computed);
        all += 1;
        found += u32::from(computed.depth > 0 && computed.schedules <= MOST_SCHEDULES);
        deep += u32::from(computed.depth == stated.depth());
        named += u32::from(names);
        // Reversed, an order of the cause never fails.
        passed &= computed.flipped.1 == 0;
        println!(
            "{:<16} {:>6} {:>8} {:>9} {:>7.1}  {}{}",
            test.name,
            stated.depth(),
            computed.depth,
            computed.schedules,
            began.elapsed().as_secs_f64(),
            if names { "" } else { "≠ " },
            computed.sentence
        );
    }
    println!("{found} of {all} within {budget}, {deep} of the stated depth, {named} with the stated orders");
    let holds = found * 100 >= all * 95 && deep * 100 >= all * 90 && passed;
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Lets a test run until it fails, and reads what is said of that.
fn explained(plugin: &str, name: &str, budget: &str) -> Computed {
    let folder = tempfile::tempdir().expect("a folder");
    let config = format!(
        "seed = '0x5eed'\n[defaults]\nworkers = 1\nmax-failures = 1\nhang-timeout = '60s'\n[[scenario]]\nname = 'zoo'\n\
         mode = 'strict'\nruns = 10000\nmax-steps = 20000\nminimize = '{budget}'\n\
         [[scenario.test]]\nplugin = '{plugin}'\nname = '{name}'\n"
    );
    std::fs::write(folder.path().join("waylay.toml"), config).expect("a file");
    let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_waylay")));
    command.args(["run", "waylay.toml", "--quiet"]).current_dir(folder.path());
    let ran = command.stdin(Stdio::null()).output().expect("the command starts");
    let failures = glob(folder.path());
    let Some(path) = failures.first() else {
        let sentence = format!("it did not fail: {}", String::from_utf8_lossy(&ran.stderr));
        return Computed { sentence, ..Computed::default() };
    };
    let text = std::fs::read_to_string(path).expect("a failure");
    computed(&serde_json::from_str::<Value>(&text).expect("JSON"))
}

/// The `failure.json` of all failures below a folder.
fn glob(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.is_dir() {
            true => found.extend(glob(&path)),
            false if path.ends_with("failure.json") => found.push(path),
            false => {}
        }
    }
    found
}
