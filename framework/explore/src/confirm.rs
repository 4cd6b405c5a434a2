//! The same schedule again, in a fresh process, with evidence: nothing is reported on the word of a fork server alone.
//!
//! The run is made with baton switching, whose schedules are those of the carrier, and held where it ends, so that every
//! thread's stack can be taken from outside and a dump written.

use std::collections::BTreeMap;
use std::path::Path;

use waylay_control_protocol::account::{Departure, Operation, Standing};
use waylay_control_protocol::{Account, Ending, RegionMap, RunCopy};
use waylay_driver::dumps::{Dumper, Subject};
use waylay_driver::failure::Kind;
use waylay_driver::failure::Signature;
use waylay_driver::store::Dumped;
use waylay_evidence::render::{self, RenderOptions};
use waylay_evidence::signature::{Signature as EvidenceSignature, normal_message};
use waylay_evidence::{
    CaptureOptions, CodeAddress, Frame, MemoryMap, Origin, Registers, Scheduled, SchedulerState, Symbolizer,
    ThreadContext, ThreadId, ThreadStack, Wait, capture, files_of_unit, may_be_qualified, origin,
};
use waylay_report::timeline::conversation::{self, Told};
use waylay_report::timeline::names::Names;
use waylay_report::timeline::{self, Doing, Timeline};
use waylay_schedule::{EventKind, Schedule};

use crate::delayed::{self, DelayedText};
use crate::deliberate::{Sources, Weighed, weigh};
use crate::held::{Held, HoldAt, Stop, hold};
use crate::observed::{self, Hang, Observed, heard};
use crate::oracle::{Expected, Failure, NO_END, Verdict, judge};
use crate::program::Program;
use crate::race::{self, Race, RaceText};
use crate::recording::Conditions;
use crate::server::{Guide, RunError};
use crate::sys::HOLD_THEMSELVES;
use crate::timings::{self, Stage};
use crate::variable::Variables;

/// What a fresh process showed.
#[derive(Debug)]
pub struct Evidence {
    /// Whether it failed in the same way.
    pub confirmed: bool,
    /// What it showed instead.
    pub instead: Option<String>,
    /// What makes the failure the same as others.
    pub signature: Signature,
    /// What a race comes to.
    pub race: Option<RaceEvidence>,
    /// The run itself.
    pub seen: Rerun,
}

impl Evidence {
    /// What a process that did not fail in the same way showed, and why, as far as that is known.
    pub fn shown_instead(&self) -> Option<String> {
        let all = self.instead.iter().chain(&self.seen.gaps).map(String::as_str);
        let text = all.collect::<Vec<_>>().join("; ");
        (!self.confirmed && !text.is_empty()).then_some(text)
    }
}

/// What a fresh process showed of a race.
#[derive(Debug)]
pub struct RaceEvidence {
    /// Whether it is one.
    pub weighed: Weighed,
    /// Both accesses, in words.
    pub text: RaceText,
}

/// A schedule that was run again.
#[derive(Debug)]
pub struct Rerun {
    /// What became of the run.
    pub observed: Observed,
    /// Whether that is a failure.
    pub verdict: Verdict,
    /// Every thread's stack, the one to blame first: where the run ended, or where it first panicked.
    pub stacks: Vec<ThreadStack>,
    /// The stacks are those of the first panic.
    pub at_panic: bool,
    /// The same for people, with what the library said.
    pub text: String,
    /// Stores that waited in a store buffer while others read.
    pub delayed: Vec<DelayedText>,
    /// What could not be collected, and why.
    pub gaps: Vec<String>,
    /// Which files of code were loaded where.
    pub code: MemoryMap,
    /// Who waits for what, a line each, if the library says that nobody can run.
    pub waits: Vec<String>,
    /// What scheduler and strategy said; none when that was too long to be kept.
    told: Option<Told>,
    names: Names,
    variables: Variables,
    /// Those of the thread at which it is held, if they are known better.
    registers: Option<Registers>,
    held: Held,
}

impl Rerun {
    /// Who ran when until it failed, from what was said; from the schedule alone when that was too long.
    pub fn timeline(&self, title: &str, schedule: &Schedule, what: &str) -> Timeline {
        let Some(told) = &self.told else { return timeline::schedule::timeline(title, schedule, what) };
        let mut timeline = Timeline { title: title.to_owned(), ..told.timeline.clone() };
        timeline.failing.iter_mut().for_each(|failing| what.clone_into(&mut failing.what));
        timeline
    }

    /// Writes a dump while the process is still held; says what came of it.
    pub fn dump(&self, path: &Path, dumper: &Dumper) -> Result<Dumped, String> {
        let crash = match &self.held.stop {
            Stop::Signal(crash) => Some(&**crash),
            Stop::Exit { .. } | Stop::Late => None,
            Stop::Gone(_) => return Err("the process was gone".to_owned()),
        };
        let blamed = self.stacks.first().map(|stack| stack.id);
        let known = blamed.zip(self.registers).into_iter().collect();
        let pid = self.held.process().0;
        dumper.write(&Subject { pid, crash, first: blamed, known }, path)
    }
}

/// Makes a run again in a fresh process and holds it where it ends. `names` remembers what was looked up before.
pub fn rerun(
    program: &Program,
    library: &Path,
    conditions: &Conditions,
    expected: &Expected,
    (seed, run): (u64, u64),
    guide: Guide<'_>,
    names: &mut Symbolizer,
) -> Result<Rerun, RunError> {
    rerun_until(program, library, conditions, expected, (seed, run, 0), guide, names)
}

/// The same; ends at the access with number `stop_at`, unless that is 0.
fn rerun_until(
    program: &Program,
    library: &Path,
    conditions: &Conditions,
    expected: &Expected,
    (seed, run, stop_at): (u64, u64, u64),
    guide: Guide<'_>,
    names: &mut Symbolizer,
) -> Result<Rerun, RunError> {
    let hold = |at| run_held(program, library, conditions, (seed, run, stop_at), guide, at);
    let begun = std::time::Instant::now();
    let (region, mut held) = hold(HoldAt::End)?;
    let late = matches!(held.stop, Stop::Late).then(|| Hang {
        limit: conditions.patience(),
        cpu: held.cpu_time(),
        at_work: false,
    });
    let heard = heard(&region, begun.elapsed());
    let observed = Observed::of(
        heard.as_ref().map(RunCopy::told).map_err(String::as_str),
        held.status(),
        held.output.clone(),
        late,
    );
    let nothing = RunCopy::of_nothing();
    let told = heard.as_ref().unwrap_or(&nothing).told();
    let verdict = judge(&observed, expected);
    let mut gaps = Vec::new();
    if let Some(step) = observed.diverged {
        gaps.push(left_the_schedule(step, &observed.account));
    }
    let registers = race::registers(&told.report.race);
    let mut at_panic = false;
    if matches!(held.stop, Stop::Exit { .. }) && says_that_it_panicked(&held.output.1) {
        // Where a panic ends the process, the code that panicked has been left; it is held there in a run of its own.
        let (_, mut again) = hold(HoldAt::Panic)?;
        at_panic = matches!(again.stop, Stop::Exit { .. });
        if at_panic {
            std::mem::swap(&mut again.output, &mut held.output);
            held = again;
        }
    }
    let mut stacks = stacks_at(&held, registers, names).unwrap_or_else(|reason| {
        gaps.push(format!("no stacks: {reason}"));
        Vec::new()
    });
    let code = MemoryMap::of(held.process()).unwrap_or_default();
    let mut variables = Variables::of(&code);
    let delayed = delayed::describe(&observed.delayed, &code, &mut variables, names);
    let said = observed::conversation(&told);
    let mut told =
        said.and_then(|said| conversation::timeline("", &said, "", &mut |address| variables.at(address)));
    let mut objects = told.as_ref().map(|told| told.names.clone()).unwrap_or_default();
    let mut naming = |operation: &Operation<'_>, address: u64| match operation.is_on_lock() {
        true => objects.lock(address, &mut |address| variables.at(address)),
        false => objects.other(address, &mut |address| variables.at(address)),
    };
    let mut text = observed.account.text_with(&mut naming);
    let standings: Vec<&Standing<'_>> = match observed.ending {
        Ending::Deadlock => observed.account.standings().collect(),
        _ => Vec::new(),
    };
    let waits: Vec<String> = standings.iter().map(|standing| standing.line(&mut naming)).collect();
    for standing in standings.iter().filter(|standing| standing.waits_since.is_some()) {
        let what = standing.operation.named(&mut naming);
        told.iter_mut().for_each(|told| told.timeline.waits_at_end(standing.thread as usize, &what));
    }
    let does: BTreeMap<usize, String> =
        standings.iter().map(|standing| (standing.thread as usize, standing.does(&mut naming))).collect();
    // What threads did at the end is not what they did at the panic.
    number(&mut stacks, &held.threads, told.as_ref().filter(|_| !at_panic), &does);
    if observed.ending == Ending::Deadlock {
        // Nobody alone is to blame, so they come in the order in which they are spoken of; who only waits for the end of
        // others comes last, because it is not where the fault is.
        let joins = |number: u32| {
            let known = standings.iter().find(|standing| standing.thread == number);
            known.is_some_and(|standing| {
                standing.waits_since.is_some() && standing.operation.kind == EventKind::ThreadJoin.name()
            })
        };
        stacks.sort_by_key(|stack| {
            let number = stack.scheduled.as_ref().map_or(u32::MAX, |known| known.number);
            (joins(number), number)
        });
    }
    if !text.is_empty() {
        text = format!("{}\n", text.trim_end());
    }
    for store in &delayed {
        text = format!("{text}{}\n", store.sentence());
    }
    if !stacks.is_empty() {
        text = format!("{}\n{text}", render::stacks(&stacks, RenderOptions::default()));
    }
    Ok(Rerun {
        observed,
        verdict,
        stacks,
        at_panic,
        text,
        delayed,
        gaps,
        code,
        waits,
        told,
        names: objects,
        variables,
        registers,
        held,
    })
}

/// Runs a schedule in a fresh process and holds it; with the region, which has what the library told.
fn run_held(
    program: &Program,
    library: &Path,
    conditions: &Conditions,
    (seed, run, stop_at): (u64, u64, u64),
    guide: Guide<'_>,
    at: HoldAt,
) -> Result<(RegionMap, Held), RunError> {
    let mut region = conditions.region()?;
    let mut settings = conditions.settings_in(&mut region, seed, run);
    settings.switching = waylay_control_protocol::Switching::Baton as u32;
    settings.listen = 1;
    settings.stop_at = stop_at;
    settings.hold = u32::from(HOLD_THEMSELVES);
    guide.prepare(&mut region, settings)?;
    let held = hold(program, library, &region, conditions.patience(), at)?;
    Ok((region, held))
}

/// Whether a Rust panic's message is in what a program wrote, where the program can be held at it.
fn says_that_it_panicked(written: &[u8]) -> bool {
    const HEAD: &[u8] = b" panicked at ";
    !HOLD_THEMSELVES && written.windows(HEAD.len()).any(|window| window == HEAD)
}

/// Calls threads as the schedule does, and says what each does in it. `threads` are in the order of their creation.
fn number(
    stacks: &mut [ThreadStack],
    threads: &[ThreadId],
    told: Option<&Told>,
    does: &BTreeMap<usize, String>,
) {
    let main = stacks.iter().find(|stack| Some(&stack.id) == threads.first());
    let process = main.map(|stack| stack.name.clone()).unwrap_or_default();
    for stack in stacks {
        let Some(number) = threads.iter().position(|thread| *thread == stack.id) else { continue };
        stack.number(number as u32, &process);
        let end = told.and_then(|told| told.ends.get(number)?.as_ref());
        let doing = match (does.get(&number), end) {
            (Some(does), _) => does.clone(),
            (None, Some((Doing::Blocked, what))) => phrase("waits", "waits in", what),
            (None, Some((Doing::Ready, what))) => phrase("could run", "is about to do", what),
            (None, Some(_)) => "running".to_owned(),
            (None, None) if told.is_some() => "not begun, or over".to_owned(),
            (None, None) => continue,
        };
        stack.scheduled.iter_mut().for_each(|scheduled| scheduled.doing = Some(doing.clone()));
    }
}

fn phrase(alone: &str, with: &str, what: &str) -> String {
    if what.is_empty() { alone.to_owned() } else { format!("{with} {what}") }
}

/// Where a run left its schedule, with what the library says to that.
fn left_the_schedule(step: u64, account: &Account) -> String {
    match account.departure() {
        Some(why @ Departure::Otherwise(..)) => {
            format!("the fresh process left the schedule at step {step}: {why}")
        }
        _ => format!("the fresh process left the schedule at step {step}"),
    }
}

/// Runs a failing schedule again and takes evidence. `names` remembers what was looked up before.
#[allow(clippy::too_many_arguments)] // what was run, how, and what came of it: each is needed
pub fn confirm(
    program: &Program,
    library: &Path,
    conditions: &Conditions,
    expected: &Expected,
    run: (u64, u64),
    guide: Guide<'_>,
    failure: &Failure,
    names: &mut Symbolizer,
) -> Result<Evidence, RunError> {
    let seen = rerun(program, library, conditions, expected, run, guide, names)?;
    let instead = match &seen.verdict {
        Verdict::Failed(again) if again.key == failure.key => None,
        // The schedule ends where the recorded run was killed; what computes there computes here.
        _ if matches!(seen.held.stop, Stop::Late)
            && failure.cause == NO_END
            && (expected.limit_is_failure || !seen.observed.waited_for_the_outside()) =>
        {
            None
        }
        Verdict::Failed(other) => Some(other.what.clone()),
        Verdict::Passed => Some("it ended without a failure".to_owned()),
        Verdict::Unfinished => Some("it reached a limit".to_owned()),
    };
    let mut seen = seen;
    let mut race = None;
    // A panic is known by its message, as it was when only the end of the process was looked at.
    let signing: &[ThreadStack] = if seen.at_panic { &[] } else { &seen.stacks };
    let mut signed = signature(&program.subject(), failure, signing);
    if let Some(found) = seen.observed.race.clone().filter(|_| failure.kind == Kind::Race) {
        let serial = found.first.serial;
        let before =
            rerun_until(program, library, conditions, expected, (run.0, run.1, serial), guide, names)?;
        if let (Some(mut first), Some(mut second)) =
            (before.stacks.into_iter().next(), seen.stacks.first().cloned())
        {
            call_racing(&mut first, &found.first);
            call_racing(&mut second, &found.second);
            signed = sign_race(&program.subject(), [&first, &second]);
            let evidence = examine(&found, [&first, &second], &mut seen, names);
            seen.text = format!("{}\n{}", evidence.text.text(), seen.text);
            // Both stacks come first, whatever else the threads were doing.
            seen.stacks.splice(..1, [second, first]);
            race = Some(evidence);
        }
    }
    let signature = Signature::new(failure.kind, signed);
    Ok(Evidence { confirmed: instead.is_none(), instead, signature, race, seen })
}

/// A thread of a race is held by us, and is in the middle of an access.
fn call_racing(stack: &mut ThreadStack, access: &race::Access) {
    stack.name = format!("thread {}, {} of {} bytes", access.thread, access.verb(), access.bytes);
    stack.scheduled = Some(Scheduled { number: access.thread as u32, doing: None });
    (stack.state, stack.wait, stack.syscall) = (SchedulerState::Running, Wait::No, None);
}

/// The signature of a race: the functions of both stacks, or the places in modules where there are no names.
fn sign_race(test: &str, stacks: [&ThreadStack; 2]) -> EvidenceSignature {
    let places = stacks.map(race::innermost);
    let named = |frames: &Vec<&Frame>| frames.iter().any(|frame| frame.function.is_some());
    if places.iter().all(named) {
        return EvidenceSignature::of_hang("race", test, stacks);
    }
    let place = |frames: &Vec<&Frame>| frames.first().map_or_else(String::new, |frame| race::line(frame));
    let mut places = [place(&places[0]), place(&places[1])];
    places.sort_unstable();
    EvidenceSignature::from_text(format!("race in {test} [{}] [{}]", places[0], places[1]))
}

/// Weighs a race and puts it in words. `seen` is the run that shows it.
fn examine(
    found: &Race,
    stacks: [&ThreadStack; 2],
    seen: &mut Rerun,
    names: &mut Symbolizer,
) -> RaceEvidence {
    let places = stacks.map(race::innermost);
    let Rerun { variables, names: objects, code: map, .. } = seen;
    let variable = variables.at(found.address);
    let line = |file: &str, line: u32| {
        let text = std::fs::read_to_string(file).ok()?;
        text.lines().nth(line.checked_sub(1)? as usize).map(str::to_owned)
    };
    let qualifies = |frame: &Frame| {
        frame.module.as_deref().is_none_or(|module| may_be_qualified(Path::new(module), frame.offset))
    };
    let files = |frame: &Frame| {
        let files = frame.module.as_deref().map(|module| files_of_unit(Path::new(module), frame.offset));
        files.unwrap_or_default().iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect()
    };
    let named = variable.as_deref().filter(|_| found.block.is_none());
    let sources = Sources { line: &line, qualifies: &qualifies, files: &files, variable: named };
    let weighed = weigh(found, [&places[0], &places[1]], &sources);
    let memory = match (found.block, variable) {
        (Some(block), _) => {
            let at = CodeAddress::Return(block.code);
            let place = names.resolve(map, &[at]).first().map(race::line);
            let place =
                place.filter(|_| block.code != 0).map_or_else(String::new, |place| format!(" in {place}"));
            format!(
                "byte {} of a heap block of {} bytes, allocated by thread {}{place}",
                found.address.wrapping_sub(block.start),
                block.bytes,
                block.thread
            )
        }
        (None, Some(variable)) => variable,
        (None, None) => format!("memory at {:#x}", found.address),
    };
    let lock = |address: u64| objects.lock(address, &mut |address| variables.at(address));
    let text = RaceText::new(found, [&stacks[0].frames, &stacks[1].frames], memory, lock);
    RaceEvidence { weighed, text }
}

/// The stacks of a held process, the thread at which it is held first.
pub fn stacks_of(held: &Held, names: &mut Symbolizer) -> Result<Vec<ThreadStack>, String> {
    stacks_at(held, None, names)
}

/// The same; `registers` are those of the thread at which it is held, if they are known better.
fn stacks_at(
    held: &Held,
    registers: Option<Registers>,
    names: &mut Symbolizer,
) -> Result<Vec<ThreadStack>, String> {
    let mut options = CaptureOptions::default();
    let blamed = match &held.stop {
        Stop::Signal(crash) => {
            options.crashed.push((**crash).clone());
            Some(crash.thread)
        }
        Stop::Exit { thread, .. } => Some(*thread),
        Stop::Late => None,
        Stop::Gone(_) => return Err("the process was gone before it could be held".to_owned()),
    };
    let mut snapshot = capture(held.process(), &options).map_err(|error| error.to_string())?;
    if let Some(registers) = registers {
        let threads = snapshot.threads.iter_mut().filter(|thread| Some(thread.id) == blamed);
        threads.for_each(|thread| thread.context = ThreadContext::Stopped(registers));
    }
    let mut stacks = {
        let _stage = timings::within(Stage::Names);
        names.stacks(&snapshot)
    };
    stacks.sort_by_key(|stack| Some(stack.id) != blamed);
    Ok(stacks)
}

fn signature(test: &str, failure: &Failure, stacks: &[ThreadStack]) -> EvidenceSignature {
    let message = failure.message.as_deref();
    let blamed = stacks.first().map(|stack| stack.frames.as_slice()).unwrap_or_default();
    // Where the framework ended the process says nothing; the assertion's own place does.
    if let Some(place) = &failure.place {
        return EvidenceSignature::from_text(format!("{} in {test} at {place}", failure.kind));
    }
    match failure.kind {
        Kind::Deadlock if !stacks.is_empty() => EvidenceSignature::of_hang("deadlock", test, stacks),
        Kind::Crash | Kind::Assert | Kind::Exception | Kind::Exit
            if blamed.iter().any(|frame| origin(frame) == Origin::Own) =>
        {
            EvidenceSignature::of_stack(&format!("{} {}", failure.kind, failure.cause), test, message, blamed)
        }
        // A process that returned from main has none of its own functions on the stack any more.
        Kind::Crash | Kind::Assert | Kind::Exception | Kind::Exit => {
            let said = message.map(normal_message).filter(|said| !said.is_empty());
            let said = said.map_or_else(String::new, |said| format!(": {said}"));
            EvidenceSignature::from_text(format!("{} {} in {test}{said}", failure.kind, failure.cause))
        }
        // Where the limit happened to fall says nothing.
        kind => EvidenceSignature::from_text(format!("{kind} in {test}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waylay_control_protocol::Statement;

    #[test]
    fn how_a_run_left_its_schedule_is_told_with_what_was_expected() {
        let otherwise = Departure::Otherwise("thread 1".into(), "further steps".into());
        let told = |departure| left_the_schedule(3, &Account(vec![Statement::Left(3, departure)]));
        assert_eq!(
            told(otherwise),
            "the fresh process left the schedule at step 3: expected thread 1, saw further steps"
        );
        assert_eq!(told(Departure::Early(2)), "the fresh process left the schedule at step 3");
        assert_eq!(
            left_the_schedule(3, &Account::default()),
            "the fresh process left the schedule at step 3"
        );
    }
}
