//! Linux: permissions of files, folders that change places, and signals.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

/// Lets a file be executed.
pub(crate) fn make_executable(file: &Path) -> io::Result<()> {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
}

/// Lets two folders change places in one step.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE)?)
}

/// Whether there is a process with this number.
pub(crate) fn is_alive(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// Keeps a terminal's Ctrl-C away from a process: we ask it to end, and a second signal would end it at once.
pub(crate) fn set_apart(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Asks a process that we started to end in order.
pub(crate) fn ask_to_end(child: &Child) {
    // Not through a library call of ours: the standard library sends no signals but the one that kills.
    let _ = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_change_places_in_one_step() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        for folder in [&one, &other] {
            std::fs::create_dir(folder).expect("a folder");
            std::fs::write(folder.join("name"), folder.to_string_lossy().as_bytes()).expect("a file");
        }
        exchange(&one, &other).expect("this file system can");
        let named = |folder: &Path| std::fs::read_to_string(folder.join("name")).expect("a file");
        assert_eq!((named(&one), named(&other)), (other.display().to_string(), one.display().to_string()));
    }
}
