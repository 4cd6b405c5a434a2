//! Where a failure is, in a few lines for people: which threads, what each waits for, and the program's own code.

use waylay_driver::failure::Kind;
use waylay_driver::report::own_frames;
use waylay_evidence::{ThreadStack, render};

/// Threads of a deadlock that are shown; `stacks.txt` has the rest.
const MOST_THREADS: usize = 8;
/// Frames shown of each of several threads, and of one alone.
const FRAMES_OF_MANY: usize = 2;
const FRAMES_OF_ONE: usize = 6;

/// The lines. `stacks` has the thread to blame first.
pub(crate) fn places(kind: Kind, stacks: &[ThreadStack]) -> Vec<String> {
    let number = |stack: &ThreadStack| stack.scheduled.as_ref().map_or(u32::MAX, |known| known.number);
    let mut lines = Vec::new();
    let hangs = kind.is_hang();
    let mut shown: Vec<&ThreadStack> = stacks.iter().filter(|stack| !stack.frames.is_empty()).collect();
    if hangs {
        shown.sort_by_key(|stack| number(stack));
    } else {
        shown.truncate(1);
    }
    let (all, frames) = (shown.len(), if hangs { FRAMES_OF_MANY } else { FRAMES_OF_ONE });
    for stack in shown.into_iter().take(MOST_THREADS) {
        lines.push(match hangs {
            true => format!("{} {}", stack.title(), render::doing(stack)),
            false => stack.title(),
        });
        lines.extend(own_frames(stack, frames).iter().map(|frame| format!("  {frame}")));
    }
    if all > MOST_THREADS {
        lines.push(format!("… {} more threads in stacks.txt", all - MOST_THREADS));
    }
    lines
}
