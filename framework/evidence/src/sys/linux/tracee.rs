//! Threads under ptrace. What cannot be done in a state cannot be written.
//!
//! ```text
//!   Seized ──poll──> Stopped ──drop──> (running, untraced)
//!      └──poll──> gone
//! ```
//!
//! Stops are noticed by asking for the reason of the stop, not by waiting: `waitpid` would reap the exit of
//! a child that belongs to someone else's `Child`, blocks for ever on a dead leader whose traced siblings
//! are not reaped yet, and can lose a stop to another thread of this process that waits for the same child.
//! Asking has none of these troubles and costs the same one system call.
//!
//! A `Seized` thread that never stops cannot be detached. The kernel lets go of everything a tracing
//! *thread* holds when that thread ends, which is why [`super::capture`] traces from a thread of its own.

use std::io;
use std::ptr;

use crate::identity::{ProcessId, ThreadId};
use crate::registers::Registers;

use super::core_file::{Thread, UserRegisters};
use super::procfs;

/// A thread that was asked to stop and has not been seen to.
#[derive(Debug)]
pub(super) struct Seized {
    thread: ThreadId,
}

/// A thread that stands still until this guard is dropped.
#[derive(Debug)]
pub(super) struct Stopped {
    thread: ThreadId,
    /// The signal that was about to be delivered when the thread stopped; handed on at the end.
    signal: i32,
}

/// What became of a thread that was asked to stop.
pub(super) enum Poll {
    Running(Seized),
    Stopped(Stopped),
    Gone,
}

/// The registers of a stopped thread and the system call it is in.
pub(super) struct Position {
    pub(super) registers: Registers,
    /// Base of the thread's local storage; with glibc it lies above the frames of the thread's stack.
    pub(super) thread_pointer: u64,
    pub(super) syscall: Option<(u64, [u64; 6])>,
}

/// A ptrace request without memory arguments.
fn request(operation: libc::c_uint, thread: ThreadId, data: usize) -> io::Result<()> {
    // SAFETY: callers pass only operations that take no address and treat `data` as a plain number, so the
    // kernel touches no memory of this process.
    let result = unsafe {
        libc::ptrace(
            operation,
            thread.0 as libc::pid_t,
            ptr::null_mut::<libc::c_void>(),
            data as *mut libc::c_void,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Seized {
    /// Attaches to a thread and asks it to stop.
    pub(super) fn seize(thread: ThreadId) -> io::Result<Seized> {
        request(libc::PTRACE_SEIZE, thread, 0)?;
        // From here on only the end of the thread can make the request fail, and `poll` finds that out.
        let _ = request(libc::PTRACE_INTERRUPT, thread, 0);
        Ok(Seized { thread })
    }

    pub(super) fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Looks once whether the thread has stopped.
    pub(super) fn poll(self) -> Poll {
        match stop_reason(self.thread) {
            Ok(signal) => Poll::Stopped(Stopped { thread: self.thread, signal }),
            Err(_) => Poll::Running(self),
        }
    }

    /// Looks whether the thread still exists; a check of its own because it reads a file.
    pub(super) fn check_alive(self, pid: ProcessId) -> Poll {
        if procfs::is_alive(pid, self.thread) { Poll::Running(self) } else { Poll::Gone }
    }
}

/// The signal a stopped thread was stopped for, zero if it was our request; an error while it runs.
fn stop_reason(thread: ThreadId) -> io::Result<i32> {
    let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel writes at most one siginfo_t to the address given.
    let result = unsafe {
        libc::ptrace(
            libc::PTRACE_GETSIGINFO,
            thread.0 as libc::pid_t,
            ptr::null_mut::<libc::c_void>(),
            info.as_mut_ptr(),
        )
    };
    if result < 0 {
        let error = io::Error::last_os_error();
        // Stopped, but for no signal.
        return if error.raw_os_error() == Some(libc::EINVAL) { Ok(0) } else { Err(error) };
    }
    // SAFETY: zeroed memory is a valid siginfo_t, and the kernel has overwritten it with one.
    let info = unsafe { info.assume_init() };
    let event = info.si_code >> 8;
    Ok(if event == libc::PTRACE_EVENT_STOP { 0 } else { info.si_signo })
}

impl Stopped {
    pub(super) fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Everything that a core holds of the thread; nothing if it was killed meanwhile.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn state(&self) -> Option<Thread> {
        let user = self.user_registers().ok()?;
        let registers = UserRegisters([
            user.r15,
            user.r14,
            user.r13,
            user.r12,
            user.rbp,
            user.rbx,
            user.r11,
            user.r10,
            user.r9,
            user.r8,
            user.rax,
            user.rcx,
            user.rdx,
            user.rsi,
            user.rdi,
            user.orig_rax,
            user.rip,
            user.cs,
            user.eflags,
            user.rsp,
            user.ss,
            user.fs_base,
            user.gs_base,
            user.ds,
            user.es,
            user.fs,
            user.gs,
        ]);
        let mut float = [0_u8; 512];
        // SAFETY: the kernel writes one user_fpregs_struct, which has 512 bytes, to the address given.
        let result = unsafe {
            libc::ptrace(
                libc::PTRACE_GETFPREGS,
                self.thread.0 as libc::pid_t,
                ptr::null_mut::<libc::c_void>(),
                float.as_mut_ptr(),
            )
        };
        Some(Thread { id: self.thread.0, signal: 0, registers, float: (result >= 0).then_some(float) })
    }

    #[cfg(target_arch = "x86_64")]
    fn user_registers(&self) -> io::Result<libc::user_regs_struct> {
        let mut user = std::mem::MaybeUninit::<libc::user_regs_struct>::zeroed();
        // SAFETY: the kernel writes one user_regs_struct to the address given.
        let result = unsafe {
            libc::ptrace(
                libc::PTRACE_GETREGS,
                self.thread.0 as libc::pid_t,
                ptr::null_mut::<libc::c_void>(),
                user.as_mut_ptr(),
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the structure is plain integers, zeroed before and filled by the kernel.
        Ok(unsafe { user.assume_init() })
    }

    /// Reads the registers; fails if the thread was killed meanwhile.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn position(&self) -> io::Result<Position> {
        let user = self.user_registers()?;
        Ok(Position {
            registers: Registers::all([
                user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi, user.rbp, user.rsp, user.r8,
                user.r9, user.r10, user.r11, user.r12, user.r13, user.r14, user.r15, user.rip,
            ]),
            thread_pointer: user.fs_base,
            syscall: interrupted_syscall(&user),
        })
    }
}

/// The call a stop has interrupted: its result says that it is to be restarted, or that it was interrupted.
#[cfg(target_arch = "x86_64")]
fn interrupted_syscall(user: &libc::user_regs_struct) -> Option<(u64, [u64; 6])> {
    // The kernel's private results ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND and ERESTART_RESTARTBLOCK.
    const RESTARTS: [i64; 4] = [-512, -513, -514, -516];
    let result = user.rax as i64;
    let blocked = RESTARTS.contains(&result) || result == -i64::from(libc::EINTR);
    (blocked && user.orig_rax as i64 >= 0)
        .then_some((user.orig_rax, [user.rdi, user.rsi, user.rdx, user.r10, user.r8, user.r9]))
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // A failure means that the thread was killed, and there is nothing left to let go.
        let _ = request(libc::PTRACE_DETACH, self.thread, self.signal as usize);
    }
}
