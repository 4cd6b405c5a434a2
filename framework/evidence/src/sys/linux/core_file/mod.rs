//! How an ELF core of Linux on x86-64 is laid out: header, program headers, notes, memory.
//!
//! Pure: numbers and bytes in, bytes out. What memory is worth keeping is decided in [`choice`]; who stops the process and
//! reads it is `sys`'s business. The layouts are the kernel's (`include/linux/elfcore.h`, `fs/binfmt_elf.c`), and the order of
//! the notes is its order, because debuggers take the first thread for the one that failed.

pub(crate) mod choice;
pub(crate) mod linked;

use crate::crash::GREGS_COUNT;

/// Memory comes in pages of this size.
pub(crate) const PAGE: u64 = 4096;
/// Bytes of a file header.
const HEADER: usize = 64;
/// Bytes of a program header.
const PROGRAM_HEADER: usize = 56;
/// Most segments: the count has 16 bits, one is the notes, and the highest value means something else.
pub(crate) const MOST_SEGMENTS: usize = 60_000;

const NT_PRSTATUS: u32 = 1;
const NT_FPREGSET: u32 = 2;
const NT_PRPSINFO: u32 = 3;
const NT_AUXV: u32 = 6;
const NT_SIGINFO: u32 = 0x5349_4749;
const NT_FILE: u32 = 0x4649_4c45;

/// The registers of `user_regs_struct`, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UserRegisters(pub(crate) [u64; 27]);

/// Places in [`UserRegisters`].
impl UserRegisters {
    const RIP: usize = 16;
    const FLAGS: usize = 18;
    const RSP: usize = 19;
    const FS_BASE: usize = 21;

    pub(crate) fn stack(&self) -> u64 {
        self.0[Self::RSP]
    }

    pub(crate) fn thread_pointer(&self) -> u64 {
        self.0[Self::FS_BASE]
    }

    /// The same thread where a signal hit it: `gregs` is what its handler was given.
    pub(crate) fn at_signal(mut self, gregs: &[u64; GREGS_COUNT]) -> UserRegisters {
        let [r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, flags, ..] =
            *gregs;
        // The system call that the handler is in is not the thread's.
        const NO_CALL: u64 = u64::MAX;
        let general = [r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, NO_CALL, rip];
        // The segment registers stay.
        self.0[..=Self::RIP].copy_from_slice(&general);
        self.0[Self::FLAGS] = flags;
        self.0[Self::RSP] = rsp;
        self
    }

    /// A thread of which only some registers are known, by their DWARF numbers.
    pub(crate) fn with(mut self, known: &crate::registers::Registers) -> UserRegisters {
        /// Where the registers 0 to 16 of DWARF are: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, rip.
        const PLACES: [usize; 17] = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16];
        for (number, place) in PLACES.into_iter().enumerate() {
            if let Some(value) = known.get(number as u16) {
                self.0[place] = value;
            }
        }
        self
    }
}

/// A thread as a core shows it.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) id: u32,
    /// The signal that stopped it; 0 if there was none.
    pub(crate) signal: i32,
    pub(crate) registers: UserRegisters,
    /// The FXSAVE area.
    pub(crate) float: Option<[u8; 512]>,
}

/// The process as a core shows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Process {
    pub(crate) id: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    pub(crate) user: u32,
    pub(crate) user_group: u32,
    pub(crate) name: Vec<u8>,
    pub(crate) arguments: Vec<u8>,
    /// `/proc/PID/auxv` as it is.
    pub(crate) auxiliary: Vec<u8>,
    /// Number, code and address of the signal.
    pub(crate) signal: Option<(i32, i32, u64)>,
}

/// A range of a mapped file.
#[derive(Debug, Clone)]
pub(crate) struct MappedFile {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// In bytes.
    pub(crate) offset: u64,
    pub(crate) path: Vec<u8>,
}

/// A range of memory that the core holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) writable: bool,
    pub(crate) executable: bool,
}

/// The notes, the thread to blame first.
pub(crate) fn notes(process: &Process, threads: &[Thread], files: &[MappedFile]) -> Vec<u8> {
    let mut notes = Vec::new();
    for (index, thread) in threads.iter().enumerate() {
        note(&mut notes, NT_PRSTATUS, &status(process, thread));
        if index == 0 {
            note(&mut notes, NT_PRPSINFO, &description(process));
            if let Some(signal) = process.signal {
                note(&mut notes, NT_SIGINFO, &signal_info(signal));
            }
            note(&mut notes, NT_AUXV, &process.auxiliary);
            note(&mut notes, NT_FILE, &mapped_files(files));
        }
        if let Some(float) = &thread.float {
            note(&mut notes, NT_FPREGSET, float);
        }
    }
    notes
}

fn note(notes: &mut Vec<u8>, kind: u32, content: &[u8]) {
    const NAME: &[u8] = b"CORE\0";
    for word in [NAME.len() as u32, content.len() as u32, kind] {
        notes.extend(word.to_le_bytes());
    }
    notes.extend(NAME);
    pad(notes, 4);
    notes.extend(content);
    pad(notes, 4);
}

fn pad(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

/// `struct elf_prstatus`: 336 bytes.
fn status(process: &Process, thread: &Thread) -> Vec<u8> {
    let mut bytes = vec![0; 336];
    put(&mut bytes, 0, &thread.signal.to_le_bytes());
    put(&mut bytes, 12, &(thread.signal as u16).to_le_bytes());
    for (index, id) in [thread.id, process.parent, process.group, process.session].into_iter().enumerate() {
        put(&mut bytes, 32 + index * 4, &id.to_le_bytes());
    }
    for (index, value) in thread.registers.0.into_iter().enumerate() {
        put(&mut bytes, 112 + index * 8, &value.to_le_bytes());
    }
    put(&mut bytes, 328, &u32::from(thread.float.is_some()).to_le_bytes());
    bytes
}

/// `struct elf_prpsinfo`: 136 bytes.
fn description(process: &Process) -> Vec<u8> {
    let mut bytes = vec![0; 136];
    put(&mut bytes, 1, b"t");
    let Process { user, user_group, id, parent, group, session, .. } = *process;
    for (index, value) in [user, user_group, id, parent, group, session].into_iter().enumerate() {
        put(&mut bytes, 16 + index * 4, &value.to_le_bytes());
    }
    put(&mut bytes, 40, &process.name[..process.name.len().min(15)]);
    let shown: Vec<u8> =
        process.arguments.iter().take(79).map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
    put(&mut bytes, 56, &shown);
    bytes
}

/// `siginfo_t`: 128 bytes.
fn signal_info((number, code, address): (i32, i32, u64)) -> Vec<u8> {
    let mut bytes = vec![0; 128];
    put(&mut bytes, 0, &number.to_le_bytes());
    put(&mut bytes, 8, &code.to_le_bytes());
    put(&mut bytes, 16, &address.to_le_bytes());
    bytes
}

fn mapped_files(files: &[MappedFile]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let numbers = files.iter().flat_map(|file| [file.start, file.end, file.offset / PAGE]);
    for word in [files.len() as u64, PAGE].into_iter().chain(numbers) {
        bytes.extend(word.to_le_bytes());
    }
    for file in files {
        bytes.extend(&file.path);
        bytes.push(0);
    }
    bytes
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Where the memory of the first segment begins in the file.
pub(crate) fn memory_offset(segments: usize, notes: usize) -> u64 {
    ((HEADER + (segments + 1) * PROGRAM_HEADER + notes) as u64).next_multiple_of(PAGE)
}

/// The beginning of the file: everything before the memory, which follows segment by segment, each whole pages long. Of
/// each segment the first `held` bytes were written; the room for the others stays.
pub(crate) fn head(segments: &[(Segment, u64)], notes: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // 64 bits, little endian, version 1, no particular system.
    bytes.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    // A core for x86-64.
    bytes.extend([4_u16, 62].into_iter().flat_map(u16::to_le_bytes));
    bytes.extend(1_u32.to_le_bytes());
    // No entry, program headers behind this one, no sections, no flags.
    bytes.extend([0, HEADER as u64, 0].into_iter().flat_map(u64::to_le_bytes));
    bytes.extend(0_u32.to_le_bytes());
    let counts = [HEADER as u16, PROGRAM_HEADER as u16, segments.len() as u16 + 1, 0, 0, 0];
    bytes.extend(counts.into_iter().flat_map(u16::to_le_bytes));

    let notes_at = (HEADER + (segments.len() + 1) * PROGRAM_HEADER) as u64;
    program_header(&mut bytes, (4, 0), [notes_at, 0, 0, notes.len() as u64, 0, 4]);
    let mut at = memory_offset(segments.len(), notes.len());
    for (segment, held) in segments {
        let flags = 4 | u32::from(segment.writable) << 1 | u32::from(segment.executable);
        program_header(&mut bytes, (1, flags), [at, segment.start, 0, *held, segment.bytes, PAGE]);
        at += segment.bytes.next_multiple_of(PAGE);
    }
    bytes.extend(notes);
    bytes
}

fn program_header(bytes: &mut Vec<u8>, (kind, flags): (u32, u32), words: [u64; 6]) {
    bytes.extend([kind, flags].into_iter().flat_map(u32::to_le_bytes));
    bytes.extend(words.into_iter().flat_map(u64::to_le_bytes));
}

#[cfg(test)]
mod tests;
