//! The text of a config, and places in it.
//!
//! A config may be made of several pieces: the file itself first, then the files that it includes and what the command
//! line sets. Their texts stand one after the other, so that one number says in which piece and where in it something is.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// The text of a config and the names that people know its pieces by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    text: String,
    /// Where each line begins: a file with a problem in each of its lines is still told in one pass.
    lines: Vec<usize>,
    /// In the order of their texts; never empty.
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    name: String,
    /// What its paths are relative to.
    folder: PathBuf,
    /// Its first byte.
    start: usize,
    /// Lines of the pieces before it.
    lines_before: usize,
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
        let mut source = Self { text: String::new(), lines: Vec::new(), pieces: Vec::new() };
        source.append(name, PathBuf::new(), &text.into());
        source
    }

    /// One more piece, whose paths are relative to that folder; its number.
    pub(super) fn append(&mut self, name: impl Into<String>, folder: PathBuf, text: &str) -> usize {
        if !self.pieces.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        // The line after the last end of a line is the first one of the next piece.
        self.lines.truncate(self.lines.partition_point(|line| *line < self.text.len()));
        let start = self.text.len();
        self.pieces.push(Piece { name: name.into(), folder, start, lines_before: self.lines.len() });
        self.text.push_str(text);
        self.lines.push(start);
        let after_ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        self.lines.extend(after_ends.map(|(end, _)| start + end + 1));
        self.pieces.len() - 1
    }

    /// The name of the first piece: the file that was asked for.
    pub fn name(&self) -> &str {
        &self.pieces[0].name
    }

    /// The name of the piece in which a byte is.
    pub fn name_at(&self, byte: usize) -> &str {
        &self.piece_at(byte).name
    }

    /// What the paths of the piece are relative to in which a byte is.
    pub(super) fn folder_at(&self, byte: usize) -> &Path {
        &self.piece_at(byte).folder
    }

    /// The folders of the pieces.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.pieces.iter().map(|piece| &*piece.folder)
    }

    /// The first piece's paths are relative to that folder.
    pub(super) fn set_folder(&mut self, folder: PathBuf) {
        self.pieces[0].folder = folder;
    }

    fn piece_at(&self, byte: usize) -> &Piece {
        // An empty piece begins where the next one does: the first of them is as good as any.
        let after = self.pieces.partition_point(|piece| piece.start <= byte);
        &self.pieces[after - 1]
    }

    /// The text of all pieces.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many pieces there are.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The bytes of a piece.
    pub(super) fn range(&self, piece: usize) -> Range<usize> {
        let end = self.pieces.get(piece + 1).map_or(self.text.len(), |next| next.start);
        self.pieces[piece].start..end
    }

    /// The line and column of a byte in its piece; the end of the text for what is beyond it.
    pub fn position(&self, byte: usize) -> Position {
        let byte = self.text.floor_char_boundary(byte);
        let line = self.line_of(byte);
        let before = &self.text[self.lines[line - 1]..byte];
        Position { line: line - self.piece_at(byte).lines_before, column: before.chars().count() + 1 }
    }

    /// The line of a byte among those of all pieces, counted from 1.
    pub(super) fn line_of(&self, byte: usize) -> usize {
        self.lines.partition_point(|start| *start <= byte)
    }

    /// A line among those of all pieces, counted from 1, without its end.
    pub(super) fn line(&self, line: usize) -> &str {
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

    /// Another value at this place.
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

    #[test]
    fn pieces_count_their_own_lines() {
        let mut source = Source::new("a", "one\ntwo");
        let b = source.append("b", PathBuf::from("in"), "three\nfour\n");
        let c = source.append("c", PathBuf::new(), "five");
        let place =
            |byte| (source.name_at(byte), source.position(byte).line, source.line(source.line_of(byte)));
        assert_eq!(place(0), ("a", 1, "one"));
        assert_eq!(place(5), ("a", 2, "two"));
        assert_eq!(&source.text()[source.range(b)], "three\nfour\n");
        assert_eq!(place(source.range(b).start), ("b", 1, "three"));
        assert_eq!(place(source.range(b).start + 7), ("b", 2, "four"));
        assert_eq!(place(source.range(c).start + 1), ("c", 1, "five"));
        assert_eq!(source.folder_at(source.range(b).start), Path::new("in"));
        assert_eq!(source.name(), "a");
    }
}
