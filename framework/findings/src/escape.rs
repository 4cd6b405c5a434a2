//! Text of programs under test made inert for the format it is put into.
//!
//! Besides what a format itself needs, characters that are not seen but change how others are shown (controls, and the
//! marks that turn the direction of text around) become visible: a test's name must look like what it is.

use std::fmt::{self, Display, Write as _};

/// Text for HTML and SVG, between tags or in a quoted attribute.
#[derive(Clone, Copy, Debug)]
pub struct Html<'a>(pub &'a str);

/// Text for XML: the same, without what XML forbids.
#[derive(Clone, Copy, Debug)]
pub struct Xml<'a>(pub &'a str);

/// Text for a cell of a Markdown table or a line of Markdown.
#[derive(Clone, Copy, Debug)]
pub struct Markdown<'a>(pub &'a str);

/// Text for a terminal, which would obey control characters.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a>(pub &'a str);

/// A name or another text that has one line of a terminal to itself: line breaks and tabs are visible too, and a width is
/// kept to.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a>(pub &'a str);

/// Whether a character is not seen itself but changes how others are seen.
pub fn is_hidden(c: char) -> bool {
    let marks =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    marks || (c.is_control() && c != '\n' && c != '\t')
}

fn visible(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    write!(f, "⟨U+{:04X}⟩", u32::from(c))
}

fn markup(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '&' => f.write_str("&amp;"),
        '<' => f.write_str("&lt;"),
        '>' => f.write_str("&gt;"),
        '"' => f.write_str("&quot;"),
        '\'' => f.write_str("&#39;"),
        c if is_hidden(c) => visible(f, c),
        c => f.write_char(c),
    }
}

impl Display for Html<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| markup(f, c))
    }
}

impl Display for Xml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // XML 1.0 has no way to write these two, not even as references.
        self.0.chars().filter(|c| !matches!(c, '\u{fffe}' | '\u{ffff}')).try_for_each(|c| markup(f, c))
    }
}

impl Display for Markdown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\n' | '\t' => f.write_char(' ')?,
                // References instead of backslashes: they are right inside and outside of tables and of HTML.
                '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '|' | '~' | '<' | '>'
                | '&' | '!' | '@' | '$' | ':' => write!(f, "&#{};", u32::from(c))?,
                c if is_hidden(c) => visible(f, c)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

impl Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| if is_hidden(c) { visible(f, c) } else { f.write_char(c) })
    }
}

impl Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(self.0.len());
        for c in self.0.chars() {
            match c {
                c if is_hidden(c) || matches!(c, '\n' | '\t' | '\u{2028}' | '\u{2029}') => {
                    write!(text, "⟨U+{:04X}⟩", u32::from(c))?;
                }
                c => text.push(c),
            }
        }
        f.pad(&text)
    }
}

/// Bytes as base64, for what is put into an address.
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            let value = word >> (18 - 6 * digit) & 63;
            text.push(if digit <= group.len() { DIGITS[value as usize] as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_name_is_markup() {
        let hostile = "<script>alert('x')</script>\"&\u{0}\u{202e}";
        let html = Html(hostile).to_string();
        assert!(!html.contains(['<', '>', '"', '\'', '\0', '\u{202e}']), "{html}");
        assert!(html.ends_with("&quot;&amp;⟨U+0000⟩⟨U+202E⟩"), "{html}");
        assert_eq!(Xml("a\u{ffff}b\u{1b}").to_string(), "ab⟨U+001B⟩");
        assert_eq!(Plain("a\u{1b}[2Jb\n\u{9b}c").to_string(), "a⟨U+001B⟩[2Jb\n⟨U+009B⟩c");
        assert_eq!(format!("{:<9}|", Name("a\nb")), "a⟨U+000A⟩b|");
        assert_eq!(format!("{:<4}|", Name("a")), "a   |");
        let markdown = Markdown("| `x` |\n<img src=x> @all [a](http://b)").to_string();
        assert!(!markdown.contains(['|', '`', '\n', '<', '@', '[', '(']), "{markdown}");
    }

    #[test]
    fn base64_has_the_vectors_of_its_standard() {
        let cases = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (plain, coded) in cases {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
