//! How often a failure comes: in all iterations of its test, and side by side in each mode that its test ran in.

use waylay_report::model::{Campaign, Failure, Mode, ModeRate, Reproduction, Scenario, Test};

/// Fills in how often a failure came in a campaign.
pub fn measure(failure: &mut Failure, campaign: &Campaign) {
    failure.rate = rate_in(failure, campaign);
    failure.rates = rates_in(failure, campaign);
}

/// How often a failure came in the iterations of its test; none when the host itself broke.
pub fn rate_in(failure: &Failure, campaign: &Campaign) -> Option<Reproduction> {
    let name = failure.test.as_deref()?;
    let runs = runs_of(name, campaign);
    let of_test = campaign.tests().filter(|(_, test)| test.name == name);
    let seconds = of_test.map(|(scenario, _)| scenario.seconds).sum();
    (failure.count > 0 && runs > 0).then_some(Reproduction {
        reproduced: failure.count.min(runs),
        runs,
        seconds,
    })
}

/// How often a failure came in each mode; nothing when its test ran in one mode only, or nobody counted by scenario.
fn rates_in(failure: &Failure, campaign: &Campaign) -> Vec<ModeRate> {
    let Some(name) = failure.test.as_deref().filter(|_| !failure.scenarios.is_empty()) else {
        return Vec::new();
    };
    let rate = |mode: Mode| {
        let tests = campaign.tests().filter(|(scenario, test)| test.name == name && scenario.mode == mode);
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

/// How often a test ran in a campaign.
pub(super) fn runs_of(test: &str, campaign: &Campaign) -> u64 {
    campaign.tests().filter(|(_, record)| record.name == test).map(|(_, record)| runs(record)).sum()
}

/// An iteration that failed did not finish; schedules are counted when they begin.
fn runs(test: &Test) -> u64 {
    match &test.strict {
        Some(strict) => strict.runs,
        None => test.iterations.saturating_add(test.failures),
    }
}
