//! Which calls of ntdll wait, for what, and whether for ever.
//!
//! A thread that waits stands behind the system call of one of these functions. Where the timeout is given is part of
//! each one's contract. The system need not keep argument registers across a call, so a timeout is believed only if it
//! points into the thread's own stack, where every caller of these functions has it.

use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};

use crate::registers::Registers;
use crate::snapshot::{StackMemory, Syscall, Wait};

/// System call functions are shorter than this.
const LONGEST: u64 = 0x20;

/// DWARF numbers of the second, third and fourth argument.
const SECOND: u16 = 1;
const THIRD: u16 = 8;
const FOURTH: u16 = 9;

/// Where a pointer to the timeout is; null waits for ever.
enum Timeout {
    None,
    Register(u16),
    /// Above the return address and the room for four arguments.
    FifthArgument,
}

enum Subject {
    Thread,
    Sleep,
    Input,
}

/// The waiting functions, by their names in ntdll.
const WAITS: [(&[u8], Subject, Timeout); 12] = [
    (b"NtWaitForSingleObject\0", Subject::Thread, Timeout::Register(THIRD)),
    (b"NtWaitForMultipleObjects\0", Subject::Thread, Timeout::FifthArgument),
    (b"NtWaitForAlertByThreadId\0", Subject::Thread, Timeout::Register(SECOND)),
    (b"NtWaitForKeyedEvent\0", Subject::Thread, Timeout::Register(FOURTH)),
    (b"NtSignalAndWaitForSingleObject\0", Subject::Thread, Timeout::Register(FOURTH)),
    (b"NtDelayExecution\0", Subject::Sleep, Timeout::None),
    (b"NtRemoveIoCompletion\0", Subject::Input, Timeout::FifthArgument),
    (b"NtReadFile\0", Subject::Input, Timeout::None),
    (b"NtWriteFile\0", Subject::Input, Timeout::None),
    (b"NtFsControlFile\0", Subject::Input, Timeout::None),
    (b"NtDeviceIoControlFile\0", Subject::Input, Timeout::None),
    (b"NtWaitForWorkViaWorkerFactory\0", Subject::Input, Timeout::None),
];

/// The places of these functions in a process.
pub(super) struct Waits {
    places: Vec<(u64, &'static (&'static [u8], Subject, Timeout))>,
}

impl Waits {
    /// For a process that has ntdll at `base`.
    pub(super) fn of(base: u64) -> Waits {
        // SAFETY: ntdll is in every process, and names end with zero.
        let (own, address) = unsafe {
            let own = GetModuleHandleA(c"ntdll.dll".as_ptr().cast());
            (own as u64, move |name: &[u8]| GetProcAddress(own, name.as_ptr()).map(|found| found as u64))
        };
        let places = WAITS.iter().filter_map(|entry| Some((address(entry.0)? - own + base, entry)));
        Waits { places: places.collect() }
    }

    /// What a thread with these registers waits for.
    pub(super) fn describe(&self, registers: &Registers, stack: &StackMemory) -> (Option<Syscall>, Wait) {
        let Some(pc) = registers.instruction() else { return (None, Wait::No) };
        let found = self.places.iter().find(|(place, _)| (*place..*place + LONGEST).contains(&pc));
        let Some((_, (name, subject, timeout))) = found else { return (None, Wait::No) };
        let pointer = match timeout {
            Timeout::None => None,
            Timeout::Register(number) => registers.get(*number),
            Timeout::FifthArgument => registers.stack().and_then(|top| stack.word(top + 0x28)),
        };
        let timed = pointer.is_some_and(|pointer| pointer != 0 && stack.contains(pointer));
        let wait = match (subject, timed) {
            (Subject::Sleep, _) => Wait::Sleep,
            (Subject::Thread, false) => Wait::ThreadUntimed,
            (Subject::Thread, true) => Wait::ThreadTimed,
            (Subject::Input, false) => Wait::InputUntimed,
            (Subject::Input, true) => Wait::InputTimed,
        };
        let name = String::from_utf8_lossy(&name[..name.len() - 1]).into_owned();
        (Some(Syscall { number: 0, name: Some(name), arguments: [0; 6] }), wait)
    }
}
