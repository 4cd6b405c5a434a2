//! The records of campaigns and failures as the data that reports are made from.

use std::path::Path;
use std::time::Duration;

use waylay_evidence::{SchedulerState, ThreadStack, Wait};
use waylay_report::model;
use waylay_schedule::ledger::{LeftOut, Reason, leaving_out};

use crate::environment::Environment;
use crate::failure::{FailureEntry, Occurrence, WorkerView};
use crate::store::{
    BoundRecord, CampaignRecord, CampaignState, PotShare, RandomizerRecord, ScenarioRecord, StrictNumbers,
    TestRecord,
};

/// A campaign without its series.
pub fn campaign(record: &CampaignRecord) -> model::Campaign {
    model::Campaign {
        name: record.name.clone(),
        state: match record.state {
            CampaignState::Running => model::CampaignState::Running,
            CampaignState::Finished => model::CampaignState::Finished,
            CampaignState::Stopped => model::CampaignState::Stopped,
            CampaignState::Interrupted => model::CampaignState::Interrupted,
        },
        started: record.started,
        updated: record.updated,
        seed: record.seed.to_string(),
        environment: environment(&record.environment),
        problems: record.problems.clone(),
        notes: record.notes.clone(),
        hosts: record.hosts,
        scenarios: record.scenarios.iter().map(scenario).collect(),
        series: Vec::new(),
    }
}

/// Where something ran.
pub fn environment(environment: &Environment) -> model::Environment {
    model::Environment {
        waylay: environment.waylay.clone(),
        system: environment.system.clone(),
        processor: environment.processor.clone(),
        cores: environment.cores as u64,
        memory_mib: environment.memory_mib,
        config_digest: environment.config_digest.clone(),
    }
}

/// One scenario's numbers.
pub fn scenario(record: &ScenarioRecord) -> model::Scenario {
    model::Scenario {
        name: record.name.clone(),
        mode: model::Mode::of(&record.mode),
        seconds: record.seconds,
        suspensions: record.randomizer.as_ref().map(suspensions),
        tests: record.tests.iter().map(test).collect(),
    }
}

fn suspensions(record: &RandomizerRecord) -> model::Suspensions {
    let settings = record.settings.clone().check().ok();
    let nanoseconds = |time: Option<Duration>| Some(u64::try_from(time?.as_nanos()).unwrap_or(u64::MAX));
    model::Suspensions {
        suspensions: record.counts.suspensions,
        seconds: record.seconds,
        suspended_s: record.suspended_s,
        never_suspended: record.never_suspended,
        most_to_choose_from: record.most_to_choose_from,
        longest_rest_ns: nanoseconds(settings.as_ref().and_then(|settings| settings.period.longest())),
        longest_suspension_ns: nanoseconds(settings.as_ref().and_then(|settings| settings.suspend.longest())),
        refused_for: record.refused_for.clone(),
    }
}

/// One test's numbers.
pub fn test(record: &TestRecord) -> model::Test {
    model::Test {
        name: record.name.clone(),
        plugin: record.plugin.display().to_string(),
        workers: record.workers,
        iterations: record.iterations,
        failures: record.failures,
        average_ns: record.average_ns,
        shortest_ns: record.shortest_ns,
        longest_ns: record.longest_ns,
        retired: record.retired.clone(),
        strict: record.strict.as_ref().map(strict),
        bound: record.bound.as_ref().map(bound),
        no_bound: record.no_bound.clone(),
        share: record.pot.as_ref().map(share),
    }
}

fn strict(numbers: &StrictNumbers) -> model::StrictNumbers {
    let promises = numbers.guarantees.iter().map(|promise| model::DepthPromise {
        depth: promise.depth,
        per_run: promise.per_run,
        runs: promise.runs,
        conditions: promise.conditions.clone(),
    });
    model::StrictNumbers {
        strategy: numbers.strategy.clone(),
        runs: numbers.runs,
        threads: numbers.threads,
        steps: numbers.steps,
        promises: promises.collect(),
        schedules_per_second: numbers.schedules_per_second,
        exhausted: numbers.exhausted,
        partly_controlled: numbers.partly_controlled,
        limit_reached: numbers.limit_reached,
        orders: numbers.orders,
        leaves_out: leaving_out(&leaves_out(numbers)),
    }
}

/// What the sentence about a strict test leaves out, whether it promises something by depth or that a search is over.
fn leaves_out(numbers: &StrictNumbers) -> Vec<LeftOut> {
    let mut all = numbers.guarantee.as_ref().map_or_else(Vec::new, |promise| promise.leaves_out.clone());
    let says_so = all.iter().any(|left_out| left_out.reason == Reason::Limit);
    if numbers.limit_reached > 0 && !says_so && (numbers.guarantee.is_some() || numbers.exhausted) {
        all.push(LeftOut::new(Reason::Limit, numbers.limit_reached));
    }
    all
}

fn bound(record: &BoundRecord) -> model::SuspensionBound {
    model::SuspensionBound {
        threads: record.threads,
        min_test_ns: record.min_test_ns,
        per_iteration: record.per_iteration,
        broken_assumptions: record.broken_assumptions.clone(),
    }
}

pub(crate) fn share(share: &PotShare) -> model::Share {
    model::Share {
        pot: share.container.clone(),
        total_ns: share.total_ns,
        asked: share.asked,
        achieved: share.achieved,
        until_retired: share.until_retired,
    }
}

/// A failure whose evidence is in `folder`; what stands in other files of that folder is not looked at.
pub fn failure(entry: &FailureEntry, folder: &Path) -> model::Failure {
    model::Failure {
        id: entry.signature.id.clone(),
        signature: entry.signature.text.clone(),
        kind: entry.kind,
        what: entry.what.clone(),
        reason: entry.reason.clone(),
        test: entry.test.clone(),
        plugin: entry.plugin.as_ref().map(|plugin| plugin.display().to_string()),
        count: entry.count,
        count_ever: entry.count,
        scenarios: entry.scenarios.clone(),
        machines: entry.machines.clone(),
        nights: 1,
        first_seen: Some(entry.first_seen),
        last_seen: Some(entry.last_seen),
        occurrences: entry.occurrences.iter().map(occurrence).collect(),
        stacks: entry.stacks.iter().map(stack).collect(),
        gaps: entry.gaps.clone(),
        replay: entry.replay.clone(),
        folder: folder.display().to_string(),
        environment: Some(environment(&entry.environment)),
        why: entry.why.clone(),
        variants: entry.variants.clone(),
        ..model::Failure::default()
    }
}

/// One time that it happened.
pub fn occurrence(occurrence: &Occurrence) -> model::Occurrence {
    model::Occurrence {
        at: occurrence.at,
        scenario: occurrence.scenario.clone(),
        worker: occurrence.worker,
        iteration: occurrence.iteration,
        seed: occurrence.seed.to_string(),
        workers: occurrence.workers.iter().map(worker).collect(),
    }
}

fn worker(view: &WorkerView) -> model::Worker {
    model::Worker {
        test: view.test.clone(),
        worker: view.worker,
        state: view.state.clone(),
        iteration: view.iteration,
        for_ms: view.for_ms,
        running: view.running.as_ref().map(|running| running.test.clone()),
        holds: view.holds.clone(),
    }
}

/// One thread's stack.
pub fn stack(stack: &ThreadStack) -> model::Stack {
    model::Stack {
        thread: stack.id.0,
        name: stack.name.clone(),
        number: stack.scheduled.as_ref().map(|scheduled| scheduled.number),
        doing: doing(stack),
        crashed: stack.crashed,
        frames: stack.frames.iter().map(frame).collect(),
    }
}

/// What a thread was doing, in a few words.
fn doing(stack: &ThreadStack) -> String {
    if stack.crashed {
        return "crashed here".to_owned();
    }
    if let Some(doing) = stack.scheduled.as_ref().and_then(|scheduled| scheduled.doing.as_ref()) {
        return doing.clone();
    }
    let call = stack.syscall.as_ref().and_then(|call| call.name.as_deref());
    let inside = call.map_or_else(String::new, |name| format!(" ({name})"));
    match (stack.wait, stack.state) {
        (Wait::ThreadUntimed, _) => format!("waits for another thread{inside}"),
        (Wait::ThreadTimed, _) => format!("waits for another thread, with a timeout{inside}"),
        (Wait::Sleep, _) => format!("sleeps{inside}"),
        (Wait::InputUntimed, _) => format!("waits for input{inside}"),
        (Wait::InputTimed, _) => format!("waits for input, with a timeout{inside}"),
        (_, SchedulerState::Running) => format!("running{inside}"),
        (_, SchedulerState::Sleeping) => format!("waits{inside}"),
        (_, SchedulerState::Uninterruptible) => format!("waits in the kernel{inside}"),
        (_, SchedulerState::Stopped) => "stopped".to_owned(),
        (_, SchedulerState::Other) => call.map_or_else(String::new, |name| format!("in {name}")),
    }
}

fn frame(frame: &waylay_evidence::Frame) -> model::Frame {
    model::Frame {
        function: frame.function.clone(),
        file: frame.file.clone(),
        line: frame.line,
        module: frame.module.clone(),
        offset: frame.offset,
        origin: match waylay_evidence::origin(frame) {
            waylay_evidence::Origin::Own => model::Origin::Own,
            waylay_evidence::Origin::Runtime => model::Origin::Runtime,
            waylay_evidence::Origin::Waylay => model::Origin::Waylay,
        },
    }
}
