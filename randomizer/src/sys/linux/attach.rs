//! Finding out whether a process can be disturbed, without stopping it.

use std::io;

use crate::identity::{ProcessId, ThreadId};
use crate::refusal::TargetError;

use super::procfs;
use super::suspender::on_suspending_thread;
use super::tracee;

/// What to do when the system does not let us; `scope` is `kernel.yama.ptrace_scope`.
pub(super) fn permission_hint(scope: Option<u32>) -> &'static str {
    match scope {
        Some(1) => {
            "kernel.yama.ptrace_scope is 1, which allows it to ancestors only; start the program with \
             `waylay-randomizer -- COMMAND`, run as root, or set it to 0 with sysctl"
        }
        Some(2) => "kernel.yama.ptrace_scope is 2, which allows it to root only; run as root or set it to 0",
        Some(3) => "kernel.yama.ptrace_scope is 3, which forbids it to everyone until the next boot",
        _ => {
            "run as the user of that process or as root; in a container allow it with --cap-add=SYS_PTRACE; \
             a program that changed its user or is not dumpable can be traced by root only"
        }
    }
}

/// Checks that a process exists, is not one of ours, and can be traced.
pub(crate) fn check_target(pid: ProcessId) -> Result<(), TargetError> {
    if pid.0 == std::process::id() {
        return Err(TargetError::Own { pid });
    }
    let process = match procfs::status_number(&pid.to_string(), "Tgid") {
        Ok(process) => process.map(ProcessId),
        Err(_) => return Err(TargetError::NoSuchProcess { pid }),
    };
    if let Some(process) = process
        && process != pid
    {
        return Err(TargetError::IsThread { pid, process });
    }
    if procfs::ancestors().contains(&pid) {
        let name = procfs::thread_name(pid, ThreadId(pid.0)).unwrap_or_default();
        return Err(TargetError::Ancestor { pid, name });
    }
    // The first thread may have ended before the others.
    let alive = procfs::threads_of(pid).into_iter().find(|thread| procfs::is_alive(pid, *thread));
    let Some(thread) = alive else { return Err(TargetError::Ended { pid }) };
    if procfs::is_kernel_thread(pid) {
        return Err(TargetError::Kernel { pid });
    }
    if procfs::is_32_bit(pid) == Some(true) {
        return Err(TargetError::ThirtyTwoBit { pid });
    }
    try_to_trace(pid, thread)
}

/// Attaches without stopping, and lets go by ending the thread that attached.
fn try_to_trace(pid: ProcessId, thread: ThreadId) -> Result<(), TargetError> {
    let system = |action| move |source: io::Error| TargetError::System { action, pid, source };
    let result = on_suspending_thread(|| tracee::seize(thread)).map_err(system("start a thread to trace"))?;
    match result {
        Ok(()) => Ok(()),
        Err(_) if !procfs::is_alive(pid, thread) => Err(TargetError::Ended { pid }),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(match procfs::tracer_of(thread) {
            Some(tracer) => TargetError::Traced { pid, tracer },
            None => TargetError::Denied { pid, hint: permission_hint(procfs::ptrace_scope()) },
        }),
        Err(error) => Err(system("trace")(error)),
    }
}
