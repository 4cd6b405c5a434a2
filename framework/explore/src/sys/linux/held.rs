//! Holding a process at the instruction where it ends.
//!
//! The process is traced from its first instruction, because a fatal signal leaves no time to attach. It is stopped at a
//! signal that nobody handles, or when it asks the kernel to end it (a filter makes that call stop), or, if that is asked for,
//! when it writes to its standard error output that it panicked. Then the call is turned into a wait, the process is stopped
//! as a whole and let go, so that evidence can be taken by anyone.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use waylay_control_protocol::RegionMap;
use waylay_driver::interrupt;
use waylay_evidence::{CrashContext, MemoryMap, ProcessId, ThreadId};

use super::server::command;
use crate::held::{HoldAt, Stop};
use crate::program::Program;
use crate::scratch::Workplace;
use crate::streams::Streams;

/// Pause between two looks at the traced threads.
const PAUSE: Duration = Duration::from_micros(100);
/// How long a thread may take to stop before it is left as it is.
const STOP: Duration = Duration::from_secs(2);

/// How long evidence may still be waited for when everything is to end.
const GRACE: Duration = Duration::from_secs(3);

/// The kernel's request of that name, which libc lacks.
const SET_SIGNAL_MASK: libc::c_uint = 0x420b;

/// What `waitpid` says of a process that did not end and was killed.
pub(crate) const LATE_STATUS: i32 = libc::SIGKILL;

/// The same of one that ended itself.
pub(crate) fn exit_status(status: i32) -> i32 {
    (status & 0xff) << 8
}

/// What a Rust program ends with whose main thread panicked.
const PANIC_STATUS: i32 = 101;

/// Starts the program, traced by the calling thread.
pub(crate) fn start(
    program: &Program,
    workplace: &Workplace,
    library: &Path,
    region: &RegionMap,
    streams: &Streams,
    at: HoldAt,
) -> io::Result<Child> {
    let mut command = command(program, workplace, library, region);
    streams.connect(&mut command)?;
    trace_from_start(&mut command, at);
    command.spawn()
}

/// Follows it until it is to end, and holds it there; with its threads in the order of their creation.
pub(crate) fn follow(
    child: &mut Child,
    region: &RegionMap,
    until: Instant,
) -> io::Result<(Stop, Vec<ThreadId>)> {
    let process = child.id() as i32;
    let mut tracing = Tracing {
        process,
        threads: vec![process],
        known: Vec::new(),
        expected: Vec::new(),
        faults: Vec::new(),
        region,
    };
    let stop = tracing.follow(until)?;
    Ok((stop, tracing.threads.iter().map(|&thread| ThreadId(thread as u32)).collect()))
}

/// Makes the command stop right after exec, whenever it ends itself, and whenever it writes to its standard error output if that
/// is to be looked at.
fn trace_from_start(command: &mut Command, at: HoldAt) {
    /// A number that no call of the kernel has.
    const NO_CALL: u32 = u32::MAX;
    let watched = if at == HoldAt::Panic { libc::SYS_write as u32 } else { NO_CALL };
    // SAFETY: the closure runs between fork and exec and makes only async-signal-safe calls; the filter lives on its
    // stack while the kernel copies it.
    unsafe {
        command.pre_exec(move || {
            let instruction = |code: u32, k: u32, jt, jf| libc::sock_filter { code: code as u16, jt, jf, k };
            let mut filter = [
                // The number of the call is the first word of what the filter sees.
                instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
                instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_exit_group as u32, 4, 0),
                instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, watched, 0, 2),
                // The first argument: a number, an address and six arguments make up what it sees.
                instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 16, 0, 0),
                instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::STDERR_FILENO as u32, 1, 0),
                instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
                instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_TRACE, 0, 0),
            ];
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
            if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
            {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

struct Tracing<'a> {
    /// Says which instructions of the program are executed elsewhere.
    region: &'a RegionMap,
    process: i32,
    /// Threads of the process in the order of creation.
    threads: Vec<i32>,
    /// Everything that is traced and has reported once, threads of other processes too.
    known: Vec<i32>,
    /// What is traced from its creation on and has not reported yet.
    expected: Vec<i32>,
    /// The last fault of each thread that a handler was called for, with the stack pointer at that moment.
    faults: Vec<(CrashContext, u64)>,
}

/// One report of the kernel.
struct Report {
    thread: i32,
    status: i32,
}

impl Report {
    fn is_stop(&self) -> bool {
        libc::WIFSTOPPED(self.status)
    }
    fn signal(&self) -> i32 {
        libc::WSTOPSIG(self.status)
    }
    fn event(&self) -> i32 {
        self.status >> 16
    }
}

impl Tracing<'_> {
    fn follow(&mut self, until: Instant) -> io::Result<Stop> {
        let mut asked: Option<Instant> = None;
        loop {
            let Some(report) = next_report(-1)? else {
                if Instant::now() >= until {
                    self.stop_others(0);
                    return Ok(Stop::Late);
                }
                if interrupt::requested() && *asked.get_or_insert_with(Instant::now) + GRACE < Instant::now()
                {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                std::thread::sleep(PAUSE);
                continue;
            };
            if !report.is_stop() {
                if report.thread == self.process {
                    return Ok(Stop::Gone(report.status));
                }
                self.known.retain(|&thread| thread != report.thread);
                continue;
            }
            if let Some(stop) = self.stopped(&report)? {
                return Ok(stop);
            }
        }
    }

    /// Deals with a stop; the last one is the result.
    fn stopped(&mut self, report: &Report) -> io::Result<Option<Stop>> {
        let thread = report.thread;
        let first = !self.known.contains(&thread);
        if first {
            self.known.push(thread);
            self.expected.retain(|&expected| expected != thread);
        }
        match report.event() {
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                let created = self.created_by(report).filter(|created| !self.known.contains(created));
                self.expected.extend(created);
            }
            libc::PTRACE_EVENT_SECCOMP if self.owns(thread) => {
                let mut registers = registers_of(thread)?;
                let writes = registers.orig_rax == libc::SYS_write as u64;
                if writes && !says_that_it_panicked(self.process, &registers) {
                    let _ = request(libc::PTRACE_CONT, thread, 0, 0);
                    return Ok(None);
                }
                let status = if writes { PANIC_STATUS } else { registers.rdi as i32 };
                registers.orig_rax = libc::SYS_pause as u64;
                request(libc::PTRACE_SETREGS, thread, 0, &raw const registers as usize)?;
                block_signals(thread)?;
                self.stop_others(thread);
                // SAFETY: plain call. The stop takes effect in the wait that the call was turned into.
                unsafe { libc::syscall(libc::SYS_tgkill, self.process, thread, libc::SIGSTOP) };
                let _ = request(libc::PTRACE_DETACH, thread, 0, 0);
                return Ok(Some(Stop::Exit { thread: ThreadId(thread as u32), status }));
            }
            0 if first && thread == self.process => {
                let options = libc::PTRACE_O_TRACECLONE
                    | libc::PTRACE_O_TRACEFORK
                    | libc::PTRACE_O_TRACEVFORK
                    | libc::PTRACE_O_TRACESECCOMP
                    | libc::PTRACE_O_EXITKILL;
                request(libc::PTRACE_SETOPTIONS, thread, 0, options as usize)?;
            }
            // What is created under tracing begins with a stop of the tracer's own making.
            0 if first && report.signal() == libc::SIGSTOP => {}
            0 => {
                const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
                let owned = self.owns(thread);
                if owned && is_fatal(thread, report.signal()) {
                    let crash = self.crash_of(thread, report.signal())?;
                    self.stop_others(thread);
                    park(self.process, thread)?;
                    // The stop in the signal's place.
                    request(libc::PTRACE_DETACH, thread, 0, libc::SIGSTOP as usize)?;
                    return Ok(Some(Stop::Signal(Box::new(crash))));
                }
                if owned && FAULTS.contains(&report.signal()) {
                    let crash = crash_of(thread, |rip| origin_of(self.process, self.region, rip))?;
                    self.faults.retain(|(known, _)| known.thread != crash.thread);
                    self.faults.push((crash, registers_of(thread)?.rsp));
                }
                let _ = request(libc::PTRACE_CONT, thread, 0, report.signal() as usize);
                return Ok(None);
            }
            _ => {}
        }
        // A thread that is killed inside its stop does not mind that it cannot go on.
        let _ = request(libc::PTRACE_CONT, thread, 0, 0);
        Ok(None)
    }

    /// Where a fatal signal hit. A fault in a handler, on the stack that was set up for handlers, has a cause: the fault that the
    /// handler was called for is where to look.
    fn crash_of(&mut self, thread: i32, signal: i32) -> io::Result<CrashContext> {
        let now = crash_of(thread, |rip| origin_of(self.process, self.region, rip))?;
        let stack = registers_of(thread)?.rsp;
        let known =
            self.faults.iter().position(|(first, _)| first.thread == now.thread && first.signal == signal);
        let Some((first, before)) = known.map(|place| self.faults.swap_remove(place)) else { return Ok(now) };
        let map = MemoryMap::of(ProcessId(self.process as u32)).unwrap_or_default();
        let mapping = |address: u64| map.find(address).map(|mapping| mapping.start);
        Ok(if mapping(stack) == mapping(before) { now } else { first })
    }

    /// The thread or process that this stop announces.
    fn created_by(&mut self, report: &Report) -> Option<i32> {
        let event = report.event();
        if ![libc::PTRACE_EVENT_CLONE, libc::PTRACE_EVENT_FORK, libc::PTRACE_EVENT_VFORK].contains(&event) {
            return None;
        }
        let mut created: libc::c_ulong = 0;
        // One that was killed in its stop cannot be asked, and has made nothing that outlives it.
        request(libc::PTRACE_GETEVENTMSG, report.thread, 0, &raw mut created as usize).ok()?;
        if event == libc::PTRACE_EVENT_CLONE && self.owns(report.thread) {
            self.threads.push(created as i32);
        }
        Some(created as i32)
    }

    /// Whether the thread is one of the process, and not of one that it started.
    fn owns(&self, thread: i32) -> bool {
        thread == self.process
            || self.threads.contains(&thread)
            || Path::new(&format!("/proc/{}/task/{thread}", self.process)).exists()
    }

    /// Stops and lets go of every thread but one, which the caller deals with.
    fn stop_others(&mut self, but: i32) {
        let traced = self.known.iter().chain(&self.expected).copied();
        let mut others: Vec<i32> = traced.filter(|&thread| thread != but).collect();
        while let Some(thread) = others.pop() {
            let process = if self.owns(thread) { self.process } else { thread };
            // SAFETY: plain call.
            unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGSTOP) };
            let until = Instant::now() + STOP;
            while Instant::now() < until {
                match next_report(thread) {
                    Ok(Some(report)) if report.is_stop() => {
                        // What it has just made is traced, too, and would be for ever.
                        others.extend(self.created_by(&report));
                        let stopped = report.event() == 0 && report.signal() == libc::SIGSTOP;
                        let signal = if stopped { libc::SIGSTOP } else { 0 };
                        let _ = request(libc::PTRACE_DETACH, thread, 0, signal as usize);
                        break;
                    }
                    Ok(None) => std::thread::sleep(PAUSE),
                    _ => break,
                }
            }
        }
    }
}

/// What the kernel has to report about children and tracees of this thread.
fn next_report(thread: i32) -> io::Result<Option<Report>> {
    const OF_THIS_THREAD: i32 = 0x2000_0000;
    let mut status = 0;
    // SAFETY: the kernel writes one integer.
    let found =
        unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL | OF_THIS_THREAD | libc::WNOHANG) };
    match found {
        0 => Ok(None),
        -1 => Err(io::Error::last_os_error()),
        thread => Ok(Some(Report { thread, status })),
    }
}

fn request(what: libc::c_uint, thread: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the callers pass addresses of locals of the size that the request reads or writes.
    match unsafe { libc::ptrace(what, thread, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn registers_of(thread: i32) -> io::Result<libc::user_regs_struct> {
    // SAFETY: plain integers; all zero is valid.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    request(libc::PTRACE_GETREGS, thread, 0, &raw mut registers as usize)?;
    Ok(registers)
}

/// Whether the text that a thread is about to write is the head of a Rust panic's message.
fn says_that_it_panicked(process: i32, write: &libc::user_regs_struct) -> bool {
    use std::os::unix::fs::FileExt;
    /// More than the head can be: the name of the thread is in it.
    const HEAD: u64 = 512;
    let mut text = vec![0; write.rdx.min(HEAD) as usize];
    let memory = std::fs::File::open(format!("/proc/{process}/mem"));
    let read = memory.and_then(|memory| memory.read_exact_at(&mut text, write.rsi));
    let text = String::from_utf8_lossy(&text);
    read.is_ok() && text.trim_start().starts_with("thread '") && text.contains(" panicked at ")
}

/// A handler that runs while a thread is held would end its wait.
fn block_signals(thread: i32) -> io::Result<()> {
    let blocked = u64::MAX;
    request(SET_SIGNAL_MASK, thread, size_of_val(&blocked), &raw const blocked as usize)
}

/// Makes a thread wait for ever should anybody let it go on: dump writers do, and at its old place it would raise its
/// signal again. What it looked like there is known by now.
fn park(process: i32, thread: i32) -> io::Result<()> {
    let Some(call) = system_call_instruction(process) else { return Ok(()) };
    let mut registers = registers_of(thread)?;
    (registers.rip, registers.rax, registers.orig_rax) = (call, libc::SYS_pause as u64, u64::MAX);
    request(libc::PTRACE_SETREGS, thread, 0, &raw const registers as usize)?;
    block_signals(thread)
}

/// The address of an instruction that calls the kernel, in the code that the kernel gives to every process.
fn system_call_instruction(process: i32) -> Option<u64> {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
    let (start, end) =
        maps.lines().find(|line| line.ends_with("[vdso]"))?.split(' ').next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut code = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    std::fs::File::open(format!("/proc/{process}/mem")).ok()?.read_exact_at(&mut code, start).ok()?;
    Some(start + code.windows(2).position(|pair| pair == [0x0f, 0x05])? as u64)
}

/// Whether the signal ends the process: nobody catches or ignores it, and that is what it does by default.
fn is_fatal(thread: i32, signal: i32) -> bool {
    const HARMLESS: [i32; 8] = [
        libc::SIGCHLD,
        libc::SIGCONT,
        libc::SIGURG,
        libc::SIGWINCH,
        libc::SIGSTOP,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
    ];
    if HARMLESS.contains(&signal) || !(1..=64).contains(&signal) {
        return false;
    }
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| u64::from_str_radix(value.trim(), 16).ok()).unwrap_or(0)
    };
    let bit = 1 << (signal - 1);
    (mask("SigCgt:") | mask("SigIgn:")) & bit == 0
}

/// Where an instruction was before it was moved: the code in place of patched instructions belongs to no module, and
/// everything but the instruction pointer is as it would have been.
fn origin_of(process: i32, region: &RegionMap, rip: u64) -> Option<u64> {
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::Ordering;
    let (at, count) =
        (region.report().moved.load(Ordering::Acquire), region.report().moved_count.load(Ordering::Acquire));
    // The program can have written any number there: some megabytes are more than there ever are.
    const MOST: u64 = 1 << 20;
    let mut pairs = vec![0; usize::try_from(count).ok().filter(|_| count <= MOST)?.checked_mul(16)?];
    std::fs::File::open(format!("/proc/{process}/mem")).ok()?.read_exact_at(&mut pairs, at).ok()?;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    pairs.chunks_exact(16).find(|pair| word(&pair[..8]) == rip).map(|pair| word(&pair[8..]))
}

/// The state at a signal, in the structures that a signal handler would be given.
fn crash_of(thread: i32, origin: impl Fn(u64) -> Option<u64>) -> io::Result<CrashContext> {
    let mut siginfo = [0_u8; 128];
    request(libc::PTRACE_GETSIGINFO, thread, 0, siginfo.as_mut_ptr() as usize)?;
    let mut user = registers_of(thread)?;
    user.rip = origin(user.rip).unwrap_or(user.rip);
    // In the order of `gregs`, which begins 40 bytes into a `ucontext_t`.
    let general = [
        user.r8,
        user.r9,
        user.r10,
        user.r11,
        user.r12,
        user.r13,
        user.r14,
        user.r15,
        user.rdi,
        user.rsi,
        user.rbp,
        user.rbx,
        user.rdx,
        user.rax,
        user.rcx,
        user.rsp,
        user.rip,
        user.eflags,
    ];
    let mut ucontext = vec![0_u8; 960];
    for (index, value) in general.iter().enumerate() {
        ucontext[40 + index * 8..48 + index * 8].copy_from_slice(&value.to_le_bytes());
    }
    CrashContext::from_bytes(ThreadId(thread as u32), &siginfo, &ucontext).map_err(io::Error::other)
}
