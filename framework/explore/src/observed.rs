//! What became of one run, as far as it can be seen from outside and in the region.

use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::race::Race;
use waylay_control_protocol::{Account, DelayedStore, Ending, RegionMap, RunCopy, Stretch, Told};
use waylay_schedule::conversation::{Said, impossible};
use waylay_schedule::{EventKind, Schedule, Segment, ThreadId};

use crate::sys::exit_status;

/// One run, when it is over.
#[derive(Clone, Debug)]
pub struct Observed {
    /// How its process ended.
    pub status: ExitStatus,
    /// How it ended as far as the library knows.
    pub ending: Ending,
    /// What it told about itself.
    pub account: Account,
    /// Choices made.
    pub steps: u64,
    /// Those that may count in another schedule, as far as its strategy promises something by their number.
    pub reach: u64,
    /// Choices that changed the running thread.
    pub switches: u64,
    /// Threads that took part; 0 when the run died before it could be said.
    pub threads: u32,
    /// Something outside the library's control took part.
    pub partly_controlled: bool,
    /// Nobody under control could run when it ended or was killed, and something else was awaited.
    pub awaits: bool,
    /// The step at which the run left the schedule that it was to follow.
    pub diverged: Option<u64>,
    /// It began: those that came before it in its process did not end that.
    pub reached: bool,
    /// The record of the schedule is incomplete.
    pub cut: bool,
    /// Plain accesses, if they were looked at.
    pub accesses: u64,
    /// Code sites that made so many steps that their later accesses were none.
    pub limited: u32,
    /// Some of these sites.
    pub limited_places: Vec<u64>,
    /// More memory was touched than is remembered, or some code came by too often.
    pub overlooked: bool,
    /// Some of that code.
    pub overlooked_places: Vec<u64>,
    /// Libraries of the system that it loaded by name, as sites.
    pub loaded: Vec<u64>,
    /// Some of the instructions that could not be patched.
    pub refused_places: Vec<u64>,
    /// More memory was touched than races are looked for in.
    pub races_over: bool,
    /// More calls that synchronise nothing were made than are steps.
    pub calls_over: bool,
    /// Sites of unmodified code that are steps, and that could not be made steps.
    pub patched: (u32, u32),
    /// Two accesses that nothing orders, at which it ended.
    pub race: Option<Race>,
    /// Threads that only let stores become visible.
    pub store_buffers: u64,
    /// Stores that waited in a store buffer while others read, the last of them.
    pub delayed: Vec<DelayedStore>,
    /// It had to be killed because it did not end.
    pub hung: Option<Hang>,
    /// What it told contradicts itself, and how: it wrote over the memory that it shares with us, and nothing that it told
    /// counts.
    pub corrupted: Option<String>,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it wrote to its error output.
    pub stderr: Vec<u8>,
}

/// A run that did not end in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hang {
    /// How long it was waited for.
    pub limit: Duration,
    /// Processor time that it used.
    pub cpu: Duration,
    /// It went on making steps until then, so that its limit of steps, not the clock, can tell whether it ends.
    pub at_work: bool,
}

impl Observed {
    /// What the kernel says, and what the run told, unless that cannot be.
    pub fn of(
        told: Result<Told<'_>, &str>,
        status: i32,
        output: (Vec<u8>, Vec<u8>),
        hung: Option<Hang>,
    ) -> Observed {
        let contradiction = match told {
            Ok(told) => return Observed::new(&told, status, output, hung),
            Err(why) => why,
        };
        let nothing = RunCopy::of_nothing();
        let corrupted = Some(contradiction.to_owned());
        Observed { corrupted, ..Observed::new(&nothing.told(), status, output, hung) }
    }

    /// Puts together what the run told and what the kernel says.
    pub fn new(
        told: &Told<'_>,
        status: i32,
        (stdout, stderr): (Vec<u8>, Vec<u8>),
        hung: Option<Hang>,
    ) -> Observed {
        let report = told.report;
        let ending = Ending::from_code(report.ending.load(Ordering::Acquire)).unwrap_or(Ending::Unfinished);
        // A run that died wrote its schedule but not its numbers.
        let (mut steps, mut threads, mut switches) = (
            report.steps.load(Ordering::Relaxed),
            report.threads.load(Ordering::Relaxed),
            report.switches.load(Ordering::Relaxed),
        );
        if ending == Ending::Unfinished {
            let schedule = told.schedule;
            steps = schedule.iter().map(|stretch| stretch.steps).fold(0, u64::saturating_add);
            threads = schedule.iter().map(|stretch| stretch.thread.saturating_add(1)).max().unwrap_or(0);
            switches = schedule.len().saturating_sub(1) as u64;
        }
        Observed {
            status: exit_status(status),
            ending,
            account: told.account(),
            steps,
            reach: report.reach.load(Ordering::Relaxed),
            switches,
            threads,
            partly_controlled: report.partly_controlled.load(Ordering::Relaxed) != 0,
            awaits: report.awaits.load(Ordering::Relaxed) != 0,
            diverged: report.diverged.load(Ordering::Relaxed).checked_sub(1).or((!told.reached).then_some(0)),
            reached: told.reached,
            cut: report.cut.load(Ordering::Relaxed) != 0,
            accesses: report.accesses.load(Ordering::Relaxed),
            limited: report.limited.load(Ordering::Relaxed),
            limited_places: report.limited_places(),
            refused_places: report.refused_places(),
            overlooked_places: report.overlooked_places(),
            loaded: report.loaded_libraries(),
            overlooked: report.overlooked.load(Ordering::Relaxed) != 0,
            races_over: report.races_over.load(Ordering::Relaxed) != 0,
            calls_over: report.calls_over.load(Ordering::Relaxed) != 0,
            patched: (report.patched.load(Ordering::Relaxed), report.refused.load(Ordering::Relaxed)),
            race: Race::of(&report.race),
            store_buffers: report.delayed.flushers.load(Ordering::Relaxed),
            delayed: report.delayed.all(),
            hung,
            corrupted: None,
            stdout,
            stderr,
        }
    }

    /// A limit ended it: of steps, of time, or of waiting for what is not under control.
    pub fn is_cut_off(&self) -> bool {
        self.hung.is_some() || matches!(self.ending, Ending::StepLimit | Ending::Awaiting)
    }

    /// It had to be killed while it waited for something that is not under control: nothing says that this would not have come.
    pub fn waited_for_the_outside(&self) -> bool {
        // A process that waits uses next to nothing; one that computes may have to share a busy machine with many. What
        // computes while nobody under control can run is not under control either.
        let idle = |hang: Hang| hang.cpu * 20 <= hang.limit;
        self.hung.is_some_and(|hang| self.awaits || idle(hang)) || self.ending == Ending::Awaiting
    }

    /// The error output as text.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// A schedule as the library takes it.
pub fn to_stretches(schedule: &Schedule) -> Vec<Stretch> {
    let stretch = |segment: &Segment| Stretch {
        thread: segment.thread.0,
        first: u32::from(segment.first.code()),
        steps: segment.steps,
    };
    schedule.segments().iter().map(stretch).collect()
}

/// A schedule as the library recorded it; nothing when it has an event that nobody knows.
pub fn to_schedule(stretches: &[Stretch]) -> Option<Schedule> {
    let segment = |stretch: &Stretch| {
        let first = u8::try_from(stretch.first).ok().and_then(EventKind::from_code)?;
        Some(Segment { thread: ThreadId(stretch.thread), first, steps: stretch.steps })
    };
    Some(Schedule::new(stretches.iter().map(segment).collect::<Option<Vec<_>>>()?))
}

/// What the last run in a region told, which has been in use for so long; or why no run can have told that.
pub(crate) fn heard(region: &RegionMap, age: Duration) -> Result<RunCopy, String> {
    let copy = region.copied(age)?;
    // A host makes runs one after another, and what is said of them, too.
    let one = region.settings().in_process == 0;
    match contradiction(&copy.told(), one) {
        Some(why) => Err(why),
        None => Ok(copy),
    }
}

/// What a run told that none can, of what the library cannot judge: names of events and the conversation, of a process that
/// makes `one` run.
pub(crate) fn contradiction(told: &Told<'_>, one: bool) -> Option<String> {
    let unknown =
        |stretch: &&Stretch| u8::try_from(stretch.first).ok().and_then(EventKind::from_code).is_none();
    if let Some(stretch) = told.schedule.iter().find(unknown) {
        return Some(format!("the schedule has an event of kind {}", stretch.first));
    }
    let refused = told.report.ending.load(Ordering::Acquire) == Ending::Refused as u32;
    if one && refused && !told.schedule.is_empty() {
        return Some("a schedule that went on was refused".to_owned());
    }
    let notes = told.notes.filter(|_| one)?;
    match notes.iter().map(|&note| Said::from_words(note)).collect::<Option<Vec<Said>>>() {
        Some(said) => impossible(&said),
        None => Some("something was said that has no meaning".to_owned()),
    }
}

/// What was said in a run, if it was kept and some scheduler can have said it.
pub(crate) fn conversation(told: &Told<'_>) -> Option<Vec<Said>> {
    let said: Vec<Said> = told.notes?.iter().map(|&note| Said::from_words(note)).collect::<Option<_>>()?;
    impossible(&said).is_none().then_some(said)
}
