//! The comparison as a section of a Markdown page.

use std::fmt::Write as _;

use waylay_report::escape::Markdown;
use waylay_report::numbers::count;

use crate::config::{Config, Layout};
use crate::results::{Cell, Results};
use crate::text::{cell, names, seconds};

/// One section: title, what it is about, the table, and what to make of it.
pub fn section(config: &Config, results: &Results) -> String {
    let mut out = format!("## {}\n\n", results.title);
    if !config.about.is_empty() {
        let _ = writeln!(out, "{}\n", config.about.trim());
    }
    for (place, table) in config.tables.iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        match table {
            Layout::Found => found(&mut out, results),
            Layout::Rates => rates(&mut out, results),
            Layout::Missed => missed(&mut out, results),
            Layout::Hourly => hourly(&mut out, results),
            Layout::Sooner => sooner(&mut out, results),
        }
    }
    if !config.reading.is_empty() {
        let _ = write!(out, "\n{}\n", config.reading.trim());
    }
    out
}

fn header(out: &mut String, columns: impl IntoIterator<Item = String>) {
    let columns: Vec<String> = columns.into_iter().collect();
    let _ = writeln!(out, "| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}

fn row(out: &mut String, columns: impl IntoIterator<Item = String>) {
    let _ = writeln!(out, "| {} |", columns.into_iter().collect::<Vec<_>>().join(" | "));
}

fn escaped(text: &str) -> String {
    Markdown(text).to_string()
}

fn found(out: &mut String, results: &Results) {
    let labels = results.strategies.iter().map(|strategy| escaped(&strategy.label));
    header(out, ["test".to_owned(), "d".to_owned()].into_iter().chain(labels));
    for (index, test) in results.with_bug() {
        let first = [escaped(&test.label), depth(test.depth)];
        row(out, first.into_iter().chain(results.cells[index].iter().map(cell)));
    }
}

fn depth(depth: Option<u32>) -> String {
    depth.map_or_else(String::new, |depth| depth.to_string())
}

/// A rate with its interval; a rate of nothing with its upper end.
pub fn rate(cell: &Cell) -> String {
    if cell.runs == 0 {
        return "…".to_owned();
    }
    if cell.failures == 0 {
        return format!("0 of {} (< {})", count(cell.runs), number(cell.rate_high));
    }
    format!(
        "{} ({} to {}; {} runs)",
        number(cell.rate),
        number(cell.rate_low),
        number(cell.rate_high),
        count(cell.runs)
    )
}

fn number(value: f64) -> String {
    if value != 0.0 && value < 0.001 { format!("{value:.1e}") } else { format!("{value:.4}") }
}

fn rates(out: &mut String, results: &Results) {
    let labels = results.strategies.iter().map(|strategy| escaped(&strategy.label));
    let first = ["test", "d", "n", "k", "k that counts"].map(str::to_owned);
    header(out, first.into_iter().chain(labels).chain(["promised".to_owned()]));
    for (index, test) in results.with_bug() {
        let cells = &results.cells[index];
        let largest = |of: fn(&Cell) -> u64| cells.iter().map(of).max().unwrap_or(0);
        let promised = cells.iter().filter_map(|cell| cell.promised).max_by(f64::total_cmp);
        let first = [
            escaped(&test.label),
            depth(test.depth),
            largest(|cell| u64::from(cell.threads)).to_string(),
            count(largest(|cell| cell.longest)),
            count(largest(|cell| cell.steps)),
        ];
        let promised = promised.map_or_else(String::new, number);
        row(out, first.into_iter().chain(cells.iter().map(rate)).chain([promised]));
    }
}

fn missed(out: &mut String, results: &Results) {
    let bugs = results.with_bug().count();
    header(
        out,
        [
            "strategy",
            "missed",
            "found in some trials",
            "found in all",
            "schedules, typically",
            "time, typically",
        ]
        .map(str::to_owned),
    );
    for strategy in &results.strategies {
        let listed = |names_of: &[String]| match names_of.len() {
            0 => "0".to_owned(),
            count => format!("{count}: {}", escaped(&names(names_of, 99))),
        };
        row(
            out,
            [
                escaped(&strategy.label),
                listed(&strategy.missed),
                listed(&strategy.sometimes),
                format!("{} of {bugs}", strategy.always),
                strategy.typical_runs.map_or_else(String::new, |runs| count(runs.round() as u64)),
                strategy.typical_seconds.map_or_else(String::new, seconds),
            ],
        );
    }
}

fn hourly(out: &mut String, results: &Results) {
    let bugs = results.with_bug().count();
    header(
        out,
        ["way of running", "different bugs found", "failures in an hour of running", "not found"]
            .map(str::to_owned),
    );
    for strategy in &results.strategies {
        row(
            out,
            [
                escaped(&strategy.label),
                format!("{} of {bugs}", bugs - strategy.missed.len()),
                count(strategy.failures_per_hour.round() as u64),
                escaped(&names(&strategy.missed, 99)),
            ],
        );
    }
}

/// Seconds to the bug with the first strategy and with the last, for tests that the first finds in half of its trials and the last
/// finds at all.
fn sooner(out: &mut String, results: &Results) {
    let (Some(first), Some(last)) = (results.strategies.first(), results.strategies.last()) else { return };
    header(out, ["test".to_owned(), escaped(&first.label), escaped(&last.label), "times sooner".to_owned()]);
    for (index, test) in results.with_bug() {
        let cells = &results.cells[index];
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else { continue };
        let (Some(soon), Some(late)) = (first.median_seconds, typical(last)) else { continue };
        let late_text = match last.median_seconds {
            Some(late) => seconds(late),
            None => format!("about {} ({}/{})", seconds(late), last.found, last.trials),
        };
        let times = late / soon.max(1e-9);
        let times = if times < 9.5 { format!("{times:.1}") } else { count(times.round() as u64) };
        row(out, [escaped(&test.label), seconds(soon), late_text, times]);
    }
}

/// The median; where most trials found nothing, how long all of them ran for each that did.
fn typical(cell: &Cell) -> Option<f64> {
    cell.median_seconds.or_else(|| (cell.found > 0).then(|| cell.seconds / f64::from(cell.found)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::small;

    #[test]
    fn every_layout_has_a_table_and_the_words_around_it() {
        let (_, results) = small();
        for (layout, expected) in [
            ("found", "| a&lt;b | 2 | 20 | 1/2 50 |"),
            ("rates", "| 2 | 3 | 60 | 50 | 0.0500 ("),
            ("missed", "| random | 0 | 1: a&lt;b | 0 of 1 |"),
            ("hourly", "| pct | 1 of 1 |"),
            ("sooner", "(1/2) | "),
        ] {
            let text = format!(
                "tables = ['{layout}']\nabout = 'before'\nreading = 'after'\nstrategies = ['pct']\n\
                 [[test]]\nplugin = 'p'\nname = 'a'\n"
            );
            let section = section(&Config::parse(&text).unwrap(), &results);
            assert!(
                section.starts_with("## small\n\nbefore\n\n|") && section.ends_with("after\n"),
                "{section}"
            );
            let plain = section.replace("&#60;", "&lt;");
            assert!(plain.contains(expected), "{layout}: {section}");
        }
    }
}
