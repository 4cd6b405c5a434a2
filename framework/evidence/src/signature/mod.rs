//! What makes two failures the same.
//!
//! A signature is the kind of failure, the test, and the test's own functions on the stack from the inside
//! out, all without what differs between runs (addresses, numbers in messages) and between builds (lines,
//! hashes, generic arguments, runtime frames, which the optimiser inlines as it likes). It is a text that a
//! person can read, and the hash of that text. Both are the same in every release.
//!
//! A function is called by the last part of its name and the source file it is in: `orders.rs:take`. Its full
//! path would not do, because small debug information gives it for a function that stands alone and not for
//! one that the optimiser has inlined, and which of the two it is changes with unrelated code.
//!
//! Crashes use the stack of the thread that failed; hangs the set of all blocked stacks of the test's
//! threads, in sorted order, because it does not matter which thread holds which lock.

mod hash;
mod normal;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::origin::{Origin, base_name, origin};
use crate::stack::{Frame, ThreadStack};

pub use hash::digest;
pub use normal::{normal_message, normal_name};

/// Own functions that take part. More would tell apart callers of the same fault; fewer would confuse
/// faults in a shared helper.
const DEPTH: usize = 6;
/// Distinct blocked stacks that take part in a hang's signature.
const MOST_STACKS: usize = 8;
/// As many own frames in a row make a recursion, in which the innermost function is where the stack
/// happened to end.
const RECURSION: usize = 100;

/// What two failures have in common if they are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Signature {
    /// Readable form.
    pub text: String,
    /// 16 hexadecimal digits: FNV-1a of the text.
    pub hash: String,
}

impl Signature {
    /// A failure with one stack: crash, assert, panic, leak.
    ///
    /// `kind` says what happened (`crash SIGSEGV`, `assert`, …), `message` what the program said about it.
    #[must_use]
    pub fn of_stack(kind: &str, test: &str, message: Option<&str>, frames: &[Frame]) -> Signature {
        let mut text = format!("{kind} in {test}");
        if let Some(message) = message.map(normal_message).filter(|message| !message.is_empty()) {
            text.push_str(": ");
            text.push_str(&message);
        }
        text.push_str(" at ");
        text.push_str(&stack_text(frames));
        Signature::from_text(text)
    }

    /// A hang, by all blocked stacks of the test's threads.
    #[must_use]
    pub fn of_hang<'a>(
        kind: &str,
        test: &str,
        stacks: impl IntoIterator<Item = &'a ThreadStack>,
    ) -> Signature {
        let blocked: BTreeSet<_> = stacks.into_iter().map(blocked_text).collect();
        let mut text = format!("{kind} in {test}");
        for stack in blocked.iter().take(MOST_STACKS) {
            text.push_str(" [");
            text.push_str(stack);
            text.push(']');
        }
        Signature::from_text(text)
    }

    /// A signature with a text made elsewhere; the text must already be free of run-specific parts.
    #[must_use]
    pub fn from_text(text: String) -> Signature {
        Signature { hash: format!("{:016x}", digest(text.as_bytes())), text }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The call that a blocked thread waits in, then its own functions.
///
/// What the thread runs or sleeps in changes from sample to sample, so only waiting for another thread
/// or for input is named.
fn blocked_text(stack: &ThreadStack) -> String {
    let own = stack_text(&stack.frames);
    match waiting_call(&stack.frames) {
        Some(call) if stack.wait != crate::snapshot::Wait::No => format!("{call} < {own}"),
        _ => own,
    }
}

/// The runtime function that the test's own code called: `pthread_mutex_lock` rather than the system call
/// it ends in.
#[must_use]
pub fn waiting_call(frames: &[Frame]) -> Option<String> {
    // The control library may stand between a call and the kernel.
    let called = frames.iter().skip_while(|frame| origin(frame) == Origin::Waylay);
    let inner = called.take_while(|frame| origin(frame) == Origin::Runtime);
    let called = inner.filter(|frame| frame.function.is_some()).last()?;
    Some(frame_name(called).trim_start_matches("__").to_owned())
}

fn stack_text(frames: &[Frame]) -> String {
    let names = own_names(frames);
    if names.len() >= RECURSION {
        let mut cycle: Vec<_> = names[..RECURSION].to_vec();
        cycle.sort_unstable();
        cycle.dedup();
        cycle.truncate(DEPTH);
        return format!("recursion of {}", cycle.join(", "));
    }
    let mut names = names;
    names.dedup();
    names.truncate(DEPTH);
    if names.is_empty() {
        names = frames
            .iter()
            .take(DEPTH)
            .filter_map(|frame| frame.function.as_deref().map(normal_name))
            .collect();
    }
    match names.is_empty() {
        true => "an unknown place".into(),
        false => names.join(" < "),
    }
}

/// The names of the test's own functions, innermost first, up to the host's call into the test.
fn own_names(frames: &[Frame]) -> Vec<String> {
    let mut names = Vec::new();
    for frame in frames {
        match origin(frame) {
            Origin::Own => names.push(frame_name(frame)),
            Origin::Waylay if !names.is_empty() => break,
            Origin::Waylay | Origin::Runtime => {}
        }
    }
    names
}

/// A function by file and last part of its name; by its whole name if the file is not known; or the module
/// if nothing names the function, because its offset changes with every build.
fn frame_name(frame: &Frame) -> String {
    match (&frame.function, &frame.file, &frame.module) {
        (Some(function), Some(file), _) => {
            let name = normal_name(function);
            let last = name.rsplit("::").next().unwrap_or(&name);
            match file_tail(file) {
                // C has one name space, and its names are whole.
                file if file.ends_with(".c") => last.to_owned(),
                file => format!("{}:{last}", file.replace('\\', "/")),
            }
        }
        (Some(function), None, _) => normal_name(function),
        (None, _, Some(module)) => {
            let file = base_name(module);
            format!("{}!?", file.trim_end_matches(" (deleted)"))
        }
        (None, _, None) => "?".into(),
    }
}

/// The last part of a source path; two parts if the last is one that every folder has.
fn file_tail(path: &str) -> &str {
    const SEPARATORS: [char; 2] = ['/', '\\'];
    let start = |before: &str| before.rfind(SEPARATORS).map_or(0, |at| at + 1);
    let last = start(path);
    let folder = path[..last].trim_end_matches(SEPARATORS);
    let folder_start = start(folder);
    let is_common = matches!(&path[last..], "mod.rs" | "lib.rs" | "main.rs");
    match is_common && !matches!(&folder[folder_start..], "" | "src" | "." | "..") {
        true => &path[folder_start..],
        false => &path[last..],
    }
}

#[cfg(test)]
mod tests;
