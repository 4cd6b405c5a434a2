//! Runs one scenario to its end: starts hosts, attends to them, and starts the next when one is lost.
//!
//! One thread does everything: it looks at the page whenever the host rings, and at least every [`LOOK`]. It never
//! waits for the host without a limit; whatever the host does not do in time is done to it.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use waylay_evidence::{CrashContext, DumpLimits, ProcessId};
use waylay_host::event::Event;
use waylay_page::{Clock, Command, HostPhase, TestPhase, Ticks, WorkerState};

use super::deadline::Deadline;
use super::disturbance::Disturbance;
use super::hang::{self, Suspect, Verdict};
use super::investigation::{Draft, Investigator, Scene};
use super::leaks::{LeakSeen, LeakWatch};
use super::scenario::{Assignment, Progress, Scenario};
use super::strict::Examiner;
use super::verdict::Examined;
use super::{CampaignError, Options};
use crate::failure::{Finding, Kind};
use crate::host::{HostCommand, HostLog, HostProcess, HostTask, Overdue, find_overdue};
use crate::randomizer::{RandomizerCommand, RandomizerProcess};
use crate::report::{Live, Tick, plural};
use crate::store::{Averages, Campaign, FailureStore, Shelved};
use crate::sys::{self, ControlRegion};

/// Longest time between two looks at a host. A hang is seen at most this much after its limit.
const LOOK: Duration = Duration::from_millis(20);
/// How often counters are written to disk and leaks looked for.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// After so many hosts in a row that died before they finished an iteration, the scenario is given up.
const FRUITLESS_HOSTS: u32 = 20;
/// The same for hosts that were killed from outside, which says nothing about the tests.
const FRUITLESS_KILLS: u32 = 1000;

/// A host that has ended its tests gets this long to end, at least: it waits for us to look at what they left.
const LEAST_TIME_TO_END: Duration = Duration::from_secs(10);
/// How long a test runs alone to see whether it leaves something behind, and all such tests of a scenario together.
const ALONE: Duration = Duration::from_secs(1);
const ALONE_TOGETHER: Duration = Duration::from_secs(30);
/// A strict test that would go on for ever lets the next one run after this time.
const TURN: Duration = Duration::from_secs(10);
/// Why there is no dump.
const GONE: &str = "the process was gone";

/// What the scenarios of a campaign share.
pub(crate) struct Supervisor<'a> {
    pub(crate) command: HostCommand,
    pub(crate) randomizer: RandomizerCommand,
    pub(crate) clock: Clock,
    pub(crate) log: HostLog,
    pub(crate) options: &'a Options,
    pub(crate) campaign: &'a mut Campaign,
    pub(crate) failures: &'a mut FailureStore,
    pub(crate) investigator: Investigator,
    pub(crate) live: &'a mut dyn Live,
    pub(crate) began: Instant,
    pub(crate) kept_hosts: Vec<u32>,
    /// Iterations of the scenarios that are over.
    pub(crate) earlier_iterations: u64,
    /// What the tests of a scenario left behind together.
    pub(crate) unattributed: Vec<Unattributed>,
    /// How long the tests of pots take.
    pub(crate) averages: Averages,
    /// Runs failing schedules again; none where that is impossible.
    pub(crate) examiner: Option<Box<dyn Examiner>>,
    /// What was examined already.
    pub(crate) examined: Examined,
}

/// Something that one of several tests left behind, and nothing tells which.
pub(crate) struct Unattributed {
    draft: Draft,
    /// The scenario's tests that ran in that host.
    among: Vec<usize>,
}

/// How one host ended.
enum HostEnd {
    /// In order: everything was cancelled and ended.
    InOrder,
    /// It died or was killed; what was left can go on in the next host.
    Lost,
    /// Somebody killed it, or the kernel did; that says nothing about what was being loaded.
    Killed,
}

/// One host at work.
pub(crate) struct Session {
    /// Before the host, so that it is dropped first: the end of a process waits for its tracer.
    pub(crate) randomizer: Option<RandomizerProcess>,
    pub(crate) host: HostProcess,
    pub(crate) assignment: Assignment,
    suspects: Vec<Suspect>,
    leaks: Option<LeakWatch>,
    cancelled_at: Option<Instant>,
    housekept: Instant,
    /// The plugin that is being loaded, and since when.
    loading: (u32, Instant),
    /// What the control library shares, in strict mode.
    pub(crate) region: Option<ControlRegion>,
    pub(crate) started: Instant,
    /// Since when every test is over and only the host itself is not.
    tests_over: Option<Instant>,
    /// When a randomizer that did not let go of threads was killed: what was late until then may be so because of it.
    pub(super) released: Option<Instant>,
}

impl Supervisor<'_> {
    /// Runs the scenario until `deadline`, until its tests are done, or until the user wants to stop.
    pub(crate) fn run(&mut self, scenario: Scenario, deadline: Option<Instant>) -> Result<(), CampaignError> {
        let began = Instant::now();
        let mut deadline = Deadline::new(deadline, scenario.duration);
        let mut progress = Progress::new(scenario, self.campaign.record.seed).with_clock(&self.clock);
        self.run_to_the_end(&mut progress, began, &mut deadline)?;
        self.attribute_leftovers(&progress)
    }

    /// Hosts one after the other until the tests are done or the time is over.
    fn run_to_the_end(
        &mut self,
        progress: &mut Progress,
        began: Instant,
        deadline: &mut Deadline,
    ) -> Result<(), CampaignError> {
        let place = self.campaign.record.scenarios.len();
        self.campaign.record.scenarios.push(progress.record(Duration::ZERO, &self.clock, None, None));
        if progress.is_strict() {
            self.take_turns(progress, place, began, deadline)?;
        } else {
            self.run_hosts(progress, place, began, deadline)?;
        }
        if let Some(problem) = progress.lacks_randomization() {
            self.problem(problem);
        }
        let iterations: u64 = progress.totals(None).iter().map(|totals| totals.iterations).sum();
        self.earlier_iterations += iterations;
        self.campaign.record.scenarios[place] = progress.record(began.elapsed(), &self.clock, None, None);
        self.averages.learn(&self.campaign.record.scenarios[place]);
        self.averages.save()?;
        self.failures.flush()?;
        self.campaign.save()?;
        Ok(())
    }

    /// Strict tests, one after the other: each gets an equal part of the time that is left, until it is done.
    fn take_turns(
        &mut self,
        progress: &mut Progress,
        place: usize,
        began: Instant,
        deadline: &mut Deadline,
    ) -> Result<(), CampaignError> {
        if self.command.control.is_none() {
            self.problem(format!(
                "scenario {}: strict mode needs the control library, which is not beside the command",
                progress.name
            ));
            return Ok(());
        }
        // Its parts are measured from here: the first host of a strict test is up at once.
        deadline.tests_run(Instant::now());
        while !deadline.is_over(Instant::now()) && !sys::interrupted() && !self.enough() {
            let round: Vec<usize> =
                (0..progress.tests.len()).filter(|index| progress.tests[*index].active()).collect();
            if round.is_empty() {
                break;
            }
            for (done, turn) in round.iter().enumerate() {
                let others = (round.len() - done) as u32;
                let until = match deadline.end() {
                    Some(end) => {
                        Some(Instant::now() + end.saturating_duration_since(Instant::now()) / others)
                    }
                    None if progress.tests[*turn].test.iterations.is_some() || round.len() == 1 => None,
                    None => Some(Instant::now() + TURN),
                };
                progress.turn = Some(*turn);
                let gone_on = self.run_hosts(progress, place, began, &mut Deadline::new(until, None))?;
                progress.turn = None;
                if !gone_on {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Hosts one after the other; false when they come to nothing.
    fn run_hosts(
        &mut self,
        progress: &mut Progress,
        place: usize,
        began: Instant,
        deadline: &mut Deadline,
    ) -> Result<bool, CampaignError> {
        let mut fruitless = 0;
        while progress.any_active() && !sys::interrupted() && !deadline.is_over(Instant::now()) {
            if self.enough() {
                break;
            }
            let before = progress.reached();
            let started = Instant::now();
            let mut session = self.start(progress)?;
            let end = self.attend(&mut session, progress, place, began, deadline)?;
            self.end_randomizer(&mut session, progress);
            progress.account(&session.assignment, session.host.layout());
            if let Some((region, test)) = session.region.as_ref().zip(progress.current_strict()) {
                test.account(region);
                test.spent += started.elapsed();
            }
            self.campaign.record.scenarios[place] = progress.record(began.elapsed(), &self.clock, None, None);
            drop(session);
            let after = progress.reached();
            fruitless = if after > before { 0 } else { fruitless + 1 };
            let (most, how) = match end {
                HostEnd::Lost => (FRUITLESS_HOSTS, "died"),
                HostEnd::InOrder => (FRUITLESS_HOSTS, "ended"),
                HostEnd::Killed => (FRUITLESS_KILLS, "were killed from outside"),
            };
            if fruitless >= most {
                let name = &progress.name;
                self.problem(format!(
                    "scenario {name}: given up, {fruitless} hosts in a row {how} before one iteration"
                ));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs each test alone for a moment that may have left something behind: what it leaves then is its own. What no
    /// test leaves alone is recorded as left by all of them together.
    fn attribute_leftovers(&mut self, progress: &Progress) -> Result<(), CampaignError> {
        let open = std::mem::take(&mut self.unattributed);
        let mut candidates: Vec<usize> = open.iter().flat_map(|found| found.among.iter().copied()).collect();
        candidates.sort_unstable();
        candidates.dedup();
        let before = self.failures.total_of(Kind::Leak);
        let until = Instant::now() + ALONE_TOGETHER;
        for test in candidates.into_iter().map(|index| &progress.tests[index]) {
            if sys::interrupted() || Instant::now() >= until {
                break;
            }
            // What a pot leaves is left by one of its tests, and these have their turn.
            if test.retired.is_none() && test.test.leaks && test.test.combination.is_none() {
                let began = Instant::now();
                let mut deadline = Deadline::new(Some(until), Some(ALONE));
                self.run_to_the_end(&mut progress.alone(test), began, &mut deadline)?;
            }
        }
        let attributed = self.failures.total_of(Kind::Leak) > before;
        for Unattributed { draft, .. } in open {
            match (attributed, draft.shelved) {
                (true, Some(shelved)) => self.failures.discard(shelved)?,
                (true, None) => {}
                (false, shelved) => self.keep(draft.finding, shelved, |_| Err(GONE.to_owned()))?,
            }
        }
        Ok(())
    }

    fn start(&mut self, progress: &mut Progress) -> Result<Session, CampaignError> {
        let assignment = progress.assign();
        let task = HostTask {
            seed: self.campaign.record.seed,
            plugins: assignment.plugins.clone(),
            tests: assignment.plans.clone(),
            keep_when_orphaned: self.options.keep_hung,
            strict: progress.is_strict(),
        };
        let region = match progress.current_strict() {
            Some(test) => Some(test.prepare().map_err(|error| {
                CampaignError::Start(format!("cannot make the memory that a strict host shares: {error}"))
            })?),
            None => None,
        };
        let watched = assignment.tests.iter().any(|index| progress.tests[*index].test.leaks);
        let sampling = self.options.heap_sampling.filter(|_| watched);
        let host = self.command.start(task, &self.clock, &self.log, sampling, region.as_ref())?;
        self.campaign.record.hosts += 1;
        let of_test = assignment.tests.iter().map(|index| progress.tests[*index].test.leaks).collect();
        let leaks = watched.then(|| LeakWatch::new(&self.options.leaks, of_test));
        Ok(Session {
            randomizer: None,
            host,
            assignment,
            suspects: Vec::new(),
            leaks,
            cancelled_at: None,
            housekept: Instant::now(),
            loading: (0, Instant::now()),
            region,
            started: Instant::now(),
            tests_over: None,
            released: None,
        })
    }

    /// Attends to one host until it is gone.
    fn attend(
        &mut self,
        session: &mut Session,
        progress: &mut Progress,
        place: usize,
        began: Instant,
        deadline: &mut Deadline,
    ) -> Result<HostEnd, CampaignError> {
        loop {
            if HostPhase::load(&session.host.layout().header.phase) >= HostPhase::Running {
                deadline.tests_run(Instant::now());
            }
            let bell = session.host.layout().header.doorbell.load(Ordering::Acquire);
            // Asked before the records are read: a record filled before the host died is then always seen.
            let status = session.host.ended();
            self.take_events(session, progress);
            if self.take_failures(session, progress)? {
                self.record_undecided(session, progress)?;
                self.kill(session, progress);
                return Ok(HostEnd::Lost);
            }
            if self.take_verdict(session, progress)? {
                self.kill(session, progress);
                return Ok(HostEnd::Lost);
            }
            if let Some(status) = status {
                if HostPhase::load(&session.host.layout().header.phase) == HostPhase::Left {
                    // Nothing that is late keeps a host from ending in order: it all came back.
                    for suspect in std::mem::take(&mut session.suspects) {
                        let draft = suspect.into_draft(true, &self.investigator);
                        self.record(session, progress, draft)?;
                    }
                    return Ok(HostEnd::InOrder);
                }
                if let Some(randomizer) = &mut session.randomizer {
                    // Its log is whole then.
                    randomizer.await_end();
                }
                let draft =
                    self.investigator.vanished(&Scene::of(session, progress, self.clock, &self.log), status);
                self.record(session, progress, draft)?;
                self.record_undecided(session, progress)?;
                if sys::was_killed(status) {
                    return Ok(HostEnd::Killed);
                }
                self.refuse_what_was_loading(session, progress, "died");
                return Ok(HostEnd::Lost);
            }
            self.tend_randomizer(session, progress);
            self.accompany(session, progress)?;
            if self.take_hangs(session, progress)? {
                return Ok(HostEnd::Lost);
            }
            if self.ends_too_slowly(session) {
                self.kill(session, progress);
                return Ok(HostEnd::Lost);
            }
            if session.housekept.elapsed() >= HOUSEKEEPING {
                session.housekept = Instant::now();
                self.housekeep(session, progress, place, began)?;
            }
            self.tick(session, progress);
            let over = deadline.is_over(Instant::now()) || sys::interrupted() || self.enough();
            if over && session.cancelled_at.is_none() {
                session.cancelled_at = Some(Instant::now());
                session.host.cancel();
            }
            session.host.wait_for_bell(bell, LOOK);
        }
    }

    /// Whether there are as many failures as were asked for.
    fn enough(&self) -> bool {
        self.options.stop_after_failures.is_some_and(|most| self.failures.total() >= most)
    }

    fn take_events(&mut self, session: &mut Session, progress: &mut Progress) {
        for event in session.host.drain_events() {
            match event {
                Event::TestRefused { test, reason } => {
                    let index = session.assignment.tests[test];
                    self.refuse(&mut progress.tests[index], &reason);
                }
                Event::PluginRefused { plugin, reason } => {
                    for (host_test, plan) in session.assignment.plans.iter().enumerate() {
                        if plan.plugin == plugin {
                            self.refuse(&mut progress.tests[session.assignment.tests[host_test]], &reason);
                        }
                    }
                }
                Event::Kinds { names } => session.assignment.kinds = names,
                Event::LeftBehind { .. } => {
                    if let Some(test) = progress.current_strict() {
                        test.left_behind += 1;
                    }
                }
                Event::Exhausted { .. } => {
                    if let Some(test) = progress.current_strict() {
                        test.exhausted = true;
                    }
                }
                Event::TestStarted { .. } | Event::Described { .. } => {}
            }
        }
    }

    fn refuse(&mut self, test: &mut super::scenario::TestProgress, reason: &str) {
        test.retired = Some(format!("cannot run: {reason}"));
        self.problem(format!("{}: test {}: {reason}", test.test.plugin.display(), test.test.name));
    }

    /// Something that was asked for did not run, or not as it should: told, and the campaign is not clean.
    pub(crate) fn problem(&mut self, text: String) {
        self.live.note(&text);
        if !self.campaign.record.problems.contains(&text) {
            self.campaign.record.problems.push(text);
        }
    }

    /// A host that died or hung while it was loading, creating or starting would do so again: that test does not run.
    fn refuse_what_was_loading(&mut self, session: &Session, progress: &mut Progress, how: &str) {
        let layout = session.host.layout();
        let phase = HostPhase::load(&layout.header.phase);
        for (host_test, plan) in session.assignment.plans.iter().enumerate() {
            let loading = phase == HostPhase::Loading
                && plan.plugin == layout.header.loading.load(Ordering::Acquire) as usize;
            let starting = phase == HostPhase::Starting
                && matches!(
                    TestPhase::load(&layout.tests[host_test].phase),
                    TestPhase::Creating | TestPhase::Starting
                );
            // A container is starting while one of its tests is, and can do without it.
            let inside = |other: usize| {
                session.assignment.plans[other]
                    .contained
                    .as_ref()
                    .is_some_and(|inside| inside.container == host_test)
                    && matches!(
                        TestPhase::load(&layout.tests[other].phase),
                        TestPhase::Creating | TestPhase::Starting
                    )
            };
            let starting = starting && !session.assignment.contained().any(inside);
            if loading || starting {
                let what = if loading { "loading the plugin" } else { "starting the test" };
                let what = format!("the host {how} while {what}");
                self.refuse(&mut progress.tests[session.assignment.tests[host_test]], &what);
            }
        }
    }

    /// Looks at the failures that the host handed over. True when the host cannot go on.
    fn take_failures(
        &mut self,
        session: &mut Session,
        progress: &mut Progress,
    ) -> Result<bool, CampaignError> {
        if session.host.layout().pending().next().is_none() {
            return Ok(false);
        }
        let _quiet = self.quiet(session, progress);
        for pending in session.host.layout().pending() {
            let received = &pending.failure;
            let scene = Scene::of(session, progress, self.clock, &self.log);
            let ends = received.sort.ends_the_host() || session.region.is_some();
            let draft = if received.sort.ends_the_host() {
                self.investigator.fatal(&scene, received)
            } else {
                self.investigator.reported(&scene, received, |signature| self.failures.keep(signature))
            };
            self.record(session, progress, draft)?;
            if ends {
                self.refuse_what_was_loading(session, progress, "died");
                return Ok(true);
            }
            if self.enough() {
                session.host.cancel();
            }
            pending.release();
        }
        Ok(false)
    }

    /// Records a finding and, when it is the test's last permitted one, retires the test.
    pub(super) fn record(
        &mut self,
        session: &Session,
        progress: &mut Progress,
        draft: Draft,
    ) -> Result<(), CampaignError> {
        if session.region.is_some() {
            return self.record_strict(session, progress, draft);
        }
        let Draft { finding, crash, test, alive, shelved } = draft;
        let mut lost_log = Ok(());
        self.keep(finding, shelved, |path| {
            lost_log = Self::keep_randomizer_log(session, path);
            if alive { dump(session.host.pid(), crash.as_ref(), path) } else { Err(GONE.to_owned()) }
        })?;
        if let Err(reason) = lost_log {
            self.problem(reason);
        }
        self.count_failure(session, progress, test);
        Ok(())
    }

    /// Counts a failure of a test and retires the test when it is its last permitted one.
    pub(super) fn count_failure(&mut self, session: &Session, progress: &mut Progress, test: Option<usize>) {
        if let Some(host_test) = test {
            let test = &mut progress.tests[session.assignment.tests[host_test]];
            test.failures += 1;
            if test.test.max_failures > 0 && test.failures >= test.test.max_failures && test.retired.is_none()
            {
                let after = format!("retired after {}", plural(test.failures, "failure"));
                self.live.note(&format!("{} is {after} (max-failures); the others go on", test.test.name));
                test.retired = Some(after);
                session.host.cancel_test(host_test);
            }
        }
    }

    /// Puts a finding on disk and tells about it when it is new.
    pub(super) fn keep(
        &mut self,
        finding: Finding,
        shelved: Option<Shelved>,
        dump: impl FnOnce(&Path) -> Result<usize, String>,
    ) -> Result<(), CampaignError> {
        self.keep_with(finding, shelved, dump, || {})
    }

    /// The same, with something to do before anybody is told.
    pub(super) fn keep_with(
        &mut self,
        finding: Finding,
        shelved: Option<Shelved>,
        dump: impl FnOnce(&Path) -> Result<usize, String>,
        before: impl FnOnce(),
    ) -> Result<(), CampaignError> {
        let signature = finding.signature.id.clone();
        let recorded = match shelved {
            Some(shelved) => self.failures.record_shelved(finding, shelved)?,
            None => self.failures.record(finding, dump)?,
        };
        before();
        if recorded.new
            && let Some(entry) =
                self.failures.entries().into_iter().find(|entry| entry.signature.id == signature)
        {
            self.live.failure(entry, &self.failures.folder_of(&signature));
        }
        Ok(())
    }

    /// Puts the evidence of a finding that is not decided yet on disk.
    fn shelve(&mut self, session: &Session, draft: &mut Draft) -> Result<(), CampaignError> {
        let mut lost_log = Ok(());
        draft.shelved = self.failures.shelve(&draft.finding, |path| {
            lost_log = Self::keep_randomizer_log(session, path);
            dump(session.host.pid(), draft.crash.as_ref(), path)
        })?;
        if let Err(reason) = lost_log {
            self.problem(reason);
        }
        Ok(())
    }

    /// Looks for what is late. True when the host was given up.
    fn take_hangs(&mut self, session: &mut Session, progress: &mut Progress) -> Result<bool, CampaignError> {
        let layout = session.host.layout();
        let mut overdue =
            find_overdue(layout, &session.assignment.limits, session.assignment.slots.len(), &self.clock);
        overdue.extend(late_loading(&session.host, &session.assignment, &mut session.loading));
        let mut decided = Vec::new();
        for verdict in hang::settle(&mut session.suspects, layout, Instant::now()) {
            match verdict {
                Verdict::CameBack(suspect) => decided.push((suspect, true)),
                Verdict::Stuck(suspect) => decided.push((suspect, false)),
            }
        }
        let mut stuck = false;
        for (suspect, came_back) in decided {
            let draft = suspect.into_draft(came_back, &self.investigator);
            self.record(session, progress, draft)?;
            stuck |= !came_back;
        }
        if stuck {
            self.record_undecided(session, progress)?;
            self.refuse_what_was_loading(session, progress, "hung");
            self.give_up(session, progress);
            return Ok(true);
        }
        // Workers of one test that are late together are one hang.
        let fresh: Vec<Overdue> = overdue
            .into_iter()
            .filter(|late| !session.suspects.iter().any(|suspect| suspect.covers(late)))
            .collect();
        let Some(first) = fresh.first() else { return Ok(false) };
        let test = hang::test_of(first);
        let limit = session.assignment.limits[test].hang;
        let _quiet = self.quiet(session, progress);
        if session.released.is_some_and(|at| at.elapsed() < limit) {
            // Held by a randomizer that did not let go: it gets its time anew.
            return Ok(false);
        }
        let late: Vec<Overdue> = fresh.iter().copied().filter(|late| hang::test_of(late) == test).collect();
        let scene = Scene::of(session, progress, self.clock, &self.log);
        let grace =
            progress.tests[session.assignment.tests[test]].test.hang_timeout.min(self.options.most_grace);
        let (mut draft, decision) = self.investigator.hang(&scene, &late, self.campaign.record.seed, grace);
        if decision.certain {
            self.record(session, progress, draft)?;
            self.record_undecided(session, progress)?;
            self.refuse_what_was_loading(session, progress, "hung");
            self.give_up(session, progress);
            return Ok(true);
        }
        self.live.note(&format!("{}: {} (watching whether it comes back)", draft.name(), draft.finding.what));
        self.shelve(session, &mut draft)?;
        session.suspects.push(Suspect::new(draft, late, Instant::now() + grace));
        Ok(false)
    }

    /// Whether the host stays although every test is over: then something that belongs to no test keeps it.
    fn ends_too_slowly(&mut self, session: &mut Session) -> bool {
        let layout = session.host.layout();
        let is_over = |test: usize| {
            matches!(TestPhase::load(&layout.tests[test].phase), TestPhase::Ended | TestPhase::Refused)
        };
        if !(0..session.assignment.plans.len()).all(is_over) {
            return false;
        }
        let since = *session.tests_over.get_or_insert_with(Instant::now);
        let limit = session.assignment.limits.iter().map(|limits| limits.cancel).max().unwrap_or_default();
        let late = since.elapsed() > limit.max(LEAST_TIME_TO_END);
        if late {
            self.problem("a host did not end although all of its tests had: it was killed".to_owned());
        }
        late
    }

    /// A host that is lost takes its suspects with it: what their evidence says is all that will be known.
    fn record_undecided(
        &mut self,
        session: &mut Session,
        progress: &mut Progress,
    ) -> Result<(), CampaignError> {
        for suspect in std::mem::take(&mut session.suspects) {
            self.record(session, progress, suspect.into_undecided())?;
        }
        Ok(())
    }

    /// Ends a hung host, or leaves it for a debugger.
    fn give_up(&mut self, session: &mut Session, progress: &mut Progress) {
        if self.options.keep_hung {
            self.end_randomizer(session, progress);
            let pid = session.host.keep();
            self.kept_hosts.push(pid);
            self.live.note(&format!("process {pid} is kept: attach with `gdb -p {pid}`"));
        } else {
            self.kill(session, progress);
        }
    }

    /// Kills a host. Its randomizer ends before: waiting for a traced process is waiting for its tracer.
    fn kill(&mut self, session: &mut Session, progress: &mut Progress) {
        self.end_randomizer(session, progress);
        session.host.kill();
    }

    fn housekeep(
        &mut self,
        session: &mut Session,
        progress: &mut Progress,
        place: usize,
        began: Instant,
    ) -> Result<(), CampaignError> {
        let running = Some((&session.assignment, session.host.layout()));
        let region = session.region.as_ref().map(|region| (region, session.started.elapsed()));
        self.campaign.record.scenarios[place] =
            progress.record(began.elapsed(), &self.clock, running, region);
        self.campaign.record.failures = self.failures.total();
        self.campaign.record.signatures = self.failures.signatures() as u64;
        self.live.tests(&self.campaign.record.scenarios[place].tests);
        self.averages.learn(&self.campaign.record.scenarios[place]);
        self.averages.save()?;
        self.failures.flush()?;
        self.campaign.save()?;
        if let Some(problem) = self.log.take_problem() {
            self.problem(format!("{problem}; the host's output is no longer kept"));
        }
        if session.cancelled_at.is_none() && session.suspects.is_empty() {
            let findings = match &mut session.leaks {
                Some(leaks) => leaks.look(&session.host, &session.assignment),
                None => Vec::new(),
            };
            for finding in findings {
                self.take_leak(session, progress, finding)?;
            }
        }
        Ok(())
    }

    /// Records a leak, or puts it aside until it is known whose it is.
    fn take_leak(
        &mut self,
        session: &mut Session,
        progress: &mut Progress,
        seen: LeakSeen,
    ) -> Result<(), CampaignError> {
        let _quiet = self.quiet(session, progress);
        let scene = Scene::of(session, progress, self.clock, &self.log);
        let mut draft = self.investigator.leak(&scene, seen);
        if draft.test.is_some() {
            return self.record(session, progress, draft);
        }
        self.shelve(session, &mut draft)?;
        self.unattributed.push(Unattributed { draft, among: session.assignment.tests.clone() });
        Ok(())
    }

    /// Notes what there is before the first test and what is left after the last, and lets the host go on.
    fn accompany(&mut self, session: &mut Session, progress: &mut Progress) -> Result<(), CampaignError> {
        match HostPhase::load(&session.host.layout().header.phase) {
            HostPhase::Starting if session.host.layout().header.go.load(Ordering::Relaxed) == 0 => {
                if !Self::may_begin(session) {
                    return Ok(());
                }
                self.investigator.note_code(session.host.pid());
                let mut blind = false;
                if let Some(leaks) = &mut session.leaks {
                    leaks.note_beginning(&session.host);
                    blind = leaks.is_blind(&session.host);
                }
                if blind {
                    self.problem(
                        "memory leaks cannot be seen: the control library was not loaded into the host"
                            .to_owned(),
                    );
                }
                session.host.go();
            }
            HostPhase::Ended if Command::load(&session.host.layout().header.command) != Command::Leave => {
                let left =
                    session.leaks.as_ref().map_or_else(Vec::new, |leaks| leaks.leftovers(&session.host));
                for seen in left {
                    self.take_leak(session, progress, seen)?;
                }
                session.host.leave();
            }
            _ => {}
        }
        Ok(())
    }

    fn tick(&mut self, session: &Session, progress: &Progress) {
        let layout = session.host.layout();
        let now = self.clock.now();
        let slowest = session
            .assignment
            .slots
            .iter()
            .enumerate()
            .filter(|(slot, _)| WorkerState::load(&layout.workers[*slot].state) == WorkerState::Running)
            .map(|(slot, (test, worker))| {
                let entered = Ticks(layout.workers[slot].entered_at.load(Ordering::Relaxed));
                (now.since(entered), test, worker)
            })
            .max()
            .map(|(ticks, test, worker)| {
                (format!("{}#{worker}", session.assignment.plans[*test].name), self.clock.duration(ticks))
            })
            .filter(|(_, time)| *time >= Duration::from_millis(100));
        let running: u64 =
            progress.totals(Some((&session.assignment, layout))).iter().map(|totals| totals.iterations).sum();
        self.live.tick(&Tick {
            elapsed: self.began.elapsed(),
            randomizer: progress.disturbance.as_ref().map(Disturbance::record),
            scenario: progress.name.clone(),
            strict: progress.is_strict(),
            iterations: self.earlier_iterations + running,
            failures: self.failures.total(),
            signatures: self.failures.signatures(),
            slowest,
        });
    }
}

/// Whether the plugin that is being loaded takes longer than any of its tests may take to start.
fn late_loading(
    host: &HostProcess,
    assignment: &Assignment,
    loading: &mut (u32, Instant),
) -> Option<Overdue> {
    let header = &host.layout().header;
    let plugin = header.loading.load(Ordering::Acquire);
    if HostPhase::load(&header.phase) > HostPhase::Loading {
        return None;
    }
    if loading.0 != plugin {
        *loading = (plugin, Instant::now());
    }
    let since = loading.1.elapsed();
    let of_plugin = |test: &usize| assignment.plans[*test].plugin == plugin as usize;
    let tests: Vec<usize> = (0..assignment.plans.len()).filter(of_plugin).collect();
    let limit = tests.iter().map(|test| assignment.limits[*test].start).max()?;
    (since > limit).then(|| Overdue::Loading { test: tests[0], plugin, tid: host.pid(), since })
}

/// Writes a dump and returns its number of threads.
fn dump(pid: u32, crash: Option<&CrashContext>, path: &Path) -> Result<usize, String> {
    waylay_evidence::minidump(ProcessId(pid), path, crash, &DumpLimits::default())
        .map(|info| info.threads)
        .map_err(|error| error.to_string())
}
