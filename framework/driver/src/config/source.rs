//! A config file's text, and places in it.

use std::ops::Range;

use serde::Serialize;

/// The text of a config file and the name that people know it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
    /// Where each line begins: a file with a problem in each of its lines is still told in one pass.
    lines: Vec<usize>,
}

/// A range of bytes in a [`Source`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// After the last byte.
    pub end: usize,
}

/// A place as editors show it: both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// A value and where it was written.
///
/// Two are equal when their values are: where something was written is for messages only.
#[derive(Debug, Clone, Copy)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it stands in the source.
    pub span: Span,
}

impl Source {
    /// A text under a name: a path, or what else tells people where the text is from.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let after_ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(end, _)| end + 1);
        let lines = std::iter::once(0).chain(after_ends).collect();
        Self { name: name.into(), lines, text }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line and column of a byte; the end of the text for what is beyond it.
    pub fn position(&self, byte: usize) -> Position {
        let byte = self.text.floor_char_boundary(byte);
        let line = self.lines.partition_point(|start| *start <= byte);
        let before = &self.text[self.lines[line - 1]..byte];
        Position { line, column: before.chars().count() + 1 }
    }

    /// A line, counted from 1, without its end.
    pub fn line(&self, line: usize) -> &str {
        let Some(start) = line.checked_sub(1).and_then(|line| self.lines.get(line)) else { return "" };
        self.text[*start..].lines().next().unwrap_or("")
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

impl<T> At<T> {
    /// A value with its place.
    pub fn new(value: T, span: impl Into<Span>) -> Self {
        Self { value, span: span.into() }
    }

    /// The same place with another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> At<U> {
        At { value: f(self.value), span: self.span }
    }
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let source = Source::new("x", "ab\r\nä = ü\n");
        let place = |byte| (source.position(byte).line, source.position(byte).column);
        assert_eq!(place(0), (1, 1));
        assert_eq!(place(1), (1, 2));
        assert_eq!(place(4), (2, 1));
        assert_eq!(place(9), (2, 5));
        assert_eq!(place(5), (2, 1), "inside a character");
        assert_eq!(place(999), (3, 1));
        assert_eq!(source.line(1), "ab");
        assert_eq!(source.line(2), "ä = ü");
        assert_eq!(source.line(3), "");
    }
}
