//! What must not leave the machine: the values of environment variables whose names look secret.
//!
//! Hosts inherit our environment, so its values are in their memory, in dumps of it, and in what tests print. Every file
//! that is written goes through here: values of at least `WHOLE` bytes are replaced by stars wherever they stand, shorter
//! ones where they stand behind their name. The length stays, so that positions in a dump do.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use crate::config::Pattern;

/// Parts of names that look secret.
pub const SECRET_PARTS: [&str; 6] = ["TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "PRIVATE"];
/// Words that look secret at the end of a name or of a part of it between underscores.
pub const SECRET_ENDS: [&str; 5] = ["KEY", "KEYS", "COOKIE", "DSN", "APIKEY"];
/// A value of so many bytes is secret wherever it stands; a shorter one may be a word like any other.
const WHOLE: usize = 8;
/// Bytes of a file that are looked at together.
const BLOCK: usize = 1 << 20;

/// What is secret in this process; found out when it is first needed.
static SECRETS: RwLock<Option<Secrets>> = RwLock::new(None);

/// Values to be replaced.
#[derive(Clone, Debug, Default)]
struct Secrets {
    /// What is looked for, and how many bytes of it stay.
    needles: Vec<(Vec<u8>, usize)>,
    patterns: Vec<Pattern>,
}

/// Adds names, with `*` and `?`, to those that look secret.
pub fn add_patterns(patterns: &[Pattern]) {
    let mut secrets = SECRETS.write().unwrap_or_else(PoisonError::into_inner);
    let mut all = secrets.take().map(|known| known.patterns).unwrap_or_default();
    all.extend(patterns.iter().filter(|pattern| !all.contains(pattern)).cloned().collect::<Vec<_>>());
    *secrets = Some(Secrets::of_environment(all));
}

fn with<T>(use_them: impl FnOnce(&Secrets) -> T) -> T {
    if SECRETS.read().unwrap_or_else(PoisonError::into_inner).is_none() {
        add_patterns(&[]);
    }
    let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
    use_them(secrets.as_ref().unwrap_or(&Secrets::default()))
}

/// Replaces every secret in what is about to be written.
pub fn clean(bytes: &mut [u8]) {
    with(|secrets| secrets.clean(bytes));
}

/// Replaces every secret in a text that is about to be written.
pub fn clean_text(text: &mut String) {
    let mut bytes = std::mem::take(text).into_bytes();
    clean(&mut bytes);
    *text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
}

/// Bytes of the longest secret.
pub(crate) fn longest() -> usize {
    with(|secrets| secrets.needles.iter().map(|(needle, _)| needle.len()).max().unwrap_or(0))
}

/// How many bytes at the end may be the beginning of a secret.
pub(crate) fn open_end(bytes: &[u8]) -> usize {
    with(|secrets| secrets.open_end(bytes))
}

/// Replaces every secret in a file that another one wrote.
pub(crate) fn clean_file(path: &Path) -> io::Result<()> {
    with(|secrets| secrets.clean_file(path))
}

/// Whether a variable of that name is kept to ourselves.
fn looks_secret(name: &str, patterns: &[Pattern]) -> bool {
    let upper = name.to_ascii_uppercase();
    SECRET_PARTS.iter().any(|part| upper.contains(part))
        || upper.split('_').any(|part| SECRET_ENDS.contains(&part))
        || SECRET_ENDS[..2].iter().any(|end| upper.ends_with(end) && upper != *end)
        || patterns.iter().any(|pattern| pattern.matches(name) || pattern.matches(&upper))
}

impl Secrets {
    fn of_environment(patterns: Vec<Pattern>) -> Secrets {
        let variables = std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.as_encoded_bytes().to_vec()));
        Secrets::of(variables, patterns)
    }

    fn of(variables: impl Iterator<Item = (String, Vec<u8>)>, patterns: Vec<Pattern>) -> Secrets {
        let mut needles = Vec::new();
        for (name, value) in variables.filter(|(name, _)| looks_secret(name, &patterns)) {
            if value.len() >= WHOLE {
                needles.push((value, 0));
            } else if !value.is_empty() {
                let kept = name.len() + 1;
                needles.push(([name.as_bytes(), b"=", &value].concat(), kept));
            }
        }
        // A secret that contains another one is replaced as a whole.
        needles.sort_by_key(|(needle, _)| std::cmp::Reverse(needle.len()));
        Secrets { needles, patterns }
    }

    fn clean(&self, bytes: &mut [u8]) {
        for (needle, kept) in &self.needles {
            let mut from = 0;
            while let Some(at) = find(&bytes[from..], needle) {
                let end = from + at + needle.len();
                bytes[from + at + kept..end].fill(b'*');
                from = end;
            }
        }
    }

    fn open_end(&self, bytes: &[u8]) -> usize {
        let open = |needle: &[u8]| {
            let most = bytes.len().min(needle.len() - 1);
            (1..=most).rev().find(|length| bytes.ends_with(&needle[..*length])).unwrap_or(0)
        };
        self.needles.iter().map(|(needle, _)| open(needle)).max().unwrap_or(0)
    }

    fn clean_file(&self, path: &Path) -> io::Result<()> {
        let Some(longest) = self.needles.iter().map(|(needle, _)| needle.len()).max() else { return Ok(()) };
        let mut file = fs::OpenOptions::new().read(true).write(true).open(path)?;
        let mut at = 0;
        loop {
            // Blocks overlap by a secret, so that one that lies across their border is seen.
            let mut block = read_at(&mut file, at, BLOCK + longest)?;
            let before = block.clone();
            self.clean(&mut block);
            if block != before {
                file.seek(SeekFrom::Start(at))?;
                file.write_all(&block)?;
            }
            if before.len() <= BLOCK {
                return Ok(());
            }
            at += BLOCK as u64;
        }
    }
}

fn read_at(file: &mut File, at: u64, most: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut block = Vec::new();
    file.take(most as u64).read_to_end(&mut block)?;
    Ok(block)
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == first) {
        if bytes[from + at..].starts_with(needle) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_secret() {
        for name in [
            "GITHUB_TOKEN",
            "db_password",
            "AWS_SECRET_ACCESS_KEY",
            "API_KEY",
            "APIKEY",
            "SIGNING_KEYS",
            "MYKEY",
        ] {
            assert!(looks_secret(name, &[]), "{name}");
        }
        for name in ["PATH", "HOME", "KEYBOARD_LAYOUT", "XDG_SESSION_ID", "PWD", "SSH_AUTH_SOCK"] {
            assert!(!looks_secret(name, &[]), "{name}");
        }
        assert!(looks_secret("INTERNAL_URL", &[Pattern::new("INTERNAL_*")]));
    }

    fn secrets() -> Secrets {
        let variables = [("A_TOKEN", "hunter2-and-more"), ("B_KEY", "abc"), ("C", "public-value")];
        Secrets::of(
            variables.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())),
            Vec::new(),
        )
    }

    #[test]
    fn long_values_go_everywhere_and_short_ones_behind_their_name() {
        let mut bytes = b"x hunter2-and-more B_KEY=abc\0 abc public-value hunter2".to_vec();
        secrets().clean(&mut bytes);
        assert_eq!(bytes, b"x **************** B_KEY=***\0 abc public-value hunter2");
        assert_eq!(secrets().open_end(b"it printed hunter2"), 7);
        assert_eq!(secrets().open_end(b"nothing"), 0);
    }

    #[test]
    fn a_secret_across_blocks_of_a_file_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump");
        let mut content = vec![0; 3 * BLOCK];
        for at in [BLOCK - 5, 2 * BLOCK - 1, 3 * BLOCK - 16] {
            content[at..at + 16].copy_from_slice(b"hunter2-and-more");
        }
        fs::write(&path, &content).unwrap();
        secrets().clean_file(&path).unwrap();
        let cleaned = fs::read(&path).unwrap();
        assert_eq!(cleaned.len(), content.len());
        assert!(find(&cleaned, b"hunter2").is_none());
        assert_eq!(cleaned.iter().filter(|byte| **byte == b'*').count(), 48);
    }
}
