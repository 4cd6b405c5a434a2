//! The comparison in a terminal.

use std::fmt::Write as _;
use std::time::Duration;

use waylay_report::numbers::{count, span};

use crate::results::{Cell, Results};

/// What stands in a cell: in how many trials it was found unless in all, and after how many schedules.
pub fn cell(cell: &Cell) -> String {
    let typical = cell.median_runs.or(cell.mean_runs).map(|runs| count(runs.round() as u64));
    match typical {
        _ if cell.trials == 0 => "…".to_owned(),
        None if cell.exhausted => "none".to_owned(),
        None => "-".to_owned(),
        Some(runs) if cell.found == cell.trials => runs,
        Some(runs) => format!("{}/{} {runs}", cell.found, cell.trials),
    }
}

/// Seconds as people read them.
pub fn seconds(seconds: f64) -> String {
    span(Duration::from_secs_f64(seconds.max(0.0)))
}

/// Names; all of them when they are few.
pub fn names(names: &[String], most: usize) -> String {
    match names.len() {
        0 => String::new(),
        all if all <= most => names.join(", "),
        all => format!("{} and {} more", names[..most].join(", "), all - most),
    }
}

/// The whole comparison.
pub fn render(results: &Results) -> String {
    let mut out = String::new();
    let first = results.tests.iter().map(|test| test.label.len()).max().unwrap_or(0).max(4);
    let width = |column: usize| {
        let cells = results.cells.iter().map(|row| cell(&row[column]).chars().count()).max().unwrap_or(0);
        cells.max(results.strategies[column].label.chars().count())
    };
    let _ = write!(out, "{:first$}", "");
    for (column, strategy) in results.strategies.iter().enumerate() {
        let _ = write!(out, "  {:>1$}", strategy.label, width(column));
    }
    out.push('\n');
    for (test, row) in results.tests.iter().zip(&results.cells) {
        let _ = write!(out, "{:first$}", test.label);
        for (column, one) in row.iter().enumerate() {
            let _ = write!(out, "  {:>1$}", cell(one), width(column));
        }
        out.push('\n');
    }
    out.push_str(
        "\nmedian schedules to the bug; k/n: found in k of n trials; -: never found; none: the search saw everything\n\n",
    );
    let bugs = results.with_bug().count();
    for strategy in &results.strategies {
        let _ = write!(out, "{}: found always {} of {bugs}", strategy.label, strategy.always);
        if !strategy.sometimes.is_empty() {
            let _ =
                write!(out, ", sometimes {} ({})", strategy.sometimes.len(), names(&strategy.sometimes, 6));
        }
        if !strategy.missed.is_empty() {
            let _ = write!(out, ", never {} ({})", strategy.missed.len(), names(&strategy.missed, 12));
        }
        if let Some(typical) = strategy.typical_seconds {
            let _ = write!(out, "; typically after {}", seconds(typical));
        }
        if !strategy.false_alarms.is_empty() {
            let _ = write!(out, "; FAILED IN CORRECT TESTS: {}", names(&strategy.false_alarms, 12));
        }
        out.push('\n');
    }
    if results.missing > 0 {
        let _ = writeln!(out, "{} trials are not run yet", count(results.missing as u64));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::small;

    #[test]
    fn the_table_has_a_row_for_each_test_and_says_what_is_missed() {
        let (_, results) = small();
        let text = render(&results);
        assert!(text.contains("a<b       20  1/2 50"), "{text}");
        assert!(text.contains("a-fixed    -       -"), "{text}");
        assert!(text.contains("random: found always 0 of 1, sometimes 1 (a<b)"), "{text}");
        assert!(!text.contains("FAILED"), "{text}");
    }
}
