//! Runs the real command in a folder of its own and reads back what it left there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A folder of its own; its name has a blank and letters that are not ASCII.
pub(crate) struct Place {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Place {
    pub(crate) fn with(config: &str) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("Prüfung ключ");
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join("waylay.toml"), config).expect("a file");
        Place { _folder: folder, path }
    }

    /// The command in this folder, not yet started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waylay"));
        command.args(arguments).current_dir(&self.path).stdin(Stdio::null()).env("NO_COLOR", "1");
        command
    }

    pub(crate) fn waylay(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the command runs")
    }

    /// The command succeeds and prints an object.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.waylay(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{said}"))
    }

    /// The folders of the campaigns that were run here.
    pub(crate) fn campaigns(&self) -> Vec<PathBuf> {
        folders(&self.path.join("waylay-out"))
            .into_iter()
            .filter(|path| path.join("campaign.json").exists())
            .collect()
    }

    /// Runs the configuration and returns its failures.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        let output = self.waylay(&["run", "waylay.toml", "--json", "--quiet"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}\n{}", self.host_log());
        let mut found = Vec::new();
        for campaign in self.campaigns() {
            for folder in folders(&campaign.join("failures")) {
                let text = fs::read(folder.join("failure.json")).expect("a record");
                found.push(Failure { json: serde_json::from_slice(&text).expect("readable"), folder });
            }
        }
        found
    }

    pub(crate) fn host_log(&self) -> String {
        self.campaigns()
            .iter()
            .map(|folder| fs::read_to_string(folder.join("host.log")).unwrap_or_default())
            .collect()
    }
}

pub(crate) fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

pub(crate) struct Failure {
    pub(crate) folder: PathBuf,
    pub(crate) json: Value,
}

impl Failure {
    pub(crate) fn text(&self, key: &str) -> &str {
        self.json[key].as_str().unwrap_or_default()
    }

    pub(crate) fn stacks(&self) -> String {
        fs::read_to_string(self.folder.join("stacks.txt")).unwrap_or_default()
    }

    /// The dump is there and has at least so many threads.
    pub(crate) fn expect_dump(&self, threads: u32) {
        let dump = fs::read(self.folder.join("dump.dmp")).expect("a dump");
        assert_eq!(&dump[..4], b"MDMP");
        let word = |at: usize| u32::from_le_bytes(dump[at..at + 4].try_into().expect("four bytes"));
        let streams = (0..word(8) as usize).map(|index| word(12) as usize + index * 12);
        let list = streams.into_iter().find(|at| word(*at) == 3).expect("a list of threads");
        assert!(word(word(list + 8) as usize) >= threads, "{} threads", word(word(list + 8) as usize));
    }
}

/// One test of a plugin, alone.
pub(crate) fn config(plugin: &str, test: &str, more: &str) -> String {
    format!(
        "[defaults]\nmax-failures = 1\nworkers = 2\n[[scenario]]\nname = \"s\"\nduration = \"60s\"\n\
         [[scenario.test]]\nplugin = \"{plugin}\"\nname = \"{test}\"\n{more}\n"
    )
}
