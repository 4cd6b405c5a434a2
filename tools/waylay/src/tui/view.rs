//! What the screen shows, without the screen: taken in from the campaign, changed by keys.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use waylay_driver::failure::FailureEntry;
use waylay_driver::report::{RunningNow, Tick, failure_block, running_text};
use waylay_driver::store::{CampaignRecord, TestRecord};

/// Rates that the chart keeps: more than a wide terminal has columns.
const RATES: usize = 400;
/// Words about what happened that are kept.
const NOTES: usize = 50;
/// Failures that are kept with their stacks; the summary has all.
const FAILURES: usize = 200;

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// End in order; the second time at once.
    End,
    /// What is running now?
    Look,
    Failures,
    Overview,
    Up(usize),
    Down(usize),
}

/// What is to be done about a key beyond showing something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    End,
    Look,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Page {
    #[default]
    Overview,
    Failures,
    Running,
}

/// One test as the table shows it.
#[derive(Clone, Debug)]
pub(super) struct TestRow {
    pub(super) record: TestRecord,
    pub(super) rate: f64,
}

/// One failure.
#[derive(Clone, Debug)]
pub(super) struct FailureRow {
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) test: String,
    pub(super) what: String,
    pub(super) count: u64,
    block: String,
}

/// How things stood when rates were last computed.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Duration,
    iterations: u64,
    suspensions: u64,
}

/// Everything that is shown.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) title: String,
    /// Told by the screen's own clock: while evidence is taken the campaign says nothing.
    pub(super) elapsed: Duration,
    pub(super) scenario: String,
    pub(super) strict: bool,
    pub(super) iterations: u64,
    pub(super) failed: u64,
    pub(super) different: usize,
    pub(super) slowest: Option<(String, Duration)>,
    /// Per second; none when no randomizer was asked for.
    pub(super) suspensions: Option<f64>,
    pub(super) rate: f64,
    pub(super) rates: VecDeque<u64>,
    pub(super) mode: String,
    pub(super) seed: String,
    pub(super) hosts: u64,
    pub(super) problems: usize,
    pub(super) tests: Vec<TestRow>,
    pub(super) failures: Vec<FailureRow>,
    pub(super) notes: VecDeque<String>,
    pub(super) page: Page,
    pub(super) scroll: usize,
    pub(super) ending: bool,
    /// Somebody asked what is running and has no answer yet.
    asked: bool,
    running: Option<String>,
    mark: Mark,
    tests_at: f64,
}

impl View {
    pub(super) fn new(title: &str) -> View {
        View { title: title.to_owned(), ..View::default() }
    }

    /// How things stand.
    pub(super) fn tick(&mut self, tick: &Tick) {
        self.strict = tick.strict;
        self.iterations = tick.iterations;
        self.failed = tick.failures;
        self.different = tick.signatures;
        self.slowest.clone_from(&tick.slowest);
        let suspensions = tick.randomizer.as_ref().map(|record| record.counts.suspensions);
        if self.scenario != tick.scenario {
            self.scenario.clone_from(&tick.scenario);
            // Suspensions are counted by scenario.
            self.mark.suspensions = 0;
            self.suspensions = suspensions.map(|_| 0.0);
        }
        let seconds = tick.elapsed.saturating_sub(self.mark.at).as_secs_f64();
        if seconds >= 1.0 {
            self.rate = tick.iterations.saturating_sub(self.mark.iterations) as f64 / seconds;
            self.rates.push_back(self.rate as u64);
            if self.rates.len() > RATES {
                self.rates.pop_front();
            }
            self.suspensions =
                suspensions.map(|now| now.saturating_sub(self.mark.suspensions) as f64 / seconds);
            let suspensions = suspensions.unwrap_or(0);
            self.mark = Mark { at: tick.elapsed, iterations: tick.iterations, suspensions };
        }
    }

    /// The campaign as a whole: the tests of the scenario that runs.
    pub(super) fn campaign(&mut self, record: &CampaignRecord) {
        self.seed = record.seed.to_string();
        self.hosts = record.hosts;
        self.problems = record.problems.len();
        let Some(scenario) = record.scenarios.last() else { return };
        self.mode.clone_from(&scenario.mode);
        let at = record.updated.duration_since(record.started).as_secs_f64();
        let seconds = at - self.tests_at;
        let before = std::mem::take(&mut self.tests);
        let row = |(place, test): (usize, &TestRecord)| {
            let known = before.get(place).filter(|row| row.record.name == test.name);
            let rate = match known {
                Some(row) if seconds > 0.0 => {
                    test.iterations.saturating_sub(row.record.iterations) as f64 / seconds
                }
                _ => 0.0,
            };
            TestRow { record: test.clone(), rate }
        };
        self.tests = scenario.tests.iter().enumerate().map(row).collect();
        self.tests_at = at;
    }

    pub(super) fn failure(&mut self, entry: &FailureEntry, folder: &Path) {
        if self.failures.len() < FAILURES {
            self.failures.push(FailureRow {
                id: entry.signature.id.clone(),
                kind: entry.kind.word(),
                test: entry.test.clone().unwrap_or_else(|| "the host itself".to_owned()),
                what: entry.what.lines().next().unwrap_or_default().to_owned(),
                count: entry.count,
                block: failure_block(entry, folder),
            });
        }
    }

    /// Failures came again.
    pub(super) fn counted(&mut self, entries: &[&FailureEntry]) {
        for entry in entries {
            if let Some(row) = self.failures.iter_mut().find(|row| row.id == entry.signature.id) {
                row.count = entry.count;
            }
        }
    }

    pub(super) fn note(&mut self, text: &str) {
        self.notes.push_back(text.lines().next().unwrap_or_default().to_owned());
        if self.notes.len() > NOTES {
            self.notes.pop_front();
        }
    }

    pub(super) fn running(&mut self, now: &RunningNow) {
        self.running = Some(running_text(now));
        self.asked = false;
        if self.page != Page::Running {
            self.open(Page::Running);
        }
    }

    fn open(&mut self, page: Page) {
        self.page = page;
        self.scroll = 0;
    }

    /// Follows a key, and says what is to be done beyond that.
    pub(super) fn key(&mut self, key: Key) -> Option<Wish> {
        match key {
            Key::End => {
                self.ending = true;
                return Some(Wish::End);
            }
            Key::Look => {
                self.asked = true;
                self.open(Page::Running);
                return Some(Wish::Look);
            }
            Key::Failures => self.open(Page::Failures),
            Key::Overview => self.open(Page::Overview),
            Key::Up(lines) => self.scroll = self.scroll.saturating_sub(lines),
            Key::Down(lines) => self.scroll = self.scroll.saturating_add(lines),
        }
        None
    }

    /// The lines of a page that is text.
    pub(super) fn text(&self) -> String {
        match (self.page, &self.running) {
            (Page::Overview, _) => String::new(),
            (Page::Failures, _) if self.failures.is_empty() => "No failure so far.".to_owned(),
            (Page::Failures, _) => {
                let blocks: Vec<&str> = self.failures.iter().map(|row| row.block.as_str()).collect();
                blocks.join("\n")
            }
            (Page::Running, None) => "Asked. The answer comes when a host runs.".to_owned(),
            (Page::Running, Some(text)) if self.asked => format!("Asked again; this was before.\n\n{text}"),
            (Page::Running, Some(text)) => text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(in super::super) fn tick(at: u64, scenario: &str, iterations: u64) -> Tick {
        Tick {
            elapsed: Duration::from_millis(at),
            scenario: scenario.to_owned(),
            strict: false,
            iterations,
            failures: 0,
            signatures: 0,
            slowest: None,
            randomizer: None,
        }
    }

    #[test]
    fn rates_are_per_second_and_only_over_whole_seconds() {
        let mut view = View::new("mix");
        view.tick(&tick(500, "s", 50));
        assert_eq!((view.rate, view.rates.len()), (0.0, 0));
        view.tick(&tick(2000, "s", 200));
        assert_eq!((view.rate, view.rates.len()), (100.0, 1));
        view.tick(&tick(2500, "s", 1000));
        view.tick(&tick(3000, "s", 1200));
        assert_eq!(view.rate, 1000.0);
    }

    #[test]
    fn keys_change_the_page_and_only_two_of_them_do_more() {
        let mut view = View::new("mix");
        assert_eq!(view.key(Key::Failures), None);
        assert_eq!((view.page, view.text().as_str()), (Page::Failures, "No failure so far."));
        assert_eq!(view.key(Key::Look), Some(Wish::Look));
        assert!(view.text().starts_with("Asked."));
        view.key(Key::Down(10));
        view.key(Key::Up(3));
        assert_eq!(view.scroll, 7);
        view.key(Key::Overview);
        assert_eq!((view.page, view.scroll), (Page::Overview, 0));
        assert_eq!(view.key(Key::End), Some(Wish::End));
        assert!(view.ending);
    }
}
