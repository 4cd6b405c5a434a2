//! Running the dump writer where it can do no harm.
//!
//! The writer waits for stops with a blocking `waitpid`. If the target dies at the wrong moment, that call
//! never returns, and the traced remains cannot be reaped by anyone. In a child of its own the writer can be
//! killed, and the kernel then releases everything it held.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use crash_context::CrashContext as WriterContext;
use minidump_writer::CrashContextExt;
use minidump_writer::minidump_writer::MinidumpWriterConfig;

use crate::crash::{CrashContext, FLOAT_STATE_LEN};
use crate::dump::{DumpError, DumpLimits};
use crate::identity::ProcessId;

use super::procfs;

/// Writes the dump to a new file.
pub(crate) fn write_dump(
    pid: ProcessId,
    path: &Path,
    crash: Option<&CrashContext>,
    limits: &DumpLimits,
) -> Result<(), DumpError> {
    let file_error = |action, source| DumpError::File { action, path: path.into(), source };
    let file = File::create(path).map_err(|source| file_error("create", source))?;
    let (reader, writer) = io::pipe().map_err(|source| file_error("open a pipe for", source))?;

    // SAFETY: the child runs only the code in `child`, which takes no lock that another thread of this
    // process could have held: it allocates (glibc makes its allocator usable after fork), reads `/proc`,
    // writes to its own descriptors and leaves with `_exit`. Should a hook or a library still deadlock
    // there, the parent kills it when the time is over.
    let forked = unsafe { libc::fork() };
    match forked {
        -1 => Err(file_error("fork a writer for", io::Error::last_os_error())),
        0 => child(pid, file, writer, crash, limits),
        child => {
            drop(writer);
            let child = Writer { pid: child, reaped: false };
            supervise(pid, path, child, reader, limits.timeout)
        }
    }
}

/// How long the kernel may take to end a writer.
const DEATH: Duration = Duration::from_secs(20);
/// Pause between two looks whether it has.
const PAUSE: Duration = Duration::from_micros(500);

/// The child that writes; killed and reaped at the latest when this is dropped.
struct Writer {
    pid: libc::pid_t,
    reaped: bool,
}

impl Writer {
    /// Waits for its end, which is near: it has said all that it says, or was killed. What the kernel holds fast for longer is left
    /// to it.
    fn wait(&mut self) -> bool {
        let mut status = 0;
        let until = Instant::now() + DEATH;
        loop {
            // SAFETY: asks about a child of ours that was not reaped before; `status` outlives the call.
            let result = unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) };
            if result == self.pid {
                self.reaped = true;
                return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
            }
            if result == 0 {
                if Instant::now() >= until {
                    return false;
                }
                std::thread::sleep(PAUSE);
            } else if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                self.reaped = true;
                return false;
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.reaped {
            // SAFETY: the child was not reaped, so its number cannot have been given to another process.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.wait();
        }
    }
}

/// Collects what the child says until it is done or its time is over.
fn supervise(
    pid: ProcessId,
    path: &Path,
    mut child: Writer,
    mut reader: io::PipeReader,
    timeout: Duration,
) -> Result<(), DumpError> {
    let deadline = Instant::now() + timeout;
    let mut reason = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            drop(child);
            // The writer stops the target with SIGSTOP and was killed before it could undo that.
            // SAFETY: sends a signal to a process by number; a stale number is an error, not unsafety.
            unsafe { libc::kill(pid.0 as libc::pid_t, libc::SIGCONT) };
            return Err(DumpError::Timeout { pid, timeout });
        }
        let mut poll = libc::pollfd { fd: reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let milliseconds = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).max(1);
        // SAFETY: one pollfd, owned by this frame, is passed with a count of one.
        if unsafe { libc::poll(&mut poll, 1, milliseconds) } <= 0 {
            continue;
        }
        let mut buffer = [0; 4096];
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => reason.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    if child.wait() {
        return Ok(());
    }
    let reason = match String::from_utf8_lossy(&reason).trim() {
        "" => "the writer died".to_owned(),
        said => said.to_owned(),
    };
    Err(DumpError::Write { pid, path: path.into(), reason })
}

/// The forked child: writes, reports and leaves.
fn child(
    pid: ProcessId,
    mut file: File,
    mut report: io::PipeWriter,
    crash: Option<&CrashContext>,
    limits: &DumpLimits,
) -> ! {
    // SAFETY: a plain request about this process; should the driver die, so does its writer.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let written = catch_unwind(AssertUnwindSafe(|| {
        stop_process(pid, limits.timeout / 2);
        // The number of any thread names its process; that of a first thread that has ended does not.
        let living = procfs::living_task(pid);
        let blamed = crash.map_or(living, |crash| crash.thread);
        let mut config = MinidumpWriterConfig::new(living.0 as libc::pid_t, blamed.0 as libc::pid_t);
        if let Some(context) = crash.and_then(|crash| writer_context(pid, crash)) {
            config.set_crash_context(CrashContextExt { inner: context });
        }
        if let Some(size) = limits.size {
            config.set_minidump_size_limit(size);
        }
        config.write(&mut file).map(|_| ()).map_err(|error| chain(&error))
    }));
    let failed = match written {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error),
        Err(_) => Some("the writer panicked".to_owned()),
    };
    if let Some(error) = &failed {
        // Without a reader there is nobody to tell.
        let _ = report.write_all(error.as_bytes());
    }
    // SAFETY: leaves without running the exit handlers and destructors, which belong to the parent.
    unsafe { libc::_exit(i32::from(failed.is_some())) }
}

/// Stops the target as a whole before its threads are attached to one by one. The writer waits only for
/// the first thread to stop; attaching to the others while they keep the processors busy takes seconds.
fn stop_process(pid: ProcessId, timeout: Duration) {
    let deadline = Instant::now() + timeout;
    // SAFETY: sends a signal to a process by number; the writer undoes it with SIGCONT.
    unsafe { libc::kill(pid.0 as libc::pid_t, libc::SIGSTOP) };
    while Instant::now() < deadline && !procfs::all_stopped(pid) {
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The writer's form of a crash context. The signal's address is put where the writer reads it from.
#[cfg(target_arch = "x86_64")]
fn writer_context(pid: ProcessId, crash: &CrashContext) -> Option<WriterContext> {
    let mut context = WriterContext::from_bytes(&[0; size_of::<WriterContext>()])?;
    context.pid = pid.0 as libc::pid_t;
    context.tid = crash.thread.0 as libc::pid_t;
    context.siginfo.ssi_signo = crash.signal as u32;
    context.siginfo.ssi_code = crash.code;
    context.siginfo.ssi_addr = crash.crash_address();
    for (target, value) in context.context.uc_mcontext.gregs.iter_mut().zip(crash.general) {
        *target = value as i64;
    }
    if let Some(float) = crash.float.as_deref() {
        fill_float(&mut context.float_state, float);
    }
    Some(context)
}

/// Copies the FXSAVE area field by field.
#[cfg(target_arch = "x86_64")]
fn fill_float(state: &mut crash_context::fpregset_t, bytes: &[u8; FLOAT_STATE_LEN]) {
    let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    state.cwd = short(0);
    state.swd = short(2);
    state.ftw = short(4);
    state.fop = short(6);
    state.rip = long(8);
    state.rdp = long(16);
    state.mxcsr = word(24);
    state.mxcr_mask = word(28);
    state.st_space.iter_mut().enumerate().for_each(|(index, value)| *value = word(32 + index * 4));
    state.xmm_space.iter_mut().enumerate().for_each(|(index, value)| *value = word(160 + index * 4));
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::identity::ThreadId;

    #[test]
    fn the_fault_address_reaches_the_writer() {
        let mut siginfo = [0; 24];
        siginfo[0] = 11;
        siginfo[8] = 1;
        siginfo[16] = 8;
        let mut ucontext = [0; 960];
        ucontext[40 + 16 * 8] = 0x77;
        let mut float = [0; FLOAT_STATE_LEN];
        float[160] = 5;
        let crash = CrashContext::from_bytes(ThreadId(3), &siginfo, &ucontext)
            .expect("whole")
            .with_float_state(float);
        let context = writer_context(ProcessId(2), &crash).expect("sizes agree");
        assert_eq!((context.siginfo.ssi_signo, context.siginfo.ssi_addr), (11, 8));
        assert_eq!((context.pid, context.tid), (2, 3));
        assert_eq!(context.context.uc_mcontext.gregs[16], 0x77);
        assert_eq!(context.float_state.xmm_space[0], 5);
    }
}
