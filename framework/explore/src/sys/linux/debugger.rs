//! A recorded failure under gdb.

use std::path::{Path, PathBuf};
use std::process::Command;

use waylay_control_protocol::{REGION_VARIABLE, RegionMap, Switching, cache_folder};
use waylay_schedule::Schedule;

use super::server::{ASAN_VARIABLE, asan_options, openmp_looks};
use crate::observed::to_stretches;
use crate::recording::StrictRecord;
use crate::server::{Guide, RunError, doing};

/// An instruction that was moved faults far from its function. The library moves it back, says so, and it faults again:
/// only that is shown.
const FAULTS: &str = "set breakpoint pending on
handle SIGSEGV SIGBUS SIGFPE SIGILL nostop noprint pass
break waylay_control_faulted
commands
silent
handle SIGSEGV SIGBUS SIGFPE SIGILL stop print pass
continue
end
";

/// A file with commands for gdb, beside what is kept between processes.
fn script(library: &Path, text: &str) -> Result<PathBuf, RunError> {
    let folder = cache_folder().or_else(|| library.parent().map(Path::to_owned)).unwrap_or_default();
    let path = folder.join("faults.gdb");
    doing("write commands for gdb", std::fs::write(&path, text))?;
    Ok(path)
}

/// A command that runs the schedule under gdb: every thread is a kernel thread that the debugger sees, and the library
/// is loaded into the program only. The region has to live as long as the debugger.
pub fn under_gdb(
    record: &StrictRecord,
    schedule: &Schedule,
    library: &Path,
) -> Result<(Command, RegionMap), RunError> {
    let mut region = record.conditions.region()?;
    let mut settings = record.conditions.settings_in(&mut region, record.seed, record.index);
    settings.switching = Switching::Baton as u32;
    // Time spent at the prompt is no computing.
    settings.preempt_ms = 0;
    settings.debugged = 1;
    Guide::repeating(&to_stretches(schedule), &record.parameters).prepare(&mut region, settings)?;
    let preload = format!("set environment LD_PRELOAD {}", library.display());
    let descriptor = format!("set environment {REGION_VARIABLE} {}", region.descriptor().unwrap_or(-1));
    let mut command = Command::new("gdb");
    waylay_driver::give_back_mask(&mut command);
    // Through a shell, the library would be loaded into the shell.
    command.args(["-q", "-ex", "set startup-with-shell off", "-ex", &preload, "-ex", &descriptor]);
    // The signals that preempt computing and blocked threads, in case a library was built to use them.
    command.args(["-ex", "handle SIG62 SIG63 nostop noprint pass"]);
    if record.conditions.run.patch {
        command.arg("-x").arg(script(library, FAULTS)?);
    }
    command.arg("--args").arg(&record.program.file).args(&record.program.arguments);
    command.current_dir(&record.program.folder);
    record.program.set_variables(&mut command);
    command.env(ASAN_VARIABLE, asan_options(&record.program));
    command.envs(openmp_looks(&record.program));
    Ok((command, region))
}
