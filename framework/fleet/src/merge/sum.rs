//! Numbers of parts, added up. Parts come in the order of the night, so that sums of fractions do not depend on who merges.
//!
//! What a guarantee says is computed again from all schedules: those whose k is smaller than the longest of the night promise
//! nothing about its end, in whichever part they were made.

use waylay_driver::store::{
    BoundRecord, CampaignRecord, Outcomes, PotShare, RandomizerRecord, ScenarioRecord, StrictNumbers,
    TestRecord, Unit,
};
use waylay_schedule::RunParameters;
use waylay_schedule::promise::{Aimed, Promise, headline, promises};

use super::choose::Standing;
use super::part::Part;

/// Notes that are kept of all parts together.
const MOST_NOTES: usize = 50;

/// The record of chosen parts together. It may be that none was chosen: then it says what was not done.
pub(super) fn record(all: &[Part], parts: &[&Part], standing: &Standing) -> CampaignRecord {
    let first = parts.first().copied().unwrap_or(&all[0]);
    let mut sum = CampaignRecord {
        shard: None,
        hosts: 0,
        failures: 0,
        problems: Vec::new(),
        notes: Vec::new(),
        scenarios: Vec::new(),
        ..first.record.clone()
    };
    for part in parts {
        let record = &part.record;
        sum.started = sum.started.min(record.started);
        sum.updated = sum.updated.max(record.updated);
        sum.hosts += record.hosts;
        sum.failures += record.failures;
        for problem in &record.problems {
            if !sum.problems.contains(problem) {
                sum.problems.push(problem.clone());
            }
        }
        for note in &record.notes {
            if !sum.notes.contains(note) && sum.notes.len() < MOST_NOTES {
                sum.notes.push(note.clone());
            }
        }
        // Where machines had different builds of a file, none of them is that of the night.
        sum.builds
            .retain(|build| record.builds.iter().all(|other| other.plugin != build.plugin || other == build));
        for scenario in &record.scenarios {
            add_scenario(&mut sum.scenarios, scenario);
        }
    }
    sum.driver_pid = 0;
    let divided = first.shard().unit == Unit::Schedules;
    for scenario in &mut sum.scenarios {
        shares_of_pots(&mut scenario.tests);
        for strict in scenario.tests.iter_mut().filter_map(|test| test.strict.as_mut()) {
            // Of one program every part has a part of the search; of a mix one lot has all of a test's.
            if divided {
                strict.exhausted = standing.exhausted;
            }
        }
    }
    sum
}

/// Sum of the digests of all schedules.
pub(super) fn outcomes(parts: &[&Part]) -> String {
    let mut sum = Outcomes::default();
    parts.iter().for_each(|part| sum.join(Outcomes::of(&part.shard().outcomes)));
    sum.to_string()
}

fn add_scenario(all: &mut Vec<ScenarioRecord>, other: &ScenarioRecord) {
    let Some(one) = all.iter_mut().find(|one| one.name == other.name && one.mode == other.mode) else {
        all.push(other.clone());
        return;
    };
    one.seconds += other.seconds;
    match (&mut one.randomizer, &other.randomizer) {
        (Some(one), Some(other)) => add_randomizer(one, other),
        (one @ None, Some(other)) => *one = Some(other.clone()),
        (_, None) => {}
    }
    for test in &other.tests {
        match one.tests.iter_mut().find(|known| is_same(known, test)) {
            Some(known) => add_test(known, test),
            None => one.tests.push(test.clone()),
        }
    }
}

/// Whether it is the same test of the same plugin, wherever that lies, in the same pot or none.
fn is_same(one: &TestRecord, other: &TestRecord) -> bool {
    let pot = |test: &TestRecord| test.pot.as_ref().map(|pot| pot.container.clone());
    let strategy = |test: &TestRecord| test.strict.as_ref().map(|strict| strict.strategy.clone());
    one.name == other.name
        && one.plugin.file_name() == other.plugin.file_name()
        && pot(one) == pot(other)
        && strategy(one) == strategy(other)
}

fn add_test(one: &mut TestRecord, other: &TestRecord) {
    let (mine, theirs) = (one.iterations as f64, other.iterations as f64);
    if let (Some(pot), Some(more)) = (&mut one.pot, &other.pot) {
        add_share(pot, more, (mine, one.average_ns), (theirs, other.average_ns));
    }
    if theirs > 0.0 {
        one.average_ns = (one.average_ns * mine + other.average_ns * theirs) / (mine + theirs);
        one.shortest_ns = if mine > 0.0 { one.shortest_ns.min(other.shortest_ns) } else { other.shortest_ns };
        one.longest_ns = one.longest_ns.max(other.longest_ns);
    }
    one.iterations += other.iterations;
    one.failures += other.failures;
    one.workers = one.workers.max(other.workers);
    one.retired = one.retired.take().or_else(|| other.retired.clone());
    one.no_bound = one.no_bound.take().or_else(|| other.no_bound.clone());
    one.bound = match (one.bound.take(), &other.bound) {
        (Some(a), Some(b)) => Some(weakest(a, b, one.iterations)),
        // Iterations without a bound are worth nothing, and it is not known which of the sum they are.
        _ => None,
    };
    if let (Some(one), Some(other)) = (&mut one.strict, &other.strict) {
        add_schedules(one, other);
    }
}

fn weakest(one: BoundRecord, other: &BoundRecord, iterations: u64) -> BoundRecord {
    let (mut weakest, other) =
        if one.per_iteration <= other.per_iteration { (one, other.clone()) } else { (other.clone(), one) };
    for broken in other.broken_assumptions {
        if !weakest.broken_assumptions.contains(&broken) {
            weakest.broken_assumptions.push(broken);
        }
    }
    weakest.threads = weakest.threads.max(other.threads);
    weakest.min_test_ns = weakest.min_test_ns.min(other.min_test_ns);
    weakest.after_all = -(iterations as f64 * (-weakest.per_iteration).ln_1p()).exp_m1();
    weakest
}

fn add_share(one: &mut PotShare, other: &PotShare, (n, a): (f64, f64), (m, b): (f64, f64)) {
    if n + m > 0.0 {
        // The variance of both together: that within each, and that of their averages.
        let mean = (n * a + m * b) / (n + m);
        let square = |count: f64, deviation: f64, average: f64| {
            count * (deviation * deviation + (average - mean) * (average - mean))
        };
        one.deviation_ns =
            ((square(n, one.deviation_ns, a) + square(m, other.deviation_ns, b)) / (n + m)).sqrt();
    }
    let time = one.total_ns + other.total_ns;
    if time > 0.0 {
        one.asked = (one.asked * one.total_ns + other.asked * other.total_ns) / time;
    }
    one.total_ns = time;
    one.until_retired = one.until_retired.or(other.until_retired);
}

/// What each test got of all the time of its pot.
fn shares_of_pots(tests: &mut [TestRecord]) {
    let times: Vec<(String, f64)> = tests
        .iter()
        .filter_map(|test| test.pot.as_ref())
        .map(|pot| (pot.container.clone(), pot.total_ns))
        .collect();
    for pot in tests.iter_mut().filter_map(|test| test.pot.as_mut()) {
        let all: f64 =
            times.iter().filter(|(container, _)| *container == pot.container).map(|(_, time)| time).sum();
        if all > 0.0 {
            pot.achieved = pot.total_ns / all;
        }
    }
}

/// The runs by depth that numbers speak of.
fn aimed(strict: &StrictNumbers) -> Aimed {
    // Strides promise orders of events, which have no depth.
    let place =
        |promise: &Promise| if strict.strategy.starts_with("stride") { 0 } else { promise.depth as usize };
    let mut aimed = Aimed::default();
    for promise in &strict.guarantees {
        let place = place(promise);
        aimed.runs.resize(aimed.runs.len().max(place + 1), 0);
        aimed.runs[place] += promise.runs;
        if let Some(failures) = promise.failures {
            aimed.failures.resize(aimed.failures.len().max(place + 1), 0);
            aimed.failures[place] += failures;
        }
        if place > 0 {
            aimed.reach = strict.steps;
        }
    }
    aimed
}

fn add_schedules(one: &mut StrictNumbers, other: &StrictNumbers) {
    let seconds = |strict: &StrictNumbers| match strict.schedules_per_second {
        rate if rate > 0.0 => strict.runs as f64 / rate,
        _ => 0.0,
    };
    let (mine, theirs) = (seconds(one), seconds(other));
    let steps = one.steps_per_second * mine + other.steps_per_second * theirs;
    let mut all = aimed(one);
    all.add(&aimed(other));
    // A part that knows of longer schedules makes those worthless whose k was smaller.
    if one.steps.max(other.steps) > all.reach && all.reach > 0 {
        all.outgrow(one.steps.max(other.steps));
    }
    one.runs += other.runs;
    one.threads = one.threads.max(other.threads);
    one.steps = one.steps.max(other.steps);
    if mine + theirs > 0.0 {
        one.schedules_per_second = one.runs as f64 / (mine + theirs);
        one.steps_per_second = steps / (mine + theirs);
    }
    let mut left_out: Vec<_> =
        one.guarantees.first().map_or_else(Vec::new, |promise| promise.leaves_out.clone());
    let more = other.guarantees.first().map_or(&[][..], |promise| &promise.leaves_out);
    waylay_schedule::ledger::add(&mut left_out, more);
    one.guarantees = promises(&RunParameters::of(one.strategy.clone()), one.threads, &all);
    one.guarantees.iter_mut().for_each(|promise| promise.leaves_out.clone_from(&left_out));
    one.guarantee = headline(&one.guarantees);
    one.depth = one.guarantee.as_ref().map_or(0, |promise| promise.depth);
    one.exhausted |= other.exhausted;
    one.partly_controlled += other.partly_controlled;
    one.left_behind += other.left_behind;
    one.limit_reached += other.limit_reached;
    one.unconfirmed += other.unconfirmed;
    one.looked_at += other.looked_at;
    one.sites = one.sites.max(other.sites);
    one.accesses = one.accesses.max(other.accesses);
    one.limited_sites = one.limited_sites.max(other.limited_sites);
    one.patched = one.patched.max(other.patched);
    one.refused = one.refused.max(other.refused);
    one.quiet |= other.quiet;
    match (&mut one.orders, &other.orders) {
        (Some(one), Some(other)) => one.join(other),
        (none, other) => *none = none.or(*other),
    }
    for note in &other.notes {
        if !one.notes.contains(note) {
            one.notes.push(note.clone());
        }
    }
}

fn add_randomizer(one: &mut RandomizerRecord, other: &RandomizerRecord) {
    // Percentiles cannot be added: those of the part with the most suspensions stand for all.
    if other.counts.suspensions > one.counts.suspensions {
        (one.stop, one.hold) = (other.stop, other.hold);
    }
    one.started += other.started;
    one.restarted += other.restarted;
    one.killed += other.killed;
    one.seconds += other.seconds;
    one.suspended_s += other.suspended_s;
    one.quiet_s += other.quiet_s;
    one.never_suspended += other.never_suspended;
    one.most_to_choose_from = one.most_to_choose_from.max(other.most_to_choose_from);
    one.refused_for = one.refused_for.take().or_else(|| other.refused_for.clone());
    let (counts, more) = (&mut one.counts, &other.counts);
    counts.windows += more.windows;
    counts.suspensions += more.suspensions;
    counts.idle_windows += more.idle_windows;
    counts.refused += more.refused;
    counts.unstoppable += more.unstoppable;
    counts.ended_while_held += more.ended_while_held;
    counts.quiesced += more.quiesced;
    counts.threads_seen += more.threads_seen;
    one.suspensions_per_s = if one.seconds > 0.0 { one.counts.suspensions as f64 / one.seconds } else { 0.0 };
    for threads in &other.threads {
        match one.threads.iter_mut().find(|known| known.name == threads.name) {
            Some(known) => {
                known.threads += threads.threads;
                known.never_suspended += threads.never_suspended;
                known.suspensions += threads.suspensions;
                known.suspended_s += threads.suspended_s;
            }
            None => one.threads.push(threads.clone()),
        }
    }
    one.threads.sort_by(|a, b| b.suspended_s.total_cmp(&a.suspended_s).then(a.name.cmp(&b.name)));
}
