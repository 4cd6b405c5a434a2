//! Finding out whether a process can be disturbed, without stopping it.

use std::io;
use std::os::windows::io::AsRawHandle;

use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_INVALID_PARAMETER};
use windows_sys::Win32::System::Threading::{IsWow64Process, OpenThread};

use crate::identity::ProcessId;
use crate::refusal::TargetError;

use super::process::{ancestors, has_ended, is_over, open_process, own, threads_of};
use super::suspended::RIGHTS;

/// What to do when the system does not let us.
const PERMISSION_HINT: &str =
    "run as the user of that process or as administrator; protected processes can be suspended by nobody";

/// Checks that a process exists, is not one of ours, has 64 bits, and that its threads may be suspended.
pub(crate) fn check_target(pid: ProcessId) -> Result<(), TargetError> {
    if pid.0 == std::process::id() {
        return Err(TargetError::Own { pid });
    }
    let process = open_process(pid).map_err(|error| refusal(pid, error))?;
    if is_over(&process) {
        return Err(TargetError::Ended { pid });
    }
    if let Some((_, name)) = ancestors().into_iter().find(|(ancestor, _)| *ancestor == pid) {
        return Err(TargetError::Ancestor { pid, name });
    }
    let mut emulated = 0;
    // SAFETY: the handle is open and the place for the answer valid.
    if unsafe { IsWow64Process(process.as_raw_handle(), &mut emulated) } != 0 && emulated != 0 {
        return Err(TargetError::ThirtyTwoBit { pid });
    }
    for thread in threads_of(pid) {
        // SAFETY: returns a new handle or null.
        match own(unsafe { OpenThread(RIGHTS, 0, thread.0) }) {
            Ok(_) => return Ok(()),
            // It may have ended since; the next one decides.
            Err(error) if error.raw_os_error() == Some(ERROR_INVALID_PARAMETER as i32) => {}
            Err(error) => return Err(refusal(pid, error)),
        }
    }
    if has_ended(pid) { Err(TargetError::Ended { pid }) } else { Ok(()) }
}

fn refusal(pid: ProcessId, error: io::Error) -> TargetError {
    match error.raw_os_error().map(|code| code as u32) {
        Some(ERROR_INVALID_PARAMETER) => TargetError::NoSuchProcess { pid },
        Some(ERROR_ACCESS_DENIED) => TargetError::Denied { pid, hint: PERMISSION_HINT },
        _ => TargetError::System { action: "open", pid, source: error },
    }
}
