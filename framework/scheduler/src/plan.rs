//! From what the driver left in the region to the strategy of a run, and from the strategy to what the driver reads.

use std::sync::atomic::Ordering;

use waylay_control_protocol::account::Departure;
use waylay_control_protocol::{NoteWriter, RegionMap, Settings, Statement, Stretch, Timeouts};
use waylay_schedule::ordered::{self, Ordered};
use waylay_schedule::{
    AnyStrategy, Divergence, EventKind, Guided, Listener, Overheard, Replay, Run, RunParameters, Said,
    Schedule, Seed, Segment, Spec, Strategy, ThreadId, Turn,
};

use super::{Recording, Scheduler, TimeoutPolicy};

/// The strategy of a run, which is about to be asked for its first choice; or why there is none.
pub type Planned = Result<AnyStrategy, String>;

/// Makes the strategy that the region asks for, and tells it that the run begins.
pub fn plan(region: &RegionMap) -> Planned {
    let (mut strategy, parameters) = strategy(region)?;
    let settings = region.settings();
    strategy.begin(Run { seed: Seed(settings.seed), index: settings.run }, &parameters);
    Ok(strategy)
}

/// The strategy, with somebody who listens if the conversation is wanted.
pub(super) fn strategy(region: &RegionMap) -> Result<(AnyStrategy, RunParameters), String> {
    let (strategy, parameters) = unheard(region)?;
    if region.settings().listen == 0 {
        return Ok((strategy, parameters));
    }
    // SAFETY: the region stays mapped for as long as a strategy is asked, which is for good; this is the only writer.
    let notes = unsafe { region.note_writer() };
    Ok((Overheard::new(strategy, Box::new(Notes(notes))).into(), parameters))
}

fn unheard(region: &RegionMap) -> Result<(AnyStrategy, RunParameters), String> {
    if let Some(words) = region.ordered() {
        let (orders, base) =
            ordered::from_words(&words).ok_or_else(|| "the orders of events are not readable".to_owned())?;
        return Ok((Ordered::new(&orders, base).into(), RunParameters::of("ordered")));
    }
    if let Some(switches) = region.guidance() {
        let turn = |(to, of, after)| Turn { of: ThreadId(of), after, to: ThreadId(to) };
        return Ok((Guided::new(switches.map(turn).collect()).into(), RunParameters::of("guided")));
    }
    if let Some(stretches) = region.replay() {
        return Ok((Replay::new(schedule(stretches)?).into(), RunParameters::of("replay")));
    }
    named(region.parameters())
}

/// The strategy that parameters name, as JSON; nobody listens.
pub(super) fn named(parameters: &str) -> Result<(AnyStrategy, RunParameters), String> {
    let parameters: RunParameters = match parameters {
        "" => RunParameters::of("random"),
        text => {
            serde_json::from_str(text).map_err(|error| format!("run parameters are not readable: {error}"))?
        }
    };
    let spec: Spec = parameters.strategy.parse().map_err(|error| format!("strategy of the run: {error}"))?;
    Ok((spec.build(), parameters))
}

/// Keeps the conversation for the driver.
#[derive(Debug)]
struct Notes(NoteWriter);

impl Listener for Notes {
    fn hear(&mut self, said: Said) {
        self.0.write(said.to_words());
    }
}

fn schedule(stretches: &[Stretch]) -> Result<Schedule, String> {
    let mut schedule = Schedule::default();
    schedule.reserve(stretches.len());
    for stretch in stretches {
        let first = u8::try_from(stretch.first).ok().and_then(EventKind::from_code);
        let first = first.ok_or_else(|| format!("unknown event code {} in the schedule", stretch.first))?;
        schedule.extend_by(Segment { thread: ThreadId(stretch.thread), first, steps: stretch.steps });
    }
    Ok(schedule)
}

impl Scheduler {
    /// A scheduler that records into the region, which has to stay mapped for good.
    pub fn recording_into(region: &RegionMap, settings: &Settings, strategy: AnyStrategy) -> Scheduler {
        let policy = match Timeouts::from_code(settings.timeouts) {
            Some(Timeouts::Idle) => TimeoutPolicy::Idle,
            _ => TimeoutPolicy::Choice,
        };
        let (stretches, capacity) = region.schedule_memory();
        // SAFETY: the region stays mapped as long as the runtime, which is for good.
        let recording = unsafe { Recording::into(stretches, capacity, &raw const region.report().stretches) };
        Scheduler::new(strategy, policy, recording)
    }

    /// Writes the numbers of the run for the driver. One that ended in the past, before the schedule began that the process
    /// was to follow, left it there.
    pub fn report_into(&mut self, region: &RegionMap, in_the_past: bool) {
        let report = region.report();
        report.threads.store(self.thread_count() as u32, Ordering::Relaxed);
        report.steps.store(self.steps, Ordering::Relaxed);
        report.reach.store(self.strategy().reach(), Ordering::Relaxed);
        report.switches.store(self.switches, Ordering::Relaxed);
        report.virtual_ns.store(self.clock.now().0, Ordering::Relaxed);
        report.cut.store(u32::from(self.recording.lost()), Ordering::Relaxed);
        let departure = match in_the_past {
            true => Some((0, Departure::Before)),
            false => self.departure(),
        };
        if let Some((step, departure)) = departure {
            report.diverged.store(step + 1, Ordering::Relaxed);
            region.tell(&Statement::Left(step, departure));
        }
    }

    /// Where a run that was to follow a schedule left it: the step, and how.
    fn departure(&mut self) -> Option<(u64, Departure<'static>)> {
        let steps = self.steps;
        let replay = self.strategy().as_replay()?;
        let unfinished = replay.unfinished();
        match replay.divergence() {
            Some(Divergence { step, expected, seen }) => {
                Some((step, Departure::Otherwise(expected.to_string().into(), seen.to_string().into())))
            }
            None if unfinished > 0 => Some((steps, Departure::Early(unfinished))),
            None => None,
        }
    }
}
