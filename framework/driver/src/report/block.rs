//! One failure as one block on the terminal: what, where, how often, and the line that replays it.

use std::fmt::Write as _;
use std::path::Path;

use waylay_evidence::{Frame, Origin, ThreadStack, origin};
use waylay_findings::Evidence;
use waylay_report::cause::WIDTH;
use waylay_report::escape::{Name, Plain};

use super::numbers::{count, plural};
use super::pot::mix_lines;
use crate::failure::FailureEntry;

/// Frames of a stack that a block shows; `stacks.txt` has the rest.
const FRAMES_SHOWN: usize = 6;
/// Stacks that a block shows of a hang: a deadlock needs two, and so does a race. Everything else has one place.
const STACKS_OF_A_HANG: usize = 2;

/// The block of one failure.
pub fn failure_block(entry: &FailureEntry, folder: &Path) -> String {
    let mut text = String::new();
    let test =
        entry.test.as_ref().map_or_else(|| "the host itself".to_owned(), |test| format!("test {test}"));
    let _ = writeln!(text, "━━ {} in {} ━━ {}", entry.kind, Name(&test), entry.signature.id);
    row(&mut text, "cause", &entry.why.lines(WIDTH).join("\n"));
    row(&mut text, "code", &entry.why.code().join("\n"));
    row(&mut text, "what", &entry.what);
    if let Some(reason) = &entry.reason {
        row(&mut text, "why", reason);
    }
    let mut label = "where";
    let shown = if entry.kind.evidence() == Evidence::SeveralThreads { STACKS_OF_A_HANG } else { 1 };
    for stack in told(&entry.stacks, shown) {
        for line in stack_lines(stack) {
            row(&mut text, std::mem::take(&mut label), &line);
        }
    }
    row(&mut text, "often", &how_often(entry));
    for line in entry.occurrences.first().map(mix_lines).unwrap_or_default() {
        row(&mut text, "mix", &line);
    }
    if let Some(trace) = entry.occurrences.first().and_then(|first| first.randomizer) {
        let (windows, seed) = (plural(trace.windows, "window"), trace.seed);
        row(
            &mut text,
            "random",
            &format!("after {windows} of the randomizer, seed {seed} (replay is statistical)"),
        );
    }
    for gap in &entry.gaps {
        row(&mut text, "gap", gap);
    }
    row(&mut text, "files", &folder.display().to_string());
    row(&mut text, "replay", &entry.replay);
    text
}

/// A failure in a line, where there is no room for its block. Named by its id: numbers go by the time at which failures happened, and
/// one that happened earlier may still be looked into.
pub(super) fn failure_line(entry: &FailureEntry) -> String {
    let test = entry.test.as_deref().unwrap_or("the host itself");
    let what = entry.what.lines().next().unwrap_or_default();
    let place = told(&entry.stacks, 1).into_iter().flat_map(telling_frames).next().map(frame_line);
    let place = place.map_or_else(String::new, |place| format!("; {}", place.trim()));
    let (test, what, place) = (Name(test), Plain(what), Plain(&place));
    let id = &entry.signature.id;
    format!("━━ {} in test {test}: {what}{place} (waylay show {id})\n", entry.kind)
}

/// The stacks that tell something: those with code of the test, or the first of all.
fn told(stacks: &[ThreadStack], most: usize) -> Vec<&ThreadStack> {
    let own = |stack: &ThreadStack| stack.frames.iter().any(|frame| origin(frame) == Origin::Own);
    let (own, others): (Vec<_>, Vec<_>) =
        stacks.iter().filter(|stack| !stack.frames.is_empty()).partition(|stack| own(stack));
    let first = stacks.iter().find(|stack| stack.crashed && !stack.frames.is_empty());
    let chosen = if own.is_empty() { others.into_iter().take(1).collect() } else { own };
    // What crashed comes first, whoever's code that was.
    let rest = chosen.into_iter().filter(|stack| first.is_none_or(|first| !std::ptr::eq(*stack, first)));
    first.into_iter().chain(rest).take(most).collect()
}

fn row(text: &mut String, label: &str, value: &str) {
    let mut label = label;
    for line in value.lines() {
        let _ = writeln!(text, "   {:<7} {}", std::mem::take(&mut label), Plain(line));
    }
}

/// The frames of the test's own code, or all when there are none.
pub(super) fn telling_frames(stack: &ThreadStack) -> Vec<&Frame> {
    let telling: Vec<&Frame> = stack.frames.iter().filter(|frame| origin(frame) == Origin::Own).collect();
    if telling.is_empty() { stack.frames.iter().collect() } else { telling }
}

/// The first of them, a line each.
pub fn own_frames(stack: &ThreadStack, most: usize) -> Vec<String> {
    telling_frames(stack).into_iter().take(most).map(frame_line).collect()
}

fn stack_lines(stack: &ThreadStack) -> Vec<String> {
    let chosen = telling_frames(stack);
    let doing = match stack.scheduled.as_ref().and_then(|scheduled| scheduled.doing.as_ref()) {
        _ if stack.crashed => ", crashed here".to_owned(),
        Some(doing) if doing != "running" => format!(" {doing}"),
        _ => String::new(),
    };
    let mut lines = vec![format!("{}{doing}", Name(&stack.title()))];
    lines.extend(chosen.iter().take(FRAMES_SHOWN).map(|frame| format!("  {}", frame_line(frame))));
    if chosen.len() > FRAMES_SHOWN {
        lines.push(format!("  … {} more in stacks.txt", chosen.len() - FRAMES_SHOWN));
    }
    lines
}

/// A function and its place.
pub(super) fn frame_line(frame: &Frame) -> String {
    let function = frame.function.as_deref().unwrap_or("??");
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{function}  {}:{line}", short_path(file)),
        _ => match &frame.module {
            Some(module) => format!("{function}  in {}", short_path(module)),
            None => format!("{function}  at {:#x}", frame.address),
        },
    }
}

/// The last two parts of a path say enough on a terminal.
fn short_path(path: &str) -> &str {
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at);
    slashes.next();
    slashes.next().map_or(path, |at| &path[at + 1..])
}

fn how_often(entry: &FailureEntry) -> String {
    let first = entry.occurrences.first();
    let at = first.map_or_else(String::new, |occurrence| match occurrence.worker {
        Some(worker) => format!(
            ", first in iteration {} of worker {worker} of scenario {}, seed {}",
            count(occurrence.iteration),
            occurrence.scenario,
            occurrence.seed
        ),
        None => format!(", first in scenario {}", occurrence.scenario),
    });
    format!("{}{at}", plural(entry.count, "time"))
}
