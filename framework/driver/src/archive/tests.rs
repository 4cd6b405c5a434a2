use super::*;
use crate::environment::Environment;
use crate::failure::{Finding, Kind, Occurrence, Signature};
use crate::store::{Campaign as Folder, CampaignState as Stored, FailureStore, Retention, TestRecord};
use jiff::Timestamp;
use waylay_dist::Seed;
use waylay_report::model::{FailureState, Verdict};

const KEEP: Retention = Retention { evidence_per_signature: 2, dumps_per_campaign: 10, signatures: 100 };

fn finding(id: &str, test: &str) -> Finding {
    Finding {
        kind: Kind::Assert,
        signature: Signature { id: id.into(), text: format!("assert in {test}") },
        what: "lost an update".into(),
        reason: None,
        test: Some(test.into()),
        plugin: Some("libx.so".into()),
        occurrence: Occurrence {
            at: Timestamp::now(),
            scenario: "s".into(),
            worker: Some(0),
            iteration: 7,
            seed: Seed::new(1),
            pid: 1,
            randomizer: None,
            workers: Vec::new(),
            pot: None,
        },
        stacks: Vec::new(),
        stacks_text: "stacks".into(),
        log_tail: String::new(),
        gaps: Vec::new(),
        code: Default::default(),
        why: Default::default(),
    }
}

/// A campaign whose tests ran and failed as said; left as a killed driver leaves it unless `close`.
fn campaign(out: &Path, tests: &[(&str, u64)], failures: &[(&str, &str)], close: bool) -> PathBuf {
    let environment = Environment::capture("");
    let mut campaign = Folder::create(out, Seed::new(7), environment.clone(), "seed = 7\n").unwrap();
    let mut store = FailureStore::create(campaign.folder(), KEEP, Seed::new(7), environment).unwrap();
    for (id, test) in failures {
        store.record(finding(id, test), |_| Err("none".into()));
    }
    store.flush();
    let test = |name: &str, iterations: u64| -> TestRecord {
        serde_json::from_value(serde_json::json!({
            "name": name, "plugin": "libx.so", "workers": 2, "iterations": iterations, "failures": 0,
            "average_ns": 1.0, "shortest_ns": 1.0, "longest_ns": 1.0, "retired": null,
        }))
        .unwrap()
    };
    campaign.record.scenarios.push(
        serde_json::from_value(serde_json::json!({
            "name": "s", "mode": "free", "seconds": 2.0,
            "tests": tests.iter().map(|(name, n)| serde_json::to_value(test(name, *n)).unwrap()).collect::<Vec<_>>(),
        }))
        .unwrap(),
    );
    campaign.record.failures = store.total();
    campaign.record.signatures = store.signatures() as u64;
    campaign.save();
    let folder = campaign.folder().to_owned();
    if close {
        campaign.close(Stored::Finished);
    }
    folder
}

fn states(night: &waylay_report::model::Night) -> Vec<(&str, FailureState)> {
    night.failures.iter().map(|failure| (failure.id.as_str(), failure.state)).collect()
}

#[test]
fn nights_are_compared() {
    let out = tempfile::tempdir().unwrap();
    let tests = [("a", 10), ("b", 10)];
    campaign(out.path(), &tests, &[("assert-1", "a"), ("assert-2", "a")], true);
    campaign(out.path(), &tests, &[("assert-1", "a"), ("assert-3", "b"), ("assert-4", "idle")], true);
    let last = campaign(out.path(), &tests, &[("assert-1", "a"), ("assert-2", "a"), ("assert-5", "b")], true);
    assert_eq!(find_campaign(out.path(), None).unwrap(), last);
    let night = night(&last, &Since::Last, Timestamp::now()).unwrap();
    assert_eq!(
        states(&night),
        [
            ("assert-5", FailureState::New),
            ("assert-1", FailureState::Ongoing),
            ("assert-2", FailureState::Rare),
            // The test of assert-4 did not run: nothing is known about it. That of assert-3 did, but not often enough.
            ("assert-3", FailureState::Open),
        ]
    );
    assert_eq!(night.here().count(), 3);
    // It came in one of 10 iterations; about 33 times as many without it make it 95 % sure.
    let enough = campaign(out.path(), &[("a", 10), ("b", 400)], &[("assert-1", "a")], true);
    let gone = super::night(&enough, &Since::Last, Timestamp::now()).unwrap();
    let state = |id: &str| states(&gone).iter().find(|(known, _)| *known == id).map(|(_, state)| *state);
    assert_eq!(
        (state("assert-5"), state("assert-2")),
        (Some(FailureState::Resolved), Some(FailureState::Open))
    );
    std::fs::remove_dir_all(enough).unwrap();
    assert_eq!(night.verdict(), Verdict::Failed);
    let often = &night.failures[1];
    assert_eq!(often.count_ever, 3);
    // All of them are of this moment; only at noon might a night end in between.
    assert!(often.campaigns == Some(3) && (1..=2).contains(&often.nights), "{often:?}");
    let new: Vec<u64> = night.trend.iter().map(|point| point.new_signatures).collect();
    assert_eq!(new, [0, 2, 1]);
    let alone = super::night(&last, &Since::Nothing, Timestamp::now()).unwrap();
    assert!(states(&alone).iter().all(|(_, state)| *state == FailureState::Unknown), "{:?}", states(&alone));
}

/// Which of several signatures of one cause comes first, and leads, is chance.
#[test]
fn a_failure_that_led_before_and_is_a_variant_now_is_the_same() {
    let out = tempfile::tempdir().unwrap();
    let first = campaign(out.path(), &[("a", 10)], &[("assert-1", "a")], true);
    let path = first.join("failures/assert-1/failure.json");
    let mut entry: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let signature = serde_json::json!({ "id": "assert-2", "text": "assert in a < other" });
    entry["variants"] = serde_json::json!([{ "signature": signature, "what": "", "count": 1 }]);
    std::fs::write(&path, entry.to_string()).unwrap();
    let last = campaign(out.path(), &[("a", 10)], &[("assert-2", "a")], true);
    let night = night(&last, &Since::Last, Timestamp::now()).unwrap();
    assert_eq!(states(&night), [("assert-2", FailureState::Ongoing)]);
    assert_eq!((night.failures[0].count_ever, night.failures[0].campaigns), (2, Some(2)));
    assert_eq!(night.trend.iter().map(|point| point.new_signatures).collect::<Vec<_>>(), [0, 0]);
}

/// A service with two mixes runs them in turns: what the other one ran is nothing to compare with.
#[test]
fn a_campaign_of_other_tests_in_between_is_passed_over() {
    let out = tempfile::tempdir().unwrap();
    let first = campaign(out.path(), &[("a", 10)], &[("assert-1", "a")], true);
    campaign(out.path(), &[("b", 10)], &[("assert-2", "b")], true);
    let last = campaign(out.path(), &[("a", 10)], &[("assert-1", "a"), ("assert-3", "a")], true);
    let night = night(&last, &Since::Last, Timestamp::now()).unwrap();
    assert_eq!(night.compared_with.as_deref(), first.file_name().and_then(|name| name.to_str()));
    assert_eq!(states(&night), [("assert-3", FailureState::New), ("assert-1", FailureState::Ongoing)]);
    assert_eq!(night.trend.len(), 2);
}

#[test]
fn a_campaign_whose_driver_was_killed_is_reported_with_what_is_there() {
    let out = tempfile::tempdir().unwrap();
    let folder = campaign(out.path(), &[("a", 10)], &[("assert-1", "a"), ("assert-2", "a")], false);
    // Cut off in the middle, as only a broken disk leaves it; the part that a killed driver leaves; an undecided one.
    fs::write(folder.join("failures/assert-2/failure.json"), "{\"format\":").unwrap();
    fs::write(folder.join("failures/assert-1/failure.part"), "{").unwrap();
    fs::write(folder.join("series.json"), "[{").unwrap();
    let undecided = folder.join("failures/undecided-deadlock-9-1");
    fs::create_dir(&undecided).unwrap();
    fs::copy(folder.join("failures/assert-1/failure.json"), undecided.join("failure.json")).unwrap();
    let before = fs::read(folder.join("campaign.json")).unwrap();
    let night = night(&folder, &Since::Last, Timestamp::now()).unwrap();
    assert_eq!(night.campaign.state, CampaignState::Interrupted);
    assert_eq!(fs::read(folder.join("campaign.json")).unwrap(), before, "a report changes nothing");
    assert_eq!(states(&night).len(), 2);
    assert!(
        night.campaign.problems.iter().any(|text| text.contains("assert-2")),
        "{:?}",
        night.campaign.problems
    );
    assert!(night.failures.iter().any(|failure| failure.gaps.iter().any(|gap| gap.contains("driver died"))));
    assert!(night.failures[0].files.iter().all(|file| !file.name.ends_with(".part")));
}

#[test]
fn a_campaign_that_is_at_work_is_running() {
    let out = tempfile::tempdir().unwrap();
    let alive = Folder::create(out.path(), Seed::new(7), Environment::capture(""), "").unwrap();
    let night = night(alive.folder(), &Since::Last, Timestamp::now()).unwrap();
    assert_eq!((night.campaign.state, night.verdict()), (CampaignState::Running, Verdict::NothingRan));
}

#[test]
fn failures_are_found_by_the_beginning_of_their_name_and_by_their_folder() {
    let out = tempfile::tempdir().unwrap();
    let first = campaign(out.path(), &[("a", 1)], &[("assert-b05fe2c2", "a"), ("crash-b0700000", "a")], true);
    let second = campaign(out.path(), &[("a", 1)], &[("assert-b05fe2c2", "a")], true);
    let find = |id: &str| find_failure(out.path(), Path::new(id));
    assert_eq!(find("assert-b05fe2c2").unwrap().campaign, second, "the newest counts");
    assert_eq!(find("b05f").unwrap().campaign, second);
    assert_eq!(find("crash").unwrap().campaign, first);
    assert!(matches!(find("b0"), Err(ArchiveError::Ambiguous { candidates, .. }) if candidates.len() == 2));
    assert!(matches!(find("nonsense"), Err(ArchiveError::NoFailure { .. })));
    assert!(matches!(find(""), Err(ArchiveError::NoFailure { .. })));
    let folder = first.join("failures/crash-b0700000");
    assert_eq!(find(folder.to_str().unwrap()).unwrap().campaign, first);
    assert!(matches!(find_campaign(Path::new("/nonexistent"), None), Err(ArchiveError::Empty(_))));
    let unknown = find_campaign(out.path(), Some(Path::new("yesterday"))).unwrap_err();
    assert!(unknown.to_string().contains("the latest is"), "{unknown}");
}

#[test]
fn failures_of_the_latest_campaign_have_numbers() {
    let out = tempfile::tempdir().unwrap();
    let find = |id: &str| find_failure(out.path(), Path::new(id));
    assert!(matches!(find("1"), Err(ArchiveError::NoFailure { .. })), "there is no campaign");
    campaign(out.path(), &[("a", 1)], &[("assert-1", "a"), ("deadlock-3", "a")], true);
    let folder = campaign(out.path(), &[("a", 1)], &[("crash-2", "a"), ("assert-1", "a")], true);
    let seen = |id: &str, at: &str| {
        let path = folder.join("failures").join(id).join("failure.json");
        let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        record["first_seen"] = at.into();
        fs::write(&path, record.to_string()).unwrap();
    };
    seen("crash-2", "2026-11-16T05:21:19Z");
    seen("assert-1", "2026-11-16T05:21:20Z");
    assert_eq!((find("1").unwrap().id, find("2").unwrap().id), ("crash-2".to_owned(), "assert-1".to_owned()));
    assert_eq!(find("1").unwrap().campaign, folder);
    let none = find("3").unwrap_err().to_string();
    assert!(none.contains("there is no failure 3") && none.contains("which has 2"), "{none}");
    fs::write(folder.join("failures/crash-2/failure.json"), "{").unwrap();
    assert_eq!(find("1").unwrap().id, "assert-1", "what cannot be read comes last");
}

#[test]
fn campaigns_of_one_second_are_in_the_order_in_which_they_began() {
    let names = ["20261116-052119", "20261116-052119-10", "20261116-052119-9", "20261116-052120"];
    let mut sorted = names.map(PathBuf::from).to_vec();
    sorted.sort_by_key(|folder| order(folder));
    assert_eq!(sorted, [names[0], names[2], names[1], names[3]].map(PathBuf::from));
}

#[test]
fn every_occurrence_is_kept_and_a_line_that_was_cut_off_is_left_out() {
    let out = tempfile::tempdir().unwrap();
    let often = [("assert-1", "a"); 57];
    let folder = campaign(out.path(), &[("a", 943)], &often, true);
    let further = folder.join("failures/assert-1/occurrences.jsonl");
    let mut lines = fs::read_to_string(&further).unwrap();
    assert_eq!(lines.lines().count(), 37);
    lines.truncate(lines.len() - 20);
    fs::write(&further, lines).unwrap();
    let night = night(&folder, &Since::Last, Timestamp::now()).unwrap();
    assert_eq!((night.failures[0].count, night.failures[0].occurrences.len()), (57, 56));
    let rate = night.failures[0].rate.unwrap();
    assert_eq!((rate.reproduced, rate.runs), (57, 943));
}

/// A campaign of one test in scenarios (name, mode, strategy, runs that were judged, failures).
fn campaign_of_ways(out: &Path, ways: &[(&str, &str, Option<&str>, u64, u64)]) -> PathBuf {
    let environment = Environment::capture("");
    let mut campaign = Folder::create(out, Seed::new(7), environment.clone(), "seed = 7\n").unwrap();
    let mut store = FailureStore::create(campaign.folder(), KEEP, Seed::new(7), environment).unwrap();
    for &(name, mode, strategy, judged, failures) in ways {
        for _ in 0..failures {
            let mut finding = finding("assert-1", "a");
            finding.occurrence.scenario = name.into();
            store.record(finding, |_| Err("none".into()));
        }
        let mut test = serde_json::json!({
            "name": "a", "plugin": "libx.so", "workers": 2, "iterations": judged, "failures": 0, "average_ns": 1.0,
            "shortest_ns": 1.0, "longest_ns": 1.0, "retired": null,
        });
        if let Some(strategy) = strategy {
            test["strict"] = serde_json::json!({
                "strategy": strategy, "seed": "0x7", "runs": judged + 1000, "threads": 2, "steps": 9, "depth": 0,
                "guarantee": null, "guarantees": [], "schedules_per_second": 1.0, "steps_per_second": 1.0,
                "exhausted": false, "partly_controlled": 0, "left_behind": 0, "limit_reached": 1000, "unconfirmed": 0,
            });
        }
        let scenario = serde_json::json!({ "name": name, "mode": mode, "seconds": 2.0, "tests": [test] });
        campaign.record.scenarios.push(serde_json::from_value(scenario).unwrap());
    }
    store.flush();
    campaign.save();
    let folder = campaign.folder().to_owned();
    campaign.close(Stored::Finished);
    folder
}

/// What came once in 700,000 runs that were left alone, and in every second schedule: clean runs of the one say nothing about the
/// other, and a sum over both says nothing at all.
#[test]
fn a_rate_is_of_one_scenario_and_only_its_runs_resolve() {
    let out = tempfile::tempdir().unwrap();
    let ways = |free: (u64, u64), strict: (u64, u64), strategy| {
        let all = [
            ("free", "free", None, free.0, free.1),
            ("strict", "strict", Some(strategy), strict.0, strict.1),
        ];
        campaign_of_ways(out.path(), &all)
    };
    let found = ways((700_000, 1), (10_000, 5000), "pos");
    let seen = night(&found, &Since::Nothing, Timestamp::now()).unwrap().failures[0].rate.unwrap();
    assert_eq!((seen.reproduced, seen.runs), (1, 700_000), "of the scenario that showed it first");
    let state = |folder: &Path| {
        let night = night(folder, &Since::Campaign(found.clone()), Timestamp::now()).unwrap();
        states(&night)[0].1
    };
    // By a sum over both, 600 runs of any kind would do.
    assert_eq!(state(&ways((700_000, 0), (0, 0), "pos")), FailureState::Open);
    assert_eq!(state(&ways((700_000, 0), (2000, 0), "random")), FailureState::Open, "another strategy");
    assert_eq!(state(&ways((700_000, 0), (2000, 0), "pos")), FailureState::Resolved);
}
