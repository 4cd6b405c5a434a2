//! The cases of a binary: its framework is recognised by what is in the file, and asked for them.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::fixtures::Fixtures;
use super::framework::{Framework, candidates};
use super::{Case, Suite, SuiteError, SuiteKind};
use crate::program::Program;
use crate::streams::Streams;

/// How long a binary may take to list its cases.
const LISTING: Duration = Duration::from_secs(30);
/// Pause between two looks whether it is done.
const PAUSE: Duration = Duration::from_millis(1);

/// The suite that a program is, with the user's own arguments.
pub fn suite(program: &Program) -> Result<Suite, SuiteError> {
    let found = recognised(&program.file)?;
    let Some(&first) = found.first() else { return Err(SuiteError::NoSuite(program.file.clone())) };
    let mut why = String::new();
    for framework in found {
        match list(program, framework) {
            Ok(names) => {
                let name = name_of(&program.file);
                let cases = names.into_iter().map(|case| one(program, framework, &name, case)).collect();
                let kind = SuiteKind::Binary(framework, Box::new(program.clone()));
                return Ok(Suite { name, kind, cases, fixtures: Fixtures::default() });
            }
            Err(text) => why = text,
        }
    }
    Err(SuiteError::NoList { file: program.file.clone(), framework: first.name(), why })
}

/// The program that runs one case.
fn one(program: &Program, framework: Framework, suite: &str, case: String) -> Case {
    let program = Program {
        arguments: framework.run(&program.arguments, &case),
        title: Some(case.clone()),
        suite: Some(suite.to_owned()),
        ..program.clone()
    };
    let own_threads = framework.own_threads();
    Case { name: case, program, own_threads, passing: None, needs: Vec::new() }
}

/// Frameworks whose marks a file has, most likely first.
pub(crate) fn recognised(file: &Path) -> Result<Vec<Framework>, SuiteError> {
    let bytes = fs::read(file)
        .map_err(|source| crate::program::ProgramError::Unreadable { file: file.to_owned(), source })?;
    Ok(candidates(&|text| memchr::memmem::find(&bytes, text.as_bytes()).is_some()))
}

/// What a suite is called: the file's name without its ending and the digest that Cargo appends, which changes with the
/// compiler and the flags.
pub(crate) fn name_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let digest = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match name.rsplit_once('-') {
        Some((name, end)) if digest(end) && !name.is_empty() => name.to_owned(),
        _ => name.to_owned(),
    }
}

fn list(program: &Program, framework: Framework) -> Result<Vec<String>, String> {
    let listed = |arguments: Vec<String>| {
        let (stdout, stderr) = output(program, arguments).map_err(|error| error.to_string())?;
        framework
            .read_list(&stdout, &stderr)
            .ok_or_else(|| format!("it printed {:?}", stdout.lines().next().unwrap_or_default()))
    };
    let mut names = listed(framework.list(&program.arguments))?;
    if let Some(arguments) = framework.list_ignored(&program.arguments) {
        let ignored = listed(arguments)?;
        names.retain(|name| !ignored.contains(name));
    }
    Ok(names)
}

/// The command that runs the program freely with other arguments.
pub(crate) fn command(program: &Program, arguments: Vec<String>) -> Command {
    let mut command = Command::new(&program.file);
    command.args(arguments).current_dir(&program.folder).stdin(Stdio::null());
    waylay_driver::give_back_mask(&mut command);
    program.set_variables(&mut command);
    command
}

/// What the program prints with these arguments.
fn output(program: &Program, arguments: Vec<String>) -> io::Result<(String, String)> {
    let mut command = command(program, arguments);
    let mut streams = Streams::new(program)?;
    streams.connect(&mut command)?;
    let mut child = command.spawn()?;
    let until = Instant::now() + LISTING;
    while child.try_wait()?.is_none() {
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::Error::other(format!("it did not list its cases within {LISTING:?}")));
        }
        std::thread::sleep(PAUSE);
    }
    let (stdout, stderr) = streams.take()?;
    Ok((String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_appends_is_no_part_of_the_name() {
        let name = |path: &str| name_of(Path::new(path));
        assert_eq!(name("/t/debug/deps/my_crate-0123456789abcdef"), "my_crate");
        assert_eq!(name("queue-test"), "queue-test");
        assert_eq!(name("a-0123456789abcdeg"), "a-0123456789abcdeg");
        assert_eq!(name("b-0123456789abcdef.exe"), "b");
    }
}
