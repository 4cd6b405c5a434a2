//! Frameworks of unit tests: how a binary of one is recognised, asked for its cases, and asked to run one of them. Pure.

use serde::{Deserialize, Serialize};

use super::cases;
use super::harness::Given;

/// A framework of unit tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framework {
    /// The harness of `cargo test`.
    Libtest,
    /// GoogleTest.
    GoogleTest,
    /// Catch2, version 2.
    Catch2V2,
    /// Catch2, version 3.
    Catch2V3,
    /// doctest.
    Doctest,
    /// Boost.Test.
    Boost,
}

/// What a binary of the framework has in it, and what the library is called that has it otherwise.
struct Marks {
    framework: Framework,
    /// All of these.
    texts: &'static [&'static str],
    library: Option<&'static str>,
}

/// In the order in which they are tried. The texts are names of options or of environment variables: they are no debug
/// information, so a stripped binary has them, too.
const MARKS: [Marks; 6] = [
    Marks { framework: Framework::Libtest, texts: &["RUST_TEST_THREADS", "--test-threads"], library: None },
    Marks { framework: Framework::GoogleTest, texts: &["--gtest_list_tests"], library: Some("libgtest.so") },
    Marks { framework: Framework::Catch2V2, texts: &["list-test-names-only"], library: None },
    Marks {
        framework: Framework::Catch2V3,
        texts: &["allow-running-no-tests", "list-listeners"],
        library: Some("libCatch2"),
    },
    Marks { framework: Framework::Doctest, texts: &["list-test-cases", "[doctest]"], library: None },
    Marks {
        framework: Framework::Boost,
        texts: &["BOOST_TEST_LIST_CONTENT"],
        library: Some("libboost_unit_test_framework"),
    },
];

/// Frameworks whose marks a file has, most likely first. `has` says whether the file has a text in it; the libraries that it
/// needs are named in it, too.
pub(crate) fn candidates(has: &dyn Fn(&str) -> bool) -> Vec<Framework> {
    let marked = |marks: &&Marks| marks.texts.iter().all(|text| has(text)) || marks.library.is_some_and(has);
    MARKS.iter().filter(marked).map(|marks| marks.framework).collect()
}

impl Framework {
    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Framework::Libtest => "libtest",
            Framework::GoogleTest => "GoogleTest",
            Framework::Catch2V2 => "Catch2 2",
            Framework::Catch2V3 => "Catch2 3",
            Framework::Doctest => "doctest",
            Framework::Boost => "Boost.Test",
        }
    }

    /// Threads that a case has when it starts none: the harness of Rust gives every case one beside its own.
    pub fn own_threads(self) -> u32 {
        if self == Framework::Libtest { 2 } else { 1 }
    }

    /// Arguments that make the binary list its cases. `given` are the user's own.
    pub(crate) fn list(self, given: &[String]) -> Vec<String> {
        let ours: &[&str] = match self {
            Framework::Libtest => &["--list", "--format=terse"],
            Framework::GoogleTest => &["--gtest_list_tests"],
            Framework::Catch2V2 => &["--list-test-names-only"],
            Framework::Catch2V3 => &["--list-tests", "--verbosity=quiet"],
            Framework::Doctest => &["--list-test-cases", "--no-colors=true"],
            Framework::Boost => &["--list_content", "--color_output=no"],
        };
        owned(&self.choosing(given), ours)
    }

    /// Arguments that make the binary list what it would not run: the harness of Rust lists these with the others.
    pub(crate) fn list_ignored(self, given: &[String]) -> Option<Vec<String>> {
        if self != Framework::Libtest || Given::read(given).wants_ignored() {
            return None;
        }
        Some(owned(&self.choosing(given), &["--list", "--format=terse", "--ignored"]))
    }

    /// The cases that the output of such a listing names.
    pub(crate) fn read_list(self, stdout: &str, stderr: &str) -> Option<Vec<String>> {
        let names = match self {
            Framework::Libtest => cases::libtest(stdout),
            Framework::GoogleTest => cases::google_test(stdout),
            Framework::Catch2V2 | Framework::Catch2V3 => Some(cases::catch2(stdout)),
            Framework::Doctest => cases::doctest(stdout),
            // It lists to its error output.
            Framework::Boost => Some(cases::boost(&format!("{stdout}{stderr}"))),
        }?;
        let mut seen = std::collections::BTreeSet::new();
        Some(names.into_iter().filter(|name| seen.insert(name.clone())).collect())
    }

    /// Arguments that run one case, alone.
    pub(crate) fn run(self, given: &[String], case: &str) -> Vec<String> {
        let given = self.without_filters(given);
        match self {
            // What it captures of a case that dies is lost.
            Framework::Libtest => {
                owned(&given, &["--exact", case, "--test-threads=1", "--nocapture", "--format=terse"])
            }
            Framework::GoogleTest => owned(&given, &[&format!("--gtest_filter={case}"), "--gtest_color=no"]),
            Framework::Catch2V2 => {
                owned(&given, &["--reporter", "compact", "--use-colour", "no", &catch2_name(case)])
            }
            Framework::Catch2V3 => {
                owned(&given, &["--reporter", "compact", "--colour-mode", "none", &catch2_name(case)])
            }
            // Where it sees a debugger it would stop in one.
            Framework::Doctest => owned(
                &given,
                &[
                    &format!("--test-case={}", case.replace('\\', "\\\\").replace(',', "\\,")),
                    "--case-sensitive=true",
                    "--no-breaks=true",
                    "--no-colors=true",
                ],
            ),
            // A fatal signal is told by itself, and better.
            Framework::Boost => owned(
                &given,
                &[
                    &format!("--run_test={case}"),
                    "--color_output=no",
                    "--catch_system_errors=no",
                    "--detect_memory_leaks=0",
                ],
            ),
        }
    }

    /// Arguments that run all cases, one after the other, each named in the output before it begins.
    pub(crate) fn run_all(self, given: &[String]) -> Vec<String> {
        match self {
            Framework::Libtest => {
                owned(&self.choosing(given), &["--test-threads=1", "--format=pretty", "--color=never"])
            }
            Framework::GoogleTest => owned(given, &["--gtest_color=no"]),
            Framework::Catch2V2 | Framework::Catch2V3 => owned(given, &["--reporter", "xml"]),
            Framework::Doctest => owned(given, &["--reporters=xml", "--no-breaks=true"]),
            Framework::Boost => owned(
                given,
                &[
                    "--log_level=test_suite",
                    "--color_output=no",
                    "--catch_system_errors=no",
                    "--detect_memory_leaks=0",
                ],
            ),
        }
    }

    /// The cases that such an output says began, each with the byte at which it says so.
    pub(crate) fn begun(self, output: &str) -> Vec<(usize, String)> {
        match self {
            Framework::Libtest => cases::begun_libtest(output),
            Framework::GoogleTest => cases::begun_google_test(output),
            Framework::Catch2V2 | Framework::Catch2V3 | Framework::Doctest => cases::begun_xml(output),
            Framework::Boost => cases::begun_boost(output),
        }
    }

    /// Whether arguments choose among the cases.
    pub(crate) fn chooses(self, given: &[String]) -> bool {
        let any = |options: &[&str]| {
            let is =
                |word: &String| options.iter().any(|option| word.trim_start_matches('-').starts_with(option));
            given.iter().any(|word| word.starts_with('-') && is(word))
        };
        match self {
            Framework::Libtest => Given::read(given).chooses(),
            Framework::GoogleTest => any(&["gtest_filter"]),
            // A pattern is a word without an option, and so is an option's value: what is no option may be one.
            Framework::Catch2V2 | Framework::Catch2V3 => given.iter().any(|word| !word.starts_with('-')),
            Framework::Doctest => any(&[
                "test-case",
                "tc",
                "test-suite",
                "ts",
                "subcase",
                "sc",
                "source-file",
                "sf",
                "dt-test",
                "dt-tc",
                "dt-ts",
                "dt-sc",
                "dt-so",
                "dt-sf",
            ]),
            Framework::Boost => any(&["run_test", "t"]),
        }
    }

    /// The user's own arguments with those that choose cases, and without those that say what is printed.
    fn choosing(self, given: &[String]) -> Vec<String> {
        if self == Framework::Libtest { Given::read(given).together() } else { given.to_vec() }
    }

    /// The user's own arguments without those that choose cases: one case is chosen by us.
    fn without_filters(self, given: &[String]) -> Vec<String> {
        if self == Framework::Libtest { Given::read(given).alone() } else { given.to_vec() }
    }
}

fn owned(given: &[String], ours: &[&str]) -> Vec<String> {
    given.iter().cloned().chain(ours.iter().map(|one| (*one).to_owned())).collect()
}

/// A name as a pattern of Catch2 that matches nothing else.
fn catch2_name(case: &str) -> String {
    let mut pattern = String::with_capacity(case.len());
    for (place, letter) in case.chars().enumerate() {
        if matches!(letter, ',' | '[' | ']' | '"' | '\\') || place == 0 && matches!(letter, '~' | '-' | '*') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_binary_is_recognised_by_what_is_in_it() {
        let of = |texts: &[&str]| candidates(&|text| texts.contains(&text));
        assert_eq!(of(&["RUST_TEST_THREADS", "--test-threads"]), [Framework::Libtest]);
        assert_eq!(of(&["--gtest_list_tests"]), [Framework::GoogleTest]);
        assert_eq!(of(&["libm.so", "libgtest.so"]), [Framework::GoogleTest]);
        assert_eq!(of(&["libboost_unit_test_framework"]), [Framework::Boost]);
        assert_eq!(of(&["list-test-cases"]), []);
    }

    #[test]
    fn arguments_that_choose_cases_are_known() {
        let chooses = |framework: Framework, words: &[&str]| framework.chooses(&given(words));
        assert!(chooses(Framework::GoogleTest, &["--gtest_filter=A.B"]));
        assert!(!chooses(Framework::GoogleTest, &["--gtest_output=xml:a.xml", "data"]));
        assert!(chooses(Framework::Catch2V3, &["one case"]));
        assert!(!chooses(Framework::Catch2V2, &["--durations=yes"]));
        assert!(chooses(Framework::Doctest, &["-tc=one"]) && !chooses(Framework::Doctest, &["--no-skip"]));
        assert!(
            chooses(Framework::Boost, &["--run_test=a"]) && !chooses(Framework::Boost, &["--log_level=all"])
        );
    }

    #[test]
    fn one_case_is_run_whatever_else_was_asked_for() {
        let libtest = Framework::Libtest
            .run(&given(&["queue", "--skip", "slow", "-Z", "x", "--test-threads=4"]), "a::b");
        assert_eq!(libtest[..4], given(&["-Z", "x", "--exact", "a::b"]));
        let catch2 = Framework::Catch2V2.run(&[], "one, [two]");
        assert_eq!(catch2.last().map(String::as_str), Some("one\\, \\[two\\]"));
        let doctest = Framework::Doctest.run(&[], "one, two");
        assert_eq!(doctest[0], "--test-case=one\\, two");
    }
}
