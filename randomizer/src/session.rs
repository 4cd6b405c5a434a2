//! The loop: rest, choose, suspend, resume, note it down.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use waylay_dist::Seed;
use waylay_page::Page;

use crate::census::{Census, Change, Moment};
use crate::identity::{ProcessId, ThreadId};
use crate::log::{Action, Log};
use crate::policy::{Plan, Policy};
use crate::quiesce::{OpenWindow, Words};
use crate::recording::{RecordedWindow, Recording};
use crate::report::{CommandEnd, Ending, REPORT_VERSION, Report};
use crate::settings::Settings;
use crate::statistics::{Progress, Statistics};
use crate::suspension::{Fate, Suspension};
use crate::sys::{self, Life, Suspender};
use crate::target::Target;

/// How often the end of the target is looked for while nothing else tells.
const LOOK_FOR_END: Duration = Duration::from_millis(20);
/// Rest after a window for which there was no thread to choose.
const IDLE: Duration = Duration::from_millis(1);
/// Rest after somebody else was found tracing the target: a debugger attaches thread by thread, and should not meet us
/// at any of them.
const STEP_BACK: Duration = Duration::from_millis(100);
/// Dead threads that were traced keep their process from ending until we have taken note.
const TEND: Duration = Duration::from_millis(1);
/// How often an observer is told how it goes.
const TELL: Duration = Duration::from_millis(200);

/// Watches a run from inside, between windows. Called on the thread that suspends.
pub trait Observer: Send {
    /// Between two windows, thousands of times a second: no thread is suspended now.
    fn between_windows(&mut self) {}

    /// A few times a second.
    fn progress(&mut self, _progress: &Progress) {}
}

/// Nobody watches.
impl Observer for () {}

/// How to run, apart from the settings.
pub struct Options<'a> {
    /// Decides every choice.
    pub seed: Seed,
    /// How long; without it, until the target ends or somebody stops us.
    pub duration: Option<Duration>,
    /// Where to note down what was done.
    pub log: Option<Log>,
    /// Do again what this says instead of choosing.
    pub replay: Option<Recording>,
    /// Who watches.
    pub observer: &'a mut dyn Observer,
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
#[error("cannot suspend threads: {0}")]
pub struct RunError(#[from] io::Error);

/// Disturbs the target until it ends, the time is over, or `stop` is set, and waits for its end if it is a
/// program that we started.
///
/// With a page the randomizer keeps away while the page's `quiesce` word says so. Runs mostly on a thread of its own,
/// because letting go of threads that do not stop means ending the thread that asked them to.
///
/// # Errors
/// When the system has no thread or timer for us. No thread stays suspended.
pub fn run(
    settings: &Settings,
    mut target: Target,
    page: Option<&Page>,
    stop: &AtomicBool,
    options: Options<'_>,
) -> Result<Report, RunError> {
    let alone = ([const { AtomicU32::new(0) }; 6], [const { AtomicU64::new(0) }; 2]);
    let (words, own_thread) = match page {
        Some(page) => (Words::of(&page.layout().header), &page.layout().header.own_thread),
        None => {
            let ([quiesce, ending, window_open, rested, at_work, own_thread], [windows, suspensions]) =
                &alone;
            (Words { quiesce, ending, window_open, rested, at_work, windows, suspensions }, own_thread)
        }
    };
    let replayed = options.replay.is_some();
    let (seed, source) = match options.replay {
        Some(recording) => (recording.seed, Source::Recorded(recording.windows)),
        None => (options.seed, Source::Drawn(Box::new(Policy::new(settings.clone(), options.seed)))),
    };
    let began = Instant::now();
    let mut session = Session {
        pid: target.pid(),
        life: Life::of(target.pid()),
        settings,
        words,
        own_thread,
        stop,
        source,
        observer: options.observer,
        log: options.log,
        began,
        until: options.duration.map(|duration| began + duration),
        window: 0,
        census: Census::default(),
        statistics: Statistics::default(),
        told: began,
        looked_for_end: None,
        leader_status: None,
    };
    words.at_work.store(1, Ordering::SeqCst);
    if let Some(page) = page {
        page.layout().ring();
    }
    let ending = loop {
        match sys::on_suspending_thread(|| session.windows())?? {
            Outcome::Over(ending) => break ending,
            // Only now has the kernel let go of the threads that did not stop.
            Outcome::GaveUp(window) => drop(window),
        }
    };
    words.at_work.store(0, Ordering::SeqCst);
    let progress = session.statistics.progress(began.elapsed(), &session.census);
    session.observer.progress(&progress);
    let mut report = Report {
        version: REPORT_VERSION,
        pid: session.pid,
        seed,
        replayed,
        settings: settings.to_raw(),
        ending,
        progress,
        living: Statistics::threads(&session.census),
        ended: session.statistics.ended_threads(),
        log_error: session.log.take().and_then(|log| log.finish().err()).map(|error| error.to_string()),
        command: None,
    };
    let leader_status = session.leader_status;
    if target.is_ours() {
        if let Some(signal) = sys::stop_request() {
            target.forward(signal);
        }
        report.command = target.wait(leader_status).map(command_end);
    }
    Ok(report)
}

fn command_end(status: std::process::ExitStatus) -> CommandEnd {
    match sys::ending_signal(status) {
        Some(signal) => CommandEnd::Signal(signal),
        None => CommandEnd::Code(status.code().unwrap_or(-1)),
    }
}

/// Where the choices come from.
enum Source {
    Drawn(Box<Policy>),
    Recorded(Vec<RecordedWindow>),
}

/// The next window.
enum Next {
    Drawn(Plan),
    /// The index of a recorded one.
    Recorded(usize),
}

enum Outcome<'a> {
    Over(Ending),
    /// A thread did not stop: the window stays open until the suspending thread has ended.
    GaveUp(OpenWindow<'a>),
}

struct Session<'a, 'o> {
    pid: ProcessId,
    life: Life,
    settings: &'a Settings,
    words: Words<'a>,
    /// A thread of the host's own that is never suspended; 0 for none.
    own_thread: &'a AtomicU32,
    stop: &'a AtomicBool,
    source: Source,
    observer: &'o mut dyn Observer,
    log: Option<Log>,
    began: Instant,
    until: Option<Instant>,
    window: u64,
    census: Census,
    statistics: Statistics,
    told: Instant,
    /// None when it is time to look.
    looked_for_end: Option<Instant>,
    leader_status: Option<i32>,
}

impl<'a> Session<'a, '_> {
    /// Opens windows until it is over, or until a thread does not stop.
    fn windows(&mut self) -> io::Result<Outcome<'a>> {
        let mut suspender = Suspender::new(self.pid)?;
        let mut rest_longer = Duration::ZERO;
        let mut results = Vec::new();
        let outcome = loop {
            let Some((next, rest)) = self.next() else { break Outcome::Over(Ending::RecordingOver) };
            if let Some(ending) = self.rest(rest.max(std::mem::take(&mut rest_longer)), &mut suspender) {
                break Outcome::Over(ending);
            }
            let now = Instant::now();
            self.take_census(now);
            let (hold, threads) = self.choose(&next, now);
            if threads.is_empty() {
                self.statistics.idle_window();
                self.window += 1;
                rest_longer = IDLE;
                self.looked_for_end = None;
                continue;
            }
            let Some(open) = self.words.open() else { continue };
            let (words, stop) = (self.words, self.stop);
            let result = suspender.suspend(
                &threads,
                hold,
                || words.is_quiet() || words.is_to_end() || stop.load(Ordering::Relaxed),
                |time| words.pause(time),
                &mut results,
            );
            self.window += 1;
            self.note(&results);
            if results.iter().all(|suspension| suspension.stopped.is_none()) {
                self.looked_for_end = None;
            }
            if results.iter().any(|suspension| matches!(suspension.fate, Fate::Refused(_))) {
                rest_longer = STEP_BACK;
            }
            results.clear();
            if result.is_err() {
                break Outcome::GaveUp(open);
            }
        };
        suspender.tend();
        self.leader_status = self.leader_status.or(suspender.leader_status());
        Ok(outcome)
    }

    /// The next window and the rest before it; none when a recording is over.
    fn next(&mut self) -> Option<(Next, Duration)> {
        match &mut self.source {
            Source::Drawn(policy) => {
                let plan = policy.plan(self.window);
                Some((Next::Drawn(plan), plan.rest))
            }
            Source::Recorded(windows) => {
                let index = usize::try_from(self.window).ok()?;
                let rest = windows.get(index)?.at.saturating_sub(self.began.elapsed());
                Some((Next::Recorded(index), rest))
            }
        }
    }

    /// Rests for this long, and for as long as somebody asks us to keep away.
    fn rest(&mut self, time: Duration, suspender: &mut Suspender) -> Option<Ending> {
        let mut now = Instant::now();
        let end = now + time;
        let mut quiet_since = None;
        loop {
            let tended = suspender.tend();
            self.observe(now);
            if self.stop.load(Ordering::Relaxed) || self.words.is_to_end() {
                return Some(Ending::Stopped);
            }
            if self.until.is_some_and(|until| now >= until) {
                return Some(Ending::DurationOver);
            }
            if self.looked_for_end.is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK_FOR_END)
            {
                self.looked_for_end = Some(now);
                if self.life.has_ended() {
                    return Some(Ending::TargetEnded);
                }
            }
            let quiet = self.words.is_quiet();
            match quiet_since {
                None if quiet => {
                    quiet_since = Some(now);
                    self.statistics.quiesced();
                    if let Some(log) = &mut self.log {
                        log.flush();
                    }
                    self.words.set_rested(true);
                }
                Some(since) if !quiet => {
                    self.words.set_rested(false);
                    self.statistics.kept_away(now.saturating_duration_since(since));
                    quiet_since = None;
                }
                _ => {}
            }
            let left = end.saturating_duration_since(now);
            // With dead ones to reap the whole process is dying or in exec, and attaching would wait for that.
            if !quiet && tended && left.is_zero() {
                return None;
            }
            self.words.pause(match (tended, quiet) {
                (false, _) => TEND,
                (true, true) => LOOK_FOR_END,
                (true, false) => left,
            });
            now = Instant::now();
        }
    }

    fn observe(&mut self, now: Instant) {
        self.observer.between_windows();
        if let Some(log) = &mut self.log {
            log.tend(now);
        }
        if now.saturating_duration_since(self.told) >= TELL {
            self.told = now;
            let progress = self.statistics.progress(now.saturating_duration_since(self.began), &self.census);
            self.observer.progress(&progress);
        }
    }

    fn take_census(&mut self, began: Instant) {
        if !self.census.is_due(began, sys::own_processor_time) {
            return;
        }
        let work = sys::own_processor_time();
        let Session { pid, settings, census, statistics, log, .. } = self;
        let at = began.saturating_duration_since(self.began);
        let name_of = |thread| sys::thread_name(*pid, thread);
        let own = ThreadId(self.own_thread.load(Ordering::Acquire));
        let may_suspend = |thread, name: &str| thread != own && settings.may_suspend(name);
        census.update(began, sys::threads_of(*pid), may_suspend, name_of, |change| match change {
            Change::Joined(member) => {
                statistics.joined();
                if let Some(log) = log {
                    log.joined(at, member.ordinal, member.thread, &member.name);
                }
            }
            Change::Left(member) => {
                statistics.left(member);
                if let Some(log) = log {
                    log.left(member.ordinal);
                }
            }
        });
        statistics.choose_from(census);
        census.taken(
            Moment { at: began, work },
            Moment { at: Instant::now(), work: sys::own_processor_time() },
        );
    }

    fn choose(&mut self, next: &Next, now: Instant) -> (Duration, Vec<ThreadId>) {
        let eligible = self.census.eligible(now);
        match (next, &mut self.source) {
            (Next::Drawn(plan), Source::Drawn(policy)) => {
                let threads: Vec<_> = eligible.map(|member| member.thread).collect();
                (plan.hold, policy.choose(plan, &threads))
            }
            (Next::Recorded(index), Source::Recorded(windows)) => {
                let threads: Vec<_> =
                    eligible.map(|member| (member.thread, member.ordinal, member.name.as_str())).collect();
                (windows[*index].hold, windows[*index].choose(&threads))
            }
            _ => unreachable!("a window comes from the source of its run"),
        }
    }

    /// Counts and logs what a window did.
    fn note(&mut self, results: &[Suspension]) {
        let suspended = self.statistics.window(results, &mut self.census);
        self.words.suspensions.fetch_add(suspended, Ordering::Relaxed);
        for suspension in results {
            if suspension.fate == Fate::Unstoppable
                && let Some(member) = self.census.member_mut(suspension.thread)
            {
                member.leave_alone(suspension.over);
            }
        }
        let Some(log) = &mut self.log else { return };
        let census = &mut self.census;
        let mut lines: Vec<_> = results
            .iter()
            .filter_map(|suspension| {
                let action = match suspension.fate {
                    Fate::Resumed => Action::Resume,
                    Fate::Gone | Fate::NotThere => Action::Gone,
                    Fate::Refused(_) => Action::Refused,
                    Fate::Unstoppable => Action::Unstoppable,
                };
                let ordinal = census.member_mut(suspension.thread)?.ordinal;
                Some((suspension.asked, suspension.over, action, ordinal))
            })
            .collect();
        let since = |moment: Instant| moment.saturating_duration_since(self.began);
        for (asked, _, _, ordinal) in &lines {
            log.action(since(*asked), Action::Suspend, *ordinal);
        }
        lines.sort_by_key(|(_, over, _, _)| *over);
        for (_, over, action, ordinal) in lines {
            log.action(since(over), action, ordinal);
        }
    }
}
