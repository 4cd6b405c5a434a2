//! Campaigns and failures as a driver would have left them.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::Path;
use std::process::{Child, Command, Stdio};

use jiff::Timestamp;
use waylay_dist::Seed;
use waylay_driver::environment::Environment;
use waylay_driver::failure::{FailureEntry, Finding, Kind, Occurrence, Signature};
use waylay_driver::store::{Campaign, CampaignRecord, CampaignState, FailureStore, Retention};
use waylay_history::write::Context;

pub(crate) fn utc() -> Context {
    Context { zone: jiff::tz::TimeZone::UTC, ..Context::default() }
}

/// A campaign of one night of November 2026 that ran `tests`, each for so many iterations.
pub(crate) fn campaign(day: i8, tests: &[(&str, u64)]) -> CampaignRecord {
    let started: Timestamp = format!("2026-11-{day:02}T22:00:00Z").parse().unwrap();
    record(&format!("202611{day:02}-220000"), started, tests)
}

pub(crate) fn record(name: &str, started: Timestamp, tests: &[(&str, u64)]) -> CampaignRecord {
    let tests: Vec<serde_json::Value> = tests
        .iter()
        .map(|(name, iterations)| {
            serde_json::json!({
                "name": name, "plugin": "/somewhere/libtests.so", "workers": 2, "iterations": iterations, "failures": 0,
                "average_ns": 1000.0, "shortest_ns": 500.0, "longest_ns": 2000.0, "retired": null,
            })
        })
        .collect();
    serde_json::from_value(serde_json::json!({
        "format": 1, "name": name, "state": "finished", "started": started,
        "updated": started + jiff::Span::new().hours(1), "driver_pid": 1, "seed": "0x7",
        "environment": Environment::capture(""), "problems": [], "hosts": 1, "signatures": 0, "failures": 0,
        "scenarios": [{ "name": "night", "mode": "free", "seconds": 3600.0, "tests": tests }],
    }))
    .unwrap()
}

pub(crate) fn finding(signature: &str, kind: Kind, test: Option<&str>, at: Timestamp) -> Finding {
    Finding {
        kind,
        signature: Signature { id: signature.to_owned(), text: format!("{kind}: {signature} < main") },
        what: format!("{signature} happened"),
        reason: None,
        test: test.map(str::to_owned),
        plugin: test.map(|_| "/somewhere/libtests.so".into()),
        occurrence: Occurrence {
            at,
            scenario: "night".into(),
            worker: Some(0),
            iteration: 3,
            seed: Seed::new(7),
            pid: 1,
            randomizer: None,
            workers: Vec::new(),
            pot: None,
        },
        stacks: Vec::new(),
        stacks_text: "stacks\n".into(),
        log_tail: "log\n".into(),
        gaps: Vec::new(),
        code: Default::default(),
        why: Default::default(),
    }
}

pub(crate) fn entry(signature: &str, test: Option<&str>, count: u64, at: Timestamp) -> FailureEntry {
    let finding = finding(signature, Kind::Deadlock, test, at);
    FailureEntry {
        format: waylay_driver::failure::FORMAT,
        kind: finding.kind,
        signature: finding.signature,
        what: finding.what,
        reason: None,
        test: finding.test,
        plugin: finding.plugin,
        count,
        first_seen: at,
        last_seen: at,
        campaign_seed: Seed::new(7),
        scenarios: Default::default(),
        occurrences: vec![finding.occurrence],
        stacks: Vec::new(),
        dump_threads: None,
        gaps: Vec::new(),
        replay: format!("waylay replay waylay-out/x/failures/{signature}"),
        builds: Vec::new(),
        environment: Environment::capture(""),
        machines: Default::default(),
        why: Default::default(),
        variants: Vec::new(),
    }
}

/// A campaign's folder with failures, as a driver leaves it. Its state is what is on the disk; the lock is gone.
pub(crate) fn folder(out: &Path, state: CampaignState, failures: &[&str]) -> String {
    let environment = Environment::capture("");
    let mut campaign = Campaign::create(out, Seed::new(7), environment.clone(), "seed = 7\n").unwrap();
    let limits = Retention { evidence_per_signature: 3, dumps_per_campaign: 0, signatures: 1000 };
    let mut store = FailureStore::create(campaign.folder(), limits, Seed::new(7), environment).unwrap();
    for signature in failures {
        store
            .record(finding(signature, Kind::Crash, Some("queue"), Timestamp::now()), |_| Err("none".into()));
    }
    let like = record("", Timestamp::now(), &[("queue", 10)]);
    campaign.record.scenarios = like.scenarios;
    campaign.record.failures = failures.len() as u64;
    campaign.record.signatures = failures.len() as u64;
    campaign.save();
    let name = campaign.record.name.clone();
    if state == CampaignState::Running {
        drop(campaign);
    } else {
        campaign.close(state);
    }
    name
}

/// This test program again, running one test of it in another role.
pub(crate) fn again(test: &str, role: &[(&str, &str)]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .envs(role.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}
