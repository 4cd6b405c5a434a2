//! A whole suite, run once as its users run it, and watched from outside: when it had which threads.
//!
//! The kernel stops a thread that makes or ends one, and nothing else, so a suite takes as long as it always does. A thread
//! that is stopped writes nothing: how much output there is then tells which case was at work.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use waylay_driver::interrupt;

use crate::suite::first_pass::{Census, Moment, Patience};

/// Output beyond which it is ended: all of it is in memory, and a suite that works writes kilobytes.
pub(crate) const MOST_OUTPUT: u64 = 64 << 20;
/// Pause between two looks whether it still gets on.
const GLANCE: Duration = Duration::from_millis(50);

/// Runs a command whose output goes to `output`. Threads that the first one makes are not counted if `harness` is set. It is
/// ended when no case begins for as long as `patience`, and when it never stops writing.
pub(crate) fn census(
    mut command: Command,
    output: &File,
    harness: bool,
    patience: &Patience<'_>,
) -> io::Result<Option<Census>> {
    waylay_driver::give_back_mask(&mut command);
    command.process_group(0);
    // SAFETY: runs between fork and exec, and is one system call.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    let child = command.spawn()?;
    let main = child.id() as libc::pid_t;
    let over = AtomicBool::new(false);
    let late = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut unread, mut since) = (0, Instant::now());
            while !over.load(Ordering::Acquire) {
                let now = length_of(output);
                if a_case_began(output, &mut unread, patience.begun) {
                    since = Instant::now();
                }
                if since.elapsed() > patience.time || now > MOST_OUTPUT || interrupt::requested() {
                    late.store(true, Ordering::Release);
                    kill(main);
                }
                std::thread::park_timeout(GLANCE);
            }
        });
        let seen = watch(main, output, harness);
        over.store(true, Ordering::Release);
        // What it started and left behind.
        kill(main);
        let ended = !late.load(Ordering::Acquire);
        Ok(seen.map(|(moments, status)| Census { moments, ended, status }))
    })
}

fn kill(group: libc::pid_t) {
    // SAFETY: plain call. The group is our child's; when it is over, its number may be nobody's, which the kernel says.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

/// Whether a case began in what was written since the last time. A line that is not whole yet is read again: the beginning of a
/// case may be all that it has of it.
fn a_case_began(output: &File, unread: &mut u64, begun: &dyn Fn(&str) -> usize) -> bool {
    /// More at once is not read: one that writes for ever may have written any amount.
    const MOST: u64 = 1 << 20;
    let length = length_of(output);
    let mut bytes = vec![0; (length - *unread).min(MOST) as usize];
    if bytes.is_empty() || output.read_exact_at(&mut bytes, *unread).is_err() {
        return false;
    }
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
    let (lines, rest) = bytes.split_at(whole);
    let count = |bytes: &[u8]| begun(&String::from_utf8_lossy(bytes));
    // What stands behind the last line may have been counted before.
    let is_full = bytes.len() as u64 == MOST;
    *unread += if whole == 0 && is_full { MOST } else { whole as u64 };
    count(lines) > 0 || whole > 0 && count(rest) > 0
}

fn length_of(output: &File) -> u64 {
    output.metadata().map_or(0, |metadata| metadata.len())
}

/// Follows the process until its end, and says how it ended; nothing if the kernel does not let us.
fn watch(main: libc::pid_t, output: &File, harness: bool) -> Option<(Vec<Moment>, Option<ExitStatus>)> {
    let options = libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXIT
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    let mut known = BTreeSet::new();
    let mut counted = BTreeSet::new();
    let mut moments = Vec::new();
    let mut begun = false;
    loop {
        let mut status = 0;
        // SAFETY: plain call with a place for the status.
        let thread = unsafe { libc::waitpid(-main, &raw mut status, libc::__WALL) };
        if thread < 0 {
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => continue,
                _ => return begun.then_some((moments, None)),
            }
        }
        if !libc::WIFSTOPPED(status) {
            // The first thread's end is told when all others have ended.
            if thread == main {
                return begun.then(|| (moments, Some(ExitStatus::from_raw(status))));
            }
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        let mut pass_on = signal;
        match (signal, status >> 16) {
            _ if !begun => {
                begun = true;
                known.insert(thread);
                // SAFETY: the thread is stopped and ours.
                if unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, thread, 0, options) } != 0 {
                    kill(main);
                    return None;
                }
                pass_on = 0;
            }
            (libc::SIGTRAP, libc::PTRACE_EVENT_CLONE) => {
                pass_on = 0;
                let mut made: libc::c_ulong = 0;
                // SAFETY: the thread is stopped and ours; the number is written to a place for it.
                unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, thread, 0, &raw mut made) };
                if !harness || thread != main {
                    counted.insert(made as libc::pid_t);
                    moments.push(Moment { at: length_of(output) as usize, threads: counted.len() });
                }
            }
            (libc::SIGTRAP, libc::PTRACE_EVENT_EXIT) => {
                pass_on = 0;
                // The kernel may give its number to another.
                known.remove(&thread);
                if counted.remove(&thread) {
                    moments.push(Moment { at: length_of(output) as usize, threads: counted.len() });
                }
            }
            (libc::SIGTRAP, event) if event != 0 => pass_on = 0,
            // The first stop of a new thread.
            (libc::SIGSTOP, _) if known.insert(thread) => pass_on = 0,
            _ => {}
        }
        // SAFETY: the thread is stopped and ours; if it was killed meanwhile, the kernel says so.
        unsafe { libc::ptrace(libc::PTRACE_CONT, thread, 0, pass_on) };
    }
}
