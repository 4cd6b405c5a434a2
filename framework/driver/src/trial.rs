//! Trials of a comparison: lives of one test under one way of scheduling, until the first failure or the end of a budget.
//!
//! A failure is counted and nothing more: no stacks, no dump, no confirmation. What a campaign would spend on evidence
//! would be counted as time to the bug. Which trials there are, and what they say together, is not known here.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use waylay_dist::{Seed, Spec as Distribution};
use waylay_host::event::Event;
use waylay_host::plan::{TestPlan, TrialPlan, WorkerPlan};
use waylay_page::record::Sort;
use waylay_page::{Clock, HostPhase, Ticks, WorkerState};
use waylay_randomizer::RawSettings;
use waylay_schedule::Schedule;
use waylay_schedule::promise::Promise;

use crate::campaign::strict::StrictTest;
use crate::catalog::Installation;
use crate::config::Strict;
use crate::host::{ControlRegion, HostCommand, HostLog, HostProcess, HostTask, StoppedBy};
use crate::interrupt;
use crate::randomizer::{RandomizerCommand, RandomizerProcess, RandomizerTask, Tally};
use crate::record::StrictNumbers;
use crate::sys;

/// Longest time between two looks at a host.
const LOOK: Duration = Duration::from_millis(20);
/// A host that takes so long to load a plugin, or to end when it is told to, is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a randomizer may take until it would suspend threads.
const PATIENCE_WITH_RANDOMIZER: Duration = Duration::from_secs(5);
/// Disk for what hosts print.
const LOG_BYTES: u64 = 1 << 20;

/// The word for a host that contradicts itself.
const CORRUPTED: &str = "corrupted";

/// Who decides which thread runs.
#[derive(Clone, Debug)]
pub enum Scheduling {
    /// A strategy, one thread at a time.
    Strict(Box<Strict>),
    /// The operating system: the test is repeated, and that is all.
    Free,
    /// The operating system, while a randomizer suspends threads.
    Randomized(Box<RawSettings>),
}

/// What one trial is.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The plugin's file.
    pub plugin: PathBuf,
    /// The test in it.
    pub test: String,
    /// Distributions that replace the test's defaults.
    pub params: BTreeMap<String, Distribution>,
    /// Worker threads.
    pub workers: u32,
    /// Everything random comes from it.
    pub seed: Seed,
    /// Who decides.
    pub scheduling: Scheduling,
    /// At most so many lives of the test.
    pub runs: u64,
    /// At most so much time.
    pub limit: Duration,
    /// A life that takes longer is a hang.
    pub hang: Duration,
    /// Go on after a failure, to count them.
    pub count: bool,
    /// No further host after so many.
    pub most_failures: u64,
}

/// The first failure of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct First {
    /// Number of the life that failed, from 1.
    pub run: u64,
    /// Seconds of running until then; starts of hosts do not count, and neither does the time in which a hang is noticed.
    pub seconds: f64,
    /// In one word.
    pub kind: &'static str,
}

/// What came of a trial.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Lives that ended or failed.
    pub runs: u64,
    /// Lives beside them that reached the limit of steps: whether they would have failed is not known.
    pub unjudged: u64,
    /// Those that failed.
    pub failures: u64,
    /// The first of those.
    pub first: Option<First>,
    /// Seconds of running.
    pub seconds: f64,
    /// Of strict mode.
    pub strict: Option<StrictNumbers>,
    /// The least probability that one life shows a bug of a depth, by depth.
    pub promised: BTreeMap<u32, f64>,
    /// The most steps of a schedule; 0 when threads run freely.
    pub longest: u64,
    /// Who ran when in the life that ended the trial, if it failed; none when threads run freely.
    pub failing: Option<Schedule>,
}

/// Why a trial says nothing.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// A host could not be started or used.
    #[error("{0}")]
    Host(String),
    /// The test cannot run.
    #[error("{} {test}: {reason}", plugin.display())]
    Refused {
        /// The plugin's file.
        plugin: PathBuf,
        /// The test.
        test: String,
        /// Why.
        reason: String,
    },
}

impl From<io::Error> for TrialError {
    fn from(error: io::Error) -> TrialError {
        TrialError::Host(error.to_string())
    }
}

/// A place in which trials are run, one after the other.
pub struct Arena {
    hosts: HostCommand,
    randomizers: RandomizerCommand,
    clock: Clock,
    log: HostLog,
}

/// How one host ended.
enum HostEnd {
    /// It has run what it was to run, or cannot make a further schedule.
    InOrder,
    /// This life failed and took it along.
    Failed { run: u64, kind: &'static str, since_start: Duration },
    /// This life reached the limit of steps.
    AtLimit { run: u64 },
}

/// What is known of a trial so far.
struct Account {
    next: u64,
    failures: u64,
    /// Lives that reached the limit of steps.
    unjudged: u64,
    first: Option<First>,
    spent: Duration,
    exhausted: bool,
    /// What randomizers did, and the shortest life beside them.
    suspensions: Tally,
    shortest: Option<Duration>,
}

impl Account {
    fn failed(&mut self, run: u64, kind: &'static str, since_start: Duration) {
        self.failures += 1;
        let seconds = (self.spent + since_start).as_secs_f64();
        self.first.get_or_insert(First { run: run + 1, seconds, kind });
    }
}

impl Arena {
    /// A place that keeps its log in that folder.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn new(installation: &Installation, folder: &Path, number: usize) -> Result<Arena, TrialError> {
        let log = HostLog::create(&folder.join(format!("hosts-{number}.log")), LOG_BYTES)
            .map_err(|error| TrialError::Host(error.to_string()))?;
        let mut randomizers = installation.randomizer_command(folder);
        randomizers.log = folder.join(format!("randomizer-{number}.log"));
        Ok(Arena { hosts: installation.host_command(), randomizers, clock: Clock::calibrate(), log })
    }

    /// Runs one trial to its end.
    ///
    /// # Errors
    /// When it could not be run, or not to its end.
    pub fn run(&self, trial: &Trial) -> Result<Outcome, TrialError> {
        let mut strict = match &trial.scheduling {
            Scheduling::Strict(how) => Some(StrictTest::seeded((**how).clone(), trial.seed)),
            Scheduling::Free | Scheduling::Randomized(_) => None,
        };
        let mut account = Account {
            next: 0,
            failures: 0,
            unjudged: 0,
            first: None,
            spent: Duration::ZERO,
            exhausted: false,
            suspensions: Tally::default(),
            shortest: None,
        };
        let mut failing = None;
        while account.next < trial.runs
            && account.spent < trial.limit
            && !account.exhausted
            && (trial.count || account.first.is_none())
            && account.failures < trial.most_failures
        {
            let region = strict.as_ref().map(StrictTest::prepare).transpose()?;
            let before = account.next;
            let mut host = self.start(trial, before, region.as_ref())?;
            let (end, spent) = self.attend(trial, &mut host, region.as_ref(), &mut account)?;
            host.kill();
            let _ = host.observe();
            let finished = host.believed().workers[0].finished.load(Ordering::Relaxed);
            let corrupted = matches!(end, HostEnd::Failed { kind: CORRUPTED, .. });
            let at_limit = matches!(end, HostEnd::AtLimit { .. });
            account.next = match end {
                HostEnd::InOrder => before + finished,
                HostEnd::Failed { run, kind, since_start } => {
                    account.failed(run, kind, since_start);
                    run + 1
                }
                HostEnd::AtLimit { run } => {
                    account.unjudged += 1;
                    run + 1
                }
            };
            account.spent += spent;
            if let (true, Some(test)) = (at_limit, &mut strict) {
                test.fails_at_limit();
            }
            if let (Some(test), Some(region)) = (&mut strict, &region) {
                test.account(region, corrupted);
                test.spent = account.spent;
                account.exhausted |= test.exhausted;
                failing = (account.first.is_some() && !trial.count).then(|| region.schedule());
            }
            if account.next == before && !account.exhausted && account.spent < trial.limit {
                return Err(TrialError::Host("a host ended without running anything".to_owned()));
            }
        }
        let numbers = strict.as_ref().map(|test| test.numbers(None, Duration::ZERO));
        Ok(Outcome {
            promised: promised(trial, &account, numbers.as_ref()),
            runs: account.next - account.unjudged,
            unjudged: account.unjudged,
            failures: account.failures,
            first: account.first,
            seconds: account.spent.as_secs_f64(),
            longest: strict.as_ref().map_or(0, |test| test.totals().longest),
            strict: numbers,
            failing,
        })
    }

    fn start(
        &self,
        trial: &Trial,
        first: u64,
        region: Option<&ControlRegion>,
    ) -> Result<HostProcess, TrialError> {
        let worker = |slot: u32| WorkerPlan {
            slot: slot as usize,
            first_iteration: first,
            iterations: Some(trial.runs - first),
            repeat: false,
        };
        let test = TestPlan {
            plugin: 0,
            name: trial.test.clone(),
            params: trial.params.clone(),
            workers: (0..trial.workers.max(1)).map(worker).collect(),
            contained: None,
            combiner: None,
        };
        let task = HostTask {
            seed: trial.seed,
            plugins: vec![trial.plugin.clone()],
            tests: vec![test],
            keep_when_orphaned: false,
            strict: true,
            trial: Some(TrialPlan { free: region.is_none(), count: trial.count }),
        };
        self.hosts
            .start(task, &self.clock, &self.log, None, region)
            .map_err(|error| TrialError::Host(error.to_string()))
    }

    /// Attends to one host until it has done its part or cannot go on; says how long it ran.
    fn attend(
        &self,
        trial: &Trial,
        host: &mut HostProcess,
        region: Option<&ControlRegion>,
        account: &mut Account,
    ) -> Result<(HostEnd, Duration), TrialError> {
        let started = Instant::now();
        let mut running: Option<Instant> = None;
        // Dropped before the host is killed: the end of a process waits for its tracer.
        let mut randomizer = None;
        loop {
            let bell = host.layout().header.doorbell.load(Ordering::Acquire);
            // Asked before the records are read: a record filled before the host died is then always seen.
            let status = host.ended();
            let seen = host.observe().is_ok()
                && region.is_none_or(|region| region.observe(started.elapsed()).is_ok());
            let elapsed = running.map_or(Duration::ZERO, |since| since.elapsed());
            if !seen {
                // It wrote over memory that is ours: nothing that it says counts any more.
                let run = host.believed().workers[0].iteration.load(Ordering::Acquire);
                let since_start = self.until_entered(host);
                return Ok((HostEnd::Failed { run, kind: CORRUPTED, since_start }, elapsed));
            }
            self.take_events(trial, host, account)?;
            let run = || host.layout().workers[0].iteration.load(Ordering::Acquire);
            let stopped = region.and_then(ControlRegion::stopped_by);
            if fatal_record(host).is_none()
                && stopped == Some(StoppedBy::StepLimit)
                && !trial.fails_at_limit()
            {
                return Ok((HostEnd::AtLimit { run: run() }, elapsed));
            }
            if let Some(kind) = fatal_record(host).or_else(|| stopped.map(verdict)) {
                let run = run();
                return Ok((HostEnd::Failed { run, kind, since_start: self.until_entered(host) }, elapsed));
            }
            let phase = HostPhase::load(&host.layout().header.phase);
            if let Some(status) = status {
                if host.left_as_it_says(status).is_err() {
                    let run = host.believed().workers[0].iteration.load(Ordering::Acquire);
                    let since_start = self.until_entered(host);
                    return Ok((HostEnd::Failed { run, kind: CORRUPTED, since_start }, elapsed));
                }
                return match phase {
                    HostPhase::Left => Ok((HostEnd::InOrder, elapsed)),
                    _ => Err(TrialError::Host(format!("a host {}", sys::describe_exit(status)))),
                };
            }
            match phase {
                HostPhase::Starting if running.is_none() => {
                    randomizer = self.begin_randomizer(trial, host)?;
                    running = Some(Instant::now());
                    host.go();
                }
                HostPhase::Ended if !host.was_told_to_leave() => {
                    let elapsed = running.map_or(Duration::ZERO, |since| since.elapsed());
                    if let Some(randomizer) = randomizer.take() {
                        account.suspensions.add(&randomizer.finish());
                        let ticks = host.layout().workers[0].shortest.load(Ordering::Relaxed);
                        account.shortest =
                            account.shortest.into_iter().chain([self.clock.duration(ticks)]).min();
                    }
                    self.leave(trial, host, account)?;
                    return Ok((HostEnd::InOrder, elapsed));
                }
                _ => {}
            }
            if let Some(late) = self.late(trial, host) {
                let run = host.layout().workers[0].iteration.load(Ordering::Acquire);
                let since_start = self.until_entered(host);
                return Ok((
                    HostEnd::Failed { run, kind: "hang", since_start },
                    elapsed.saturating_sub(late),
                ));
            }
            if interrupt::requested() {
                return Err(TrialError::Interrupted);
            }
            if running.is_some() && account.spent + elapsed >= trial.limit {
                host.cancel();
            }
            let patience = PATIENCE + trial.limit.min(Duration::from_secs(86_400)) + trial.hang;
            if started.elapsed() > patience {
                return Err(TrialError::Host("a host does not end".to_owned()));
            }
            host.wait_for_bell(bell, LOOK);
        }
    }

    /// Lets a host go whose tests are over. All that it said is known afterwards.
    fn leave(&self, trial: &Trial, host: &mut HostProcess, account: &mut Account) -> Result<(), TrialError> {
        host.leave();
        let began = Instant::now();
        while host.ended().is_none() && began.elapsed() < PATIENCE {
            let bell = host.layout().header.doorbell.load(Ordering::Acquire);
            host.wait_for_bell(bell, Duration::from_millis(1));
        }
        for event in host.remaining_events(PATIENCE) {
            self.take_event(trial, account, event)?;
        }
        Ok(())
    }

    fn take_events(
        &self,
        trial: &Trial,
        host: &HostProcess,
        account: &mut Account,
    ) -> Result<(), TrialError> {
        host.drain_events().into_iter().try_for_each(|event| self.take_event(trial, account, event))
    }

    fn take_event(&self, trial: &Trial, account: &mut Account, event: Event) -> Result<(), TrialError> {
        match event {
            Event::TestRefused { reason, .. } | Event::PluginRefused { reason, .. } => {
                Err(TrialError::Refused { plugin: trial.plugin.clone(), test: trial.test.clone(), reason })
            }
            Event::Failed { run, ticks, .. } => {
                account.failed(run, "assert", self.clock.duration(ticks));
                Ok(())
            }
            Event::Exhausted { .. } => {
                account.exhausted = true;
                Ok(())
            }
            Event::Kinds { .. }
            | Event::LeftBehind { .. }
            | Event::TestStarted { .. }
            | Event::Described { .. } => Ok(()),
        }
    }

    /// From the beginning of the first life of the host to the beginning of the one that goes on.
    fn until_entered(&self, host: &HostProcess) -> Duration {
        let layout = host.believed();
        let began = Ticks(layout.tests[0].phase_at.load(Ordering::Acquire));
        let entered = Ticks(layout.workers[0].entered_at.load(Ordering::Acquire));
        self.clock.duration(entered.since(began))
    }

    /// For how long the life that goes on has lasted, if that is too long.
    fn late(&self, trial: &Trial, host: &HostProcess) -> Option<Duration> {
        let slot = &host.layout().workers[0];
        if WorkerState::load(&slot.state) != WorkerState::Running {
            return None;
        }
        let entered = Ticks(slot.entered_at.load(Ordering::Acquire));
        let since = self.clock.duration(self.clock.now().since(entered));
        (since > trial.hang).then_some(since)
    }

    fn begin_randomizer(
        &self,
        trial: &Trial,
        host: &HostProcess,
    ) -> Result<Option<RandomizerProcess>, TrialError> {
        let Scheduling::Randomized(settings) = &trial.scheduling else { return Ok(None) };
        let seed = trial.seed.derive("randomizer", 0);
        let task = RandomizerTask { pid: host.pid(), page: host.page(), settings, seed };
        let mut randomizer = self.randomizers.start(&task, &self.log)?;
        let began = Instant::now();
        while !randomizer.is_at_work() {
            if randomizer.has_ended() || began.elapsed() > PATIENCE_WITH_RANDOMIZER {
                let reason = randomizer.finish().reason;
                return Err(TrialError::Host(format!("the randomizer does not begin: {reason}")));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(Some(randomizer))
    }
}

impl Trial {
    /// Whether a life that reaches the limit of steps has failed.
    fn fails_at_limit(&self) -> bool {
        matches!(&self.scheduling, Scheduling::Strict(strict) if strict.limit_is_failure)
    }
}

/// What is promised for one life: by the strategy, or by the bound of random suspension.
fn promised(trial: &Trial, account: &Account, numbers: Option<&StrictNumbers>) -> BTreeMap<u32, f64> {
    if let Some(numbers) = numbers {
        // Of any schedule of this life: not all of them count.
        let judged = numbers.runs.saturating_sub(numbers.limit_reached);
        let share = |runs| runs as f64 / judged.max(1) as f64;
        let of_any = |promise: &Promise| (promise.depth, promise.per_run * share(promise.runs));
        return numbers.guarantees.iter().map(of_any).collect();
    }
    let bound = || {
        let Scheduling::Randomized(settings) = &trial.scheduling else { return None };
        let settings = (**settings).clone().check().ok()?;
        let record = account.suspensions.record(&settings, None);
        Tally::bound(&record, &settings, account.shortest?, account.next).ok()
    };
    bound().map(|bound| (1, bound.per_iteration)).into_iter().collect()
}

/// Whether the host holds a failure from which nothing goes on.
fn fatal_record(host: &HostProcess) -> Option<&'static str> {
    host.layout().pending().next().map(|pending| match pending.failure.sort {
        Sort::Assert => "assert",
        Sort::Panic => "panic",
        Sort::Exception => "exception",
        Sort::Fatal => "crash",
        Sort::Exit => "exit",
    })
}

fn verdict(stopped: StoppedBy) -> &'static str {
    match stopped {
        StoppedBy::Deadlock => "deadlock",
        StoppedBy::StepLimit | StoppedBy::Livelock => "livelock",
        StoppedBy::Race => "race",
        StoppedBy::Refused => "refused",
    }
}

/// Begins to notice Ctrl-C: trials end with [`TrialError::Interrupted`], a second one ends the process.
pub fn watch_for_interrupts() {
    interrupt::watch();
}

/// Whether Ctrl-C was pressed.
pub fn interrupted() -> bool {
    interrupt::requested()
}
