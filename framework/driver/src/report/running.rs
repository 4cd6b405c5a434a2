//! What is running now, for people who ask while a campaign runs: each worker's test, iteration, state and stack.

use std::fmt::Write as _;
use std::time::Duration;

use waylay_evidence::{ThreadStack, render};
use waylay_report::escape::{Name, Plain};

use super::block::{frame_line, telling_frames};
use super::numbers::{count, plural, span};
use crate::failure::WorkerView;

/// Frames of a stack that are shown.
const FRAMES_SHOWN: usize = 10;

/// What a host is doing at one moment.
#[derive(Clone, Debug)]
pub struct RunningNow {
    /// The scenario.
    pub scenario: String,
    /// Its tests run one thread at a time.
    pub strict: bool,
    /// The host's process number.
    pub pid: u32,
    /// What the host as a whole does, in words.
    pub phase: &'static str,
    /// Every worker.
    pub workers: Vec<WorkerNow>,
    /// Threads that tests started, each with the test's name.
    pub started: Vec<(String, ThreadStack)>,
    /// Further threads of the host.
    pub own_threads: usize,
    /// What could not be seen, in words.
    pub gaps: Vec<String>,
}

/// One worker.
#[derive(Clone, Debug)]
pub struct WorkerNow {
    /// What the shared page says about it.
    pub view: WorkerView,
    /// Its stack; none when its thread is over or could not be seen.
    pub stack: Option<ThreadStack>,
}

/// All of it as lines. A stack that was written before is only named.
pub fn running_text(now: &RunningNow) -> String {
    let mut text = format!(
        "━━ running now ━━ scenario {}, process {}, which {}, {}\n",
        Name(&now.scenario),
        now.pid,
        now.phase,
        plural(now.workers.len() as u64, "worker")
    );
    let mut written: Vec<(String, Vec<String>)> = Vec::new();
    for WorkerNow { view, stack } in &now.workers {
        let name = format!("{}#{}", Name(&view.test), view.worker);
        let inside = match &view.running {
            Some(running) if !running.over => {
                format!(", runs {} (iteration {})", Name(&running.test), count(running.iteration))
            }
            _ => String::new(),
        };
        let time = span(Duration::from_millis(view.for_ms));
        let state = match (view.state.as_str(), stack) {
            ("running", Some(stack)) => {
                format!("in iteration {} for {time}{inside}: {}", count(view.iteration), render::doing(stack))
            }
            ("running", None) => format!("in iteration {} for {time}{inside}", count(view.iteration)),
            ("held", _) => format!("failed in iteration {}, which is being looked at", count(view.iteration)),
            ("waiting", _) => {
                format!("waits for the other workers, after iteration {}", count(view.iteration))
            }
            ("idle", _) => "not started".to_owned(),
            (other, _) => format!("{other} after iteration {}", count(view.iteration)),
        };
        let holds = match view.holds.is_empty() {
            true => String::new(),
            false => format!(", holds {}", view.holds.join(", ")),
        };
        let _ = writeln!(text, "   {name}  {state}{holds}");
        if let Some(stack) = stack {
            write_stack(&mut text, &mut written, &name, stack);
        }
    }
    for (test, stack) in &now.started {
        let name = format!("{} of {}", Name(&stack.title()), Name(test));
        let _ = writeln!(text, "   {name}  {}", render::doing(stack));
        write_stack(&mut text, &mut written, &name, stack);
    }
    if now.own_threads > 0 {
        let _ = writeln!(text, "   and {} of the host itself", plural(now.own_threads as u64, "thread"));
    }
    if now.strict {
        let _ =
            writeln!(text, "   strict mode: only the thread whose turn it is has a stack of its own to show");
    }
    for gap in &now.gaps {
        let _ = writeln!(text, "   {gap}");
    }
    Plain(&text).to_string()
}

fn write_stack(text: &mut String, written: &mut Vec<(String, Vec<String>)>, name: &str, stack: &ThreadStack) {
    let frames = telling_frames(stack);
    let mut lines: Vec<String> = frames.iter().take(FRAMES_SHOWN).map(|frame| frame_line(frame)).collect();
    if frames.len() > FRAMES_SHOWN {
        lines.push(format!("… {} more", frames.len() - FRAMES_SHOWN));
    }
    if lines.is_empty() {
        return;
    }
    if let Some((first, _)) = written.iter().find(|(_, known)| *known == lines) {
        let _ = writeln!(text, "       the same stack as {first}");
        return;
    }
    for line in &lines {
        let _ = writeln!(text, "       {line}");
    }
    written.push((name.to_owned(), lines));
}
