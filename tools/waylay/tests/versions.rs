//! Files that an earlier version wrote, kept in `versions/`, are read as docs/install.md says; those of a newer version are
//! refused in a sentence that names the version, and stay as they are.

#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{Workplace, number};
use waylay_history::History;

const ID: &str = "b7d3750d1a057850";

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/versions")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => fs::write(&target, fs::read(entry.path()).unwrap()).unwrap(),
        }
    }
}

/// The results of 0.1 where a command looks for them, and the program that they are about where the record says it is.
fn place() -> (Workplace, PathBuf) {
    let place = Workplace::new();
    let out = place.path().join("waylay-out");
    copy(&kept().join("0.1"), &out);
    let campaign = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir());
    let failure = campaign.unwrap().join("failures").join(ID);
    let here = place.path().to_str().unwrap().to_owned();
    for file in ["failure.json", "strict.json"] {
        change(&failure.join(file), |text| text.replace("/home/user/shop", &here));
    }
    let source = kept().join("lost_update.c");
    let program = place.path().join("lost_update");
    let built = Command::new("gcc").args(["-g", "-O1", "-pthread", "-o"]).arg(&program).arg(source).status();
    assert!(built.unwrap().success());
    (place, failure)
}

fn change(file: &Path, change: impl FnOnce(String) -> String) {
    fs::write(file, change(fs::read_to_string(file).unwrap())).unwrap();
}

fn edit(file: &Path, edit: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    edit(&mut value);
    fs::write(file, value.to_string()).unwrap();
}

#[test]
fn a_campaign_and_a_failure_of_the_last_version_are_read() {
    let (place, _) = place();
    let listed = place.waylay(&["failures", "--json"]);
    assert_eq!(listed.code(), Some(0), "{}", listed.stderr);
    assert!(listed.stdout.contains(ID), "{}", listed.stdout);
    let shown = place.waylay(&["show", "1"]);
    assert_eq!(shown.code(), Some(0), "{}", shown.stderr);
    let said = shown.stdout + &shown.stderr;
    assert!(said.contains("sold == 2") && said.contains("depth 2") && said.contains(ID), "{said}");
    let report = place.waylay(&["report", "--json-file", "night.json"]);
    assert_eq!(report.code(), Some(0), "{}", report.stderr);
    let night: Value = serde_json::from_slice(&fs::read(place.path().join("night.json")).unwrap()).unwrap();
    assert_eq!(night["failures"].as_array().map(Vec::len), Some(1), "{night:#}");
    assert_eq!(number(&night["failures"][0]["count"]), 36, "{night:#}");
}

#[test]
fn a_schedule_of_the_last_version_is_followed_and_so_is_the_record_before_it() {
    let (place, failure) = place();
    for other in [None, Some("strict-1.json"), Some("strict-3.json"), Some("strict-4.json")] {
        if let Some(other) = other {
            let here = place.path().to_str().unwrap().to_owned();
            fs::copy(kept().join(other), failure.join("strict.json")).unwrap();
            change(&failure.join("strict.json"), |text| text.replace("/home/user/shop", &here));
        }
        let ran = place.waylay(&["replay", ID, "--times", "5", "--json"]);
        assert_eq!(ran.code(), Some(1), "{}{}", ran.stdout, ran.stderr);
        assert!(number(&ran.json()["reproduced"]) > 0, "{}", ran.stdout);
        let ran = place.waylay(&["minimize", ID, "--json"]);
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    }
}

#[test]
fn a_history_of_every_version_is_brought_up_to_date() {
    for file in [
        "history-2.sqlite",
        "0.1/history.sqlite",
        "history-4.sqlite",
        "history-5.sqlite",
        "history-6.sqlite",
        "history-7.sqlite",
        "history-8.sqlite",
    ] {
        let place = Workplace::new();
        fs::copy(kept().join(file), place.path().join("history.sqlite")).unwrap();
        let history = History::open(place.path()).unwrap();
        assert_eq!(history.count_campaigns().unwrap(), 1, "{file}");
        let row = history.failure(ID).unwrap().expect("its failure");
        assert_eq!((row.count, row.kind.as_str()), (36, "assert"), "{file}");
        let nights = history.test_nights("lost_update", 9).unwrap();
        assert_eq!(nights.len(), 1, "{file}");
    }
}

/// What is newer is refused with its number, by every command that reads it, and nothing of it is changed.
#[test]
fn what_a_newer_version_wrote_is_refused_by_its_number() {
    let newer = |file: &str| {
        let (place, failure) = place();
        let path = match file {
            "campaign.json" => failure.join("../../campaign.json"),
            other => failure.join(other),
        };
        match file {
            "schedule.bin" => {
                let mut bytes = fs::read(&path).unwrap();
                let at = bytes.iter().position(|byte| *byte == waylay_schedule::schedule::VERSION).unwrap();
                bytes[at] += 40;
                fs::write(&path, bytes).unwrap();
            }
            _ => edit(&path, |value| value["format"] = (number(&value["format"]) + 40).into()),
        }
        let before = fs::read(&path).unwrap();
        (place, path, before)
    };
    for (file, commands, word) in [
        ("failure.json", &[&["show", ID][..], &["verify", ID, "--dry-run"]][..], "format 41"),
        ("campaign.json", &[&["report", "--json-file", "x.json"][..]], "format 41"),
        ("strict.json", &[&["replay", ID][..], &["minimize", ID]], "format 42"),
        ("schedule.bin", &[&["replay", ID][..]], "version 41"),
    ] {
        for command in commands {
            let (place, path, before) = newer(file);
            let ran = place.waylay(command);
            assert_eq!(ran.code(), Some(2), "{file} {command:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(word), "{file} {command:?}: {}", ran.stderr);
            assert_eq!(fs::read(path).unwrap(), before, "{file} {command:?}");
        }
    }
}

#[test]
fn a_newer_history_is_refused_and_the_command_does_its_work() {
    let (place, _) = place();
    let path = place.path().join("waylay-out/history.sqlite");
    let mut bytes = fs::read(&path).unwrap();
    // SQLite's `user_version`: four bytes, the largest first, at offset 60.
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&path, &bytes).unwrap();
    let program = place.path().join("lost_update");
    let ran =
        place.waylay(&["explore", "--runs", "20", "--minimize", "off", "--", program.to_str().unwrap()]);
    assert!(matches!(ran.code(), Some(0 | 1)), "{}", ran.stderr);
    assert!(ran.stderr.contains("version 99") && ran.stderr.contains("newer waylay"), "{}", ran.stderr);
}

/// A format that changes leaves a file of the one before here: this test says which.
#[test]
fn every_format_that_is_told_has_a_file_here() {
    let place = Workplace::new();
    let said = place.waylay(&["--version"]).stdout;
    let version = |name: &str| -> u64 {
        let line =
            said.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {said}"));
        line.split_whitespace().next_back().unwrap().parse().unwrap()
    };
    let failure = place_of_failure();
    let format =
        |file: &Path| number(&serde_json::from_slice::<Value>(&fs::read(file).unwrap()).unwrap()["format"]);
    let why = "keep a file of the new format beside those of the old ones, in tests/versions";
    assert_eq!(format(&failure.join("failure.json")), version("failure.json"), "{why}");
    assert_eq!(format(&kept().join("strict-4.json")), version("strict.json"), "{why}");
    assert_eq!(format(&failure.join("../../campaign.json")), version("campaign.json"), "{why}");
    let bytes = fs::read(kept().join("history-8.sqlite")).unwrap();
    assert_eq!(u64::from(bytes[63]), version("history"), "{why}");
    let schedule = waylay_schedule::Schedule::decode(&fs::read(failure.join("schedule.bin")).unwrap());
    assert!(schedule.is_ok(), "{why}");
}

fn place_of_failure() -> PathBuf {
    let mut campaigns = fs::read_dir(kept().join("0.1")).unwrap().map(|entry| entry.unwrap().path());
    campaigns.find(|path| path.is_dir()).unwrap().join("failures").join(ID)
}
