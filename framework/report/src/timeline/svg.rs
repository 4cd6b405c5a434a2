//! The picture of a timeline: all of it, and what came last in detail.
//!
//! Two threads and sixty-four must both be readable, a run of ten steps and one of a million too. So lanes get lower as
//! there are more of them, stretches that are closer than half a pixel are drawn as one, and when a run is long, a second
//! panel shows its end with words: the threads that did something there, and what they did.

use std::fmt::Write as _;

use super::panel::{LEFT, Panel, WIDTH};
use super::{Doing, Timeline, Unit};
use crate::escape::Xml;

/// Steps that the panel of the end shows: more have no room for words.
const LAST_STEPS: u64 = 40;
/// Suspensions that it shows.
const LAST_SUSPENSIONS: usize = 12;
/// Steps that are listed below, in columns.
const LISTED_STEPS: usize = 24;
const COLUMNS: usize = 3;
/// Locks that the legend names.
const MOST_LOCKS: usize = 18;
/// Lanes of that panel.
const MOST_LANES: usize = 24;

const STYLE: &str = "\
text{font-family:system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#16202c}\
.paper{fill:#fff}.title{font-size:15px;font-weight:600}.head{font-size:12px;font-weight:600}.dim{fill:#5c6b7c}\
.tick{font-size:10px;fill:#5c6b7c}.say{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:10px;fill:#fff}\
.say.wait{fill:#8a3b34}.key{font-size:11px}.list{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:11px}.step{stroke:#fff;stroke-width:.7;opacity:.6}.grid{stroke:#e6eaef;stroke-width:1}.row{fill:#f4f6f8}\
.run{fill:#1d6fd1}.ready{stroke:#9fb0c2;stroke-width:2}.alive{fill:#dfe7ef}.block{fill:#f6d9d5;stroke:#d9857c;stroke-width:.6}\
.susp{fill:#8b53c9}.switch{stroke:#62717f;stroke-width:1;opacity:.55}.switch.forced{stroke:#16202c;stroke-width:1.6;opacity:.9}\
.fail{stroke:#d0392f;stroke-width:2}.failtext{fill:#d0392f;font-size:12px;font-weight:700}\
.decides{stroke:#c0267e;stroke-width:2}.decider{fill:#c0267e}\
.l0{fill:#d98a00}.l1{fill:#0b8a72}.l2{fill:#c2397f}.l3{fill:#4a57c4}.l4{fill:#7d8a00}.l5{fill:#7a5230}\
@media (prefers-color-scheme:dark){text{fill:#e4eaf1}.paper{fill:#171e26}.dim,.tick{fill:#93a2b3}.grid{stroke:#2a3541}.row{fill:#1c242d}\
.run{fill:#4a94ea}.say{fill:#0b1016}.step{stroke:#0b1016}.say.wait{fill:#f3b5ae}.ready{stroke:#566779}.alive{fill:#2a3541}.block{fill:#4a2624;stroke:#a8544b}\
.susp{fill:#b78bea}.switch{stroke:#8d9bab}.switch.forced{stroke:#e4eaf1}.fail{stroke:#f2776d}.failtext{fill:#f2776d}\
.l0{fill:#eeb14a}.l1{fill:#3fc4a6}.l2{fill:#ee7fb4}.l3{fill:#8f9bf0}.l4{fill:#c3d04a}.l5{fill:#c79a6f}}";

/// The picture.
pub fn picture(timeline: &Timeline) -> String {
    let mut body = String::new();
    let mut y = 16.0;
    let _ =
        write!(body, "<text class=\"title\" x=\"16\" y=\"{:.0}\">{}</text>", y + 8.0, Xml(&timeline.title));
    y += 22.0;
    let zoom = zoom(timeline);
    let all: Vec<usize> = (0..timeline.lanes.len()).collect();
    if let Some(from) = zoom {
        let words = match timeline.unit {
            Unit::Steps => format!(
                "the whole run: {} steps, {} switches, {} threads",
                crate::numbers::count(timeline.end - timeline.start),
                crate::numbers::count(timeline.switches.len() as u64),
                timeline.lanes.len()
            ),
            Unit::Nanoseconds => "as far as the log goes back".to_owned(),
        };
        heading(&mut body, &mut y, &words);
        y = Panel::new(timeline, &all, timeline.start, false).draw(&mut body, y);
        let end = timeline.since(from);
        let lanes = busy(&end);
        let words = match timeline.unit {
            Unit::Steps => format!("the last {} steps", timeline.end - from),
            Unit::Nanoseconds => "the end of it".to_owned(),
        };
        let left_out = timeline.lanes.len() - lanes.len();
        let others = match left_out {
            0 => String::new(),
            1 => "; one thread that did nothing there is left out".to_owned(),
            n => format!("; {n} threads that did nothing there are left out"),
        };
        heading(&mut body, &mut y, &format!("{words}{others}"));
        y = Panel::new(&end, &lanes, from, true).draw(&mut body, y);
    } else {
        y = Panel::new(timeline, &all, timeline.start, true).draw(&mut body, y);
    }
    legend(&mut body, &mut y, timeline);
    last_steps(&mut body, &mut y, timeline);
    for note in &timeline.notes {
        let _ = write!(body, "<text class=\"key dim\" x=\"16\" y=\"{:.0}\">{}</text>", y + 10.0, Xml(note));
        y += 16.0;
    }
    let height = y + 10.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
         height=\"{height:.0}\"><style>{STYLE}</style><rect class=\"paper\" width=\"{WIDTH}\" height=\"{height:.0}\"/>{body}</svg>\n"
    )
}

/// The last steps as lines, for those that had no room in the picture.
fn last_steps(body: &mut String, y: &mut f64, timeline: &Timeline) {
    let shown = &timeline.steps[timeline.steps.len().saturating_sub(LISTED_STEPS)..];
    if shown.is_empty() {
        return;
    }
    heading(body, y, "the last steps");
    let rows = shown.len().div_ceil(COLUMNS);
    for (index, step) in shown.iter().enumerate() {
        let x = LEFT + (index / rows) as f64 * ((WIDTH - LEFT) / COLUMNS as f64);
        let lane = timeline.lanes.get(step.lane).map_or("?", String::as_str);
        let _ = write!(
            body,
            "<text class=\"list\" x=\"{x:.0}\" y=\"{:.0}\">{} {} <tspan class=\"dim\">{}</tspan></text>",
            *y + 11.0 + (index % rows) as f64 * 15.0,
            step.at,
            Xml(lane),
            Xml(&step.words())
        );
    }
    *y += rows as f64 * 15.0 + 8.0;
}

fn heading(body: &mut String, y: &mut f64, words: &str) {
    let _ = write!(body, "<text class=\"head dim\" x=\"16\" y=\"{:.0}\">{}</text>", *y + 12.0, Xml(words));
    *y += 20.0;
}

/// Where the panel of the end begins; none when the whole run has room for words.
fn zoom(timeline: &Timeline) -> Option<u64> {
    match timeline.unit {
        Unit::Steps => {
            let all = timeline.end.saturating_sub(timeline.start);
            (all > LAST_STEPS * 3 / 2).then(|| timeline.end - LAST_STEPS)
        }
        Unit::Nanoseconds => {
            let mut begins: Vec<u64> = timeline
                .spans
                .iter()
                .filter(|span| span.doing == Doing::Suspended)
                .map(|span| span.from)
                .collect();
            begins.sort_unstable();
            let from = *begins.get(begins.len().checked_sub(LAST_SUSPENSIONS)?)?;
            // A little of what was before, so that the first one is seen to begin.
            let before = timeline.end.saturating_sub(from) / 40;
            let from = from.saturating_sub(before).max(timeline.start);
            ((from - timeline.start) * 4 > timeline.end - timeline.start).then_some(from)
        }
    }
}

/// The lanes in which something happens, those that run before those that only wait when there are too many.
fn busy(timeline: &Timeline) -> Vec<usize> {
    let of = |lane: usize| timeline.spans.iter().filter(move |span| span.lane == lane);
    let mut ranked: Vec<(usize, usize)> = (0..timeline.lanes.len())
        .filter_map(|lane| {
            let runs = of(lane).any(|span| matches!(span.doing, Doing::Running | Doing::Suspended));
            let holds = timeline.held.iter().any(|held| held.lane == lane);
            let waits = of(lane).any(|span| span.doing == Doing::Blocked);
            let rank = [runs, holds, waits].iter().position(|is| *is)?;
            Some((rank, lane))
        })
        .collect();
    ranked.sort_unstable();
    let mut lanes: Vec<usize> = ranked.into_iter().take(MOST_LANES).map(|(_, lane)| lane).collect();
    lanes.sort_unstable();
    lanes
}

fn legend(body: &mut String, y: &mut f64, timeline: &Timeline) {
    let has = |doing| timeline.spans.iter().any(|span| span.doing == doing);
    let block =
        |class: &str| format!("<rect class=\"{class}\" y=\"1\" width=\"14\" height=\"10\" rx=\"2\"/>");
    let mut keys: Vec<(String, String)> = Vec::new();
    for (doing, class, words) in [
        (Doing::Running, "run", "runs"),
        (Doing::Blocked, "block", "waits for another"),
        (Doing::Suspended, "susp", "suspended"),
        (Doing::Alive, "alive", "left alone"),
    ] {
        if has(doing) {
            keys.push((block(class), words.to_owned()));
        }
    }
    if has(Doing::Ready) {
        let line = "<line class=\"ready\" x2=\"14\" y1=\"6\" y2=\"6\"/>";
        keys.push((line.to_owned(), "could run, is not chosen".to_owned()));
    }
    if timeline.switches.iter().any(|switch| switch.forced) {
        let line = "<line class=\"switch forced\" x1=\"7\" x2=\"7\" y1=\"0\" y2=\"12\"/>";
        keys.push((line.to_owned(), "switch away from one that could go on".to_owned()));
    }
    if !timeline.arrows.is_empty() {
        let line = "<line class=\"decides\" x2=\"14\" y1=\"6\" y2=\"6\"/>";
        keys.push((line.to_owned(), "the order decides: reversed, it passes".to_owned()));
    }
    for (index, lock) in timeline.locks.iter().enumerate().take(MOST_LOCKS) {
        let bar = format!("<rect class=\"l{}\" y=\"4\" width=\"14\" height=\"5\"/>", index % 6);
        keys.push((bar, format!("{lock} held")));
    }
    let mut x = LEFT;
    *y += 4.0;
    for (shape, words) in keys {
        let width = 38.0 + 6.4 * words.chars().count() as f64;
        if x + width > WIDTH {
            (x, *y) = (LEFT, *y + 18.0);
        }
        let _ = write!(
            body,
            "<g transform=\"translate({x:.0} {:.0})\">{shape}<text class=\"key\" x=\"20\" y=\"10\">{}</text></g>",
            *y,
            Xml(&words)
        );
        x += width;
    }
    *y += 22.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{Failing, Held, Span, SwitchPoint};

    /// Threads that take turns at one lock, for so many steps.
    fn busy_run(threads: usize, steps: u64) -> Timeline {
        let mut timeline = Timeline::new("turns", Unit::Steps);
        timeline.lanes = (0..threads).map(|thread| format!("thread {thread}")).collect();
        timeline.locks = vec!["lock A".into()];
        for step in 0..steps {
            let lane = step as usize % threads;
            let (from, to) = (step, step + 1);
            timeline.spans.push(Span { lane, from, to, doing: Doing::Running, label: "mutex-lock A".into() });
            let to = (step + threads as u64).min(steps);
            timeline.spans.push(Span {
                lane,
                from: step + 1,
                to,
                doing: Doing::Blocked,
                label: "waits".into(),
            });
            timeline.held.push(Held { lane, lock: 0, from, to: step + 1 });
            let next = (lane + 1) % threads;
            timeline.switches.push(SwitchPoint { at: step + 1, from: lane, to: next, forced: true });
        }
        timeline.end = steps;
        timeline.failing =
            Some(Failing { at: steps, lane: Some(0), what: "<deadlock> & \u{202e}more".into() });
        timeline
    }

    /// Every tag closes, attributes are quoted, nothing is left over.
    fn assert_well_formed(xml: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = xml;
        while let Some(at) = rest.find('<') {
            assert!(!rest[..at].contains('>'), "{}", &rest[..at]);
            let end = rest[at..].find('>').expect("a tag ends") + at;
            let tag = &rest[at + 1..end];
            let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            if let Some(closed) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(closed));
            } else if !tag.ends_with('/') {
                open.push(name);
            }
            rest = &rest[end + 1..];
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn pictures_of_any_size_are_well_formed_and_small() {
        for (threads, steps) in [(2, 6), (2, 50_000), (8, 100), (64, 20_000), (200, 5_000), (1, 1)] {
            let picture = picture(&busy_run(threads, steps));
            assert_well_formed(&picture);
            assert!(
                picture.len() < 12_000 * (threads + 40),
                "{threads} threads, {steps} steps: {}",
                picture.len()
            );
            assert!(picture.contains("&lt;deadlock&gt; &amp; ⟨U+202E⟩more"), "hostile text is inert");
        }
    }

    #[test]
    fn a_short_run_is_one_panel_and_a_long_one_has_its_end_in_words() {
        assert!(!picture(&busy_run(2, 20)).contains("the last"));
        let long = picture(&busy_run(64, 5_000));
        assert!(long.contains("the whole run: 5,000 steps") && long.contains("the last 40 steps"));
        assert!(long.contains("left out"), "only threads that did something at the end are shown there");
    }

    #[test]
    fn nothing_is_a_picture_too() {
        assert_well_formed(&picture(&Timeline::new("", Unit::Steps)));
        assert_well_formed(&picture(&Timeline::new("", Unit::Nanoseconds)));
    }
}
