//! The cases of a build folder: the tests that CTest or Meson would run.
//!
//! A test is a program of its own, judged as the tool judges it. One that is a whole suite of a framework, of which its command
//! chooses no case, is a suite here, too, so that each of its cases is explored by itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::fixtures::{Fixtures, Step};
use super::framework::Framework;
use super::passing::Passing;
use super::{Case, Suite, SuiteError, SuiteKind, binary};
use crate::program::Program;

/// How long a test that sets something up may take, unless it says so: CTest's own limit.
const PATIENCE: Duration = Duration::from_secs(1500);

/// A test as the tool describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Described {
    name: String,
    command: Vec<String>,
    folder: Option<String>,
    environment: Vec<(String, String)>,
    unset: Vec<String>,
    passing: Passing,
    /// Why the tool would not run it.
    idle: Option<String>,
    /// Fixtures that it sets up, cleans up, and needs.
    sets_up: Vec<String>,
    cleans_up: Vec<String>,
    needs: Vec<String>,
    patience: Option<Duration>,
}

impl Described {
    fn step(self, fixtures: Vec<String>, folder: &Path) -> Step {
        Step {
            name: self.name,
            fixtures,
            needs: self.needs,
            command: self.command,
            folder: self.folder.map_or_else(|| folder.to_owned(), PathBuf::from),
            environment: self.environment,
            unset: self.unset,
            patience: self.patience.unwrap_or(PATIENCE),
        }
    }
}

/// The suites of a build folder, that of its own tests first, and what of it cannot be explored, with the reason.
pub fn suites(folder: &Path) -> Result<(Vec<Suite>, Vec<String>), SuiteError> {
    let folder = std::fs::canonicalize(folder)
        .map_err(|source| crate::program::ProgramError::Folder { folder: folder.to_owned(), source })?;
    let mut notes = Vec::new();
    let (tool, described) = if folder.join("CTestTestfile.cmake").is_file() {
        let text = answer("CTest", &folder, "ctest", &["--show-only=json-v1"])?;
        ("CTest", ctest(&text).map_err(|error| unread("CTest", &folder, &error))?)
    } else if folder.join("meson-info").is_dir() {
        let text = answer("Meson", &folder, "meson", &["introspect", "--tests"])?;
        let mut tests = meson(&text).map_err(|error| unread("Meson", &folder, &error))?;
        match meant_to_fail(&folder).filter(|meant| meant.len() == tests.len()) {
            Some(meant) => {
                tests.iter_mut().zip(meant).for_each(|(test, fails)| test.passing.will_fail |= fails)
            }
            None => notes.push(
                "which tests of Meson should fail: python3 cannot read meson-private/meson_test_setup.dat"
                    .to_owned(),
            ),
        }
        ("Meson", tests)
    } else {
        return Err(SuiteError::NoFolder(folder));
    };
    let mut kept = Kept { name: project(&folder), folder, left_out: notes, ..Kept::default() };
    described.into_iter().for_each(|test| kept.take(test));
    let own = Suite {
        name: kept.name,
        kind: SuiteKind::Folder(tool),
        cases: kept.cases,
        fixtures: kept.fixtures.clone(),
    };
    // What they need is set up once for all of them, by the first.
    Ok((std::iter::once(own).chain(kept.whole).collect(), kept.left_out))
}

/// What becomes of the tests of a folder.
#[derive(Default)]
struct Kept {
    name: String,
    folder: PathBuf,
    /// Marks of frameworks by file: many tests are cases of one binary.
    frameworks: BTreeMap<PathBuf, Option<Framework>>,
    cases: Vec<Case>,
    whole: Vec<Suite>,
    fixtures: Fixtures,
    left_out: Vec<String>,
}

impl Kept {
    fn take(&mut self, test: Described) {
        if let Some(why) = &test.idle {
            return self.left_out.push(format!("{}: {why}", test.name));
        }
        if !test.sets_up.is_empty() || !test.cleans_up.is_empty() {
            let what = if test.sets_up.is_empty() { "cleans up" } else { "sets up" };
            self.left_out
                .push(format!("{}: it {what} a fixture, and runs once where that is needed", test.name));
            let (sets_up, cleans_up) = (test.sets_up.clone(), test.cleans_up.clone());
            let step = |fixtures| test.clone().step(fixtures, &self.folder);
            self.fixtures.setups.extend((!sets_up.is_empty()).then(|| step(sets_up)));
            self.fixtures.cleanups.extend((!cleans_up.is_empty()).then(|| step(cleans_up)));
            return;
        }
        let place = test.folder.as_ref().map_or(self.folder.as_path(), |folder| Path::new(folder));
        let program = match Program::new(&test.command, Some(place)) {
            Ok(program) => Program { environment: test.environment, unset: test.unset, ..program },
            Err(error) => return self.left_out.push(format!("{}: {error}", test.name)),
        };
        let passing = (!test.passing.is_plain()).then_some(test.passing);
        let framework = *self.frameworks.entry(program.file.clone()).or_insert_with(|| {
            binary::recognised(&program.file).ok().and_then(|found| found.first().copied())
        });
        let chooses = framework.is_none_or(|framework| framework.chooses(&program.arguments));
        // What is said of the whole output says nothing of one case.
        if !chooses && passing.as_ref().is_none_or(Passing::is_of_status) {
            match binary::suite(&program) {
                Ok(mut suite) if suite.cases.len() > 1 => {
                    suite.rename(&format!("{}::{}", self.name, test.name));
                    for case in &mut suite.cases {
                        case.passing.clone_from(&passing);
                        case.needs.clone_from(&test.needs);
                    }
                    return self.whole.push(suite);
                }
                // Its cases cannot be told apart: it is one.
                Ok(_) | Err(_) => {}
            }
        }
        let program = Program { title: Some(test.name.clone()), suite: Some(self.name.clone()), ..program };
        let own_threads = framework.map_or(1, Framework::own_threads);
        self.cases.push(Case { name: test.name, program, own_threads, passing, needs: test.needs });
    }
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
        value: Value,
    }
    let answer: Answer = serde_json::from_str(text)?;
    let described = |test: Test| {
        let property = |name: &str| test.properties.iter().find(|one| one.name == name).map(|one| &one.value);
        let texts = |name: &str| -> Vec<String> {
            match property(name) {
                Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                Some(Value::String(one)) => vec![one.clone()],
                _ => Vec::new(),
            }
        };
        let is_set = |name: &str| property(name).is_some_and(|value| value.as_bool() != Some(false));
        let environment = texts("ENVIRONMENT")
            .iter()
            .filter_map(|text| text.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let (environment, unset) =
            modified(environment, &texts("ENVIRONMENT_MODIFICATION"), &|name| std::env::var(name).ok());
        let missing = texts("REQUIRED_FILES").into_iter().find(|file| !Path::new(file).exists());
        let idle = if is_set("DISABLED") {
            Some("it is disabled".to_owned())
        } else if test.command.is_empty() {
            Some("its program is not there".to_owned())
        } else {
            missing.map(|file| format!("it needs the file {file}, which is not there"))
        };
        Described {
            folder: property("WORKING_DIRECTORY").and_then(Value::as_str).map(str::to_owned),
            environment,
            unset,
            passing: Passing {
                will_fail: is_set("WILL_FAIL"),
                passes_with: texts("PASS_REGULAR_EXPRESSION"),
                fails_with: texts("FAIL_REGULAR_EXPRESSION"),
                skipped_with: texts("SKIP_REGULAR_EXPRESSION"),
                skipped_status: property("SKIP_RETURN_CODE").and_then(Value::as_i64).map(|code| code as i32),
                ..Passing::default()
            },
            idle,
            sets_up: texts("FIXTURES_SETUP"),
            cleans_up: texts("FIXTURES_CLEANUP"),
            needs: texts("FIXTURES_REQUIRED"),
            patience: property("TIMEOUT").and_then(Value::as_f64).and_then(|seconds| {
                Duration::try_from_secs_f64(seconds).ok().filter(|patience| !patience.is_zero())
            }),
            name: test.name,
            command: test.command,
        }
    };
    Ok(answer.tests.into_iter().map(described).collect())
}

/// Variables that are set, and names of those that are taken away.
type Variables = (Vec<(String, String)>, Vec<String>);

/// Variables behind CTest's modifications, `NAME=operation:text` each, which build upon what is inherited.
fn modified(
    set: Vec<(String, String)>,
    modifications: &[String],
    inherited: &dyn Fn(&str) -> Option<String>,
) -> Variables {
    let mut now: BTreeMap<String, Option<String>> =
        set.into_iter().map(|(name, value)| (name, Some(value))).collect();
    let before = now.clone();
    for text in modifications {
        let Some((name, (operation, text))) =
            text.split_once('=').and_then(|(name, rest)| Some((name, rest.split_once(':')?)))
        else {
            continue;
        };
        let old = now.get(name).cloned().unwrap_or_else(|| inherited(name)).unwrap_or_default();
        let paths = |first: &str, second: &str| {
            let parts = [first, second].into_iter().filter(|part| !part.is_empty());
            let parts: Vec<PathBuf> =
                parts.flat_map(|part| std::env::split_paths(part).collect::<Vec<_>>()).collect();
            std::env::join_paths(parts)
                .map(|joined| joined.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        let list = |first: &str, second: &str| {
            [first, second].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(";")
        };
        let new = match operation {
            "reset" => {
                match before.get(name) {
                    Some(value) => now.insert(name.to_owned(), value.clone()),
                    None => now.remove(name),
                };
                continue;
            }
            "unset" => None,
            "set" => Some(text.to_owned()),
            "string_append" => Some(old + text),
            "string_prepend" => Some(text.to_owned() + &old),
            "path_list_append" => Some(paths(&old, text)),
            "path_list_prepend" => Some(paths(text, &old)),
            "cmake_list_append" => Some(list(&old, text)),
            "cmake_list_prepend" => Some(list(text, &old)),
            _ => continue,
        };
        now.insert(name.to_owned(), new);
    }
    let mut variables = Variables::default();
    for (name, value) in now {
        match value {
            Some(value) => variables.0.push((name, value)),
            None => variables.1.push(name),
        }
    }
    variables
}

/// Reads what Meson keeps of its tests for itself, which is the only place where it says which should fail: a pickle of Python,
/// here without the classes that it was made of.
const SHOULD_FAIL: &str = "
import json, pickle, sys
class Anything(dict):
    def __init__(self, *_, **__): pass
    def __setstate__(self, state): self.__dict__.update(state if isinstance(state, dict) else {})
class Reader(pickle.Unpickler):
    def find_class(self, module, name): return Anything
with open(sys.argv[1], 'rb') as file: tests = Reader(file).load()
print(json.dumps([bool(getattr(test, 'should_fail', False)) for test in tests]))
";

/// Whether each test is meant to fail, in the order of the tests, if that can be found out.
fn meant_to_fail(folder: &Path) -> Option<Vec<bool>> {
    let kept = folder.join("meson-private").join("meson_test_setup.dat");
    let mut python = Command::new("python3");
    let output = python.args(["-c", SHOULD_FAIL]).arg(kept).stdin(Stdio::null()).output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

/// The answer of `meson introspect --tests`.
fn meson(text: &str) -> Result<Vec<Described>, serde_json::Error> {
    /// Exit statuses that mean something to Meson.
    const SKIPPED: i32 = 77;
    const BROKEN: i32 = 99;
    #[derive(Deserialize)]
    struct Test {
        name: String,
        cmd: Vec<String>,
        #[serde(default)]
        env: BTreeMap<String, String>,
        #[serde(default)]
        workdir: Option<String>,
        #[serde(default)]
        should_fail: bool,
        #[serde(default)]
        protocol: String,
    }
    let tests: Vec<Test> = serde_json::from_str(text)?;
    let described = |test: Test| {
        let tap = test.protocol == "tap";
        Described {
            name: test.name,
            command: test.cmd,
            folder: test.workdir,
            environment: test.env.into_iter().collect(),
            passing: Passing {
                will_fail: test.should_fail,
                may_die: true,
                skipped_status: (!tap).then_some(SKIPPED),
                broken_status: (!tap).then_some(BROKEN),
                tap,
                ..Passing::default()
            },
            ..Described::default()
        }
    };
    Ok(tests.into_iter().map(described).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn answers_of_both_tools_are_read() {
        let text = r#"{"kind":"ctestInfo","tests":[
            {"name":"queue","command":["/b/queue","--fast"],"properties":[
                {"name":"WORKING_DIRECTORY","value":"/b"},{"name":"ENVIRONMENT","value":["A=1","B=2=3"]},
                {"name":"SKIP_RETURN_CODE","value":77},{"name":"PASS_REGULAR_EXPRESSION","value":["a","b"]},
                {"name":"FIXTURES_REQUIRED","value":["data"]}]},
            {"name":"wrong","command":["/b/wrong"],"properties":[{"name":"WILL_FAIL","value":true}]},
            {"name":"off","command":["/b/off"],"properties":[{"name":"DISABLED","value":true}]},
            {"name":"not_built"}]}"#;
        let tests = ctest(text).unwrap();
        assert_eq!(tests[0].command, ["/b/queue", "--fast"]);
        assert_eq!(tests[0].environment, [pair("A", "1"), pair("B", "2=3")]);
        assert_eq!(
            (tests[0].folder.as_deref(), tests[0].needs.as_slice()),
            (Some("/b"), &["data".to_owned()][..])
        );
        let passing = &tests[0].passing;
        assert_eq!(
            (passing.skipped_status, passing.passes_with.len(), passing.will_fail),
            (Some(77), 2, false)
        );
        assert!(tests[1].passing.will_fail && tests[1].idle.is_none());
        assert_eq!(tests[2].idle.as_deref(), Some("it is disabled"));
        assert_eq!(tests[3].idle.as_deref(), Some("its program is not there"));
        let text = r#"[{"name":"queue","cmd":["/b/queue"],"env":{"A":"1"},"workdir":null,"suite":["x"],"protocol":"exitcode"},
            {"name":"lines","cmd":["/b/lines"],"protocol":"tap","should_fail":true}]"#;
        let tests = meson(text).unwrap();
        assert_eq!((tests[0].command[0].as_str(), tests[0].passing.skipped_status), ("/b/queue", Some(77)));
        assert!(
            tests[1].passing.tap && tests[1].passing.will_fail && tests[1].passing.skipped_status.is_none()
        );
    }

    #[test]
    fn variables_are_modified_one_after_the_other() {
        let inherited = |name: &str| (name == "HOME" || name == "LIST").then(|| "old".to_owned());
        let modifications = [
            "A=string_append:2",
            "A=string_prepend:0",
            "LIST=cmake_list_append:new",
            "HOME=unset:",
            "B=set:x:y",
            "C=set:1",
            "C=reset:",
            "A=nonsense",
        ];
        let (set, unset) = modified(vec![pair("A", "1")], &modifications.map(str::to_owned), &inherited);
        assert_eq!(set, [pair("A", "012"), pair("B", "x:y"), pair("LIST", "old;new")]);
        assert_eq!(unset, ["HOME"]);
        let before = std::env::join_paths(["/x", "old"]).unwrap();
        let (set, _) = modified(Vec::new(), &["LIST=path_list_prepend:/x".to_owned()], &inherited);
        assert_eq!(set, [pair("LIST", before.to_str().unwrap())]);
    }

    #[test]
    fn a_folder_that_is_called_build_is_named_after_its_project() {
        assert_eq!(project(Path::new("/home/me/queue/build")), "queue");
        assert_eq!(project(Path::new("/home/me/queue/build-debug")), "queue");
        assert_eq!(project(Path::new("/home/me/queue")), "queue");
    }
}
