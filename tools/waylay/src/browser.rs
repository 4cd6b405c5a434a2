//! Shows a page in the user's browser. Which program finds that is the system's: `linux` or `windows`.

#[cfg_attr(windows, path = "browser/windows.rs")]
#[cfg_attr(not(windows), path = "browser/linux.rs")]
mod sys;

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::output::Failed;

/// Who opens a page says within that time that it cannot; one that runs for longer is the browser itself.
const ANSWER: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);

/// Opens a page, or says why not and which one it is.
pub(crate) fn open(page: &Path) -> Result<(), Failed> {
    let page = std::path::absolute(page).unwrap_or_else(|_| page.to_owned());
    let why = match answer(&page) {
        Ok(status) if status.is_none_or(|status| status.success()) => return Ok(()),
        Ok(status) => {
            let status = status.map_or_else(String::new, |status| format!(" ({status})"));
            format!("{} finds no browser{status}", sys::OPENER)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => format!("{} is not installed", sys::OPENER),
        Err(error) => format!("{} cannot be started: {error}", sys::OPENER),
    };
    Err(Failed::Usage(format!("no browser could be opened: {why}; the page is {}", page.display())))
}

/// How the program that finds the browser ended; nothing while it runs.
fn answer(page: &Path) -> io::Result<Option<ExitStatus>> {
    let mut command = sys::command(page);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let begun = Instant::now();
    loop {
        match child.try_wait()? {
            None if begun.elapsed() < ANSWER => std::thread::sleep(PAUSE),
            ended => return Ok(ended),
        }
    }
}
