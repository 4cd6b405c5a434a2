//! The loop: plan a batch of runs, make them, judge them, learn from them, keep what failed.
//!
//! Runs are shared out to workers, each with a fork server of its own: worker j of J takes every J-th run. Which runs
//! are made, with what parameters, and what is reported does not depend on J (only a time limit and Ctrl-C do).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use waylay_control_protocol::Ending;
use waylay_driver::environment::Environment;
use waylay_driver::failure::{Finding, Occurrence, Signature};
use waylay_driver::store::{
    Campaign, CampaignState, FailureStore, Retention, ScenarioRecord, TestRecord, WriteError,
};
use waylay_evidence::Symbolizer;
use waylay_schedule::promise::{headline, promises};
use waylay_schedule::{Outcome, RunParameters, Schedule, Seed, Spec};

use crate::confirm::{Evidence, confirm};
use crate::learner::{Learner, Lesson, Planned};
use crate::observed::Observed;
use crate::oracle::{Expected, Failure, Verdict, judge};
use crate::program::Program;
use crate::recording::{self, Conditions, RecordError, StrictRecord};
use crate::server::{Guide, RunError, Server};
use crate::sites::Sites;
use crate::summary::{Found, Summary};

/// Failing runs with one key that are confirmed and looked at; there may be several signatures behind one key.
const EXAMINED_PER_KEY: u64 = 5;
/// Runs that had to be killed after which no more are made, unless there is a time limit: each costs the whole patience,
/// and they rarely tell more than the first.
const MOST_HANGS: u64 = 10;
/// Runs with a single thread after which there is nothing to explore.
const SINGLE_THREADED: u64 = 10;

/// What is explored, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program.
    pub program: Program,
    /// The strategy.
    pub strategy: Spec,
    /// The one seed.
    pub seed: u64,
    /// At most so many runs.
    pub runs: Option<u64>,
    /// For so long.
    pub duration: Option<Duration>,
    /// The first failure ends it.
    pub stop_on_first: bool,
    /// Fork servers at once.
    pub jobs: u32,
    /// How runs are made.
    pub conditions: Conditions,
    /// What a good run looks like.
    pub expected: Expected,
    /// Folder for campaigns.
    pub out: PathBuf,
    /// The control library.
    pub library: PathBuf,
}

/// Why an exploration could not be made, or not be finished.
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    /// A run could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The campaign directory cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A failure cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// There is nothing to explore.
    #[error(
        "{0} has one thread in every run, so there is one schedule only: nothing to explore. (A process that it \
         starts itself is not controlled; explore that program directly)"
    )]
    NoThreads(String),
}

/// Whom to tell how it goes.
pub trait Progress {
    /// Called every now and then; `false` ends the exploration.
    fn tick(&mut self, state: &State) -> bool;
    /// A failure that is the first with its signature.
    fn found(&mut self, found: &Found);
}

/// How far an exploration is.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Since the beginning.
    pub elapsed: Duration,
    /// Runs so far.
    pub runs: u64,
    /// Failing runs so far.
    pub failures: u64,
    /// Steps so far.
    pub steps: u64,
}

/// What a worker brings back from one run.
struct Done {
    observed: Observed,
    failed: Option<(Failure, Option<Schedule>)>,
    lesson: Lesson,
    /// Code that was seen to touch memory in conflict.
    conflicting: Vec<u64>,
}

/// Explores a program.
pub fn explore(plan: &Plan, progress: &mut dyn Progress) -> Result<Summary, ExploreError> {
    let mut servers = Vec::new();
    for _ in 0..plan.jobs.max(1) {
        servers.push(Server::start(&plan.program, &plan.library, &plan.conditions)?);
    }
    let mut exploration = Exploration::begin(plan)?;
    let state = exploration.go(&mut servers, progress);
    exploration.summary.restarts = servers.iter().map(Server::restarts).sum();
    drop(servers);
    exploration.close(state)
}

/// What several workers of a batch share.
struct Shared {
    /// No run beyond this one is wanted any more.
    last: AtomicU64,
    until: Option<Instant>,
    runs: AtomicU64,
    failures: AtomicU64,
    steps: AtomicU64,
}

struct Exploration<'a> {
    plan: &'a Plan,
    learner: Learner,
    campaign: Campaign,
    store: FailureStore,
    begun: Instant,
    summary: Summary,
    /// Failing runs by key: how many there were, and the signature that the last examined one had.
    keys: BTreeMap<String, (u64, Option<String>)>,
    /// Runs by the depth that they aimed at.
    aimed: Vec<u64>,
    parameters: RunParameters,
    /// The greatest k that a run was planned with.
    reach: u64,
    total_steps: u64,
    single: u64,
    sites: Sites,
    /// What the runs of the batch were made under.
    conditions: Conditions,
    names: Symbolizer,
    hangs: u64,
}

impl<'a> Exploration<'a> {
    fn begin(plan: &'a Plan) -> Result<Self, ExploreError> {
        let seed = waylay_dist::Seed::new(plan.seed);
        let config = format!(
            "# waylay explore of one program: see strict.json in the folder of each failure\n# {}\n",
            std::iter::once(&plan.program.name)
                .chain(&plan.program.arguments)
                .cloned()
                .collect::<Vec<_>>()
                .join(" ")
        );
        let environment = Environment::capture(&config);
        let campaign = Campaign::create(&plan.out, seed, environment.clone(), &config)?;
        let retention = Retention { evidence_per_signature: 1, dumps_per_campaign: 50, signatures: 200 };
        let store = FailureStore::create(campaign.folder(), retention, seed, environment)?;
        let summary = Summary {
            program: plan.program.title(),
            strategy: plan.strategy.to_string(),
            seed: seed.to_string(),
            runs: 0,
            failures: 0,
            first_failure_run: None,
            kind: None,
            signature: None,
            threads: 0,
            steps: 0,
            depth: 0,
            schedules_per_second: 0.0,
            steps_per_second: 0.0,
            seconds: 0.0,
            guarantee: None,
            guarantees: Vec::new(),
            failure_dir: None,
            replay: None,
            found: Vec::new(),
            exhausted: false,
            partly_controlled: 0,
            not_examined: 0,
            restarts: 0,
            interrupted: false,
            level: plan.conditions.steps.level.name().to_owned(),
            sites: 0,
            accesses: 0,
            patched: 0,
            refused: 0,
            notes: Vec::new(),
            folder: campaign.folder().to_owned(),
        };
        Ok(Exploration {
            plan,
            learner: Learner::new(&plan.strategy, Seed(plan.seed)),
            campaign,
            store,
            begun: Instant::now(),
            summary,
            keys: BTreeMap::new(),
            aimed: Vec::new(),
            parameters: RunParameters::of(plan.strategy.to_string()),
            reach: 0,
            total_steps: 0,
            single: 0,
            sites: Sites::new(&plan.conditions),
            conditions: plan.conditions.clone(),
            names: Symbolizer::default(),
            hangs: 0,
        })
    }

    fn go(
        &mut self,
        servers: &mut [Server],
        progress: &mut dyn Progress,
    ) -> Result<CampaignState, ExploreError> {
        let shared = Shared {
            last: AtomicU64::new(u64::MAX),
            until: self.plan.duration.map(|duration| self.begun + duration),
            runs: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            steps: AtomicU64::new(0),
        };
        let mut saved = Instant::now();
        loop {
            let most = self.plan.runs.map_or(u64::MAX, |runs| runs.saturating_sub(self.summary.runs));
            if most == 0 {
                return Ok(CampaignState::Finished);
            }
            let batch = self.learner.plan(most);
            if batch.is_empty() {
                self.summary.exhausted = self.learner.exhausted();
                return Ok(CampaignState::Finished);
            }
            self.conditions = self.sites.conditions();
            let mut wanted = true;
            let done = {
                let begun = self.begun;
                let mut look = || {
                    let state = State {
                        elapsed: begun.elapsed(),
                        runs: shared.runs.load(Ordering::Relaxed),
                        failures: shared.failures.load(Ordering::Relaxed),
                        steps: shared.steps.load(Ordering::Relaxed),
                    };
                    wanted &= progress.tick(&state);
                    wanted
                };
                run_batch(&batch, servers, self.plan, (&self.conditions, &self.sites), &shared, &mut look)?
            };
            for (planned, done) in batch.iter().zip(done) {
                // What comes after the first run that was not made was made in vain: without it, the numbers of the
                // runs would have a gap.
                let Some(done) = done else { break };
                if self.take(planned, done, progress)? {
                    return Ok(CampaignState::Finished);
                }
            }
            if saved.elapsed() > Duration::from_secs(1) {
                self.save()?;
                saved = Instant::now();
            }
            if !wanted {
                self.summary.interrupted = true;
                return Ok(CampaignState::Stopped);
            }
            if shared.until.is_some_and(|until| Instant::now() >= until) {
                return Ok(CampaignState::Finished);
            }
        }
    }

    /// Takes in one run; says whether it was the last.
    fn take(
        &mut self,
        planned: &Planned,
        done: Done,
        progress: &mut dyn Progress,
    ) -> Result<bool, ExploreError> {
        let Done { observed, failed, mut lesson, conflicting } = done;
        self.sites.learn(&conflicting, observed.accesses);
        let summary = &mut self.summary;
        summary.runs += 1;
        summary.threads = summary.threads.max(observed.threads);
        summary.steps = summary.steps.max(observed.steps);
        summary.partly_controlled += u64::from(observed.partly_controlled);
        summary.patched = summary.patched.max(u64::from(observed.patched.0));
        summary.refused = summary.refused.max(u64::from(observed.patched.1));
        self.total_steps += observed.steps;
        self.reach = self.reach.max(planned.parameters.steps);
        let depth = planned.parameters.depth as usize;
        if self.aimed.len() <= depth {
            self.aimed.resize(depth + 1, 0);
        }
        self.aimed[depth] += 1;
        self.single = if observed.threads <= 1 && failed.is_none() { self.single + 1 } else { 0 };
        if self.single == self.summary.runs
            && self.single >= SINGLE_THREADED.min(self.plan.runs.unwrap_or(u64::MAX))
        {
            return Err(ExploreError::NoThreads(self.plan.program.title()));
        }
        let over = match failed {
            Some((failure, schedule)) => {
                self.summary.failures += 1;
                lesson.news = self.failed(planned, &observed, &failure, schedule, progress)?;
                self.plan.stop_on_first
            }
            None => false,
        };
        self.learner.learn(planned, lesson);
        self.hangs += u64::from(observed.hung.is_some());
        if self.hangs >= MOST_HANGS && self.plan.duration.is_none() && !over {
            let killed = format!("{MOST_HANGS} runs had to be killed because they did not end within");
            self.summary.notes.push(format!(
                "{killed} {:?}: no more were made (set --for to go on, --timeout to wait less)",
                self.plan.conditions.patience()
            ));
            return Ok(true);
        }
        Ok(over)
    }

    /// Keeps a failing run; says whether it was the first with its signature.
    fn failed(
        &mut self,
        planned: &Planned,
        observed: &Observed,
        failure: &Failure,
        schedule: Option<Schedule>,
        progress: &mut dyn Progress,
    ) -> Result<bool, ExploreError> {
        let (seen, signature) = self.keys.entry(failure.key.clone()).or_default();
        *seen += 1;
        if *seen > EXAMINED_PER_KEY {
            self.summary.not_examined += 1;
            let found =
                self.summary.found.iter_mut().find(|found| Some(&found.signature) == signature.as_ref());
            if let Some(found) = found {
                found.count += 1;
            }
            return Ok(false);
        }
        let schedule = schedule.unwrap_or_default();
        let evidence = confirm(
            &self.plan.program,
            &self.plan.library,
            &self.conditions,
            &self.plan.expected,
            (self.plan.seed, planned.run.index),
            &schedule,
            failure,
            &mut self.names,
        )?;
        *signature = Some(evidence.signature.hash.clone());
        let number = planned.run.index + 1;
        if let Some(found) =
            self.summary.found.iter_mut().find(|found| found.signature == evidence.signature.hash)
        {
            found.count += 1;
            self.store.record(self.finding(planned, observed, failure, &evidence), |_| Err(String::new()))?;
            return Ok(false);
        }
        let finding = self.finding(planned, observed, failure, &evidence);
        let recorded = self.store.record(finding, |path| evidence.seen.dump(path))?;
        let folder = recorded.folder.map(|folder| std::path::absolute(&folder).unwrap_or(folder));
        if let Some(folder) = &folder {
            self.keep(folder, planned, observed, failure, &schedule, evidence.confirmed)?;
        }
        let found = Found {
            kind: failure.kind.word().to_owned(),
            signature: evidence.signature.hash.clone(),
            text: evidence.signature.text.clone(),
            what: failure.what.clone(),
            count: 1,
            first_run: number,
            confirmed: evidence.confirmed,
            replay: folder.as_ref().map(|folder| format!("waylay replay {}", folder.display())),
            failure_dir: folder,
        };
        if self.summary.first_failure_run.is_none() {
            self.summary.first_failure_run = Some(number);
            self.summary.kind = Some(found.kind.clone());
            self.summary.signature = Some(found.signature.clone());
            self.summary.depth = planned.parameters.depth;
            self.summary.failure_dir = found.failure_dir.clone();
            self.summary.replay = found.replay.clone();
        }
        progress.found(&found);
        self.summary.found.push(found);
        Ok(true)
    }

    fn keep(
        &self,
        folder: &Path,
        planned: &Planned,
        observed: &Observed,
        failure: &Failure,
        schedule: &Schedule,
        confirmed: bool,
    ) -> Result<(), RecordError> {
        let record = StrictRecord {
            format: recording::FORMAT,
            program: self.plan.program.clone(),
            conditions: self.conditions.clone(),
            expected: self.plan.expected.clone(),
            seed: self.plan.seed,
            run: planned.run.index,
            parameters: planned.parameters.clone(),
            kind: failure.kind,
            key: failure.key.clone(),
            steps: observed.steps,
            switches: observed.switches,
            threads: observed.threads,
            confirmed,
            partly_controlled: observed.partly_controlled,
        };
        recording::write(folder, "stdout.txt", &observed.stdout)?;
        recording::write(folder, "stderr.txt", &observed.stderr)?;
        recording::save(folder, &record, schedule)
    }

    fn finding(
        &self,
        planned: &Planned,
        observed: &Observed,
        failure: &Failure,
        evidence: &Evidence,
    ) -> Finding {
        let mut gaps = Vec::new();
        if let Some(instead) = &evidence.instead {
            gaps.push(format!(
                "a fresh process that followed the schedule did not fail in the same way: {instead}"
            ));
        }
        gaps.extend(evidence.seen.gaps.iter().cloned());
        if observed.partly_controlled {
            gaps.push(
                "the run was only partly controlled: something outside the schedule took part".to_owned(),
            );
        }
        if observed.cut {
            gaps.push(
                "the schedule is longer than what can be recorded, so it cannot be replayed to its end"
                    .to_owned(),
            );
        }
        Finding {
            kind: failure.kind,
            signature: Signature {
                id: evidence.signature.hash.clone(),
                text: evidence.signature.text.clone(),
            },
            what: failure.what.clone(),
            reason: None,
            test: Some(self.plan.program.title()),
            plugin: None,
            occurrence: Occurrence {
                at: jiff::Timestamp::now(),
                scenario: "explore".to_owned(),
                worker: None,
                iteration: planned.run.index,
                seed: waylay_dist::Seed::new(self.plan.seed),
                pid: 0,
                randomizer: None,
                workers: Vec::new(),
                pot: None,
            },
            stacks: evidence.seen.stacks.clone(),
            stacks_text: evidence.seen.text.clone(),
            log_tail: format!("{}{}", String::from_utf8_lossy(&observed.stdout), observed.stderr_text()),
            gaps,
        }
    }

    fn save(&mut self) -> Result<(), WriteError> {
        self.store.flush()?;
        let seconds = self.begun.elapsed().as_secs_f64();
        let record = &mut self.campaign.record;
        record.signatures = self.summary.found.len() as u64;
        record.failures = self.summary.failures;
        record.scenarios = vec![ScenarioRecord {
            name: "explore".to_owned(),
            mode: "strict".to_owned(),
            seconds,
            randomizer: None,
            tests: vec![TestRecord {
                name: self.plan.program.title(),
                plugin: self.plan.program.file.clone(),
                workers: self.summary.threads,
                iterations: self.summary.runs,
                failures: self.summary.failures,
                average_ns: seconds * 1e9 / self.summary.runs.max(1) as f64,
                shortest_ns: 0.0,
                longest_ns: 0.0,
                retired: None,
                strict: None,
                bound: None,
                no_bound: None,
                pot: None,
            }],
        }];
        self.campaign.save()
    }

    fn close(mut self, state: Result<CampaignState, ExploreError>) -> Result<Summary, ExploreError> {
        self.save()?;
        let state = match state {
            Ok(state) => state,
            Err(error) => {
                self.campaign.close(CampaignState::Stopped)?;
                return Err(error);
            }
        };
        let seconds = self.begun.elapsed().as_secs_f64();
        let summary = &mut self.summary;
        summary.seconds = seconds;
        summary.schedules_per_second = summary.runs as f64 / seconds.max(1e-9);
        summary.steps_per_second = self.total_steps as f64 / seconds.max(1e-9);
        if self.reach > 0 {
            summary.steps = self.reach;
        }
        summary.guarantees = promises(&self.parameters, summary.threads, summary.steps, &self.aimed);
        summary.guarantee = headline(&summary.guarantees);
        if summary.first_failure_run.is_none() {
            summary.depth = summary.guarantee.as_ref().map_or(0, |promise| promise.depth);
        }
        if self.sites.learns() {
            let (sites, accesses) = self.sites.numbers();
            (summary.sites, summary.accesses) = (sites as u64, accesses);
        }
        let unheard = self.learner.unheard();
        if unheard > 0 {
            summary.notes.push(format!(
                "{unheard} runs could not be learned from: they are too long, or the program does not repeat itself"
            ));
        }
        self.campaign.close(state)?;
        Ok(self.summary)
    }
}

/// Makes the runs of a batch; those that were not made are missing at the end.
fn run_batch(
    batch: &[Planned],
    servers: &mut [Server],
    plan: &Plan,
    how: (&Conditions, &Sites),
    shared: &Shared,
    look: &mut dyn FnMut() -> bool,
) -> Result<Vec<Option<Done>>, RunError> {
    let mut done: Vec<Option<Done>> = batch.iter().map(|_| None).collect();
    if servers.len() == 1 || batch.len() == 1 {
        for (planned, place) in batch.iter().zip(&mut done) {
            if !look() {
                break;
            }
            *place = run_one(planned, &mut servers[0], plan, how, shared)?;
        }
        return Ok(done);
    }
    let jobs = servers.len();
    std::thread::scope(|scope| {
        let work = |worker: usize, server: &mut Server| -> Result<Vec<(usize, Option<Done>)>, RunError> {
            let mine = (worker..batch.len()).step_by(jobs);
            mine.map(|index| Ok((index, run_one(&batch[index], server, plan, how, shared)?))).collect()
        };
        let workers: Vec<_> = servers
            .iter_mut()
            .enumerate()
            .map(|(worker, server)| scope.spawn(move || work(worker, server)))
            .collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            if !look() {
                shared.last.store(0, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        for worker in workers {
            let results = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            for (index, result) in results {
                done[index] = result;
            }
        }
        Ok(done)
    })
}

fn run_one(
    planned: &Planned,
    server: &mut Server,
    plan: &Plan,
    (conditions, sites): (&Conditions, &Sites),
    shared: &Shared,
) -> Result<Option<Done>, RunError> {
    let late = shared.until.is_some_and(|until| Instant::now() >= until) && planned.run.index > 0;
    if late || planned.run.index > shared.last.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let mut settings = server.settings(conditions, plan.seed, planned.run.index);
    settings.profile = u32::from(sites.looks_at(planned.run.index));
    settings.listen = u32::from(planned.listen);
    let observed = server.run(settings, Guide::Strategy(&planned.parameters))?;
    shared.runs.fetch_add(1, Ordering::Relaxed);
    shared.steps.fetch_add(observed.steps, Ordering::Relaxed);
    let failed = match judge(&observed, &plan.expected) {
        Verdict::Passed => None,
        Verdict::Failed(failure) => {
            shared.failures.fetch_add(1, Ordering::Relaxed);
            if plan.stop_on_first {
                shared.last.fetch_min(planned.run.index, Ordering::Relaxed);
            }
            Some((failure, server.schedule()))
        }
    };
    let outcome = match (&failed, observed.ending) {
        _ if observed.hung.is_some() => Outcome::Cut,
        (_, Ending::StepLimit) => Outcome::Cut,
        (Some(_), _) => Outcome::Failed,
        (None, _) => Outcome::Passed,
    };
    let conversation = if planned.listen { server.conversation() } else { None };
    let lesson = Lesson { outcome, steps: observed.steps, conversation, news: false };
    let conflicting = server.conflicting();
    Ok(Some(Done { observed, failed, lesson, conflicting }))
}
