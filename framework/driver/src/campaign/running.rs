//! Runs one scenario to its end: starts hosts, attends to them, and starts the next when one is lost.
//!
//! One thread does everything: it looks at the host whenever that rings, and at least every few milliseconds.

use std::time::{Duration, Instant};

use super::CampaignError;
use super::attending::HostEnd;
use super::deadline::Deadline;
use super::draft::{GONE, Unattributed};
use super::explaining::Explaining;
use super::progress::Progress;
use super::scenario::Scenario;
use super::supervisor::Supervisor;
use crate::failure::Kind;
use crate::interrupt;

/// After so many hosts in a row that died before they finished an iteration, the scenario is given up.
const FRUITLESS_HOSTS: u32 = 20;
/// After so many hosts in a row that were killed from outside, which says nothing about the tests, it is given up too.
const FRUITLESS_KILLS: u32 = 1000;
/// How long a test runs alone to see whether it leaves something behind, and all such tests of a scenario together.
const ALONE: Duration = Duration::from_secs(1);
const ALONE_TOGETHER: Duration = Duration::from_secs(30);
/// A strict test that would go on for ever lets the next one run after this time.
const TURN: Duration = Duration::from_secs(10);

/// Notes that a record keeps.
const MOST_NOTES: usize = 50;

impl Supervisor<'_> {
    /// Runs the scenario until `deadline`, until its tests are done, or until the user wants to stop.
    pub(crate) fn run(&mut self, scenario: Scenario, deadline: Option<Instant>) -> Result<(), CampaignError> {
        let began = Instant::now();
        let mut deadline = Deadline::new(deadline, scenario.duration);
        self.dumper.plan.size = scenario.dump;
        let mut progress = Progress::new(scenario, self.campaign.record.seed).with_clock(&self.clock);
        self.run_to_the_end(&mut progress, began, &mut deadline)?;
        self.attribute_leftovers(&progress)?;
        self.try_suspects(&progress)
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
            self.look_into_libraries(progress);
        } else {
            self.run_hosts(progress, place, began, deadline)?;
        }
        if let Some(problem) = progress.lacks_randomization() {
            self.problem(problem);
        }
        for problem in progress.unjudged() {
            self.problem(problem);
        }
        let iterations: u64 = progress.totals(None).iter().map(|totals| totals.iterations).sum();
        self.earlier_iterations += iterations;
        self.campaign.record.scenarios[place] = progress.record(began.elapsed(), &self.clock, None, None);
        self.averages.learn(&self.campaign.record.scenarios[place]);
        self.averages.save();
        self.put_down();
        Ok(())
    }

    /// Finds out which libraries of the system what is promised has to leave out, and where.
    fn look_into_libraries(&mut self, progress: &mut Progress) {
        let Some(examiner) = &mut self.examiner else { return };
        for test in progress.tests.iter_mut().filter_map(|test| test.strict.as_mut()) {
            if interrupt::requested() {
                return;
            }
            let conflicts = test.look().and_then(|look| examiner.conflicts(&look));
            conflicts.iter().for_each(|conflicts| test.leaves_out(conflicts));
        }
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
        progress.explaining = Explaining::within(deadline.room(Instant::now()));
        while !deadline.is_over(Instant::now()) && !interrupt::requested() && !self.enough() {
            let round: Vec<usize> = (0..progress.tests.len())
                .filter(|index| progress.tests[*index].strict.is_some() && progress.tests[*index].active())
                .collect();
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
                let before = progress.explaining.taken();
                let gone_on = self.run_hosts(progress, place, began, &mut deadline.of_turn(until))?;
                progress.turn = None;
                deadline.put_off(progress.explaining.taken() - before);
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
        while progress.any_active() && !interrupt::requested() && !deadline.is_over(Instant::now()) {
            if self.enough() {
                break;
            }
            let before = progress.reached();
            let (started, explained) = (Instant::now(), progress.explaining.taken());
            let mut session = self.start(progress)?;
            let end = self.attend(&mut session, progress, place, began, deadline);
            let explained = progress.explaining.taken() - explained;
            deadline.put_off(explained);
            self.end_randomizer(&mut session, progress);
            if !session.corrupted {
                // What it did until it was killed; an impossible last look changes nothing.
                let _ = session.host.observe();
            }
            progress.account(&session.assignment, session.host.believed());
            if let Some((region, test)) = session.region.as_ref().zip(progress.current_strict()) {
                if let Some(limits) = session.assignment.limits.first() {
                    let plan = session.assignment.schedule(self.campaign.record.seed, 0);
                    test.makes(plan, limits.hang);
                }
                test.account(region, session.corrupted);
                test.spent += started.elapsed().saturating_sub(explained);
                if test.is_hopeless() {
                    progress.retire("no schedule came to its end");
                }
            }
            self.campaign.record.scenarios[place] = progress.record(began.elapsed(), &self.clock, None, None);
            session.host.kill();
            for orphan in session.host.take_orphans() {
                let text = format!("a test left a process behind, which was ended: {orphan}");
                self.log.append(format!("waylay: {text}\n").as_bytes());
                self.live.note(&text);
                let notes = &mut self.campaign.record.notes;
                // One that does so in every iteration must not fill the record.
                if notes.len() < MOST_NOTES {
                    notes.push(text);
                }
            }
            drop(session);
            if self.housekeeping_is_due() {
                self.put_down();
            }
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
            if interrupt::requested() || Instant::now() >= until {
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
                (true, Some(shelved)) => self.failures.discard(shelved),
                (true, None) => {}
                (false, shelved) => self.keep(draft.finding, shelved, |_| Err(GONE.to_owned())),
            }
        }
        Ok(())
    }

    /// Runs each test alone for a moment of which one wrote over memory of ours: who does it again is recorded by name.
    fn try_suspects(&mut self, progress: &Progress) -> Result<(), CampaignError> {
        let mut suspects = std::mem::take(&mut self.suspected);
        suspects.sort_unstable();
        suspects.dedup();
        let until = Instant::now() + ALONE_TOGETHER;
        for test in suspects.into_iter().map(|index| &progress.tests[index]) {
            if interrupt::requested() || self.enough() || Instant::now() >= until {
                break;
            }
            // A pot without its tests does nothing.
            if test.test.combination.is_none() {
                let began = Instant::now();
                let mut deadline = Deadline::new(Some(until), Some(ALONE));
                self.run_to_the_end(&mut progress.alone(test), began, &mut deadline)?;
            }
        }
        self.suspected.clear();
        Ok(())
    }
}
