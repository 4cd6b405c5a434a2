//! Processes for the tests: a program with threads that count, and the randomizer beside it.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::{BufRead, BufReader, Write};
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use waylay_randomizer::Report;

/// `tests/programs/threads.c`, compiled once per test process.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/threads.c");
        let name = format!("threads-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let status = Command::new("cc")
            .args(["-O1", "-pthread", "-o"])
            .arg(&path)
            .arg(source)
            .status()
            .expect("cc starts");
        assert!(status.success());
        path
    })
}

/// A running `threads`; killed when dropped.
pub(crate) struct Target {
    child: Child,
    stdin: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    counters: tempfile::NamedTempFile,
    threads: usize,
}

impl Target {
    /// Starts one with these threads (`kind:name`) beside its first.
    pub(crate) fn start(threads: &[&str]) -> Target {
        let counters = tempfile::NamedTempFile::new().expect("a file");
        counters.as_file().set_len(1 << 14).expect("room");
        let mut child = Command::new(program())
            .arg(counters.path())
            .args(threads)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut target = Target { child, stdin, output, counters, threads: threads.len() };
        assert_eq!(target.line(), "ready");
        target
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("readable");
        line.trim_end().to_owned()
    }

    pub(crate) fn say(&mut self, command: &str) {
        writeln!(self.stdin.as_mut().expect("open"), "{command}").expect("writable");
    }

    /// What each thread has counted so far.
    pub(crate) fn counters(&self) -> Vec<u64> {
        let mut bytes = vec![0; self.threads * 8];
        self.counters.as_file().read_exact_at(&mut bytes, 0).expect("readable");
        bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().expect("eight"))).collect()
    }

    /// Waits until every thread has counted on; fails if one stands still.
    pub(crate) fn expect_all_running(&self) {
        let before = self.counters();
        eventually("a thread stands still", || {
            let now = self.counters();
            before
                .iter()
                .zip(&now)
                .all(|(before, now)| now > before)
                .then_some(())
                .ok_or(format!("{before:?} {now:?}"))
        });
    }

    /// The kernel's letters for the states of the threads, in order of their ids.
    pub(crate) fn states(&self) -> String {
        let mut threads: Vec<u32> = std::fs::read_dir(format!("/proc/{}/task", self.pid()))
            .expect("alive")
            .map(|entry| {
                entry.expect("an entry").file_name().to_str().expect("a number").parse().expect("a number")
            })
            .collect();
        threads.sort_unstable();
        let state = |thread| {
            let stat = std::fs::read_to_string(format!("/proc/{}/task/{thread}/stat", self.pid())).ok()?;
            stat.rsplit(')').next()?.trim_start().chars().next()
        };
        threads.into_iter().filter_map(state).collect()
    }

    /// How many threads somebody traces just now.
    pub(crate) fn traced(&self) -> usize {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("alive").flatten();
        let status = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
        status.filter(|status| !status.contains("TracerPid:\t0\n")).count()
    }

    /// Waits until the states are these.
    pub(crate) fn expect_states(&self, expected: &str) {
        eventually("states", || {
            let states = self.states();
            (states == expected).then_some(()).ok_or(states)
        });
    }

    /// The id of a thread by its name.
    pub(crate) fn thread(&self, name: &str) -> u32 {
        std::fs::read_dir(format!("/proc/{}/task", self.pid()))
            .expect("alive")
            .map(|entry| entry.expect("an entry").path())
            .find(|path| std::fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim_end() == name))
            .and_then(|path| path.file_name()?.to_str()?.parse().ok())
            .expect("a thread of that name")
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killable");
    }

    /// Reaps it.
    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().expect("waitable")
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command under test.
pub(crate) fn randomizer() -> Command {
    Command::new(env!("CARGO_BIN_EXE_waylay-randomizer"))
}

/// A randomizer at work; killed when dropped.
pub(crate) struct Randomizer(Option<Child>);

impl Randomizer {
    /// Starts one on a process; its report is read by [`Randomizer::finish`].
    pub(crate) fn start(pid: u32, arguments: &[&str]) -> Randomizer {
        Randomizer::start_with(pid, arguments, Vec::new())
    }

    /// Starts one that inherits descriptors.
    pub(crate) fn start_with(pid: u32, arguments: &[&str], inherited: Vec<RawFd>) -> Randomizer {
        let mut command = randomizer();
        command.args(["--json", "--quiet", "--pid", &pid.to_string()]).args(arguments);
        // SAFETY: the closure only makes async-signal-safe calls.
        unsafe {
            command.pre_exec(move || {
                // A shell starts background jobs with these ignored, and the randomizer leaves what is ignored so.
                for signal in [libc::SIGINT, libc::SIGHUP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                for fd in &inherited {
                    libc::fcntl(*fd, libc::F_SETFD, 0);
                }
                Ok(())
            });
        }
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Randomizer(Some(child.expect("the randomizer starts")))
    }

    pub(crate) fn signal(&self, signal: i32) {
        let pid = self.0.as_ref().expect("running").id();
        // SAFETY: plain call; the child is not yet waited for.
        unsafe { libc::kill(pid as libc::pid_t, signal) };
        // One thread takes the signal and only then stops the others, which work on meanwhile.
        while signal == libc::SIGSTOP && !all_stopped(pid) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.as_ref().expect("running").id()
    }

    /// Kills it and waits for its end. A process whose first thread is gone may have others that are not.
    pub(crate) fn end(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits for its end.
    pub(crate) fn output(mut self) -> Output {
        self.0.take().expect("running").wait_with_output().expect("readable")
    }

    /// Waits for its end and reads its report; the exit code comes with it.
    pub(crate) fn finish(self) -> (i32, Report) {
        let output = self.output();
        let code = output.status.code().expect("not killed");
        let report = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        (code, report)
    }
}

impl Drop for Randomizer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Tries until it works, for as long as nobody would call it anything but a hang.
pub(crate) fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(problem) if Instant::now() > deadline => panic!("{what}: {problem}"),
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Ends the test process if a test takes for ever: a hang is what these tests are about.
pub(crate) struct Watchdog(std::sync::mpsc::Sender<()>);

impl Watchdog {
    pub(crate) fn new() -> Watchdog {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            if let Err(std::sync::mpsc::RecvTimeoutError::Timeout) =
                receiver.recv_timeout(Duration::from_secs(400))
            {
                eprintln!("watchdog: the test hangs");
                std::process::abort();
            }
        });
        Watchdog(sender)
    }
}

/// A file that goes away.
pub(crate) fn scratch() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("file");
    (directory, path)
}

/// Whether all threads of a process stand still; they do of one that is gone.
fn all_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
    stats
        .filter_map(|stat| stat.rsplit(')').next()?.trim_start().chars().next())
        .all(|state| "TZX".contains(state))
}
