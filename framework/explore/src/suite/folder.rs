//! The cases of a build folder: the tests that CTest or Meson would run, each a program of its own.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::{Case, Suite, SuiteError, SuiteKind};
use crate::program::Program;

/// A test as the tool describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Described {
    name: String,
    command: Vec<String>,
    folder: Option<String>,
    environment: Vec<(String, String)>,
    /// It is meant to fail.
    fails: bool,
}

/// The suite of a build folder, and what of it cannot be explored, with the reason.
pub fn suite(folder: &Path) -> Result<(Suite, Vec<String>), SuiteError> {
    let folder = std::fs::canonicalize(folder)
        .map_err(|source| crate::program::ProgramError::Folder { folder: folder.to_owned(), source })?;
    let (tool, described) = if folder.join("CTestTestfile.cmake").is_file() {
        let text = answer("CTest", &folder, "ctest", &["--show-only=json-v1"])?;
        ("CTest", ctest(&text).map_err(|error| unread("CTest", &folder, &error))?)
    } else if folder.join("meson-info").is_dir() {
        let text = answer("Meson", &folder, "meson", &["introspect", "--tests"])?;
        ("Meson", meson(&text).map_err(|error| unread("Meson", &folder, &error))?)
    } else {
        return Err(SuiteError::NoFolder(folder));
    };
    let name = project(&folder);
    let mut left_out = Vec::new();
    let mut cases = Vec::new();
    for test in described {
        let place = test.folder.as_ref().map_or(folder.as_path(), |folder| Path::new(folder));
        if test.fails {
            left_out.push(format!("{}: it is meant to fail", test.name));
            continue;
        }
        match Program::new(&test.command, Some(place)) {
            Ok(program) => {
                // A harness of Rust gives its cases a thread, and so it is with a suite that a build folder runs as a whole.
                let program = Program {
                    title: Some(test.name.clone()),
                    suite: Some(name.clone()),
                    environment: test.environment,
                    ..program
                };
                cases.push(Case { name: test.name, program, own_threads: 1 });
            }
            Err(error) => left_out.push(format!("{}: {error}", test.name)),
        }
    }
    Ok((Suite { name, kind: SuiteKind::Folder(tool), cases }, left_out))
}

/// The name of a suite: that of the folder, or of the one that it is in if it is only called after what it is for.
fn project(folder: &Path) -> String {
    let name = |folder: &Path| folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let own = name(folder).unwrap_or_default();
    let said = own.to_lowercase();
    let general = ["build", "builddir", "out", "debug", "release"].contains(&said.as_str())
        || said.starts_with("build-");
    match folder.parent().filter(|_| general).and_then(name) {
        Some(above) => above,
        None => own,
    }
}

fn answer(
    tool: &'static str,
    folder: &Path,
    program: &str,
    arguments: &[&str],
) -> Result<String, SuiteError> {
    let failed = |why: String| SuiteError::Tool { tool, folder: folder.to_owned(), why };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    waylay_driver::give_back_mask(&mut command);
    let output = command.output().map_err(|error| failed(format!("{program}: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(failed(format!("{program}: {}: {said}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn unread(tool: &'static str, folder: &Path, error: &serde_json::Error) -> SuiteError {
    SuiteError::Tool { tool, folder: folder.to_owned(), why: format!("its answer makes no sense: {error}") }
}

/// The answer of `ctest --show-only=json-v1`.
fn ctest(text: &str) -> Result<Vec<Described>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Answer {
        tests: Vec<Test>,
    }
    #[derive(Deserialize)]
    struct Test {
        name: String,
        #[serde(default)]
        command: Vec<String>,
        #[serde(default)]
        properties: Vec<Property>,
    }
    #[derive(Deserialize)]
    struct Property {
        name: String,
        value: serde_json::Value,
    }
    let answer: Answer = serde_json::from_str(text)?;
    let described = |test: Test| {
        let property = |name: &str| test.properties.iter().find(|one| one.name == name).map(|one| &one.value);
        let environment = property("ENVIRONMENT").and_then(|value| value.as_array()).into_iter().flatten();
        let variable = |text: &serde_json::Value| {
            let (name, value) = text.as_str()?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let is_set = |name: &str| property(name).is_some_and(|value| value.as_bool() != Some(false));
        Described {
            folder: property("WORKING_DIRECTORY").and_then(|value| value.as_str()).map(str::to_owned),
            environment: environment.filter_map(variable).collect(),
            fails: is_set("WILL_FAIL"),
            name: test.name,
            command: test.command,
        }
    };
    // A test whose program was not built has no command.
    Ok(answer.tests.into_iter().filter(|test| !test.command.is_empty()).map(described).collect())
}

/// The answer of `meson introspect --tests`.
fn meson(text: &str) -> Result<Vec<Described>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Test {
        name: String,
        cmd: Vec<String>,
        #[serde(default)]
        env: std::collections::BTreeMap<String, String>,
        #[serde(default)]
        workdir: Option<String>,
        #[serde(default)]
        should_fail: bool,
    }
    let tests: Vec<Test> = serde_json::from_str(text)?;
    let described = |test: Test| Described {
        name: test.name,
        command: test.cmd,
        folder: test.workdir,
        environment: test.env.into_iter().collect(),
        fails: test.should_fail,
    };
    Ok(tests.into_iter().map(described).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_both_tools_are_read() {
        let text = r#"{"kind":"ctestInfo","tests":[
            {"name":"queue","command":["/b/queue","--fast"],"properties":[
                {"name":"WORKING_DIRECTORY","value":"/b"},{"name":"ENVIRONMENT","value":["A=1","B=2=3"]}]},
            {"name":"wrong","command":["/b/wrong"],"properties":[{"name":"WILL_FAIL","value":true}]},
            {"name":"not_built"}]}"#;
        let tests = ctest(text).unwrap();
        assert_eq!(tests.len(), 2);
        assert_eq!(tests[0].command, ["/b/queue", "--fast"]);
        assert_eq!(
            tests[0].environment,
            [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2=3".to_owned())]
        );
        assert_eq!((tests[0].folder.as_deref(), tests[0].fails, tests[1].fails), (Some("/b"), false, true));
        let text = r#"[{"name":"queue","cmd":["/b/queue"],"env":{"A":"1"},"workdir":null,"suite":["x"]}]"#;
        assert_eq!(meson(text).unwrap()[0].command, ["/b/queue"]);
    }

    #[test]
    fn a_folder_that_is_called_build_is_named_after_its_project() {
        assert_eq!(project(Path::new("/home/me/queue/build")), "queue");
        assert_eq!(project(Path::new("/home/me/queue/build-debug")), "queue");
        assert_eq!(project(Path::new("/home/me/queue")), "queue");
    }
}
