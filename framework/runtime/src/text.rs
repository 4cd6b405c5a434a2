//! Texts of bounded length, made without locks and without the program's heap.

use core::fmt::{self, Write};

/// A text that is cut where there is no more room.
#[derive(Debug)]
pub struct Text<const SIZE: usize> {
    bytes: [u8; SIZE],
    len: usize,
}

impl<const SIZE: usize> Text<SIZE> {
    /// One line, with its end if there is room.
    pub fn line(text: fmt::Arguments<'_>) -> Text<SIZE> {
        let mut this = Text { bytes: [0; SIZE], len: 0 };
        let _ = writeln!(this, "{text}");
        this
    }

    /// What fitted.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<const SIZE: usize> Write for Text<SIZE> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let taken = text.len().min(SIZE - self.len);
        self.bytes[self.len..self.len + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.len += taken;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_cut() {
        assert_eq!(Text::<8>::line(format_args!("{}", 12)).bytes(), b"12\n");
        assert_eq!(Text::<4>::line(format_args!("{}-{}", 12, 34)).bytes(), b"12-3");
    }
}
