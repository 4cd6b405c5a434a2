//! How often a failure comes: where it was found first, in each scenario, and side by side in each mode that its test ran in.
//!
//! What a scenario shows says nothing of another one: a schedule of strict mode finds in ten runs what the operating system
//! shows in a million. So a rate that clean runs are held against is of one scenario, one mode and one strategy.

use std::collections::BTreeSet;

use waylay_report::confidence::{SURE, would_all_have_shown};
use waylay_report::model::{Campaign, Failure, Mode, ModeRate, Reproduction, Scenario, Test};

/// Fills in how often a failure came in a campaign.
pub fn measure(failure: &mut Failure, campaign: &Campaign) {
    failure.rate = rate_in(failure, campaign);
    failure.rates = rates_in(failure, campaign);
}

/// How often a failure came in the scenario that showed it first, which is the one that `verify` runs; none when the host itself
/// broke.
pub fn rate_in(failure: &Failure, campaign: &Campaign) -> Option<Reproduction> {
    let scenario = verified_in(failure, campaign)?;
    rate_of(failure, campaign, scenario).map(|(_, seen)| seen)
}

/// The strategy of the schedules in the scenario that showed a failure first; none outside strict mode. A portfolio is named as
/// a whole: its rate is that of all of its members, and the one that found the failure may show it more or less often.
pub fn strategy_of<'a>(failure: &'a Failure, campaign: &'a Campaign) -> Option<&'a str> {
    let scenario = verified_in(failure, campaign)?;
    let mut tests = tests_of(failure, campaign).filter(|(other, _)| other.name == scenario);
    tests.find_map(|(_, test)| Some(test.strict.as_ref()?.strategy.as_str()))
}

/// The scenario in which one looks whether a failure is gone; of a record without occurrences the only one of its test.
fn verified_in<'a>(failure: &'a Failure, campaign: &'a Campaign) -> Option<&'a str> {
    let first = failure.occurrences.first().map(|occurrence| occurrence.scenario.as_str());
    first.or_else(|| {
        let mut scenarios = tests_of(failure, campaign).map(|(scenario, _)| scenario.name.as_str());
        scenarios.next().filter(|_| scenarios.next().is_none())
    })
}

/// What a failure's test did, by scenario.
fn tests_of<'a>(
    failure: &'a Failure,
    campaign: &'a Campaign,
) -> impl Iterator<Item = (&'a Scenario, &'a Test)> {
    let is_it = |test: &Test| {
        let plugin = failure.plugin.as_deref();
        failure.test.as_deref() == Some(&test.name)
            && plugin.is_none_or(|plugin| file_of(plugin) == file_of(&test.plugin))
    };
    campaign.tests().filter(move |(_, test)| is_it(test))
}

/// A plugin that was moved is still the same. Records are looked at on other systems, too.
fn file_of(plugin: &str) -> &str {
    plugin.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Under which conditions a rate was seen.
#[derive(Clone, Debug)]
struct Way {
    scenario: String,
    mode: Mode,
    /// Who chose the schedules; none outside strict mode.
    strategy: Option<String>,
}

/// How often a failure came in one scenario.
fn rate_of(failure: &Failure, campaign: &Campaign, name: &str) -> Option<(Way, Reproduction)> {
    let tests: Vec<(&Scenario, &Test)> =
        tests_of(failure, campaign).filter(|(scenario, _)| scenario.name == name).collect();
    let &(scenario, test) = tests.first()?;
    let way = Way {
        scenario: name.to_owned(),
        mode: scenario.mode,
        strategy: test.strict.as_ref().map(|strict| strict.strategy.clone()),
    };
    // Records of before that was counted tell by their first occurrences, which are fewer: too few ask for more clean runs.
    let listed = || failure.occurrences.iter().filter(|one| one.scenario == name).count() as u64;
    let alone = tests_of(failure, campaign).all(|(scenario, _)| scenario.name == name);
    let counted = if failure.scenarios.is_empty() {
        if alone { failure.count } else { listed() }
    } else {
        failure.scenarios.get(name).copied().unwrap_or(0)
    };
    let runs: u64 = tests.iter().map(|(_, test)| runs(test)).sum();
    let seconds = tests.iter().map(|(scenario, _)| scenario.seconds).sum();
    let seen = Reproduction { reproduced: counted.min(runs), runs, seconds };
    (counted > 0 && runs > 0).then_some((way, seen))
}

/// Whether a campaign ran a failure's test so often that it is 95 % sure that the failure would have come, which had the rates
/// of `then`. Only runs of the scenarios that showed it then count, if they have their mode and their strategy still.
pub(super) fn would_have_shown(failure: &Failure, then: &Campaign, now: &Campaign) -> bool {
    let names: BTreeSet<&str> = tests_of(failure, then).map(|(scenario, _)| scenario.name.as_str()).collect();
    let first = verified_in(failure, then);
    let rates: Vec<(Reproduction, u64)> = names
        .into_iter()
        .filter_map(|name| {
            let (way, seen) = rate_of(failure, then, name)?;
            // What was measured since is of the scenario that showed it first.
            let measured = failure.measured.filter(|seen| seen.reproduced > 0 && Some(name) == first);
            Some((measured.unwrap_or(seen), runs_by(&way, failure, now)))
        })
        .collect();
    would_all_have_shown(&rates) >= SURE
}

/// How often a failure's test ran in a campaign under these conditions.
fn runs_by(way: &Way, failure: &Failure, campaign: &Campaign) -> u64 {
    let is_it = |(scenario, test): &(&Scenario, &Test)| {
        let strategy = test.strict.as_ref().map(|strict| strict.strategy.as_str());
        scenario.name == way.scenario && scenario.mode == way.mode && strategy == way.strategy.as_deref()
    };
    tests_of(failure, campaign).filter(is_it).map(|(_, test)| runs(test)).sum()
}

/// How often a failure came in each mode; nothing when its test ran in one mode only, or nobody counted by scenario.
fn rates_in(failure: &Failure, campaign: &Campaign) -> Vec<ModeRate> {
    if failure.scenarios.is_empty() {
        return Vec::new();
    }
    let rate = |mode: Mode| {
        let tests = tests_of(failure, campaign).filter(|(scenario, _)| scenario.mode == mode);
        let tests: Vec<(&Scenario, &Test)> = tests.collect();
        let runs: u64 = tests.iter().map(|(_, test)| runs(test)).sum();
        let seen = |(scenario, _): &(&Scenario, &Test)| failure.scenarios.get(&scenario.name);
        let reproduced: u64 = tests.iter().filter_map(seen).sum();
        let seconds = tests.iter().map(|(scenario, _)| scenario.seconds).sum();
        let seen = Reproduction { reproduced: reproduced.min(runs), runs, seconds };
        (runs > 0).then_some(ModeRate { mode, seen })
    };
    let rates: Vec<ModeRate> =
        [Mode::Free, Mode::Randomized, Mode::Strict].into_iter().filter_map(rate).collect();
    if rates.len() > 1 { rates } else { Vec::new() }
}

/// An iteration that failed did not finish; schedules are counted when they begin, and those that reached a limit were not judged.
fn runs(test: &Test) -> u64 {
    match &test.strict {
        Some(strict) => strict.runs.saturating_sub(strict.limit_reached),
        None => test.iterations.saturating_add(test.failures),
    }
}
