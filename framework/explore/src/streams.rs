//! Where a program's input comes from and its output goes: files in memory, emptied between runs.
//!
//! All processes of a fork server share the open files, so what one run leaves behind is taken away here before the next.
//! The output files append, so that a run writes at the end of an emptied file and not behind a hole.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Bytes kept of an output; the rest is only a sign of how much there was.
const KEPT: u64 = 1 << 20;

/// Input, output and error output of a program's runs.
#[derive(Debug)]
pub struct Streams {
    stdin: Option<File>,
    stdout: File,
    stderr: File,
}

impl Streams {
    /// Streams that read from `input`, or from nothing.
    pub fn new(input: Option<&Path>) -> io::Result<Streams> {
        let stdin = input.map(File::open).transpose()?;
        Ok(Streams { stdin, stdout: memory(c"waylay-stdout")?, stderr: memory(c"waylay-stderr")? })
    }

    /// Makes a command use them.
    pub fn connect(&self, command: &mut Command) -> io::Result<()> {
        match &self.stdin {
            Some(file) => command.stdin(file.try_clone()?),
            None => command.stdin(Stdio::null()),
        };
        command.stdout(self.stdout.try_clone()?).stderr(self.stderr.try_clone()?);
        Ok(())
    }

    /// Takes what was written since the last time, output and error output, and rewinds the input.
    pub fn take(&mut self) -> io::Result<(Vec<u8>, Vec<u8>)> {
        if let Some(stdin) = &self.stdin {
            // SAFETY: plain call on our descriptor; a pipe cannot be rewound and refuses.
            unsafe { libc::lseek(stdin.as_raw_fd(), 0, libc::SEEK_SET) };
        }
        Ok((drain(&self.stdout)?, drain(&self.stderr)?))
    }
}

fn memory(name: &std::ffi::CStr) -> io::Result<File> {
    // SAFETY: the name is NUL-terminated; the descriptor is owned right away.
    unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let file = File::from_raw_fd(fd);
        if libc::fcntl(fd, libc::F_SETFL, libc::O_APPEND) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(file)
    }
}

fn drain(file: &File) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    if size == 0 {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; size.min(KEPT) as usize];
    file.read_exact_at(&mut bytes, 0)?;
    file.set_len(0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_its_own_output_and_all_of_the_input() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("input");
        std::fs::write(&input, "words").unwrap();
        let mut streams = Streams::new(Some(&input)).unwrap();
        for _ in 0..2 {
            let mut command = Command::new("sh");
            command.args(["-c", "cat; echo more; echo wrong >&2"]);
            streams.connect(&mut command).unwrap();
            assert!(command.status().unwrap().success());
            let (stdout, stderr) = streams.take().unwrap();
            assert_eq!((stdout.as_slice(), stderr.as_slice()), (&b"wordsmore\n"[..], &b"wrong\n"[..]));
        }
    }
}
