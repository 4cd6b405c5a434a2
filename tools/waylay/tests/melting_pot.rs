//! The melting pot, through the real command: bugs that need two tests, attribution, replay, hooks, pots in pots, restarts
//! and what `waylay check` says about a pot that cannot be.

mod support;

use support::{Ran, Workplace, list, number, text};

fn pot(workers: u32, inside: &str) -> String {
    format!(
        "[leaks]\nenabled = false\n[[scenario]]\nname = \"pot\"\n[[scenario.test]]\n\
         plugin = \"waylay_melting_pot\"\nworkers = {workers}\n{inside}"
    )
}

fn contains(plugin: &str, name: &str) -> String {
    format!("[[scenario.test.contains]]\nplugin = \"{plugin}\"\nname = \"{name}\"\n")
}

const ONE_ROW: &str = "[[scenario.test.objects]]\nkind = \"row\"\ncount = 1\nlife = 1000000000\n";

/// Each of the two runs a million iterations without a failure when it is alone, on the same object with two workers.
#[test]
fn alone_the_two_tests_are_clean() {
    for test in ["resize", "read"] {
        let place = Workplace::with(&format!(
            "[leaks]\nenabled = false\n[[scenario]]\nname = \"alone\"\n[[scenario.test]]\n\
             plugin = \"waylay_together\"\nname = \"{test}\"\niterations = 1000000\n"
        ));
        let ran = place.run(0, &[]);
        assert_eq!(number(&ran.test("waylay_together", test)["iterations"]), 1_000_000);
    }
}

/// Together they fail: at least 3 of 10,000 reads that run beside a resize, on a single core (see the plugin). The run
/// goes on for up to 20 s, a million reads; 50,000 of them, a twentieth of a core's work, miss the bug with a probability
/// of e^-15, below 1e-6.
#[test]
fn the_pot_finds_the_bug_that_needs_both_and_its_replay_line_makes_the_mix_again() {
    let inside = format!("{ONE_ROW}{}", contains("waylay_together", "re*"));
    let config = format!("duration = \"20s\"\n[defaults]\nmax-failures = 1\n{}", pot(2, &inside));
    let place = Workplace::with(&config);
    let ran = place.run(1, &[]);
    let failure = ran.failure("waylay_together", "read");
    assert_eq!(failure.kind(), "assert");
    assert!(failure.what().contains("below the length"), "{}", failure.what());

    // Attributed to the test, and to the mix: who ran what, on which object, with everybody's numbers.
    let occurrence = &failure.json["occurrences"][0];
    assert_eq!(text(&occurrence["pot"]["test"]), "melting-pot");
    let names: Vec<&str> = list(&occurrence["pot"]["tests"]).iter().map(|test| text(&test["name"])).collect();
    assert_eq!(names, ["resize", "read"]);
    for test in list(&occurrence["pot"]["tests"]) {
        let share = &test["pot"];
        assert!(share["asked"].as_f64().unwrap() > 0.0 && share["total_ns"].is_number(), "{test:#}");
    }
    let workers = list(&occurrence["workers"]);
    let reader = workers.iter().find(|worker| worker["running"]["test"] == "read").expect("who failed");
    assert_eq!(list(&reader["holds"])[0], "row#1", "{workers:#?}");
    assert!(ran.stderr.contains("ran read (iteration "), "{}", ran.stderr);

    // One failure was enough for `read`: what it was asked for and got until then is told, not what it is asked for now.
    let share = &ran.test("waylay_together", "read")["pot"];
    assert_eq!(share["asked"], 0.5, "{share:#}");
    let line = ran.stderr.lines().rfind(|line| line.contains("[retired after 1 failure]")).expect("a line");
    assert!(line.contains("% of the time until it was retired (asked 50.0 %)"), "{line}");

    // The replay runs what each worker ran, on a row of its own, and fails the same way.
    let folder = failure.folder.display().to_string();
    let replay = place.waylay(&["replay", &folder, "--duration", "20s", "--out", "again", "--json"]);
    assert_eq!(replay.code(), Some(1), "{}\n{}", replay.stderr, replay.stdout);
    assert!(number(&replay.json()["reproduced"]) >= 1, "{}", replay.stdout);
    assert!(text(&failure.json["replay"]).starts_with("waylay replay "));
}

// Measures turns of 2 ms: timers of Windows, and of Wine, are as coarse as that.
#[cfg(target_os = "linux")]
#[test]
fn every_test_gets_its_share_and_the_report_says_so() {
    let inside = format!(
        "[[scenario.test.contains]]\nplugin = \"waylay_timed\"\nname = \"timed-13\"\nshare = 2.0\n{}{}",
        contains("waylay_timed", "timed-0?"),
        "[scenario.test.pot]\nbarrier = false\nshortest-turn = \"2ms\"\n"
    );
    let place = Workplace::with(&format!("duration = \"4s\"\n{}", pot(3, &inside)));
    let ran = place.run(0, &[]);
    let record = |name: &str| ran.test("waylay_timed", name);
    let share = |name: &str, key: &str| record(name)["pot"][key].as_f64().unwrap();
    assert!((share("timed-13", "asked") - 2.0 / 12.0).abs() < 1e-9);
    // Who is ahead is not drawn until the others have caught up, so a test is off by turns and never by a part of the time:
    // half a turn on average (fairness.rs), eight are out of reach. A turn is planned with 2 ms and ends after twice that, when
    // the iteration is over that was begun; a busy machine makes iterations long, and as many as there are workers may
    // have been under way when the pot ended. So the room is measured in what was seen, not in time.
    let names: Vec<String> = (0..10).map(|n| format!("timed-0{n}")).chain(["timed-13".to_owned()]).collect();
    let longest = names.iter().map(|name| record(name)["longest_ns"].as_f64().unwrap()).fold(0.0, f64::max);
    let room = 8.0 * 4e6 + 3.0 * longest;
    for name in &names {
        let (asked, achieved) = (share(name, "asked"), share(name, "achieved"));
        let off = (achieved - asked).abs() * share(name, "total_ns") / achieved;
        assert!(off < room, "{name}: asked {asked}, got {achieved}: {off} ns off, room for {room}");
    }
    assert!(ran.stderr.contains("% of the time (asked 16.7 %)"), "{}", ran.stderr);

    // What was learned is there for the next campaign.
    let averages = std::fs::read_to_string(place.path().join("waylay-out/.averages.json")).unwrap();
    let averages: serde_json::Value = serde_json::from_str(&averages).unwrap();
    let known = averages["tests"][format!("{}/timed-13", support::file_of("waylay_timed"))].as_f64().unwrap();
    assert!(known > 500e3, "{averages:#}");
}

#[test]
fn a_test_that_ends_the_process_is_retired_and_the_rest_go_on_with_their_numbers() {
    let inside = format!(
        "{}max-failures = 2\n[scenario.test.contains.params]\nafter = 5\n{}",
        contains("waylay_faults_c", "crash"),
        contains("waylay_timed", "timed-0[0-2]").replace("timed-0[0-2]", "timed-00")
    );
    let place = Workplace::with(&format!("duration = \"10s\"\n{}", pot(2, &inside)));
    let ran = place.run(1, &[]);
    let failure = ran.failure("waylay_faults_c", "crash");
    assert_eq!((failure.kind(), failure.count()), ("crash", 2));
    assert!(text(&ran.test("waylay_faults_c", "crash")["retired"]).contains("2 failures"));
    assert!(number(&ran.json()["campaign"]["hosts"]) >= 3, "one host for each crash, and one more");
    // It is out, so what it had until then is what can be compared with what it was asked for.
    let share = &ran.test("waylay_faults_c", "crash")["pot"];
    assert_eq!(share["asked"], 0.5, "{share:#}");
    assert!(
        share["until_retired"].as_f64().is_some_and(|until| until >= share["achieved"].as_f64().unwrap())
    );
    let line = ran.stderr.lines().rfind(|line| line.contains("[retired after 2 failures]")).expect("a line");
    assert!(line.contains("% of the time until it was retired (asked 50.0 %)"), "{line}");
    let markdown = place.waylay(&["report", "--markdown"]).stdout;
    assert!(markdown.contains("% until it was retired (asked 50.0 %)"), "{markdown}");
    let other = ran.test("waylay_timed", "timed-00");
    assert!(number(&other["iterations"]) > 1000, "{other:#}");
    assert!(other["retired"].is_null());
}

#[test]
fn a_contained_test_that_hangs_is_named_and_not_the_pot() {
    let inside = format!(
        "{}hang-timeout = \"1s\"\nmax-failures = 1\n{}",
        contains("waylay_faults", "deadlock"),
        contains("waylay_timed", "timed-00")
    );
    let place = Workplace::with(&format!("duration = \"10s\"\n{}", pot(2, &inside)));
    let ran = place.run(1, &[]);
    let failure = ran.failure("waylay_faults", "deadlock");
    assert_eq!(failure.kind(), "deadlock", "{:#}", failure.json);
    assert_eq!(text(&failure.json["occurrences"][0]["pot"]["test"]), "melting-pot");
}

#[test]
fn hooks_see_every_test_loaded_run_and_unloaded() {
    let inside = format!(
        "[[scenario.test.hooks]]\nplugin = \"waylay_libraries_cpp\"\nname = \"turn-log\"\n\
         [[scenario.test.hooks]]\nplugin = \"waylay_together\"\nname = \"count\"\n{}",
        contains("waylay_timed", "timed-0?")
    );
    let place = Workplace::with(&format!("duration = \"2s\"\n{}", pot(2, &inside)));
    let log = place.run(0, &[]).host_log();
    for test in 0..10 {
        assert!(log.contains(&format!("turn-log: load timed-0{test}")), "{log}");
        assert!(log.contains(&format!("turn-log: unload timed-0{test}")), "{log}");
    }
    assert!(!log.contains("a stop without a start"), "{log}");
    assert_eq!(log.matches(" left, 0 running").count(), 10, "{log}");
    // In C++ and in Rust they have seen the same.
    let said = |before: &str, after: &str| {
        let line =
            log.lines().find(|line| line.contains(before) && line.contains(after)).expect("a count of turns");
        line.replace(before, "").replace(after, "").trim().parse::<u64>().unwrap()
    };
    let (cpp, rust) = (said("turn-log: turns", ""), said("count: ", " turns"));
    assert!(cpp >= 10 && cpp == rust, "{cpp} and {rust}");
}

#[test]
fn a_pot_may_contain_a_pot() {
    let inner = "[[scenario.test.contains]]\nplugin = \"waylay_melting_pot\"\n\
                 [[scenario.test.contains.contains]]\nplugin = \"waylay_timed\"\nname = \"timed-0[01]\"\n"
        .replace("timed-0[01]", "timed-0?");
    let inside = format!("{inner}{}", contains("waylay_timed", "timed-13"));
    let place = Workplace::with(&format!("duration = \"3s\"\n{}", pot(2, &inside)));
    let ran = place.run(0, &[]);
    for test in ["timed-00", "timed-07", "timed-13"] {
        assert!(number(&ran.test("waylay_timed", test)["iterations"]) > 0, "{test}\n{}", ran.stderr);
    }
}

/// Every loan replaces the object, so nearly all that `hoard` keeps was replaced long ago.
#[test]
fn an_object_that_is_kept_outlives_its_replacement() {
    let inside = format!(
        "[[scenario.test.objects]]\nkind = \"row\"\ncount = {{ uniform = {{ min = 1, max = 4 }} }}\nlife = 1\n{}{}",
        contains("waylay_together", "hoard"),
        contains("waylay_together", "resize")
    );
    let place = Workplace::with(&format!("duration = \"2s\"\n{}", pot(2, &inside)));
    let ran = place.run(0, &[]);
    assert!(number(&ran.test("waylay_together", "hoard")["iterations"]) > 1000, "{}", ran.stderr);
}

fn refused(config: &str) -> Ran {
    let place = Workplace::with(config);
    let ran = place.waylay(&["check", "waylay.toml"]);
    assert_eq!(ran.code(), Some(2), "{}\n{}", ran.stderr, ran.stdout);
    ran
}

#[test]
fn a_pot_that_cannot_be_is_refused_with_the_place_and_what_to_do() {
    let cases = [
        (pot(2, &contains("waylay_timed", "nothing-*")), "fits `nothing-*`"),
        (pot(2, ""), "contains no tests"),
        (
            pot(
                2,
                &format!("{}{}", contains("waylay_timed", "timed-0?"), contains("waylay_melting_pot", "*")),
            ),
            "would contain itself",
        ),
        (pot(8, &contains("waylay_timed", "timed-00")), "8 workers and 1 test"),
        (
            pot(
                2,
                &format!(
                    "[[scenario.test.objects]]\nkind = \"rope\"\n{}",
                    contains("waylay_timed", "timed-0?")
                ),
            ),
            "provides objects of kind `rope`",
        ),
        (
            pot(
                2,
                &format!(
                    "[[scenario.test.hooks]]\nplugin = \"waylay_timed\"\nname = \"x\"\n{}",
                    contains("waylay_timed", "timed-0?")
                ),
            ),
            "has no hooks `x`",
        ),
        (
            pot(
                2,
                &format!("[scenario.test.pot]\nrule = \"lottery\"\n{}", contains("waylay_timed", "timed-0?")),
            ),
            "unknown rule `lottery`",
        ),
        (pot(2, &format!("{}workers = 3\n", contains("waylay_timed", "timed-0?"))), "unknown key `workers`"),
        (
            format!(
                "[[scenario]]\nname = \"s\"\n[[scenario.test]]\nplugin = \"waylay_timed\"\nname = \"timed-00\"\n{}",
                contains("waylay_timed", "timed-01")
            ),
            "runs no other tests",
        ),
    ];
    for (config, words) in cases {
        let ran = refused(&config);
        assert!(ran.stderr.contains(words), "no `{words}`:\n{config}\n{}", ran.stderr);
        assert!(ran.stderr.contains("waylay.toml:"), "no place:\n{}", ran.stderr);
    }
}

#[cfg(target_os = "linux")]
const TAKER: &str = r#"
#include "waylay.h"
static const char *const kinds[] = {"rope"};
static const waylay_test_info test = {.size = sizeof test, .name = "probe", .takes = kinds, .take_count = 1};
static const waylay_test_info *const tests[] = {&test};
static const waylay_plugin_info plugin = {.size = sizeof plugin, .abi_version = WAYLAY_ABI_VERSION, .name = "taker",
                                          .tests = tests, .test_count = 1};
const waylay_plugin_info *WaylayPlugin(void) { return &plugin; }
waylay_instance *CreateInstance(const waylay_create_args *args) { (void)args; return NULL; }
void DestroyInstance(waylay_instance *instance) { (void)instance; }
"#;

/// A test that takes a kind which nobody in the scenario provides.
// Compiles what it runs.
#[cfg(target_os = "linux")]
#[test]
fn a_taken_kind_without_a_provider_is_refused() {
    let place = Workplace::new();
    let source = place.write("taker.c", TAKER);
    let taker = place.path().join("libtaker.so");
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../framework/abi/include");
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-I", include, "-o"]).args([&taker, &source]);
    assert!(compiler.status().expect("cc runs").success());
    let inside = format!(
        "{}{}",
        contains(&taker.display().to_string(), "probe"),
        contains("waylay_timed", "timed-00")
    );
    place.write("waylay.toml", &pot(2, &inside));
    let ran = place.waylay(&["check", "waylay.toml"]);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("takes objects of kind `rope`, which no plugin"), "{}", ran.stderr);
}
