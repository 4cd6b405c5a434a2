//! The list of files that a process left in a bucket:
//!
//! ```text
//! PREFIX/PROCESS/manifest.json     names, lengths and digests
//! PREFIX/PROCESS/3fa9…             one object per content, named after its SHA-256
//! ```

use std::fmt::Write as _;

use object_store::path::Path;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::trouble::Trouble;

/// The version of the format that is written.
pub const FORMAT: u32 = 1;
/// The name of the list.
pub const NAME: &str = "manifest.json";

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct File {
    /// Its name below the folder, with `/` between its parts.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// The SHA-256 of what is in it, in hexadecimal digits.
    pub sha256: String,
}

/// What a process left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// Whether the process ended in order.
    pub ended: bool,
    /// Its files, by name.
    pub files: Vec<File>,
}

impl Manifest {
    /// Reads a list; `place` is where it comes from.
    ///
    /// # Errors
    /// When it is damaged, newer, or leads out of the folder.
    pub fn read(text: &[u8], place: &Path) -> Result<Manifest, Trouble> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let damaged = |error: serde_json::Error| Trouble::Refused(format!("{place} is damaged: {error}"));
        let version: Version = serde_json::from_slice(text).map_err(damaged)?;
        if version.format > FORMAT {
            return Err(Trouble::Refused(format!("{place} was written by a newer version of Waylay")));
        }
        let manifest: Manifest = serde_json::from_slice(text).map_err(damaged)?;
        let is_inside =
            |path: &str| !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        let is_digest = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let windows = |path: &str| path.contains(['\\', ':']);
        match manifest
            .files
            .iter()
            .find(|file| !is_inside(&file.path) || windows(&file.path) || !is_digest(&file.sha256))
        {
            Some(file) => {
                Err(Trouble::Refused(format!("{place} is damaged: it names a file `{}`", file.path)))
            }
            None => Ok(manifest),
        }
    }
}

/// A name that no other process has, and that sorts by time.
pub fn process_name() -> String {
    let machine = ["SLURMD_NODENAME", "WAYLAY_MACHINE", "HOSTNAME", "COMPUTERNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    let machine: String = machine
        .unwrap_or_else(|| "machine".to_owned())
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' })
        .take(40)
        .collect();
    let now = jiff::Timestamp::now();
    format!(
        "{}-{:09}-{machine}-{}",
        now.strftime("%Y%m%dT%H%M%S"),
        now.subsec_nanosecond(),
        std::process::id()
    )
}

/// SHA-256 in hexadecimal digits.
pub fn hex(digest: Sha256) -> String {
    digest.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_does_not_lead_out_of_its_folder() {
        let read = |path: &str, sha256: &str| {
            let file = File { path: path.into(), bytes: 1, sha256: sha256.into() };
            let text =
                serde_json::to_vec(&Manifest { format: FORMAT, ended: true, files: vec![file] }).unwrap();
            Manifest::read(&text, &Path::from("p/manifest.json"))
        };
        let digest = "0".repeat(64);
        assert!(read("a/campaign.json", &digest).is_ok());
        for path in ["", "/etc/passwd", "../x", "a/../../x", "a//b", ".", "C:\\x", "c:x"] {
            assert!(read(path, &digest).is_err(), "{path}");
        }
        assert!(read("a", "../../x").is_err());
        let newer = Manifest::read(br#"{"format": 2, "other": []}"#, &Path::from("p")).unwrap_err();
        assert!(newer.to_string().contains("newer version"), "{newer}");
    }

    #[test]
    fn names_of_processes_sort_by_time_and_differ() {
        let names: Vec<String> = (0..100).map(|_| process_name()).collect();
        assert!(names.is_sorted());
        let plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        assert!(names.iter().all(plain), "{}", names[0]);
    }
}
