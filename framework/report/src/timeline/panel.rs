//! One panel of the picture: an axis, a lane per thread, what happens in it.

use std::fmt::Write as _;

use super::{Arrow, Doing, Held, Span, Timeline, Unit};
use crate::escape::Xml;
use crate::numbers::{compact, span as time_text};

/// Width of the picture.
pub(super) const WIDTH: f64 = 1200.0;
/// Where lanes begin: names are before.
pub(super) const LEFT: f64 = 150.0;
const RIGHT: f64 = 28.0;
/// Stretches that are closer than this are drawn as one, or than more when there are too many.
const NEAR: f64 = 0.5;
/// Stretches that are drawn: a picture is looked at in a browser.
const MOST_SHAPES: usize = 6_000;
/// Connectors of switches that are drawn; more are a smear.
const MOST_SWITCHES: usize = 300;
/// Room for the axis.
const AXIS: f64 = 18.0;

/// What is drawn.
pub(super) struct Panel<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) lanes: &'a [usize],
    pub(super) from: u64,
    pub(super) to: u64,
    /// With words.
    pub(super) detailed: bool,
    /// Stretches that are closer than this are drawn as one.
    near: f64,
}

impl<'a> Panel<'a> {
    pub(super) fn new(timeline: &'a Timeline, lanes: &'a [usize], from: u64, detailed: bool) -> Panel<'a> {
        Panel { timeline, lanes, from, to: timeline.end, detailed, near: NEAR }
    }

    /// How many shapes there would be.
    fn shapes(&self) -> usize {
        let lanes = self.timeline.lanes.len();
        let count = |kinds: usize, stretches: &mut dyn Iterator<Item = (usize, u64, u64)>| {
            // Stretches of one kind in one lane come nearly in order, which is enough for counting.
            let mut ends = vec![f64::NEG_INFINITY; lanes * kinds];
            let mut shapes = 0;
            for (place, from, to) in stretches {
                shapes += usize::from(self.x(from) - ends[place] >= self.near);
                ends[place] = self.x(to).max(ends[place]);
            }
            shapes
        };
        let kind = |doing: Doing| doing as usize;
        let locks = self.timeline.locks.len();
        count(
            5,
            &mut self.timeline.spans.iter().map(|one| (one.lane * 5 + kind(one.doing), one.from, one.to)),
        ) + count(
            locks,
            &mut self.timeline.held.iter().map(|one| (one.lane * locks + one.lock, one.from, one.to)),
        )
    }

    /// Draws it from `top` on; returns where it ends.
    pub(super) fn draw(&mut self, out: &mut String, top: f64) -> f64 {
        self.near = NEAR;
        while !self.detailed && self.near < WIDTH && self.shapes() > MOST_SHAPES {
            self.near *= 2.0;
        }
        let row = self.row();
        let y = top + AXIS;
        let bottom = y + row * self.lanes.len() as f64;
        for (place, lane) in self.lanes.iter().enumerate() {
            let at = y + place as f64 * row;
            if place % 2 == 0 {
                let _ = write!(
                    out,
                    "<rect class=\"row\" x=\"16\" y=\"{at:.1}\" width=\"{:.1}\" height=\"{row:.1}\"/>",
                    WIDTH - 16.0 - RIGHT
                );
            }
            let size = (row * 0.62).clamp(7.0, 12.0);
            let name = &self.timeline.lanes[*lane];
            let shown = shorten(name, ((LEFT - 30.0) / (size * 0.58)) as usize);
            let _ = write!(
                out,
                "<text x=\"22\" y=\"{:.1}\" font-size=\"{size:.1}\">{}<title>{}</title></text>",
                at + row / 2.0 + size * 0.36,
                Xml(&shown),
                Xml(name)
            );
        }
        self.axis(out, y, bottom);
        // Once through all of them, however many lanes there are.
        let mut spans: Vec<Vec<&Span>> = vec![Vec::new(); self.timeline.lanes.len()];
        self.timeline.spans.iter().for_each(|span| spans[span.lane].push(span));
        let mut held: Vec<Vec<&Held>> = vec![Vec::new(); self.timeline.lanes.len()];
        self.timeline.held.iter().for_each(|one| held[one.lane].push(one));
        for (place, lane) in self.lanes.iter().enumerate() {
            self.lane(out, &spans[*lane], &held[*lane], (y + place as f64 * row, row));
        }
        if self.detailed {
            self.steps(out, y, row);
        }
        self.switches(out, y, row);
        self.arrows(out, y, row);
        self.failing(out, y, row, bottom);
        bottom + 10.0
    }

    fn row(&self) -> f64 {
        match (self.lanes.len(), self.detailed) {
            (0..=6, true) => 34.0,
            (0..=12, true) => 28.0,
            (_, true) => 22.0,
            (0..=8, false) => 22.0,
            (0..=24, false) => 15.0,
            (0..=64, false) => 11.0,
            _ => 8.0,
        }
    }

    fn x(&self, at: u64) -> f64 {
        let length = self.to.saturating_sub(self.from).max(1) as f64;
        LEFT + at.saturating_sub(self.from) as f64 / length * (WIDTH - LEFT - RIGHT)
    }

    fn axis(&self, out: &mut String, top: f64, bottom: f64) {
        let length = self.to.saturating_sub(self.from).max(1);
        for at in marks(self.from, self.to, self.timeline.unit) {
            let x = self.x(at);
            let words = match self.timeline.unit {
                Unit::Steps if length < 100_000 => at.to_string(),
                Unit::Steps => compact(at as f64),
                Unit::Nanoseconds => before(self.to.saturating_sub(at)),
            };
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>\
                 <text class=\"tick\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{words}</text>",
                top - 5.0
            );
        }
    }

    fn lane(&self, out: &mut String, spans: &[&Span], held: &[&Held], (y, row): (f64, f64)) {
        let locks = !self.timeline.held.is_empty();
        // Locks get the lowest part of the lane.
        let lower = if locks { (row * 0.28).min(9.0) } else { 0.0 };
        let (top, height) = (y + row * 0.1, row * 0.8 - lower);
        let middle = top + height / 2.0;
        for doing in [Doing::Alive, Doing::Ready, Doing::Blocked, Doing::Suspended, Doing::Running] {
            let spans = spans.iter().copied().filter(|span| span.doing == doing);
            for (left, right, first) in self.joined(spans) {
                let width = (right - left).max(0.9);
                let class = match doing {
                    Doing::Running => "run",
                    Doing::Blocked => "block",
                    Doing::Suspended => "susp",
                    Doing::Alive => "alive",
                    Doing::Ready => {
                        let _ = write!(
                            out,
                            "<line class=\"ready\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>"
                        );
                        continue;
                    }
                };
                let (top, height) = match doing {
                    Doing::Alive => (middle - 1.5, 3.0),
                    Doing::Blocked => (top + height * 0.14, height * 0.72),
                    _ => (top, height),
                };
                let _ = write!(
                    out,
                    "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"1.5\">"
                );
                if self.detailed {
                    let _ = write!(out, "<title>{}</title>", Xml(&self.told(first)));
                }
                out.push_str("</rect>");
                // A thread that runs has words at every step.
                let told = doing == Doing::Running && !self.timeline.steps.is_empty();
                if self.detailed && !told && !first.label.is_empty() && height >= 10.0 {
                    let shown = shorten(&first.label, ((width - 6.0) / 6.1).max(0.0) as usize);
                    if shown.chars().count() > 2 {
                        let _ = write!(
                            out,
                            "<text class=\"say{}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                            if doing == Doing::Blocked { " wait" } else { "" },
                            left + 3.0,
                            middle + 3.5,
                            Xml(&shown)
                        );
                    }
                }
            }
        }
        if locks {
            self.locks(out, held, y + row - lower, lower - 1.0);
        }
    }

    fn locks(&self, out: &mut String, mine: &[&Held], y: f64, height: f64) {
        // Locks that are held at the same time lie below each other.
        let mut kinds: Vec<usize> = mine.iter().map(|held| held.lock).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let levels = kinds.len().clamp(1, 3);
        let thick = height / levels as f64;
        for (place, lock) in kinds.iter().enumerate() {
            let name = self.timeline.locks.get(*lock).map_or("lock", String::as_str);
            let mut times: Vec<(f64, f64)> = mine
                .iter()
                .filter(|held| held.lock == *lock)
                .map(|held| (self.x(held.from), self.x(held.to)))
                .collect();
            times.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut joined: Vec<(f64, f64)> = Vec::new();
            for (left, right) in times {
                match joined.last_mut() {
                    Some(last) if left - last.1 < self.near && !self.detailed => last.1 = last.1.max(right),
                    _ => joined.push((left, right)),
                }
            }
            for (left, right) in joined {
                let _ = write!(
                    out,
                    "<rect class=\"l{}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{} held</title></rect>",
                    lock % 6,
                    y + thick * (place % levels) as f64,
                    (right - left).max(1.0),
                    (thick - 0.6).max(1.2),
                    Xml(name)
                );
            }
        }
    }

    /// Stretches with the gaps between them closed that nobody could see.
    fn joined<'s>(&self, spans: impl Iterator<Item = &'s Span>) -> Vec<(f64, f64, &'s Span)> {
        let mut sorted: Vec<&Span> = spans.collect();
        sorted.sort_by_key(|span| span.from);
        let mut joined: Vec<(f64, f64, &Span)> = Vec::new();
        for span in sorted {
            let (left, right) = (self.x(span.from), self.x(span.to));
            match joined.last_mut() {
                Some(last) if left - last.1 < self.near && !self.detailed => last.1 = last.1.max(right),
                _ => joined.push((left, right, span)),
            }
        }
        joined
    }

    fn told(&self, span: &Span) -> String {
        let doing = match span.doing {
            Doing::Running => "runs",
            Doing::Ready => "could run",
            Doing::Blocked => "waits",
            Doing::Suspended => "suspended",
            Doing::Alive => "is there",
        };
        let length = span.to - span.from;
        let length = match self.timeline.unit {
            Unit::Steps => crate::numbers::plural(length, "step"),
            Unit::Nanoseconds => time_text(std::time::Duration::from_nanos(length)),
        };
        let label = if span.label.is_empty() { String::new() } else { format!(": {}", span.label) };
        format!("{doing} for {length}{label}")
    }

    /// What is done at each step, as far as there is room.
    fn steps(&self, out: &mut String, y: f64, row: f64) {
        let lower = if self.timeline.held.is_empty() { 0.0 } else { (row * 0.28).min(9.0) };
        let (top, height) = (row * 0.1, row * 0.8 - lower);
        for step in self.timeline.steps.iter().filter(|step| step.at >= self.from) {
            let Some(place) = self.lanes.iter().position(|lane| *lane == step.lane) else { continue };
            let (left, right) = (self.x(step.at), self.x(step.at + 1));
            let at = y + place as f64 * row + top;
            let words = step.words();
            let shown = shorten(&words, ((right - left - 5.0) / 6.1).max(0.0) as usize);
            let _ = write!(
                out,
                "<line class=\"step\" x1=\"{left:.1}\" x2=\"{left:.1}\" y1=\"{at:.1}\" y2=\"{:.1}\"/>",
                at + height
            );
            if shown.chars().count() > 3 {
                let _ = write!(
                    out,
                    "<text class=\"say\" x=\"{:.1}\" y=\"{:.1}\">{}<title>{}</title></text>",
                    left + 3.0,
                    at + height / 2.0 + 3.5,
                    Xml(&shown),
                    Xml(&words)
                );
            }
        }
    }

    fn switches(&self, out: &mut String, y: f64, row: f64) {
        if self.timeline.switches.len() > MOST_SWITCHES {
            return;
        }
        let place = |lane: usize| self.lanes.iter().position(|shown| *shown == lane);
        for switch in self.timeline.switches.iter().filter(|switch| switch.at >= self.from) {
            let (Some(from), Some(to)) = (place(switch.from), place(switch.to)) else { continue };
            let x = self.x(switch.at);
            let at = |place: usize| y + (place as f64 + 0.42) * row;
            let _ = write!(
                out,
                "<line class=\"switch{}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                if switch.forced { " forced" } else { "" },
                at(from),
                at(to)
            );
        }
    }

    /// The orders that the failure needs: from the middle of one step to the middle of the other.
    fn arrows(&self, out: &mut String, y: f64, row: f64) {
        let place = |lane: usize| self.lanes.iter().position(|shown| *shown == lane);
        let step = self.x(self.from + 1) - self.x(self.from);
        for Arrow { from, to } in &self.timeline.arrows {
            let (Some(upper), Some(lower)) = (place(from.0), place(to.0)) else { continue };
            let x = |at: u64| (self.x(at) + step / 2.0).min(WIDTH - RIGHT);
            let at = |place: usize| y + (place as f64 + 0.42) * row;
            let (x1, y1, x2, y2) = (x(from.1), at(upper), x(to.1), at(lower));
            let length = (x2 - x1).hypot(y2 - y1).max(1.0);
            let (dx, dy) = ((x2 - x1) / length, (y2 - y1) / length);
            let head = |side: f64| {
                format!("{:.1},{:.1}", x2 - 7.0 * dx - side * 3.5 * dy, y2 - 7.0 * dy + side * 3.5 * dx)
            };
            let _ = write!(
                out,
                "<line class=\"decides\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\
                 <polygon class=\"decider\" points=\"{x2:.1},{y2:.1} {} {}\"/>",
                head(1.0),
                head(-1.0)
            );
        }
    }

    fn failing(&self, out: &mut String, y: f64, row: f64, bottom: f64) {
        let Some(failing) = &self.timeline.failing else { return };
        let x = self.x(failing.at);
        let _ = write!(
            out,
            "<line class=\"fail\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\"/>",
            y - 3.0
        );
        if let Some(place) = failing.lane.and_then(|lane| self.lanes.iter().position(|shown| *shown == lane))
        {
            let (middle, arm) = (y + (place as f64 + 0.42) * row, (row * 0.22).min(6.0));
            for (a, b) in [(-arm, arm), (arm, -arm)] {
                let _ = write!(
                    out,
                    "<line class=\"fail\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                    x + 12.0 - arm,
                    x + 12.0 + arm,
                    middle + a,
                    middle + b
                );
            }
        }
        let _ = write!(
            out,
            "<text class=\"failtext\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            WIDTH - 8.0,
            y - 16.0,
            Xml(&shorten(&failing.what, 90))
        );
    }
}

/// Where an axis is marked: at round steps, or at round times before the end.
fn marks(from: u64, to: u64, unit: Unit) -> Vec<u64> {
    let step = round_step(to.saturating_sub(from).max(1) / 10);
    match unit {
        Unit::Steps => (from.div_ceil(step)..=to / step).map(|number| number * step).collect(),
        Unit::Nanoseconds => (0..=(to - from.min(to)) / step).map(|number| to - number * step).collect(),
    }
}

/// A time before the end. Marks are round, so zeros behind the point say nothing.
fn before(nanos: u64) -> String {
    if nanos == 0 {
        return "0".to_owned();
    }
    let text = time_text(std::time::Duration::from_nanos(nanos));
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("−{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => format!("−{text}"),
    }
}

/// A step of 1, 2 or 5 times a power of ten.
fn round_step(least: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for step in [1, 2, 5] {
            if step * power >= least.max(1) {
                return step * power;
            }
        }
        power = power.saturating_mul(10);
    }
}

fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    if most < 2 {
        return String::new();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_names_fit() {
        assert_eq!([0, 1, 3, 7, 12, 480].map(round_step), [1, 1, 5, 10, 20, 500]);
        assert_eq!(shorten("thread 12", 6), "threa…");
        assert_eq!(shorten("thread", 6), "thread");
        assert_eq!(shorten("thread", 1), "");
    }

    #[test]
    fn times_are_round_seen_from_the_end_and_steps_from_the_beginning() {
        assert_eq!(marks(7, 26, Unit::Steps), (7..=26).collect::<Vec<u64>>());
        assert_eq!(marks(95, 150, Unit::Steps), [95, 100, 105, 110, 115, 120, 125, 130, 135, 140, 145, 150]);
        let marks = marks(1_000_000, 9_100_000, Unit::Nanoseconds);
        let words: Vec<String> = marks.iter().map(|at| before(9_100_000 - at)).collect();
        assert_eq!(words[..3], ["0", "−1 ms", "−2 ms"]);
        assert_eq!(words.last().map(String::as_str), Some("−8 ms"));
        assert_eq!(
            [before(500_000), before(1_500_000_000), before(120_000_000_000)],
            ["−500 µs", "−1.5 s", "−2 min 00 s"]
        );
    }
}
