//! Builds the small programs of `tests/programs` and runs them under the library.

#![allow(dead_code)]

pub(crate) mod restored;
pub(crate) mod zoo;

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use waylay_control_protocol::{
    Ending, Instrumentation, REGION_VARIABLE, RegionMap, SERVER_VARIABLE, ServerLink, Settings, Stretch,
    Switching,
};
use waylay_schedule::RunParameters;

/// Both ways to switch; every program has to behave alike under both.
pub(crate) const BOTH: [Switching; 2] = [Switching::Baton, Switching::Carrier];

/// No run of a test program takes longer than this; one that does hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A built program.
pub(crate) struct Program {
    path: PathBuf,
    arguments: Vec<String>,
    /// Loaded before the library.
    before: Option<PathBuf>,
}

/// What became of one run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) ending: Ending,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) text: String,
    pub(crate) handed: String,
    pub(crate) begun: u64,
    pub(crate) steps: u64,
    pub(crate) switches: u64,
    pub(crate) threads: u32,
    pub(crate) excursions: u32,
    pub(crate) switching: Option<Switching>,
    pub(crate) partly_controlled: bool,
    pub(crate) diverged: u64,
    pub(crate) schedule: Vec<Stretch>,
}

impl Outcome {
    /// Ended by itself with status 0.
    #[track_caller]
    pub(crate) fn assert_clean(&self) -> &Outcome {
        assert!(self.code == Some(0) && self.ending == Ending::Exited, "{self:#?}");
        self
    }
}

/// The parameters of a run under a strategy about which nothing is known but n and k.
pub(crate) fn parameters(strategy: &str, threads: u32, steps: u64, depth: u32) -> String {
    let parameters = RunParameters { threads, steps, depth, ..RunParameters::of(strategy) };
    serde_json::to_string(&parameters).expect("plain data")
}

/// Where Cargo left the library: beside the test. The copy one directory up is only renewed by `cargo build`.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let library = test.with_file_name("libwaylay_control.so");
    assert!(library.exists(), "{} is missing", library.display());
    library
}

impl Program {
    /// Compiles `tests/programs/<file>`.
    pub(crate) fn build(file: &str) -> Program {
        Program::build_with(compiler_of(file), &[], file)
    }

    /// Compiles `tests/programs/<file>` with a compiler and options of the caller's.
    pub(crate) fn build_with(name: &str, options: &[&str], file: &str) -> Program {
        Program::compile("tests/programs", &["check.h", "zoo.h"], name, options, file)
    }

    /// Compiles a file of another folder of this crate, which uses these headers of that folder.
    pub(crate) fn build_in(folder: &str, headers: &[&str], file: &str) -> Program {
        Program::compile(folder, headers, compiler_of(file), &[], file)
    }

    fn compile(folder: &str, headers: &[&str], name: &str, options: &[&str], file: &str) -> Program {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(file);
        let mut text = std::fs::read(&source).expect("the program is there");
        for header in headers {
            text.extend(std::fs::read(source.with_file_name(header)).expect("the header is there"));
        }
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let made = [&text[..], name.as_bytes(), options.join(" ").as_bytes()].concat();
        let path = directory.join(format!("{file}.{:016x}", fingerprint(&made)));
        if path.exists() {
            return Program { path, arguments: Vec::new(), before: None };
        }
        // Several tests may build one program at once: each into a file of its own, then in place at a stroke.
        static BUILDS: AtomicU32 = AtomicU32::new(0);
        let build = BUILDS.fetch_add(1, Ordering::Relaxed);
        let fresh = directory.join(format!("{file}.{}.{build}", std::process::id()));
        let built = compiler(name, file, &fresh).arg(&source).args(options).arg("-lm").output();
        let built = built.expect("a compiler is installed");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        std::fs::rename(&fresh, &path).expect("a name in the same directory");
        Program { path, arguments: Vec::new(), before: None }
    }

    /// A program that was built elsewhere.
    pub(crate) fn at(path: PathBuf) -> Program {
        Program { path, arguments: Vec::new(), before: None }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The same program with other arguments.
    pub(crate) fn with(&self, arguments: &[&str]) -> Program {
        let arguments = arguments.iter().map(|&a| a.to_owned()).collect();
        Program { path: self.path.clone(), arguments, before: self.before.clone() }
    }

    /// The same program with the same arguments.
    fn with_all(&self) -> Program {
        Program { path: self.path.clone(), arguments: self.arguments.clone(), before: self.before.clone() }
    }

    /// The same program, with another one, built as a library, loaded first of all.
    pub(crate) fn behind(&self, library: &Program) -> Program {
        let (path, arguments) = (self.path.clone(), self.arguments.clone());
        Program { path, arguments, before: Some(library.path.clone()) }
    }

    /// Runs the schedule again; `diverged` in the outcome says whether it could be followed.
    pub(crate) fn replay(&self, settings: Settings, schedule: &[Stretch]) -> Outcome {
        let mut region = RegionMap::create().expect("a region");
        region.prepare_replay(settings, schedule).expect("the schedule fits");
        self.run_in(&region)
    }

    fn command(&self, region: &RegionMap) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(&self.arguments)
            .env("LD_PRELOAD", self.preloaded())
            .env(REGION_VARIABLE, region.descriptor().expect("our own region").to_string())
            .stdin(Stdio::null());
        command
    }

    fn preloaded(&self) -> String {
        match &self.before {
            Some(before) => format!("{}:{}", before.display(), library().display()),
            None => library().display().to_string(),
        }
    }

    /// One run in a process of its own.
    pub(crate) fn run(&self, switching: Switching, seed: u64, run: u64) -> Outcome {
        self.run_with(Settings::new(switching, seed, run), "")
    }

    /// One run with the given settings and parameters.
    pub(crate) fn run_with(&self, settings: Settings, parameters: &str) -> Outcome {
        let mut region = RegionMap::create().expect("a region");
        region.prepare(settings, parameters).expect("parameters fit");
        self.run_in(&region)
    }

    /// One run in a process of its own in which the given things are steps.
    pub(crate) fn run_instrumented(
        &self,
        wanted: Instrumentation,
        settings: Settings,
        parameters: &str,
    ) -> Outcome {
        let mut region = RegionMap::create().expect("a region");
        region.set_instrumentation(wanted);
        region.prepare(settings, parameters).expect("parameters fit");
        self.run_in(&region)
    }

    fn run_in(&self, region: &RegionMap) -> Outcome {
        let child = self
            .command(region)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (status, stdout, stderr) = wait(child, &format!("{} {:?}", self.path.display(), self.arguments));
        outcome(region, status, stdout, stderr)
    }

    /// A fork server for many runs.
    pub(crate) fn serve(&self) -> Server {
        self.serve_with(Instrumentation::default())
    }

    /// A fork server for many runs in which the given things are steps.
    pub(crate) fn serve_with(&self, wanted: Instrumentation) -> Server {
        let mut region = RegionMap::create().expect("a region");
        region.set_instrumentation(wanted);
        let (mut link, theirs) = ServerLink::pair().expect("a socket");
        let child = self
            .command(&region)
            .env(SERVER_VARIABLE, std::os::fd::AsRawFd::as_raw_fd(&theirs).to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        drop(theirs);
        link.wait_ready(PATIENCE).expect("the program reaches main");
        Server { child, link, region }
    }
}

fn compiler_of(file: &str) -> &'static str {
    match file.rsplit_once('.') {
        Some((_, "rs")) => "rustc",
        Some((_, "cpp")) => "g++",
        _ => "gcc",
    }
}

fn compiler(name: &str, file: &str, to: &Path) -> Command {
    let options: &[&str] = match file.rsplit_once('.') {
        Some((_, "rs")) => &["--edition=2024", "-Copt-level=1", "-Cdebuginfo=1"],
        Some((_, "cpp")) => &["-std=c++20", "-O1", "-g", "-pthread", "-rdynamic", "-Wall"],
        _ => &["-std=gnu17", "-O1", "-g", "-pthread", "-rdynamic", "-Wall"],
    };
    let mut command = Command::new(name);
    command.args(options).arg("-o").arg(to);
    command
}

/// FNV-1a: names a built program by its source.
fn fingerprint(text: &[u8]) -> u64 {
    text.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A program that waits in front of `main`.
pub(crate) struct Server {
    child: Child,
    link: ServerLink,
    pub(crate) region: RegionMap,
}

impl Server {
    /// One run in a child of the server; its output is not kept.
    pub(crate) fn run(&mut self, settings: Settings, parameters: &str) -> Outcome {
        self.region.prepare(settings, parameters).expect("parameters fit");
        let process = self.link.start(PATIENCE).expect("a run starts");
        let status = self.link.wait_end(PATIENCE).expect("the server answers");
        let Some(status) = status else {
            // SAFETY: the process is our grandchild and still runs.
            unsafe { libc::kill(process, libc::SIGKILL) };
            panic!("a run of seed {} hangs: {}", settings.seed, self.region.text());
        };
        outcome(&self.region, std::process::ExitStatus::from_raw(status), String::new(), String::new())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn outcome(region: &RegionMap, status: std::process::ExitStatus, stdout: String, stderr: String) -> Outcome {
    let report = region.report();
    Outcome {
        code: status.code(),
        signal: status.signal(),
        ending: region.ending(),
        stdout,
        stderr,
        text: region.text(),
        handed: region.handed(),
        begun: report.tally.runs.load(Ordering::Relaxed),
        steps: report.steps.load(Ordering::Relaxed),
        switches: report.switches.load(Ordering::Relaxed),
        threads: report.threads.load(Ordering::Relaxed),
        excursions: report.excursions.load(Ordering::Relaxed),
        switching: Switching::from_code(report.switching.load(Ordering::Relaxed)),
        partly_controlled: report.partly_controlled.load(Ordering::Relaxed) != 0,
        diverged: report.diverged.load(Ordering::Relaxed),
        schedule: region.schedule(),
    }
}

fn wait(mut child: Child, what: &str) -> (std::process::ExitStatus, String, String) {
    // Read all along: a program that says much would otherwise wait for a reader.
    let stdout = child.stdout.take().map(read_all);
    let stderr = child.stderr.take().map(read_all);
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{what} hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let text = |reader: Option<JoinHandle<String>>| {
        reader.map_or_else(String::new, |it| it.join().expect("a reader"))
    };
    (status, text(stdout), text(stderr))
}

fn read_all(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
