//! Lines while a campaign runs, on a terminal and without one.

use std::path::Path;
use std::time::{Duration, Instant};

use waylay_report::escape::{Name, Plain};

use super::block::{failure_block, failure_line};
use super::detail::{Detail, Page};
use super::numbers::{compact, count, plural, span};
use super::pot::share_line;
use super::running::{RunningNow, running_text};
use super::stderr::write;
use super::suspensions::suspension_text;
use crate::failure::FailureEntry;
use crate::record::{CampaignRecord, RandomizerRecord, TestRecord};

/// How things stand.
#[derive(Clone, Debug)]
pub struct Tick {
    /// Since the campaign began.
    pub elapsed: Duration,
    /// Name of the scenario that runs.
    pub scenario: String,
    /// Its iterations are schedules.
    pub strict: bool,
    /// Finished iterations of the whole campaign.
    pub iterations: u64,
    /// Failures of the whole campaign.
    pub failures: u64,
    /// Different failures.
    pub signatures: usize,
    /// The worker that is longest in its iteration, and for how long.
    pub slowest: Option<(String, Duration)>,
    /// What the randomizers of this scenario did so far; none when it asked for none.
    pub randomizer: Option<RandomizerRecord>,
}

/// Who is told what happens.
pub trait Live {
    /// Something worth a line: a host that was lost, a test that was retired, a plugin that cannot be loaded.
    fn note(&mut self, text: &str);
    /// A failure that was not seen before.
    fn failure(&mut self, entry: &FailureEntry, folder: &Path);
    /// How things stand; called often, shown every few seconds.
    fn tick(&mut self, tick: &Tick);
    /// The numbers of a scenario's tests; called about once a second, those of pots are shown now and then.
    fn tests(&mut self, tests: &[TestRecord]) {
        let _ = tests;
    }
    /// Failures whose counts changed since the last call; called about once a second.
    fn counted(&mut self, entries: &[&FailureEntry]) {
        let _ = entries;
    }
    /// The whole campaign as its folder has it now; called when it begins, about once a second, and when it is over.
    fn campaign(&mut self, record: &CampaignRecord, folder: &Path) {
        let _ = (record, folder);
    }
    /// Whether somebody wants to know what is running now: asked often, answered with [`Live::running`].
    fn wants_look(&mut self) -> bool {
        false
    }
    /// What is running now, because somebody asked.
    fn running(&mut self, now: &RunningNow) {
        let _ = now;
    }
    /// Whether the campaign is to end in order before its time: asked often.
    fn enough(&self) -> bool {
        false
    }
}

impl<L: Live + ?Sized> Live for Box<L> {
    fn note(&mut self, text: &str) {
        (**self).note(text);
    }
    fn failure(&mut self, entry: &FailureEntry, folder: &Path) {
        (**self).failure(entry, folder);
    }
    fn tick(&mut self, tick: &Tick) {
        (**self).tick(tick);
    }
    fn tests(&mut self, tests: &[TestRecord]) {
        (**self).tests(tests);
    }
    fn counted(&mut self, entries: &[&FailureEntry]) {
        (**self).counted(entries);
    }
    fn campaign(&mut self, record: &CampaignRecord, folder: &Path) {
        (**self).campaign(record, folder);
    }
    fn wants_look(&mut self) -> bool {
        (**self).wants_look()
    }
    fn running(&mut self, now: &RunningNow) {
        (**self).running(now);
    }
    fn enough(&self) -> bool {
        (**self).enough()
    }
}

/// Tells nobody.
#[derive(Debug, Default)]
pub struct Silent;

impl Live for Silent {
    fn note(&mut self, _text: &str) {}
    fn failure(&mut self, _entry: &FailureEntry, _folder: &Path) {}
    fn tick(&mut self, _tick: &Tick) {}
    /// Whoever asks gets an answer.
    fn running(&mut self, now: &RunningNow) {
        write(&format!("\n{}\n", running_text(now)));
    }
}

/// Writes to standard error, so that standard output stays for machines.
#[derive(Debug)]
pub struct Terminal {
    every: Duration,
    detail: Detail,
    page: Page,
    last: Option<Last>,
    pots_shown: Instant,
}

/// How often the tests of a pot are listed: they are many lines.
const POTS_EVERY: Duration = Duration::from_secs(10);

/// What the last line was about.
#[derive(Clone, Debug)]
struct Last {
    at: Instant,
    iterations: u64,
    suspensions: u64,
    scenario: String,
}

impl Terminal {
    /// A line about progress every so often, and so much about the rest.
    pub fn new(every: Duration, detail: Detail) -> Terminal {
        Terminal { every, detail, page: Page::default(), last: None, pots_shown: Instant::now() }
    }

    fn write(&mut self, text: &str) {
        self.page.written(text);
        write(text);
    }

    /// How things stand, in few words, when it is time to say so again; for those who show it beside something else.
    pub fn brief(&mut self, tick: &Tick) -> Option<String> {
        let (rate, suspended) = self.pace(tick)?;
        Some(brief_words(tick, rate, suspended))
    }

    /// Iterations and suspensions per second since the last time, when it is time to tell them again.
    fn pace(&mut self, tick: &Tick) -> Option<(f64, f64)> {
        let now = Instant::now();
        if self.last.as_ref().is_some_and(|last| now - last.at < self.every) {
            return None;
        }
        let suspensions = tick.randomizer.as_ref().map_or(0, |record| record.counts.suspensions);
        let current =
            Last { at: now, iterations: tick.iterations, suspensions, scenario: tick.scenario.clone() };
        // The first comes after one period, with a rate that means something.
        let last = self.last.replace(current)?;
        let seconds = (now - last.at).as_secs_f64();
        let rate = tick.iterations.saturating_sub(last.iterations) as f64 / seconds;
        // Suspensions are counted by scenario.
        let before = if last.scenario == tick.scenario { last.suspensions } else { 0 };
        let suspended = suspensions.saturating_sub(before) as f64 / seconds;
        Some((rate, suspended))
    }
}

impl Live for Terminal {
    fn note(&mut self, text: &str) {
        if self.detail == Detail::All || self.page.has_room_for_a_note() {
            self.write(&note_lines(text));
        }
    }

    fn failure(&mut self, entry: &FailureEntry, folder: &Path) {
        if self.detail == Detail::All || self.page.has_room_for_a_block() {
            self.write(&format!("\n{}\n", failure_block(entry, folder)));
        } else {
            self.write(&failure_line(entry));
        }
    }

    fn tick(&mut self, tick: &Tick) {
        if let Some((rate, suspended)) = self.pace(tick) {
            self.write(&format!("{} {}\n", clock(tick.elapsed), tick_words(tick, rate, suspended)));
        }
    }

    fn tests(&mut self, tests: &[TestRecord]) {
        if self.detail == Detail::All && self.pots_shown.elapsed() >= POTS_EVERY.max(self.every) {
            self.pots_shown = Instant::now();
            let lines: String =
                tests.iter().filter_map(share_line).map(|line| format!("      {line}\n")).collect();
            self.write(&lines);
        }
    }

    fn running(&mut self, now: &RunningNow) {
        write(&format!("\n{}\n", running_text(now)));
    }
}

/// A note, indented to its last line: what a test is called must not pass for a line of ours.
fn note_lines(text: &str) -> String {
    let lines = text.lines().enumerate();
    lines
        .map(|(number, line)| format!("{}{}\n", if number == 0 { "   " } else { "     " }, Plain(line)))
        .collect()
}

fn clock(elapsed: Duration) -> String {
    let elapsed = elapsed.as_secs();
    format!("[{:02}:{:02}:{:02}]", elapsed / 3600, elapsed / 60 % 60, elapsed % 60)
}

/// What a line has room for that is shared with a bar, what matters most first.
fn brief_words(tick: &Tick, rate: f64, suspended: f64) -> String {
    let unit = if tick.strict { " schedules" } else { "" };
    let mut words = format!(
        "{}: {} iterations ({}{unit}/s), {}",
        Name(&tick.scenario),
        compact(tick.iterations as f64),
        compact(rate),
        plural(tick.failures, "failure")
    );
    if tick.randomizer.is_some() {
        words += &format!(", {} suspensions/s", compact(suspended));
    }
    if let Some((worker, time)) = &tick.slowest {
        words += &format!(", slowest now {} for {}", Name(worker), span(*time));
    }
    words
}

fn tick_words(tick: &Tick, rate: f64, suspended: f64) -> String {
    let mut line = format!(
        "{}: {} ({}{}/s), {}",
        Name(&tick.scenario),
        plural(tick.iterations, "iteration"),
        count(rate as u64),
        // The number is of the whole campaign, whatever its other scenarios were.
        if tick.strict { " schedules" } else { "" },
        plural(tick.failures, "failure")
    );
    if tick.failures > 0 {
        line.push_str(&format!(" ({} different)", tick.signatures));
    }
    if let Some(record) = &tick.randomizer {
        line.push_str(&format!(", {}", suspension_text(record, suspended)));
    }
    if let Some((worker, time)) = &tick.slowest {
        line.push_str(&format!(", slowest now {} for {}", Name(worker), span(*time)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_note_is_seen_to_be_one() {
        assert_eq!(note_lines("a\u{7}\nclean: b"), "   a⟨U+0007⟩\n     clean: b\n");
    }

    #[test]
    fn a_line_says_everything_that_matters() {
        let tick = Tick {
            elapsed: Duration::from_secs(3725),
            scenario: "libraries".into(),
            strict: false,
            iterations: 1_234_567,
            failures: 12,
            signatures: 2,
            slowest: Some(("channel#1".into(), Duration::from_millis(1500))),
            randomizer: None,
        };
        assert_eq!(
            format!("{} {}", clock(tick.elapsed), tick_words(&tick, 98_765.4, 0.0)),
            "[01:02:05] libraries: 1,234,567 iterations (98,765/s), 12 failures (2 different), \
             slowest now channel#1 for 1.50 s"
        );
        let strict = Tick { strict: true, failures: 0, slowest: None, ..tick };
        assert_eq!(
            tick_words(&strict, 700.0, 0.0),
            "libraries: 1,234,567 iterations (700 schedules/s), 0 failures"
        );
        assert_eq!(
            brief_words(&strict, 700.0, 0.0),
            "libraries: 1.23M iterations (700 schedules/s), 0 failures"
        );
        let hostile = "\u{1b}[2J\nx".to_owned();
        let slowest = Some((hostile.clone(), Duration::from_secs(1)));
        let tick = Tick { scenario: hostile, slowest, ..strict };
        let line = tick_words(&tick, 0.0, 0.0) + &brief_words(&tick, 0.0, 0.0);
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}
