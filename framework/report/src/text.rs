//! The report for a terminal.

use std::fmt::Write as _;

use crate::cause::WIDTH;
use crate::confidence::{SURE, clean_runs_for};
use crate::escape::is_hidden;
use crate::guarantee;
use crate::model::{
    BuildRange, Failure, FailureState, Frame, Mode, Night, Origin, Stack, Verdict, side_by_side,
};
use crate::numbers::{count, plural};
use crate::page::verdict_words;

/// Failures that are listed.
const MOST_LINES: usize = 1000;
/// Frames of a stack, unless all are wanted.
const MOST_FRAMES: usize = 12;
/// Stacks, unless all are wanted.
const MOST_STACKS: usize = 8;

/// Text on one line without anything that a terminal would take for a command.
fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        c if c.is_control() => ' ',
        c if is_hidden(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(shown).collect()
}

/// The lines of a text, each made harmless.
fn lines(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines().map(plain)
}

/// A campaign in a few lines.
pub fn report(night: &Night) -> String {
    let word = match night.verdict() {
        Verdict::Clean => "CLEAN",
        Verdict::Failed => "FAILED",
        Verdict::Incomplete => "INCOMPLETE",
        Verdict::NothingRan => "NOTHING RAN",
    };
    let mut out =
        format!("campaign {}: {word}: {}\n", plain(&night.campaign.name), plain(&verdict_words(night)));
    for problem in &night.campaign.problems {
        let _ = writeln!(out, "did not run: {}", plain(problem));
    }
    for note in &night.campaign.notes {
        let _ = writeln!(out, "noticed: {}", plain(note));
    }
    if !night.failures.is_empty() {
        let _ = write!(out, "\n{}", failures(night));
    }
    let all = guarantee::of_all(&night.campaign.scenarios);
    if !all.is_empty() {
        out.push_str("\nwhat this guarantees\n");
    }
    let (free, told): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.mode == Mode::Free);
    for one in told {
        let _ = writeln!(out, "  {} ({}): {}", plain(&one.test), one.mode.word(), plain(&one.sentence));
        for broken in &one.broken {
            let _ = writeln!(out, "      no guarantee here: {}", plain(broken));
        }
    }
    if !free.is_empty() {
        let names: Vec<String> = guarantee::names(&free).into_iter().map(plain).collect();
        let _ = writeln!(out, "  nothing where threads ran freely: {}", names.join(", "));
    }
    out
}

/// The failures of a campaign, a line each.
pub fn failures(night: &Night) -> String {
    let mut out = String::new();
    for failure in night.failures.iter().take(MOST_LINES) {
        let state = if failure.suppressed.is_some() { "suppressed" } else { failure.state.word() };
        let times = match failure.state {
            FailureState::Resolved | FailureState::Open => {
                format!("{} before", plural(failure.count_ever, "time"))
            }
            _ => plural(failure.count, "time"),
        };
        let _ = writeln!(
            out,
            "{state:<9} {:<28} {:>10}  {}: {}",
            plain(&failure.id),
            times,
            plain(failure.subject()),
            plain(failure.what.lines().next().unwrap_or_default())
        );
    }
    if night.failures.len() > MOST_LINES {
        let _ = writeln!(out, "and {} more", count((night.failures.len() - MOST_LINES) as u64));
    }
    out
}

/// Everything about one failure.
pub fn failure(failure: &Failure, all_frames: bool) -> String {
    let mut out = format!(
        "━━ {} in {} ━━ {}\n",
        plain(failure.kind.word()),
        plain(failure.subject()),
        plain(&failure.id)
    );
    let mut row = |label: &str, text: &str| {
        let mut label = label;
        for line in lines(text) {
            let _ = writeln!(out, "   {:<9} {line}", std::mem::take(&mut label));
        }
    };
    row("cause", &failure.why.lines(WIDTH).join("\n"));
    row("what", &failure.what);
    if let Some(cause) = &failure.why.cause {
        row("orders", &cause.details().join("\n"));
    }
    row("why", failure.reason.as_deref().unwrap_or_default());
    let date = |at: Option<jiff::Timestamp>| {
        at.map_or_else(|| "?".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
    };
    let seen = format!("first {}, last {}", date(failure.first_seen), date(failure.last_seen));
    row("often", &format!("{}, {seen}", plural(failure.count, "time")));
    row("also", &failure.also().join("\n"));
    row("modes", &side_by_side(&failure.rates).unwrap_or_default());
    if let Some(first) = failure.occurrences.first() {
        let worker = first.worker.map_or_else(String::new, |worker| format!(" of worker {worker}"));
        let place = format!("iteration {}{worker} of scenario {}", count(first.iteration), first.scenario);
        row("first", &format!("{place}, seed {}", first.seed));
        for view in first.workers.iter().filter(|_| all_frames || first.workers.len() <= 16) {
            let running = view.running.as_ref().map_or_else(String::new, |test| format!(", runs {test}"));
            let holds = if view.holds.is_empty() {
                String::new()
            } else {
                format!(", holds {}", view.holds.join(", "))
            };
            row(
                "beside",
                &format!(
                    "{} #{}: {} in iteration {} for {} ms{running}{holds}",
                    view.test,
                    view.worker,
                    view.state,
                    count(view.iteration),
                    count(view.for_ms)
                ),
            );
        }
    }
    if let Some(schedule) = &failure.schedule {
        let text = format!(
            "{}: {} steps, {} switches, {} threads, {}",
            schedule.strategy,
            count(schedule.steps),
            count(schedule.switches),
            schedule.threads,
            if schedule.confirmed {
                "confirmed by a fresh process"
            } else {
                "not confirmed by a fresh process"
            }
        );
        row("schedule", &text);
        for switch in schedule.deciding() {
            row(
                "decides",
                &format!("at step {}: thread {} stops, thread {} runs", switch.step, switch.from, switch.to),
            );
        }
        row("beside", &schedule.going_on().join("\n"));
    }
    for line in failure.builds.iter().flat_map(BuildRange::lines) {
        row("builds", &line);
    }
    if let Some(seen) = &failure.reproduction {
        row("again", &format!("came back {} of {}", count(seen.reproduced), plural(seen.runs, "time")));
    }
    if let Some(seen) = &failure.other_builds {
        let times = plural(seen.runs, "time");
        row("other", &format!("came back {} of {times} with other builds", count(seen.reproduced)));
    }
    if let Some(runs) = failure.best_rate().and_then(|rate| clean_runs_for(&rate, SURE)) {
        row(
            "fixed",
            &format!("95 % sure after {}: waylay verify {}", plural(runs, "clean iteration"), failure.id),
        );
    }
    for gap in &failure.gaps {
        row("missing", gap);
    }
    row("signature", &failure.signature);
    row("files", &failure.folder);
    row("replay", &failure.replay);
    stacks(&mut out, failure, all_frames);
    out
}

fn stacks(out: &mut String, failure: &Failure, all: bool) {
    let is_own = |stack: &Stack| stack.frames.iter().any(|frame| frame.origin == Origin::Own);
    let all_stacks = failure.stacks.iter().enumerate();
    // A thread without code of the test says nothing, unless it is the first and perhaps the only one.
    let telling: Vec<(usize, &Stack)> =
        all_stacks.filter(|(place, stack)| all || *place == 0 || stack.crashed || is_own(stack)).collect();
    let shown = if all { telling.len() } else { telling.len().min(MOST_STACKS) };
    for (place, stack) in telling.into_iter().take(shown) {
        // A thread that failed waits while it is looked at, which is not what it was doing.
        let failed = place == 0 && failure.failed_in_one_place() && !stack.crashed;
        let doing = if failed { "failed here" } else { &stack.doing };
        let _ = writeln!(out, "\n   {} {}", plain(&stack.title()), plain(doing));
        let own: Vec<&Frame> = stack.frames.iter().filter(|frame| frame.origin == Origin::Own).collect();
        let chosen: Vec<&Frame> = if all || own.is_empty() { stack.frames.iter().collect() } else { own };
        let most = if all { usize::MAX } else { MOST_FRAMES };
        for frame in chosen.iter().take(most) {
            let function = plain(frame.function.as_deref().unwrap_or("??"));
            let _ = match (&frame.file, frame.line, &frame.module) {
                (Some(file), Some(line), _) => writeln!(out, "     {function}  {}:{line}", plain(file)),
                (_, _, Some(module)) => {
                    writeln!(out, "     {function}  in {}+{:#x}", plain(module), frame.offset)
                }
                _ => writeln!(out, "     {function}  at {:#x}", frame.offset),
            };
        }
        let hidden = stack.frames.len() - chosen.len().min(most).min(stack.frames.len());
        if hidden > 0 {
            let _ = writeln!(out, "     ({} with --all-frames)", plural(hidden as u64, "more frame"));
        }
    }
    let left_out = failure.stacks.len() - shown;
    if left_out > 0 {
        let _ = writeln!(out, "\n   {} with --all-frames", plural(left_out as u64, "more thread"));
    }
}
