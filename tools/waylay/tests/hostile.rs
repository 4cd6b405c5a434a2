//! Nothing that a test does hangs, kills or fools the driver: it writes over the memory that it shares with us, forges what
//! it reports, closes what is not its own, sends signals, leaves processes behind. The campaign goes on to its end, says
//! what happened, and a test beside it that has something to report is heard.

#![cfg(target_os = "linux")]

mod support;

use std::fs;

use serde_json::Value;
use support::{Ran, Workplace, list, number, text};

const SOURCE: &str = include_str!("hostile/hostile.c");

/// Iterations of an attacker: the attack is made once, in its first process.
const ITERATIONS: u64 = 24;

/// An attack, and the kind of failure that is told of it; none when the driver need not even notice.
type Attack = (&'static str, Option<&'static str>);

const ATTACKS: [Attack; 35] = [
    ("page-zero", Some("corrupted")),
    ("page-ones", Some("corrupted")),
    ("page-random", Some("corrupted")),
    ("page-always", Some("corrupted")),
    ("page-punched", Some("corrupted")),
    ("page-truncated", None),
    ("heap-region-truncated", None),
    ("page-unmapped", Some("deadlock")),
    ("page-protected", Some("deadlock")),
    ("close-all", None),
    ("close-streams", None),
    ("event-out-of-range", Some("corrupted")),
    ("event-of-no-plugin", Some("corrupted")),
    ("event-garbage", Some("corrupted")),
    ("event-endless", Some("corrupted")),
    ("stderr-flood", None),
    ("daemon-in-group", None),
    ("daemon-in-session", None),
    ("many-children", None),
    ("stop-itself", Some("deadlock")),
    ("kill-itself", Some("crash")),
    ("terminate-parent", None),
    ("interrupt-parent", None),
    ("hang-up-parent", None),
    ("trace-itself", None),
    ("change-folder", None),
    ("tighten-limits", None),
    ("become-another", Some("crash")),
    ("leave-in-thread", Some("crash")),
    ("raise-terminate", Some("crash")),
    ("raise-every-signal", Some("crash")),
    ("block-and-wait", Some("deadlock")),
    ("ignore-everything", Some("crash")),
    ("overflow-stack", Some("crash")),
    ("take-memory", Some("crash")),
];

fn config(mode: &str, attacks: &[Attack]) -> String {
    let mut config =
        "[defaults]\nworkers = 1\nhang-timeout = \"1s\"\ncancel-timeout = \"1s\"\nleaks = false\n\
                      max-failures = 0\n"
            .to_owned();
    for (attack, _) in attacks {
        for part in [
            format!("[[scenario]]\nname = \"{attack}\"\nmode = \"{mode}\"\n"),
            format!(
                "[[scenario.test]]\nplugin = \"hostile\"\nname = \"neighbour\"\niterations = {ITERATIONS}\n"
            ),
            format!(
                "[[scenario.test]]\nplugin = \"hostile\"\nname = \"{attack}\"\niterations = {ITERATIONS}\n"
            ),
        ] {
            config.push_str(&part);
        }
    }
    config
}

fn run(place: &Workplace, mode: &str, attacks: &[Attack]) -> Ran {
    place.compile_whole("hostile", SOURCE);
    place.write("waylay.toml", &config(mode, attacks));
    let ran = place.run(1, &[]);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    ran
}

/// What a scenario's failures are, in which scenario they were seen first or again.
fn kinds_in(ran: &Ran, scenario: &str) -> Vec<String> {
    let seen = |failure: &support::Failure| {
        list(&failure.json["occurrences"]).iter().any(|seen| text(&seen["scenario"]) == scenario)
    };
    ran.failures().iter().filter(|failure| seen(failure)).map(|failure| failure.kind().to_owned()).collect()
}

fn tests_of(ran: &Ran, scenario: &str) -> Vec<Value> {
    let json = ran.json();
    let scenarios = list(&json["campaign"]["scenarios"]);
    let found = scenarios.iter().find(|found| text(&found["name"]) == scenario);
    list(&found.unwrap_or_else(|| panic!("{scenario} did not run: {}", ran.stderr))["tests"]).clone()
}

/// Every attack has a neighbour that fails once per process; nothing ends before all have had their turn.
#[test]
fn every_attack_is_survived_and_the_neighbour_is_heard() {
    let place = Workplace::new();
    let ran = run(&place, "free", &ATTACKS);
    for (attack, kind) in ATTACKS {
        let tests = tests_of(&ran, attack);
        let neighbour = number(&tests[0]["failures"]);
        assert!(neighbour >= 1, "{attack}: the neighbour was not heard\n{}", ran.stderr);
        for test in &tests {
            let iterations = number(&test["iterations"]);
            assert!(iterations <= ITERATIONS, "{attack}: {iterations} iterations of {ITERATIONS}");
        }
        let told = kinds_in(&ran, attack);
        // A process that stands still as a whole is called by whichever of its threads is looked at first.
        let hang = ["deadlock", "livelock", "slow"];
        let expected = |word: &str| {
            told.iter().any(|told| told == word || hang.contains(&word) && hang.contains(&told.as_str()))
        };
        assert!(kind.is_none_or(expected), "{attack}: {told:?} instead of {kind:?}\n{}", ran.stderr);
    }
    let problems = list(&ran.json()["campaign"]["problems"]).clone();
    for signal in ["SIGTERM", "SIGINT", "SIGHUP"] {
        let said = format!("a test sent {signal} to Waylay itself, which goes on");
        assert!(problems.iter().any(|problem| text(problem) == said), "{problems:?}");
    }
    assert!(ran.stderr.contains("a test left a process behind, which was ended"), "{}", ran.stderr);
    let left = processes_with(place.path().join("libhostile.so").to_str().expect("a plain path"));
    assert!(left.is_empty(), "{left:?} live on");
}

/// Processes in which that file is mapped.
fn processes_with(file: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("a list").flatten();
    let uses = |entry: &fs::DirEntry| {
        fs::read_to_string(entry.path().join("maps")).is_ok_and(|maps| maps.contains(file))
    };
    processes.filter(uses).map(|entry| entry.path().display().to_string()).collect()
}

/// The same for what a strict host shares: nothing of the garbage is taken for a schedule or for the end of a search.
#[test]
fn a_strict_host_that_writes_over_what_it_shares_is_told() {
    const STRICT: [Attack; 4] = [
        ("page-ones", Some("corrupted")),
        ("region-zero", Some("corrupted")),
        ("region-ones", Some("corrupted")),
        ("event-out-of-range", Some("corrupted")),
    ];
    let place = Workplace::new();
    let ran = run(&place, "strict", &STRICT);
    for (attack, kind) in STRICT {
        assert!(number(&tests_of(&ran, attack)[0]["failures"]) >= 1, "{attack}\n{}", ran.stderr);
        let told = kinds_in(&ran, attack);
        assert!(kind.is_none_or(|kind| told.iter().any(|told| told == kind)), "{attack}: {told:?}");
        for test in tests_of(&ran, attack) {
            let runs = number(&test["strict"]["runs"]);
            assert!(runs <= 10 * ITERATIONS, "{attack}: {runs} schedules");
        }
    }
}

/// What is told of a corrupted page: who ran, the stacks and a dump of the living process.
#[test]
fn a_corrupted_page_has_evidence() {
    let place = Workplace::new();
    place.compile_whole("hostile", SOURCE);
    place.write(
        "waylay.toml",
        "[defaults]\nworkers = 1\nleaks = false\n[[scenario]]\nname = \"s\"\n[[scenario.test]]\nplugin = \"hostile\"\n\
         name = \"page-random\"\niterations = 20\n",
    );
    let ran = place.run(1, &[]);
    let failure = ran.failure("hostile", "page-random");
    assert_eq!(failure.kind(), "corrupted");
    assert!(
        failure.what().contains("the test wrote over memory that belongs to Waylay"),
        "{}",
        failure.what()
    );
    assert!(text(&failure.json["reason"]).contains("last seen running: page-random#0 in iteration"));
    assert!(number(&failure.json["dump_threads"]) >= 2, "{:#}", failure.json);
    assert!(number(&ran.test("hostile", "page-random")["iterations"]) <= 20);
}
