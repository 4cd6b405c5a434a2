//! Linux: process groups, inherited descriptors, signals.

use std::fs;
use std::io;
pub(crate) use std::os::fd::AsFd as AsPipe;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Whether stores can wait in store buffers (`memory = "tso"`).
pub(crate) const STORES_CAN_WAIT: bool = true;

/// Whether plain accesses of plugins become steps by themselves where they conflict, unless a scenario says otherwise.
pub(crate) const LEARNS_PLACES: bool = true;

/// Variables that name the folder for temporary files.
pub(crate) const TEMPORARY_FOLDER: [&str; 1] = ["TMPDIR"];

/// The library of strict mode.
pub(crate) const CONTROL_LIBRARY: &str = "waylay_control";
/// Whether there is a library of strict mode for this system.
pub(crate) const KNOWS_STRICT: bool = cfg!(all(target_env = "gnu", target_arch = "x86_64"));
/// Whether hosts account for memory only with a library that is loaded before them.
pub(crate) const HEAP_NEEDS_LIBRARY: bool = true;

/// Prepares a command: its own process group (so that Ctrl-C reaches only the driver and one signal reaches all that
/// a test started), death with the driver, and these descriptors open in the child.
pub(crate) fn prepare(command: &mut Command, inherited: Vec<RawFd>) {
    let driver = std::process::id() as libc::pid_t;
    // SAFETY: the closure runs between fork and exec and makes only async-signal-safe calls.
    unsafe {
        command.pre_exec(move || {
            libc::setpgid(0, 0);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != driver {
                return Err(io::Error::other("the driver is gone"));
            }
            prefer_for_oom_killer();
            for fd in &inherited {
                if libc::fcntl(*fd, libc::F_SETFD, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

/// What new files of this process were not allowed before we restricted them; hosts get it back. Beyond every mask when
/// we have not.
static ORIGINAL_MASK: AtomicU32 = AtomicU32::new(u32::MAX);

/// Lets new files be read by those whom the mode names, and new folders be entered by the same.
pub(crate) fn restrict_new_files(mode: u32) {
    let folder = mode | (mode & 0o444) >> 2;
    // SAFETY: plain calls. A file that may not grow is an error of the write, which says so; the signal would only end us.
    let before = unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::umask((0o777 & !folder) as libc::mode_t)
    };
    let _ = ORIGINAL_MASK.compare_exchange(u32::MAX, before as u32, Ordering::Relaxed, Ordering::Relaxed);
}

/// Lets what a host makes have the permissions that it would have without us.
pub(crate) fn give_back_mask(command: &mut Command) {
    let before = ORIGINAL_MASK.load(Ordering::Relaxed);
    if before != u32::MAX {
        // SAFETY: the closure runs between fork and exec and makes only async-signal-safe calls.
        unsafe {
            command.pre_exec(move || {
                libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
                libc::umask(before as libc::mode_t);
                Ok(())
            });
        }
    }
}

/// Has the kernel end this process before others when memory runs out: it can be replaced, its driver cannot. Makes only
/// async-signal-safe calls.
fn prefer_for_oom_killer() {
    const SCORE: &[u8] = b"500";
    // SAFETY: a path that ends with a zero, bytes that live long enough, a descriptor that is closed again.
    unsafe {
        let fd = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if fd >= 0 {
            libc::write(fd, SCORE.as_ptr().cast(), SCORE.len());
            libc::close(fd);
        }
    }
}

/// Has the kernel end others before this process when memory runs out, as far as that is allowed.
fn spare_from_oom_killer() {
    // Only root may lower it; without, what hosts are given still decides.
    let _ = fs::write("/proc/self/oom_score_adj", "-500");
}

/// Whether the process that locked a file is gone, and only a child of it still holds the lock: one that was forked and has
/// not become its program yet, which closes the file. That takes long on a busy machine.
pub(crate) fn locker_is_dead(file: &fs::File) -> bool {
    let (Ok(locks), Ok(metadata)) = (fs::read_to_string("/proc/locks"), file.metadata()) else {
        return false;
    };
    let device = metadata.dev();
    let name = format!("{:02x}:{:02x}:{}", libc::major(device), libc::minor(device), metadata.ino());
    let owners = owners_of(&locks, &name);
    !owners.is_empty() && owners.iter().all(|owner| !Path::new("/proc").join(owner).exists())
}

/// Who locked the file of that name, as the kernel lists all locks.
fn owners_of<'a>(locks: &'a str, name: &str) -> Vec<&'a str> {
    let fields = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    // Number, kind, whether it is advisory, for what, process, file. Those that wait have an arrow behind the number.
    let owner = |fields: Vec<&'a str>| match fields[..] {
        [_, "FLOCK", _, _, owner, file, ..] if file == name => Some(owner),
        _ => None,
    };
    fields.filter_map(owner).collect()
}

/// Lets processes that we started outlive us, for a debugger: hosts that may are told so when they start.
pub(crate) fn let_outlive_us() {}

/// A pipe; both ends are closed in children unless passed on by [`prepare`].
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}

/// A look into a pipe that somebody else reads.
pub(crate) struct PipeLevel(OwnedFd);

impl PipeLevel {
    pub(crate) fn of(pipe: &impl AsPipe) -> io::Result<PipeLevel> {
        pipe.as_fd().try_clone_to_owned().map(PipeLevel)
    }

    /// Whether everything that was written has been read.
    pub(crate) fn is_empty(&self) -> bool {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the descriptor is ours, and the answer fits the place it is given.
        let asked = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::FIONREAD, &mut bytes) };
        asked != 0 || bytes == 0
    }
}

/// Waits until a read from the pipe would not wait: there is something, or its end.
pub(crate) fn wait_until_readable(pipe: &impl AsPipe) {
    let mut wanted = libc::pollfd { fd: pipe.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, which the caller keeps open. An interrupted wait is only an early one.
    unsafe { libc::poll(&mut wanted, 1, -1) };
}

pub(crate) fn raw(fd: &impl AsRawFd) -> RawFd {
    fd.as_raw_fd()
}

/// Kills a child and everything in its process group. The child still has to be waited for.
pub(crate) fn kill_group(child: &Child) {
    let pid = child.id() as libc::pid_t;
    // SAFETY: plain calls; the child is not yet waited for, so its number is still its own.
    unsafe {
        libc::kill(-pid, libc::SIGKILL);
        libc::kill(pid, libc::SIGKILL);
    }
}

/// Ends threads of a killed child that chose us as their tracer: their end waits until we have seen it.
pub(crate) fn let_go(child: &Child) {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", child.id())) else { return };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<libc::pid_t>().ok();
    for thread in threads.flatten().filter_map(number).filter(|thread| *thread as u32 != child.id()) {
        // SAFETY: a plain call; threads are waited for only if we trace them.
        unsafe { libc::waitpid(thread, std::ptr::null_mut(), libc::__WALL | libc::WNOHANG) };
    }
}

/// Ends what a host that is gone left behind in sessions of their own, and says what that was. Processes whose parents
/// have ended become ours ([`supervise`]); none that we start ourselves has a session of its own.
pub(crate) fn end_orphans(host: &Child) -> Vec<String> {
    waylay_interrupt::regard(host.id());
    let began = Instant::now();
    // Its group was killed; who had lost their parents became ours.
    // SAFETY: a plain call; the host itself was waited for.
    while unsafe { libc::waitpid(-(host.id() as i32), std::ptr::null_mut(), libc::WNOHANG) } >= 0
        && began.elapsed() < BURIAL
    {
        std::thread::yield_now();
    }
    let mut ended: Vec<String> = Vec::new();
    // Who dies may leave children that become ours only then.
    while let found = orphans_of(std::process::id())
        && !found.is_empty()
        && began.elapsed() < BURIAL
    {
        for (pid, name) in found {
            // SAFETY: a child of ours that nobody has waited for: its number is its own.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG);
            }
            if !ended.contains(&name) {
                ended.push(name);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    ended
}

/// Longest time for what was killed to be gone.
const BURIAL: Duration = Duration::from_secs(2);

/// Children in sessions of their own, with their names.
fn orphans_of(parent: u32) -> Vec<(i32, String)> {
    // SAFETY: plain calls.
    let (session, group) = unsafe { (libc::getsid(0), libc::getpgid(0)) };
    let Ok(tasks) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<i32> = lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    children
        .into_iter()
        .filter(|pid| {
            // SAFETY: plain calls.
            let (theirs, their_group) = unsafe { (libc::getsid(*pid), libc::getpgid(*pid)) };
            theirs > 0 && theirs != session && their_group != group
        })
        .map(|pid| (pid, name_of(pid)))
        .collect()
}

/// What a process is called, and its number. A test may have given it any bytes for a name.
pub(crate) fn name_of(pid: i32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{} ({pid})", String::from_utf8_lossy(&name).trim())
}

/// Kills a randomizer; the kernel lets go of what it held. The child still has to be waited for.
pub(crate) fn kill_randomizer(child: &Child) {
    kill_group(child);
}

/// Whether a child has ended; it still has to be waited for.
pub(crate) fn has_ended(child: &Child) -> bool {
    // SAFETY: an all-zero siginfo is a valid value to fill in, and the child is not yet waited for.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, child.id(), &mut info, options) == 0 && info.si_pid() != 0
    }
}

/// How a process ended, in words.
pub(crate) fn describe_exit(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by {}", signal_name(signal)),
        (None, Some(code)) => format!("exited with code {code}"),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

/// The signal that ended a process.
pub(crate) fn ending_signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Whether somebody killed a process.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(libc::SIGKILL)
}

/// Whether a signal can be a stack overflow; the address then decides.
pub(crate) fn may_be_overflow(signal: u32) -> bool {
    signal == libc::SIGSEGV as u32
}

/// Whether that is `abort`.
pub(crate) fn is_abort(signal: u32) -> bool {
    signal == libc::SIGABRT as u32
}

/// Whether a module that calls `abort` says why, where the host finds it.
pub(crate) fn leaves_a_message(module: &str) -> bool {
    module.rsplit('/').next().is_some_and(|file| file.starts_with("libc.so") || file.starts_with("libc-"))
}

/// `SIGSEGV` and so on.
pub(crate) fn signal_name(signal: i32) -> String {
    let known = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGSYS, "SIGSYS"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGVTALRM, "SIGVTALRM"),
        (libc::SIGPROF, "SIGPROF"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGIO, "SIGIO"),
        (libc::SIGPWR, "SIGPWR"),
        (libc::SIGSTKFLT, "SIGSTKFLT"),
    ];
    known
        .iter()
        .find(|(number, _)| *number == signal)
        .map_or_else(|| format!("signal {signal}"), |(_, n)| (*n).into())
}

/// The exit code after an abort.
static AFTER_ABORT: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_abort(_: libc::c_int) {
    const WORDS: &[u8] = b"waylay: memory ran out, or Waylay itself is wrong: what was found so far is kept. Is there a limit \
        (ulimit -v, a container's)?\n";
    super::give_back_terminal();
    // SAFETY: writes from memory that lives for ever and leaves without running anything; both are allowed in a handler.
    unsafe {
        libc::write(libc::STDERR_FILENO, WORDS.as_ptr().cast(), WORDS.len());
        libc::_exit(AFTER_ABORT.load(Ordering::Relaxed));
    }
}

/// From now on an abort of this process ends in a sentence and this exit code. Programs that it starts do not inherit that.
pub(crate) fn watch_for_abort(exit_code: u8) {
    AFTER_ABORT.store(exit_code.into(), Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int) = on_abort;
    // SAFETY: the handler is async-signal-safe.
    unsafe { libc::signal(libc::SIGABRT, handler as libc::sighandler_t) };
}

static LOOKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn on_look(_: libc::c_int) {
    LOOKS.store(1, Ordering::Relaxed);
}

/// From now on SIGUSR1 and SIGQUIT (Ctrl-\ on a terminal) ask what is running.
pub(crate) fn watch_for_looks() {
    // SAFETY: an all-zero sigaction is a valid value to fill in, and the handler only stores a word.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(libc::c_int) = on_look;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESTART;
        for signal in [libc::SIGUSR1, libc::SIGQUIT] {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Whether somebody has asked since the last call.
pub(crate) fn take_look() -> bool {
    LOOKS.swap(0, Ordering::Relaxed) != 0
}

/// Makes this process the one that outlives what it starts: orphans become its own, and memory that runs out ends others first.
pub(crate) fn supervise() {
    adopt_orphans();
    spare_from_oom_killer();
}

/// From now on whatever tests start and leave behind becomes ours, so that it can be found and ended.
pub(crate) fn adopt_orphans() {
    // SAFETY: a plain call.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// A command that attaches a debugger to a process.
pub(crate) fn attach_command(pid: u32) -> String {
    format!("gdb -p {pid}")
}

/// A command that ends a process.
pub(crate) fn end_command(pid: u32) -> String {
    format!("kill -9 {pid}")
}

/// What runs a command under a debugger, written before it.
pub(crate) const DEBUGGER: &str = "gdb --args";

/// The file in a failure's folder that runs it again.
pub(crate) const REPLAY_SCRIPT: &str = "replay.sh";

/// What is in it. The failure is found beside the script, because folders are moved and sent to others.
pub(crate) fn replay_script(command: &str) -> String {
    format!(
        "#!/bin/sh\n# Runs this failure again; where it was found that was\n#   {command}\n\
         exec waylay replay \"$(dirname -- \"$0\")\" \"$@\"\n"
    )
}

/// Lets a script be run by its name.
pub(crate) fn make_executable(path: &Path) {
    // A convenience: a file system without permissions does without. Who may read it may run it.
    if let Ok(metadata) = fs::metadata(path) {
        let mode = metadata.permissions().mode();
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode | (mode & 0o444) >> 2));
    }
}

/// Whether a library of that path can be named in LD_PRELOAD, whose entries blanks and colons divide.
pub(crate) fn can_be_loaded_first(library: &Path) -> bool {
    !library.as_os_str().as_encoded_bytes().iter().any(|byte| matches!(byte, b' ' | b':' | b'\t' | b'\n'))
}

/// Gives a file the name of another, which is gone then.
pub(crate) fn replace(file: &Path, name: &Path) -> io::Result<()> {
    fs::rename(file, name)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::process::Stdio;

    use super::*;

    /// The program `flock` takes the lock for the shell that started it, and ends.
    #[test]
    fn a_lock_that_only_heirs_hold_is_of_the_dead() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("marker");
        let mut heir = Command::new("sh")
            .args(["-c", "exec 9>\"$0\"; flock 9; echo locked; exec sleep 60"])
            .arg(&path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut said = [0; 7];
        heir.stdout.take().expect("piped").read_exact(&mut said).expect("the lock is taken");
        let file = File::open(&path).expect("it is there");
        let is_held = file.try_lock_shared().is_err();
        let is_dead = locker_is_dead(&file);
        heir.kill().expect("it is there");
        heir.wait().expect("it ends");
        assert!(is_held && is_dead, "held: {is_held}, its owner is dead: {is_dead}");

        let ours = File::create(folder.path().join("ours")).expect("writable");
        ours.lock().expect("nobody else has it");
        assert!(!locker_is_dead(&ours), "we live");
        ours.unlock().expect("it was ours");
        assert!(!locker_is_dead(&ours), "nobody holds it");
    }

    #[test]
    fn who_waits_for_a_lock_does_not_own_it() {
        let locks = "1: FLOCK  ADVISORY  WRITE 71 fe:00:12 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 72 fe:00:12 0 EOF\n\
                     2: POSIX  ADVISORY  READ 73 fe:00:12 0 EOF\n3: FLOCK  ADVISORY  READ 74 fe:00:120 0 EOF\n4: FLOCK";
        assert_eq!(owners_of(locks, "fe:00:12"), ["71"]);
    }
}
