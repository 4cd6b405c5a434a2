//! A process per schedule: Windows cannot fork, so the program is started anew for every run, suspended, and let go with
//! the control library in it.

use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use waylay_control_protocol::{Ending, REGION_VARIABLE, RegionMap, RunCopy, Settings};
use waylay_host::loader::missing_libraries;
use windows_sys::Win32::Foundation::{FILETIME, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{GetProcessTimes, WaitForSingleObject};

use super::injection;
use crate::guide::{Guide, RunError, doing};
use crate::observed::{Hang, Observed, heard};
use crate::program::Program;
use crate::recording::Conditions;
use crate::scratch::Workplace;
use crate::streams::Streams;

/// Makes Rust programs print the stack of a panic.
const BACKTRACE_VARIABLE: &str = "RUST_BACKTRACE";

/// The program's command with a region.
pub(crate) fn command(program: &Program, workplace: &Workplace, region: &RegionMap) -> Command {
    let mut command = Command::new(&program.file);
    command.args(&program.arguments);
    workplace.take_in(&mut command);
    // A panic would look for the names of its frames in the middle of a run, which takes longer than the run; every
    // failure has its stacks anyway. What the user asks for counts.
    command.env_remove(BACKTRACE_VARIABLE);
    program.set_variables(&mut command);
    command.env(REGION_VARIABLE, region.descriptor().unwrap_or(-1).to_string());
    command
}

/// Makes runs of a program.
#[derive(Debug)]
pub struct Server {
    program: Program,
    library: PathBuf,
    patience: Duration,
    pub(crate) region: RegionMap,
    /// What the last run told; nothing when that cannot be believed.
    pub(crate) told: Option<RunCopy>,
    streams: Streams,
    workplace: Workplace,
}

impl Server {
    /// Prepares runs under the given conditions.
    pub fn start(program: &Program, library: &Path, conditions: &Conditions) -> Result<Server, RunError> {
        Ok(Server {
            program: program.clone(),
            library: library.to_owned(),
            patience: conditions.patience(),
            region: conditions.region()?,
            told: None,
            streams: doing("prepare the program's input and output", Streams::new(program))?,
            workplace: doing("copy the program's folder", Workplace::new(program))?,
        })
    }

    /// The same: Windows chooses addresses by itself.
    pub(crate) fn start_elsewhere(
        program: &Program,
        library: &Path,
        conditions: &Conditions,
        _: u32,
    ) -> Result<Server, RunError> {
        Server::start(program, library, conditions)
    }

    /// One run in a process of its own.
    pub fn run(&mut self, settings: Settings, guide: Guide<'_>) -> Result<Observed, RunError> {
        doing("renew the folder of the run", self.workplace.tidy())?;
        guide.prepare(&mut self.region, settings)?;
        let mut command = command(&self.program, &self.workplace, &self.region);
        doing("connect the program's output", self.streams.connect(&mut command))?;
        let mut child = doing("start the program", injection::spawn(command, &self.library))?;
        let begun = Instant::now();
        let mut hung = None;
        let half = self.patience / 2;
        let mut ended = wait_for(&child, half);
        let before = self.region.own_steps_so_far();
        ended = ended || wait_for(&child, self.patience - half);
        if !ended {
            let at_work = self.region.has_gone_on_since(before);
            hung = Some(Hang { limit: self.patience, cpu: cpu_time(&child), at_work });
            kill(&mut child);
        }
        let status = doing("wait for the program", child.wait())?.code().unwrap_or(-1);
        let output = doing("read the program's output", self.streams.take())?;
        let told = heard(&self.region, begun.elapsed());
        let lent = told.as_ref().map(RunCopy::told).map_err(String::as_str);
        let observed = Observed::of(lent, status, output, hung);
        self.told = told.ok();
        if observed.corrupted.is_some() {
            // The next process shares other memory with us.
            self.region.renew()?;
            return Ok(observed);
        }
        let entered = self.region.report().switching.load(std::sync::atomic::Ordering::Relaxed) != 0;
        if observed.ending == Ending::Refused {
            return Err(RunError::Refused(observed.account.text()));
        }
        if !entered && settings.in_process == 0 && hung.is_none() {
            let lacks = missing_libraries(&self.program.file).map(|what| format!("it {what}"));
            return Err(RunError::NoMain {
                program: self.program.file.clone(),
                why: lacks.unwrap_or_else(|| observed.status.to_string()),
                stderr: observed.stderr_text(),
            });
        }
        Ok(observed)
    }

    /// Processor time that its runs have used: each is a process of its own, and nobody adds them up.
    pub(crate) fn spent(&self) -> Option<Duration> {
        None
    }

    /// How often the program had to be started again: there is no server that could die.
    pub fn restarts(&self) -> u64 {
        0
    }
}

/// Waits for the end of a process, or for so long; says whether it has ended.
fn wait_for(child: &Child, patience: Duration) -> bool {
    let milliseconds = patience.as_millis().min(u128::from(u32::MAX - 1)) as u32;
    // SAFETY: the handle is open.
    unsafe { WaitForSingleObject(child.as_raw_handle(), milliseconds) == WAIT_OBJECT_0 }
}

/// Kills a child and waits for it.
pub(crate) fn kill(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Processor time that a process has used.
pub(crate) fn cpu_time(child: &Child) -> Duration {
    let mut times = [FILETIME::default(); 4];
    let [created, exited, kernel, user] = &mut times;
    // SAFETY: four valid places for the answers.
    unsafe { GetProcessTimes(child.as_raw_handle(), created, exited, kernel, user) };
    let ticks = |time: &FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    Duration::from_nanos((ticks(&times[2]) + ticks(&times[3])) * 100)
}
