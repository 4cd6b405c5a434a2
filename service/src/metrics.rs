//! What Prometheus reads. Every counter is one of the history's sums, which are written with what they count: a restart,
//! or a kill -9, takes nothing away from what was ever shown.

use std::fmt::Write as _;

use waylay_history::query::Totals;
use waylay_history::{History, HistoryError};

use crate::board::{Doing, Standing};

/// A counter of the history: its name there, its name here, its label, what it counts.
const COUNTERS: [(&str, &str, Option<&str>, &str); 8] = [
    (
        "iterations",
        "waylay_iterations_total",
        None,
        "Finished iterations, schedules of strict tests included.",
    ),
    ("schedules", "waylay_schedules_total", None, "Finished schedules of strict tests."),
    ("suspensions", "waylay_suspensions_total", None, "Threads that randomizers suspended."),
    ("hosts", "waylay_hosts_total", None, "Host processes that were started."),
    ("occurrences", "waylay_failures_total", Some("kind"), "Failures, each time that one happened."),
    (
        "signatures",
        "waylay_signatures_total",
        Some("kind"),
        "Different failures that were seen for the first time.",
    ),
    ("campaigns", "waylay_campaigns_total", Some("state"), "Campaigns that are over."),
    ("webhook", "waylay_webhook_messages_total", Some("result"), "Messages about new failures."),
];

/// The whole text, in Prometheus's own form.
pub fn text(history: &History, standing: &Standing) -> Result<String, HistoryError> {
    let counters = history.counters()?;
    let mut out = String::new();
    for (key, name, label, help) in COUNTERS {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
        let mut any = false;
        for (_, value, number) in counters.iter().filter(|(known, ..)| known == key) {
            any = true;
            match label {
                Some(label) => {
                    let _ = writeln!(out, "{name}{{{label}=\"{}\"}} {number}", escape(value));
                }
                None => {
                    let _ = writeln!(out, "{name} {number}");
                }
            }
        }
        if !any && label.is_none() {
            let _ = writeln!(out, "{name} 0");
        }
    }
    gauges(&mut out, &history.totals()?, standing);
    Ok(out)
}

fn gauges(out: &mut String, totals: &Totals, standing: &Standing) {
    let _ = writeln!(
        out,
        "# HELP waylay_known_failures Different failures by how they stand against earlier nights.\n\
         # TYPE waylay_known_failures gauge"
    );
    for (state, number) in [
        ("new", totals.new),
        ("ongoing", totals.ongoing),
        ("rare", totals.rare),
        ("resolved", totals.resolved),
        ("suppressed", totals.suppressed),
    ] {
        let _ = writeln!(out, "waylay_known_failures{{state=\"{state}\"}} {number}");
    }
    let running = u8::from(matches!(standing.doing, Doing::Running { .. }));
    let _ = writeln!(
        out,
        "# HELP waylay_campaign_running Whether a campaign runs now.\n# TYPE waylay_campaign_running gauge\n\
         waylay_campaign_running {running}"
    );
}

/// A label's value.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_inert() {
        assert_eq!(escape("a\"} 1\nb\\"), "a\\\"} 1\\nb\\\\");
    }

    #[test]
    fn every_line_is_a_comment_or_a_sample() {
        let out = tempfile::tempdir().unwrap();
        let mut history = History::open(out.path()).unwrap();
        history.add_to("iterations", "", 5.0).unwrap();
        history.add_to("occurrences", "deadlock", 2.0).unwrap();
        let text = text(&history, &Standing::default()).unwrap();
        assert!(text.contains("\nwaylay_iterations_total 5\n"), "{text}");
        assert!(text.contains("\nwaylay_failures_total{kind=\"deadlock\"} 2\n"), "{text}");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with("waylay_") && value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
