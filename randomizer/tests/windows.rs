//! The randomizer on Windows, on real processes: threads are suspended, and none stays so, whatever happens.
//!
//! There is no compiler at hand where this runs, so the target is this program again: the test [`counting`] with
//! a file to count in. Threads count by writing to their place in the file, which needs nobody's help to be read.
#![cfg(windows)]

use std::fs::File;
use std::os::windows::fs::FileExt;
use std::os::windows::io::AsRawHandle;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use waylay_randomizer::report::{CommandEnd, Ending};
use waylay_randomizer::{BAD_USAGE, COMMAND_FAILED, Report};

/// Where the target's threads count; set in the target only.
const COUNTERS: &str = "WAYLAY_TEST_COUNTERS";
/// What the target's exit code is to be when it is told to end.
const EXIT_CODE: i32 = 7;
/// How long anything may take on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(90);
/// Holds all threads for longer than any test lasts.
const HOLD_ALL: [&str; 6] = ["--period", "0s", "--suspend", "10m", "--count", "1000"];

const COUNTING_THREADS: usize = 3;
/// The place of the thread that the target suspends by itself.
const SLEEPER: usize = COUNTING_THREADS;
/// A value here ends the target.
const END: usize = COUNTING_THREADS + 1;

fn write(file: &File, place: usize, value: u64) {
    file.seek_write(&value.to_le_bytes(), place as u64 * 8).expect("writable");
}

fn read(file: &File, place: usize) -> u64 {
    let mut bytes = [0; 8];
    let read = file.seek_read(&mut bytes, place as u64 * 8).expect("readable");
    if read == 8 { u64::from_le_bytes(bytes) } else { 0 }
}

fn count(file: &File, place: usize) {
    for value in 1.. {
        write(file, place, value);
        if read(file, END) != 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Counts until told to end: in this process for a moment, or as the target of the others.
#[test]
fn counting() {
    let Some(path) = std::env::var_os(COUNTERS) else {
        let folder = tempfile::tempdir().expect("a folder");
        let file = open(&folder.path().join("counters"));
        std::thread::scope(|scope| {
            scope.spawn(|| count(&file, 0));
            eventually("it counts", || read(&file, 0) > 3);
            write(&file, END, 1);
        });
        return;
    };
    let file: &'static File = Box::leak(Box::new(open(path.as_ref())));
    for place in 0..COUNTING_THREADS {
        let named = std::thread::Builder::new().name(format!("counting-{place}"));
        named.spawn(move || count(file, place)).expect("a thread");
    }
    let sleeper = std::thread::spawn(move || count(file, SLEEPER));
    eventually("the sleeper counts", || read(file, SLEEPER) > 0);
    // SAFETY: the thread lives; its handle is open as long as `sleeper`.
    unsafe { windows_sys::Win32::System::Threading::SuspendThread(sleeper.as_raw_handle()) };
    while read(file, END) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::process::exit(EXIT_CODE);
}

fn open(path: &std::path::Path) -> File {
    File::options().read(true).write(true).create(true).truncate(false).open(path).expect("a file")
}

fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The command that starts the target with its counters in that file.
fn target_command(counters: &std::path::Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["--exact", "counting", "--nocapture"]).env(COUNTERS, counters);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

struct Target {
    child: Child,
    file: File,
    _folder: tempfile::TempDir,
}

impl Target {
    fn start() -> Target {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("counters");
        let file = open(&path);
        let target = Target { child: target_command(&path).spawn().expect("starts"), file, _folder: folder };
        eventually("all count", || (0..=SLEEPER).all(|place| read(&target.file, place) > 0));
        eventually("the sleeper sleeps", || !target.moves(SLEEPER));
        target
    }

    /// Whether a thread counts. One that is only slow gets a second, a third … look from whoever asks.
    fn moves(&self, place: usize) -> bool {
        let before = read(&self.file, place);
        std::thread::sleep(Duration::from_millis(300));
        read(&self.file, place) != before
    }

    fn all_move(&self) -> bool {
        let before: Vec<_> = (0..COUNTING_THREADS).map(|place| read(&self.file, place)).collect();
        std::thread::sleep(Duration::from_millis(300));
        (0..COUNTING_THREADS).all(|place| read(&self.file, place) != before[place])
    }

    fn none_moves(&self) -> bool {
        (0..COUNTING_THREADS).all(|place| !self.moves(place))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn randomizer(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waylay-randomizer"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn disturb(target: &Target, more: &[&str]) -> Child {
    let pid = target.child.id().to_string();
    randomizer(&["--json", "--quiet", "--pid", &pid]).args(more).spawn().expect("starts")
}

fn report(output: &Output) -> Report {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

#[test]
fn killed_in_mid_suspension_the_watchdog_resumes_what_was_suspended_and_nothing_else() {
    let target = Target::start();
    for _ in 0..3 {
        let mut randomizer = disturb(&target, &HOLD_ALL);
        eventually("all are held", || target.none_moves());
        randomizer.kill().expect("killed");
        randomizer.wait().expect("reaped");
        eventually("all run again", || target.all_move());
        assert!(!target.moves(SLEEPER), "the program's own suspension was undone");
    }
}

#[test]
fn it_suspends_and_says_so() {
    let target = Target::start();
    let output = disturb(&target, &["--duration", "3s", "--period", "0s..2ms", "--suspend", "0s..2ms"])
        .wait_with_output()
        .expect("ends");
    let report = report(&output);
    assert_eq!((output.status.code(), report.ending), (Some(0), Ending::DurationOver));
    let counts = &report.progress.counts;
    assert!(counts.suspensions > 20 && counts.refused == 0 && counts.unstoppable == 0, "{counts:?}");
    assert!(report.progress.suspended_s > 0.0);
    let hit = report.living.iter().filter(|thread| thread.name.starts_with("counting-"));
    assert_eq!(hit.filter(|thread| thread.suspensions > 0).count(), COUNTING_THREADS, "{:?}", report.living);
    eventually("all run again", || target.all_move());
}

#[test]
fn threads_are_chosen_by_name() {
    let target = Target::start();
    let mut randomizer = disturb(&target, &[&HOLD_ALL[..], &["--include", "counting-1"]].concat());
    eventually("the named one is held", || !target.moves(1));
    assert!(target.moves(0) && target.moves(2));
    randomizer.kill().expect("killed");
    randomizer.wait().expect("reaped");
    eventually("all run again", || target.all_move());
}

#[test]
fn a_target_that_dies_in_a_window_ends_the_run() {
    let mut target = Target::start();
    let randomizer = disturb(&target, &HOLD_ALL);
    eventually("all are held", || target.none_moves());
    target.child.kill().expect("killed");
    target.child.wait().expect("reaped");
    let output = randomizer.wait_with_output().expect("ends");
    assert_eq!(report(&output).ending, Ending::TargetEnded);
}

#[test]
fn a_command_is_started_and_its_end_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("counters");
    let file = open(&path);
    let command = target_command(&path);
    let started = randomizer(&["--json", "--quiet", "--"])
        .arg(command.get_program())
        .args(command.get_args())
        .env(COUNTERS, &path)
        // The target prints the harness's lines, which are not the report.
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    eventually("all count", || (0..=SLEEPER).all(|place| read(&file, place) > 0));
    std::thread::sleep(Duration::from_millis(500));
    write(&file, END, 1);
    let output = started.wait_with_output().expect("ends");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().rfind(|line| line.starts_with('{')).expect("a report");
    let report: Report = serde_json::from_str(line).expect("readable");
    assert_eq!(report.command, Some(CommandEnd::Code(EXIT_CODE)));
    assert_eq!(output.status.code(), Some(i32::from(COMMAND_FAILED)));
    assert!(report.progress.counts.suspensions > 0);
}

#[test]
fn processes_that_cannot_be_disturbed_are_refused_with_the_reason() {
    let own = std::process::id().to_string();
    for (pid, words) in [("1073741820", "no process"), (own.as_str(), "is an ancestor of the randomizer")] {
        let output = randomizer(&["--pid", pid]).output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(i32::from(BAD_USAGE)), "{said}");
        assert!(said.contains(words), "{said}");
    }
}
