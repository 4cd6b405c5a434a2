//! Linux: the desktop's own choice, by the tool of xdg-utils.

use std::path::Path;
use std::process::Command;

/// Who finds the browser.
pub(super) const OPENER: &str = "xdg-open";

/// The command that opens a page.
pub(super) fn command(page: &Path) -> Command {
    let mut command = Command::new(OPENER);
    command.arg(page);
    command
}
