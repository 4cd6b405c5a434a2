//! The view as cells of a terminal. Pure: the same view gives the same picture.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Sparkline, Table};
use waylay_driver::report::{count, plural, span};
use waylay_report::escape::Plain;

use super::view::{Page, TestRow, View};

/// From so many columns on the table of tests has all of its own.
const WIDE: u16 = 100;
/// Smaller than this nothing can be read.
const LEAST: (u16, u16) = (40, 10);

/// Styles, without colours where nobody wants them.
#[derive(Clone, Copy)]
pub(super) struct Ink {
    pub(super) colour: bool,
}

impl Ink {
    fn of(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn quiet(self) -> Style {
        if self.colour { Style::new().fg(Color::DarkGray) } else { Style::new() }
    }

    fn bad(self) -> Style {
        self.of(Color::Red).add_modifier(Modifier::BOLD)
    }
}

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, ink: Ink) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        frame.render_widget(Paragraph::new("too small to show anything"), area);
        return;
    }
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(3), Constraint::Min(1), Constraint::Length(1)]).areas(area);
    header(frame, head, view, ink);
    match view.page {
        Page::Overview => overview(frame, body, view, ink),
        Page::Failures => text(frame, body, " failures ", view, ink),
        Page::Running => text(frame, body, " running now ", view, ink),
    }
    let keys = match view.page {
        Page::Overview => " q end in order   w what is running now   f failures in full",
        _ => " q end in order   w ask again   Esc overview   ↑ ↓ PgUp PgDn",
    };
    frame.render_widget(Paragraph::new(keys).style(ink.quiet()), foot);
}

fn header(frame: &mut Frame<'_>, area: Rect, view: &View, ink: Ink) {
    let [first, second, third] = Layout::vertical([Constraint::Length(1); 3]).areas(area);
    let title = Line::from(vec![
        Span::styled(" waylay ", ink.strong().add_modifier(Modifier::REVERSED)),
        Span::raw(format!(" {}", Plain(&view.title))),
    ]);
    frame.render_widget(title, first);
    let seconds = view.elapsed.as_secs();
    let clock = format!("{:02}:{:02}:{:02} ", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let state = if view.ending { "ending, again to end at once  " } else { "" };
    let right = Line::from(vec![Span::styled(state, ink.bad()), Span::raw(clock)]);
    frame.render_widget(right.alignment(Alignment::Right), first);
    let scenario = match view.mode.as_str() {
        "" => format!(" begins, seed {}", view.seed),
        mode => {
            let hosts = plural(view.hosts, "host");
            format!(" scenario {} ({mode}), seed {}, {hosts}", Plain(&view.scenario), view.seed)
        }
    };
    frame.render_widget(Line::styled(scenario, ink.quiet()), second);
    frame.render_widget(numbers(view, ink), third);
}

fn numbers(view: &View, ink: Ink) -> Line<'static> {
    let word = if view.strict { " schedules" } else { "" };
    let mut line = vec![
        Span::raw(" "),
        Span::styled(plural(view.iterations, "iteration"), ink.strong()),
        Span::raw(format!(" ({}{word}/s), ", count(view.rate as u64))),
    ];
    line.push(match view.failed {
        0 => Span::raw("0 failures"),
        failed => {
            Span::styled(format!("{} ({} different)", plural(failed, "failure"), view.different), ink.bad())
        }
    });
    if let Some(rate) = view.suspensions {
        line.push(Span::raw(format!(", {} suspensions/s", count(rate as u64))));
    }
    if let Some((worker, time)) = &view.slowest {
        line.push(Span::raw(format!(", slowest now {} for {}", Plain(worker), span(*time))));
    }
    if view.problems > 0 {
        line.push(Span::styled(format!(", {}", plural(view.problems as u64, "problem")), ink.bad()));
    }
    Line::from(line)
}

fn overview(frame: &mut Frame<'_>, area: Rect, view: &View, ink: Ink) {
    // What there is little of gets little room; the tests get the rest.
    let failures = (view.failures.len() as u16 + 2).clamp(3, (area.height / 3).max(3));
    let notes = (view.notes.len() as u16 + 2).clamp(2, 5);
    let chart = if area.height >= 16 { 4 } else { 0 };
    let [chart, tests, failures, notes] = Layout::vertical([
        Constraint::Length(chart),
        Constraint::Min(4),
        Constraint::Length(failures),
        Constraint::Length(if view.notes.is_empty() { 0 } else { notes }),
    ])
    .areas(area);
    rates(frame, chart, view, ink);
    test_table(frame, tests, view, ink);
    failure_table(frame, failures, view, ink);
    let shown = usize::from(notes.height.saturating_sub(2));
    let newest = view.notes.iter().skip(view.notes.len().saturating_sub(shown));
    let lines: Vec<Line<'_>> = newest.map(|note| Line::raw(Plain(note).to_string())).collect();
    frame.render_widget(Paragraph::new(lines).block(framed(" what happened ", ink)), notes);
}

fn framed(title: &str, ink: Ink) -> Block<'_> {
    Block::new().borders(Borders::TOP).border_style(ink.quiet()).title(Span::styled(title, ink.strong()))
}

fn rates(frame: &mut Frame<'_>, area: Rect, view: &View, ink: Ink) {
    let columns = usize::from(area.width);
    let shown: Vec<u64> = view.rates.iter().skip(view.rates.len().saturating_sub(columns)).copied().collect();
    let most = shown.iter().max().copied().unwrap_or(0);
    let word = if view.strict { "schedules" } else { "iterations" };
    let title = format!(" {word} per second, at most {} ", count(most));
    let chart = Sparkline::default().data(shown).style(ink.of(Color::Cyan)).block(framed(&title, ink));
    frame.render_widget(chart, area);
}

fn test_table(frame: &mut Frame<'_>, area: Rect, view: &View, ink: Ink) {
    let wide = area.width >= WIDE;
    let nanos = |time: f64| span(Duration::from_nanos(time as u64));
    let row = |test: &TestRow| {
        let record = &test.record;
        let ran = record.iterations > 0;
        let failures = match record.failures {
            0 => Cell::from(right("0")),
            failures => Cell::from(right(&count(failures))).style(ink.bad()),
        };
        let name = match &record.retired {
            Some(reason) => format!(" {} [{}]", Plain(&record.name), Plain(reason)),
            None => format!(" {}", Plain(&record.name)),
        };
        let mut cells = vec![
            Cell::from(name),
            Cell::from(right(&count(record.iterations))),
            Cell::from(right(&count(test.rate as u64))),
            Cell::from(right(&if ran { nanos(record.average_ns) } else { String::new() })),
            failures,
        ];
        if wide {
            let longest = if ran { nanos(record.longest_ns) } else { String::new() };
            cells.insert(4, Cell::from(right(&longest)));
            let share = record.pot.as_ref().map_or_else(String::new, |share| {
                match (&record.retired, share.until_retired) {
                    (None, _) => format!("{:.1} % of {:.1} %", share.achieved * 100.0, share.asked * 100.0),
                    (Some(_), Some(until)) => format!("{:.1} %, retired", until * 100.0),
                    (Some(_), None) => "retired".to_owned(),
                }
            });
            cells.push(Cell::from(right(&share)));
        }
        Row::new(cells)
    };
    let mut titles = vec![" test", "iterations", "per s", "average", "failures"];
    let mut widths =
        vec![Constraint::Min(14), Constraint::Length(14), Constraint::Length(10), Constraint::Length(9)];
    if wide {
        titles.insert(4, "longest");
        titles.push("share got of asked");
        widths.push(Constraint::Length(9));
    }
    widths.push(Constraint::Length(8));
    if wide {
        widths.push(Constraint::Length(18));
    }
    let head = titles
        .iter()
        .enumerate()
        .map(|(place, title)| if place == 0 { Cell::from(*title) } else { Cell::from(right(title)) });
    let room = usize::from(area.height.saturating_sub(2));
    let first = view.scroll.min(view.tests.len().saturating_sub(room));
    let title = match view.tests.len() {
        tests if tests > room => format!(" tests {} to {} of {tests} ", first + 1, (first + room).min(tests)),
        _ => " tests ".to_owned(),
    };
    let table = Table::new(view.tests.iter().skip(first).map(row), widths)
        .header(Row::new(head).style(ink.quiet()))
        .block(framed(&title, ink));
    frame.render_widget(table, area);
}

fn right(text: &str) -> Line<'static> {
    Line::raw(text.to_owned()).alignment(Alignment::Right)
}

fn failure_table(frame: &mut Frame<'_>, area: Rect, view: &View, ink: Ink) {
    let room = usize::from(area.height.saturating_sub(1));
    let title = match view.failures.len() {
        0 => " no failures ".to_owned(),
        known if known > room => format!(" {room} newest of {} ", plural(known as u64, "different failure")),
        known => format!(" {} ", plural(known as u64, "different failure")),
    };
    let newest = view.failures.iter().rev().take(room).map(|failure| {
        Row::new([
            Cell::from(right(&format!("{} ×", count(failure.count)))),
            Cell::from(failure.kind).style(ink.bad()),
            Cell::from(Plain(&failure.test).to_string()),
            Cell::from(Plain(&failure.what).to_string()),
        ])
    });
    let widths = [Constraint::Length(8), Constraint::Length(10), Constraint::Max(24), Constraint::Fill(1)];
    frame.render_widget(Table::new(newest, widths).block(framed(&title, ink)), area);
}

fn text(frame: &mut Frame<'_>, area: Rect, title: &str, view: &View, ink: Ink) {
    let text = view.text();
    let lines: Vec<Line<'_>> = text
        .lines()
        .map(|line| if line.starts_with('━') { Line::styled(line, ink.strong()) } else { Line::raw(line) })
        .collect();
    let room = usize::from(area.height.saturating_sub(1));
    let first = view.scroll.min(lines.len().saturating_sub(room));
    let title = match lines.len() {
        all if all > room => format!("{title}lines {} to {} of {all} ", first + 1, (first + room).min(all)),
        _ => title.to_owned(),
    };
    let shown: Vec<Line<'_>> = lines.into_iter().skip(first).take(room).collect();
    frame.render_widget(Paragraph::new(shown).block(framed(&title, ink)), area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn picture(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view, Ink { colour: true })).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y: u16| -> String { (0..width).map(|x| buffer[(x, y)].symbol()).collect() };
        (0..height).map(|y| line(y).trim_end().to_owned() + "\n").collect()
    }

    fn view() -> View {
        let test = |name: &str, failures: u64| TestRow {
            record: waylay_driver::store::TestRecord {
                name: name.to_owned(),
                plugin: "libx.so".into(),
                workers: 2,
                iterations: 12_345,
                failures,
                average_ns: 81_000.0,
                shortest_ns: 1000.0,
                longest_ns: 2_500_000.0,
                retired: None,
                strict: None,
                bound: None,
                no_bound: None,
                pot: None,
            },
            rate: 4115.0,
        };
        let mut view = View::new("nightly.toml");
        view.elapsed = Duration::from_secs(3725);
        view.scenario = "bank".to_owned();
        view.mode = "randomized".to_owned();
        view.iterations = 24_690;
        view.rate = 8230.0;
        view.failed = 3;
        view.different = 1;
        view.suspensions = Some(254.0);
        view.slowest = Some(("transfer#1".to_owned(), Duration::from_millis(1500)));
        view.rates = [1, 5, 8230].into();
        view.tests = vec![test("transfer", 3), test("evil\u{1b}[2Jname", 0)];
        view.notes = ["test transfer was retired".to_owned()].into();
        view
    }

    #[test]
    fn the_overview_has_every_number_in_any_size() {
        for (width, height) in [(120, 40), (80, 24), (60, 16)] {
            let picture = picture(&view(), width, height);
            let words =
                ["nightly.toml", "01:02:05", "24,690 iterations (8,230/s)", "3 failures (1 different)"];
            for word in words.into_iter().chain(["transfer", "12,345", "4,115", "81.0 µs", "no failures"]) {
                assert!(picture.contains(word), "{width}x{height}: {word}\n{picture}");
            }
        }
        let wide = picture(&view(), 120, 40);
        for word in ["254 suspensions/s", "slowest now transfer#1 for 1.50 s", "2.50 ms", "was retired"] {
            assert!(wide.contains(word), "{word}\n{wide}");
        }
        assert!(picture(&view(), 20, 5).contains("too small"));
    }

    #[test]
    fn text_of_tests_is_shown_and_not_obeyed() {
        let picture = picture(&view(), 120, 40);
        assert!(picture.contains("evil⟨U+001B⟩[2Jname") && !picture.contains('\u{1b}'), "{picture}");
    }
}
