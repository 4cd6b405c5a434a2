//! The command on Windows: plugins in Rust, C and C++ are loaded, their bugs are found, and the evidence is whole.
#![cfg(windows)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A folder of its own; its name has a blank and letters that are not ASCII.
struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn with(config: &str) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("Prüfung ключ");
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join("waylay.toml"), config).expect("a file");
        Place { _folder: folder, path }
    }

    fn waylay(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waylay"));
        command.args(arguments).current_dir(&self.path).stdin(Stdio::null()).env("NO_COLOR", "1");
        command.output().expect("the command runs")
    }

    /// Runs the configuration and returns its failures.
    fn failures(&self) -> Vec<Failure> {
        let output = self.waylay(&["run", "waylay.toml", "--json", "--quiet"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}\n{}", self.host_log());
        let mut found = Vec::new();
        for campaign in folders(&self.path.join("waylay-out")) {
            for folder in folders(&campaign.join("failures")) {
                let text = fs::read(folder.join("failure.json")).expect("a record");
                found.push(Failure { json: serde_json::from_slice(&text).expect("readable"), folder });
            }
        }
        found
    }

    fn host_log(&self) -> String {
        let campaigns = folders(&self.path.join("waylay-out"));
        campaigns
            .iter()
            .map(|folder| fs::read_to_string(folder.join("host.log")).unwrap_or_default())
            .collect()
    }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

struct Failure {
    folder: PathBuf,
    json: Value,
}

impl Failure {
    fn text(&self, key: &str) -> &str {
        self.json[key].as_str().unwrap_or_default()
    }

    fn stacks(&self) -> String {
        fs::read_to_string(self.folder.join("stacks.txt")).unwrap_or_default()
    }

    /// The dump is there and has at least so many threads.
    fn expect_dump(&self, threads: u32) {
        let dump = fs::read(self.folder.join("dump.dmp")).expect("a dump");
        assert_eq!(&dump[..4], b"MDMP");
        let word = |at: usize| u32::from_le_bytes(dump[at..at + 4].try_into().expect("four bytes"));
        let streams = (0..word(8) as usize).map(|index| word(12) as usize + index * 12);
        let list = streams.into_iter().find(|at| word(*at) == 3).expect("a list of threads");
        assert!(word(word(list + 8) as usize) >= threads, "{} threads", word(word(list + 8) as usize));
    }
}

/// One test of a plugin, alone.
fn config(plugin: &str, test: &str, more: &str) -> String {
    format!(
        "[defaults]\nmax-failures = 1\nworkers = 2\n[[scenario]]\nname = \"s\"\nduration = \"60s\"\n\
         [[scenario.test]]\nplugin = \"{plugin}\"\nname = \"{test}\"\n{more}\n"
    )
}

/// Runs one faulty test and checks what is said about it.
fn expect(plugin: &str, test: &str, kind: &str, what: &str, frame: &str) -> Failure {
    let place = Place::with(&config(plugin, test, "hang-timeout = \"3s\""));
    let mut failures = place.failures();
    let seen: Vec<_> = failures
        .iter()
        .map(|failure| (failure.text("kind").to_owned(), failure.text("what").to_owned()))
        .collect();
    let at = failures.iter().position(|failure| failure.text("kind") == kind);
    let failure =
        failures.swap_remove(at.unwrap_or_else(|| panic!("no {kind}: {seen:?}\n{}", place.host_log())));
    assert!(failure.text("what").contains(what), "{seen:?}");
    assert!(failure.stacks().contains(frame), "no {frame} in\n{}", failure.stacks());
    failure.expect_dump(3);
    failure
}

#[test]
fn a_crash_in_rust() {
    expect("waylay_faults", "crash", "crash", "EXCEPTION_ACCESS_VIOLATION", "waylay_faults::sudden");
}

#[test]
fn a_panic_and_an_assertion_in_rust() {
    expect("waylay_faults", "panic", "assert", "", "waylay_faults::sudden");
    expect("waylay_faults", "assert", "assert", "", "waylay_faults::sudden");
}

#[test]
fn a_deadlock_in_rust() {
    expect("waylay_faults", "deadlock", "deadlock", "", "waylay_faults::hanging");
}

#[test]
fn a_livelock_in_rust() {
    expect("waylay_faults", "livelock", "livelock", "", "waylay_faults::hanging");
}

#[test]
fn a_crash_an_abort_and_an_exit_in_c() {
    expect("waylay_faults_c", "crash", "crash", "EXCEPTION_ACCESS_VIOLATION", "faults.c");
    expect("waylay_faults_c", "abort", "crash", "abort", "faults.c");
    expect("waylay_faults_c", "exit", "crash", "exit()", "faults.c");
}

#[test]
fn an_exception_in_cpp() {
    // The stack is that of the catch: on Windows nothing notes where an exception was thrown.
    expect("waylay_faults_cpp", "exception", "assert", "", "exception#");
}

#[test]
fn healthy_libraries_stay_silent_and_nothing_is_left_behind() {
    let place = Place::with(
        "[[scenario]]\nname = \"s\"\nduration = \"3s\"\n[[scenario.test]]\nplugin = \"waylay_libraries\"\n",
    );
    let output = place.waylay(&["run", "waylay.toml", "--json", "--quiet"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}\n{}", place.host_log());
}

#[test]
fn files_that_are_no_plugins_are_refused_with_the_reason() {
    let place = Place::with("");
    let plugin = place.path.join("schlüssel.dll");
    let program = fs::read(env!("CARGO_BIN_EXE_waylay")).expect("readable");
    let header = u32::from_le_bytes(program[0x3c..0x40].try_into().expect("four bytes")) as usize;
    let mut narrow = program.clone();
    narrow[header + 4..header + 6].copy_from_slice(&0x14c_u16.to_le_bytes());
    for (bytes, words) in
        [(&b"text"[..], "not a Windows library"), (&program, "is a program"), (&narrow, "32-bit")]
    {
        fs::write(&plugin, bytes).expect("writable");
        let output = place.waylay(&["list", "schlüssel.dll"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words) && said.contains("schlüssel.dll"), "{said}");
    }
}

#[test]
fn an_output_folder_that_cannot_be_made_is_named() {
    let place = Place::with(&config("waylay_faults", "panic", ""));
    fs::write(place.path.join("file"), "").expect("writable");
    let output = place.waylay(&["run", "waylay.toml", "--out", "file/out"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code >= 2), "{said}");
    assert!(said.contains("file"), "{said}");
}

#[test]
fn a_randomized_scenario_suspends_threads_and_still_finds_the_bug() {
    let map = "[[scenario.test]]\nplugin = \"waylay_libraries\"\nname = \"map\"\n";
    let place =
        Place::with(&format!("[[scenario]]\nname = \"s\"\nduration = \"5s\"\nmode = \"randomized\"\n{map}"));
    let output = place.waylay(&["run", "waylay.toml", "--json", "--quiet"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}\n{}", place.host_log());
    let summary: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let record = &summary["campaign"]["scenarios"][0]["randomizer"];
    assert!(record["suspensions"].as_u64().is_some_and(|count| count > 0), "{record:#}");
    assert!(record["suspended_s"].as_f64().is_some_and(|time| time > 0.0), "{record:#}");

    let faulty = config("waylay_faults", "deadlock", "hang-timeout = \"3s\"")
        .replace("duration = \"60s\"", "duration = \"60s\"\nmode = \"randomized\"");
    let place = Place::with(&faulty);
    let failures = place.failures();
    let deadlock = failures.iter().find(|failure| failure.text("kind") == "deadlock").expect("found");
    deadlock.expect_dump(3);
}
