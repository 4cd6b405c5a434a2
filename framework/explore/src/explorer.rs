//! The loop: plan a batch of runs, make them, judge them, learn from them, keep what failed.
//!
//! Runs are shared out to workers, each with processes of its own: worker j of J takes every J-th run. Which runs
//! are made, with what parameters, and what is reported does not depend on J (only a time limit and Ctrl-C do).

mod amounts;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use waylay_control_protocol::account::Beside;
use waylay_control_protocol::report::LIMITED;
use waylay_control_protocol::{Added, Ending, Statement};
use waylay_driver::environment::Environment;
use waylay_driver::failure::FailureEntry;
use waylay_driver::report::{PlaceNames, libraries_at};
use waylay_driver::store::{
    Campaign, CampaignRecord, CampaignState, FailureStore, Outcomes, PluginBuild, Retention, ScenarioRecord,
    Unit, WriteError, owed,
};
use waylay_evidence::Unseen;
use waylay_schedule::coverage::Coverage;
use waylay_schedule::promise::Aimed;
use waylay_schedule::{Outcome, RunParameters, Seed, Shard, Spec};

use crate::batch::{Done, Shared, run_batch};
use crate::findings::{Failing, Findings, Taken};
use crate::learner::{Learner, Planned};
use crate::oracle::Expected;
use crate::program::Program;
use crate::recording::{Conditions, RecordError};
use crate::restart::Restart;
use crate::server::RunError;
use crate::share::Share;
use crate::sites::{Sites, Taught};
use crate::summary::{Found, Summary};
use crate::timings::{self, Milestone, Stage};
use crate::worker::{Worker, is_restorable};

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
    /// So many runs in a row that show no new order of conflicting places end it; every run is listened to then.
    pub stop_after_quiet: Option<u64>,
    /// Threads that a run has when the program starts none of its own.
    pub own_threads: u32,
    /// Runs at once.
    pub jobs: u32,
    /// How runs begin.
    pub restart: Restart,
    /// How runs are made.
    pub conditions: Conditions,
    /// What a good run looks like.
    pub expected: Expected,
    /// Folder for campaigns.
    pub out: PathBuf,
    /// The control library.
    pub library: PathBuf,
    /// Processor time for minimising each failure and looking for its cause; none: neither is done.
    pub minimize: Option<Duration>,
    /// Which of the runs are made here; none: all.
    pub share: Option<Share>,
}

impl Plan {
    /// Whether a run counts here.
    pub(crate) fn counts(&self, planned: &Planned) -> bool {
        self.share.as_ref().is_none_or(|share| share.has(planned, &self.strategy))
    }
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
        "{program} has one thread{beside} in every run, so there is one schedule only: nothing to explore. (A process \
         that it starts itself is not controlled; explore that program directly)"
    )]
    NoThreads {
        /// The program.
        program: String,
        /// What else there is, if anything.
        beside: String,
    },
    /// What there is to explore happens where nothing is controlled.
    #[error(
        "{0} has one thread under control in every run: those that it starts before main (in a constructor, or in a \
         library that is being loaded) run beside the schedule. Nothing to explore; start them in main, or later"
    )]
    ThreadsBeforeMain(String),
}

/// Whom to tell how it goes.
pub trait Progress {
    /// Called every now and then; `false` ends the exploration.
    fn tick(&mut self, state: &State) -> bool;
    /// A failure that is the first with its signature.
    fn found(&mut self, found: &Found);
    /// Something worth a line.
    fn note(&mut self, text: &str) {
        let _ = text;
    }
    /// The whole campaign as its folder has it now, and the failures that are new or were counted again since the last
    /// call. Called when it begins, about once a second, and when it is over.
    fn campaign(&mut self, record: &CampaignRecord, folder: &Path, failures: &[&FailureEntry]) {
        let _ = (record, folder, failures);
    }
}

/// How far an exploration is.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Since the beginning.
    pub elapsed: Duration,
    /// Runs so far.
    pub runs: u64,
    /// Those that reached no limit of steps or of time.
    pub judged: u64,
    /// Failing runs so far.
    pub failures: u64,
    /// Steps so far.
    pub steps: u64,
}

/// Explores a program.
pub fn explore(plan: &Plan, progress: &mut dyn Progress) -> Result<Summary, ExploreError> {
    if let Some(why) = plan.share.as_ref().and_then(|share| share.is_idle(&plan.strategy, plan.runs)) {
        return idle(plan, why, progress);
    }
    let mut workers = Vec::new();
    for _ in 0..plan.jobs.max(1) {
        workers.push(Worker::start(plan)?);
    }
    let (mut campaign, mut store) = open_campaign(plan, &command_line(plan), Unit::Schedules)?;
    let mut exploration =
        Exploration::new(plan, campaign.folder().to_owned(), Unseen::of(&plan.program.file));
    let state = exploration.go(&mut workers, &mut campaign, &mut store, progress);
    exploration.summary.take_workers(plan.restart, &workers);
    drop(workers);
    if state.is_ok() {
        let _stage = timings::within(Stage::Libraries);
        exploration.look_into_libraries();
    }
    exploration.save(&mut campaign, &mut store, progress);
    if let (Some(shard), Ok(CampaignState::Finished)) = (&mut campaign.record.shard, &state) {
        shard.why = exploration.given_up.clone();
        shard.done = shard.why.is_none();
    }
    let folder = campaign.folder().to_owned();
    let state = match state {
        Ok(state) => state,
        Err(error) => {
            progress.campaign(&campaign.close(CampaignState::Stopped), &folder, &[]);
            return Err(error);
        }
    };
    let summary = exploration.close();
    progress.campaign(&campaign.close(state), &folder, &[]);
    Ok(summary)
}

/// A shard of a night that has nothing to do leaves a record that says so: it is not missing.
fn idle(plan: &Plan, why: String, progress: &mut dyn Progress) -> Result<Summary, ExploreError> {
    let (mut campaign, mut store) = open_campaign(plan, &command_line(plan), Unit::Schedules)?;
    let mut exploration = Exploration::new(plan, campaign.folder().to_owned(), Unseen::default());
    exploration.summary.notes.push(why.clone());
    exploration.save(&mut campaign, &mut store, progress);
    if let Some(shard) = &mut campaign.record.shard {
        (shard.done, shard.why) = (true, Some(why));
    }
    let folder = campaign.folder().to_owned();
    progress.campaign(&campaign.close(CampaignState::Finished), &folder, &[]);
    Ok(exploration.close())
}

fn command_line(plan: &Plan) -> String {
    let words = std::iter::once(&plan.program.name).chain(&plan.program.arguments);
    words.cloned().collect::<Vec<_>>().join(" ")
}

/// Makes the folder of a campaign, and the store for what fails. `what` is explored, in shards by `unit`.
pub(crate) fn open_campaign(
    plan: &Plan,
    what: &str,
    unit: Unit,
) -> Result<(Campaign, FailureStore), ExploreError> {
    let _stage = timings::within(Stage::Keep);
    let seed = waylay_dist::Seed::new(plan.seed);
    let config = format!(
        "# waylay explore of one program: see strict.json in the folder of each failure\n# {}\n",
        what.replace('\n', "\n# ")
    );
    let environment = Environment::capture(&config);
    let shard = plan.share.as_ref().map(|share| share.record(unit));
    let mut campaign = Campaign::create_part(&plan.out, seed, environment.clone(), &config, shard)?;
    campaign.record.builds = PluginBuild::of([plan.program.file.clone()]);
    let retention = Retention { evidence_per_signature: 1, dumps_per_campaign: 50, signatures: 200 };
    let store = FailureStore::create(campaign.folder(), retention, seed, environment)?;
    Ok((campaign, store))
}

/// The exploration of one program, which can be made in several turns: what is run does not depend on them.
pub(crate) struct Exploration<'a> {
    plan: &'a Plan,
    learner: Learner,
    /// Plans runs with accesses to what is handed over as steps. Nothing is promised by them, and what it learns of their length
    /// is of no use to the other.
    of_handed: Learner,
    pub(crate) findings: Findings<'a>,
    begun: Instant,
    pub(crate) summary: Summary,
    /// Runs by the depth that they promise something for, and the first that may be among them.
    aimed: Aimed,
    counts_from: u64,
    parameters: RunParameters,
    /// n: the most threads, and timers of threads, of a run.
    rivals: u32,
    total_steps: u64,
    single: u64,
    /// What took part beside the schedule first.
    beside: Option<Beside<'static>>,
    /// Runs that were made, those that other shards count included.
    made: u64,
    sites: Sites,
    /// What the runs of the batch were made under.
    conditions: Conditions,
    /// Runs of the batch that are not made yet.
    pending: Vec<Planned>,
    hangs: u64,
    /// Runs in which it was looked which accesses conflict.
    looked_at: u64,
    /// What the program's code leaves to others.
    unseen: Unseen,
    /// What places in that code are called, and those that had more steps than a run gives to one.
    names: PlaceNames,
    limited: BTreeSet<u64>,
    /// Those that runs that were looked at came by too often.
    overlooked: BTreeSet<u64>,
    /// Instructions that could not be patched.
    refused: BTreeSet<u64>,
    /// What failing runs that were learned from had in common with others.
    heard_of: BTreeSet<String>,
    /// Why no more runs were made although they were asked for.
    given_up: Option<String>,
    /// What all runs that count came to.
    outcomes: Outcomes,
    /// In which orders conflicting events came, in runs that were listened to.
    coverage: Coverage,
}

impl<'a> Exploration<'a> {
    /// An exploration whose failures are kept in `folder`; `unseen` is what the program's file leaves to others.
    pub(crate) fn new(plan: &'a Plan, folder: PathBuf, unseen: Unseen) -> Self {
        let summary = Summary {
            program: plan.program.subject(),
            strategy: plan.strategy.to_string(),
            seed: waylay_dist::Seed::new(plan.seed).to_string(),
            level: plan.conditions.run.level.name().to_owned(),
            promises_nothing: plan.strategy.promises_nothing(),
            folder,
            ..Summary::default()
        };
        let learner = || {
            Learner::new(&plan.strategy, Seed(plan.seed))
                .divided(plan.share.as_ref().map_or(Shard::WHOLE, |share| share.shard))
        };
        Exploration {
            plan,
            learner: learner(),
            of_handed: learner().of_handed(),
            findings: Findings::new(plan, unseen.libraries.clone()),
            begun: Instant::now(),
            summary,
            aimed: Aimed::default(),
            counts_from: 0,
            parameters: RunParameters::of(plan.strategy.to_string()),
            rivals: 0,
            total_steps: 0,
            single: 0,
            beside: None,
            made: 0,
            sites: Sites::new(&plan.conditions, plan.strategy.is_search())
                .taking_turns(!plan.strategy.searches()),
            conditions: plan.conditions.clone(),
            pending: Vec::new(),
            hangs: 0,
            looked_at: 0,
            unseen,
            names: PlaceNames::of(&plan.program.file),
            limited: BTreeSet::new(),
            overlooked: BTreeSet::new(),
            refused: BTreeSet::new(),
            heard_of: BTreeSet::new(),
            given_up: None,
            outcomes: Outcomes::default(),
            coverage: Coverage::default(),
        }
    }

    /// Whether runs were made, and none had threads of its own or failed.
    pub(crate) fn had_no_threads(&self) -> bool {
        self.made > 0 && self.single == self.made
    }

    fn go(
        &mut self,
        workers: &mut [Worker<'_>],
        campaign: &mut Campaign,
        store: &mut FailureStore,
        progress: &mut dyn Progress,
    ) -> Result<CampaignState, ExploreError> {
        let shared = Shared::new(self.plan.duration.map(|duration| self.begun + duration));
        let mut saved = Instant::now();
        loop {
            let state = self.batch(workers, &shared, store, progress)?;
            if saved.elapsed() > Duration::from_secs(1) && state.is_none() {
                self.save(campaign, store, progress);
                saved = Instant::now();
            }
            match state {
                Some(state) => return Ok(state),
                None if shared.late() => return Ok(CampaignState::Finished),
                None => {}
            }
        }
    }

    /// Makes what is left of a batch of runs, or a new one; says how the exploration ended, if it did. Runs for which the time
    /// did not suffice are made with the next call.
    pub(crate) fn batch(
        &mut self,
        workers: &mut [Worker<'_>],
        shared: &Shared,
        store: &mut FailureStore,
        progress: &mut dyn Progress,
    ) -> Result<Option<CampaignState>, ExploreError> {
        while self.pending.is_empty() {
            let next = self.next();
            let most = self.plan.runs.map_or(u64::MAX, |runs| runs.saturating_sub(next));
            if most == 0 {
                return Ok(Some(CampaignState::Finished));
            }
            // All runs of a batch have the same steps.
            let most = most.min(self.sites.same(next));
            let handed = self.sites.is_handed(next);
            let learner = if handed { &mut self.of_handed } else { &mut self.learner };
            learner.go_on_at(next);
            self.pending = learner.plan(most);
            if self.pending.is_empty() {
                self.summary.exhausted = self.learner.exhausted();
                return Ok(Some(CampaignState::Finished));
            }
            self.pending.retain(|planned| self.plan.counts(planned) || is_scout(planned, &self.sites));
            self.conditions =
                if handed { self.sites.conditions_of_handed() } else { self.sites.conditions() };
        }
        let restorable = |planned: &Planned| is_restorable(self.plan, self.sites.looks_at(planned.run.index));
        let restorable = self.pending.iter().any(restorable);
        for worker in workers.iter_mut() {
            worker.ready_for(&self.conditions, restorable)?;
        }
        let mut batch = std::mem::take(&mut self.pending);
        let mut wanted = true;
        let done = {
            let begun = self.begun;
            let mut look = || {
                wanted &= progress.tick(&shared.state(begun.elapsed()));
                wanted
            };
            timings::reach(Milestone::Schedule);
            let _stage = timings::within(Stage::Runs);
            run_batch(&batch, workers, self.plan, (&self.conditions, &self.sites), shared, &mut look)?
        };
        let mut made = 0;
        for (planned, done) in batch.iter().zip(done) {
            // What comes after the first run that was not made was made in vain: without it, the numbers of the
            // runs would have a gap.
            let Some(done) = done else { break };
            made += 1;
            if self.take(planned, done, store, progress)? {
                return Ok(Some(CampaignState::Finished));
            }
        }
        self.pending = batch.split_off(made);
        if !wanted {
            self.summary.interrupted = true;
            return Ok(Some(CampaignState::Stopped));
        }
        Ok(None)
    }

    /// The first run that is not planned yet.
    fn next(&self) -> u64 {
        self.learner.next().max(self.of_handed.next())
    }

    /// Who planned a run.
    fn learner_of(&mut self, planned: &Planned) -> &mut Learner {
        if planned.handed { &mut self.of_handed } else { &mut self.learner }
    }

    /// Takes in one run; says whether it was the last.
    fn take(
        &mut self,
        planned: &Planned,
        done: Done,
        store: &mut FailureStore,
        progress: &mut dyn Progress,
    ) -> Result<bool, ExploreError> {
        let Done { observed, failed, mut lesson, conflicting } = done;
        let scout = self.plan.share.is_none() || is_scout(planned, &self.sites);
        let counts = self.plan.counts(planned);
        self.looked_at += u64::from(self.sites.looks_at(planned.run.index));
        let seen = (observed.accesses, observed.limited);
        let Taught { news: steps_changed, void } =
            self.sites.learn(self.next(), if scout { &conflicting } else { &[] }, seen, failed.is_some());
        let current = self.learner_of(planned).is_current(planned);
        let whole = observed.hung.is_none() && ended_by_itself(observed.ending);
        if whole && failed.is_none() && self.sites.looks_at(planned.run.index) {
            self.sites.measure(planned.handed, observed.steps);
        }
        let summary = &mut self.summary;
        summary.runs += u64::from(counts);
        summary.handed_runs += u64::from(counts && planned.handed);
        self.made += 1;
        summary.threads = summary.threads.max(observed.threads);
        if !planned.handed {
            summary.steps = summary.steps.max(observed.steps);
        }
        summary.partly_controlled += u64::from(counts && observed.partly_controlled);
        for beside in observed.account.beside() {
            let note = Statement::Beside(beside.clone()).to_string();
            if !summary.notes.contains(&note) {
                summary.notes.push(note);
                self.beside.get_or_insert_with(|| beside.clone());
            }
        }
        for (seen, all, names) in [
            (&observed.limited_places, &mut self.limited, &mut summary.limited_places),
            (&observed.overlooked_places, &mut self.overlooked, &mut summary.overlooked_places),
            (&observed.refused_places, &mut self.refused, &mut summary.refused_places),
        ] {
            let before = all.len();
            all.extend(seen);
            if all.len() > before && before < LIMITED {
                *names = self.names.names(&Vec::from_iter(all.iter().copied().take(LIMITED)));
            }
        }
        self.unseen.add(libraries_at(&observed.loaded));
        summary.overlooked |= observed.overlooked;
        summary.races_over += u64::from(counts && observed.races_over);
        summary.calls_over |= observed.calls_over;
        summary.store_buffers = summary.store_buffers.max(observed.store_buffers);
        if counts {
            let outcome = failed.as_ref().map_or("", |(failure, _)| &failure.key);
            self.outcomes.add(planned.run.index, observed.steps, outcome);
        }
        let judged = failed.is_some() || !observed.is_cut_off();
        summary.limit_reached += u64::from(counts && !judged);
        summary.patched = summary.patched.max(u64::from(observed.patched.0));
        summary.refused = summary.refused.max(u64::from(observed.patched.1));
        self.total_steps += if counts { observed.steps } else { 0 };
        self.rivals = self.rivals.max(observed.threads).max(planned.parameters.threads);
        // What took part without being scheduled is in no bound, nor what was made when other accesses were steps, nor what lies
        // behind a limit, nor what had more steps than are promised for.
        let aims = !planned.handed && current && planned.run.index >= self.counts_from;
        if counts && judged && !observed.partly_controlled && aims {
            self.aimed.take(&planned.parameters);
            self.aimed.judge(&planned.parameters, failed.is_some());
        }
        if whole && failed.is_none() && !observed.partly_controlled && current {
            // Most runs are not listened to, and still none that passes may be longer than the promise says. Other shards hear
            // only of scouts, and have to plan the same.
            if scout {
                self.learner_of(planned).was_long(planned, observed.reach);
            }
            if !planned.handed {
                self.aimed.outgrow(observed.reach);
            }
        }
        self.single =
            if observed.threads <= self.plan.own_threads && failed.is_none() { self.single + 1 } else { 0 };
        if self.had_no_threads() && self.single >= SINGLE_THREADED.min(self.plan.runs.unwrap_or(u64::MAX)) {
            let program = self.plan.program.title();
            if self.beside == Some(Beside::BeforeMain) {
                return Err(ExploreError::ThreadsBeforeMain(program));
            }
            let beside = self
                .beside
                .as_ref()
                .map_or_else(String::new, |what| format!(" that is under control ({what})"));
            return Err(ExploreError::NoThreads { program, beside });
        }
        let over = match failed {
            Some((failure, schedule)) => {
                timings::reach(Milestone::Failure);
                let schedule = &schedule.unwrap_or_default();
                let failing = Failing { planned, observed: &observed, failure: &failure, schedule };
                let conditions = self.sites.conditions_of(&self.conditions, planned.run.index);
                if let Some(race) = observed.race.as_ref().filter(|_| scout) {
                    self.sites.know_race(race.pair());
                }
                let taken = match counts {
                    true => self.findings.take(&failing, &conditions, store)?,
                    false => self.findings.look_at(&failing, &conditions)?,
                };
                match taken {
                    Taken::Atomic(sites) => {
                        if scout {
                            self.sites.know_atomic(&sites);
                        }
                        lesson.outcome = Outcome::Cut;
                        false
                    }
                    Taken::Doubtful => {
                        lesson.outcome = Outcome::Cut;
                        false
                    }
                    taken => {
                        // Whether it has a signature of its own is known only where it counts.
                        lesson.news = planned.listen && self.heard_of.insert(failure.key.clone());
                        self.summary.failures += u64::from(counts);
                        if matches!(taken, Taken::New) {
                            self.found(&failing, progress);
                        }
                        counts && self.plan.stop_on_first
                    }
                }
            }
            None => false,
        };
        if let Some(said) = lesson.conversation.as_ref().filter(|_| !planned.handed) {
            self.coverage.hear(planned.run.index + 1, said);
        }
        self.learner_of(planned).learn(planned, lesson);
        if steps_changed != Added::Known {
            let next = self.next();
            for learner in [&mut self.learner, &mut self.of_handed] {
                learner.go_on_at(next);
                learner.steps_changed(steps_changed);
            }
        }
        if void {
            // A bug between accesses that were no steps could not have been found, nor will the rest of the batch find it.
            self.aimed.forget();
            self.counts_from = self.next();
        }
        if steps_changed == Added::Again {
            self.aimed.reach = 0;
        }
        self.hangs += u64::from(observed.hung.is_some());
        if self.hangs >= MOST_HANGS && self.plan.duration.is_none() && !over {
            let killed = format!("{MOST_HANGS} runs had to be killed because they did not end within");
            let why = format!(
                "{killed} {:?}: no more were made (set --duration to go on, --timeout to wait less)",
                self.plan.conditions.patience()
            );
            self.summary.notes.push(why.clone());
            self.given_up = Some(why);
            return Ok(true);
        }
        Ok(over || self.is_quiet(planned))
    }

    /// Whether so many runs up to this one showed no new order that it is enough.
    fn is_quiet(&mut self, planned: &Planned) -> bool {
        let most = self.plan.stop_after_quiet;
        let quiet = most.is_some_and(|most| self.coverage.is_quiet(planned.run.index + 1, most));
        self.summary.quiet |= quiet;
        quiet
    }

    /// Tells of the failure that was found last, the first with its signature.
    fn found(&mut self, failing: &Failing<'_>, progress: &mut dyn Progress) {
        let Some(found) = self.findings.found.last() else { return };
        let summary = &mut self.summary;
        if summary.first_failure_run.is_none() {
            summary.first_failure_run = Some(found.first_run);
            summary.kind = Some(found.kind.clone());
            summary.signature = Some(found.signature.clone());
            summary.depth = failing.planned.parameters.depth;
            summary.failure_dir = found.failure_dir.clone();
            summary.replay = found.replay.clone();
        }
        timings::reach(Milestone::Report);
        progress.found(found);
    }

    fn save(&mut self, campaign: &mut Campaign, store: &mut FailureStore, progress: &mut dyn Progress) {
        let _stage = timings::within(Stage::Keep);
        owed::settle();
        store.flush();
        let seconds = self.begun.elapsed().as_secs_f64();
        campaign.record.signatures = self.findings.found.len() as u64;
        campaign.record.failures = self.summary.failures;
        campaign.record.shard = self.plan.share.as_ref().map(|share| self.part(share));
        campaign.record.scenarios = vec![ScenarioRecord {
            name: self.plan.program.scenario(),
            mode: "strict".to_owned(),
            seconds,
            randomizer: None,
            tests: vec![self.record(seconds)],
        }];
        campaign.save();
        progress.campaign(&campaign.record, campaign.folder(), &store.entries());
        owed::take_news().iter().for_each(|text| progress.note(text));
    }
}

/// Whether other shards learn from a run, too.
fn is_scout(planned: &Planned, sites: &Sites) -> bool {
    planned.listen || sites.looks_at(planned.run.index)
}

/// Whether what a run did was all that its schedule has: strategies learn lengths from no other.
fn ended_by_itself(ending: Ending) -> bool {
    !matches!(ending, Ending::StepLimit | Ending::Livelock | Ending::Awaiting)
}
