//! JUnit XML: every iteration that failed is a test case of its own, so that no consumer can fold two failures into one.
//!
//! Consumers agree on little more than `testsuites`, `testsuite`, `testcase` and at most one `failure` or `error` in a case.
//! A suite is a scenario; a test that never failed is one case that passed. What could not run is an `error`: a report
//! that leaves it out would be green without a reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::escape::Xml;
use crate::model::{Failure, Night, Occurrence, Stack};
use crate::numbers::plural;

/// Suite of what belongs to no scenario.
const OTHER: &str = "waylay";
/// Characters of stacks that one case carries.
const MOST_TEXT: usize = 20_000;

#[derive(Default)]
struct Suite {
    cases: String,
    tests: u64,
    failures: u64,
    errors: u64,
    skipped: u64,
    seconds: f64,
}

impl Suite {
    fn case(&mut self, class: &str, name: &str, seconds: f64, body: &str) {
        self.tests += 1;
        let _ = writeln!(
            self.cases,
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{seconds:.3}\">{body}</testcase>",
            Xml(class),
            Xml(name)
        );
    }
}

/// The report.
pub fn report(night: &Night) -> String {
    let mut suites: BTreeMap<&str, Suite> = BTreeMap::new();
    for scenario in &night.campaign.scenarios {
        let suite = suites.entry(&scenario.name).or_default();
        suite.seconds += scenario.seconds;
        for test in &scenario.tests {
            let broke = night.here().any(|failure| {
                failure.test.as_deref() == Some(test.name.as_str())
                    && failure.occurrences.iter().any(|one| one.scenario == scenario.name)
            });
            if test.iterations == 0 && !broke {
                suite.skipped += 1;
                suite.case(&scenario.name, &test.name, 0.0, "<skipped message=\"no iteration was made\"/>");
            } else if !broke {
                let seconds = test.iterations as f64 * test.average_ns / 1e9;
                suite.case(&scenario.name, &test.name, seconds, "");
            }
        }
    }
    for failure in night.here() {
        for (index, occurrence) in failure.occurrences.iter().enumerate() {
            let suite = suites.entry(&occurrence.scenario).or_default();
            add(suite, failure, Some(occurrence), index == 0);
        }
        let listed = failure.occurrences.len() as u64;
        if failure.count > listed || listed == 0 {
            let scenario =
                failure.occurrences.first().map_or(OTHER, |occurrence| occurrence.scenario.as_str());
            add(suites.entry(scenario).or_default(), failure, None, listed == 0);
        }
    }
    for problem in &night.campaign.problems {
        let suite = suites.entry(OTHER).or_default();
        suite.errors += 1;
        let body = format!("<error type=\"did-not-run\" message=\"{}\"/>", Xml(problem));
        suite.case(OTHER, problem.lines().next().unwrap_or_default(), 0.0, &body);
    }
    if night.campaign.iterations() == 0 {
        let suite = suites.entry(OTHER).or_default();
        suite.errors += 1;
        suite.case(
            OTHER,
            "something runs",
            0.0,
            "<error type=\"nothing-ran\" message=\"not one iteration was made\"/>",
        );
    }
    document(night, &suites)
}

fn add(suite: &mut Suite, failure: &Failure, occurrence: Option<&Occurrence>, with_stacks: bool) {
    let subject = failure.subject();
    let name = match occurrence {
        Some(Occurrence { worker: Some(worker), iteration, .. }) => {
            format!("{subject} [iteration {iteration} of worker {worker}, {}]", failure.id)
        }
        Some(Occurrence { iteration, at, .. }) => {
            format!("{subject} [iteration {iteration}, {at}, {}]", failure.id)
        }
        None => {
            let more = failure.count.saturating_sub(failure.occurrences.len() as u64);
            format!("{subject} [{} more, {}]", plural(more, "time"), failure.id)
        }
    };
    let class = occurrence.map_or(OTHER, |occurrence| occurrence.scenario.as_str());
    let mut text = format!("{}\n", failure.what);
    if let Some(reason) = &failure.reason {
        let _ = writeln!(text, "why: {reason}");
    }
    if let Some(occurrence) = occurrence {
        let _ = writeln!(text, "when: {}, seed {}", occurrence.at, occurrence.seed);
    }
    let _ = writeln!(text, "signature: {} ({})", failure.id, failure.signature);
    let _ = writeln!(text, "replay: {}\nfiles: {}", failure.replay, failure.folder);
    if with_stacks {
        text.push('\n');
        for stack in &failure.stacks {
            if text.len() > MOST_TEXT {
                text.push_str("… more in stacks.txt\n");
                break;
            }
            text += &stack_text(stack);
        }
    }
    // A suppressed failure stays in the report, and does not make it red.
    let body = match &failure.suppressed {
        Some(why) => {
            suite.skipped += 1;
            format!("<skipped message=\"suppressed: {}\"/><system-out>{}</system-out>", Xml(why), Xml(&text))
        }
        None => {
            suite.failures += 1;
            let message = failure.what.lines().next().unwrap_or_default();
            format!(
                "<failure type=\"{}\" message=\"{}\">{}</failure>",
                Xml(&failure.kind),
                Xml(message),
                Xml(&text)
            )
        }
    };
    suite.case(class, &name, 0.0, &body);
}

/// A stack as lines.
pub(crate) fn stack_text(stack: &Stack) -> String {
    let mut text = format!("{} {}\n", stack.title(), stack.doing);
    for frame in &stack.frames {
        let function = frame.function.as_deref().unwrap_or("??");
        let _ = match (&frame.file, frame.line, &frame.module) {
            (Some(file), Some(line), _) => writeln!(text, "  {function}  {file}:{line}"),
            (_, _, Some(module)) => writeln!(text, "  {function}  in {module}+{:#x}", frame.offset),
            _ => writeln!(text, "  {function}  at {:#x}", frame.offset),
        };
    }
    text
}

fn document(night: &Night, suites: &BTreeMap<&str, Suite>) -> String {
    let sum = |value: fn(&Suite) -> u64| suites.values().map(value).sum::<u64>();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"waylay {}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3}\">",
        Xml(&night.campaign.name),
        sum(|suite| suite.tests),
        sum(|suite| suite.failures),
        sum(|suite| suite.errors),
        night.campaign.seconds()
    );
    let started = night.campaign.started.strftime("%Y-%m-%dT%H:%M:%S");
    for (name, suite) in suites {
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\" \
             timestamp=\"{started}\">\n    <properties>\n      <property name=\"campaign\" value=\"{}\"/>\n      \
             <property name=\"seed\" value=\"{}\"/>\n    </properties>",
            Xml(name),
            suite.tests,
            suite.failures,
            suite.errors,
            suite.skipped,
            suite.seconds,
            Xml(&night.campaign.name),
            Xml(&night.campaign.seed)
        );
        out += &suite.cases;
        out.push_str("  </testsuite>\n");
    }
    out + "</testsuites>\n"
}
