//! One campaign of the real command, with its folder and what it printed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, SystemTime};

use serde_json::Value;

/// The command under test, built beside this benchmark.
const WAYLAY: &str = env!("CARGO_BIN_EXE_waylay");

/// How often the driver's memory is looked at.
const POLL: Duration = Duration::from_millis(50);

/// A campaign that is over. Its folder is removed with it.
pub(crate) struct Campaign {
    _folder: tempfile::TempDir,
    pub(crate) summary: Value,
    pub(crate) peak_rss: u64,
    pub(crate) out: PathBuf,
}

impl Campaign {
    /// Runs a configuration.
    pub(crate) fn run(config: &str) -> Campaign {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("bench.toml");
        std::fs::write(&path, config).expect("configuration");
        let out = folder.path().join("out");
        let child = Command::new(WAYLAY)
            .args(["run", "--quiet", "--json", "--out"])
            .arg(&out)
            .arg(&path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("waylay");
        let pid = child.id();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let peak = std::thread::spawn(move || {
            let mut peak = 0;
            while stopped.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
                peak = peak.max(high_water(pid).unwrap_or(0));
            }
            peak
        });
        let output = child.wait_with_output().expect("waylay ends");
        drop(stop);
        let summary = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        Campaign { _folder: folder, summary, peak_rss: peak.join().expect("watcher"), out }
    }

    /// One test's record.
    pub(crate) fn test(&self, name: &str) -> &Value {
        let scenarios = self.summary["campaign"]["scenarios"].as_array().expect("scenarios");
        let mut tests = scenarios.iter().flat_map(|scenario| scenario["tests"].as_array().expect("tests"));
        tests.find(|test| test["name"] == name).unwrap_or_else(|| panic!("no test {name}"))
    }

    /// The record of the first failure of that kind, and when it was complete on disk.
    pub(crate) fn failure(&self, kind: &str) -> (Value, SystemTime) {
        let failures = self.summary["failures"].as_array().expect("failures");
        let failure = failures.iter().find(|failure| failure["kind"] == kind);
        let failure = failure.unwrap_or_else(|| panic!("no {kind} in {}", self.summary));
        let path = Path::new(failure["folder"].as_str().expect("folder")).join("failure.json");
        let record = serde_json::from_slice(&std::fs::read(&path).expect("record")).expect("record");
        (record, std::fs::metadata(&path).and_then(|data| data.modified()).expect("time"))
    }

    /// Bytes of everything that the campaign wrote.
    pub(crate) fn disk(&self) -> u64 {
        size_of_folder(&self.out)
    }
}

fn size_of_folder(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => size_of_folder(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Most resident memory of a process so far, in bytes.
fn high_water(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
