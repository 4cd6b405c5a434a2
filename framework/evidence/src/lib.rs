//! What a process was doing when it failed, taken from outside: stacks, dump, signature.
//!
//! Everything here runs in the driver and looks at another process. Nothing runs inside the process that
//! failed, because its heap and locks cannot be trusted any more. The story, in the order of the files:
//!
//! 1. [`capture()`] stops every thread for a few milliseconds and copies what is needed into a
//!    [`ProcessSnapshot`]; from then on the target may run, be killed or vanish.
//! 2. [`unwind`] walks the copied stacks offline.
//! 3. [`Symbolizer`] turns addresses into [`Frame`]s, from a snapshot or from raw addresses.
//! 4. [`minidump()`] writes a dump for a debugger and reads it back before calling it done; after [`capture_and_hold()`]
//!    it shows the very moment of the snapshot. [`write_core()`] writes an ELF core in the same standstill.
//! 5. [`mod@classify`] decides from two samples what kind of hang it is.
//! 6. [`signature`] says what makes two failures the same.
//! 7. [`build`] says which builds of which files were running, [`fn@brought`] which libraries a file brings.
//! 8. [`Unseen`] says what accesses of a file's code nobody sees.
//! 9. [`render`] writes it down for people; the serde types are what `failure.json` holds.
//!
//! # Waiting for the target elsewhere
//!
//! While [`capture()`] runs, the kernel reports the target's stops to *any* thread of this process that waits
//! for it: `Child::try_wait` on another thread would take a stop for an exit. Wait for the target on the
//! thread that calls [`capture()`], or not at the same time. [`minidump()`] has no such restriction.

mod brought;
mod crash;
mod dump;
mod identity;
mod memory_map;
mod module;
mod origin;
mod registers;
mod snapshot;
mod stack;
mod sys;
mod unseen;

pub mod build;
pub mod classify;
pub mod render;
pub mod signature;
pub mod symbol;
pub mod unwind;

pub use brought::brought;
pub use build::Build;
pub use crash::{CrashContext, CrashContextError};
pub use dump::{
    CoreInfo, CoreOptions, DumpError, DumpInfo, DumpLimits, DumpSize, KNOWS_CORES, minidump, write_core,
};

pub use identity::{ProcessId, ThreadId};
pub use memory_map::{Mapping, MappingSource, MemoryImage, MemoryMap, MemoryMapError};
pub use origin::{Origin, base_name, origin};
pub use registers::Registers;
pub use snapshot::{
    CaptureError, CaptureOptions, ProcessSnapshot, SchedulerState, StackMemory, Standstill, Syscall,
    ThreadContext, ThreadSnapshot, Tracer, Wait, capture, capture_and_hold,
};
pub use sys::read_memory;

pub use stack::{Frame, Omitted, Scheduled, StackEnd, ThreadStack, Trust};
pub use symbol::{
    CodeAddress, Symbolizer, SymbolizerLimits, demangled, files_of_unit, may_be_qualified, places_in,
};
pub use unseen::{Unseen, installed_libraries, modules_of};
pub use unwind::RawStack;
