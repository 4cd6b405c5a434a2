//! Where a failure is, in a few lines for people: which threads, what each waits for, and the program's own code.

use std::collections::BTreeMap;

use waylay_driver::failure::Kind;
use waylay_driver::report::own_frames;
use waylay_evidence::{ThreadId, ThreadStack};

/// Threads of a deadlock that are shown; `stacks.txt` has the rest.
const MOST_THREADS: usize = 8;
/// Frames shown of each of several threads, and of one alone.
const FRAMES_OF_MANY: usize = 2;
const FRAMES_OF_ONE: usize = 6;

/// The lines. `stacks` has the thread to blame first, `threads` the kernel's numbers in the order of creation, and `text`
/// what the library said.
pub(crate) fn places(kind: Kind, stacks: &[ThreadStack], threads: &[ThreadId], text: &str) -> Vec<String> {
    let waits = waits(text);
    let number = |stack: &ThreadStack| threads.iter().position(|thread| *thread == stack.id);
    let mut lines = Vec::new();
    let hangs = matches!(kind, Kind::Deadlock | Kind::Livelock);
    let mut shown: Vec<&ThreadStack> = stacks.iter().filter(|stack| !stack.frames.is_empty()).collect();
    if hangs {
        shown.sort_by_key(|stack| number(stack).unwrap_or(usize::MAX));
    } else {
        shown.truncate(1);
    }
    let (all, frames) = (shown.len(), if hangs { FRAMES_OF_MANY } else { FRAMES_OF_ONE });
    for stack in shown.into_iter().take(MOST_THREADS) {
        let thread = match number(stack) {
            Some(number) => format!("thread {number}"),
            None => format!("kernel thread {}", stack.id),
        };
        let does = number(stack).and_then(|number| waits.get(&number).copied());
        lines.push(match does {
            Some(does) => format!("{thread} {does}"),
            None => thread,
        });
        lines.extend(own_frames(stack, frames).iter().map(|frame| format!("  {frame}")));
    }
    if all > MOST_THREADS {
        lines.push(format!("… {} more threads in stacks.txt", all - MOST_THREADS));
    }
    lines
}

/// What each thread waits for, as the library says it.
fn waits(text: &str) -> BTreeMap<usize, &str> {
    let line = |line: &'_ str| -> Option<(usize, usize)> {
        let rest = line.strip_prefix("thread ")?;
        let number = rest.split(' ').next()?;
        Some((number.parse().ok()?, line.find(" steps) ")? + " steps) ".len()))
    };
    text.lines().filter_map(|told| line(told).map(|(number, at)| (number, &told[at..]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_wait_for_is_read() {
        let text = "deadlock: 2 threads, none can run\n\
                    thread 0 (3 steps) waits in thread-join of thread 1\n    program+0x10f5\n\
                    thread 12 (1 steps) waits in mutex-lock 0x5080, held by thread 0\nthread x\n";
        let expected =
            [(0, "waits in thread-join of thread 1"), (12, "waits in mutex-lock 0x5080, held by thread 0")];
        assert_eq!(waits(text).into_iter().collect::<Vec<_>>(), expected);
    }
}
