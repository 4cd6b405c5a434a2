//! Commands that people copy into a shell: one line, whatever is in the paths.

use std::ffi::OsStr;
use std::fmt::Write as _;

use crate::escape::is_hidden;
use crate::sys::{SHELL, Shell};

/// A path or another argument as one word of a shell command, on one line, of characters that are seen.
pub fn word(argument: impl AsRef<OsStr>) -> String {
    let argument = argument.as_ref();
    match SHELL {
        Shell::Posix => for_sh(argument.as_encoded_bytes()),
        Shell::Cmd => for_cmd(&argument.to_string_lossy()),
    }
}

/// For every shell that knows POSIX.
fn for_sh(bytes: &[u8]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    match std::str::from_utf8(bytes) {
        // A word that begins with a dash is an option; nothing that we name does.
        Ok(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Ok(text) if !text.chars().any(|c| is_hidden(c) || matches!(c, '\n' | '\t')) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        // Line breaks and bytes that are no text are spelled out; line breaks at the very end are lost to the shell.
        _ => {
            let mut spelled = String::new();
            for chunk in bytes.utf8_chunks() {
                for c in chunk.valid().chars() {
                    match c {
                        '%' => spelled.push_str("%%"),
                        '\\' => spelled.push_str(r"\\"),
                        '\'' => spelled.push_str(r"'\''"),
                        c if is_hidden(c) || matches!(c, '\n' | '\t') => {
                            octal(&mut spelled, c.encode_utf8(&mut [0; 4]).as_bytes());
                        }
                        c => spelled.push(c),
                    }
                }
                octal(&mut spelled, chunk.invalid());
            }
            format!("\"$(printf '{spelled}')\"")
        }
    }
}

fn octal(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(out, "\\{byte:03o}");
    }
}

/// For the command line of Windows. No path there has a quotation mark or a control character in it.
fn for_cmd(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "\\/:._-+@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    // Variables are put in between quotation marks too; a name with these and a caret in it is none.
    let inside = text.replace('"', "").replace('%', "\"^%\"");
    // A backslash before the last mark would be taken to quote it.
    let tail = if inside.ends_with('\\') { "\\" } else { "" };
    format!("\"{inside}{tail}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_stays_as_it_is() {
        assert_eq!(for_sh(b"/var/waylay-out/2026_1/failures/x.y"), "/var/waylay-out/2026_1/failures/x.y");
        assert_eq!(for_sh("/home/ä b/it's".as_bytes()), r"'/home/ä b/it'\''s'");
        assert_eq!(for_sh(b""), "''");
        assert_eq!(for_sh(b"a\nb 5%\\"), r#""$(printf 'a\012b 5%%\\')""#);
    }

    /// What a shell makes of a word is what the word was made of.
    #[cfg(unix)]
    #[test]
    fn a_shell_reads_every_word_as_it_was() {
        use std::os::unix::ffi::OsStrExt;
        let odd: [&[u8]; 12] = [
            b"/tmp/a b",
            b"it's",
            b"say \"hello\"",
            b"$HOME `id` $(id) ${x}",
            b"a\nb",
            b"a\tb\x1b[31m",
            b"100%d \\n %s\n",
            b"back\\slash\\",
            b"; rm -rf x & | > < * ? [a] {b,c} ~ ! #",
            b"not text: \xff\xfe",
            "\u{202e}ä 中".as_bytes(),
            b"",
        ];
        for shell in ["sh", "bash"] {
            for bytes in odd {
                // A line break at the very end is lost to the shell; no folder that we name ends with one.
                let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
                let word = word(OsStr::from_bytes(bytes));
                assert!(!word.contains(['\n', '\t', '\u{202e}', '\u{1b}']), "{word:?}");
                let script = format!("printf '%s|' {word} end");
                let Ok(said) = std::process::Command::new(shell).args(["-c", &script]).output() else {
                    continue;
                };
                let expected = [bytes, b"|end|"].concat();
                assert_eq!(said.stdout, expected, "{shell}: {word}");
            }
        }
    }

    #[test]
    fn cmd_puts_no_variable_in() {
        assert_eq!(for_cmd(r"C:\waylay-out\failures\x"), r"C:\waylay-out\failures\x");
        assert_eq!(for_cmd(r"C:\a b\c"), r#""C:\a b\c""#);
        assert_eq!(for_cmd(r"C:\%PATH%\c"), r#""C:\"^%"PATH"^%"\c""#);
        assert_eq!(for_cmd(r"C:\a b\"), r#""C:\a b\\""#);
        assert_eq!(for_cmd("a&b"), r#""a&b""#);
    }
}
