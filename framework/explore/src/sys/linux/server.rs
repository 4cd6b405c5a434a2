//! One fork server: the program, started once, waiting in front of `main` and forking a child per schedule.
//!
//! The server and everything that its runs start are one process group, which is killed as a whole. A run that does not
//! end by itself is killed; a server that dies is started again.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use waylay_control_protocol::{
    REGION_VARIABLE, RegionMap, Reply, RunCopy, SERVER_VARIABLE, SHIFT_VARIABLE, STAND_IN_VARIABLE,
    ServerError, ServerLink, Settings, cache_folder,
};

use waylay_driver::interrupt;

use super::stand_in;
use crate::guide::{Guide, RunError, doing};
use crate::observed::{Hang, Observed, heard};
use crate::program::Program;
use crate::recording::Conditions;
use crate::scratch::Workplace;
use crate::streams::Streams;

/// How long a program may take to reach `main`.
const START: Duration = Duration::from_secs(20);
/// Servers that one run may lose before that is told as an error: somebody who kills processes may hit the next one, too.
const ATTEMPTS: u32 = 5;
/// How long the kernel may take to end a killed process.
const DEATH: Duration = Duration::from_secs(20);
/// Pause between two looks whether a killed process is gone.
const PAUSE: Duration = Duration::from_millis(1);
/// Pause between two looks whether everything is to end, while a run is waited for.
pub(super) const GLANCE: Duration = Duration::from_millis(200);

/// Makes Rust programs print the stack of a panic.
const BACKTRACE_VARIABLE: &str = "RUST_BACKTRACE";
/// Options of a runtime that may be in the program.
pub(crate) const ASAN_VARIABLE: &str = "ASAN_OPTIONS";

/// How long threads of OpenMP look before they sleep, and the setting that also decides it.
const OPENMP_VARIABLE: &str = "GOMP_SPINCOUNT";
const OPENMP_POLICY: &str = "OMP_WAIT_POLICY";

/// Where one thread runs at a time, nothing changes while a thread looks: OpenMP's hundreds of thousands of looks would be
/// nothing but steps. What the user says counts.
pub(crate) fn openmp_looks(program: &Program) -> Option<(&'static str, &'static str)> {
    let given = |wanted: &str| {
        program.environment.iter().any(|(name, _)| name == wanted) || std::env::var_os(wanted).is_some()
    };
    let free = !given(OPENMP_VARIABLE) && !given(OPENMP_POLICY);
    free.then_some((OPENMP_VARIABLE, "1"))
}

/// AddressSanitizer insists on being loaded first, which is our place and does it no harm; and its search for leaks stops
/// all threads at the end of every run, from outside the schedule. What the user says comes last and counts.
pub(crate) fn asan_options(program: &Program) -> String {
    let given =
        program.environment.iter().rev().find(|(name, _)| name == ASAN_VARIABLE).map(|(_, value)| value);
    let given = given.cloned().or_else(|| std::env::var(ASAN_VARIABLE).ok()).unwrap_or_default();
    format!("verify_asan_link_order=0:detect_leaks=0:{given}")
}

/// The program's command with the control library and a region, in a process group of its own and with addresses that
/// do not change from start to start.
pub(crate) fn command(
    program: &Program,
    workplace: &Workplace,
    library: &Path,
    region: &RegionMap,
) -> Command {
    let mut command = Command::new(&program.file);
    waylay_driver::give_back_mask(&mut command);
    command.arg0(&program.name).args(&program.arguments);
    workplace.take_in(&mut command);
    // A panic would look for the names of its frames in the middle of a run, which takes longer than the run; every
    // failure has its stacks anyway. What the user asks for counts.
    command.env_remove(BACKTRACE_VARIABLE);
    program.set_variables(&mut command);
    let preload = match std::env::var("LD_PRELOAD") {
        Ok(others) if !others.is_empty() => format!("{}:{others}", library.display()),
        _ => library.display().to_string(),
    };
    command.env("LD_PRELOAD", preload);
    if let Some(name) = stand_in::wanted_by(&program.file)
        && let Some(cache) = cache_folder()
        && let Ok(folder) = stand_in::folder_with(library, &name, &cache)
    {
        let folder = folder.display().to_string();
        command.env(STAND_IN_VARIABLE, &folder);
        // An empty entry would be the current folder.
        command.env(
            "LD_LIBRARY_PATH",
            match std::env::var("LD_LIBRARY_PATH") {
                Ok(others) if !others.is_empty() => format!("{folder}:{others}"),
                _ => folder,
            },
        );
    }
    command.env(ASAN_VARIABLE, asan_options(program));
    command.envs(openmp_looks(program));
    command.env(REGION_VARIABLE, descriptor(region.descriptor().unwrap_or(-1)));
    command.env(SERVER_VARIABLE, descriptor(-1));
    // SAFETY: the closure runs between fork and exec and makes only async-signal-safe calls.
    unsafe {
        command.pre_exec(|| {
            libc::setpgid(0, 0);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            // Thousands of dying runs would fill the disk.
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            Ok(())
        });
    }
    command
}

/// A descriptor as a text that always takes the same room: the environment lies above the program's stack, and a process
/// that follows a schedule has to have the same addresses as the server that found it.
fn descriptor(number: i32) -> String {
    format!("{number:06}")
}

/// Starts a process from a thread that lives as long as this process does: the kernel ends the new one together with the
/// thread that started it, and workers come and go.
fn spawn_for_good(command: Command) -> io::Result<Child> {
    type Wish = (Command, Sender<io::Result<Child>>);
    static SPAWNER: Mutex<Option<Sender<Wish>>> = Mutex::new(None);
    let (answer, answered) = channel();
    let sent = {
        let mut spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
        if spawner.is_none() {
            let (wishes, wished) = channel::<Wish>();
            let work = move || {
                for (mut command, answer) in wished {
                    let _ = answer.send(command.spawn());
                }
            };
            std::thread::Builder::new().name("waylay-spawner".into()).spawn(work)?;
            *spawner = Some(wishes);
        }
        spawner.as_ref().is_some_and(|wishes| wishes.send((command, answer)).is_ok())
    };
    let gone = || io::Error::other("the thread that starts programs is gone");
    if !sent {
        return Err(gone());
    }
    answered.recv().map_err(|_| gone())?
}

/// A program that waits in front of `main`.
#[derive(Debug)]
pub struct Server {
    program: Program,
    library: PathBuf,
    pub(crate) patience: Duration,
    pub(crate) region: RegionMap,
    /// What the last run told; nothing when that cannot be believed.
    pub(crate) told: Option<RunCopy>,
    pub(crate) streams: Streams,
    workplace: Workplace,
    pub(crate) alive: Option<(Child, ServerLink)>,
    restarts: u64,
    /// Its memory lies where the kernel likes, and so many blocks further on.
    elsewhere: Option<u32>,
}

impl Server {
    /// Starts the program and waits until it is at `main`; runs are made under the given conditions.
    pub fn start(program: &Program, library: &Path, conditions: &Conditions) -> Result<Server, RunError> {
        Server::start_at(program, library, conditions, None)
    }

    /// The same with other addresses, different ones every time, and after so many blocks of the heap.
    pub(crate) fn start_elsewhere(
        program: &Program,
        library: &Path,
        conditions: &Conditions,
        blocks: u32,
    ) -> Result<Server, RunError> {
        Server::start_at(program, library, conditions, Some(blocks))
    }

    fn start_at(
        program: &Program,
        library: &Path,
        conditions: &Conditions,
        elsewhere: Option<u32>,
    ) -> Result<Server, RunError> {
        let streams = doing("prepare the program's input and output", Streams::new(program))?;
        let workplace = doing("copy the program's folder", Workplace::new(program))?;
        let mut server = Server {
            program: program.clone(),
            library: library.to_owned(),
            patience: conditions.patience(),
            region: conditions.region()?,
            told: None,
            streams,
            workplace,
            alive: None,
            restarts: 0,
            elsewhere,
        };
        server.begin()?;
        Ok(server)
    }

    /// Starts the program and waits until it is at `main`. One that somebody kills on its way there is started again.
    pub(crate) fn begin(&mut self) -> Result<(), RunError> {
        let mut attempts = 1;
        loop {
            match self.begin_once() {
                Err((_, true)) if attempts < ATTEMPTS => attempts += 1,
                ended => return ended.map_err(|(error, _)| error),
            }
        }
    }

    /// With an error: whether SIGKILL ended the program, which is hardly its own doing.
    fn begin_once(&mut self) -> Result<(), (RunError, bool)> {
        let plainly = |error: RunError| (error, false);
        let (mut link, theirs) =
            doing("make a socket for the fork server", ServerLink::pair()).map_err(plainly)?;
        let mut command = command(&self.program, &self.workplace, &self.library, &self.region);
        command.env(SERVER_VARIABLE, descriptor(theirs.as_raw_fd()));
        if let Some(blocks) = self.elsewhere {
            command.env(SHIFT_VARIABLE, blocks.to_string());
            // SAFETY: runs between fork and exec, and is one system call.
            unsafe {
                command.pre_exec(|| {
                    libc::personality(0);
                    Ok(())
                })
            };
        }
        doing("connect the program's output", self.streams.connect(&mut command)).map_err(plainly)?;
        let child = spawn_for_good(command);
        drop(theirs);
        let mut child = doing("start the program", child).map_err(plainly)?;
        if let Err(error) = link.wait_ready(START) {
            let ended = child.try_wait().ok().flatten();
            kill(&mut child);
            let stderr = self.streams.take().map(|(_, stderr)| stderr).unwrap_or_default();
            let killed = ended.is_some_and(|status| status.signal() == Some(libc::SIGKILL));
            let why = match ended {
                Some(status) => status.to_string(),
                None => {
                    format!("{error} (it may be linked without the loader's help, or hang in a constructor)")
                }
            };
            let error = RunError::NoMain {
                program: self.program.file.clone(),
                why,
                stderr: String::from_utf8_lossy(&stderr).into_owned(),
            };
            return Err((error, killed));
        }
        self.alive = Some((child, link));
        Ok(())
    }

    /// One run in a process of its own.
    pub fn run(&mut self, settings: Settings, guide: Guide<'_>) -> Result<Observed, RunError> {
        let mut attempts = 1;
        loop {
            match self.attempt(settings, guide) {
                Err(RunError::Server(_)) if attempts < ATTEMPTS => {
                    attempts += 1;
                    if let Some(observed) = self.overwritten()? {
                        return Ok(observed);
                    }
                    self.end();
                    self.restarts += 1;
                    self.begin()?;
                }
                other => return other,
            }
        }
    }

    fn attempt(&mut self, settings: Settings, guide: Guide<'_>) -> Result<Observed, RunError> {
        doing("renew the folder of the run", self.workplace.tidy())?;
        guide.prepare(&mut self.region, settings)?;
        let Some((server, link)) = &mut self.alive else {
            let gone = io::Error::from(io::ErrorKind::NotConnected);
            return Err(ServerError::Socket(gone).into());
        };
        let server = server.id() as libc::pid_t;
        let begun = Instant::now();
        let process = link.start(START)?;
        let mut hung = None;
        let half = self.patience / 2;
        let mut ended = wait_end(link, process, half);
        let before = self.region.own_steps_so_far();
        if let Ok(None) = ended {
            ended = wait_end(link, process, self.patience - half);
        }
        let ended = match ended {
            // The run goes on and would answer out of turn.
            Err(RunError::Interrupted) => {
                self.end();
                return Err(RunError::Interrupted);
            }
            other => other?,
        };
        let status = match ended {
            Some(status) => status,
            None => {
                let at_work = self.region.has_gone_on_since(before);
                hung = Some(Hang { limit: self.patience, cpu: cpu_ticks(process, OWN), at_work });
                // What writes to the socket may be the program, before main: its word must not have us kill somebody else. A run
                // that has just ended has no parent any more.
                match parent_of(process) {
                    Some(parent) if parent == server => {
                        // SAFETY: plain call; the server has not waited for the process, so the number is still its own.
                        unsafe { libc::kill(process, libc::SIGKILL) };
                    }
                    Some(_) => {
                        let told = Some(Reply::Started(process));
                        return Err(ServerError::Unexpected(told, "a child of the fork server").into());
                    }
                    None => {}
                }
                let late = io::Error::from(io::ErrorKind::TimedOut);
                link.wait_end(DEATH)?.ok_or(ServerError::Socket(late))?
            }
        };
        let output = doing("read the program's output", self.streams.take())?;
        let observed = self.hear(begun.elapsed(), status, output, hung)?;
        if observed.ending == waylay_control_protocol::Ending::Refused {
            return Err(RunError::Refused(observed.account.text()));
        }
        Ok(observed)
    }

    /// Takes in what the run told that just ended. After one that cannot be believed there is no trust in the memory that was
    /// shared with it, nor in the process that it came from.
    fn hear(
        &mut self,
        age: Duration,
        status: i32,
        output: (Vec<u8>, Vec<u8>),
        hung: Option<Hang>,
    ) -> Result<Observed, RunError> {
        let told = heard(&self.region, age);
        let lent = told.as_ref().map(RunCopy::told).map_err(String::as_str);
        let observed = Observed::of(lent, status, output, hung);
        self.told = told.ok();
        if observed.corrupted.is_some() {
            self.start_over()?;
        }
        Ok(observed)
    }

    /// A run that took the fork server with it, if it wrote over the memory that it shares with us.
    fn overwritten(&mut self) -> Result<Option<Observed>, RunError> {
        if heard(&self.region, Duration::MAX).is_ok() {
            return Ok(None);
        }
        let ended = self.alive.as_mut().and_then(|(child, _)| child.try_wait().ok().flatten());
        let output = doing("read the program's output", self.streams.take())?;
        let status = ended.map_or(libc::SIGKILL, ExitStatusExt::into_raw);
        Ok(Some(self.hear(Duration::MAX, status, output, None)?))
    }

    /// Ends the program, and shares other memory with the next one.
    pub(crate) fn start_over(&mut self) -> Result<(), RunError> {
        self.end();
        Ok(self.region.renew()?)
    }

    /// Processor time that its runs have used, as far as that is known.
    pub(crate) fn spent(&self) -> Option<Duration> {
        let (child, _) = self.alive.as_ref()?;
        // Its own two, and those of the children that it has waited for.
        Some(cpu_ticks(child.id() as i32, 4))
    }

    /// How often the program had to be started again.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Kills the program.
    pub(crate) fn end(&mut self) {
        if let Some((mut child, _)) = self.alive.take() {
            kill(&mut child);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits for the end of a run, unless everything is to end before. Time that a busy machine did not give to the process does not
/// count.
fn wait_end(
    link: &mut ServerLink,
    process: libc::pid_t,
    patience: Duration,
) -> Result<Option<i32>, RunError> {
    let begun = Instant::now();
    let mut until = begun + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if let Some(status) = link.wait_end(left.min(GLANCE))? {
            return Ok(Some(status));
        }
        if left <= GLANCE {
            let more = owed(begun.elapsed(), starved(process), patience);
            if more.is_zero() {
                return Ok(None);
            }
            until = Instant::now() + more + GLANCE;
        }
        if interrupt::requested() {
            return Err(RunError::Interrupted);
        }
    }
}

/// How long a run is waited for beyond the time that has passed, if so much of that was spent in the queue of a processor.
fn owed(passed: Duration, starved: Duration, patience: Duration) -> Duration {
    /// A machine that gives a run a tenth of its time is no machine to wait for.
    const MOST: u32 = 10;
    if passed >= patience * MOST {
        return Duration::ZERO;
    }
    patience.saturating_sub(passed.saturating_sub(starved))
}

/// How long the threads of a process could have run and were not let. Nothing where the kernel does not tell.
fn starved(process: libc::pid_t) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let waited = |text: String| text.split_whitespace().nth(1)?.parse::<u64>().ok();
    let of = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("schedstat")).ok();
    Duration::from_nanos(threads.filter_map(of).filter_map(waited).sum())
}

/// Kills a child and all that is in its process group, and waits for it, but not for ever: what the kernel cannot end
/// must not hold us up.
pub(crate) fn kill(child: &mut Child) {
    let group = child.id() as libc::pid_t;
    // SAFETY: plain call; the child is not yet waited for, so the number of its group is still its own.
    unsafe { libc::kill(-group, libc::SIGKILL) };
    let _ = child.kill();
    wait_for_death(child);
}

/// Waits for the end of a process that has been killed, or is about to end, for a limited time.
pub(super) fn wait_for_death(child: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + DEATH;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < until => {}
            Ok(status) => return status,
            Err(_) => return None,
        }
        bury_traced(child.id());
        std::thread::sleep(PAUSE);
    }
}

/// A thread that one of our threads traces has to be waited for by us when it is dead, or the kernel does not say that
/// its process is.
fn bury_traced(process: u32) {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return };
    let numbers = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse::<i32>().ok());
    for thread in numbers.filter(|&thread| thread != process as i32) {
        // SAFETY: asks about one thread, and nothing is written.
        unsafe { libc::waitpid(thread, std::ptr::null_mut(), libc::__WALL | libc::WNOHANG) };
    }
}

/// Whose child a process is, also one that has ended and was not waited for.
fn parent_of(process: i32) -> Option<libc::pid_t> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The fourth of all fields; the name may hold anything but ends with the last parenthesis.
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

/// Processor time that a process has used.
pub(crate) fn cpu_time(child: &Child) -> Duration {
    cpu_ticks(child.id() as i32, OWN)
}

/// Of the times that [`cpu_ticks`] adds up, those that are a process's own.
const OWN: usize = 2;

/// The first so many of utime, stime, cutime and cstime, together.
fn cpu_ticks(process: i32, kinds: usize) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The fields after the name, which may hold anything but ends with the last parenthesis: utime and stime are the
    // 14th and 15th of all, the 12th and 13th of these.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(11).take(kinds).filter_map(|field| field.parse::<u64>().ok()).sum();
    // SAFETY: plain call.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
    Duration::from_secs_f64(ticks as f64 / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_children_of_the_server_are_its_runs() {
        let own = std::process::id() as libc::pid_t;
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(parent_of(child.id() as i32), Some(own));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((parent_of(child.id() as i32), parent_of(-1)), (None, None));
        assert_ne!(parent_of(1), Some(own));
    }

    #[test]
    fn time_in_the_queue_of_a_processor_does_not_count() {
        let seconds = Duration::from_secs;
        assert_eq!(owed(seconds(10), seconds(0), seconds(10)), seconds(0));
        assert_eq!(owed(seconds(10), seconds(9), seconds(10)), seconds(9));
        assert_eq!(owed(seconds(30), seconds(20), seconds(10)), seconds(0));
        assert_eq!(owed(seconds(100), seconds(99), seconds(10)), seconds(0), "not for ever");
        assert!(starved(std::process::id() as libc::pid_t) < seconds(3600));
    }
}
