//! Curves: the share of trials that had found the bug, against schedules and against seconds. Both axes below are
//! logarithmic: a strategy that needs ten times as long is one step to the right, whatever the bug.

use std::fmt::Write as _;

use waylay_report::escape::Html;

use crate::results::Results;
use crate::text::seconds;

/// What is below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Against {
    Schedules,
    Seconds,
}

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 200.0;
/// Colours of the page's charts, each with lines of these patterns.
const COLOURS: usize = 6;
const DASHES: [&str; 3] = ["", "7 4", "2 3"];

fn colour(strategy: usize) -> usize {
    strategy % COLOURS + 1
}

fn dash(strategy: usize) -> &'static str {
    DASHES[strategy / COLOURS % DASHES.len()]
}

/// Which line is whose.
pub(super) fn legend(out: &mut String, results: &Results) {
    out.push_str("<p class=\"lines small\">");
    for (index, strategy) in results.strategies.iter().enumerate() {
        let _ = write!(
            out,
            "<span><svg viewBox=\"0 0 24 8\"><line class=\"line c{}\" x1=\"0\" x2=\"24\" y1=\"4\" y2=\"4\" \
             stroke-dasharray=\"{}\"/></svg>{}</span>",
            colour(index),
            dash(index),
            Html(&strategy.label)
        );
    }
    out.push_str("</p>");
}

/// The steps of one curve: where the share rises, and to how much. `found` has one entry per trial.
fn steps(mut found: Vec<Option<f64>>) -> Vec<(f64, f64)> {
    let all = found.len() as f64;
    found.retain(Option::is_some);
    let mut times: Vec<f64> = found.into_iter().flatten().collect();
    times.sort_by(f64::total_cmp);
    times.iter().enumerate().map(|(index, at)| (*at, (index + 1) as f64 / all)).collect()
}

/// One chart over these rows of the table.
pub(super) fn chart(out: &mut String, results: &Results, rows: &[usize], against: Against) {
    let curves: Vec<Vec<(f64, f64)>> = (0..results.strategies.len())
        .map(|strategy| {
            let firsts = rows.iter().flat_map(|row| &results.cells[*row][strategy].firsts);
            let value = |first: &Option<(u64, f64)>| {
                first.map(|(run, time)| if against == Against::Schedules { run as f64 } else { time })
            };
            steps(firsts.map(value).collect())
        })
        .collect();
    let (caption, unit) = match against {
        Against::Schedules => ("after so many schedules", "log scale"),
        Against::Seconds => ("after so much time", "log scale"),
    };
    let _ = write!(
        out,
        "<figure class=\"chart\"><figcaption><b>{caption}</b> <span class=\"dim\">{unit}</span></figcaption>"
    );
    let reached = || curves.iter().flatten().map(|point| point.0);
    if reached().next().is_none() {
        out.push_str("<p class=\"empty\">no strategy found it</p></figure>");
        return;
    }
    let least =
        if against == Against::Schedules { 1.0 } else { reached().fold(f64::MAX, f64::min).max(1e-6) };
    let left = least.log10().floor();
    let right = reached().fold(least, f64::max).log10().ceil().max(left + 1.0);
    let x = |value: f64| ((value.max(1e-9).log10() - left) / (right - left)).clamp(0.0, 1.0) * WIDTH;
    let y = |share: f64| HEIGHT - share * HEIGHT;
    out.push_str("<div class=\"plot\"><div class=\"ys\">");
    for percent in [0, 25, 50, 75, 100] {
        let _ = write!(out, "<span style=\"bottom:{percent}%\">{percent} %</span>");
    }
    let _ = write!(
        out,
        "</div><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"share found {caption}\">"
    );
    for quarter in 0..=4 {
        let at = y(f64::from(quarter) / 4.0);
        let _ = write!(out, "<line class=\"grid\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{at}\" y2=\"{at}\"/>");
    }
    for (strategy, points) in curves.iter().enumerate().filter(|(_, points)| !points.is_empty()) {
        let mut path = format!("M0 {HEIGHT}");
        for (at, share) in points {
            let _ = write!(path, "H{:.1}V{:.1}", x(*at), y(*share));
        }
        path.push_str("H1000");
        let _ = write!(
            out,
            "<path class=\"line c{}\" stroke-dasharray=\"{}\" d=\"{path}\"><title>{}</title></path>",
            colour(strategy),
            dash(strategy),
            Html(&results.strategies[strategy].label)
        );
    }
    out.push_str("</svg><div class=\"xs\">");
    let decades = (right - left).round() as i32;
    for decade in (0..=decades).step_by(if decades > 6 { 2 } else { 1 }) {
        let value = 10_f64.powf(left + f64::from(decade));
        let shown = match against {
            Against::Schedules => waylay_report::numbers::count(value.round() as u64),
            Against::Seconds => round_time(value),
        };
        let place = f64::from(decade) / f64::from(decades) * 100.0;
        let _ = write!(out, "<span style=\"left:{place:.1}%\">{shown}</span>");
    }
    out.push_str("</div></div></figure>");
}

/// A power of ten in seconds: what stands behind the point is always nothing, and seven of these stand in a row.
fn round_time(value: f64) -> String {
    let text = seconds(value);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_times_are_short() {
        assert_eq!(
            [1e-6, 1e-5, 1e-4, 1e-3, 1.0, 10.0].map(round_time),
            ["1 µs", "10 µs", "100 µs", "1 ms", "1 s", "10 s"]
        );
    }

    #[test]
    fn a_curve_rises_with_every_trial_that_found_it_and_ends_below_those_that_did_not() {
        assert_eq!(steps(vec![Some(30.0), None, Some(10.0), None]), [(10.0, 0.25), (30.0, 0.5)]);
        assert!(steps(vec![None]).is_empty());
    }
}
