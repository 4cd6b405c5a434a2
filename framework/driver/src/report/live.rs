//! Lines while a campaign runs, on a terminal and without one.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::block::failure_block;
use super::numbers::{count, plural, span};
use crate::failure::FailureEntry;

/// How things stand.
#[derive(Clone, Debug)]
pub struct Tick {
    /// Since the campaign began.
    pub elapsed: Duration,
    /// Name of the scenario that runs.
    pub scenario: String,
    /// Finished iterations of the whole campaign.
    pub iterations: u64,
    /// Failures of the whole campaign.
    pub failures: u64,
    /// Different failures.
    pub signatures: usize,
    /// The worker that is longest in its iteration, and for how long.
    pub slowest: Option<(String, Duration)>,
}

/// Who is told what happens.
pub trait Live {
    /// Something worth a line: a host that was lost, a test that was retired, a plugin that cannot be loaded.
    fn note(&mut self, text: &str);
    /// A failure that was not seen before.
    fn failure(&mut self, entry: &FailureEntry, folder: &Path);
    /// How things stand; called often, shown every few seconds.
    fn tick(&mut self, tick: &Tick);
}

/// Tells nobody.
#[derive(Debug, Default)]
pub struct Silent;

impl Live for Silent {
    fn note(&mut self, _text: &str) {}
    fn failure(&mut self, _entry: &FailureEntry, _folder: &Path) {}
    fn tick(&mut self, _tick: &Tick) {}
}

/// Writes to standard error, so that standard output stays for machines.
#[derive(Debug)]
pub struct Terminal {
    every: Duration,
    last: Option<(Instant, u64)>,
}

impl Terminal {
    /// A line about progress every so often.
    pub fn new(every: Duration) -> Terminal {
        Terminal { every, last: None }
    }

    fn write(&self, text: &str) {
        // A closed terminal is no reason to stop a campaign.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

impl Live for Terminal {
    fn note(&mut self, text: &str) {
        self.write(&format!("   {text}\n"));
    }

    fn failure(&mut self, entry: &FailureEntry, folder: &Path) {
        self.write(&format!("\n{}\n", failure_block(entry, folder)));
    }

    fn tick(&mut self, tick: &Tick) {
        let now = Instant::now();
        let rate = match self.last {
            Some((at, _)) if now - at < self.every => return,
            Some((at, iterations)) => {
                (tick.iterations.saturating_sub(iterations)) as f64 / (now - at).as_secs_f64()
            }
            None => {
                // The first line comes after one period, with a rate that means something.
                self.last = Some((now, tick.iterations));
                return;
            }
        };
        self.last = Some((now, tick.iterations));
        self.write(&format!("{}\n", tick_line(tick, rate)));
    }
}

fn tick_line(tick: &Tick, rate: f64) -> String {
    let elapsed = tick.elapsed.as_secs();
    let mut line = format!(
        "[{:02}:{:02}:{:02}] {}: {} ({}/s), {}",
        elapsed / 3600,
        elapsed / 60 % 60,
        elapsed % 60,
        tick.scenario,
        plural(tick.iterations, "iteration"),
        count(rate as u64),
        plural(tick.failures, "failure")
    );
    if tick.failures > 0 {
        line.push_str(&format!(" ({} different)", tick.signatures));
    }
    if let Some((worker, time)) = &tick.slowest {
        line.push_str(&format!(", slowest now {worker} for {}", span(*time)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_everything_that_matters() {
        let tick = Tick {
            elapsed: Duration::from_secs(3725),
            scenario: "libraries".into(),
            iterations: 1_234_567,
            failures: 12,
            signatures: 2,
            slowest: Some(("channel#1".into(), Duration::from_millis(1500))),
        };
        assert_eq!(
            tick_line(&tick, 98_765.4),
            "[01:02:05] libraries: 1,234,567 iterations (98,765/s), 12 failures (2 different), \
             slowest now channel#1 for 1.50 s"
        );
    }
}
