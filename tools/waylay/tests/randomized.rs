//! Scenarios with a randomizer: what a campaign says of it, and what a failure keeps of it.

mod support;

use std::fs;
use std::path::Path;

use support::{Workplace, list, number, text};

fn scenario(duration: &str, randomizer: &str, tests: &str) -> String {
    format!("[[scenario]]\nname = \"shaken\"\nduration = \"{duration}\"\n{randomizer}{tests}")
}

fn test(plugin: &str, name: &str, more: &str) -> String {
    format!("[[scenario.test]]\nplugin = \"{plugin}\"\nname = \"{name}\"\n{more}\n")
}

#[test]
fn threads_are_suspended_and_the_report_says_how_and_what_it_guarantees() {
    let map = test("waylay_libraries", "map", "");
    let place = Workplace::with(&scenario("3s", "mode = \"randomized\"\n", &map));
    let ran = place.run(0, &[]);
    let json = ran.json();
    let scenario = &json["campaign"]["scenarios"][0];
    assert_eq!(scenario["mode"], "randomized");
    let record = &scenario["randomizer"];
    assert!(number(&record["suspensions"]) > 0, "{record:#}");
    assert!(record["suspensions_per_s"].as_f64().expect("a rate") > 0.0);
    assert!(record["suspended_s"].as_f64().expect("a time") > 0.0);
    assert_eq!(record["settings"]["count"], serde_json::json!({ "uniform": { "min": 1, "max": 1 } }));
    let names: Vec<&str> = list(&record["threads"]).iter().map(|thread| text(&thread["name"])).collect();
    assert!(names.contains(&"map#0") && names.contains(&"map#1"), "{names:?}");
    // The host's own thread is left alone: it would get a third of some 750 suspensions. A thread that ends before it has
    // set its name, such as the one that ends the test, has the host's.
    let own = list(&record["threads"]).iter().find(|thread| thread["name"] == "waylay");
    assert!(own.is_none_or(|thread| number(&thread["suspensions"]) < 10), "{record:#}");
    let bound = &ran.test("waylay_libraries", "map")["bound"];
    assert!(number(&bound["threads"]) >= 2 && number(&bound["min_test_ns"]) > 0, "{bound:#}");
    // The formula of the model, with the defaults of 2 ms each.
    let expected = number(&bound["min_test_ns"]) as f64 / 4e6 / (2.0 * number(&bound["threads"]) as f64);
    assert!((bound["per_iteration"].as_f64().expect("a bound") / expected - 1.0).abs() < 1e-9, "{bound:#}");
    for words in
        ["(randomized, ", "suspensions/s", "never suspended", "bound: an iteration shows a bug of depth one"]
    {
        assert!(ran.stderr.contains(words), "{words}:\n{}", ran.stderr);
    }
}

#[test]
fn a_campaign_that_asked_for_randomization_and_got_none_fails() {
    let none = "  [scenario.randomizer]\n  exclude = [\"*\"]\n";
    let place = Workplace::with(&scenario("1s", none, &test("waylay_faults", "nothing", "")));
    let ran = place.run(2, &[]);
    assert!(ran.stderr.contains("asked for randomization, but no thread was suspended"), "{}", ran.stderr);
    assert_eq!(number(&ran.json()["exit_code"]), 2);
    assert!(text(&ran.test("waylay_faults", "nothing")["no_bound"]).contains("no thread was suspended"));
}

#[test]
fn a_failure_carries_seed_and_log_and_is_replayed_with_the_same_seed() {
    // A suspension of the holder that lasts longer than the lease shows the bug, and one of two workers is the holder
    // nearly always. With some five windows a second, 60 s without a hit have a chance of 2^-300 or so; so slow that the
    // system alone does not hold a thread up for as long.
    let lease = test("waylay_faults", "lease", "max-failures = 1\nparams = { term = \"100ms\" }");
    let slow = "  [scenario.randomizer]\n  suspend = { uniform = { min = \"120ms\", max = \"160ms\" } }\n";
    let place = Workplace::with(&scenario("60s", slow, &lease));
    let ran = place.run(1, &["--seed", "0x5eed"]);
    let failure = ran.failure("waylay_faults", "lease");
    assert_eq!(failure.kind(), "assert");
    let trace = &failure.json["occurrences"][0]["randomizer"];
    let seed = text(&trace["seed"]).to_owned();
    assert!(number(&trace["windows"]) > 0, "{trace}");
    let log = failure.file("randomizer.log");
    assert!(log.contains(&format!("\nseed {seed}\n")) && log.contains(" suspend "), "{log}");
    assert!(
        ran.stderr.contains("windows of the randomizer, seed")
            || ran.stderr.contains("window of the randomizer")
    );

    let folder = failure.folder.to_str().expect("a name");
    let again = place.waylay(&["replay", folder, "--duration", "60s", "--json"]);
    assert_eq!(again.code(), Some(1), "{}", again.stderr);
    let json = again.json();
    assert!(number(&json["reproduced"]) >= 1, "{json}");
    assert_eq!((text(&json["randomizer_seed"]), &json["statistical"]), (seed.as_str(), &true.into()));
    assert!(again.stderr.contains("statistical"), "{}", again.stderr);
    let log = fs::read_to_string(Path::new(text(&json["folder"])).join("randomizer.log")).expect("a log");
    assert!(log.contains(&format!("\nseed {seed}\n")), "the same choices again: {log}");
}
