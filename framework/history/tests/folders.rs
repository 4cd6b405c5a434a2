//! Folders of campaigns are imported, and evidence is removed from them.

mod support;

use std::fs;

use support::{folder, record, utc};
use waylay_driver::environment::Environment;
use waylay_driver::store::{Campaign, CampaignState};
use waylay_history::query::Evidence;
use waylay_history::retention::Limits;
use waylay_history::{FILE, History};
use waylay_report::model::{FailureState, Sample};

#[test]
fn a_deleted_database_is_made_again_from_the_folders() {
    let out = tempfile::tempdir().unwrap();
    let first = folder(out.path(), CampaignState::Finished, &["c-1", "c-2"]);
    let second = folder(out.path(), CampaignState::Stopped, &["c-1"]);
    let mut history = History::open(out.path()).unwrap();
    let imported = history.import(&utc()).unwrap();
    assert_eq!((imported.campaigns, imported.failures, imported.unreadable.len()), (2, 3, 0));
    assert_eq!(history.import(&utc()).unwrap().campaigns, 0);
    let look = |history: &History| {
        let names: Vec<_> = history
            .campaigns(0, 10)
            .unwrap()
            .into_iter()
            .map(|row| (row.name, row.state, row.failures))
            .collect();
        (names, history.failure("c-1").unwrap(), history.failure("c-2").unwrap(), history.counters().unwrap())
    };
    let before = look(&history);
    assert_eq!(before.1.as_ref().unwrap().count, 2);
    drop(history);
    for file in fs::read_dir(out.path()).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with(FILE) {
            fs::remove_file(file.path()).unwrap();
        }
    }
    let mut history = History::open(out.path()).unwrap();
    history.import(&utc()).unwrap();
    assert_eq!(look(&history), before);
    let known = history.known_failure("c-1").unwrap().unwrap();
    assert_eq!(known.campaign, Some(second));
    assert_eq!(known.failure.state, FailureState::New);
    assert!(known.failure.files.iter().any(|file| file.name == "stacks.txt"), "{:?}", known.failure.files);
    assert_eq!(known.sightings.len(), 2);
    assert_eq!(history.known_campaign(&first).unwrap().unwrap().iterations(), 10);
}

#[test]
fn what_a_folder_tells_about_its_time_is_imported_and_so_is_how_often_a_failure_came() {
    let out = tempfile::tempdir().unwrap();
    let name = folder(out.path(), CampaignState::Finished, &["c-1"]);
    let samples: Vec<Sample> =
        (0..2000).map(|at| Sample { at_s: at as f64, iterations: at * 3, ..orders(at) }).collect();
    fs::write(out.path().join(&name).join("series.json"), serde_json::to_vec(&samples).unwrap()).unwrap();
    let mut history = History::open(out.path()).unwrap();
    history.import(&utc()).unwrap();
    let series = history.known_campaign(&name).unwrap().unwrap().series;
    assert!((100..=600).contains(&series.len()), "{}", series.len());
    let of_second = |second: u64| series.iter().find(|sample| sample.at_s == second as f64).copied();
    let known: Vec<Sample> = (1..2000).filter_map(of_second).filter(|sample| sample.orders > 0).collect();
    assert!(known.len() > 50 && known.iter().all(|sample| sample.orders_predicted == 3000), "{known:?}");
    let rate = history.known_failure("c-1").unwrap().unwrap().failure.rate.unwrap();
    assert_eq!((rate.reproduced, rate.runs), (1, 10));
}

/// Orders of conflicting places that were seen by then, of those that are possible.
fn orders(at: u64) -> Sample {
    Sample { orders: at, orders_predicted: 3000, ..Sample::default() }
}

#[test]
fn a_campaign_whose_driver_died_is_interrupted_and_one_at_work_is_left_alone() {
    let out = tempfile::tempdir().unwrap();
    let dead = folder(out.path(), CampaignState::Running, &["c-1"]);
    let seed = waylay_dist::Seed::new(7);
    let alive = Campaign::create(out.path(), seed, Environment::capture(""), "").unwrap();
    let mut history = History::open(out.path()).unwrap();
    history.import(&utc()).unwrap();
    assert_eq!(history.campaign(&dead).unwrap().unwrap().state, "interrupted");
    assert_eq!(history.campaign(&alive.record.name).unwrap(), None);
    let name = alive.record.name.clone();
    alive.close(CampaignState::Finished);
    history.import(&utc()).unwrap();
    assert_eq!(history.campaign(&name).unwrap().unwrap().state, "finished");
}

#[test]
fn folders_that_cannot_be_read_are_named_and_do_not_stop_the_rest() {
    let out = tempfile::tempdir().unwrap();
    let good = folder(out.path(), CampaignState::Finished, &["c-1", "c-2"]);
    fs::write(out.path().join(&good).join("failures/c-2/failure.json"), "{").unwrap();
    fs::create_dir(out.path().join("broken")).unwrap();
    fs::write(out.path().join("broken/campaign.json"), "not json").unwrap();
    fs::create_dir(out.path().join("something else")).unwrap();
    let mut history = History::open(out.path()).unwrap();
    let imported = history.import(&utc()).unwrap();
    assert_eq!((imported.campaigns, imported.failures), (1, 1));
    assert_eq!(imported.unreadable.len(), 2, "{:?}", imported.unreadable);
}

#[test]
fn the_only_copy_of_an_open_failure_stays_when_everything_else_goes() {
    let out = tempfile::tempdir().unwrap();
    let first = folder(out.path(), CampaignState::Finished, &["c-1", "c-2"]);
    let second = folder(out.path(), CampaignState::Finished, &["c-1"]);
    let mut history = History::open(out.path()).unwrap();
    history.import(&utc()).unwrap();
    let all = Limits { campaigns: Some(0), ..Limits::default() };
    let pruned = history.prune(&all).unwrap();
    assert_eq!((pruned.campaigns, pruned.trimmed), (0, 2));
    assert!(pruned.bytes > 0);
    let there = |campaign: &str, path: &str| out.path().join(campaign).join(path).exists();
    assert!(!there(&first, "failures/c-1") && there(&second, "failures/c-1/failure.json"));
    assert!(there(&first, "failures/c-2/stacks.txt"));
    assert!(!there(&first, "config.toml") && there(&first, "campaign.json"));
    assert_eq!(history.campaign(&first).unwrap().unwrap().evidence, Evidence::Trimmed);
    assert_eq!(history.prune(&all).unwrap(), Default::default());

    // Four clean nights with enough runs resolve both, and then they go too; what is known of them stays.
    for night in 1..=4 {
        let at = jiff::Timestamp::now() + jiff::Span::new().hours(24 * night);
        history.put(&record(&format!("clean-{night}"), at, &[("queue", 200)]), &[], &utc()).unwrap();
    }
    assert_eq!(history.failure("c-1").unwrap().unwrap().state, FailureState::Resolved);
    assert_eq!(history.prune(&all).unwrap().campaigns, 2);
    assert!(!there(&first, "") && !there(&second, ""));
    let known = history.known_failure("c-1").unwrap().unwrap();
    assert_eq!((known.campaign, known.failure.count_ever), (None, 2));
    assert_eq!(known.failure.gaps, ["its evidence is no longer kept"]);
}

/// As a debugger has a dump open.
#[cfg(windows)]
#[test]
fn a_file_that_somebody_has_open_goes_the_next_time_and_the_rest_at_once() {
    use std::os::windows::fs::OpenOptionsExt;

    let out = tempfile::tempdir().unwrap();
    let first = folder(out.path(), CampaignState::Finished, &[]);
    let second = folder(out.path(), CampaignState::Finished, &[]);
    let mut history = History::open(out.path()).unwrap();
    history.import(&utc()).unwrap();
    let held = out.path().join(&first).join("campaign.json");
    let held = fs::OpenOptions::new().read(true).share_mode(0).open(held).unwrap();
    let all = Limits { campaigns: Some(0), ..Limits::default() };
    let error = history.prune(&all).unwrap_err().to_string();
    assert!(error.contains(&first), "{error}");
    assert!(out.path().join(&first).exists() && !out.path().join(&second).exists());
    drop(held);
    assert_eq!(history.prune(&all).unwrap().campaigns, 1);
    assert!(!out.path().join(&first).exists());
}
