//! Merging is the union of sets of parts: twice, in any order and in any groups it gives the same. Folders are synthetic, as
//! shards leave them.

#![recursion_limit = "256"]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use waylay_fleet::merge::{MergeError, merge};

/// What a process of a shard left behind.
#[derive(Clone, Debug)]
struct Left {
    number: u64,
    from: u64,
    to: u64,
    done: bool,
    machine: u8,
    /// By signature: how often, and how good the evidence is.
    failures: BTreeMap<u8, (u64, u8)>,
}

const OF: u64 = 4;
const PLANNED: u64 = 100;

fn at(second: u64) -> String {
    format!("2026-11-18T00:{:02}:{:02}Z", second / 60 % 60, second % 60)
}

fn write(file: &Path, value: &Value) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, value.to_string()).unwrap();
}

fn environment() -> Value {
    json!({ "waylay": "0.1.0", "system": "s", "processor": "p", "cores": 2, "memory_mib": 1, "config_digest": "0" })
}

/// Writes the folder of a campaign; `number` tells campaigns apart.
fn campaign(folder: &Path, number: usize, left: &Left, night: &str) {
    let failures: u64 = left.failures.values().map(|(count, _)| count).sum();
    let runs = (left.to - left.from) / OF;
    let counts: BTreeMap<String, u64> =
        left.failures.iter().map(|(id, (count, _))| (format!("assert-{id:02}"), *count)).collect();
    write(
        &folder.join("campaign.json"),
        &json!({
            "format": 1, "name": format!("c{number}"), "state": if left.done { "finished" } else { "interrupted" },
            "started": at(number as u64), "updated": at(number as u64 + 600), "driver_pid": number, "seed": "7",
            "environment": environment(), "problems": [], "hosts": 1, "signatures": counts.len(), "failures": failures,
            "scenarios": [{ "name": "prog", "mode": "strict", "seconds": 1.5, "tests": [{
                "name": "prog", "plugin": "/x/prog", "workers": 2, "iterations": runs, "failures": failures,
                "average_ns": 1.25, "shortest_ns": 0.0, "longest_ns": 0.0, "retired": null,
                "strict": { "strategy": "pct:depth=2", "seed": "7", "runs": runs, "threads": 2, "steps": 10, "depth": 2,
                    "guarantee": null, "guarantees": [{ "depth": 2, "per_run": 0.05, "after_runs": 0.5, "runs": runs,
                        "conditions": [] }],
                    "schedules_per_second": 10.0, "steps_per_second": 100.0, "exhausted": false, "partly_controlled": 0,
                    "left_behind": 0, "unconfirmed": 0 },
            }] }],
            "shard": { "night": night, "number": left.number, "of": OF, "unit": "schedules",
                "machine": format!("m{}", left.machine), "from": left.from, "to": left.to, "planned": PLANNED,
                "done": left.done, "exhausted": false, "steps": "", "outcomes": format!("{:016x}", number), "failures": counts },
        }),
    );
    for (id, (count, quality)) in &left.failures {
        let place = folder.join("failures").join(format!("assert-{id:02}"));
        let seen = at(number as u64 + 60);
        write(
            &place.join("failure.json"),
            &json!({
                "format": 1, "kind": "assert", "signature": { "id": format!("assert-{id:02}"), "text": "t" },
                "what": "w", "test": "prog", "plugin": null, "count": count, "first_seen": seen, "last_seen": seen,
                "campaign_seed": "7", "stacks": [], "dump_threads": null, "gaps": [], "replay": "", "environment": environment(),
                "occurrences": [{ "at": seen, "scenario": "prog", "worker": null, "iteration": number, "seed": "7", "pid": 1,
                    "workers": [] }],
            }),
        );
        if *quality > 0 {
            write(&place.join("strict.json"), &json!({ "confirmed": *quality > 1 }));
        }
        if *quality > 2 {
            write(&place.join("minimized.json"), &json!({}));
        }
        fs::write(place.join("stacks.txt"), format!("{number}")).unwrap();
    }
}

/// Everything in a folder, but for where it lies.
fn content(folder: &Path) -> BTreeMap<PathBuf, String> {
    fn walk(root: &Path, folder: &Path, all: &mut BTreeMap<PathBuf, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, all);
            } else {
                let text = fs::read_to_string(&path).unwrap();
                all.insert(path.strip_prefix(root).unwrap().to_owned(), text);
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(folder, folder, &mut all);
    all
}

/// Merges into a folder of always the same name, and says what it holds.
fn merged(place: &Path, sources: &[PathBuf]) -> BTreeMap<PathBuf, String> {
    let night = place.join("night");
    merge(sources, &night).unwrap();
    content(&night)
}

fn lefts() -> impl Strategy<Value = Vec<Left>> {
    let failures = proptest::collection::btree_map(0u8..4, (1u64..5, 0u8..4), 0..4);
    let left = (1..=OF, 0u64..4, 1u64..4, any::<bool>(), 0u8..3, failures).prop_map(
        |(number, from, length, done, machine, failures)| Left {
            number,
            from: from * 20,
            to: (from + length) * 20,
            done,
            machine,
            failures,
        },
    );
    proptest::collection::vec(left, 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn merging_is_idempotent_commutative_and_associative(lefts in lefts(), split in any::<prop::sample::Index>()) {
        let place = tempfile::tempdir().unwrap();
        let folders: Vec<PathBuf> = lefts.iter().enumerate().map(|(number, left)| {
            let folder = place.path().join(format!("shard-{number}")).join(format!("c{number}"));
            campaign(&folder, number, left, "n");
            folder
        }).collect();
        let all = merged(place.path(), &folders);

        let backwards: Vec<PathBuf> = folders.iter().rev().cloned().collect();
        prop_assert_eq!(&merged(place.path(), &backwards), &all, "in another order");

        let twice: Vec<PathBuf> = folders.iter().chain(&folders).cloned().collect();
        prop_assert_eq!(&merged(place.path(), &twice), &all, "each twice");

        let again = place.path().join("again").join("night");
        fs::create_dir_all(again.parent().unwrap()).unwrap();
        fs::rename(place.path().join("night"), &again).unwrap();
        prop_assert_eq!(&merged(place.path(), std::slice::from_ref(&again)), &all, "a night alone");
        let with_one = [again.clone(), folders[0].clone()];
        prop_assert_eq!(&merged(place.path(), &with_one), &all, "a night and one of its parts");

        let (first, second) = folders.split_at(split.index(folders.len() + 1));
        let mut groups = Vec::new();
        for (name, group) in [("one", first), ("two", second)] {
            if !group.is_empty() {
                let folder = place.path().join(name).join("night");
                fs::create_dir_all(folder.parent().unwrap()).unwrap();
                merge(group, &folder).unwrap();
                groups.push(folder);
            }
        }
        prop_assert_eq!(&merged(place.path(), &groups), &all, "in groups");
    }
}

/// Of a group alone another part counts than of all together: what that group said of a failure must not outlive it.
#[test]
fn a_part_that_no_longer_counts_leaves_no_times_behind() {
    let place = tempfile::tempdir().unwrap();
    let left = |number, from, done, failures: &[(u8, (u64, u8))]| Left {
        number,
        from,
        to: from + 20,
        done,
        machine: 0,
        failures: failures.iter().copied().collect(),
    };
    let lefts =
        [left(3, 0, true, &[]), left(3, 0, false, &[(0, (1, 0))]), left(1, 20, false, &[(0, (1, 1))])];
    let folders: Vec<PathBuf> =
        (0..lefts.len()).map(|number| place.path().join(format!("c{number}"))).collect();
    for (number, left) in lefts.iter().enumerate() {
        campaign(&folders[number], number, left, "n");
    }
    let all = merged(place.path(), &folders);
    let group = place.path().join("group").join("night");
    fs::create_dir_all(group.parent().unwrap()).unwrap();
    merge(&folders[1..], &group).unwrap();
    assert_eq!(merged(place.path(), &[folders[0].clone(), group]), all);
}

fn whole(number: u64, failures: &[(u8, (u64, u8))]) -> Left {
    let failures = failures.iter().copied().collect();
    Left { number, from: 0, to: PLANNED, done: true, machine: number as u8, failures }
}

fn record(night: &Path) -> Value {
    serde_json::from_slice(&fs::read(night.join("campaign.json")).unwrap()).unwrap()
}

#[test]
fn numbers_are_summed_and_the_best_evidence_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let lefts = [
        whole(1, &[(1, (3, 1))]),
        whole(2, &[(1, (2, 3))]),
        whole(3, &[(1, (1, 0)), (2, (9, 0))]),
        whole(4, &[]),
    ];
    for (number, left) in lefts.iter().enumerate() {
        campaign(&place.path().join(format!("{number}")), number, left, "n");
    }
    let night = place.path().join("night");
    let said = merge(&[place.path().to_owned()], &night).unwrap();
    assert!(said.missing.is_empty(), "{:?}", said.missing);
    assert_eq!((said.parts, said.machines.len()), (4, 4));
    let record = record(&night);
    assert_eq!(
        (&record["state"], &record["failures"], &record["signatures"]),
        (&json!("finished"), &json!(15), &json!(2))
    );
    let test = &record["scenarios"][0]["tests"][0];
    assert_eq!((&test["iterations"], &test["strict"]["runs"]), (&json!(PLANNED), &json!(PLANNED)));
    // 1 − (1 − 1/20)^100: the guarantee speaks of all schedules of the night.
    let promised = test["strict"]["guarantee"]["after_runs"].as_f64().unwrap();
    assert!((promised - (1.0 - 0.95_f64.powi(100))).abs() < 1e-9, "{promised}");
    let failure: Value =
        serde_json::from_slice(&fs::read(night.join("failures/assert-01/failure.json")).unwrap()).unwrap();
    assert_eq!((&failure["count"], &failure["machines"]), (&json!(6), &json!({ "m1": 3, "m2": 2, "m3": 1 })));
    assert_eq!(failure["occurrences"].as_array().unwrap().len(), 3);
    assert_eq!(
        fs::read_to_string(night.join("failures/assert-01/stacks.txt")).unwrap(),
        "1",
        "minimised wins"
    );
    assert!(waylay_driver::archive::night(&night, &Default::default(), jiff::Timestamp::now()).is_ok());
}

#[test]
fn what_is_missing_is_named_with_what_it_would_have_added() {
    let place = tempfile::tempdir().unwrap();
    let cut = Left { to: 40, done: false, ..whole(2, &[]) };
    for (number, left) in [whole(1, &[]), cut, whole(4, &[])].iter().enumerate() {
        campaign(&place.path().join(format!("{number}")), number, left, "n");
    }
    let said = merge(&[place.path().to_owned()], &place.path().join("night")).unwrap();
    assert_eq!(said.missing.len(), 2, "{:?}", said.missing);
    assert!(said.missing[0].starts_with("shard 2/4 was cut off: 15 schedules"), "{:?}", said.missing);
    assert!(said.missing[1].starts_with("shard 3/4 is missing: 25 schedules"), "{:?}", said.missing);
    assert_eq!(record(&place.path().join("night"))["problems"].as_array().unwrap().len(), 2);
}

/// A shard that was preempted twice, and a copy of it that an engine started meanwhile.
#[test]
fn a_shard_that_went_on_is_counted_once() {
    let place = tempfile::tempdir().unwrap();
    let part = |from, to, done| Left { from, to, done, ..whole(1, &[(1, (1, 0))]) };
    let mut lefts =
        vec![part(0, 40, false), part(0, 80, false), part(40, 60, false), part(60, PLANNED, true)];
    lefts.extend((2..=OF).map(|number| whole(number, &[])));
    for (number, left) in lefts.iter().enumerate() {
        campaign(&place.path().join(format!("{number}")), number, left, "n");
    }
    let said = merge(&[place.path().to_owned()], &place.path().join("night")).unwrap();
    assert!(said.missing.is_empty(), "{:?}", said.missing);
    assert_eq!(said.record.scenarios[0].tests[0].iterations, PLANNED);
    assert_eq!(said.record.failures, 3, "of the parts that follow each other");
}

#[test]
fn parts_of_two_nights_are_refused_and_named() {
    let place = tempfile::tempdir().unwrap();
    campaign(&place.path().join("0"), 0, &whole(1, &[]), "n");
    campaign(&place.path().join("1"), 1, &whole(2, &[]), "other");
    let night = place.path().join("night");
    let Err(MergeError::Input(text)) = merge(&[place.path().to_owned()], &night) else { panic!("merged") };
    assert!(text.contains("two nights") && text.contains("25 iterations"), "{text}");
    assert!(!night.exists());
    let missing = merge(&[place.path().join("nowhere")], &night);
    assert!(missing.unwrap_err().to_string().contains("no folder"));
}
