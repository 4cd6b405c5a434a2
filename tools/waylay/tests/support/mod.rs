//! Runs the real command in a folder of its own, with a limit on its time, and reads back what it left there.

#![allow(dead_code)] // each test file is a crate of its own and uses its part

pub(crate) mod fields;
pub(crate) mod real;
#[cfg(target_os = "linux")]
pub(crate) mod served;
pub(crate) mod small;
#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod sys;
#[cfg(windows)]
#[path = "windows.rs"]
mod sys;
#[cfg(target_os = "linux")]
pub(crate) mod terminal;

pub(crate) use sys::*;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// No run of these tests takes longer than a few seconds on a machine that has nothing else to do; a run that takes this
/// long is a driver that hangs. Runs that must get somewhere end by what they did, with a duration a little shorter.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// A folder with a configuration, and the campaigns that were run there.
pub(crate) struct Workplace {
    folder: tempfile::TempDir,
}

/// The command, started and not yet waited for.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// The command when it is over.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A failure as it is on disk.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) folder: PathBuf,
    pub(crate) json: Value,
}

impl Workplace {
    pub(crate) fn new() -> Workplace {
        Workplace { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// A folder whose `waylay.toml` holds this text.
    pub(crate) fn with(config: &str) -> Workplace {
        let place = Workplace::new();
        place.write("waylay.toml", config);
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).expect("a file in the temporary folder");
        path
    }

    /// The command in this folder, not yet started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waylay"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null()).env("NO_COLOR", "1");
        // Programs under test do not inherit what this machine wants of a panic: reading debug information takes longer
        // than most of their schedules.
        command.env_remove("RUST_BACKTRACE");
        // Tests look for what is said, and one of them at how much.
        command.env("WAYLAY_VERBOSE", "1");
        sys::forget_nohup(&mut command);
        command
    }

    /// Starts the command. What it prints goes to files: a process that outlives it keeps no pipe of ours.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        self.start_command(self.command(arguments))
    }

    pub(crate) fn start_command(&self, mut command: Command) -> Running {
        let number = fs::read_dir(self.path()).expect("our folder").count();
        let stdout = self.path().join(format!("stdout-{number}.txt"));
        let stderr = self.path().join(format!("stderr-{number}.txt"));
        let file = |path: &Path| File::create(path).expect("a file in the temporary folder");
        let child = command.stdout(file(&stdout)).stderr(file(&stderr)).spawn().expect("the command starts");
        Running { child, stdout, stderr }
    }

    /// Runs the command to its end.
    pub(crate) fn waylay(&self, arguments: &[&str]) -> Ran {
        self.start(arguments).finish()
    }

    /// `waylay run waylay.toml --json` with more arguments, which must end with that code.
    pub(crate) fn run(&self, code: i32, more: &[&str]) -> Ran {
        let ran = self.waylay(&[&["run", "waylay.toml", "--json"], more].concat());
        assert_eq!(ran.code(), Some(code), "{}\n{}", ran.stderr, ran.stdout);
        ran
    }

    /// Folders of the campaigns below `out`, oldest first.
    pub(crate) fn campaigns(&self, out: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path().join(out)) else { return Vec::new() };
        let mut found: Vec<PathBuf> =
            entries.map(|entry| entry.expect("readable").path()).filter(|path| !hidden(path)).collect();
        // Beside the campaigns there is their history.
        found.retain(|path| path.is_dir());
        found.sort();
        found
    }
}

fn hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

impl Running {
    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// What it printed so far for people.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Waits until the condition holds.
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut(&Running) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < PATIENCE, "never: {what}\n{}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asks it to end in order.
    pub(crate) fn ask_to_end(&self) {
        sys::ask_to_end(self.pid());
    }

    /// The hosts that it has started and that live.
    pub(crate) fn hosts(&self) -> Vec<i32> {
        hosts_of(self.pid())
    }

    /// Waits for the end; a command that does not end is killed and fails the test.
    pub(crate) fn finish(mut self) -> Ran {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                break status;
            }
            if began.elapsed() > PATIENCE {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("the command did not end:\n{}", self.stderr());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        Ran { status, stdout: read(&self.stdout), stderr: read(&self.stderr) }
    }
}

impl Drop for Running {
    /// A test that fails leaves no command behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ran {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The one object on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}:\n{}\n{}", self.stdout, self.stderr))
    }

    /// The campaign's folder.
    pub(crate) fn folder(&self) -> PathBuf {
        PathBuf::from(text(&self.json()["folder"]))
    }

    /// Every failure, as it is on disk, in the order of the summary.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        let json = self.json();
        list(&json["failures"]).iter().map(|line| Failure::read(Path::new(text(&line["folder"])))).collect()
    }

    /// The one failure of that plugin and test.
    pub(crate) fn failure(&self, plugin: &str, test: &str) -> Failure {
        let mut found: Vec<Failure> =
            self.failures().into_iter().filter(|failure| failure.is_of(plugin, test)).collect();
        assert_eq!(found.len(), 1, "{plugin} {test}: {found:#?}\n{}", self.stderr);
        found.remove(0)
    }

    /// What the campaign counted for that test.
    pub(crate) fn test(&self, plugin: &str, test: &str) -> Value {
        let json = self.json();
        let tests: Vec<Value> = list(&json["campaign"]["scenarios"])
            .iter()
            .filter(|scenario| !text(&scenario["name"]).ends_with(" alone)"))
            .flat_map(|scenario| list(&scenario["tests"]).clone())
            .filter(|record| {
                text(&record["name"]) == test && text(&record["plugin"]).contains(&file_of(plugin))
            })
            .collect();
        assert_eq!(tests.len(), 1, "{plugin} {test}: {json:#}");
        tests[0].clone()
    }

    /// Everything the hosts printed.
    pub(crate) fn host_log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder().join("host.log")).expect("a log")).into_owned()
    }
}

impl Failure {
    pub(crate) fn read(folder: &Path) -> Failure {
        let path = folder.join("failure.json");
        let content = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let json =
            serde_json::from_str(&content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Failure { folder: folder.to_owned(), json }
    }

    pub(crate) fn is_of(&self, plugin: &str, test: &str) -> bool {
        self.json["test"] == test
            && self.json["plugin"].as_str().is_some_and(|path| path.ends_with(&file_of(plugin)))
    }

    pub(crate) fn kind(&self) -> &str {
        text(&self.json["kind"])
    }

    pub(crate) fn what(&self) -> &str {
        text(&self.json["what"])
    }

    pub(crate) fn signature(&self) -> &str {
        text(&self.json["signature"]["id"])
    }

    pub(crate) fn count(&self) -> u64 {
        number(&self.json["count"])
    }

    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.folder.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The functions of the first stack that is shown.
    pub(crate) fn first_stack(&self) -> Vec<String> {
        let stacks = list(&self.json["stacks"]);
        let frames = stacks.first().map(|stack| list(&stack["frames"]).clone()).unwrap_or_default();
        frames.iter().map(|frame| frame["function"].as_str().unwrap_or("??").to_owned()).collect()
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

pub(crate) fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// Bytes of all files below a folder.
pub(crate) fn size_of_folder(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable"));
    entries
        .map(|entry| match entry.file_type().expect("a type").is_dir() {
            true => size_of_folder(&entry.path()),
            false => entry.metadata().expect("a size").len(),
        })
        .sum()
}
