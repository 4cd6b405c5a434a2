//! Attends to one host: starts it, takes in what it says, does and fails to do, until it is gone.
//!
//! Attending never waits for the host without a limit; whatever the host does not do in time is done to it.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use waylay_host::event::Event;
use waylay_page::{HostPhase, TestPhase, Ticks, WorkerState};

use super::CampaignError;
use super::assignment::Assignment;
use super::deadline::Deadline;
use super::disturbance::Disturbance;
use super::hang::{self, Outcome, Suspect};
use super::leaks::LeakWatch;
use super::patience::Patience;
use super::progress::{Progress, TestProgress};
use super::scene::Scene;
use super::session::Session;
use super::supervisor::Supervisor;
use crate::host::{Contradiction, HostProcess, HostTask, Overdue, find_overdue};
use crate::interrupt;
use crate::report::Tick;
use crate::sys;

/// Longest time between two looks at a host. A hang is seen at most this much after its limit.
const LOOK: Duration = Duration::from_millis(20);
/// How often counters are written to disk and leaks looked for.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// A host that has ended its tests gets this long to end, at least: it waits for us to look at what they left.
const LEAST_TIME_TO_END: Duration = Duration::from_secs(10);
/// How one host ended.
pub(super) enum HostEnd {
    /// In order: everything was cancelled and ended.
    InOrder,
    /// It died or was killed; what was left can go on in the next host.
    Lost,
    /// Somebody killed it, or the kernel did; that says nothing about what was being loaded.
    Killed,
}

impl Supervisor<'_> {
    pub(super) fn start(&mut self, progress: &mut Progress) -> Result<Session, CampaignError> {
        let assignment = progress.assign();
        let task = HostTask {
            seed: self.campaign.record.seed,
            plugins: assignment.plugins.clone(),
            tests: assignment.plans.clone(),
            keep_when_orphaned: self.options.keep_hung,
            strict: progress.is_strict(),
            trial: None,
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
        let patience = Patience::new(&assignment, self.options.most_grace);
        Ok(Session {
            randomizer: None,
            host,
            assignment,
            suspects: Vec::new(),
            leaks,
            cancelled_at: None,
            loading: (0, Instant::now()),
            region,
            started: Instant::now(),
            tests_over: None,
            released: Cell::new(None),
            patience,
            left_behind: false,
            corrupted: false,
        })
    }

    /// Attends to one host until it is gone.
    pub(super) fn attend(
        &mut self,
        session: &mut Session,
        progress: &mut Progress,
        place: usize,
        began: Instant,
        deadline: &mut Deadline,
    ) -> HostEnd {
        loop {
            if HostPhase::load(&session.host.layout().header.phase) >= HostPhase::Running {
                deadline.tests_run(Instant::now());
            }
            let bell = session.host.layout().header.doorbell.load(Ordering::Acquire);
            // Asked before the records are read: a record filled before the host died is then always seen.
            let status = session.host.ended();
            let seen = self.look(session, progress);
            if self.take_failures(session, progress) {
                self.record_undecided(session, progress);
                if let Err(contradiction) = seen {
                    self.take_corruption(session, progress, &contradiction, status.is_none());
                }
                self.kill(session, progress);
                return HostEnd::Lost;
            }
            if let Err(contradiction) = seen {
                self.take_corruption(session, progress, &contradiction, status.is_none());
                self.record_undecided(session, progress);
                self.kill(session, progress);
                return HostEnd::Lost;
            }
            if self.take_verdict(session, progress) {
                self.kill(session, progress);
                return HostEnd::Lost;
            }
            if let Some(status) = status {
                if let Err(contradiction) = session.host.left_as_it_says(status) {
                    session.corrupted = true;
                    self.take_corruption(session, progress, &contradiction, false);
                    self.record_undecided(session, progress);
                    self.kill(session, progress);
                    return HostEnd::Lost;
                }
                if HostPhase::load(&session.host.layout().header.phase) == HostPhase::Left {
                    // Nothing that is late keeps a host from ending in order: it all came back.
                    for suspect in std::mem::take(&mut session.suspects) {
                        let draft = suspect.into_draft(true);
                        self.record(session, progress, draft);
                    }
                    return HostEnd::InOrder;
                }
                if let Some(randomizer) = &mut session.randomizer {
                    // Its log is whole then.
                    randomizer.await_end();
                }
                let draft =
                    self.investigator.vanished(&Scene::of(session, progress, self.clock, &self.log), status);
                self.record(session, progress, draft);
                self.record_undecided(session, progress);
                if sys::was_killed(status) {
                    return HostEnd::Killed;
                }
                self.refuse_what_was_loading(session, progress, "died");
                return HostEnd::Lost;
            }
            self.tend_randomizer(session, progress);
            self.accompany(session, progress);
            if self.take_hangs(session, progress) {
                return HostEnd::Lost;
            }
            if self.ends_too_slowly(session) {
                self.kill(session, progress);
                return HostEnd::Lost;
            }
            if self.housekeeping_is_due() {
                self.housekeep(session, progress, place, began);
            }
            if let Some(signal) = waylay_interrupt::take_disregarded().map(sys::signal_name) {
                self.problem(format!("a test sent {signal} to Waylay itself, which goes on"));
            }
            self.tick(session, progress);
            self.show_what_runs(session, progress);
            let over = deadline.is_over(Instant::now()) || interrupt::requested() || self.enough();
            if over && session.cancelled_at.is_none() {
                session.cancelled_at = Some(Instant::now());
                session.host.cancel();
            }
            session.host.wait_for_bell(bell, LOOK);
        }
    }

    /// Looks at everything that the host shows and says, and checks it like a stranger's words.
    fn look(&mut self, session: &mut Session, progress: &mut Progress) -> Result<(), Contradiction> {
        let seen = session.host.observe().and_then(|()| match &session.region {
            Some(region) => region.observe(session.started.elapsed()).map_err(Contradiction),
            None => Ok(()),
        });
        let seen = seen.and_then(|()| session.patience.look(session.host.believed(), session.cancelled_at));
        session.corrupted |= seen.is_err();
        let heard = self.take_events(session, progress);
        session.corrupted |= heard.is_err();
        seen.and(heard)
    }

    fn take_events(&mut self, session: &mut Session, progress: &mut Progress) -> Result<(), Contradiction> {
        for event in session.host.drain_events() {
            session.check(&event, progress).map_err(Contradiction)?;
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
                    session.left_behind = true;
                    if let Some(test) = progress.current_strict() {
                        test.left_behind += 1;
                    }
                }
                Event::Exhausted { .. } => {
                    if let Some(test) = progress.current_strict() {
                        test.exhausted = true;
                    }
                }
                Event::TestStarted { .. } | Event::Described { .. } | Event::Failed { .. } => {}
            }
        }
        Ok(())
    }

    fn refuse(&mut self, test: &mut TestProgress, reason: &str) {
        if test.retired.is_some() {
            // Said once, it is said often enough: a test can say anything, as often as it likes.
            return;
        }
        test.retired = Some(format!("cannot run: {reason}"));
        self.problem(format!("{}: test {}: {reason}", test.test.plugin.display(), test.test.name));
    }

    /// A host that died or hung while it was loading, creating or starting would do so again: that test does not run.
    fn refuse_what_was_loading(&mut self, session: &Session, progress: &mut Progress, how: &str) {
        let layout = session.shown();
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
    fn take_failures(&mut self, session: &mut Session, progress: &mut Progress) -> bool {
        if session.host.layout().pending().next().is_none() {
            return false;
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
            self.record(session, progress, draft);
            if ends {
                self.refuse_what_was_loading(session, progress, "died");
                return true;
            }
            if self.enough() {
                session.host.cancel();
            }
            pending.release();
        }
        false
    }

    /// Looks for what is late. True when the host was given up.
    fn take_hangs(&mut self, session: &mut Session, progress: &mut Progress) -> bool {
        let layout = session.host.layout();
        let mut overdue =
            find_overdue(layout, &session.assignment.limits, session.assignment.slots.len(), &self.clock);
        overdue.extend(late_loading(&session.host, &session.assignment, &mut session.loading));
        let mut decided = Vec::new();
        for outcome in hang::settle(&mut session.suspects, layout, Instant::now()) {
            match outcome {
                Outcome::CameBack(suspect) => decided.push((suspect, true)),
                Outcome::Stuck(suspect) => decided.push((suspect, false)),
            }
        }
        let mut stuck = false;
        for (suspect, came_back) in decided {
            let draft = suspect.into_draft(came_back);
            self.record(session, progress, draft);
            stuck |= !came_back;
        }
        if stuck {
            self.record_undecided(session, progress);
            self.refuse_what_was_loading(session, progress, "hung");
            self.give_up(session, progress);
            return true;
        }
        // Workers of one test that are late together are one hang.
        let fresh: Vec<Overdue> = overdue
            .into_iter()
            .filter(|late| !session.suspects.iter().any(|suspect| suspect.covers(late)))
            .collect();
        let Some(first) = fresh.first() else { return false };
        let test = hang::test_of(first);
        let limit = session.assignment.limits[test].hang;
        let _quiet = self.quiet(session, progress);
        if session.released.get().is_some_and(|at| at.elapsed() < limit) {
            // Held by a randomizer that did not let go: it gets its time anew.
            return false;
        }
        if self.take_wait(session, progress) {
            self.kill(session, progress);
            return true;
        }
        let late: Vec<Overdue> = fresh.iter().copied().filter(|late| hang::test_of(late) == test).collect();
        let scene = Scene::of(session, progress, self.clock, &self.log);
        let grace =
            progress.tests[session.assignment.tests[test]].test.hang_timeout.min(self.options.most_grace);
        let (mut draft, decision) = self.investigator.hang(&scene, &late, self.campaign.record.seed, grace);
        if decision.certain {
            self.record(session, progress, draft);
            self.record_undecided(session, progress);
            self.refuse_what_was_loading(session, progress, "hung");
            self.give_up(session, progress);
            return true;
        }
        self.live.note(&format!("{}: {} (watching whether it comes back)", draft.name(), draft.finding.what));
        self.shelve(session, &mut draft);
        session.suspects.push(Suspect::new(draft, late, Instant::now() + grace));
        false
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

    /// Ends a hung host, or leaves it for a debugger.
    fn give_up(&mut self, session: &mut Session, progress: &mut Progress) {
        if self.options.keep_hung {
            self.end_randomizer(session, progress);
            let pid = session.host.keep();
            self.kept_hosts.push(pid);
            self.live.note(&format!("process {pid} is kept: attach with `{}`", sys::attach_command(pid)));
        } else {
            self.kill(session, progress);
        }
    }

    /// Kills a host. Its randomizer ends before: waiting for a traced process is waiting for its tracer.
    fn kill(&mut self, session: &mut Session, progress: &mut Progress) {
        self.end_randomizer(session, progress);
        session.host.kill();
    }

    /// Once a second, however short the lives of hosts are.
    pub(super) fn housekeeping_is_due(&mut self) -> bool {
        let due = self.housekept.elapsed() >= HOUSEKEEPING;
        if due {
            self.housekept = Instant::now();
        }
        due
    }

    fn housekeep(&mut self, session: &mut Session, progress: &mut Progress, place: usize, began: Instant) {
        let running = Some((&session.assignment, session.host.believed()));
        let region = session.region.as_ref().map(|region| (region, session.started.elapsed()));
        self.campaign.record.scenarios[place] =
            progress.record(began.elapsed(), &self.clock, running, region);
        self.live.tests(&self.campaign.record.scenarios[place].tests);
        self.averages.learn(&self.campaign.record.scenarios[place]);
        self.averages.save();
        self.put_down();
        if let Some(problem) = self.log.take_problem() {
            self.live.note(&format!("{problem}; what hosts print meanwhile is not kept"));
        }
        if session.cancelled_at.is_none() && session.suspects.is_empty() {
            let findings = match &mut session.leaks {
                Some(leaks) => leaks.look(&session.host, &session.assignment),
                None => Vec::new(),
            };
            for finding in findings {
                self.take_leak(session, progress, finding);
            }
        }
    }

    /// Notes what there is before the first test and what is left after the last, and lets the host go on.
    fn accompany(&mut self, session: &mut Session, progress: &mut Progress) {
        match HostPhase::load(&session.host.layout().header.phase) {
            HostPhase::Starting if !session.host.may_go() => {
                if !Self::may_begin(session) {
                    return;
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
            HostPhase::Ended if !session.host.was_told_to_leave() => {
                let left =
                    session.leaks.as_ref().map_or_else(Vec::new, |leaks| leaks.leftovers(&session.host));
                for seen in left {
                    self.take_leak(session, progress, seen);
                }
                session.host.leave();
            }
            _ => {}
        }
    }

    fn tick(&mut self, session: &Session, progress: &Progress) {
        let layout = session.host.believed();
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
