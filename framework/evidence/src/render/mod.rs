//! Stacks as text for people: `stacks.txt`.
//!
//! The faulting thread comes first, then the others; threads with the same stack are one block. The test's
//! own frames are marked and carry file and line; runs of runtime frames are folded into one line.

use std::fmt::Write;

use crate::origin::{Origin, base_name, origin};
use crate::snapshot::{SchedulerState, Wait};
use crate::stack::{Frame, StackEnd, ThreadStack, Trust};

/// Runtime frames named when a run of them is folded.
const NAMED_WHEN_FOLDED: usize = 2;
/// Threads named in the heading of a block.
const NAMED_THREADS: usize = 6;

/// How stacks are written.
#[derive(Debug, Clone, Copy, Default)]
pub struct RenderOptions {
    /// Write every frame instead of folding those of runtimes.
    pub unfolded: bool,
}

/// Writes stacks, crashed threads first, then the ones with own code, largest groups last.
#[must_use]
pub fn stacks(stacks: &[ThreadStack], options: RenderOptions) -> String {
    let mut groups: Vec<Vec<&ThreadStack>> = Vec::new();
    for stack in stacks {
        match groups.iter_mut().find(|group| is_same(group[0], stack)) {
            Some(group) => group.push(stack),
            None => groups.push(vec![stack]),
        }
    }
    groups.sort_by_key(|group| (!group[0].crashed, !has_own_frames(group[0])));
    let mut text = String::new();
    for group in groups {
        if !text.is_empty() {
            text.push('\n');
        }
        heading(&mut text, &group);
        frames(&mut text, group[0], options);
    }
    text
}

fn is_same(a: &ThreadStack, b: &ThreadStack) -> bool {
    let places = |stack: &ThreadStack| -> Vec<(Option<String>, u64)> {
        stack.frames.iter().map(|frame| (frame.module.clone(), frame.offset)).collect()
    };
    !a.crashed
        && !b.crashed
        && doing(a) == doing(b)
        && a.frames.len() == b.frames.len()
        && places(a) == places(b)
}

fn has_own_frames(stack: &ThreadStack) -> bool {
    stack.frames.iter().any(|frame| origin(frame) == Origin::Own)
}

fn heading(text: &mut String, group: &[&ThreadStack]) {
    let name = |stack: &&ThreadStack| match &stack.scheduled {
        // The dump knows it by the kernel's number.
        Some(_) => format!("{} [{}]", stack.name, stack.id),
        None => format!("{} \"{}\"", stack.id, stack.name),
    };
    let mut names: Vec<_> = group.iter().take(NAMED_THREADS).map(name).collect();
    if group.len() > NAMED_THREADS {
        names.push(format!("and {} more", group.len() - NAMED_THREADS));
    }
    let threads = match group.len() {
        1 if group[0].scheduled.is_some() => String::new(),
        1 => "thread ".to_owned(),
        count => format!("{count} threads: "),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{threads}{}: {}", names.join(", "), doing(group[0]));
}

/// What a thread was doing, in words.
#[must_use]
pub fn doing(stack: &ThreadStack) -> String {
    if stack.crashed {
        return "crashed here".into();
    }
    if let Some(doing) = stack.scheduled.as_ref().and_then(|scheduled| scheduled.doing.as_ref()) {
        return doing.clone();
    }
    let call = stack.syscall.as_ref().and_then(|syscall| syscall.name.as_deref()).unwrap_or("a system call");
    match (stack.wait, stack.state) {
        (Wait::ThreadUntimed, _) => format!("waits for another thread, without a timeout ({call})"),
        (Wait::ThreadTimed, _) => format!("waits for another thread, with a timeout ({call})"),
        (Wait::Sleep, _) => format!("sleeps ({call})"),
        (Wait::InputUntimed, _) => format!("waits for input, without a timeout ({call})"),
        (Wait::InputTimed, _) => format!("waits for input, with a timeout ({call})"),
        (Wait::No, SchedulerState::Running) => "running".into(),
        (Wait::No, SchedulerState::Sleeping) => "sleeping".into(),
        (Wait::No, SchedulerState::Uninterruptible) => "waits inside the kernel".into(),
        (Wait::No, SchedulerState::Stopped) => "stopped by a signal".into(),
        (Wait::No, SchedulerState::Other) => "state unknown".into(),
    }
}

fn frames(text: &mut String, stack: &ThreadStack, options: RenderOptions) {
    let mut index = 0;
    while index < stack.frames.len() {
        if let Some(omitted) = stack.omitted.filter(|omitted| omitted.before == index) {
            let _ = writeln!(text, "       … {} frames not shown …", omitted.frames);
        }
        let end = folded_end(stack, index);
        if !options.unfolded && end - index > 1 {
            let _ = writeln!(text, "       ({})", folded(&stack.frames[index..end]));
            index = end;
        } else {
            frame(text, index, &stack.frames[index]);
            index += 1;
        }
    }
    let end = match stack.end {
        StackEnd::Root => return,
        StackEnd::Cut => "the middle of the stack was not copied",
        StackEnd::Lost => "the stack cannot be followed further",
        StackEnd::Unseen => "the thread could not be looked at",
    };
    let _ = writeln!(text, "       ({end})");
}

/// End of the run of frames that are not the test's own. The gap of an omission ends a run.
fn folded_end(stack: &ThreadStack, start: usize) -> usize {
    let gap = stack.omitted.map(|omitted| omitted.before).filter(|before| *before > start);
    let limit = gap.unwrap_or(stack.frames.len()).min(stack.frames.len());
    let run = stack.frames[start..limit].iter().take_while(|frame| origin(frame) != Origin::Own).count();
    start + run
}

fn folded(frames: &[Frame]) -> String {
    let names: Vec<_> = frames.iter().map(name).collect();
    let shown = if names.len() <= NAMED_WHEN_FOLDED {
        names.join(", ")
    } else {
        format!("{} … {}", names[0], names[names.len() - 1])
    };
    format!("{} runtime frames: {shown}", frames.len())
}

fn name(frame: &Frame) -> String {
    match (&frame.function, frame.function_offset) {
        (Some(function), Some(offset)) if offset > 0 => format!("{function}+{offset:#x}"),
        (Some(function), _) => function.clone(),
        (None, _) => format!("{:#x}", frame.address),
    }
}

fn frame(text: &mut String, index: usize, frame: &Frame) {
    let mark = if origin(frame) == Origin::Own { '>' } else { ' ' };
    let place = match (&frame.file, frame.line, &frame.module) {
        (Some(file), Some(line), _) => format!("{file}:{line}"),
        (Some(file), None, _) => file.clone(),
        (None, _, Some(module)) => {
            format!("{}+{:#x}", base_name(module), frame.offset)
        }
        (None, _, None) => "no file".into(),
    };
    let note = match (frame.inlined, frame.trust) {
        (_, Trust::Scan) => "  (guessed from the stack)",
        (true, _) => "  (inlined)",
        _ => "",
    };
    let _ = writeln!(text, "  {mark}{index:>3}  {}  at {place}{note}", name(frame));
}

#[cfg(test)]
mod tests;
