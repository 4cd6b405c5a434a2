//! Which builds had a failure and which did not: where to look for the change that brought it, and for the one that took it away.

use serde::{Deserialize, Serialize};

use crate::numbers::{count, plural};

/// Characters of a build id that people read.
const SHORT: usize = 12;

/// One file of a build.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BuiltFile {
    /// Its name, without folders: a build that was moved is still the same.
    pub file: String,
    /// The build id that the linker wrote, or size and digest where it wrote none.
    pub id: String,
    /// The commit, where the build says it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<String>,
}

/// A build that did not have a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanBuild {
    /// Its files.
    pub files: Vec<BuiltFile>,
    /// How often the failure's test ran in it, without the failure.
    pub runs: u64,
    /// How often it has to run until it is 95 % sure that the failure would have come; none when its rate is not known.
    pub needed: Option<u64>,
}

/// The builds at both ends of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildRange {
    /// The build that showed it first: the plugin or program, and behind it the libraries that it brings.
    pub first: Vec<BuiltFile>,
    /// The last build before that one, of those that never showed it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clean_before: Option<CleanBuild>,
    /// The build that showed it last.
    pub last: Vec<BuiltFile>,
    /// The first build after that one, of those that never showed it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clean_since: Option<CleanBuild>,
}

impl BuildRange {
    /// In words, a line for each end.
    pub fn lines(&self) -> Vec<String> {
        let before = self.clean_before.as_ref();
        let mut first = format!("first seen in {}", names(&self.first, before.map(|clean| &clean.files)));
        match before {
            Some(clean) => first += &format!("; last clean build {}", clean.words(&self.first)),
            None => first += "; no build before it is known that did not have it",
        }
        let mut lines = vec![first];
        if self.last != self.first {
            lines.push(format!("last seen in {}", names(&self.last, Some(&self.first))));
        }
        if let Some(clean) = &self.clean_since {
            lines.push(format!("not seen since {}", clean.words(&self.last)));
        }
        lines
    }
}

impl CleanBuild {
    fn words(&self, against: &[BuiltFile]) -> String {
        let runs = plural(self.runs, "run");
        let doubt = match self.needed {
            Some(needed) if self.runs < needed => {
                format!(", which may be chance: it takes {} to be 95 % sure", count(needed))
            }
            _ => String::new(),
        };
        format!("{} ({runs}{doubt})", names(&self.files, Some(&against.to_vec())))
    }
}

/// The files in which two builds differ, or the first, which is the plugin or the program.
fn names(files: &[BuiltFile], against: Option<&Vec<BuiltFile>>) -> String {
    let differ = |file: &&BuiltFile| against.is_some_and(|other| !other.contains(file));
    let differing: Vec<&BuiltFile> = files.iter().filter(differ).collect();
    let told = if differing.is_empty() { files.iter().take(1).collect() } else { differing };
    let name = |file: &&BuiltFile| {
        let short = |text: &str| text.get(..SHORT).unwrap_or(text).to_owned();
        let commit = file.commit.as_deref().map(|commit| format!(" of commit {}", short(commit)));
        format!("{} {}{}", file.file, short(&file.id), commit.unwrap_or_default())
    };
    told.iter().map(name).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(file: &str, id: &str, commit: Option<&str>) -> BuiltFile {
        BuiltFile { file: file.to_owned(), id: id.to_owned(), commit: commit.map(str::to_owned) }
    }

    #[test]
    fn both_ends_are_told_by_what_differs_and_with_what_is_known_of_chance() {
        let plugin = file("libtests.so", "0123456789abcdef", None);
        let built = |id: &str, commit| vec![plugin.clone(), file("libqueue.so.1", id, commit)];
        let clean = |files, runs| Some(CleanBuild { files, runs, needed: Some(300) });
        let mut range = BuildRange {
            first: built("bbbb", Some("77aa0011223344556677")),
            clean_before: clean(built("aaaa", None), 20),
            last: built("bbbb", Some("77aa0011223344556677")),
            clean_since: None,
        };
        assert_eq!(
            range.lines(),
            [
                "first seen in libqueue.so.1 bbbb of commit 77aa00112233; last clean build libqueue.so.1 aaaa (20 runs, \
              which may be chance: it takes 300 to be 95 % sure)"
            ]
        );
        (range.last, range.clean_since) = (built("cccc", None), clean(built("dddd", None), 4000));
        assert_eq!(
            range.lines()[1..],
            ["last seen in libqueue.so.1 cccc", "not seen since libqueue.so.1 dddd (4,000 runs)",]
        );
        let only = BuildRange { clean_before: None, clean_since: None, last: range.first.clone(), ..range };
        assert_eq!(
            only.lines(),
            ["first seen in libtests.so 0123456789ab; no build before it is known that did not have it"]
        );
    }
}
