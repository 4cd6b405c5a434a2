//! What a pot did: one line per contained test, and who ran what when something failed.

use std::time::Duration;

use waylay_report::escape::Name;

use super::numbers::{count, plural, span};
use crate::archive::record;
use crate::failure::Occurrence;
use crate::record::TestRecord;

/// Runs, total time, average and its deviation, share asked and got, failures; none for a test in no pot.
pub(crate) fn share_line(test: &TestRecord) -> Option<String> {
    let share = test.pot.as_ref()?;
    let time = |nanos: f64| span(Duration::from_nanos(nanos as u64));
    let failures =
        if test.failures > 0 { format!(", {}", plural(test.failures, "failure")) } else { String::new() };
    Some(format!(
        "{:<26} {:>14} × {} ± {}, {} in all, {}{failures}",
        Name(&test.name),
        count(test.iterations),
        time(test.average_ns),
        time(share.deviation_ns),
        time(share.total_ns),
        record::share(share).words(test.retired.is_some(), " of the time"),
    ))
}

/// What every worker of the pot ran and held; empty for a failure outside of a pot.
pub(crate) fn mix_lines(occurrence: &Occurrence) -> Vec<String> {
    let Some(pot) = &occurrence.pot else { return Vec::new() };
    let workers = occurrence.workers.iter().filter(|view| view.test == pot.test);
    let lines = workers.map(|view| {
        let ran = match &view.running {
            Some(running) => {
                let last = if running.over { "last " } else { "" };
                format!("{last}{} (iteration {})", Name(&running.test), count(running.iteration))
            }
            None => "nothing".to_owned(),
        };
        let held = match view.holds.is_empty() {
            true => String::new(),
            false => format!(" on {}", Name(&view.holds.join(", "))),
        };
        format!("worker {} ran {ran}{held}", view.worker)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PotShare;

    #[test]
    fn a_line_has_every_number() {
        let test = TestRecord {
            name: "map".into(),
            plugin: "libx.so".into(),
            workers: 0,
            iterations: 12_345,
            failures: 2,
            average_ns: 81_000.0,
            shortest_ns: 0.0,
            longest_ns: 0.0,
            retired: None,
            strict: None,
            bound: None,
            no_bound: None,
            pot: Some(PotShare {
                container: "melting-pot".into(),
                total_ns: 1e9,
                deviation_ns: 9_000.0,
                asked: 0.25,
                achieved: 0.2491,
                until_retired: None,
            }),
        };
        assert_eq!(
            share_line(&test).unwrap(),
            "map                                12,345 × 81.0 µs ± 9.00 µs, 1.00 s in all, 24.9 % of the time \
             (asked 25.0 %), 2 failures"
        );
        let hostile = TestRecord { name: "\u{1b}]0;owned\u{7}\r\nclean: all is well".into(), ..test.clone() };
        let line = share_line(&hostile).unwrap();
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(line.contains("⟨U+001B⟩]0;owned⟨U+0007⟩⟨U+000D⟩⟨U+000A⟩clean"), "{line}");
        let retired = |pot: PotShare| {
            let reason = Some("retired after 2 failures".into());
            let line = share_line(&TestRecord { retired: reason, pot: Some(pot), ..test.clone() }).unwrap();
            line.rsplit_once(" in all, ").unwrap().1.to_owned()
        };
        let share = test.pot.clone().unwrap();
        let known = PotShare { until_retired: Some(0.5), ..share.clone() };
        assert_eq!(
            retired(known.clone()),
            "50.0 % of the time until it was retired (asked 25.0 %), 2 failures"
        );
        // Stored by a version that forgot what was asked.
        assert_eq!(retired(PotShare { asked: 0.0, ..share.clone() }), "retired, 24.9 % of all, 2 failures");
        let never = PotShare { asked: 0.0, achieved: 0.0, total_ns: 0.0, ..share };
        assert_eq!(retired(never), "did not run, 2 failures");
        assert_eq!(share_line(&TestRecord { pot: None, ..test }), None);
    }
}
