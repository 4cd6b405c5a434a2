//! Where runs take place: a folder for temporary files, and on request one to work in, a fresh copy of the one in which the
//! program was to run.
//!
//! The folder stays the same for all runs of a server, which cannot change its working directory between them; its content
//! is replaced before each. Links are copied as links; sockets, pipes and devices are left out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use std::process::Command;

use waylay_driver::scratch::Scratch;

use crate::program::Program;

/// Where runs take place.
#[derive(Debug)]
pub(crate) struct Workplace {
    place: Place,
    /// For temporary files; none on a disk without room for a folder.
    temporary: Option<Scratch>,
}

#[derive(Debug)]
enum Place {
    /// In the folder that the user named, with everything that earlier runs left.
    Shared(PathBuf),
    /// In a copy.
    Copy { original: PathBuf, copy: tempfile::TempDir },
}

impl Workplace {
    /// The workplace for a program, ready for a first run.
    pub(crate) fn new(program: &Program) -> io::Result<Workplace> {
        if !program.isolated {
            let place = Place::Shared(program.folder.clone());
            return Ok(Workplace { place, temporary: Scratch::create().ok() });
        }
        let copy = tempfile::Builder::new().prefix("waylay-run-").tempdir()?;
        let place = Place::Copy { original: program.folder.clone(), copy };
        let workplace = Workplace { place, temporary: Scratch::create().ok() };
        workplace.tidy()?;
        Ok(workplace)
    }

    /// The folder to start the program in.
    pub(crate) fn folder(&self) -> &Path {
        match &self.place {
            Place::Shared(folder) => folder,
            Place::Copy { copy, .. } => copy.path(),
        }
    }

    /// Has a program work here.
    pub(crate) fn take_in(&self, command: &mut Command) {
        command.current_dir(self.folder());
        if let Some(temporary) = &self.temporary {
            temporary.announce(command);
        }
    }

    /// Makes it as it was before the first run.
    pub(crate) fn tidy(&self) -> io::Result<()> {
        let Place::Copy { original, copy } = &self.place else { return Ok(()) };
        self.temporary.as_ref().map(Scratch::empty);
        for entry in fs::read_dir(copy.path())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        copy_content(original, copy.path())
    }
}

fn copy_content(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy_content(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            crate::sys::copy_link(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_as_fresh_as_the_original() {
        let original = tempfile::tempdir().unwrap();
        fs::create_dir(original.path().join("inner")).unwrap();
        fs::write(original.path().join("inner/file"), "one").unwrap();
        std::os::unix::fs::symlink("inner/file", original.path().join("link")).unwrap();
        let copy = tempfile::tempdir().unwrap();
        let place = Place::Copy { original: original.path().to_owned(), copy };
        let workplace = Workplace { place, temporary: None };
        for _ in 0..2 {
            workplace.tidy().unwrap();
            let file = workplace.folder().join("link");
            assert_eq!(fs::read_to_string(&file).unwrap(), "one");
            fs::write(&file, "two").unwrap();
            fs::write(workplace.folder().join("more"), "more").unwrap();
        }
        workplace.tidy().unwrap();
        assert!(!workplace.folder().join("more").exists());
        assert_eq!(fs::read_to_string(original.path().join("inner/file")).unwrap(), "one");
    }
}
