//! Runs the real command in a folder of its own, with a limit on its time, and reads back what it left there.

#![allow(dead_code)] // each test file is a crate of its own and uses its part

pub(crate) mod fields;
pub(crate) mod real;
pub(crate) mod small;
#[cfg(target_os = "linux")]
pub(crate) mod terminal;

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

    /// Compiles a plugin in C with one test: see [`C_BEGINNING`].
    pub(crate) fn compile(&self, name: &str, source: &str) -> PathBuf {
        self.compile_whole(name, &format!("{C_BEGINNING}{source}\n"))
    }

    /// Compiles a plugin in C as it is.
    pub(crate) fn compile_whole(&self, name: &str, source: &str) -> PathBuf {
        let from = self.write(&format!("{name}.c"), source);
        let to = self.path().join(format!("lib{name}.so"));
        let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../framework/abi/include");
        let output = Command::new("cc")
            .args([
                "-std=gnu11",
                "-Wall",
                "-Werror",
                "-shared",
                "-fPIC",
                "-g",
                "-pthread",
                "-I",
                include,
                "-o",
            ])
            .args([&to, &from])
            .output()
            .expect("cc runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        to
    }

    /// The command in this folder, not yet started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waylay"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null()).env("NO_COLOR", "1");
        // Programs under test do not inherit what this machine wants of a panic: reading debug information takes longer
        // than most of their schedules.
        command.env_remove("RUST_BACKTRACE");
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

    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: a plain call; the child is not waited for yet, so its number is its own.
        unsafe { libc::kill(self.pid(), signal) };
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

/// Processes whose parent is `driver` and that are hosts.
pub(crate) fn hosts_of(driver: i32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{driver}/task/{driver}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|pid| is_host(*pid)).collect()
}

fn is_host(pid: i32) -> bool {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    arguments.split(|byte| *byte == 0).nth(1) == Some(b"host")
}

/// Whether there is such a process, and it is not only waiting to be waited for.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

pub(crate) fn kill(pid: i32) {
    // SAFETY: a plain call.
    unsafe { libc::kill(pid, libc::SIGKILL) };
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

fn file_of(plugin: &str) -> String {
    format!("lib{plugin}.so")
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

/// What plugins of [`Workplace::compile`] begin with: one test, `probe`, that logs its life. The source defines
/// `static int32_t iterate(probe *self, waylay_context *worker)`.
pub(crate) const C_BEGINNING: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "waylay.h"
typedef struct probe { waylay_instance instance; const waylay_services *services; waylay_context *context; } probe;
static int32_t iterate(probe *self, waylay_context *worker);
static void say(probe *self, const char *text) { self->services->log(self->context, WAYLAY_LOG_INFO, text, strlen(text)); }
static int32_t on_start(waylay_instance *instance);
static int32_t on_main(waylay_instance *instance, waylay_context *worker) { return iterate((probe *)instance, worker); }
static void on_cancelled(waylay_instance *instance);
static void on_end(waylay_instance *instance);
static const waylay_test_info info = {.size = sizeof info, .name = "probe", .about = "a probe"};
static const waylay_test_info *const infos[] = {&info};
static const waylay_plugin_info plugin = {.size = sizeof plugin, .abi_version = WAYLAY_ABI_VERSION, .name = "probe", .tests = infos, .test_count = 1};
const waylay_plugin_info *WaylayPlugin(void) { return &plugin; }
waylay_instance *CreateInstance(const waylay_create_args *args) {
  probe *made = calloc(1, sizeof *made);
  made->instance.size = sizeof made->instance;
  made->instance.OnTestStart = on_start;
  made->instance.TestMain = on_main;
  made->instance.OnTestCancelled = on_cancelled;
  made->instance.OnTestEnd = on_end;
  made->services = args->services;
  made->context = args->context;
  return &made->instance;
}
void DestroyInstance(waylay_instance *instance) { free(instance); }
static int32_t on_start(waylay_instance *instance) { probe *self = (probe *)instance; say(self, "started"); return WAYLAY_OK; }
static void on_cancelled(waylay_instance *instance) { say((probe *)instance, "cancelled"); }
static void on_end(waylay_instance *instance) { say((probe *)instance, "ended"); }
"#;
