//! Charts as HTML that fits any width: the curve is SVG that stretches, the labels are text that does not.

use std::fmt::Write as _;

use crate::escape::Html;
use crate::model::{NightPoint, Sample};
use crate::numbers::compact;

/// What a chart shows.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// What is counted.
    pub title: &'a str,
    /// In which unit.
    pub unit: &'a str,
    /// Curves, or rows of bars.
    pub series: Vec<Series<'a>>,
    /// What is below.
    pub axis: Axis,
    /// Bars instead of curves, rows on top of each other: for things that are counted once each.
    pub bars: bool,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Series<'a> {
    /// Its name, shown when there is more than one.
    pub name: &'a str,
    /// Its colour: 1 to 6.
    pub colour: u8,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

/// What is below a chart.
#[derive(Clone, Debug)]
pub enum Axis {
    /// Seconds since a campaign began.
    Elapsed,
    /// One label per whole number from 0.
    Labels(Vec<String>),
}

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 200.0;

/// A number of the form 1, 2 or 5 times a power of ten that is not below `value`.
fn nice(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .iter()
        .map(|step| step * power)
        .find(|step| *step >= value * 0.999_999)
        .unwrap_or(value)
}

/// The distance of marks on an axis of that length, for about so many.
fn step(length: f64, marks: f64) -> f64 {
    nice(length / marks)
}

/// The distance of marks on an axis of time: people read minutes, not kiloseconds.
fn time_step(seconds: f64) -> f64 {
    const STEPS: [f64; 17] = [
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0,
        21_600.0, 43_200.0, 86_400.0,
    ];
    let wanted = seconds / 5.0;
    STEPS
        .into_iter()
        .find(|step| *step >= wanted)
        .unwrap_or_else(|| nice(wanted / 86_400.0).max(1.0) * 86_400.0)
}

fn clock(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0 => "0".to_owned(),
        s if s < 120 => format!("{s} s"),
        s if s < 7200 && s % 60 == 0 => format!("{} min", s / 60),
        s if s < 172_800 => format!("{}:{:02} h", s / 3600, s / 60 % 60),
        s => format!("{:.1} d", s as f64 / 86_400.0),
    }
}

impl Chart<'_> {
    /// The chart as a piece of a page.
    pub fn html(&self) -> String {
        let mut out = String::from("<figure class=\"chart\"><figcaption><b>");
        let _ = write!(out, "{}</b> <span class=\"dim\">{}</span>", Html(self.title), Html(self.unit));
        if self.series.len() > 1 {
            out.push_str("<span class=\"legend\">");
            for series in &self.series {
                let _ = write!(out, "<span><i class=\"c{}\"></i>{}</span>", series.colour, Html(series.name));
            }
            out.push_str("</span>");
        }
        out.push_str("</figcaption>");
        let points = || self.series.iter().flat_map(|series| &series.points);
        if points().count() == 0 {
            out.push_str("<p class=\"empty\">nothing was measured</p></figure>");
            return out;
        }
        let right = match &self.axis {
            Axis::Elapsed => points().map(|point| point.0).fold(1.0, f64::max),
            Axis::Labels(labels) => labels.len() as f64,
        };
        let most = self.most();
        // Where nothing is above zero, an axis up to one says so.
        let mark = match most {
            0.0 => 1.0,
            most => step(most, 3.0).max(if most >= 3.0 { 1.0 } else { 0.0 }),
        };
        let top = (most / mark).ceil().max(1.0) * mark;
        out.push_str("<div class=\"plot\"><div class=\"ys\">");
        for index in 0..=(top / mark).round() as u32 {
            let value = f64::from(index) * mark;
            let _ =
                write!(out, "<span style=\"bottom:{:.2}%\">{}</span>", value / top * 100.0, compact(value));
        }
        let _ = write!(
            out,
            "</div><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
            Html(self.title)
        );
        for index in 0..=(top / mark).round() as u32 {
            let y = HEIGHT - f64::from(index) * mark / top * HEIGHT;
            let _ = write!(out, "<line class=\"grid\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
        }
        for (row, series) in self.series.iter().enumerate() {
            if self.bars {
                self.bars(&mut out, series, row, (right, top));
            } else {
                curve(&mut out, series, (right, top), self.series.len() == 1);
            }
        }
        out.push_str("</svg><div class=\"xs\">");
        self.below(&mut out, right);
        out.push_str("</div></div></figure>");
        out
    }

    /// The highest point; of bars, which stand on each other, the highest stack.
    fn most(&self) -> f64 {
        let finite = |value: f64| if value.is_finite() { value.max(0.0) } else { 0.0 };
        if !self.bars {
            return self
                .series
                .iter()
                .flat_map(|one| &one.points)
                .map(|point| finite(point.1))
                .fold(0.0, f64::max);
        }
        let longest = self.series.iter().map(|one| one.points.len()).max().unwrap_or(0);
        let stack = |place: usize| -> f64 {
            self.series.iter().filter_map(|one| one.points.get(place)).map(|point| finite(point.1)).sum()
        };
        (0..longest).map(stack).fold(0.0, f64::max)
    }

    fn bars(&self, out: &mut String, series: &Series<'_>, row: usize, (right, top): (f64, f64)) {
        let slot = WIDTH / right.max(1.0);
        let width = (slot * 0.7).min(40.0);
        for (place, (x, value)) in series.points.iter().enumerate() {
            let below: f64 =
                self.series[..row].iter().filter_map(|one| one.points.get(place)).map(|point| point.1).sum();
            let height = value / top * HEIGHT;
            if height <= 0.0 {
                continue;
            }
            let _ = write!(
                out,
                "<rect class=\"c{}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{} {}</title></rect>",
                series.colour,
                (x + 0.5) * slot - width / 2.0,
                HEIGHT - (below / top * HEIGHT) - height,
                compact(*value),
                Html(series.name)
            );
        }
    }

    fn below(&self, out: &mut String, right: f64) {
        match &self.axis {
            Axis::Elapsed => {
                let step = time_step(right);
                let mut at = 0.0;
                while at <= right {
                    let _ =
                        write!(out, "<span style=\"left:{:.2}%\">{}</span>", at / right * 100.0, clock(at));
                    at += step;
                }
            }
            Axis::Labels(labels) => {
                // Six dates fit side by side on a phone.
                let every = labels.len().div_ceil(6).max(1);
                for (index, label) in labels.iter().enumerate().filter(|(index, _)| index % every == 0) {
                    let left = (index as f64 + 0.5) / labels.len() as f64 * 100.0;
                    let _ = write!(out, "<span style=\"left:{left:.2}%\">{}</span>", Html(label));
                }
            }
        }
    }
}

fn curve(out: &mut String, series: &Series<'_>, (right, top): (f64, f64), fill: bool) {
    let place =
        |point: &(f64, f64)| (point.0 / right * WIDTH, HEIGHT - (point.1 / top * HEIGHT).clamp(0.0, HEIGHT));
    let mut path = String::new();
    for (index, point) in series.points.iter().enumerate() {
        let (x, y) = place(point);
        let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
    }
    if let (true, Some(first), Some(last)) = (fill, series.points.first(), series.points.last()) {
        let (left, end) = (place(first).0, place(last).0);
        let _ = write!(
            out,
            "<path class=\"area c{}\" d=\"{path}L{end:.1} {HEIGHT}L{left:.1} {HEIGHT}Z\"/>",
            series.colour
        );
    }
    let _ = write!(out, "<path class=\"line c{}\" d=\"{path}\"/>", series.colour);
}

/// How fast a counter grew between samples, per second.
pub fn rate(samples: &[Sample], counter: impl Fn(&Sample) -> u64) -> Vec<(f64, f64)> {
    let pairs = samples.windows(2).filter(|pair| pair[1].at_s > pair[0].at_s);
    pairs
        .map(|pair| {
            let grown = counter(&pair[1]).saturating_sub(counter(&pair[0])) as f64;
            (pair[1].at_s, grown / (pair[1].at_s - pair[0].at_s))
        })
        .collect()
}

/// A counter over time.
pub fn level(samples: &[Sample], counter: impl Fn(&Sample) -> u64) -> Vec<(f64, f64)> {
    samples.iter().map(|sample| (sample.at_s, counter(sample) as f64)).collect()
}

/// Charts side by side, or a word where there are none.
pub fn row(charts: &[String]) -> String {
    match charts {
        [] => "<div class=\"card dim\">It was over before there was something to draw.</div>".to_owned(),
        charts => format!("<div class=\"charts\">{}</div>", charts.concat()),
    }
}

/// The charts of one campaign: iterations, failures, and suspensions and schedules where there were any. None of one that
/// was over before there was something to compare.
pub fn of_campaign(samples: &[Sample]) -> Vec<String> {
    let Some(last) = samples.last().filter(|_| samples.len() > 1) else { return Vec::new() };
    let chart = |title, unit, series: Vec<Series<'_>>| {
        Chart { title, unit, series, axis: Axis::Elapsed, bars: false }.html()
    };
    let one = |colour, points| vec![Series { name: "", colour, points }];
    let mut charts = Vec::new();
    // Where every iteration is a schedule, one curve tells both.
    if last.schedules < last.iterations || last.iterations == 0 {
        charts.push(chart("Iterations", "per second", one(1, rate(samples, |s| s.iterations))));
    }
    let failures = vec![
        Series { name: "all", colour: 5, points: level(samples, |s| s.failures) },
        Series { name: "different", colour: 4, points: level(samples, |s| s.signatures) },
    ];
    charts.push(chart("Failures", "so far", failures));
    if last.suspensions > 0 {
        charts.push(chart("Suspensions", "per second", one(3, rate(samples, |s| s.suspensions))));
    }
    if last.schedules > 0 {
        charts.push(chart("Schedules", "per second, strict mode", one(2, rate(samples, |s| s.schedules))));
    }
    if last.orders_predicted > 0 {
        let orders = vec![
            Series { name: "possible", colour: 4, points: level(samples, |s| s.orders_predicted) },
            Series { name: "seen", colour: 2, points: level(samples, |s| s.orders) },
        ];
        charts.push(chart("Orders of conflicting places", "so far, strict mode", orders));
    }
    charts
}

/// The charts of nights or campaigns in a row; `each` says which, as `per night`.
pub fn of_nights(nights: &[NightPoint], each: &'static str) -> Vec<String> {
    let day = |night: &NightPoint| night.started.strftime("%b %-d").to_string();
    let one_day = nights.windows(2).all(|pair| day(&pair[0]) == day(&pair[1])) && nights.len() > 1;
    let label = |night: &NightPoint| match one_day {
        true => night.started.strftime("%H:%M").to_string(),
        false => day(night),
    };
    let labels = || Axis::Labels(nights.iter().map(label).collect());
    let points = |value: fn(&NightPoint) -> f64| -> Vec<(f64, f64)> {
        nights.iter().enumerate().map(|(index, night)| (index as f64, value(night))).collect()
    };
    let known = |night: &NightPoint| night.signatures.saturating_sub(night.new_signatures) as f64;
    let failures = Chart {
        title: "Different failures",
        unit: each,
        series: vec![
            Series { name: "known", colour: 4, points: points(known) },
            Series { name: "new", colour: 5, points: points(|night| night.new_signatures as f64) },
        ],
        axis: labels(),
        bars: true,
    };
    let iterations = Chart {
        title: "Iterations",
        unit: each,
        series: vec![Series {
            name: "iterations",
            colour: 1,
            points: points(|night| night.iterations as f64),
        }],
        axis: labels(),
        bars: true,
    };
    vec![failures.html(), iterations.html()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_numbers() {
        assert_eq!([0.3, 7.0, 12.0, 480.0, 1000.0].map(nice), [0.5, 10.0, 20.0, 500.0, 1000.0]);
        assert_eq!([4.0, 60.0, 3600.0, 28_800.0].map(time_step), [1.0, 15.0, 1800.0, 7200.0]);
        assert_eq!(
            [0.0, 30.0, 600.0, 9000.0, 300_000.0].map(clock),
            ["0", "30 s", "10 min", "2:30 h", "3.5 d"]
        );
    }

    #[test]
    fn rates_are_differences_and_restarts_are_no_negative_ones() {
        let at = |at_s, iterations| Sample { at_s, iterations, ..Sample::default() };
        let samples = [at(0.0, 0), at(2.0, 100), at(2.0, 150), at(4.0, 50)];
        assert_eq!(rate(&samples, |sample| sample.iterations), [(2.0, 50.0), (4.0, 0.0)]);
    }

    #[test]
    fn bars_stand_on_each_other_and_the_axis_holds_both() {
        let rows = vec![
            Series { name: "known", colour: 4, points: vec![(0.0, 13.0)] },
            Series { name: "new", colour: 5, points: vec![(0.0, 4.0)] },
        ];
        let labels = Axis::Labels(vec!["a".into()]);
        let html = Chart { title: "x", unit: "", series: rows, axis: labels, bars: true }.html();
        // 17 of an axis up to 20, 200 high: 13 are 130 high and begin at 70, 4 are 40 high above them.
        assert!(html.contains("y=\"70.0\" width=\"40.0\" height=\"130.0\""), "{html}");
        assert!(html.contains("y=\"30.0\" width=\"40.0\" height=\"40.0\""), "{html}");
    }

    #[test]
    fn nothing_at_all_has_an_axis_of_its_own_and_one_sample_has_no_chart() {
        let none = vec![Series { name: "x", colour: 1, points: vec![(0.0, 0.0)] }];
        let axis = Axis::Labels(vec!["a".into()]);
        let html = Chart { title: "x", unit: "", series: none, axis, bars: true }.html();
        assert!(html.contains(">0</span>") && html.contains(">1</span>"), "{html}");
        assert!(of_campaign(&[Sample::default()]).is_empty());
    }

    #[test]
    fn orders_that_were_seen_have_a_curve_below_those_that_are_possible() {
        let at =
            |at_s, orders| Sample { at_s, schedules: 1, orders, orders_predicted: 9, ..Sample::default() };
        let charts = of_campaign(&[at(0.0, 1), at(1.0, 4), at(2.0, 7)]);
        let orders = charts.last().expect("strict mode");
        assert!(orders.contains("Orders of conflicting places"), "{orders}");
        assert!(orders.contains("possible") && orders.contains("seen"), "{orders}");
        let none = of_campaign(&[Sample::default(), Sample { at_s: 1.0, ..Sample::default() }]).join("");
        assert!(!none.contains("Orders"), "{none}");
    }

    #[test]
    fn schedules_that_are_all_there_is_are_not_drawn_twice() {
        let at = |at_s, iterations, schedules| Sample { at_s, iterations, schedules, ..Sample::default() };
        let titles = |samples: &[Sample]| of_campaign(samples).concat().matches("<figure").count();
        assert_eq!(titles(&[at(0.0, 0, 0), at(1.0, 9, 9)]), 2, "failures and schedules");
        assert_eq!(titles(&[at(0.0, 0, 0), at(1.0, 20, 9)]), 3, "iterations too");
    }

    #[test]
    fn empty_and_hostile_charts_are_fine() {
        let nothing =
            Chart { title: "<b>", unit: "", series: Vec::new(), axis: Axis::Elapsed, bars: false }.html();
        assert!(nothing.contains("&lt;b&gt;") && nothing.contains("nothing was measured"), "{nothing}");
        let flat = vec![Series { name: "x", colour: 1, points: vec![(0.0, 0.0), (0.0, f64::NAN)] }];
        let flat = Chart { title: "x", unit: "", series: flat, axis: Axis::Elapsed, bars: false }.html();
        assert!(!flat.contains("inf"), "{flat}");
    }
}
