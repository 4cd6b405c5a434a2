//! One worker: a fork server, and beside it, if that is asked for, a process whose runs are restored.

use std::collections::BTreeMap;
use std::time::Duration;

use waylay_control_protocol::{Ending, RunCopy, Settings, Stretch};
use waylay_schedule::{Focus, RunParameters, Said};

use crate::explorer::Plan;
use crate::observed::Observed;
use crate::oracle::{Verdict, judge};
use crate::recording::Conditions;
use crate::restart::{Experience, FAILING, Off, Restart, difference};
use crate::restored::{Answer, Order, Restored};
use crate::server::{Guide, RunError, Server};
use crate::streams::KEPT;
use crate::timings::{self, Stage};

/// Other places for the program's memory that are tried: a table that is ordered by addresses may happen to be the same.
const ELSEWHERE: u32 = 24;

/// A run as it was made, one way or the other.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) observed: Observed,
    pub(crate) verdict: Verdict,
    /// Of runs that failed, or were compared.
    pub(crate) schedule: Option<Vec<Stretch>>,
    pub(crate) conversation: Option<Vec<Said>>,
    pub(crate) conflicting: Vec<u64>,
}

/// A run to be made.
pub(crate) struct Wanted<'a> {
    pub(crate) settings: Settings,
    pub(crate) parameters: &'a RunParameters,
}

/// What came of a run that was to be restored.
enum Came {
    Made(Box<Made>),
    /// It was not made, and why.
    Back(String),
    /// What is shared was written over.
    Overwrote(String),
}

/// A worker.
#[derive(Debug)]
pub(crate) struct Worker<'a> {
    plan: &'a Plan,
    server: Server,
    restored: Option<Restored>,
    /// That process is wanted, and was not needed so far: the first runs are looked at, and those are forked. To start it takes a
    /// third of the time before the first run.
    unstarted: bool,
    /// The same for runs with accesses to what is handed over as steps, while others are made; or for the others, while these are.
    waiting: Option<Restored>,
    /// Which of the two sorts is made.
    handed: bool,
    /// Of the runs that are made now.
    conditions: Conditions,
    pub(crate) known: Experience,
    /// Failing restored runs that were compared, by kind.
    failing: BTreeMap<String, u64>,
}

impl<'a> Worker<'a> {
    /// Starts what is needed.
    pub(crate) fn start(plan: &'a Plan) -> Result<Worker<'a>, RunError> {
        let _stage = timings::within(Stage::Start);
        let server = Server::start(&plan.program, &plan.library, &plan.conditions)?;
        let mut known = Experience::default();
        if plan.restart != Restart::Fork {
            known.off = why_not(plan).map(|why| Off::Impossible(why.to_owned()));
        }
        let unstarted = plan.restart != Restart::Fork && known.off.is_none();
        let conditions = plan.conditions.clone();
        Ok(Worker {
            plan,
            server,
            restored: None,
            unstarted,
            waiting: None,
            handed: false,
            conditions,
            known,
            failing: BTreeMap::new(),
        })
    }

    /// The same, where it is known from before why runs are not restored.
    pub(crate) fn start_again(plan: &'a Plan, off: Option<Off>) -> Result<Worker<'a>, RunError> {
        let mut worker = match off {
            Some(_) => {
                let server = Server::start(&plan.program, &plan.library, &plan.conditions)?;
                let (known, conditions) = (Experience::default(), plan.conditions.clone());
                Worker {
                    plan,
                    server,
                    restored: None,
                    unstarted: false,
                    waiting: None,
                    handed: false,
                    conditions,
                    known,
                    failing: BTreeMap::new(),
                }
            }
            None => Worker::start(plan)?,
        };
        worker.known.off = worker.known.off.take().or(off);
        Ok(worker)
    }

    /// Gets ready for runs under these conditions. To be called by the thread that started the worker.
    /// `restorable`: some of these runs can be made from a snapshot.
    pub(crate) fn ready_for(&mut self, conditions: &Conditions, restorable: bool) -> Result<(), RunError> {
        if restorable && std::mem::take(&mut self.unstarted) {
            let plan = self.plan;
            let _stage = timings::within(Stage::Snapshot);
            match Restored::start(&plan.program, &plan.library, &plan.conditions) {
                Ok(started) => (self.restored, self.handed) = (Some(started), conditions.steps.handed),
                Err(error) => self.known.off = Some(Off::Impossible(error.to_string())),
            }
        }
        self.take_turns(conditions.steps.handed)?;
        self.restored.as_mut().map_or(Ok(()), |restored| restored.ready_for(conditions))
    }

    /// What is a step is part of a snapshot, and to take another one costs as much as a hundred runs. So each sort of runs has
    /// a process of its own.
    fn take_turns(&mut self, handed: bool) -> Result<(), RunError> {
        if handed != self.handed && self.restored.is_some() {
            let other = match self.waiting.take() {
                Some(other) => other,
                None => Restored::start(&self.plan.program, &self.plan.library, &self.plan.conditions)?,
            };
            self.waiting = self.restored.replace(other);
        }
        self.handed = handed;
        Ok(())
    }

    /// How often the program had to be started again.
    pub(crate) fn restarts(&self) -> u64 {
        self.server.restarts()
    }

    /// Whether several runs are made at once.
    pub(crate) fn is_restoring(&self) -> bool {
        self.restored.is_some()
    }

    /// The settings of a run. The sites that are steps are the same for all runs that are made with one call.
    pub(crate) fn settings(&mut self, conditions: &Conditions, run: u64) -> Settings {
        if let Some(restored) = &mut self.restored {
            restored.settings(conditions, self.plan.seed, run);
        }
        self.conditions.clone_from(conditions);
        self.server.settings(conditions, self.plan.seed, run)
    }

    /// Makes the runs, in order, and hands each over.
    pub(crate) fn make(
        &mut self,
        runs: &[Wanted<'_>],
        hand_over: &mut dyn FnMut(usize, Made),
    ) -> Result<(), RunError> {
        let mut made = 0;
        while made < runs.len() {
            let restorable = |run: &&Wanted<'_>| is_restorable(self.plan, run.settings.is_looked_at());
            let plain = runs[made..].iter().take_while(restorable).count();
            if plain > 0
                && let Some(mut restored) = self.restored.take()
            {
                let first = made;
                let group = &runs[first..first + plain];
                made +=
                    self.restore(&mut restored, group, &mut |index, run| hand_over(first + index, run))?;
                self.known.decide(self.plan.restart);
                self.restored = self.known.off.is_none().then_some(restored);
                if self.restored.is_none() {
                    self.waiting = None;
                }
            } else {
                hand_over(made, self.fork(&runs[made])?);
                made += 1;
            }
        }
        Ok(())
    }

    /// Makes runs from the snapshot as long as that works; returns how many were handed over.
    fn restore(
        &mut self,
        restored: &mut Restored,
        runs: &[Wanted<'_>],
        hand_over: &mut dyn FnMut(usize, Made),
    ) -> Result<usize, RunError> {
        let orders: Vec<Order> = runs
            .iter()
            .map(|run| (run.settings, serde_json::to_string(run.parameters).unwrap_or_default()))
            .collect();
        let before = restored.spent();
        let mut answers: Vec<Came> = Vec::with_capacity(runs.len());
        let expected = &self.plan.expected;
        let result = restored.run(&orders, |index, answer| {
            answers.truncate(index);
            answers.push(match answer {
                Answer::GivenBack(why) => Came::Back(why.to_owned()),
                Answer::Overwrote(why) => Came::Overwrote(why.to_owned()),
                Answer::Made(record) => {
                    let (told, output) = (record.told.told(), (record.stdout.clone(), record.stderr.clone()));
                    let observed = Observed::new(&told, record.status, output, None);
                    let verdict = judge(&observed, expected);
                    let keep = verdict != Verdict::Passed || self.known.compares(runs[index].settings.run);
                    Came::Made(Box::new(Made {
                        observed,
                        verdict,
                        schedule: keep.then(|| told.schedule.to_vec()),
                        conversation: heard(&runs[index].settings, told.notes),
                        conflicting: told.conflicting.iter().map(|site| site.0).collect(),
                    }))
                }
            });
        });
        let used = used(before, restored.spent()).filter(|_| !restored.was_fresh());
        let share = used.map(|used| used / answers.len().max(1) as u32);
        let mut count = 0;
        for (index, (answer, run)) in answers.into_iter().zip(runs).enumerate() {
            let made = match answer {
                Came::Overwrote(why) => {
                    self.known.off =
                        Some(Off::Impossible("the program writes over memory of ours".to_owned()));
                    let mut made = self.fork(run)?;
                    if made.observed.corrupted.is_none() {
                        // It did so once, and that is enough.
                        made.observed.corrupted = Some(why);
                        made.verdict = judge(&made.observed, &self.plan.expected);
                    }
                    made
                }
                _ if self.known.off.is_some() => self.fork(run)?,
                Came::Back(why) => {
                    self.known.note_given_back(&why);
                    self.fork(run)?
                }
                Came::Made(made) if made.observed.ending == Ending::Refused => {
                    return Err(RunError::Refused(made.observed.account.text()));
                }
                Came::Made(made) => {
                    self.known.note_restored(share);
                    if self.wants_comparison(&made, run) {
                        self.compare(*made, run, (restored, &orders[index]))?
                    } else {
                        *made
                    }
                }
            };
            hand_over(index, made);
            count += 1;
        }
        if let Err(why) = result {
            self.known.off.get_or_insert(Off::Impossible(why.to_string()));
        }
        Ok(count)
    }

    fn wants_comparison(&mut self, made: &Made, run: &Wanted<'_>) -> bool {
        if !repeats_elsewhere(run.parameters) {
            return false;
        }
        if let Verdict::Failed(failure) = &made.verdict {
            let seen = self.failing.entry(failure.key.clone()).or_default();
            *seen += 1;
            if *seen <= FAILING {
                return true;
            }
        }
        self.known.compares(run.settings.run)
    }

    /// Makes a restored run again by a fork. If they differ, the forked one counts.
    fn compare(
        &mut self,
        made: Made,
        run: &Wanted<'_>,
        (restored, order): (&mut Restored, &Order),
    ) -> Result<Made, RunError> {
        let forked = self.fork(run)?;
        self.known.compared += 1;
        let Some(what) = between(&made, &forked) else { return Ok(made) };
        let again = self.fork(run)?;
        let differs = between(&forked, &again).is_some();
        let what = format!("run {}: {what}", run.settings.run + 1);
        self.known.off = Some(match differs {
            true => Off::Unrepeatable(what),
            false if is_the_same_afresh(&made, restored, order) => Off::Addresses(what),
            false if self.depends_on_addresses(&forked, run) => Off::Addresses(what),
            false => Off::Wrong(what),
        });
        Ok(forked)
    }

    /// Whether the forked run is another one in a process whose memory lies elsewhere, as that of a process with threads in
    /// advance does.
    fn depends_on_addresses(&self, forked: &Made, run: &Wanted<'_>) -> bool {
        let plan = self.plan;
        (0..ELSEWHERE).any(|number| {
            let server = Server::start_elsewhere(&plan.program, &plan.library, &self.conditions, 3 * number);
            let Ok(mut server) = server else { return false };
            server.settings(&self.conditions, plan.seed, run.settings.run);
            let Ok(observed) = server.run(run.settings, Guide::Strategy(run.parameters)) else {
                return false;
            };
            let schedule = forked.schedule.as_deref().unwrap_or_default();
            let again = server.told.as_ref().map(RunCopy::told).map_or(&[][..], |told| told.schedule);
            difference((&forked.observed, schedule), (&observed, again)).is_some()
        })
    }

    /// One run in a process of its own.
    fn fork(&mut self, run: &Wanted<'_>) -> Result<Made, RunError> {
        let before = self.server.spent();
        let observed = self.server.run(run.settings, Guide::Strategy(run.parameters))?;
        self.known.note_forked(used(before, self.server.spent()));
        let verdict = judge(&observed, &self.plan.expected);
        let nothing = RunCopy::of_nothing();
        let told = self.server.told.as_ref().unwrap_or(&nothing).told();
        let keep = verdict != Verdict::Passed || self.restored_is_wanted();
        Ok(Made {
            observed,
            verdict,
            schedule: keep.then(|| told.schedule.to_vec()),
            conversation: heard(&run.settings, told.notes),
            conflicting: told.conflicting.iter().map(|site| site.0).collect(),
        })
    }

    fn restored_is_wanted(&self) -> bool {
        self.plan.restart != Restart::Fork && self.known.off.is_none()
    }
}

/// Processor time that a process used between two looks; unknown where it is not counted, or was started anew.
fn used(before: Option<Duration>, after: Option<Duration>) -> Option<Duration> {
    after?.checked_sub(before?)
}

/// Whether the run is the same as the first of a process in which nothing was ever put back. Then restoring did what it should,
/// and what differs from forked runs is the process: its memory lies elsewhere, because it has its threads in advance.
fn is_the_same_afresh(made: &Made, restored: &mut Restored, order: &Order) -> bool {
    let mut same = false;
    let ran = restored.run_afresh(order, |answer| {
        if let Answer::Made(record) = answer {
            let (told, output) = (record.told.told(), (record.stdout.clone(), record.stderr.clone()));
            let observed = Observed::new(&told, record.status, output, None);
            let schedule = made.schedule.as_deref().unwrap_or_default();
            same = difference((&made.observed, schedule), (&observed, told.schedule)).is_none();
        }
    });
    ran.is_ok() && same
}

/// Whether a run can be made from a snapshot. Runs that are looked at have their code changed while they go on, which is not undone.
pub(crate) fn is_restorable(plan: &Plan, looked_at: bool) -> bool {
    let run = &plan.conditions.run;
    !run.patch || !looked_at && !run.races
}

/// What makes restored runs impossible before anything is tried.
fn why_not(plan: &Plan) -> Option<&'static str> {
    if plan.conditions.run.baton {
        return Some("with --baton, threads cannot be put back");
    }
    if plan.program.isolated {
        return Some("with --isolate, every run has a folder of its own");
    }
    if plan.program.reference >= KEPT {
        return Some("the reference output is longer than what is kept of a restored run");
    }
    if plan.conditions.run.real_time {
        return Some("with --real-time, runs do not repeat");
    }
    None
}

/// Whether equal parameters mean the same in another process. The address of an object of the heap, or on a stack, does
/// not: libc's own blocks, of threads for instance, lie elsewhere in a process that has its threads in advance.
fn repeats_elsewhere(parameters: &RunParameters) -> bool {
    !matches!(parameters.focus, Some(Focus::Object(_)))
}

fn between(one: &Made, other: &Made) -> Option<&'static str> {
    let schedule = |made: &Made| made.schedule.clone().unwrap_or_default();
    difference((&one.observed, &schedule(one)), (&other.observed, &schedule(other)))
}

fn heard(settings: &Settings, notes: Option<&[waylay_control_protocol::Note]>) -> Option<Vec<Said>> {
    (settings.listen != 0).then(|| notes?.iter().map(|&note| Said::from_words(note)).collect())?
}
