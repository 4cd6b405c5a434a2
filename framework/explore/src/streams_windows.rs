//! Where a program's input comes from and its output goes: files that are emptied between runs.
//!
//! A program's handles share their position with ours, so that a run writes at the begin of an emptied file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
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
        Ok(Streams { stdin, stdout: tempfile::tempfile()?, stderr: tempfile::tempfile()? })
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
        if let Some(stdin) = &mut self.stdin {
            stdin.seek(SeekFrom::Start(0))?;
        }
        Ok((drain(&mut self.stdout)?, drain(&mut self.stderr)?))
    }
}

fn drain(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(KEPT).read_to_end(&mut bytes)?;
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(bytes)
}
