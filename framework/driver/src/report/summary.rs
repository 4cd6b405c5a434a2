//! The last words of a campaign: every failure again, what ran, what did not, and the verdict.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use waylay_report::escape::{Name, Plain};
use waylay_report::model::{Campaign, ModeRate, side_by_side};
use waylay_report::shell;

use super::detail::{Detail, LISTED, SUMMARY};
use super::left_out::steps_line;
use super::numbers::{count, plural, span};
use super::pot::share_line;
use super::suspensions::{bound_line, suspension_lines};
use crate::archive;
use crate::failure::FailureEntry;
use crate::record::{CampaignRecord, StrictNumbers};
use crate::sys;

/// A campaign that is over; printed for people by [`summary_text`] and as it is with `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The campaign's folder.
    pub folder: PathBuf,
    /// The campaign's numbers.
    pub campaign: CampaignRecord,
    /// Every failure with its folder.
    pub failures: Vec<FailureLine>,
    /// Failures that were only counted because there were too many different ones.
    pub uncatalogued: u64,
    /// Hung hosts that were left for a debugger.
    pub kept_hosts: Vec<u32>,
    /// 0 clean, 1 failures found, 2 something could not run, 3 Waylay itself failed.
    pub exit_code: u8,
}

/// One failure in short.
#[derive(Clone, Debug, Serialize)]
pub struct FailureLine {
    /// Its place in the order of first sight, from 1: what commands know it by while the campaign is the latest.
    pub number: usize,
    /// What broke.
    pub kind: crate::failure::Kind,
    /// In which test.
    pub test: Option<String>,
    /// One line.
    pub what: String,
    /// How often.
    pub count: u64,
    /// How often in each mode, if its test ran in several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<ModeRate>,
    /// Its folder.
    pub folder: PathBuf,
    /// Its signature.
    pub signature: crate::failure::Signature,
    /// The command that runs it again.
    pub replay: String,
}

impl FailureLine {
    pub(crate) fn of(
        entry: &FailureEntry,
        number: usize,
        folder: PathBuf,
        campaign: &Campaign,
    ) -> FailureLine {
        let mut failure = archive::record::failure(entry, &folder);
        archive::measure(&mut failure, campaign);
        FailureLine {
            rates: failure.rates,
            number,
            kind: entry.kind,
            test: entry.test.clone(),
            what: entry.what.clone(),
            count: entry.count,
            folder,
            signature: entry.signature.clone(),
            replay: entry.replay.clone(),
        }
    }
}

/// The summary for people.
pub fn summary_text(summary: &Summary, detail: Detail) -> String {
    let mut text = tests_text(summary);
    let mut listed = usize::MAX;
    if detail == Detail::Page {
        listed = LISTED;
        if text.lines().count() + summary.failures.len().min(listed) > SUMMARY {
            text = scenarios_text(summary);
        }
    }
    for problem in &summary.campaign.problems {
        let _ = writeln!(text, "did not run: {}", Plain(problem));
    }
    for note in &summary.campaign.notes {
        let _ = writeln!(text, "noticed: {}", Name(note));
    }
    if !summary.failures.is_empty() {
        let _ = writeln!(text, "\n{}:", plural(summary.failures.len() as u64, "different failure"));
        for failure in summary.failures.iter().take(listed) {
            let test = failure.test.as_deref().unwrap_or("the host itself");
            let (test, what) = (Name(test), Plain(failure.what.lines().next().unwrap_or_default()));
            let (number, times) = (failure.number, count(failure.count));
            let _ = writeln!(text, "  {number:>2}  {times} × {} in {test}: {what}", failure.kind);
            if let Some(rates) = side_by_side(&failure.rates) {
                let _ = writeln!(text, "      {rates}");
            }
        }
        if summary.failures.len() > listed {
            let _ = writeln!(text, "  and {} more: waylay failures", summary.failures.len() - listed);
        }
    }
    if summary.uncatalogued > 0 {
        let _ = writeln!(
            text,
            "  and {} of further signatures, only counted: there are too many different failures to keep all",
            plural(summary.uncatalogued, "failure")
        );
    }
    for pid in &summary.kept_hosts {
        let _ = writeln!(
            text,
            "process {pid} was kept: attach with `{}`, end it with `{}`",
            sys::attach_command(*pid),
            sys::end_command(*pid)
        );
    }
    let _ = writeln!(text, "\n{}", verdict(summary));
    if let Some(first) = summary.failures.first() {
        let _ = writeln!(text, "{}", next_line(first.number, &summary.folder));
    }
    text
}

/// What to type next about a failure of that campaign, which is the latest.
pub fn next_line(number: usize, campaign: &Path) -> String {
    let out = campaign.parent().unwrap_or(Path::new("."));
    let is_usual = std::path::absolute(out).ok() == std::path::absolute("waylay-out").ok();
    // Results elsewhere are not found without being told where.
    let told = if is_usual { String::new() } else { format!(" --out {}", shell::word(out)) };
    format!("next: waylay show {number}{told} · waylay replay {number}{told} · waylay report{told}")
}

/// Every scenario with its tests.
fn tests_text(summary: &Summary) -> String {
    let mut text = String::new();
    for scenario in &summary.campaign.scenarios {
        let ran = Duration::from_secs_f64(scenario.seconds);
        let _ = writeln!(text, "scenario {} ({}, {})", Name(&scenario.name), scenario.mode, span(ran));
        for test in &scenario.tests {
            if let Some(line) = share_line(test) {
                let retired =
                    test.retired.as_ref().map_or_else(String::new, |reason| format!(" [{}]", Name(reason)));
                let _ = writeln!(text, "    {line}{retired}");
                continue;
            }
            let average = match test.iterations {
                0 => String::new(),
                _ => format!(" × {}", span(Duration::from_nanos(test.average_ns as u64))),
            };
            let failures = if test.failures > 0 {
                format!(", {}", plural(test.failures, "failure"))
            } else {
                String::new()
            };
            let retired =
                test.retired.as_ref().map_or_else(String::new, |reason| format!(" [{}]", Name(reason)));
            let _ = writeln!(
                text,
                "  {:<28} {:>14}{average:<12}{failures}{retired}",
                Name(&test.name),
                count(test.iterations)
            );
            if let Some(strict) = &test.strict {
                strict_lines(&mut text, strict);
            }
            if let Some(line) = bound_line(test) {
                let _ = writeln!(text, "      {line}");
            }
        }
        for line in scenario.randomizer.iter().flat_map(suspension_lines) {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// A line for every scenario, where its tests would take more than a page.
fn scenarios_text(summary: &Summary) -> String {
    let mut text = String::new();
    for scenario in &summary.campaign.scenarios {
        let (mut iterations, mut failures, mut not_run) = (0, 0, 0);
        for test in &scenario.tests {
            iterations += test.iterations;
            failures += test.failures;
            not_run += u64::from(test.iterations == 0 && test.failures == 0);
        }
        let ran = span(Duration::from_secs_f64(scenario.seconds));
        let runs = plural(iterations, if scenario.mode == "strict" { "schedule" } else { "iteration" });
        let not_run = if not_run > 0 { format!(", {} never ran", count(not_run)) } else { String::new() };
        let _ = writeln!(
            text,
            "scenario {} ({}, {ran}): {}, {runs}, {}{not_run}",
            Name(&scenario.name),
            scenario.mode,
            plural(scenario.tests.len() as u64, "test"),
            plural(failures, "failure"),
        );
    }
    let _ = writeln!(
        text,
        "each test with its numbers, suspensions and guarantees: run with -v, or waylay report"
    );
    text
}

/// What the schedules of a strict test amount to.
fn strict_lines(text: &mut String, strict: &StrictNumbers) {
    if strict.runs == 0 {
        let _ = writeln!(text, "    not one schedule was run with {}", strict.strategy);
        return;
    }
    let _ = writeln!(
        text,
        "    {} with {} ({} per second), n = {} threads, k = {} steps",
        plural(strict.runs, "schedule"),
        strict.strategy,
        count(strict.schedules_per_second as u64),
        strict.threads,
        count(strict.steps)
    );
    match &strict.guarantee {
        Some(promise) => {
            let _ = writeln!(text, "    guarantee: {promise}");
        }
        None if strict.exhausted => {}
        None if strict.threads < 2 => {
            let _ = writeln!(text, "    no guarantee: with one thread there is nothing to schedule");
        }
        None => {
            let _ = writeln!(text, "    no guarantee: none of these schedules promises anything by depth");
        }
    }
    let mut note = |number: u64, words: &str| {
        if number > 0 {
            let _ = writeln!(text, "    {} {words}", plural(number, "schedule"));
        }
    };
    note(strict.partly_controlled, "only partly controlled: something outside the schedule took part");
    note(
        strict.limit_reached,
        "reached the limit of steps or of time and were not judged (max-steps and hang-timeout raise them, limit-is-failure makes \
         that a failure)",
    );
    note(strict.left_behind, "left threads behind: the host was replaced after each");
    note(strict.unconfirmed, "failed and did not fail again in a fresh process");
    if strict.exhausted {
        let _ = writeln!(text, "    every schedule within the bound was run");
    }
    if let Some(orders) = strict.orders.filter(|orders| orders.predicted > 0) {
        let _ = writeln!(text, "    {orders}");
    }
    if strict.quiet {
        let _ = writeln!(
            text,
            "    it ended because no schedule showed a new order for as long as was asked for"
        );
    }
    for line in steps_line(strict.steps, strict.accesses, strict.sites).iter().chain(&strict.notes) {
        let _ = writeln!(text, "    {line}");
    }
}

fn verdict(summary: &Summary) -> String {
    let iterations: u64 =
        summary.campaign.scenarios.iter().flat_map(|s| &s.tests).map(|t| t.iterations).sum();
    let total = plural(summary.campaign.failures, "failure");
    let ran = plural(iterations, "iteration");
    let seed = summary.campaign.seed;
    let folder = summary.folder.display();
    match summary.exit_code {
        0 => format!("clean: {ran}, no failure (seed {seed}, {folder})"),
        1 => format!("FAILED: {total} in {ran} (seed {seed}, {folder})"),
        2 if iterations == 0 => format!("NOTHING RAN: see above (seed {seed}, {folder})"),
        2 => format!("INCOMPLETE: {ran}, but not everything could run (seed {seed}, {folder})"),
        _ => format!("WAYLAY FAILED: see above (seed {seed}, {folder})"),
    }
}
