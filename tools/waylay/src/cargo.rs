//! `waylay cargo test`: the tests of a Cargo workspace, built by Cargo and explored case by case.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use waylay_driver::report::count;
use waylay_explore::program::Program;
use waylay_explore::suite::{Suite, binary, harness};

use crate::args::CargoOptions;
use crate::output::Failed;

pub(crate) fn cargo(options: &CargoOptions, json: bool) -> Result<u8, Failed> {
    let Some(("test" | "t", arguments)) =
        options.arguments.split_first().map(|(first, rest)| (first.as_str(), rest))
    else {
        return Err(Failed::Usage(
            "only the tests of a workspace can be explored: waylay cargo test".to_owned(),
        ));
    };
    let words = Words::read(arguments);
    if words.builds_only {
        return Err(Failed::Usage(
            "with --no-run nothing is run: leave it out, or use `cargo test`".to_owned(),
        ));
    }
    let mut cases = options.cases.clone();
    let mut theirs = words.binaries;
    cases.list |= harness::wants_list(&theirs);
    // It is meant for the text that stands beside it.
    if cases.exact && cases.filter.is_empty() && words.name.is_some() {
        theirs.push("--exact".to_owned());
    }
    theirs.splice(0..0, words.name);
    let built = build(&words.cargo)?;
    let mut suites = Vec::new();
    let mut notes = Vec::new();
    for one in built {
        match one.suite(&theirs) {
            Ok(suite) => suites.push(suite),
            Err(error) => notes.push(format!("{}: not explored: {error}", one.name)),
        }
    }
    if suites.is_empty() {
        let why = notes.first().map_or_else(|| "Cargo built no test binary".to_owned(), Clone::clone);
        return Err(Failed::Usage(format!("nothing to explore: {why}")));
    }
    if !theirs.is_empty() && suites.iter().all(|suite| suite.cases.is_empty()) {
        let (words, binaries) = (theirs.join(" "), count(suites.len() as u64));
        return Err(Failed::Usage(format!(
            "`{words}` leaves no case of {binaries} test binaries: nothing ran (--list shows all without it)"
        )));
    }
    crate::suite::run(suites, notes, &cases, &options.settings, json)
}

/// The words behind `test`, by whose they are.
#[derive(Debug, Default, PartialEq, Eq)]
struct Words {
    /// Cargo's, the text for names with them.
    cargo: Vec<String>,
    /// The text that names of cases have to have in them.
    name: Option<String>,
    /// The test binaries'.
    binaries: Vec<String>,
    /// Nothing should be run.
    builds_only: bool,
}

impl Words {
    fn read(arguments: &[String]) -> Words {
        let mut words = Words::default();
        let mut rest = arguments.iter().peekable();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "--" => words.binaries.extend(rest.by_ref().cloned()),
                "--no-run" => words.builds_only = true,
                // What Cargo prints is read here.
                "--message-format" => {
                    rest.next();
                }
                long if long.starts_with("--message-format=") => {}
                option if option.starts_with('-') => {
                    words.cargo.push(word.clone());
                    if WITH_VALUE.contains(&option) {
                        words.cargo.extend(rest.next_if(|next| !next.starts_with('-')).cloned());
                    }
                }
                // It says itself that it takes one only.
                _ => {
                    words.cargo.push(word.clone());
                    words.name.get_or_insert_with(|| word.clone());
                }
            }
        }
        words
    }
}

/// Options of `cargo test` whose value is the next word. What is missing here would be taken for a text in names.
const WITH_VALUE: [&str; 21] = [
    "-p",
    "--package",
    "--exclude",
    "--bin",
    "--example",
    "--test",
    "--bench",
    "-F",
    "--features",
    "-j",
    "--jobs",
    "--profile",
    "--target",
    "--target-dir",
    "--artifact-dir",
    "--manifest-path",
    "--lockfile-path",
    "--color",
    "--config",
    "-Z",
    "-C",
];

/// A test binary.
#[derive(Debug, PartialEq, Eq)]
struct Built {
    /// What its suite is called: the crate, or the package and the file of integration tests.
    name: String,
    file: PathBuf,
    /// The folder of its package, in which Cargo runs it.
    folder: PathBuf,
}

impl Built {
    fn suite(&self, arguments: &[String]) -> Result<Suite, String> {
        let command: Vec<String> =
            std::iter::once(self.file.display().to_string()).chain(arguments.iter().cloned()).collect();
        let mut program = Program::new(&command, Some(&self.folder)).map_err(|error| error.to_string())?;
        program.environment.push(("CARGO_MANIFEST_DIR".to_owned(), self.folder.display().to_string()));
        let mut suite = binary::suite(&program).map_err(|error| error.to_string())?;
        suite.rename(&self.name);
        Ok(suite)
    }
}

fn build(arguments: &[String]) -> Result<Vec<Built>, Failed> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    waylay_driver::give_back_mask(&mut command);
    command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(arguments);
    let output =
        command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().map_err(|error| {
            Failed::Usage(format!("cannot start {}: {error}", Path::new(&cargo).display()))
        })?;
    if !output.status.success() {
        return Err(Failed::Usage(format!("Cargo could not build the tests ({})", output.status)));
    }
    Ok(binaries(&String::from_utf8_lossy(&output.stdout)))
}

/// The test binaries that Cargo says it built.
fn binaries(messages: &str) -> Vec<Built> {
    #[derive(Deserialize)]
    struct Message {
        reason: String,
        #[serde(default)]
        manifest_path: PathBuf,
        target: Option<Target>,
        profile: Option<Profile>,
        executable: Option<PathBuf>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
        #[serde(default)]
        kind: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Profile {
        test: bool,
    }
    let built = |line: &str| {
        let message: Message = serde_json::from_str(line).ok()?;
        let target = message.target.filter(|_| message.reason == "compiler-artifact")?;
        message.profile.filter(|profile| profile.test)?;
        let folder = message.manifest_path.parent()?.to_owned();
        let of_its_own = target.kind.iter().any(|kind| matches!(kind.as_str(), "test" | "example" | "bench"));
        let package = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = match package.filter(|_| of_its_own) {
            Some(package) => format!("{package}::{}", target.name),
            None => target.name,
        };
        Some(Built { name, file: message.executable?, folder })
    };
    messages.lines().filter_map(built).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_for_names_is_told_from_the_values_of_options() {
        let line =
            "-p queue --features fast,small --lib push --release --message-format short -- --exact --skip x";
        let words = Words::read(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(words.cargo.join(" "), "-p queue --features fast,small --lib push --release");
        assert_eq!(words.name.as_deref(), Some("push"));
        assert_eq!(words.binaries, ["--exact", "--skip", "x"]);
        assert!(!words.builds_only);
        assert_eq!(Words::read(&["--package".to_owned(), "--lib".to_owned()]).name, None);
    }

    #[test]
    fn only_test_binaries_are_taken_from_what_cargo_says() {
        let message = |kind: &str, name: &str, test: bool, file: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"package_id\":\"x\",\"manifest_path\":\"/w/queue/Cargo.toml\",\"target\":\
                 {{\"kind\":[\"{kind}\"],\"name\":\"{name}\"}},\"profile\":{{\"test\":{test}}},\"executable\":{file}}}"
            )
        };
        let messages = [
            message("lib", "queue", false, "null"),
            message("lib", "queue", true, "\"/w/target/queue-0123456789abcdef\""),
            message("test", "order", true, "\"/w/target/order-0123456789abcdef\""),
            "{\"reason\":\"build-finished\",\"success\":true}".to_owned(),
        ];
        let names: Vec<String> = binaries(&messages.join("\n")).into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["queue", "queue::order"]);
    }
}
