//! Calls that report what nobody wants to know, taken out of compiled code: at a level that does not look at accesses,
//! they would do nothing but look at the level.
//!
//! Before `main`, or right after a module was loaded: no thread is in its code. The level stays for the life of the
//! process, so they are never put back.

use std::path::Path;

use waylay_control_protocol::Level;
use waylay_patch::reports::{self, Call};
use waylay_patch::scope;

use super::loaded::Loaded;
use super::memory::{PAGE, protection};
use crate::sys;

/// Bytes of a call in the cache.
const ENTRY: usize = 5;

/// Takes the calls out of a module; says how many.
pub(super) fn silence(module: &Loaded, level: Level, cache: Option<&Path>) -> usize {
    if level.sees_accesses() || scope::is_left_alone(&module.path) {
        return 0;
    }
    let calls = calls(module, level, cache);
    if calls.is_empty() || !protect(module, true) {
        return 0;
    }
    for call in &calls {
        if let Some(nothing) = reports::nothing(call.length) {
            let at = (module.base + call.at as usize) as *mut u8;
            // SAFETY: the code is open, the instruction there has as many bytes, and no thread executes it.
            unsafe { at.copy_from_nonoverlapping(nothing.as_ptr(), nothing.len()) };
        }
    }
    protect(module, false);
    calls.len()
}

/// Whether a function does nothing at a level.
fn is_idle(name: &str, level: Level) -> bool {
    const PLAIN: [&str; 8] = ["read", "write", "unaligned_read", "unaligned_write", "vptr_", "func_entry", "func_exit", "init"];
    const VOLATILE: [&str; 2] = ["volatile_", "unaligned_volatile_"];
    let Some(rest) = name.strip_prefix("__tsan_") else { return false };
    PLAIN.iter().any(|start| rest.starts_with(start))
        || level < Level::Atomics && VOLATILE.iter().any(|start| rest.starts_with(start))
}

/// From the cache, or found and put there.
fn calls(module: &Loaded, level: Level, cache: Option<&Path>) -> Vec<Call> {
    let hex = |id: &Vec<u8>| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let kept = module.build_id.as_ref().zip(cache);
    let kept = kept.map(|(id, folder)| folder.join(format!("{}.reports-{level}", hex(id))));
    if let Some(bytes) = kept.as_ref().and_then(|path| std::fs::read(path).ok())
        && bytes.len() % ENTRY == 0
    {
        let call = |entry: &[u8]| Call {
            at: u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]),
            length: entry[4],
        };
        return bytes.chunks_exact(ENTRY).map(call).collect();
    }
    let Ok(bytes) = std::fs::read(module.file()) else { return Vec::new() };
    let calls = reports::calls(&bytes, |name| is_idle(name, level)).unwrap_or_default();
    if let Some(path) = kept {
        let bytes: Vec<u8> =
            calls.iter().flat_map(|call| call.at.to_le_bytes().into_iter().chain([call.length])).collect();
        // Another process may be doing the same: the file appears as a whole or not at all.
        let part = path.with_extension(format!("part{}", std::process::id()));
        if std::fs::write(&part, bytes).is_err() || std::fs::rename(&part, &path).is_err() {
            let _ = std::fs::remove_file(&part);
        }
    }
    calls
}

fn protect(module: &Loaded, writable: bool) -> bool {
    module.code.iter().all(|&(start, end)| {
        let (start, end) = (start & !(PAGE - 1), end.next_multiple_of(PAGE));
        // SAFETY: pages that the loader mapped as code; they stay executable.
        unsafe { sys::protect(start, end - start, protection(writable)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_something_stays() {
        for name in ["__tsan_read4", "__tsan_write_range", "__tsan_unaligned_read8", "__tsan_func_entry"] {
            assert!(is_idle(name, Level::Atomics), "{name}");
        }
        for name in ["__tsan_atomic32_load", "__tsan_memcpy", "__tsan_volatile_read4", "read", "__tsan_acquire"] {
            assert!(!is_idle(name, Level::Atomics), "{name}");
        }
        assert!(is_idle("__tsan_volatile_read4", Level::Sync));
    }
}
