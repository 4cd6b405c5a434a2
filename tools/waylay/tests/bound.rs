//! `waylay bound`: the numbers of each strategy, for people and for programs.

mod support;

use serde_json::Value;
use support::{Workplace, number, text};

fn answer(arguments: &str) -> Value {
    let place = Workplace::new();
    let words: Vec<&str> = ["bound"].into_iter().chain(arguments.split(' ')).chain(["--json"]).collect();
    let ran = place.waylay(&words);
    assert_eq!(ran.code(), Some(0), "{arguments}: {}", ran.stderr);
    ran.json()
}

fn close(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap_or_else(|| panic!("no number: {value}"));
    assert!((value / expected - 1.0).abs() < 1e-9, "{value} is not {expected}");
}

#[test]
fn pct_is_the_theorem() {
    let planned = answer("pct --threads 4 --steps 100 --depth 2 --runs 10000");
    close(&planned["per_run"], 1.0 / 400.0);
    close(&planned["per_run_log10"], -(400.0_f64.log10()));
    close(&planned["after_runs"], 1.0 - (1.0_f64 - 1.0 / 400.0).powi(10_000));
    // 1/400 needs ln 0.05 / ln(399/400) runs; 1/40,000 is found in 10,000 runs with 22 % only.
    assert_eq!(planned["runs_needed"], 1197.0);
    assert_eq!(number(&planned["largest_depth"]), 2);
    assert!(planned["ratio"].is_null() && planned["radius"].is_null(), "{planned}");

    let confident = answer("pct --threads 4 --steps 100 --depth 2 --confidence 0.5");
    assert_eq!(confident["runs_needed"], 277.0);
    assert!(confident["after_runs"].is_null() && confident["largest_depth"].is_null(), "{confident}");
    assert_eq!(number(&answer("pct -n 4 -k 100 --runs 10000 --confidence 0.2")["largest_depth"]), 3);
    assert_eq!(number(&answer("pct -n 4 -k 100 --runs 1")["largest_depth"]), 0);

    let hopeless = answer("pct -n 100 -k 1000000 -d 80");
    assert_eq!(hopeless["per_run"], 0.0);
    close(&hopeless["per_run_log10"], -476.0);
    assert!(hopeless["runs_needed"].is_null(), "{hopeless}");
}

#[test]
fn rpro_is_pct_within_its_radius() {
    let near = answer("rpro --threads 3 --steps 1000 --depth 4 --radius 10 --runs 1000000");
    close(&near["per_run"], 1.0 / (3.0 * 1000.0 * 100.0));
    assert_eq!((number(&near["radius"]), number(&near["largest_depth"])), (10, 4));
    assert_eq!(number(&answer("rpro -n 3 -k 1000")["radius"]), 50);
    close(&answer("rpro -n 3 -k 1000 -d 2")["per_run"], 1.0 / 3000.0);
    assert_eq!(answer("rpro -n 3 -k 1000 -d 2 --confidence 0.95")["runs_needed"], 8986.0);
}

/// The greatest ratio that keeps the promise is computed from runs and confidence; what it promises is the confidence.
#[test]
fn stride_keeps_the_confidence_it_is_asked_for() {
    for depth in 1..=4 {
        for runs in [100, 9990, 1_000_000] {
            let promised = answer(&format!("stride -n 2 -k 1000 -d {depth} --runs {runs} --confidence 0.95"));
            close(&promised["after_runs"], 0.95);
            assert_eq!(number(&promised["largest_depth"]), depth, "{promised}");
        }
    }
    // Where the equation of the paper, which counts twice, has 6.6 and 3.4.
    let ratio = |depth: u32| answer(&format!("stride -n 2 -k 1000 -d {depth} --runs 9990"))["ratio"].clone();
    close(&ratio(1), 6.127_101_867);
    close(&ratio(2), 2.897_360_795);
    let published = answer("stride -n 2 -k 1000 --ratio 6.6 --runs 9990");
    assert!((published["after_runs"].as_f64().expect("a number") - 0.81).abs() < 0.005, "{published}");
    // Two threads of 500 steps.
    assert_eq!(number(&published["greatest_stride"]), 76);
    let unplanned = answer("stride -n 2 -k 1000 --confidence 0.95");
    assert_eq!(
        unplanned["runs_needed"], 9990.0,
        "the strategy's own ratio is for 10,000 runs, ten of them profiling"
    );
}

#[test]
fn people_get_a_small_table() {
    let place = Workplace::new();
    let shown = |arguments: &[&str]| {
        let ran = place.waylay(&[&["bound"], arguments].concat());
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
        ran.stdout
    };
    let table = shown(&["pct", "-n", "5", "-k", "9631", "-d", "2", "--runs", "100000"]);
    for words in
        ["9,631", "1 in 48,155", "runs for 95 %", "144,258", "found in 100,000 runs", "largest depth"]
    {
        assert!(table.contains(words), "{words}:\n{table}");
    }
    assert!(table.lines().count() <= 8, "{table}");
    assert!(shown(&["stride", "-n", "2", "-k", "1000"]).contains("length / stride"));
    assert!(shown(&["rpro", "-n", "2", "-k", "1000"]).contains("radius"));
    assert!(shown(&["pct", "-n", "100", "-k", "1000000", "-d", "80"]).contains("1 in 10^476"));
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let place = Workplace::new();
    for arguments in [
        "pct -n 0 -k 1",
        "pct -n 1 -k 0",
        "pct -n 1 -k 1 -d 0",
        "pct -n 1 -k 1 --runs 0",
        "pct -n 1 -k 1 --confidence 1",
        "pct -n 1 -k 1 --confidence 0",
        "pct -n 1 -k 1 --confidence NaN",
        "pct -n 1",
        "pct -n one -k 1",
        "rpro -n 2 -k 2 --radius 0",
        "stride -n 2 -k 2 --ratio 0",
        "stride -n 2 -k 2 --ratio NaN",
        "stride -n 2 -k 2 --runs 1 --confidence 0.95",
        "random -n 2 -k 2",
    ] {
        let words: Vec<&str> = ["bound"].into_iter().chain(arguments.split(' ')).chain(["--json"]).collect();
        let ran = place.waylay(&words);
        assert_eq!(ran.code(), Some(2), "{arguments}: {}", ran.stderr);
        let json = ran.json();
        assert!(!text(&json["error"]).is_empty() && !ran.stderr.is_empty(), "{arguments}: {json}");
        assert_eq!(number(&json["exit_code"]), 2);
    }
}
