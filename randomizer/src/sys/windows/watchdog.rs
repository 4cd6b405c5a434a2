//! The second process: it waits for the end of the randomizer and resumes what that left suspended.
//!
//! It is the same program with other arguments, so it can only be started by the command. A library user who suspends
//! threads from a program of its own heals in its own way: [`Watched::begin`] then goes without.

use std::ffi::OsString;
use std::io;
use std::os::windows::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, INFINITE, OpenProcess, PROCESS_SYNCHRONIZE,
    WaitForSingleObject,
};

use super::ledger::Ledger;
use super::process::own;
use super::suspended::heal;

/// The first argument that makes this program a watchdog; behind it the randomizer's process and the ledger's handle.
const STAND_WATCH: &str = "--stand-watch";

/// How long a watchdog may take to start.
const START: Duration = Duration::from_secs(30);

/// What comes before [`STAND_WATCH`] for this program: nothing, or the word by which a larger command calls this one.
/// Unknown in a program that did not go through [`stand_watch`].
static PREFIX: OnceLock<Option<&str>> = OnceLock::new();
/// How the larger command names this one to it.
const AS_SUBCOMMAND: &str = "waylay randomizer";

/// Becomes the watchdog if the arguments say so: returns when the watch is over. None for everybody else.
pub(crate) fn stand_watch(arguments: &[OsString]) -> Option<ExitCode> {
    let subcommand = arguments.first().is_some_and(|name| name == AS_SUBCOMMAND);
    let _ = PREFIX.set(subcommand.then_some("randomizer"));
    let [_, flag, pid, ledger] = arguments else { return None };
    if flag != STAND_WATCH {
        return None;
    }
    let number = |text: &OsString| text.to_str().and_then(|text| text.parse().ok());
    let (Some(pid), Some(ledger)) = (number(pid), number(ledger)) else { return Some(ExitCode::from(2)) };
    // SAFETY: nobody but the randomizer passes these arguments, and it made the handle for us.
    let watched = unsafe { watch(pid as u32, ledger) };
    Some(if watched.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// # Safety
///
/// `ledger` must be the open handle of a ledger, owned by nothing else in this process.
unsafe fn watch(pid: u32, ledger: i32) -> io::Result<()> {
    // SAFETY: passed on to our caller.
    let ledger = unsafe { Ledger::inherit(ledger) }?;
    // SAFETY: returns a new handle or null.
    let randomizer = own(unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, pid) })?;
    ledger.set_watched();
    // SAFETY: the handle is open.
    unsafe {
        WaitForSingleObject(std::os::windows::io::AsRawHandle::as_raw_handle(&randomizer) as HANDLE, INFINITE)
    };
    for (place, thread) in ledger.entries() {
        heal(thread);
        ledger.clear(place);
    }
    Ok(())
}

/// A ledger, and the process that watches over it.
#[derive(Debug)]
pub(super) struct Watched {
    ledger: Ledger,
    watchdog: Option<Child>,
}

impl Watched {
    /// Makes a ledger and starts its watchdog.
    ///
    /// # Errors
    /// When the watchdog does not start: without it no thread is suspended.
    pub(super) fn begin() -> io::Result<Watched> {
        let ledger = Ledger::create()?;
        let Some(prefix) = PREFIX.get() else { return Ok(Watched { ledger, watchdog: None }) };
        let mut child = Command::new(std::env::current_exe()?)
            .args(*prefix)
            .arg(STAND_WATCH)
            .arg(std::process::id().to_string())
            .arg(ledger.raw().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for us; it must outlive that.
            .creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW)
            .spawn()?;
        let began = Instant::now();
        while !ledger.is_watched() {
            if let Some(status) = child.try_wait()? {
                return Err(io::Error::other(format!("the watchdog that resumes threads ended ({status})")));
            }
            if began.elapsed() > START {
                let _ = child.kill();
                return Err(io::Error::other(format!("the watchdog did not start within {START:?}")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Watched { ledger, watchdog: Some(child) })
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // All windows are closed: there is nothing left to watch.
        if let Some(watchdog) = &mut self.watchdog {
            let _ = watchdog.kill();
            let _ = watchdog.wait();
        }
    }
}
