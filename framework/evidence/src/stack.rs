//! A symbolised stack, as kept in `failure.json`.

use serde::{Deserialize, Serialize};

use crate::identity::ThreadId;
use crate::snapshot::{SchedulerState, Syscall, Wait};

/// How a frame was found, from certain to guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// The thread's own registers.
    Registers,
    /// The registers the kernel saved when a signal interrupted this frame.
    Signal,
    /// The compiler's unwind tables.
    Tables,
    /// The chain of frame pointers, where there are no tables.
    FramePointer,
    /// A word on the stack that looks like a return address. Possibly left over from an earlier call.
    Scan,
    /// Handed over as a bare address by in-process code.
    Given,
}

/// One function on a stack. Inlined functions have frames of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Demangled name, without hash; absent if nothing names the address.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub function: Option<String>,
    /// Bytes from the start of the function, when the name comes from a symbol table.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub function_offset: Option<u64>,
    /// Path of the module that holds the code; absent if the address is in no file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub module: Option<String>,
    /// The address as the module itself counts it, independent of where it was loaded.
    pub offset: u64,
    /// The address in the process.
    pub address: u64,
    /// Source file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
    /// Line in the source file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
    /// The compiler put this function's body into the frame that follows.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub inlined: bool,
    /// How the frame was found.
    pub trust: Trust,
}

/// How a stack ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StackEnd {
    /// At the thread's first function.
    Root,
    /// The copied part of the stack ended before the stack did.
    Cut,
    /// The trail was lost: damaged stack or code without unwind tables.
    Lost,
    /// The thread could not be looked at.
    Unseen,
}

/// Frames left out of the middle of a very deep stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omitted {
    /// Index of the first frame that follows the gap.
    pub before: usize,
    /// How many frames are not shown; a lower bound if the stack was cut.
    pub frames: usize,
}

/// What the scheduler of strict mode knew of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduled {
    /// Its number, as schedules and timelines have it.
    pub number: u32,
    /// What it was doing as far as the schedule goes: the kernel sees that it waits for its turn, and no more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub doing: Option<String>,
}

/// What one thread was doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStack {
    /// The thread, as the kernel has it; 0 when the stack is of no thread.
    pub id: ThreadId,
    /// Its name; of a thread with a number, and of a stack of no thread, all that it is called.
    pub name: String,
    /// What strict mode knew of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scheduled: Option<Scheduled>,
    /// Whether a fatal signal hit this thread.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub crashed: bool,
    /// What the scheduler thought of it.
    pub state: SchedulerState,
    /// The system call it was in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub syscall: Option<Syscall>,
    /// Whether that call waits, and for how long it may.
    pub wait: Wait,
    /// Processor time the thread had used, in nanoseconds.
    pub cpu_ns: u64,
    /// How often the thread had been put on a processor.
    pub wakeups: u64,
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// The gap, if the stack was too deep to keep whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub omitted: Option<Omitted>,
    /// How the stack ends.
    pub end: StackEnd,
}

impl ThreadStack {
    /// What people call the thread.
    #[must_use]
    pub fn title(&self) -> String {
        match (&self.scheduled, self.id) {
            (Some(_), _) | (_, ThreadId(0)) => self.name.clone(),
            (None, id) => format!("thread {id} ({})", self.name),
        }
    }

    /// Calls the thread by the number that the scheduler of strict mode gave it; `process` is the name that threads
    /// have when nobody named them.
    pub fn number(&mut self, number: u32, process: &str) {
        self.name = match self.name.as_str() {
            name if name == process => format!("thread {number}"),
            name => format!("thread {number} ({name})"),
        };
        self.scheduled = Some(Scheduled { number, doing: None });
    }
}
