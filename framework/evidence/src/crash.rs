//! What the target's signal handler saw, as raw kernel structures.
//!
//! A handler may do very little, so the contract is bytes: the `siginfo_t` and `ucontext_t` it was called
//! with, copied into a shared page or read from the target's memory by address. The layouts are the Linux
//! x86-64 kernel ABI; the reader on the other side of the process boundary need not link the same libc. On Windows the
//! host lays out an exception in the same way: its code in place of the signal.

use thiserror::Error;

use crate::identity::{ProcessId, ThreadId};
use crate::registers::Registers;
use crate::sys;

/// Bytes of `siginfo_t` that are looked at: signal, code and the address union.
const SIGINFO_LEN: usize = 24;
/// Offset of `uc_mcontext.gregs` in `ucontext_t`: flags, link and the alternate stack come first.
pub(crate) const GREGS_OFFSET: usize = 40;
/// Number of general registers in `gregs`.
pub(crate) const GREGS_COUNT: usize = 23;
/// Bytes of `ucontext_t` that are looked at: up to and including the pointer to the float state.
const UCONTEXT_LEN: usize = GREGS_OFFSET + GREGS_COUNT * 8 + 8;
/// Size of the legacy (FXSAVE) part of the float state.
pub(crate) const FLOAT_STATE_LEN: usize = 512;

/// SIGILL, SIGTRAP, SIGBUS, SIGFPE and SIGSEGV: signals that an instruction raises.
const FAULTS: [i32; 5] = [4, 5, 7, 8, 11];

/// The state of a thread at the moment a fatal signal hit it.
#[derive(Debug, Clone)]
pub struct CrashContext {
    /// The thread that got the signal.
    pub thread: ThreadId,
    /// Signal number.
    pub signal: i32,
    /// `si_code`: why the signal was sent.
    pub code: i32,
    /// `si_addr`: the address that could not be accessed, or the instruction that trapped. Absent if the
    /// signal was sent by a process (`abort`, `kill`) and not raised by an instruction.
    pub fault_address: Option<u64>,
    pub(crate) general: [u64; GREGS_COUNT],
    pub(crate) float: Option<Box<[u8; FLOAT_STATE_LEN]>>,
}

/// A crash context that cannot be used.
#[derive(Debug, Error)]
pub enum CrashContextError {
    /// The handler handed over less than the kernel structures hold.
    #[error("crash context of thread {thread} is cut short: {what} has {got} of {needed} bytes")]
    Short {
        /// The thread in question.
        thread: ThreadId,
        /// Which structure.
        what: &'static str,
        /// Bytes given.
        got: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// The structures could not be read from the target's memory.
    #[error("cannot read the crash context of thread {thread} from process {pid}: {source}")]
    Read {
        /// The target.
        pid: ProcessId,
        /// The thread in question.
        thread: ThreadId,
        /// What the kernel said.
        source: std::io::Error,
    },
}

impl CrashContext {
    /// From copies of the `siginfo_t` and `ucontext_t` a signal handler was called with.
    pub fn from_bytes(thread: ThreadId, siginfo: &[u8], ucontext: &[u8]) -> Result<Self, CrashContextError> {
        let short = |what, got, needed| CrashContextError::Short { thread, what, got, needed };
        if siginfo.len() < SIGINFO_LEN {
            return Err(short("siginfo", siginfo.len(), SIGINFO_LEN));
        }
        if ucontext.len() < UCONTEXT_LEN {
            return Err(short("ucontext", ucontext.len(), UCONTEXT_LEN));
        }
        let mut general = [0; GREGS_COUNT];
        for (index, value) in general.iter_mut().enumerate() {
            *value = word(ucontext, GREGS_OFFSET + index * 8);
        }
        let signal = word(siginfo, 0) as u32 as i32;
        let code = word(siginfo, 8) as u32 as i32;
        // The same bytes hold the sender's process and user if there is one.
        // Exceptions of Windows are numbers with the highest bit set; all of them are raised by instructions.
        let raised = code > 0 && (signal < 0 || FAULTS.contains(&signal));
        Ok(CrashContext {
            thread,
            signal,
            code,
            fault_address: raised.then(|| word(siginfo, 16)),
            general,
            float: None,
        })
    }

    /// Reads the structures from the target while its handler still holds them on its stack.
    pub fn read(
        pid: ProcessId,
        thread: ThreadId,
        siginfo_address: u64,
        ucontext_address: u64,
    ) -> Result<Self, CrashContextError> {
        let copy = |address, length| {
            sys::read_memory(pid, address, length).map_err(|source| CrashContextError::Read {
                pid,
                thread,
                source,
            })
        };
        let siginfo = copy(siginfo_address, SIGINFO_LEN)?;
        let ucontext = copy(ucontext_address, UCONTEXT_LEN)?;
        let mut context = Self::from_bytes(thread, &siginfo, &ucontext)?;
        let float_address = word(&ucontext, UCONTEXT_LEN - 8);
        if float_address != 0
            && let Ok(bytes) = copy(float_address, FLOAT_STATE_LEN)
        {
            context.float = bytes.try_into().ok();
        }
        Ok(context)
    }

    /// Adds the float state (the 512 bytes that `uc_mcontext.fpregs` points to) for the minidump.
    #[must_use]
    pub fn with_float_state(mut self, bytes: [u8; FLOAT_STATE_LEN]) -> Self {
        self.float = Some(Box::new(bytes));
        self
    }

    /// The signal's name, as people know it.
    #[must_use]
    pub fn signal_name(&self) -> String {
        match self.signal {
            4 => "SIGILL".into(),
            5 => "SIGTRAP".into(),
            6 => "SIGABRT".into(),
            7 => "SIGBUS".into(),
            8 => "SIGFPE".into(),
            11 => "SIGSEGV".into(),
            31 => "SIGSYS".into(),
            other => format!("signal {other}"),
        }
    }

    /// The address a debugger shows for the crash: of the fault, or else of the instruction.
    #[must_use]
    pub fn crash_address(&self) -> u64 {
        self.fault_address.or(self.registers().instruction()).unwrap_or_default()
    }

    /// The registers at the moment of the signal.
    #[must_use]
    pub fn registers(&self) -> Registers {
        registers_from_gregs(&self.general)
    }
}

/// Puts the kernel's order of general registers into DWARF's.
pub(crate) fn registers_from_gregs(gregs: &[u64; GREGS_COUNT]) -> Registers {
    // gregs: r8–r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, …
    let [r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, ..] = *gregs;
    Registers::all([rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, rip])
}

fn word(bytes: &[u8], offset: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_from_their_kernel_offsets() {
        let mut siginfo = vec![0; 128];
        siginfo[0] = 11;
        siginfo[8] = 1;
        siginfo[16] = 8;
        let mut ucontext = vec![0; 960];
        for index in 0..GREGS_COUNT {
            ucontext[GREGS_OFFSET + index * 8] = index as u8 + 1;
        }
        let context = CrashContext::from_bytes(ThreadId(1), &siginfo, &ucontext).expect("long enough");
        assert_eq!((context.signal, context.code, context.fault_address), (11, 1, Some(8)));
        let registers = context.registers();
        assert_eq!(registers.instruction(), Some(17));
        assert_eq!(registers.stack(), Some(16));
        assert_eq!(registers.get(Registers::FRAME_POINTER), Some(11));

        siginfo[0] = 6;
        siginfo[8..12].copy_from_slice(&(-6_i32).to_le_bytes());
        let context = CrashContext::from_bytes(ThreadId(1), &siginfo, &ucontext).expect("long enough");
        assert_eq!((context.code, context.fault_address), (-6, None));
        assert_eq!((context.crash_address(), context.signal_name().as_str()), (17, "SIGABRT"));
    }

    #[test]
    fn short_structures_are_refused() {
        let error = CrashContext::from_bytes(ThreadId(4), &[0; 8], &[0; 960]).expect_err("too short");
        assert!(error.to_string().contains("siginfo has 8 of 24 bytes"), "{error}");
    }
}
