//! Writing a minidump: threads with registers and stacks, modules, and the exception if there was one.
//!
//! The file is written here and not by dbghelp's `MiniDumpWriteDump`: that one reads the debug information of every
//! module first, which takes seconds, and on Wine it crashes on Rust's. The stacks, registers and modules that a
//! debugger needs are all at hand.

use std::fs;
use std::path::Path;
use std::time::Instant;

use windows_sys::Win32::System::Diagnostics::Debug::{CONTEXT, CONTEXT_FULL_AMD64};

use crate::crash::CrashContext;
use crate::dump::{DumpError, DumpLimits};
use crate::identity::{ProcessId, ThreadId};
use crate::registers::Registers;

use super::capture::{copy_stack, stop_all};
use super::process::{LoadedFile, modules_of, open};
use super::stopped::Context;

/// Stack bytes per thread.
const STACK_LIMIT: usize = 256 << 10;
/// Stack bytes per thread when the dump would grow beyond its limit, for all but the first threads.
const SHORT_STACK: usize = 8 << 10;

const THREAD_LIST: u32 = 3;
const MODULE_LIST: u32 = 4;
const EXCEPTION: u32 = 6;
const SYSTEM_INFO: u32 = 7;
const STREAMS: [u32; 4] = [SYSTEM_INFO, THREAD_LIST, MODULE_LIST, EXCEPTION];

/// What is written of a thread.
struct Copied {
    id: ThreadId,
    context: Vec<u8>,
    stack: (u64, Vec<u8>),
}

/// Writes the dump to a new file.
pub(crate) fn write_dump(
    pid: ProcessId,
    path: &Path,
    crash: Option<&CrashContext>,
    limits: &DumpLimits,
) -> Result<(), DumpError> {
    let began = Instant::now();
    let process = open(pid).map_err(|_| DumpError::Gone { pid })?;
    let modules = modules_of(pid).map_err(|error| DumpError::Write {
        pid,
        path: path.into(),
        reason: error.to_string(),
    })?;
    let stopped = stop_all(pid);
    let mut threads = Vec::new();
    let mut total = 0;
    for (id, thread) in &stopped {
        let Ok(mut context) = thread.context() else { continue };
        if let Some(crash) = crash.filter(|crash| crash.thread == *id) {
            set_registers(&mut context, &crash.registers());
        }
        let small = limits.size.is_some_and(|limit| total > limit as usize);
        let stack = copy_stack(&process, context.0.Rsp, if small { SHORT_STACK } else { STACK_LIMIT });
        let stack = stack.regions().next().map(|(start, bytes)| (start, bytes.to_vec())).unwrap_or_default();
        total += stack.1.len();
        threads.push(Copied { id: *id, context: bytes_of(&context), stack });
        if began.elapsed() > limits.timeout {
            return Err(DumpError::Timeout { pid, timeout: limits.timeout });
        }
    }
    drop(stopped);
    threads.sort_by_key(|thread| thread.id);
    let file = assemble(&threads, &modules, crash);
    fs::write(path, file).map_err(|source| DumpError::File { action: "write", path: path.into(), source })
}

fn set_registers(context: &mut Context, registers: &Registers) {
    let value = |number| registers.get(number).unwrap_or_default();
    let machine = &mut context.0;
    machine.ContextFlags = CONTEXT_FULL_AMD64;
    let places = [
        &mut machine.Rax,
        &mut machine.Rdx,
        &mut machine.Rcx,
        &mut machine.Rbx,
        &mut machine.Rsi,
        &mut machine.Rdi,
        &mut machine.Rbp,
        &mut machine.Rsp,
        &mut machine.R8,
        &mut machine.R9,
        &mut machine.R10,
        &mut machine.R11,
        &mut machine.R12,
        &mut machine.R13,
        &mut machine.R14,
        &mut machine.R15,
        &mut machine.Rip,
    ];
    for (number, place) in places.into_iter().enumerate() {
        *place = value(number as u16);
    }
}

fn bytes_of(context: &Context) -> Vec<u8> {
    // SAFETY: a context is plain data without padding that is not initialised: it began as zeroes.
    unsafe { std::slice::from_raw_parts((&raw const context.0).cast::<u8>(), size_of::<CONTEXT>()) }.to_vec()
}

/// A file whose parts know their places.
#[derive(Default)]
struct File(Vec<u8>);

impl File {
    fn here(&self) -> u32 {
        self.0.len() as u32
    }

    fn half(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    fn word(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn long(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn zeroes(&mut self, count: usize) {
        self.0.extend(std::iter::repeat_n(0, count));
    }

    /// Puts bytes aligned to 16 and returns size and place.
    fn blob(&mut self, bytes: &[u8]) -> (u32, u32) {
        self.zeroes(self.0.len().next_multiple_of(16) - self.0.len());
        let place = self.here();
        self.0.extend(bytes);
        (bytes.len() as u32, place)
    }

    fn location(&mut self, (size, place): (u32, u32)) {
        self.word(size);
        self.word(place);
    }
}

fn assemble(threads: &[Copied], modules: &[LoadedFile], crash: Option<&CrashContext>) -> Vec<u8> {
    let streams = if crash.is_some() { 4 } else { 3 };
    let mut file = File::default();
    file.0.extend(b"MDMP");
    file.word(0xa793);
    file.word(streams);
    file.word(32);
    // No checksum, no time, flags: stacks and registers only.
    file.zeroes(16);
    let directory = file.0.len();
    file.zeroes(streams as usize * 12);

    let places: Vec<_> =
        threads.iter().map(|thread| (file.blob(&thread.context), file.blob(&thread.stack.1))).collect();
    let names: Vec<_> = modules.iter().map(|module| string(&mut file, &module.path)).collect();
    for (index, stream) in STREAMS.into_iter().take(streams as usize).enumerate() {
        file.zeroes(file.0.len().next_multiple_of(8) - file.0.len());
        let begin = file.here();
        match stream {
            SYSTEM_INFO => system_info(&mut file),
            THREAD_LIST => {
                file.word(threads.len() as u32);
                for (thread, (context, stack)) in threads.iter().zip(&places) {
                    file.word(thread.id.0);
                    // Suspend count, priority class and priority; the thread's block is not copied.
                    file.zeroes(12);
                    file.long(0);
                    file.long(thread.stack.0);
                    file.location(*stack);
                    file.location(*context);
                }
            }
            MODULE_LIST => {
                file.word(modules.len() as u32);
                for (module, name) in modules.iter().zip(&names) {
                    file.long(module.base);
                    file.word(module.size as u32);
                    file.zeroes(8);
                    file.word(*name);
                    // Version, records for debug information, reserved.
                    file.zeroes(52 + 8 + 8 + 16);
                }
            }
            _ => {
                if let Some(crash) = crash {
                    exception(&mut file, crash, threads, &places);
                }
            }
        }
        let size = file.here() - begin;
        for (slot, value) in [stream, size, begin].into_iter().enumerate() {
            let at = directory + index * 12 + slot * 4;
            file.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
    file.0
}

fn system_info(file: &mut File) {
    const AMD64: u16 = 9;
    const WINDOWS_NT: u32 = 2;
    file.half(AMD64);
    file.zeroes(4);
    file.0.extend([std::thread::available_parallelism().map_or(1, |count| count.get().min(255) as u8), 1]);
    file.word(10);
    file.zeroes(8);
    file.word(WINDOWS_NT);
    file.zeroes(4 + 4 + 24);
}

fn exception(file: &mut File, crash: &CrashContext, threads: &[Copied], places: &[((u32, u32), (u32, u32))]) {
    let context =
        threads.iter().position(|thread| thread.id == crash.thread).map_or((0, 0), |at| places[at].0);
    file.word(crash.thread.0);
    file.word(0);
    file.word(crash.signal as u32);
    file.word(0);
    file.long(0);
    file.long(crash.crash_address());
    file.zeroes(8 + 15 * 8);
    file.location(context);
}

/// A counted UTF-16 string; returns its place.
fn string(file: &mut File, text: &str) -> u32 {
    file.zeroes(file.0.len().next_multiple_of(4) - file.0.len());
    let place = file.here();
    let units: Vec<u16> = text.encode_utf16().collect();
    file.word(units.len() as u32 * 2);
    units.into_iter().for_each(|unit| file.half(unit));
    file.half(0);
    place
}
