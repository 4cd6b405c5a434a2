//! What `/proc` tells about a process and its threads without disturbing them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use crate::identity::{ProcessId, ThreadId};
use crate::refusal::Tracer;

/// The thread ids the kernel lists, dead but unreaped ones included; none if the process is gone.
pub(crate) fn threads_of(pid: ProcessId) -> Vec<ThreadId> {
    fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(ThreadId(entry.ok()?.file_name().to_str()?.parse().ok()?)))
        .collect()
}

/// A thread's name; none if it is gone.
pub(crate) fn thread_name(pid: ProcessId, thread: ThreadId) -> Option<String> {
    let mut buffer = [0; 64];
    let length = File::open(format!("/proc/{pid}/task/{thread}/comm")).ok()?.read(&mut buffer).ok()?;
    let name = &buffer[..length];
    Some(String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(name)).into_owned())
}

/// A process whose end is looked for again and again.
#[derive(Debug)]
pub(crate) struct Life {
    pid: ProcessId,
    /// Tells the end without reading files; none on kernels before 5.3, and when the process is gone already.
    handle: Option<OwnedFd>,
}

impl Life {
    /// Of this process.
    pub(crate) fn of(pid: ProcessId) -> Life {
        // SAFETY: takes two numbers and returns a new descriptor, closed on exec, or -1.
        let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.0, 0) };
        // SAFETY: just opened, owned by nobody else.
        let handle = (raw >= 0).then(|| unsafe { OwnedFd::from_raw_fd(raw as libc::c_int) });
        Life { pid, handle }
    }

    /// Whether the process is gone, or only its remains wait to be reaped.
    pub(crate) fn has_ended(&self) -> bool {
        let Some(handle) = &self.handle else { return has_ended(self.pid) };
        let mut look = libc::pollfd { fd: handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which lives across the call; a wait of no time returns at once.
        unsafe { libc::poll(&mut look, 1, 0) == 1 }
    }
}

/// Nanoseconds that the calling thread was on a processor.
pub(crate) fn own_processor_time() -> std::time::Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Whether a process has ended, by reading about all its threads.
fn has_ended(pid: ProcessId) -> bool {
    // The first thread mostly lives as long as its process, and looking at one is cheap.
    !is_alive(pid, ThreadId(pid.0)) && !threads_of(pid).into_iter().any(|thread| is_alive(pid, thread))
}

/// Whether a thread exists and has not ended.
pub(super) fn is_alive(pid: ProcessId, thread: ThreadId) -> bool {
    state(pid, thread).is_some_and(|letter| !matches!(letter, b'Z' | b'X' | b'x'))
}

/// The letter by which the kernel names a thread's state.
fn state(pid: ProcessId, thread: ThreadId) -> Option<u8> {
    // This is looked up many times a second. The kernel writes the line in one piece, and only its beginning counts.
    let mut buffer = [0; 512];
    let length = File::open(format!("/proc/{pid}/task/{thread}/stat")).ok()?.read(&mut buffer).ok()?;
    let stat = &buffer[..length];
    // The name before it may hold blanks and brackets, so the last bracket counts.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).copied()
}

/// A number of the status file of a process or thread.
pub(super) fn status_number(of: &str, key: &str) -> io::Result<Option<u32>> {
    let status = fs::read_to_string(format!("/proc/{of}/status"))?;
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse().ok();
    Ok(status.lines().find_map(value))
}

/// Who traces a thread, if anyone does.
pub(super) fn tracer_of(thread: ThreadId) -> Option<Tracer> {
    let tracing_thread = status_number(&thread.to_string(), "TracerPid").ok()??;
    let pid = status_number(&tracing_thread.to_string(), "Tgid").ok().flatten().unwrap_or(tracing_thread);
    (pid != 0).then(|| Tracer {
        pid: ProcessId(pid),
        name: thread_name(ProcessId(pid), ThreadId(pid))
            .unwrap_or_else(|| "a process that cannot be seen".into()),
    })
}

/// Our ancestors, parent first.
pub(super) fn ancestors() -> Vec<ProcessId> {
    let mut found: Vec<ProcessId> = Vec::new();
    let mut of = "self".to_owned();
    while let Ok(Some(parent)) = status_number(&of, "PPid")
        && parent != 0
        && !found.contains(&ProcessId(parent))
    {
        found.push(ProcessId(parent));
        of = parent.to_string();
    }
    found
}

/// Whether a process runs a 32-bit program; unknown when its file cannot be read.
pub(super) fn is_32_bit(pid: ProcessId) -> Option<bool> {
    let mut head = [0; 5];
    fs::File::open(format!("/proc/{pid}/exe")).ok()?.read_exact(&mut head).ok()?;
    // The fifth byte of an ELF file is its class: 1 for 32 bits, 2 for 64.
    (head[..4] == *b"\x7fELF").then_some(head[4] == 1)
}

/// Whether it is one of the kernel's own threads, which have no memory of their own.
pub(super) fn is_kernel_thread(pid: ProcessId) -> bool {
    fs::read(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.is_empty())
        && fs::read_link(format!("/proc/{pid}/exe")).is_err()
        && is_alive(pid, ThreadId(pid.0))
}

/// `kernel.yama.ptrace_scope`, on kernels that have it.
pub(super) fn ptrace_scope() -> Option<u32> {
    ptrace_scope_in(Path::new("/proc"))
}

fn ptrace_scope_in(proc: &Path) -> Option<u32> {
    fs::read_to_string(proc.join("sys/kernel/yama/ptrace_scope")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_threads_are_listed_with_their_names() {
        let pid = ProcessId(std::process::id());
        let name = std::thread::Builder::new()
            .name("a (strange) one".into())
            .spawn(move || {
                // SAFETY: returns a number.
                let own = ThreadId(unsafe { libc::gettid() } as u32);
                assert!(threads_of(pid).contains(&own));
                assert!(is_alive(pid, own));
                assert_eq!(tracer_of(own), None);
                thread_name(pid, own)
            })
            .expect("a thread")
            .join()
            .expect("no panic");
        assert_eq!(name.as_deref(), Some("a (strange) one"));
    }

    #[test]
    fn the_scope_of_tracing_is_read_and_each_is_explained() {
        let proc = std::env::temp_dir().join(format!("waylay-proc-{}", std::process::id()));
        assert_eq!(ptrace_scope_in(&proc), None, "a kernel without it");
        fs::create_dir_all(proc.join("sys/kernel/yama")).expect("a folder");
        for (text, scope, words) in [
            ("0\n", Some(0), "run as the user of that process or as root"),
            ("1\n", Some(1), "start the program with `waylay-randomizer -- COMMAND`"),
            ("2\n", Some(2), "root only"),
            ("3\n", Some(3), "until the next boot"),
            ("what\n", None, "run as the user of that process or as root"),
        ] {
            fs::write(proc.join("sys/kernel/yama/ptrace_scope"), text).expect("a file");
            let read = ptrace_scope_in(&proc);
            assert_eq!(read, scope);
            let denied = crate::refusal::TargetError::Denied {
                pid: ProcessId(7),
                hint: crate::sys::linux::attach::permission_hint(read),
            };
            assert!(denied.to_string().contains(words), "{denied}");
        }
        fs::remove_dir_all(proc).expect("removed");
    }

    #[test]
    fn the_end_of_a_process_is_seen_both_ways() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("sleep starts");
        let pid = ProcessId(child.id());
        let life = Life::of(pid);
        assert!(life.handle.is_some(), "this kernel has handles of processes");
        let by_reading = Life { pid, handle: None };
        assert!(!life.has_ended() && !by_reading.has_ended());
        child.kill().expect("killed");
        // Not reaped yet: only its remains are there.
        let began = std::time::Instant::now();
        while !life.has_ended() || !by_reading.has_ended() {
            assert!(began.elapsed().as_secs() < 60, "{} {}", life.has_ended(), by_reading.has_ended());
        }
        child.wait().expect("reaped");
        assert!(life.has_ended() && Life::of(pid).has_ended());
    }

    #[test]
    fn a_process_that_never_was_has_nothing() {
        let nobody = ProcessId(0x3fff_fffe);
        assert!(threads_of(nobody).is_empty());
        assert_eq!(thread_name(nobody, ThreadId(1)), None);
        assert!(!is_alive(nobody, ThreadId(nobody.0)));
        assert!(status_number("1073741822", "Tgid").is_err());
    }

    #[test]
    fn our_parent_is_our_first_ancestor_and_we_have_64_bits() {
        assert_eq!(ancestors().first().map(|pid| pid.0), Some(std::os::unix::process::parent_id()));
        assert_eq!(is_32_bit(ProcessId(std::process::id())), Some(cfg!(target_pointer_width = "32")));
    }
}
