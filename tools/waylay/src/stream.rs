//! Writing to standard streams, whose readers may go away.

use std::io::Write;

/// Writes as far as somebody reads. The macros of the standard library panic when the reader went away, as `head` does
/// and as a terminal does that is closed under a nightly campaign; these take their place in this crate.
///
/// A message is one piece: standard error has no buffer, and other processes write into the same terminal or log.
pub(crate) fn write(to: &mut dyn Write, text: std::fmt::Arguments<'_>) {
    let whole;
    let text = match text.as_str() {
        Some(text) => text,
        None => {
            whole = text.to_string();
            &whole
        }
    };
    let _ = to.write_all(text.as_bytes());
    let _ = to.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_written_in_one_piece() {
        #[derive(Default)]
        struct Pieces(Vec<Vec<u8>>);
        impl Write for Pieces {
            fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
                self.0.push(piece.to_vec());
                Ok(piece.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut pieces = Pieces::default();
        write(&mut pieces, format_args!("{}: {}\n", 1, "two"));
        assert_eq!(pieces.0, [b"1: two\n"]);
    }
}
