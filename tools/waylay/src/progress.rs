//! Progress of what takes long: one line that is written over and over on a terminal. Where standard error is no terminal,
//! nothing is written; what logs are told of is up to each command.
//!
//! A thread of its own draws, so that the time goes on while the work says nothing. Messages of the command go past the line
//! through [`above`]: it is taken away, the message written, and drawn again. It is plain text and a carriage return, so it
//! has no colour that NO_COLOR would have to take away, and works on every console.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use waylay_driver::failure::FailureEntry;
use waylay_driver::report::{Live, RunningNow, Terminal, Tick, count, span};
use waylay_driver::store::TestRecord;
use waylay_report::escape::Name;

/// How often the line is drawn anew.
const EVERY: Duration = Duration::from_millis(200);
/// Characters of a full bar, and of one that makes room for words.
const CELLS: usize = 24;
const FEWEST_CELLS: usize = 8;
/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// Columns of the line that is on the screen now.
static DRAWN: Mutex<usize> = Mutex::new(0);

/// What is known about the work.
#[derive(Clone, Debug, Default)]
struct State {
    what: String,
    /// Time after which it ends at the latest.
    limit: Option<Duration>,
    done: u64,
    all: Option<u64>,
    /// What happens right now.
    words: String,
}

#[derive(Default)]
struct Shared {
    state: Mutex<(State, bool)>,
    over: Condvar,
}

/// A line on the terminal for as long as it lives.
pub(crate) struct Bar(Option<(Arc<Shared>, JoinHandle<()>)>);

impl Bar {
    /// Begins to show that this is being done.
    pub(crate) fn of(what: &str, quiet: bool) -> Bar {
        Bar::show(State { what: what.to_owned(), ..State::default() }, quiet)
    }

    /// The bar fills with the time that it may take.
    pub(crate) fn within(what: &str, limit: Duration, quiet: bool) -> Bar {
        Bar::show(State { what: what.to_owned(), limit: Some(limit), ..State::default() }, quiet)
    }

    fn show(state: State, quiet: bool) -> Bar {
        if quiet || !is_possible() {
            return Bar(None);
        }
        show(&state, Duration::ZERO);
        let shared = Arc::new(Shared { state: Mutex::new((state, false)), over: Condvar::new() });
        let drawing = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("waylay-progress".into()).spawn(move || keep(&drawing));
        // Without a thread there is no line, and the work is done all the same.
        Bar(thread.ok().map(|thread| (shared, thread)))
    }

    /// Whether there is a line, which makes lines in between needless.
    pub(crate) fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Takes the line away for good.
    pub(crate) fn end(&mut self) {
        if let Some((shared, thread)) = self.0.take() {
            locked(&shared.state).1 = true;
            shared.over.notify_all();
            let _ = thread.join();
            above(|| ());
        }
    }

    /// So much is done, of so much.
    pub(crate) fn reach(&self, done: u64, all: Option<u64>) {
        self.change(|state| (state.done, state.all) = (done, all));
    }

    /// One more is begun.
    pub(crate) fn step(&self, all: u64) {
        self.change(|state| (state.done, state.all) = ((state.done + 1).min(all), Some(all)));
    }

    /// What happens right now.
    pub(crate) fn say(&self, words: impl Into<String>) {
        self.change(|state| state.words = words.into());
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        if let Some((shared, _)) = &self.0 {
            change(&mut locked(&shared.state).0);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.end();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A terminal that can go back to the beginning of a line.
fn is_possible() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|kind| kind != "dumb")
}

/// Draws now and then until it is over.
fn keep(shared: &Shared) {
    let begun = Instant::now();
    let mut held = locked(&shared.state);
    while !held.1 {
        held = shared.over.wait_timeout(held, EVERY).unwrap_or_else(PoisonError::into_inner).0;
        if !held.1 {
            let state = held.0.clone();
            drop(held);
            show(&state, begun.elapsed());
            held = locked(&shared.state);
        }
    }
}

fn show(state: &State, elapsed: Duration) {
    let columns = ratatui::crossterm::terminal::size().map_or(COLUMNS, |(columns, _)| columns.into());
    let line = line(state, elapsed, columns.saturating_sub(1));
    let mut drawn = locked(&DRAWN);
    let columns = line.chars().count();
    let rest = drawn.saturating_sub(columns);
    crate::stream::write(&mut std::io::stderr().lock(), format_args!("\r{line}{:rest$}", ""));
    *drawn = columns;
}

/// A campaign whose progress is the line, and whose other lines go past it.
pub(crate) struct OnBar {
    lines: Terminal,
    bar: Bar,
}

impl OnBar {
    /// Lines of the campaign, and the bar that says how far it is.
    pub(crate) fn new(lines: Terminal, bar: Bar) -> OnBar {
        waylay_driver::report::write_past(past);
        OnBar { lines, bar }
    }
}

impl Live for OnBar {
    fn note(&mut self, text: &str) {
        self.lines.note(text);
    }

    fn failure(&mut self, entry: &FailureEntry, folder: &Path) {
        self.lines.failure(entry, folder);
    }

    fn tick(&mut self, tick: &Tick) {
        if let Some(words) = self.lines.brief(tick) {
            self.bar.say(words);
        }
    }

    fn tests(&mut self, tests: &[TestRecord]) {
        self.lines.tests(tests);
    }

    fn running(&mut self, now: &RunningNow) {
        self.lines.running(now);
    }
}

/// [`above`] for those who know nothing of bars.
fn past(write: &mut dyn FnMut()) {
    above(write);
}

/// Takes the line away, if there is one, and writes; it is drawn again soon.
pub(crate) fn above(write: impl FnOnce()) {
    let mut drawn = locked(&DRAWN);
    if *drawn > 0 {
        let columns = std::mem::take(&mut *drawn);
        let _ = write!(std::io::stderr().lock(), "\r{:columns$}\r", "");
    }
    write();
}

/// The line, cut at so many columns.
fn line(state: &State, elapsed: Duration, columns: usize) -> String {
    let part = match (state.all, state.limit) {
        (Some(all), _) if all > 0 => Some(state.done as f64 / all as f64),
        (None, Some(limit)) => Some(elapsed.as_secs_f64() / limit.as_secs_f64().max(f64::MIN_POSITIVE)),
        _ => None,
    };
    let mut rest = match (state.all, state.limit) {
        (Some(all), _) => format!(" {} of {}, {}", count(state.done), count(all), span(elapsed)),
        (None, Some(limit)) => format!(" {} of at most {}", span(elapsed), span(limit)),
        (None, None) => format!(" {}", span(elapsed)),
    };
    if !state.words.is_empty() {
        rest += &format!("  {}", Name(&state.words));
    }
    let mut text = format!("waylay: {}", state.what);
    if let Some(part) = part {
        let room = columns.saturating_sub(text.chars().count() + rest.chars().count() + " []".len());
        let cells = room.clamp(FEWEST_CELLS, CELLS);
        let full = (part.clamp(0.0, 1.0) * cells as f64) as usize;
        text += &format!(" [{}{}]", "━".repeat(full), " ".repeat(cells - full));
    }
    text += &rest;
    text.chars().take(columns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_SECONDS: Duration = Duration::from_secs(2);

    #[test]
    fn the_line_says_what_is_done_how_far_it_is_and_how_long_it_took() {
        let counted = State { what: "replaying".into(), done: 5, all: Some(10), ..State::default() };
        let half = format!("[{}{}]", "━".repeat(12), " ".repeat(12));
        let shown = line(&counted, TWO_SECONDS, 100);
        assert!(shown.starts_with(&format!("waylay: replaying {half} 5 of 10, ")), "{shown}");
        let limit = Some(Duration::from_secs(8));
        let timed = State { what: "minimizing".into(), limit, words: "x".into(), ..State::default() };
        let shown = line(&timed, TWO_SECONDS, 100);
        assert!(shown.contains(&format!("[{}{}]", "━".repeat(6), " ".repeat(18))), "{shown}");
        assert!(shown.ends_with("  x") && shown.contains("of at most"), "{shown}");
        let endless = State { what: "reading".into(), ..State::default() };
        assert!(!line(&endless, TWO_SECONDS, 100).contains('['));
    }

    #[test]
    fn the_line_stays_one_line_whatever_is_in_it() {
        let words = "\u{1b}]0;owned\u{7}\r\nsecond\n".to_owned() + &"x".repeat(300);
        let state = State { what: "exploring".into(), done: 30, all: Some(10), words, ..State::default() };
        for columns in [0, 1, 20, 79, 200] {
            let shown = line(&state, TWO_SECONDS, columns);
            assert!(
                shown.chars().count() <= columns && !shown.contains(['\n', '\r', '\u{1b}', '\u{7}']),
                "{shown:?}"
            );
        }
        let nothing = State { all: Some(0), ..State::default() };
        assert!(line(&nothing, TWO_SECONDS, 79).contains("0 of 0"));
    }
}
