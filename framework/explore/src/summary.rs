//! What an exploration is summed up to: one object for machines, a few lines for people.

use std::path::PathBuf;

use serde::Serialize;
use waylay_control_protocol::RunConditions;
use waylay_control_protocol::instrumentation::RACING_MEMORY;
use waylay_driver::failure::Variant;
use waylay_driver::report::{Covered, count, left_out, steps_line};
use waylay_report::cause::{WIDTH, Why, wrap};
use waylay_report::shell;
use waylay_schedule::coverage::OrdersSeen;
use waylay_schedule::promise::Promise;

use crate::delayed::DelayedText;
use crate::race::RaceText;
use crate::restart::{Off, Restart};
use crate::timings::Timings;
use crate::worker::Worker;

/// One signature.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// What broke.
    pub kind: String,
    /// Short name.
    pub signature: String,
    /// What it was made of.
    pub text: String,
    /// One line.
    pub what: String,
    /// Where: threads, what they wait for, and the program's own code, a line each.
    #[serde(rename = "where")]
    pub places: Vec<String>,
    /// How often.
    pub count: u64,
    /// Number of the first run that showed it, from 1.
    pub first_run: u64,
    /// Whether a fresh process failed in the same way.
    pub confirmed: bool,
    /// What that showed instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// Its folder.
    pub failure_dir: Option<PathBuf>,
    /// The command that runs it again.
    pub replay: Option<String>,
    /// Both accesses of a race.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub race: Option<RaceText>,
    /// Switches that have to be forced to make it fail, if its schedule was made small.
    pub forced: Option<u64>,
    /// Stores that waited in a store buffer while others read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delayed: Vec<DelayedText>,
    /// An option that may make it go away, if it is no fault of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Which orders of events it needs, if that was sought.
    #[serde(flatten)]
    pub why: Why,
    /// In which other ways the same cause shows; these are counted here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
}

impl Found {
    /// One more run failed so, with this signature.
    pub(crate) fn count_one(&mut self, signature: &str) {
        self.count += 1;
        let variant = self.variants.iter_mut().find(|variant| variant.signature.id == signature);
        variant.into_iter().for_each(|variant| variant.count += 1);
    }

    /// The failure as a block of lines, from what is known to what can be done.
    pub(crate) fn block(&self, program: &str, runs: u64) -> String {
        let mut lines = vec![format!("\n━━ {} in {program} ━━ {}", self.kind, self.signature)];
        let mut row =
            |label: &str, value: &str| lines.push(format!("   {label:<7} {value}").trim_end().to_owned());
        for (place, line) in self.why.lines(WIDTH).iter().enumerate() {
            row(if place == 0 { "cause" } else { "" }, line);
        }
        for (place, line) in self.why.code().iter().enumerate() {
            row(if place == 0 { "code" } else { "" }, line);
        }
        for delayed in &self.delayed {
            for (place, line) in wrap(&delayed.sentence(), WIDTH).iter().enumerate() {
                row(if place == 0 { "delayed" } else { "" }, line);
            }
        }
        row("what", &self.what);
        let race = self.race.as_ref().map(RaceText::lines);
        for (place, line) in race.as_ref().unwrap_or(&self.places).iter().enumerate() {
            row(if place == 0 { "where" } else { "" }, line);
        }
        row(
            "often",
            &format!("{} of {} runs, first in run {}", count(self.count), count(runs), count(self.first_run)),
        );
        if let Some(hint) = &self.hint {
            row("hint", hint);
        }
        if !self.confirmed {
            row(
                "doubt",
                "not confirmed: a fresh process that followed the schedule did not fail in the same way",
            );
            if let Some(instead) = &self.instead {
                row("instead", instead);
            }
        }
        if let (Some(folder), Some(replay)) = (&self.failure_dir, &self.replay) {
            row("files", &folder.display().to_string());
            row("replay", replay);
            match self.forced {
                Some(0) => row("reduced", "it fails without a forced switch; replay it with --minimized"),
                Some(1) => row("reduced", "1 switch has to be forced; replay it with --minimized"),
                Some(forced) => row(
                    "reduced",
                    &format!("{} switches have to be forced; replay them with --minimized", count(forced)),
                ),
                None => row("reduce", &format!("waylay minimize {}", shell::word(folder))),
            }
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

/// What `waylay explore --json` prints.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// The program.
    pub program: String,
    /// The strategy.
    pub strategy: String,
    /// The seed, as it is given on the command line.
    pub seed: String,
    /// Schedules that were run.
    pub runs: u64,
    /// Runs that failed.
    pub failures: u64,
    /// Number of the first run that failed, from 1.
    pub first_failure_run: Option<u64>,
    /// What broke first.
    pub kind: Option<String>,
    /// Its signature.
    pub signature: Option<String>,
    /// n: the most threads of a run.
    pub threads: u32,
    /// k: the most steps of a run.
    pub steps: u64,
    /// d: the depth that the first failing run, or the promise, is about.
    pub depth: u32,
    /// Runs per second of wall time.
    pub schedules_per_second: f64,
    /// Steps per second of wall time.
    pub steps_per_second: f64,
    /// Wall time in seconds.
    pub seconds: f64,
    /// What the runs promise, for the greatest depth that is promised well, or else for depth 1.
    pub guarantee: Option<Promise>,
    /// The same for every depth.
    pub guarantees: Vec<Promise>,
    /// Folder of the first failure.
    pub failure_dir: Option<PathBuf>,
    /// The command that runs the first failure again.
    pub replay: Option<String>,
    /// Every signature.
    pub found: Vec<Found>,
    /// A systematic search saw every schedule within its bound.
    pub exhausted: bool,
    /// Runs in which something outside our control took part.
    pub partly_controlled: u64,
    /// Runs that were stopped at the limit of steps, and so were not judged.
    pub limit_reached: u64,
    /// Failing runs whose evidence was not looked at because many of their kind were before.
    pub not_examined: u64,
    /// How often the program had to be started again.
    pub restarts: u64,
    /// How runs began: `fork`, or `snapshot` if most were restored.
    pub restart: String,
    /// Runs that were restored from a snapshot.
    pub restored: u64,
    /// Runs that were to be restored and went to the fork server instead.
    pub fell_back: u64,
    /// Restored runs that were made again by a fork and compared.
    pub compared: u64,
    /// The user stopped it.
    pub interrupted: bool,
    /// Orders of conflicting places in the code that were seen, of those that are possible.
    pub orders: OrdersSeen,
    /// It ended because no new order came for as long as was asked for.
    pub quiet: bool,
    /// What was a step: sync, atomics, auto or memory.
    pub level: String,
    /// Code sites whose plain accesses conflict, and so are steps from the auto level on.
    pub sites: u64,
    /// Plain accesses of a run: the steps there would be if all of them were.
    pub accesses: u64,
    /// Runs in which accesses to what is only handed over were steps, too: nothing is promised by them.
    pub handed_runs: u64,
    /// The most such sites of a run that made more steps than a run gives to one; their later accesses were no steps.
    pub limited_sites: u64,
    /// Some of these, by function and line.
    pub limited_places: Vec<String>,
    /// A run that was looked at touched more memory than is remembered, or came by some code too often.
    pub overlooked: bool,
    /// Some of that code, by function and line.
    pub overlooked_places: Vec<String>,
    /// A run made more calls that synchronise nothing than are steps.
    pub calls_over: bool,
    /// Whether accesses that nothing orders were failures.
    pub races: bool,
    /// Pairs of accesses that nothing orders and that may be atomic: code without debug information.
    pub doubtful_races: u64,
    /// Races that a fresh process did not show.
    pub unconfirmed_races: u64,
    /// When others see a store: `sc` or `tso`.
    pub memory: &'static str,
    /// Threads of `threads` that are store buffers, which only let stores become visible.
    pub store_buffers: u64,
    /// Failures in which stores waited, and that a fresh process did not show: they are not reported.
    pub unconfirmed_delays: u64,
    /// Runs that touched more memory than races are looked for in.
    pub races_over: u64,
    /// Instructions of unmodified code that were patched to be steps.
    pub patched: u64,
    /// Instructions that could not be patched safely.
    pub refused: u64,
    /// Some of these, by function and line.
    pub refused_places: Vec<String>,
    /// The strategy promises nothing, however many runs are made.
    #[serde(skip)]
    pub promises_nothing: bool,
    /// What else should be known.
    pub notes: Vec<String>,
    /// Where the time went, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
    /// The campaign's folder.
    pub folder: PathBuf,
}

/// What is known of the steps of the runs.
pub(crate) fn covered(run: &RunConditions, summary: &Summary) -> Covered {
    Covered {
        level: run.level,
        patch: run.patch,
        patched: summary.patched,
        refused: summary.refused,
        refused_places: summary.refused_places.clone(),
        accesses: summary.accesses,
        limited: summary.limited_sites,
        limited_places: summary.limited_places.clone(),
        overlooked: summary.overlooked,
        overlooked_places: summary.overlooked_places.clone(),
        calls_over: summary.calls_over,
        at_limit: summary.limit_reached,
        auto: "--level auto",
        doctor: Some("waylay doctor PROGRAM"),
    }
}

/// Which accesses were no steps although a bug may need a switch there: what is promised does not cover them.
pub(crate) fn not_looked_at(run: &RunConditions, summary: &Summary) -> Vec<String> {
    let mut notes = left_out(&covered(run, summary));
    if summary.doubtful_races > 0 {
        notes.push(format!(
            "{} pairs of unordered accesses in code without debug information may be atomic and were not reported as races \
             (compile with -g, or with waylay cflags)",
            count(summary.doubtful_races)
        ));
    }
    if summary.races_over > 0 {
        notes.push(format!(
            "{} runs touched more than {} MiB of memory: races were looked for only up to there",
            count(summary.races_over),
            RACING_MEMORY >> 20
        ));
    }
    notes
}

impl Summary {
    /// Takes in how the workers made their runs.
    pub(crate) fn take_workers(&mut self, asked: Restart, workers: &[Worker<'_>]) {
        for worker in workers {
            let known = &worker.known;
            self.restarts += worker.restarts();
            self.restored += known.restored;
            self.fell_back += known.fell_back();
            self.compared += known.compared;
            let back = known.given_back.iter().map(|(why, runs)| {
                format!("{} runs went to the fork server: the program {why}", count(*runs))
            });
            let off = known.off.iter().filter(|off| asked == Restart::Snapshot || **off != Off::Slow);
            for line in back.chain(off.map(|off| off.to_string())) {
                if !self.notes.contains(&line) {
                    self.notes.push(line);
                }
            }
        }
        let restored = self.restored * 2 > self.runs;
        self.restart = if restored { Restart::Snapshot } else { Restart::Fork }.to_string();
    }

    /// A few lines for people.
    pub fn text(&self) -> String {
        let mut lines = vec![format!(
            "{} schedules of {} in {:.1} s ({} per second), {} threads, up to {} steps, {}",
            count(self.runs),
            self.program,
            self.seconds,
            count(self.schedules_per_second as u64),
            self.threads,
            count(self.steps),
            self.strategy,
        )];
        lines.extend(self.found.iter().map(|found| found.block(&self.program, self.runs)));
        if self.found.is_empty() {
            lines.push("no failure".to_owned());
        }
        if self.limit_reached > 0 {
            lines.push(format!(
                "{} of {} runs reached the limit of steps or of time and were not judged (--max-steps and --timeout raise \
                 them, --limit-is-failure makes that a failure)",
                count(self.limit_reached),
                count(self.runs)
            ));
        }
        if self.exhausted {
            let cut = match self.limit_reached {
                0 => String::new(),
                cut => format!(", {} of them only up to a limit", count(cut)),
            };
            lines.push(format!("every schedule within the bound was tried{cut}"));
        }
        if let Some(promise) = &self.guarantee {
            lines.push(promise.to_string());
        } else if self.promises_nothing {
            lines.push("no guarantee: this strategy promises nothing by depth".to_owned());
        }
        if self.orders.predicted > 0 {
            lines.push(self.orders.to_string());
        }
        if self.quiet {
            lines.push(
                "it ended because no schedule showed a new order for as long as was asked for".to_owned(),
            );
        }
        if self.store_buffers > 0 {
            lines.push(format!(
                "stores wait as on x86 (tso): {} of {} threads only let them be seen, and each store that is so is a step",
                count(self.store_buffers),
                self.threads
            ));
        }
        lines.extend(steps_line(self.steps, self.accesses, self.sites));
        if self.handed_runs > 0 {
            lines.push(format!(
                "in {} of the runs accesses to what threads only hand over to each other were steps as well; they count for no \
                 guarantee",
                count(self.handed_runs)
            ));
        }
        if self.partly_controlled > 0 {
            lines.push(format!(
                "{} runs were only partly controlled: something outside the schedule took part, equal seeds may differ",
                count(self.partly_controlled)
            ));
        }
        lines.extend(self.notes.iter().cloned());
        let timings = self.timings.as_ref().map(Timings::text).unwrap_or_default();
        lines.join("\n") + "\n" + &timings
    }
}
