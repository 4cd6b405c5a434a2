//! Where a program's input comes from and its output goes: files that are emptied between runs.
//!
//! Processes share the open files with us and with each other, so what one run leaves behind is taken away here before the
//! next. A run writes at the begin of an emptied file: by the position that is shared, or because the file appends.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::program::Program;
use crate::sys::{empty_file, forget_behind};

/// Bytes kept of an output; the rest is only a sign of how much there was. What is compared with a longer reference is
/// kept as far as that goes and one byte further, which makes it differ.
pub(crate) const KEPT: u64 = 1 << 20;

/// Bytes of an output behind those that are kept, after which the memory that they take is given back while the run goes on.
const MOST_HELD: u64 = 16 << 20;
/// Pause between two looks at how much programs have written.
pub(crate) const GLANCE: Duration = Duration::from_millis(20);

/// Input, output and error output of a program's runs.
#[derive(Debug)]
pub struct Streams {
    stdin: Option<File>,
    kept: u64,
    pub(crate) stdout: Arc<File>,
    stderr: Arc<File>,
}

impl Streams {
    /// The streams of a program, which reads its input, or nothing.
    pub fn new(program: &Program) -> io::Result<Streams> {
        let stdin = program.stdin.as_deref().map(File::open).transpose()?;
        let kept = KEPT.max(program.reference.saturating_add(1));
        let (stdout, stderr) =
            (Arc::new(empty_file(c"waylay-stdout")?), Arc::new(empty_file(c"waylay-stderr")?));
        bound([(&stdout, kept), (&stderr, KEPT)])?;
        Ok(Streams { stdin, kept, stdout, stderr })
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
            // A pipe cannot be rewound and refuses.
            let _ = stdin.rewind();
        }
        Ok((drain(&self.stdout, self.kept)?, drain(&self.stderr, KEPT)?))
    }
}

/// Has the memory bounded that what is written behind the first bytes takes, for as long as the files are open: a program can
/// write without end, and gigabytes before its time is over. One thread looks after all of them.
fn bound(files: [(&Arc<File>, u64); 2]) -> io::Result<()> {
    type Bounded = Vec<(Weak<File>, u64)>;
    static ALL: Mutex<Option<Bounded>> = Mutex::new(None);
    let look = || loop {
        std::thread::sleep(GLANCE);
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        for list in all.iter_mut() {
            list.retain(|(file, kept)| {
                // Where the system cannot do that, the limits of a process are all there is.
                file.upgrade().map(|file| drop(forget_behind(&file, *kept, MOST_HELD))).is_some()
            });
        }
    };
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if all.is_none() {
        std::thread::Builder::new().name("waylay-outputs".into()).spawn(look)?;
    }
    let list = all.get_or_insert_default();
    list.extend(files.map(|(file, kept)| (Arc::downgrade(file), kept)));
    Ok(())
}

fn drain(mut file: &File, kept: u64) -> io::Result<Vec<u8>> {
    if file.metadata()?.len() == 0 {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(kept).read_to_end(&mut bytes)?;
    file.set_len(0)?;
    file.rewind()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its presence makes [`program`] one.
    const ROLE: &str = "WAYLAY_STREAMS_PROGRAM";

    /// What is run: every system has this one.
    #[test]
    fn program() {
        if std::env::var_os(ROLE).is_some() {
            let input = io::read_to_string(io::stdin()).unwrap();
            print!("<{input}>");
            eprint!("<wrong>");
            std::process::exit(0);
        }
    }

    #[test]
    fn each_run_has_its_own_output_and_all_of_the_input() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("input");
        std::fs::write(&input, "words").unwrap();
        let program = std::env::current_exe().unwrap();
        let given = Program::new(&[program.to_str().unwrap().to_owned()], None).unwrap();
        let mut streams = Streams::new(&given.with_input(&input).unwrap()).unwrap();
        for _ in 0..2 {
            let mut command = Command::new(&program);
            command.args(["--exact", "streams::tests::program", "--nocapture"]).env(ROLE, "1");
            streams.connect(&mut command).unwrap();
            assert!(command.status().unwrap().success());
            let (stdout, stderr) = streams.take().unwrap();
            let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
            assert_eq!((stdout.matches("<words>").count(), stderr.as_ref()), (1, "<wrong>"), "{stdout}");
        }
        assert_eq!(streams.take().unwrap(), (Vec::new(), Vec::new()), "it was taken");
    }
}
