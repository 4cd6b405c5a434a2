//! Failures of a program that was built anew: what still is the same failure, what counts, and when it is called fixed.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::small::{LOCKS, build, counter, explore, json};
use crate::support::{Failure, Ran, Workplace};

/// A failure of the program, which is searched for until it comes.
fn found(place: &Workplace, source: &str) -> (Value, String) {
    let program = build(place, source, &[]);
    let ran = explore(place, &["--runs", "400", "--stop-on-first"], &program);
    assert_eq!(ran.code(), Some(1), "{ran:#?}");
    let summary = json(&ran);
    let folder = summary["failure_dir"].as_str().expect("a folder").to_owned();
    (summary, folder)
}

/// The program with a function in front that moves all others.
fn moved(source: &str) -> String {
    format!(
        "{source}\n__attribute__((used, section(\".text.0\"))) int unrelated(int x) {{ return x * x + 7; }}\n"
    )
    .replacen(
        "#include",
        "__attribute__((used)) int before(int x) { return x / 3 + x * 5; }\n#include",
        1,
    )
}

fn replay(place: &Workplace, folder: &str) -> Ran {
    place.waylay(&["replay", "--json", "--times", "3", folder])
}

#[test]
fn a_deadlock_of_a_rebuilt_program_is_the_same_one_and_counts_apart() {
    let place = Workplace::new();
    let (summary, folder) = found(&place, LOCKS);
    let entry = Failure::read(Path::new(&folder)).json;
    let program = &entry["builds"][0];
    assert!(program["file"].as_str().is_some_and(|file| file.ends_with("/program")), "{entry:#}");
    assert!(program["bytes"].as_u64() > Some(1000) && program["build_id"].is_string(), "{entry:#}");
    let libc = entry["builds"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|one| one["file"].as_str().is_some_and(|file| file.contains("libc.so")));
    assert!(libc && !entry["builds"].to_string().contains("waylay_control"), "{entry:#}");
    let ran = replay(&place, &folder);
    assert_eq!((ran.code(), ran.stderr.contains("not the build")), (Some(1), false), "{ran:#?}");

    build(&place, &moved(LOCKS), &[]);
    let ran = replay(&place, &folder);
    assert_eq!((ran.code(), &json(&ran)["reproduced"]), (Some(1), &Value::from(3)), "{ran:#?}");
    let first = ran.stderr.lines().next().unwrap_or_default();
    assert!(first.contains("not the build that failed") && first.contains("/program (build id"), "{ran:#?}");
    assert_eq!(json(&ran)["other_builds"].as_array().map(Vec::len), Some(1), "{ran:#?}");

    // One that is mended does not fail, and says nothing about how well the failure comes back.
    build(&place, &moved(LOCKS).replace("(&b); pthread_mutex_lock(&a)", "(&a); pthread_mutex_lock(&b)"), &[]);
    let ran = replay(&place, &folder);
    assert_eq!((ran.code(), &json(&ran)["reproduced"]), (Some(0), &Value::from(0)), "{ran:#?}");
    let shown = place.waylay(&["show", &folder]).stdout;
    assert!(shown.contains("came back 3 of 3 times\n"), "{shown}");
    assert!(shown.contains("came back 3 of 6 times with other builds"), "{shown}");
    // One number for the run, wherever it is read.
    let run = summary["found"][0]["first_run"].as_u64().expect("a number");
    assert!(shown.contains(&format!("iteration {run} of scenario explore")), "{run}: {shown}");
    let strict = fs::read_to_string(Path::new(&folder).join("strict.json")).expect("a record");
    let strict: Value = serde_json::from_str(&strict).expect("JSON");
    assert_eq!((strict["run"].as_u64(), strict["index"].as_u64()), (Some(run), Some(run - 1)), "{strict:#}");
}

#[test]
fn a_folder_that_is_gone_is_named() {
    let place = Workplace::new();
    let program = build(&place, LOCKS, &[]);
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("a folder");
    let there = elsewhere.to_str().expect("a plain path");
    let summary = json(&explore(&place, &["--runs", "400", "--stop-on-first", "--cwd", there], &program));
    let folder = summary["failure_dir"].as_str().expect("a folder");
    fs::remove_dir(&elsewhere).expect("it is empty");
    let ran = replay(&place, folder);
    assert_eq!(ran.code(), Some(2), "{ran:#?}");
    assert!(ran.stderr.contains(&format!("the folder {there} that the program ran in")), "{ran:#?}");
}

#[test]
fn only_a_mended_program_is_called_fixed() {
    let place = Workplace::new();
    let wrong = counter("return n == 2 ? 0 : 3;");
    let (_, folder) = found(&place, &wrong);
    // Unchanged: it is said, and how often the failure comes is measured.
    let ran = place.waylay(&["verify", &folder, "--json"]);
    assert_eq!((ran.code(), &json(&ran)["unchanged"]), (Some(1), &Value::from(true)), "{ran:#?}");
    assert!(ran.stderr.contains("this is the build that failed, unchanged"), "{ran:#?}");
    let times = json(&ran)["times"].as_u64().expect("a number");
    assert!(times >= 5, "{ran:#?}");
    // The rate is one of all members of the portfolio: the one that found it would show it more often or less.
    let campaign = Path::new(json(&ran)["folder"].as_str().expect("a folder")).join("campaign.json");
    let campaign = fs::read_to_string(place.path().join(campaign)).expect("a campaign");
    let campaign: Value = serde_json::from_str(&campaign).expect("JSON");
    let by = &campaign["scenarios"][0]["tests"][0]["strict"]["strategy"];
    assert!(by.as_str().is_some_and(|by| by.starts_with("portfolio:")), "{by}");
    // Built anew with the failure still in it.
    build(&place, &moved(&wrong), &[]);
    let ran = place.waylay(&["verify", &folder, "--json"]);
    let said = json(&ran);
    assert_eq!((ran.code(), &said["unchanged"]), (Some(1), &Value::from(false)), "{ran:#?}");
    assert_eq!(
        (&said["measured"], &said["seen"]["reproduced"]),
        (&Value::from(true), &Value::from(times)),
        "{ran:#?}"
    );
    // Mended.
    build(
        &place,
        &moved(&wrong)
            .replace("int v = n; pthread_mutex_unlock(&m);", "int v = n;")
            .replace("    pthread_mutex_lock(&m); n = v", "    n = v"),
        &[],
    );
    let ran = place.waylay(&["verify", &folder, "--json"]);
    let said = json(&ran);
    assert_eq!((ran.code(), &said["reproduced"]), (Some(0), &Value::from(false)), "{ran:#?}");
    assert!(
        said["sure"].as_f64() >= Some(0.95) && said["runs"].as_u64() >= said["needed"].as_u64(),
        "{ran:#?}"
    );
}
