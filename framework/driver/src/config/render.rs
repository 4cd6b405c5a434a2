//! Diagnostics as text: message, place, the line in question, a caret under the part that is meant.
//!
//! ```text
//! error: unknown key `hang-timout`
//!   --> nightly.toml:12:3
//!    |
//! 12 |   hang-timout = "2s"
//!    |   ^^^^^^^^^^^ did you mean `hang-timeout`?
//! ```

use std::fmt::Write;

use super::diagnostic::{Diagnostic, Severity};
use super::source::{Source, Span};

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const BLUE: &str = "\x1b[34m";
const RESET: &str = "\x1b[0m";

/// All diagnostics, each followed by an empty line.
pub(super) fn text(source: &Source, list: &[Diagnostic], colour: bool) -> String {
    let mut text = String::new();
    for diagnostic in list {
        // Writing to a string does not fail.
        let _ = write_one(&mut text, source, diagnostic, colour);
        text.push('\n');
    }
    text
}

fn write_one(out: &mut String, source: &Source, diagnostic: &Diagnostic, colour: bool) -> std::fmt::Result {
    let paint = |code: &'static str| if colour { code } else { "" };
    let (word, tone) = match diagnostic.severity {
        Severity::Error => ("error", paint(RED)),
        Severity::Warning => ("warning", paint(YELLOW)),
    };
    let (bold, blue, reset) = (paint(BOLD), paint(BLUE), paint(RESET));
    writeln!(out, "{tone}{word}{reset}{bold}: {}{reset}", diagnostic.message)?;

    let start = source.position(diagnostic.span.start);
    let gutter = start.line.to_string().len();
    writeln!(
        out,
        "{blue}{:gutter$}-->{reset} {}:{}:{}",
        "",
        source.name_at(diagnostic.span.start),
        start.line,
        start.column
    )?;
    writeln!(out, "{blue}{:gutter$} |{reset}", "")?;
    let line = source.line(source.line_of(diagnostic.span.start));
    writeln!(out, "{blue}{} |{reset} {line}", start.line)?;
    let (indent, carets) = underline(source, line, diagnostic.span);
    let help = diagnostic.help.as_deref().map(|help| format!(" {help}")).unwrap_or_default();
    writeln!(out, "{blue}{:gutter$} |{reset} {indent}{tone}{carets}{help}{reset}", "")?;

    if let Some((span, message)) = &diagnostic.related {
        let place = source.position(span.start);
        writeln!(
            out,
            "{blue}{:gutter$} ={reset} {message}: {}:{}:{}",
            "",
            source.name_at(span.start),
            place.line,
            place.column
        )?;
    }
    Ok(())
}

/// What stands under a line: white space of the same width as the text before (tabs stay tabs, so any tab
/// width fits), then carets up to the end of the span or of the line, at least one.
fn underline(source: &Source, line: &str, span: Span) -> (String, String) {
    let start = source.position(span.start);
    let end = source.position(span.end);
    let before = start.column - 1;
    let indent = line.chars().take(before).map(|c| if c == '\t' { '\t' } else { ' ' }).collect::<String>();
    let last = if source.line_of(span.end) == source.line_of(span.start) {
        end.column - 1
    } else {
        line.chars().count()
    };
    (indent, "^".repeat(last.saturating_sub(before).max(1)))
}
