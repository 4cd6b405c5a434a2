//! The comparison as one HTML page: a heat map, curves of what was found by when, and every cell in numbers. Everything is
//! in the file; it looks right in light and dark, wide and narrow.

mod curves;

use std::fmt::Write as _;

use waylay_report::escape::Html;
use waylay_report::numbers::{count, plural};
use waylay_report::page::{bar, document};

use crate::config::{Config, Expectation};
use crate::results::{Cell, Results};
use crate::text::{names, seconds};
use curves::{Against, chart, legend};

const STYLE: &str = include_str!("page/style.css");

/// The page. `when` and `machine` say where the numbers come from.
pub fn render(config: &Config, results: &Results, when: &str, machine: &str) -> String {
    let title = if results.title.is_empty() { "Comparison" } else { &results.title };
    let mut body = bar(
        title,
        &[("#map", "Map"), ("#curves", "Curves"), ("#strategies", "Strategies"), ("#tests", "Tests")],
    );
    let _ = write!(body, "<style>{STYLE}</style><main>");
    if !config.about.is_empty() {
        let _ = write!(body, "<p class=\"lead\">{}</p>", Html(config.about.trim()));
    }
    verdict(&mut body, results);
    heat_map(&mut body, results);
    survival(&mut body, results);
    strategies(&mut body, results);
    tests(&mut body, results);
    if !config.reading.is_empty() {
        let _ = write!(body, "<h2>What to make of it</h2><p>{}</p>", Html(config.reading.trim()));
    }
    let _ = write!(
        body,
        "<footer>{} · {} · {} of running · seed {}</footer></main>",
        Html(when),
        Html(machine),
        seconds(results.seconds),
        config.seed
    );
    document(title, &body)
}

fn verdict(out: &mut String, results: &Results) {
    let bugs = results.with_bug().count();
    let twins = results.tests.len() - bugs;
    let best = results.strategies.iter().rev().max_by_key(|strategy| strategy.always);
    let alarms: usize = results.strategies.iter().map(|strategy| strategy.false_alarms.len()).sum();
    let tile =
        |value: String, label: &str| format!("<div class=\"tile\"><b>{value}</b><span>{label}</span></div>");
    out.push_str("<div class=\"tiles\">");
    out.push_str(&tile(bugs.to_string(), "tests with a bug"));
    if twins > 0 {
        out.push_str(&tile(
            alarms.to_string(),
            &format!("failures in {}", waylay_report::numbers::plural(twins as u64, "correct test")),
        ));
    }
    if let Some(best) = best {
        let label = format!("found in every trial by {}", Html(&best.label));
        out.push_str(&tile(format!("{} of {bugs}", best.always), &label));
    }
    let runs: u64 = results.cells.iter().flatten().map(|cell| cell.runs).sum();
    out.push_str(&tile(count(runs), "schedules"));
    out.push_str("</div>");
    if results.missing > 0 {
        let _ = write!(
            out,
            "<p class=\"dim\">{} not run yet: the numbers below are of those that were.</p>",
            plural(results.missing as u64, "trial")
        );
    }
}

/// How a cell is coloured: 0 never found, 1 found by some trials, 2 to 6 found by all, from late to early.
fn shade(cell: &Cell) -> u8 {
    match cell.median_runs {
        _ if cell.trials == 0 => 9,
        _ if cell.found == 0 => 0,
        Some(runs) if cell.found == cell.trials => match runs {
            r if r > 1000.0 => 2,
            r if r > 200.0 => 3,
            r if r > 40.0 => 4,
            r if r > 8.0 => 5,
            _ => 6,
        },
        _ => 1,
    }
}

fn heat_map(out: &mut String, results: &Results) {
    out.push_str(
        "<h2 id=\"map\">Schedules to the bug</h2><p class=\"small dim\">Median over all trials. \
         <span class=\"key\"><i class=\"h6\"></i>up to 8</span> <span class=\"key\"><i class=\"h5\"></i>40</span> \
         <span class=\"key\"><i class=\"h4\"></i>200</span> <span class=\"key\"><i class=\"h3\"></i>1,000</span> \
         <span class=\"key\"><i class=\"h2\"></i>more</span> \
         <span class=\"key\"><i class=\"h1\"></i>found in some trials</span> \
         <span class=\"key\"><i class=\"h0\"></i>never found</span></p>\
         <div class=\"scroll map\"><table><thead><tr><th>test</th><th class=\"num\">d</th>",
    );
    for strategy in &results.strategies {
        let _ = write!(out, "<th class=\"num\"><span>{}</span></th>", Html(&strategy.label));
    }
    out.push_str("</tr></thead><tbody>");
    for (index, test) in results.with_bug() {
        let depth = test.depth.map_or_else(String::new, |depth| depth.to_string());
        let _ = write!(
            out,
            "<tr><th><a href=\"#t{index}\">{}</a></th><td class=\"num\">{depth}</td>",
            Html(&test.label)
        );
        for cell in &results.cells[index] {
            let shown = match (cell.median_runs.or(cell.mean_runs), cell.found == cell.trials) {
                (Some(runs), true) => count(runs.round() as u64),
                (Some(_), false) => format!("{}/{}", cell.found, cell.trials),
                (None, _) if cell.trials == 0 => "…".to_owned(),
                (None, _) => "–".to_owned(),
            };
            let _ = write!(
                out,
                "<td class=\"num h{}\" title=\"{}\">{shown}</td>",
                shade(cell),
                Html(&explained(cell))
            );
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

/// A cell in words.
fn explained(cell: &Cell) -> String {
    let mut text =
        format!("{} on {}: found in {} of {} trials", cell.strategy, cell.test, cell.found, cell.trials);
    if let (Some(runs), Some(time)) = (cell.mean_runs, cell.mean_seconds) {
        let _ =
            write!(text, ", after {} schedules and {} on average", count(runs.round() as u64), seconds(time));
    }
    let _ = write!(text, "; {} of {} schedules failed", count(cell.failures), count(cell.runs));
    text
}

fn survival(out: &mut String, results: &Results) {
    let rows: Vec<usize> = results.with_bug().map(|(index, _)| index).collect();
    out.push_str("<h2 id=\"curves\">Found by when</h2><p class=\"small dim\">Share of all trials of all tests with a bug that had found it.</p>");
    legend(out, results);
    out.push_str("<div class=\"charts\">");
    chart(out, results, &rows, Against::Schedules);
    chart(out, results, &rows, Against::Seconds);
    out.push_str("</div>");
}

fn strategies(out: &mut String, results: &Results) {
    let bugs = results.with_bug().count();
    out.push_str(
        "<h2 id=\"strategies\">Strategies</h2><div class=\"scroll\"><table><thead><tr><th>strategy</th>\
         <th class=\"num\">in all trials</th><th class=\"num\">schedules, typically</th><th class=\"num\">time, typically</th>\
         <th>in some trials</th><th>never</th></tr></thead><tbody>",
    );
    for strategy in &results.strategies {
        let _ = write!(
            out,
            "<tr><td class=\"mono\">{}</td><td class=\"num\">{} of {bugs}</td><td class=\"num\">{}</td>\
             <td class=\"num\">{}</td><td class=\"small\">{}</td><td class=\"small\">{}</td></tr>",
            Html(&strategy.label),
            strategy.always,
            strategy.typical_runs.map_or_else(|| "–".to_owned(), |runs| count(runs.round() as u64)),
            strategy.typical_seconds.map_or_else(|| "–".to_owned(), seconds),
            Html(&names(&strategy.sometimes, 99)),
            Html(&names(&strategy.missed, 99)),
        );
    }
    out.push_str("</tbody></table></div><p class=\"small dim\">Typically: the geometric mean of the medians, over the tests that have one.</p>");
}

fn tests(out: &mut String, results: &Results) {
    out.push_str("<h2 id=\"tests\">Tests</h2>");
    for (index, test) in results.tests.iter().enumerate() {
        let depth = test.depth.map_or_else(String::new, |depth| format!(" · depth {depth}"));
        let sort = if test.expect == Expectation::Find { "" } else { " · correct" };
        let _ = write!(
            out,
            "<details class=\"test\" id=\"t{index}\"><summary><b>{}</b><span class=\"dim\">{depth}{sort}</span></summary>",
            Html(&test.label)
        );
        if test.expect == Expectation::Find {
            out.push_str("<div class=\"charts\">");
            chart(out, results, &[index], Against::Schedules);
            chart(out, results, &[index], Against::Seconds);
            out.push_str("</div>");
        }
        out.push_str(
            "<div class=\"scroll\"><table><thead><tr><th>strategy</th><th class=\"num\">found</th>\
             <th class=\"num\">schedules: median</th><th class=\"num\">mean</th><th class=\"num\">time: median</th>\
             <th class=\"num\">of all schedules</th><th class=\"num\">promised</th><th class=\"num\">n</th>\
             <th class=\"num\">k</th></tr></thead><tbody>",
        );
        for cell in &results.cells[index] {
            tests_row(out, cell);
        }
        out.push_str("</tbody></table></div></details>");
    }
}

fn tests_row(out: &mut String, cell: &Cell) {
    let runs = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |runs| count(runs.round() as u64));
    let share = |value: f64| match value {
        0.0 => "0".to_owned(),
        v if v < 0.001 => format!("{v:.1e}"),
        v => format!("{:.2} %", v * 100.0),
    };
    let _ = write!(
        out,
        "<tr><td class=\"mono\">{}</td><td class=\"num\">{} of {}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
         <td class=\"num\">{}</td><td class=\"num\">{} <span class=\"dim\">({} to {})</span></td><td class=\"num\">{}</td>\
         <td class=\"num\">{}</td><td class=\"num\">{}</td></tr>",
        Html(&cell.strategy),
        cell.found,
        cell.trials,
        runs(cell.median_runs),
        runs(cell.mean_runs),
        cell.median_seconds.map_or_else(|| "–".to_owned(), seconds),
        share(cell.rate),
        share(cell.rate_low),
        share(cell.rate_high),
        cell.promised.map_or_else(String::new, share),
        if cell.threads == 0 { String::new() } else { cell.threads.to_string() },
        if cell.steps == 0 { String::new() } else { count(cell.steps) },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::small;

    #[test]
    fn the_page_is_whole_and_nothing_of_a_test_gets_through() {
        let (_, results) = small();
        let config = Config::parse("strategies = ['pct']\n[[test]]\nplugin = 'p'\nname = 'a'\n").unwrap();
        let page = render(&config, &results, "today", "here");
        assert!(page.contains("a&lt;b") && !page.contains("a<b"));
        for outside in ["http://", "https://", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(
            page.contains("class=\"num h5\"") && page.contains("class=\"num h1\""),
            "found always, and sometimes"
        );
        assert_eq!(page.matches("<figure").count(), 4, "two for all, two for the one test with a bug");
        assert_eq!(page.matches("<details").count(), page.matches("</details").count());
    }
}
