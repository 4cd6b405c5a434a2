//! What decides who runs in a run, and why there is none.

use std::io;
use std::path::PathBuf;

use waylay_control_protocol::{RegionError, RegionMap, Settings, Stretch};
use waylay_driver::secrets::clean_text;
use waylay_schedule::ordered::{Base, Order, to_words};
use waylay_schedule::{RunParameters, Turn};

/// What decides who runs.
#[derive(Clone, Copy, Debug)]
pub enum Guide<'a> {
    /// A strategy.
    Strategy(&'a RunParameters),
    /// A schedule, step for step.
    Schedule(&'a [Stretch]),
    /// Forced switches, and no other preemption.
    Switches(&'a [Turn]),
    /// Events that come in a given order, and who runs where that leaves a choice.
    Orders(&'a [Order], &'a Base),
}

impl<'a> Guide<'a> {
    /// What repeats a run that had these parameters: its schedule, or the strategy again where nobody believes what the run
    /// recorded.
    pub fn repeating(schedule: &'a [Stretch], parameters: &'a RunParameters) -> Guide<'a> {
        if schedule.is_empty() { Guide::Strategy(parameters) } else { Guide::Schedule(schedule) }
    }
}

impl Guide<'_> {
    /// Writes settings and guide into the region.
    pub fn prepare(self, region: &mut RegionMap, settings: Settings) -> Result<(), RegionError> {
        match self {
            Guide::Strategy(parameters) => {
                let text = serde_json::to_string(parameters).unwrap_or_default();
                region.prepare(settings, &text)
            }
            Guide::Schedule(schedule) => region.prepare_replay(settings, schedule),
            Guide::Switches(turns) => {
                let turns: Vec<_> = turns.iter().map(|turn| (turn.to.0, turn.of.0, turn.after)).collect();
                region.prepare_guided(settings, &turns)
            }
            Guide::Orders(orders, base) => region.prepare_ordered(settings, &to_words(orders, base)),
        }
    }
}

/// Why no run could be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The kernel refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The program did not reach `main`.
    #[error("{} did not reach main: {why}{}", .program.display(), said(.stderr))]
    NoMain {
        /// The program.
        program: PathBuf,
        /// How it ended instead.
        why: String,
        /// What it said.
        stderr: String,
    },
    /// The fork server failed again and again.
    #[error(transparent)]
    Server(#[from] crate::sys::ServerFailure),
    /// The region could not be used.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// Everything is to end (Ctrl-C, SIGTERM), so the run was broken off.
    #[error("interrupted in the middle of a run")]
    Interrupted,
    /// The library could not do what it was asked.
    #[error("the control library refused the run: {0}")]
    Refused(String),
}

fn said(stderr: &str) -> String {
    let mut text = stderr.trim().to_owned();
    clean_text(&mut text);
    match text.as_str() {
        "" => String::new(),
        text => format!("; it said: {text}"),
    }
}

/// Gives an I/O result the action that it is about.
pub(crate) fn doing<T>(what: &'static str, result: io::Result<T>) -> Result<T, RunError> {
    result.map_err(|source| RunError::System { what, source })
}
