//! Disks without room, and folders that links lead out of: the campaign goes on, and what it finds is written where it belongs.

use std::fs;
use std::path::Path;

use crate::support::{Workplace, list, number, text};

#[allow(dead_code, reason = "the storm makes disks read-only, too")]
#[path = "../../benches/storm/disk.rs"]
mod small_disk;

/// Fails in another way every few milliseconds.
const FAILS_DIFFERENTLY: &str = "static int32_t iterate(probe *self, waylay_context *worker) {\n\
    static _Atomic int count;\n\
    char text[64];\n\
    int number = count++;\n\
    usleep(20000);\n\
    if (number >= 100) return WAYLAY_OK;\n\
    snprintf(text, sizeof text, \"failure %c%c\", 'a' + number / 26 % 26, 'a' + number % 26);\n\
    waylay_fail(self->services, worker, text);\n\
    return WAYLAY_FAILED;\n\
  }";

const CONFIG: &str = "[defaults]\nworkers = 1\nleaks = false\nmax-failures = 0\n[[scenario]]\nname = \"s\"\n\
                      duration = \"300s\"\n[[scenario.test]]\nplugin = \"probe\"\n";

/// A place whose results are on a disk of their own; none where that is not allowed.
fn place_with_disk(source: &str, bytes: u64) -> Option<Workplace> {
    if !small_disk::of_its_own() {
        eprintln!("note: no disk can be mounted here, so nothing was checked");
        return None;
    }
    let place = Workplace::new();
    place.compile("probe", source);
    place.write("waylay.toml", CONFIG);
    assert!(small_disk::mount(&place.path().join("waylay-out"), bytes), "a disk");
    Some(place)
}

fn announced(stderr: &str) -> usize {
    stderr.matches("━━ assert in test").count()
}

#[test]
fn a_disk_that_is_full_for_a_while_costs_nothing_but_dumps() {
    let Some(place) = place_with_disk(FAILS_DIFFERENTLY, 16 << 20) else { return };
    let out = place.path().join("waylay-out");
    let running = place.start(&["run", "waylay.toml", "--json"]);
    running.until("a failure", |running| announced(&running.stderr()) >= 1);
    assert!(small_disk::fill(&out));
    let before = announced(&running.stderr());
    running.until("failures on a full disk", |running| announced(&running.stderr()) >= before + 5);
    running.until("words about it", |running| running.stderr().contains("the campaign goes on"));
    small_disk::empty(&out);
    running.until("room again", |running| running.stderr().contains("is written now"));
    running.ask_to_end();
    let ran = running.finish();
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    // All of them are read from the disk.
    let failures = ran.failures();
    assert!(failures.len() >= before + 5, "{}", ran.stderr);
    for failure in &failures {
        assert!(failure.file("stacks.txt").contains("iterate"), "{}", failure.folder.display());
        assert!(failure.folder.join("log.txt").exists() && failure.folder.join("replay.sh").exists());
    }
    let record = fs::read_to_string(ran.folder().join("campaign.json")).expect("written");
    let record: serde_json::Value = serde_json::from_str(&record).expect("whole");
    assert_eq!((text(&record["state"]), number(&record["signatures"])), ("stopped", failures.len() as u64));
    assert_eq!(list(&record["problems"]).len(), 0, "{record:#}");
    assert!(fs::read_to_string(ran.folder().join("host.log")).is_ok_and(|log| log.contains("host")));
    small_disk::unmount(&out);
}

#[test]
fn a_disk_that_stays_full_is_told_with_what_was_found() {
    let Some(place) = place_with_disk(FAILS_DIFFERENTLY, 4 << 20) else { return };
    let out = place.path().join("waylay-out");
    let running = place.start(&["run", "waylay.toml", "--json"]);
    running.until("a campaign", |_| !place.campaigns("waylay-out").is_empty());
    running.until("a failure", |running| announced(&running.stderr()) >= 1);
    assert!(small_disk::fill(&out));
    let before = announced(&running.stderr());
    running.until("failures on a full disk", |running| announced(&running.stderr()) >= before + 3);
    running.ask_to_end();
    let ran = running.finish();
    assert_eq!(ran.code(), Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("could not be written at all"), "{}", ran.stderr);
    // Who reads the summary still learns everything.
    assert!(list(&ran.json()["failures"]).len() >= before + 3, "{}", ran.stderr);
    small_disk::unmount(&out);
}

/// The same for a program that is explored.
#[test]
fn an_exploration_goes_on_without_room() {
    if !small_disk::of_its_own() {
        eprintln!("note: no disk can be mounted here, so nothing was checked");
        return;
    }
    let place = Workplace::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/causes/lost_update.c");
    let program = place.path().join("program");
    let built =
        std::process::Command::new("gcc").args(["-g", "-pthread", "-o"]).arg(&program).arg(source).status();
    assert!(built.expect("a compiler").success());
    let out = place.path().join("waylay-out");
    assert!(small_disk::mount(&out, 64 << 10), "a disk");
    let program = program.to_str().expect("plain");
    let ran = place.waylay(&[
        "explore",
        "--seed",
        "7",
        "--runs",
        "300",
        "--minimize",
        "off",
        "--json",
        "--",
        program,
    ]);
    // A stack, a schedule and a record are more than such a disk holds.
    assert!(number(&ran.json()["failures"]) > 0, "{}", ran.stderr);
    assert_eq!(ran.code(), Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("could not be written"), "{}", ran.stderr);
    small_disk::unmount(&out);
}
