//! One campaign against those before it: which failures are new, which went on, which came back, which did not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use waylay_report::model::{Campaign, FORMAT, Failure, FailureState, Night, NightPoint};
use waylay_report::night::night_of;

use super::rates::measure;
use super::{
    ArchiveError, FailureFolder, campaigns, failure_folders, read_campaign, read_failure, read_failures,
    read_record,
};
use crate::failure::aliases;
use crate::store::load_failure;

/// Campaigns before this one that it is compared with and drawn beside.
const NIGHTS: usize = 30;
/// Campaigns that are looked through for them: a service with several mixes has others in between.
const LOOKED_AT: usize = 300;

/// What a night is compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// The last campaign before it that ran some of the same tests, if there is one.
    #[default]
    Last,
    /// That campaign.
    Campaign(PathBuf),
    /// Nothing.
    Nothing,
}

/// A campaign as a report, compared with those beside it.
pub fn night(folder: &Path, since: &Since, made: Timestamp) -> Result<Night, ArchiveError> {
    let mut campaign = read_campaign(folder)?;
    let (failures, problems) = read_failures(folder);
    campaign.problems.extend(problems.into_iter().map(|problem| format!("cannot be read: {problem}")));
    let mut night =
        Night { format: FORMAT, made, campaign, failures, compared_with: None, trend: Vec::new() };
    for failure in &mut night.failures {
        measure(failure, &night.campaign);
    }
    sort(&mut night.failures);
    let beside = folder.parent().map(campaigns).unwrap_or_default();
    let here = beside.iter().position(|other| same(other, folder)).unwrap_or(beside.len());
    let before = &of_the_same_tests(&beside[here.saturating_sub(LOOKED_AT)..here], &night);
    let reference = match since {
        Since::Last => before.last().cloned(),
        Since::Campaign(folder) => Some(folder.clone()),
        Since::Nothing => None,
    };
    if let Some(reference) = reference {
        night.compared_with = reference.file_name().map(|name| name.to_string_lossy().into_owned());
        compare_with(&mut night, &reference, before);
    }
    night.trend = trend(before, folder);
    Ok(night)
}

/// The last of these campaigns that ran at least one test that this one ran. What others ran says nothing about it.
fn of_the_same_tests(before: &[PathBuf], night: &Night) -> Vec<PathBuf> {
    let ran: BTreeSet<(String, String)> =
        night.campaign.tests().map(|(_, test)| (test.name.clone(), file_of(&test.plugin))).collect();
    let shares = |folder: &&PathBuf| {
        read_record(folder).is_ok_and(|record| {
            let mut tests = record.scenarios.iter().flat_map(|scenario| &scenario.tests);
            tests.any(|test| ran.contains(&(test.name.clone(), file_of(&test.plugin))))
        })
    };
    let mut found: Vec<PathBuf> = before.iter().rev().filter(shares).take(NIGHTS).cloned().collect();
    found.reverse();
    found
}

/// A plugin that was moved is still the same.
fn file_of(plugin: impl AsRef<Path>) -> String {
    plugin.as_ref().file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn same(a: &Path, b: &Path) -> bool {
    fs::canonicalize(a).ok().zip(fs::canonicalize(b).ok()).is_some_and(|(a, b)| a == b)
}

/// By state, then by kind with the worst first, then the most frequent first.
fn sort(failures: &mut [Failure]) {
    failures.sort_by(|a, b| (a.state, a.kind, b.count, &a.id).cmp(&(b.state, b.kind, a.count, &b.id)));
}

/// The state of a failure: seen here, in the night that it is compared with, in any night before. What is not seen here stays
/// open until its test ran so often that it would have shown.
pub fn compare(here: bool, in_reference: bool, before: bool) -> FailureState {
    match (here, in_reference, before) {
        (true, true, _) => FailureState::Ongoing,
        (true, false, true) => FailureState::Rare,
        (true, false, false) => FailureState::New,
        (false, _, _) => FailureState::Open,
    }
}

/// All that a failure may be known by: what leads in one campaign may be a variant in another one.
fn names(failure: &Failure) -> Vec<String> {
    let also = aliases(failure.kind, failure.test.as_deref(), &failure.variants, &failure.why);
    std::iter::once(failure.id.clone()).chain(also).collect()
}

/// The same of what a campaign's folder has.
fn names_in(found: &FailureFolder) -> Vec<String> {
    let also = load_failure(&found.folder)
        .map(|entry| aliases(entry.kind, entry.test.as_deref(), &entry.variants, &entry.why));
    std::iter::once(found.id.clone()).chain(also.unwrap_or_default()).collect()
}

/// Failures of campaigns before, by all of their names.
#[derive(Default)]
struct Earlier {
    by_name: BTreeMap<String, usize>,
    all: Vec<Before>,
}

impl Earlier {
    fn find(&self, names: &[String]) -> Option<&Before> {
        names.iter().find_map(|name| self.by_name.get(name)).map(|place| &self.all[*place])
    }

    /// That of these names, which it has from now on.
    fn entry(&mut self, names: Vec<String>) -> &mut Before {
        let known = names.iter().find_map(|name| self.by_name.get(name)).copied();
        let place = known.unwrap_or_else(|| {
            self.all.push(Before::default());
            self.all.len() - 1
        });
        for name in names {
            self.by_name.entry(name).or_insert(place);
        }
        &mut self.all[place]
    }
}

/// What campaigns before had of a failure.
#[derive(Default)]
struct Before {
    nights: BTreeSet<Date>,
    campaigns: u64,
    count: u64,
    first: Option<Timestamp>,
}

fn compare_with(night: &mut Night, reference: &Path, before: &[PathBuf]) {
    let known: BTreeSet<String> = failure_folders(reference).iter().flat_map(names_in).collect();
    let zone = TimeZone::system();
    let mut earlier = Earlier::default();
    for folder in before {
        let date = read_record(folder).map_or(Date::MIN, |record| night_of(record.started, &zone));
        for found in failure_folders(folder) {
            if let Ok(entry) = load_failure(&found.folder) {
                let also = aliases(entry.kind, entry.test.as_deref(), &entry.variants, &entry.why);
                let seen = earlier.entry(std::iter::once(found.id).chain(also).collect());
                seen.nights.insert(date);
                seen.campaigns += 1;
                seen.count += entry.count;
                seen.first = seen.first.or(Some(entry.first_seen));
            }
        }
    }
    let today = night_of(night.campaign.started, &zone);
    for failure in &mut night.failures {
        let names = names(failure);
        let seen = earlier.find(&names);
        failure.state = compare(true, names.iter().any(|name| known.contains(name)), seen.is_some());
        if let Some(seen) = seen {
            failure.nights = seen.nights.iter().filter(|date| **date != today).count() as u64 + 1;
            failure.campaigns = Some(seen.campaigns + 1);
            failure.count_ever += seen.count;
            failure.first_seen = seen.first.or(failure.first_seen);
        }
    }
    // Nothing can be said of a failure whose test did not run.
    let ran: BTreeSet<&str> = night
        .campaign
        .tests()
        .filter(|(_, test)| test.iterations > 0)
        .map(|(_, test)| test.name.as_str())
        .collect();
    let here: BTreeSet<String> = night.failures.iter().flat_map(names).collect();
    let mut gone = Vec::new();
    let then = read_campaign(reference).ok();
    for found in failure_folders(reference) {
        if here.contains(&found.id) || found.id.starts_with("undecided-") {
            continue;
        }
        let Ok(mut failure) = read_failure(&found) else { continue };
        let names = names(&failure);
        if names.iter().any(|name| here.contains(name)) {
            continue;
        }
        if failure.test.as_deref().is_none_or(|test| ran.contains(test)) {
            failure.state = compare(false, true, true);
            if would_have_shown(&failure, night, then.as_ref()) {
                failure.state = FailureState::Resolved;
            }
            if let Some(seen) = earlier.find(&names) {
                failure.nights = seen.nights.len() as u64;
                (failure.campaigns, failure.count_ever) = (Some(seen.campaigns), seen.count);
                failure.first_seen = seen.first.or(failure.first_seen);
            }
            failure.count = 0;
            gone.push(failure);
        }
    }
    night.failures.extend(gone);
    sort(&mut night.failures);
}

/// Whether the night ran the failure's test so often that the failure would have come. A failure of no test comes at no known
/// rate; a night without it is all that can be had.
fn would_have_shown(failure: &Failure, night: &Night, then: Option<&Campaign>) -> bool {
    failure.test.is_none()
        || then.is_some_and(|then| super::rates::would_have_shown(failure, then, &night.campaign))
}

/// The nights in a row, oldest first.
fn trend(before: &[PathBuf], folder: &Path) -> Vec<NightPoint> {
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut points = Vec::new();
    for folder in before.iter().map(PathBuf::as_path).chain([folder]) {
        let Ok(record) = read_record(folder) else { continue };
        let failures: Vec<Vec<String>> = failure_folders(folder).iter().map(names_in).collect();
        let is_new = |names: &&Vec<String>| !names.iter().any(|name| known.contains(name));
        let new = failures.iter().filter(is_new).count() as u64;
        known.extend(failures.into_iter().flatten());
        points.push(NightPoint {
            campaign: record.name.clone(),
            started: record.started,
            seconds: record.updated.duration_since(record.started).as_secs_f64().max(0.0),
            iterations: record.scenarios.iter().flat_map(|one| &one.tests).map(|test| test.iterations).sum(),
            failures: record.failures,
            signatures: record.signatures,
            new_signatures: if points.is_empty() { 0 } else { new },
        });
    }
    points
}
