//! The processes above a controlled one, which it does not see.
//!
//! How many there are is no property of the program: a run of a fork server has one more above it than a process that follows
//! its schedule, and a replay as many as the shell that it was typed in. A program that walks up, as Boost.Test does to look
//! for a debugger, would make more steps in one than in the other. So the walk ends at the first of them: the files of the
//! parent that name its own parent are not there. Everything else of `/proc` is as it is.

use core::ffi::{CStr, c_char, c_int};

use super::fail;
use crate::sys;

/// Whether a path is that of a file which says who is above the process above this one.
///
/// # Safety
/// The path is null or ends with a null byte, as for `open`.
pub(super) unsafe fn is_hidden(path: *const c_char) -> bool {
    if path.is_null() {
        return false;
    }
    // SAFETY: by the caller's promise.
    let path = unsafe { CStr::from_ptr(path) };
    named_process(path.to_bytes()).is_some_and(|process| process == parent())
}

/// The process whose parent the file at this path names, as `/proc/1/stat` does.
fn named_process(path: &[u8]) -> Option<u32> {
    let rest = path.strip_prefix(b"/proc/")?;
    let number = rest.strip_suffix(b"/stat").or_else(|| rest.strip_suffix(b"/status"))?;
    str::from_utf8(number).ok()?.parse().ok()
}

fn parent() -> u32 {
    // SAFETY: takes no pointer and cannot fail.
    unsafe { sys::call(libc::SYS_getppid, [0; 6]) as u32 }
}

/// Stands in for `open` where the file is hidden.
pub(super) extern "C" fn no_such_file() -> c_int {
    fail(libc::ENOENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_name_a_parent_are_looked_at() {
        assert_eq!(named_process(b"/proc/17/stat"), Some(17));
        assert_eq!(named_process(b"/proc/17/status"), Some(17));
        for other in [&b"/proc/17/exe"[..], b"/proc/self/stat", b"/proc/stat", b"/proc/17/task/18/stat", b"stat", b""] {
            assert_eq!(named_process(other), None);
        }
    }

    #[test]
    fn a_process_sees_itself_and_not_what_is_above_it() {
        let path = |process: u32| std::ffi::CString::new(format!("/proc/{process}/stat")).unwrap();
        // SAFETY: the paths are whole strings, or null.
        unsafe {
            assert!(is_hidden(path(parent()).as_ptr()));
            assert!(!is_hidden(path(std::process::id()).as_ptr()));
            assert!(!is_hidden(core::ptr::null()));
        }
    }
}
