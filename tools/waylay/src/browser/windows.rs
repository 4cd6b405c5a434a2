//! Windows: whatever is registered for pages. `rundll32` takes the name as it is; the shell's `start` would read `&` and `%` in it.

use std::path::Path;
use std::process::Command;

/// Who finds the browser.
pub(super) const OPENER: &str = "rundll32";

/// The command that opens a page.
pub(super) fn command(page: &Path) -> Command {
    let mut command = Command::new(OPENER);
    command.arg("url.dll,FileProtocolHandler").arg(page);
    command
}
