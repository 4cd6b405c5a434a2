//! JUnit XML: every test is one case, whose name is the same night after night, so that a consumer can follow it over time.
//!
//! Consumers agree on little more than `testsuites`, `testsuite`, `testcase` and at most one `failure` or `error` in a case.
//! A suite, and the class of its cases, is a scenario or a suite of unit tests. All failures of a test are told in its one
//! case; what differs from run to run (numbers, seeds, workers) is in properties, never in a name. What could not run is an
//! `error`: a report that leaves it out would be green without a reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::escape::Xml;
use crate::model::{Failure, Night, Stack};
use crate::numbers::plural;

/// Suite of what belongs to no scenario.
const OTHER: &str = "waylay";
/// Characters of stacks that one failure carries.
const MOST_TEXT: usize = 20_000;
/// Occurrences of a failure whose numbers are properties.
const MOST_OCCURRENCES: usize = 20;

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
    for ((scenario, test), failures) in by_test(night) {
        add(suites.entry(scenario).or_default(), scenario, test, &failures);
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

/// Failures by scenario and test. One that is in several scenarios is in the cases of all of them.
fn by_test(night: &Night) -> BTreeMap<(&str, &str), Vec<&Failure>> {
    let mut tests: BTreeMap<(&str, &str), Vec<&Failure>> = BTreeMap::new();
    for failure in night.here() {
        let mut scenarios: Vec<&str> = failure.occurrences.iter().map(|one| one.scenario.as_str()).collect();
        scenarios.sort_unstable();
        scenarios.dedup();
        if scenarios.is_empty() {
            scenarios.push(OTHER);
        }
        for scenario in scenarios {
            tests.entry((scenario, failure.subject())).or_default().push(failure);
        }
    }
    tests
}

/// The one case of a test that failed.
fn add(suite: &mut Suite, scenario: &str, test: &str, failures: &[&Failure]) {
    let mut properties = String::new();
    let mut property = |name: &str, value: &dyn std::fmt::Display| {
        let _ = write!(properties, "<property name=\"{name}\" value=\"{}\"/>", Xml(&value.to_string()));
    };
    let mut text = String::new();
    for failure in failures {
        property("signature", &failure.id);
        property("count", &failure.count.max(1));
        for occurrence in
            failure.occurrences.iter().filter(|one| one.scenario == scenario).take(MOST_OCCURRENCES)
        {
            property("iteration", &occurrence.iteration);
            property("seed", &occurrence.seed);
            occurrence.worker.iter().for_each(|worker| property("worker", worker));
        }
        tell(&mut text, failure, scenario);
    }
    // A suppressed failure stays in the report, and does not make it red.
    let body = match failures.iter().find(|failure| failure.suppressed.is_none()) {
        None => {
            suite.skipped += 1;
            let why = failures.iter().find_map(|failure| failure.suppressed.as_deref()).unwrap_or_default();
            format!("<skipped message=\"suppressed: {}\"/><system-out>{}</system-out>", Xml(why), Xml(&text))
        }
        Some(failure) => {
            suite.failures += 1;
            let message = failure.what.lines().next().unwrap_or_default();
            format!(
                "<failure type=\"{}\" message=\"{}\">{}</failure>",
                Xml(failure.kind.word()),
                Xml(message),
                Xml(&text)
            )
        }
    };
    suite.case(scenario, test, 0.0, &format!("<properties>{properties}</properties>{body}"));
}

/// A failure in words, with the stacks of its first occurrence.
fn tell(text: &mut String, failure: &Failure, scenario: &str) {
    let begin = text.len();
    let _ = writeln!(text, "{}: {}", failure.kind, failure.what);
    if let Some(reason) = &failure.reason {
        let _ = writeln!(text, "why: {reason}");
    }
    if let Some(why) = &failure.suppressed {
        let _ = writeln!(text, "suppressed: {why}");
    }
    let _ = writeln!(text, "how often: {}", plural(failure.count.max(1), "time"));
    if let Some(first) = failure.occurrences.iter().find(|one| one.scenario == scenario) {
        let _ = writeln!(text, "when: {}, seed {}", first.at, first.seed);
    }
    let _ = writeln!(text, "signature: {} ({})", failure.id, failure.signature);
    let _ = writeln!(text, "replay: {}\nfiles: {}\n", failure.replay, failure.folder);
    for stack in &failure.stacks {
        if text.len() - begin > MOST_TEXT {
            text.push_str("… more in stacks.txt\n");
            break;
        }
        *text += &stack_text(stack);
    }
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
