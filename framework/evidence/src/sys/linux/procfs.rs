//! What `/proc` tells about a process and its threads without stopping them.

use std::fs;
use std::io;
use std::time::Duration;

use crate::identity::{ProcessId, ThreadId};
use crate::snapshot::{SchedulerState, Tracer};

/// What is known of a thread before it is stopped. Once stopped, the kernel only says "traced".
#[derive(Debug, Clone)]
pub(super) struct Activity {
    pub(super) name: String,
    pub(super) state: SchedulerState,
    pub(super) wait_channel: Option<String>,
    pub(super) cpu: Duration,
    pub(super) wakeups: u64,
}

/// The line of `/proc/PID/task/TID/syscall`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyscallLine {
    pub(super) number: Option<u64>,
    pub(super) arguments: [u64; 6],
    pub(super) stack: u64,
    pub(super) instruction: u64,
}

/// The text of a process's memory map; `NotFound` if the process has ended.
///
/// A thread gives its memory back before it counts as a zombie, so a state alone does not tell whether there
/// is a map to read: as long as any thread of the process shows one, it is the process's.
pub(crate) fn memory_map_text(pid: ProcessId) -> io::Result<String> {
    for thread in std::iter::once(ThreadId(pid.0)).chain(task_ids(pid)) {
        match fs::read(format!("/proc/{pid}/task/{thread}/maps")) {
            Ok(text) if text.is_empty() => {}
            Ok(text) => return Ok(String::from_utf8_lossy(&text).into_owned()),
            Err(error)
                if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "the process has ended"))
}

/// The living threads of a process, in order of creation; empty if it has ended.
pub(crate) fn threads_of(pid: ProcessId) -> Vec<ThreadId> {
    let mut threads: Vec<_> = task_ids(pid).filter(|thread| is_alive(pid, *thread)).collect();
    threads.sort_unstable();
    threads
}

/// A thread through which the process's memory can be reached. A process whose first thread has ended goes
/// on under that thread's number, but what belongs to the process is only found through a living one.
pub(super) fn living_task(pid: ProcessId) -> ThreadId {
    let first = ThreadId(pid.0);
    if is_alive(pid, first) {
        return first;
    }
    task_ids(pid).find(|thread| is_alive(pid, *thread)).unwrap_or(first)
}

/// The thread ids the kernel lists, zombies included.
pub(super) fn task_ids(pid: ProcessId) -> impl Iterator<Item = ThreadId> {
    fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(ThreadId(entry.ok()?.file_name().to_str()?.parse().ok()?)))
}

/// Whether a thread exists and has not ended.
pub(super) fn is_alive(pid: ProcessId, thread: ThreadId) -> bool {
    state_letter(pid, thread).is_some_and(|letter| !matches!(letter, b'Z' | b'X' | b'x'))
}

/// Whether no thread of a process runs or can be woken; true as well if it has ended.
pub(super) fn all_stopped(pid: ProcessId) -> bool {
    task_letters(pid).all(|letter| matches!(letter, b'T' | b't' | b'Z' | b'X' | b'x'))
}

/// The kernel's letters for the states of a process's threads.
pub(super) fn task_letters(pid: ProcessId) -> impl Iterator<Item = u8> {
    task_ids(pid).filter_map(move |thread| state_letter(pid, thread))
}

fn state_letter(pid: ProcessId, thread: ThreadId) -> Option<u8> {
    let stat = fs::read(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    stat_fields(&stat)?.next()?.first().copied()
}

/// The process group and the session of a process.
pub(super) fn group_and_session(pid: ProcessId) -> Option<(u32, u32)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // State and parent come first.
    let mut numbers = stat_fields(&stat)?.skip(2).map(|field| std::str::from_utf8(field).ok()?.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The fields of a `stat` line after the name. The name may hold blanks and brackets, so the last bracket
/// counts.
fn stat_fields(stat: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    Some(stat.get(end + 2..)?.split(|byte| *byte == b' '))
}

impl Activity {
    /// Reads what the kernel tells of a thread now; absent if it has ended.
    pub(super) fn of(pid: ProcessId, thread: ThreadId) -> Option<Activity> {
        let task = format!("/proc/{pid}/task/{thread}");
        let stat = fs::read(format!("{task}/stat")).ok()?;
        let name_start = stat.iter().position(|byte| *byte == b'(')? + 1;
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let mut fields = stat_fields(&stat)?;
        let state = match fields.next()?.first()? {
            b'R' => SchedulerState::Running,
            b'S' | b'I' => SchedulerState::Sleeping,
            b'D' => SchedulerState::Uninterruptible,
            b'T' | b't' => SchedulerState::Stopped,
            b'Z' | b'X' | b'x' => return None,
            _ => SchedulerState::Other,
        };
        let (cpu, wakeups) = schedstat(&task).unwrap_or_else(|| {
            // Fields 14 and 15 of the line, in ticks; the state was field 3.
            let ticks: u64 = fields
                .skip(10)
                .take(2)
                .filter_map(|field| std::str::from_utf8(field).ok()?.parse::<u64>().ok())
                .sum();
            (Duration::from_nanos(ticks.saturating_mul(nanoseconds_per_tick())), 0)
        });
        let wait_channel = fs::read_to_string(format!("{task}/wchan"))
            .ok()
            .filter(|channel| !channel.is_empty() && channel != "0");
        Some(Activity {
            name: String::from_utf8_lossy(stat.get(name_start..name_end)?).into_owned(),
            state,
            wait_channel,
            cpu,
            wakeups,
        })
    }
}

/// Processor time and number of turns on a processor, finer than the ticks of `stat`.
fn schedstat(task: &str) -> Option<(Duration, u64)> {
    let text = fs::read_to_string(format!("{task}/schedstat")).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let running = fields.next()?.parse().ok()?;
    let turns = fields.nth(1)?.parse().ok()?;
    Some((Duration::from_nanos(running), turns))
}

fn nanoseconds_per_tick() -> u64 {
    // SAFETY: sysconf only reads a constant of the system; no pointers are involved.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / u64::try_from(ticks).ok().filter(|ticks| *ticks > 0).unwrap_or(100)
}

/// The system call a thread is in, as the kernel prints it; absent while it runs.
pub(super) fn syscall_line(pid: ProcessId, thread: ThreadId) -> Option<SyscallLine> {
    parse_syscall(&fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall")).ok()?)
}

fn parse_syscall(text: &str) -> Option<SyscallLine> {
    let mut fields = text.split_ascii_whitespace();
    let number: i64 = fields.next()?.parse().ok()?;
    let values: Vec<u64> = fields
        .map(|field| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok())
        .collect::<Option<_>>()?;
    let (arguments, position) = match values.len() {
        8 => values.split_at(6),
        // Blocked, but not in a system call: a page fault, for one.
        2 => values.split_at(0),
        _ => return None,
    };
    Some(SyscallLine {
        number: u64::try_from(number).ok(),
        arguments: arguments.try_into().unwrap_or_default(),
        stack: position[0],
        instruction: position[1],
    })
}

/// Who traces a thread, if anyone does.
pub(crate) fn tracer_of(pid: ProcessId, thread: ThreadId) -> Option<Tracer> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).ok()?;
    let tracer: u32 = status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?.trim().parse().ok()?;
    (tracer != 0).then(|| Tracer {
        pid: ProcessId(tracer),
        name: fs::read_to_string(format!("/proc/{tracer}/comm"))
            .map_or_else(|_| "a process that cannot be seen".into(), |name| name.trim_end().into()),
    })
}

/// `kernel.yama.ptrace_scope`, on kernels that have it.
pub(super) fn ptrace_scope() -> Option<u32> {
    fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_call_has_arguments_and_position() {
        let line = parse_syscall("202 0x7f 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd10 0x7f20\n").expect("a call");
        assert_eq!(line.number, Some(202));
        assert_eq!(line.arguments[1], 0x189);
        assert_eq!((line.stack, line.instruction), (0x7f_fd10, 0x7f20));
    }

    #[test]
    fn a_page_fault_is_no_call() {
        let line = parse_syscall("-1 0x10 0x20").expect("a position");
        assert_eq!((line.number, line.stack, line.instruction), (None, 0x10, 0x20));
        assert_eq!(parse_syscall("running"), None);
    }

    #[test]
    fn our_own_thread_is_alive_and_running() {
        let pid = ProcessId(std::process::id());
        let threads = threads_of(pid);
        assert!(threads.contains(&ThreadId(pid.0)));
        let activity = Activity::of(pid, ThreadId(pid.0)).expect("alive");
        assert!(!activity.name.is_empty());
        assert_eq!(tracer_of(pid, ThreadId(pid.0)), None);
    }

    #[test]
    fn a_process_that_never_was_has_no_threads() {
        let nobody = ProcessId(0x3fff_fffe);
        assert!(threads_of(nobody).is_empty());
        assert!(memory_map_text(nobody).is_err());
    }
}
