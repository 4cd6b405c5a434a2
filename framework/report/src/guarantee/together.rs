//! Campaigns of one night taken together: what the same test did in the same scenario of several of them counts as one.
//!
//! Schedules of different campaigns are independent, so what each promises multiplies as it does within one: their
//! promises are put side by side. Of the bounds of random suspension the weakest stands for all, which is never too much.

use crate::model::{DepthPromise, Scenario, StrictNumbers, Test};

/// The scenarios of several campaigns, those that are the same made one.
pub fn together(scenarios: impl IntoIterator<Item = Scenario>) -> Vec<Scenario> {
    let mut all: Vec<Scenario> = Vec::new();
    for scenario in scenarios {
        match all.iter_mut().find(|known| known.name == scenario.name && known.mode == scenario.mode) {
            Some(known) => add(known, scenario),
            None => all.push(scenario),
        }
    }
    all
}

fn add(known: &mut Scenario, other: Scenario) {
    known.seconds += other.seconds;
    if known.suspensions.is_none() {
        known.suspensions = other.suspensions;
    }
    // What did not run takes nothing away from what did.
    for test in other.tests.into_iter().filter(|test| test.iterations > 0) {
        let same = |one: &&mut Test| is_same(one, &test);
        match known.tests.iter_mut().find(same) {
            Some(one) => add_test(one, test),
            None => known.tests.push(test),
        }
    }
}

/// Whether it is the same test of the same plugin, wherever that was installed, and the same strategy decided: otherwise
/// there is no one sentence about both.
fn is_same(one: &Test, other: &Test) -> bool {
    let file = |test: &Test| test.plugin.rsplit(['/', '\\']).next().map(str::to_owned);
    if one.name != other.name || file(one) != file(other) {
        return false;
    }
    match (&one.strict, &other.strict) {
        (Some(one), Some(other)) => one.strategy == other.strategy,
        (one, other) => one.is_none() == other.is_none(),
    }
}

fn add_test(one: &mut Test, other: Test) {
    if one.iterations == 0 {
        *one = other;
        return;
    }
    one.iterations = one.iterations.saturating_add(other.iterations);
    one.failures = one.failures.saturating_add(other.failures);
    one.bound = match (one.bound.take(), other.bound) {
        (Some(a), Some(b)) => {
            let (mut weakest, other) = if a.per_iteration <= b.per_iteration { (a, b) } else { (b, a) };
            let new = |broken: &String| !weakest.broken_assumptions.contains(broken);
            let more: Vec<String> = other.broken_assumptions.into_iter().filter(new).collect();
            weakest.broken_assumptions.extend(more);
            Some(weakest)
        }
        // A campaign without a bound makes its iterations worth nothing, and it is not known how many they are.
        _ => None,
    };
    one.no_bound = one.no_bound.take().or(other.no_bound);
    if let (Some(one), Some(other)) = (&mut one.strict, other.strict) {
        add_schedules(one, other);
    }
}

fn add_schedules(one: &mut StrictNumbers, other: StrictNumbers) {
    let seconds = |strict: &StrictNumbers| match strict.schedules_per_second {
        rate if rate > 0.0 => strict.runs as f64 / rate,
        _ => 0.0,
    };
    let time = seconds(one) + seconds(&other);
    one.runs = one.runs.saturating_add(other.runs);
    one.schedules_per_second = if time > 0.0 { one.runs as f64 / time } else { 0.0 };
    one.threads = one.threads.max(other.threads);
    one.steps = one.steps.max(other.steps);
    one.exhausted |= other.exhausted;
    one.partly_controlled += other.partly_controlled;
    match (&mut one.orders, &other.orders) {
        (Some(one), Some(other)) => one.join(other),
        (none, other) => *none = none.or(*other),
    }
    one.limit_reached += other.limit_reached;
    if !one.leaves_out.contains(&other.leaves_out) {
        one.leaves_out += &other.leaves_out;
    }
    for promise in other.promises {
        let same = |known: &&mut DepthPromise| {
            known.depth == promise.depth
                && known.per_run == promise.per_run
                && known.conditions == promise.conditions
        };
        match one.promises.iter_mut().find(same) {
            Some(known) => known.runs = known.runs.saturating_add(promise.runs),
            None => one.promises.push(promise),
        }
    }
    // The weakest of each depth first: it is the one that is named.
    one.promises.sort_by(|a, b| (a.depth, a.per_run).partial_cmp(&(b.depth, b.per_run)).expect("no NaN"));
}
