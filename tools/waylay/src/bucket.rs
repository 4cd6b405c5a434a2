//! Results in a bucket: `--out s3://bucket/night` of `run`, `explore`, `suite` and `compare`, and folders of `merge`.
//!
//! The work is done by `waylay-bucket`, a command that lies beside this one. It sends what stands in a local folder while a
//! campaign writes there, and ends when its standard input does: when this process ends, however it does, and also when it is killed.

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use crate::output::Failed;

/// How an address of a bucket begins.
const SCHEME: &str = "s3://";
/// The command, beside this one.
pub(crate) const HELPER: &str = "waylay-bucket";
/// Its exit code when the same would happen again.
const REFUSED: i32 = 2;

/// Whether something is an address in a bucket and no folder.
pub(crate) fn is_address(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.starts_with(SCHEME))
}

pub(crate) fn helper() -> Result<PathBuf, Failed> {
    let own =
        std::env::current_exe().map_err(|error| Failed::Own(format!("cannot find this command: {error}")))?;
    let helper = own.with_file_name(format!("{HELPER}{}", std::env::consts::EXE_SUFFIX));
    match helper.is_file() {
        true => Ok(helper),
        false => Err(Failed::Usage(format!(
            "results go to buckets through a command of its own, and {} is not there: packages have it, and `cargo build --release -p \
             {HELPER}` makes it",
            helper.display()
        ))),
    }
}

/// Runs the command for a moment; what it printed, or its sentence.
pub(crate) fn ask(words: &[&str]) -> Result<String, Failed> {
    let cannot = |error| Failed::Own(format!("cannot start {HELPER}: {error}"));
    let output = Process::new(helper()?).args(words).stdin(Stdio::null()).output().map_err(cannot)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> =
        said.lines().map(|line| line.strip_prefix("waylay-bucket: ").unwrap_or(line)).collect();
    match output.status.code() {
        Some(0) => {
            said.iter().for_each(|line| eprintln!("waylay: {line}"));
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Some(REFUSED) => Err(Failed::Usage(said.join("; "))),
        _ => Err(Failed::Own(said.join("; "))),
    }
}

/// Whether this machine may list, read, write and delete there.
pub(crate) fn check(address: &str) -> Result<(), Failed> {
    ask(&["check", address]).map(drop)
}

/// Fetches what is below an address; only the records, if only they are wanted.
pub(crate) fn fetch(address: &str, folder: &Path, records: bool) -> Result<(), Failed> {
    let folder = folder.to_string_lossy();
    let only: &[&str] = if records { &["--records"] } else { &[] };
    ask(&[&["get", address, &folder], only].concat()).map(drop)
}

/// Puts a folder in place of what is below an address.
pub(crate) fn replace(folder: &Path, address: &str) -> Result<(), Failed> {
    ask(&["send", &folder.to_string_lossy(), address, "--once", "--replace"]).map(drop)
}

/// A folder of this machine for a while.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Result<Scratch, Failed> {
        let moment = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let name = format!("waylay-results-{}-{moment:x}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // Somebody else's folder is not taken for ours: `create_dir` fails when there is one.
        std::fs::create_dir(&folder)
            .map_err(|error| Failed::Own(format!("cannot make {}: {error}", folder.display())))?;
        Ok(Scratch(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// It stays.
    pub(crate) fn keep(mut self) {
        self.0 = PathBuf::new();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// Folders that may lie in a bucket, as folders of this machine, for as long as the scratch is there.
pub(crate) fn local(folders: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<Scratch>), Failed> {
    let mut scratch = Vec::new();
    let mut local = Vec::new();
    for folder in folders {
        if !is_address(folder) {
            local.push(folder.clone());
            continue;
        }
        let here = Scratch::new()?;
        fetch(&folder.to_string_lossy(), here.path(), false)?;
        local.push(here.path().to_owned());
        scratch.push(here);
    }
    Ok((local, scratch))
}
