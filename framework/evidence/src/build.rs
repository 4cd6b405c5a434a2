//! Which build of a file of code it is, so that it can be told later whether the file is still that one.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::brought::brought;
use crate::memory_map::{MappingSource, MemoryMap};
use crate::module::Module;
use crate::origin::{base_name, is_runtime_file};
use crate::signature::digest;
use crate::sys;

/// One build of one file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Build {
    /// The file's path.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// What the linker wrote into it to tell builds apart.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub build_id: Option<String>,
    /// FNV-1a of the content, where the linker wrote nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub digest: Option<String>,
    /// The commit that it was made from, where the build says so: a text behind [`COMMIT`] anywhere in the file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<String>,
}

/// What stands before the commit in a file that says from which it was made. `WAYLAY_COMMIT` of waylay.h and `commit!` of the SDK
/// put it there, and `objcopy --add-section` does for a program that is finished.
pub const COMMIT: &str = "waylay-commit=";
/// The longest name of a commit: a SHA-256 and a word.
const LONGEST_COMMIT: usize = 80;

/// A file that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What it was.
    pub then: Build,
    /// What it is; none when it cannot be read.
    pub now: Option<Build>,
}

impl Build {
    /// The build of a file; none when it cannot be read.
    #[must_use]
    pub fn of_file(path: &Path) -> Option<Build> {
        Some(Build::of_bytes(&path.to_string_lossy(), fs::read(path).ok()?.into()))
    }

    fn of_bytes(file: &str, bytes: std::sync::Arc<[u8]>) -> Build {
        let build_id = Module::parse(bytes.clone()).and_then(|module| module.build_id);
        let digest = build_id.is_none().then(|| format!("{:016x}", digest(&bytes)));
        let commit = commit(&bytes);
        Build { file: file.to_owned(), bytes: bytes.len() as u64, build_id, digest, commit }
    }

    /// A plugin's or a program's, and behind it those of the libraries that it brings, by name. Nothing when it cannot be read.
    /// Where the loader is told to look (`LD_LIBRARY_PATH`) counts, too.
    #[must_use]
    pub fn of_program(path: &Path) -> Vec<Build> {
        let told = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let told: Vec<_> = std::env::split_paths(&told).filter(|folder| folder.is_absolute()).collect();
        let mut brought = brought(&[path.to_owned()], &told);
        brought.remove(path);
        let runtime = |path: &PathBuf| is_runtime_file(&path.to_string_lossy());
        let ours = |path: &PathBuf| base_name(&path.to_string_lossy()).contains("waylay_control");
        let beside = brought.iter().filter(|path| !runtime(path) && !ours(path));
        let mut beside: Vec<Build> = beside.filter_map(|path| Build::of_file(path)).collect();
        beside.sort_by(|one, other| base_name(&one.file).cmp(base_name(&other.file)));
        Build::of_file(path).into_iter().chain(beside).collect()
    }

    /// Whether both hold the same code. A file that was stripped keeps its build id.
    #[must_use]
    pub fn is_same(&self, other: &Build) -> bool {
        match (&self.build_id, &other.build_id) {
            (Some(one), Some(other)) => one == other,
            _ => (self.bytes, &self.digest, &self.build_id) == (other.bytes, &other.digest, &other.build_id),
        }
    }

    fn name(&self) -> String {
        let id = self.build_id.as_ref().map(|id| format!("build id {}", id.get(..12).unwrap_or(id)));
        let id = id.unwrap_or_else(|| format!("{} bytes", self.bytes));
        match &self.commit {
            Some(commit) => format!("{id}, commit {}", commit.get(..12).unwrap_or(commit)),
            None => id,
        }
    }
}

/// What a file says of the commit that it was made from.
fn commit(bytes: &[u8]) -> Option<String> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+/".contains(byte);
    memchr::memmem::find_iter(bytes, COMMIT).find_map(|at| {
        let rest = &bytes[at + COMMIT.len()..];
        let length = rest.iter().take(LONGEST_COMMIT + 1).take_while(|byte| is_part(byte)).count();
        // What goes on is another text that has these words in it.
        let ends = rest.get(length).is_none_or(|byte| *byte < b' ');
        let text = rest.get(..length).filter(|_| ends && (1..=LONGEST_COMMIT).contains(&length))?;
        Some(String::from_utf8_lossy(text).into_owned())
    })
}

/// The files whose code a process has loaded, without Waylay's own, in the order of their addresses.
#[must_use]
pub fn builds(map: &MemoryMap) -> Vec<Build> {
    let own = std::env::current_exe().ok();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for mapping in map.mappings().iter().filter(|mapping| mapping.executable) {
        let file = mapping.path.trim_end_matches(" (deleted)");
        let is_file = matches!(mapping.source, MappingSource::Path | MappingSource::Handle(_));
        let ours = base_name(file).contains("waylay_control") || own.as_deref() == Some(Path::new(file));
        if is_file && !ours && seen.insert(file.to_owned()) {
            found.extend(sys::open_module(mapping).ok().map(|bytes| Build::of_bytes(file, bytes)));
        }
    }
    found
}

/// Those of the files that are not the builds that they were.
#[must_use]
pub fn changes(then: &[Build]) -> Vec<Change> {
    let now =
        then.iter().map(|then| Change { then: then.clone(), now: Build::of_file(Path::new(&then.file)) });
    now.filter(|change| !change.now.as_ref().is_some_and(|now| now.is_same(&change.then))).collect()
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.now {
            None => write!(f, "{} is gone", self.then.file),
            Some(now) => write!(f, "{} ({} then, {} now)", self.then.file, self.then.name(), now.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(bytes: u64, build_id: Option<&str>, digest: Option<&str>) -> Build {
        let text = |text: Option<&str>| text.map(str::to_owned);
        Build { file: "/x".to_owned(), bytes, build_id: text(build_id), digest: text(digest), commit: None }
    }

    #[test]
    fn the_linker_decides_and_the_content_where_it_does_not() {
        assert!(build(10, Some("ab"), None).is_same(&build(7, Some("ab"), None)), "stripped");
        assert!(!build(10, Some("ab"), None).is_same(&build(10, Some("ac"), None)));
        assert!(build(10, None, Some("1")).is_same(&build(10, None, Some("1"))));
        assert!(!build(10, None, Some("1")).is_same(&build(10, None, Some("2"))));
        assert!(!build(10, Some("ab"), None).is_same(&build(10, None, Some("2"))));
    }

    #[test]
    fn a_build_says_its_commit_in_a_text_that_ends() {
        let of = |text: &[u8]| commit(text);
        assert_eq!(of(b"\x7fELF\0waylay-commit=3f2a9c1\0rest"), Some("3f2a9c1".to_owned()));
        assert_eq!(of(b"waylay-commit=v1.2-4-g3f2a9c1\n"), Some("v1.2-4-g3f2a9c1".to_owned()));
        assert_eq!(of(b"waylay-commit="), None);
        assert_eq!(of(b"say waylay-commit=HEAD in the section"), None, "a sentence about it");
        let twice = b"waylay-commit=%s\0waylay-commit=abc\0";
        assert_eq!(of(twice), Some("abc".to_owned()));
        let endless = [COMMIT.as_bytes(), &[b'a'; 200]].concat();
        assert_eq!(of(&endless), None);
        let named = Build { commit: Some("3f2a9c1".to_owned()), ..build(10, Some("abcdef"), None) };
        assert_eq!(named.name(), "build id abcdef, commit 3f2a9c1");
    }

    #[test]
    fn a_file_that_is_rewritten_or_gone_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("module.bin");
        fs::write(&file, b"one").unwrap();
        let then = [Build::of_file(&file).unwrap()];
        assert_eq!((then[0].bytes, changes(&then)), (3, Vec::new()));
        fs::write(&file, b"four").unwrap();
        let text = changes(&then)[0].to_string();
        assert!(text.ends_with("module.bin (3 bytes then, 4 bytes now)"), "{text}");
        fs::remove_file(&file).unwrap();
        assert!(changes(&then)[0].to_string().ends_with("module.bin is gone"));
    }
}
