//! Target processes for the tests: small programs, compiled when needed, killed at the end.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use waylay_evidence::ProcessId;

/// A compiled program in a directory of its own.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    directory: tempfile::TempDir,
}

/// Where the sources are.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

impl Program {
    /// Compiles a C program from `tests/programs`.
    pub(crate) fn c(name: &str, flags: &[&str]) -> Program {
        Program::build("cc", name, &[&["-pthread"], flags].concat(), "program")
    }

    /// Compiles a Rust program from `tests/programs`.
    pub(crate) fn rust(name: &str, flags: &[&str]) -> Program {
        Program::build("rustc", name, &[&["--edition=2024"], flags].concat(), "program")
    }

    /// Compiles with any compiler that takes `-o`; the source is copied first so that its path differs.
    pub(crate) fn build(compiler: &str, name: &str, flags: &[&str], output: &str) -> Program {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let copy = directory.path().join(name);
        std::fs::copy(source(name), &copy).expect("the source exists");
        let path = directory.path().join(output);
        let status = Command::new(compiler)
            .args(flags)
            .arg(&copy)
            .arg("-o")
            .arg(&path)
            .current_dir(directory.path())
            .status()
            .expect("the compiler starts");
        assert!(status.success(), "{compiler} {name} {flags:?}");
        Program { path, directory }
    }

    /// The directory it is in.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Starts it and waits until it says that it is ready.
    pub(crate) fn start(&self, arguments: &[&str]) -> Target {
        let mut target = Target::start(Command::new(&self.path).args(arguments));
        target.expect_line("ready");
        target
    }
}

/// A running program; killed when dropped.
pub(crate) struct Target {
    child: Child,
    stdin: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Target {
    /// Starts a command with its output read here.
    pub(crate) fn start(command: &mut Command) -> Target {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let stdin = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Target { child, stdin, output }
    }

    pub(crate) fn pid(&self) -> ProcessId {
        ProcessId(self.child.id())
    }

    /// The next line it prints.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("readable");
        line.trim_end().to_owned()
    }

    pub(crate) fn expect_line(&mut self, expected: &str) {
        assert_eq!(self.line(), expected);
    }

    /// Closes its standard input, for programs that end then.
    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
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

/// Ends the test process if the test takes for ever: a hang is what these tests are about.
pub(crate) struct Watchdog(std::sync::mpsc::Sender<()>);

impl Watchdog {
    pub(crate) fn new(limit: Duration) -> Watchdog {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            if let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = receiver.recv_timeout(limit) {
                eprintln!("watchdog: the test hangs");
                std::process::abort();
            }
        });
        Watchdog(sender)
    }
}

/// Tries until it works: a program that says it is ready may need a moment to reach its blocking call.
pub(crate) fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut pause = Duration::from_millis(5);
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(problem) if Instant::now() > deadline => panic!("{what}: {problem}"),
            Err(_) => std::thread::sleep(pause),
        }
        // Looking stops the program; on a machine with no processor to spare it would get nowhere in between.
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}
