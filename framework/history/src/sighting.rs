//! A failure of one campaign, reduced to what the history keeps: everything else is in its folder.

use jiff::Timestamp;
use waylay_driver::archive;
use waylay_driver::failure::FailureEntry;

/// Longest text that is kept of one thing; a message of a test may be a megabyte.
const LONGEST: usize = 1000;

/// What is kept of a failure's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The signature's short name.
    pub signature: String,
    /// What else the same failure may be known by.
    pub also: Vec<String>,
    /// What it was computed from.
    pub text: String,
    /// What broke.
    pub kind: &'static str,
    /// One line about it.
    pub what: String,
    /// The first frame that has a source line, as `file:line`; empty when none has.
    pub place: String,
    /// The test to blame.
    pub test: Option<String>,
    /// File name of its plugin.
    pub plugin: Option<String>,
    /// How often in this campaign.
    pub count: u64,
    /// How often in each scenario; empty where that was not counted.
    pub scenarios: Vec<(String, u64)>,
    /// When first in this campaign.
    pub first_seen: Timestamp,
    /// When last.
    pub last_seen: Timestamp,
}

impl Sighting {
    /// Reduces an entry.
    pub fn of(entry: &FailureEntry) -> Sighting {
        Sighting {
            signature: entry.signature.id.clone(),
            also: waylay_findings::aliases(entry.kind, entry.test.as_deref(), &entry.variants, &entry.why),
            text: shorten(&entry.signature.text),
            kind: entry.kind.word(),
            what: shorten(&entry.what),
            place: shorten(&place(entry)),
            test: entry.test.as_deref().map(shorten),
            plugin: entry.plugin.as_deref().map(file_name),
            count: entry.count,
            scenarios: entry.scenarios.iter().map(|(name, count)| (shorten(name), *count)).collect(),
            first_seen: entry.first_seen,
            last_seen: entry.last_seen,
        }
    }
}

/// Source file and line of the frame to look at first; empty when none has them.
fn place(entry: &FailureEntry) -> String {
    let failure = archive::record::failure(entry, std::path::Path::new(""));
    let Some(frame) = failure.place() else { return String::new() };
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => String::new(),
    }
}

/// The last part of a path, with either separator: a database may be looked at on another system.
pub(crate) fn file_name(path: &std::path::Path) -> String {
    let text = path.to_string_lossy();
    text.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}

pub(crate) fn shorten(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(LONGEST)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_between_characters() {
        let text = "ä".repeat(LONGEST);
        let short = shorten(&text);
        assert!(short.len() <= LONGEST + '…'.len_utf8() && short.ends_with("ä…"), "{}", short.len());
        assert_eq!(shorten("short"), "short");
    }

    #[test]
    fn a_plugin_is_known_by_its_file() {
        assert_eq!(file_name(std::path::Path::new("/a/b/libx.so")), "libx.so");
        assert_eq!(file_name(std::path::Path::new(r"C:\tests\x.dll")), "x.dll");
    }
}
