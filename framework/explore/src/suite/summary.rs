//! What exploring suites is summed up to: one object for machines, a few lines for people.

use std::path::PathBuf;

use serde::Serialize;
use waylay_driver::report::count;

use crate::summary::Summary;

/// What came of one case.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CaseResult {
    /// The suite.
    pub suite: String,
    /// The case.
    pub case: String,
    /// It turned out to have no threads of its own.
    #[serde(skip)]
    pub no_threads: bool,
    /// Why it could not be explored, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unable: Option<String>,
    /// As for a program.
    #[serde(flatten)]
    pub summary: Summary,
}

/// Numbers of one suite.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SuiteNumbers {
    /// Its name.
    pub name: String,
    /// What lists and runs its cases.
    pub framework: String,
    /// Cases that were chosen.
    pub cases: usize,
    /// Those that start threads.
    pub threaded: usize,
}

impl SuiteNumbers {
    /// `name (libtest): 1,204 cases, 61 start threads`.
    pub fn line(&self) -> String {
        let cases = if self.cases == 1 { "case" } else { "cases" };
        let verb = if self.threaded == 1 { "starts" } else { "start" };
        let (all, threaded) = (count(self.cases as u64), count(self.threaded as u64));
        format!("{} ({}): {all} {cases}, {threaded} {verb} threads", self.name, self.framework)
    }
}

/// What `waylay suite --json` prints.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SuiteSummary {
    /// By suite.
    pub suites: Vec<SuiteNumbers>,
    /// Cases that were chosen.
    pub cases: usize,
    /// Those that start threads.
    pub threaded: usize,
    /// Cases that failed.
    pub failed: usize,
    /// Schedules of all cases.
    pub runs: u64,
    /// Wall time in seconds, the first pass included.
    pub seconds: f64,
    /// Of that, until it was known which cases start threads.
    pub first_pass_seconds: f64,
    /// Every case that starts threads.
    pub explored: Vec<CaseResult>,
    /// What else should be known.
    pub notes: Vec<String>,
    /// The user stopped it.
    pub interrupted: bool,
    /// The campaign's folder.
    pub folder: PathBuf,
}

impl SuiteSummary {
    /// A few lines for people: the numbers, a line a case, a block a failure.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = self.suites.iter().map(SuiteNumbers::line).collect();
        let width = self.explored.iter().map(|one| one.case.chars().count()).max().unwrap_or(0).min(60);
        lines.extend(self.explored.iter().map(|one| one.line(width)));
        for one in &self.explored {
            let summary = &one.summary;
            lines.extend(summary.found.iter().map(|found| found.block(&summary.program, summary.runs)));
        }
        let verb = if self.failed == 0 {
            "no case failed".to_owned()
        } else {
            format!("{} failed", cases(self.failed))
        };
        lines.push(format!(
            "{} schedules of {} in {:.1} s: {verb}",
            count(self.runs),
            cases(self.explored.len()),
            self.seconds
        ));
        let missed = self.explored.iter().filter(|one| one.was_missed()).count();
        if missed > 0 {
            lines.push(format!("{} not reached in that time: give more with --duration", cases(missed)));
        }
        lines.extend(self.notes.iter().cloned());
        lines.join("\n") + "\n"
    }
}

fn cases(number: usize) -> String {
    if number == 1 { "1 case".to_owned() } else { format!("{} cases", count(number as u64)) }
}

impl CaseResult {
    /// Whether the time was over before its first schedule.
    fn was_missed(&self) -> bool {
        self.unable.is_none() && self.summary.runs == 0
    }

    fn line(&self, width: usize) -> String {
        let Summary { runs, threads, steps, schedules_per_second, .. } = &self.summary;
        let mut text = format!("  {:width$}  ", self.case);
        if let Some(why) = &self.unable {
            return text + "not explored: " + why;
        }
        if self.was_missed() {
            return text + "not reached: the time was over before its first schedule";
        }
        text += &format!(
            "{:>7} schedules  {:>6}/s  {threads} threads  k {:>5}  ",
            count(*runs),
            count(*schedules_per_second as u64),
            count(*steps)
        );
        match (self.summary.found.first(), &self.summary.guarantee) {
            (Some(found), _) => text += &format!("{}: {}", found.kind, found.what),
            (None, _) if self.summary.limit_reached == *runs => text += "no run came to its end",
            (None, Some(promise)) => {
                text += &format!(
                    "no failure; depth {} found with probability {:.2}",
                    promise.depth, promise.after_runs
                );
            }
            (None, None) => text += "no failure",
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_as_people_say_them() {
        let line = |cases, threaded| {
            SuiteNumbers { name: "queue".to_owned(), framework: "libtest".to_owned(), cases, threaded }.line()
        };
        assert_eq!(line(1204, 61), "queue (libtest): 1,204 cases, 61 start threads");
        assert_eq!(line(1, 1), "queue (libtest): 1 case, 1 starts threads");
    }

    #[test]
    fn a_case_without_a_schedule_is_no_clean_one() {
        let missed = CaseResult { case: "late".to_owned(), ..CaseResult::default() };
        let text = SuiteSummary { explored: vec![missed], ..SuiteSummary::default() }.text();
        assert!(text.contains("not reached") && !text.contains("no failure"), "{text}");
        assert!(text.contains("1 case not reached in that time: give more with --duration"), "{text}");
    }
}
