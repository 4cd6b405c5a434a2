//! When a test of a build folder passes: what CTest's properties and Meson's protocols say of its exit status and its output.
//! Pure.
//!
//! CTest: a test passes when its status is good, or, if it has expressions to pass with, when one of these is in its output
//! whatever the status; not when one to fail with is. `WILL_FAIL` turns that round. A status or an expression to skip with comes
//! before all that. A test that dies has failed, meant to fail or not. Meson: 77 means skipped, 99 that the test itself broke,
//! and a test that should fail may die as well.

use serde::{Deserialize, Serialize};

use super::expression::Expression;

/// The conditions of one test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Passing {
    /// It is meant to fail.
    pub will_fail: bool,
    /// Dying is a way to fail as it is meant to.
    pub may_die: bool,
    /// Expressions of CMake of which one has to be in its output.
    pub passes_with: Vec<String>,
    /// Expressions of which none may be in its output.
    pub fails_with: Vec<String>,
    /// Expressions that say that it was skipped.
    pub skipped_with: Vec<String>,
    /// The status that says so.
    pub skipped_status: Option<i32>,
    /// The status that says that the test broke.
    pub broken_status: Option<i32>,
    /// It writes lines of the Test Anything Protocol.
    pub tap: bool,
}

/// What the tool would say of a run that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It passed.
    Passed,
    /// It did nothing, and says so.
    Skipped,
    /// Its status is a bad one.
    BadStatus,
    /// It failed for a reason that its status does not tell.
    Failed(String),
}

impl Passing {
    /// Whether every run that exits with 0, and no other, passes.
    pub fn is_plain(&self) -> bool {
        *self == Passing { may_die: self.may_die, ..Passing::default() }
    }

    /// Whether it says something of the exit status only, and means every case of a suite as it means the whole.
    pub(crate) fn is_of_status(&self) -> bool {
        let Passing { skipped_status, broken_status, may_die, .. } = *self;
        *self == Passing { skipped_status, broken_status, may_die, ..Passing::default() }
    }

    /// What is said of a run that exited with a status, which is one of the good ones or not.
    pub fn says(&self, status: i32, is_good: bool, stdout: &str, stderr: &str) -> Answer {
        // CTest reads both as one; how they were mixed is not known here.
        let both = format!("{stdout}{stderr}");
        let has = |text: &&String| match Expression::new(text) {
            Ok(expression) => expression.is_in(&both) || expression.is_in(stderr),
            // CMake complained of it before.
            Err(_) => false,
        };
        if self.skipped_status == Some(status) || self.skipped_with.iter().any(|text| has(&text)) {
            return Answer::Skipped;
        }
        if self.broken_status == Some(status) {
            return Answer::BadStatus;
        }
        let wrong = self.fails_with.iter().find(has).map(|text| format!("its output has {text:?}"));
        let missing = !self.passes_with.is_empty() && !self.passes_with.iter().any(|text| has(&text));
        let wrong = wrong
            .or_else(|| missing.then(|| format!("its output has none of {}", quoted(&self.passes_with))));
        let line = self.tap.then(|| failed_line(stdout)).flatten();
        let wrong = wrong.or_else(|| line.map(str::to_owned));
        // Its lines say what failed, and its status whether all of them were written.
        if self.tap && !is_good {
            return Answer::BadStatus;
        }
        let good = wrong.is_none() && (is_good || !self.passes_with.is_empty());
        match (good, self.will_fail) {
            (true, false) | (false, true) => Answer::Passed,
            (true, true) => Answer::Failed(format!("exited with status {status}, but is meant to fail")),
            (false, false) => wrong.map_or(Answer::BadStatus, Answer::Failed),
        }
    }
}

fn quoted(texts: &[String]) -> String {
    texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ")
}

/// The first line by which a test that speaks the Test Anything Protocol says that something failed.
fn failed_line(output: &str) -> Option<&str> {
    let excused = |line: &str| {
        let directive = line.split_once('#').map(|(_, text)| text.trim_start().to_lowercase());
        directive.is_some_and(|text| text.starts_with("todo") || text.starts_with("skip"))
    };
    output.lines().find(|line| line.starts_with("Bail out!") || line.starts_with("not ok") && !excused(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(one: &str) -> Vec<String> {
        vec![one.to_owned()]
    }

    #[test]
    fn properties_of_ctest_decide_as_ctest_does() {
        let says = |passing: &Passing, status: i32, text: &str| passing.says(status, status == 0, text, "");
        let plain = Passing::default();
        assert_eq!(says(&plain, 0, ""), Answer::Passed);
        assert_eq!(says(&plain, 1, ""), Answer::BadStatus);
        let fails = Passing { will_fail: true, ..Passing::default() };
        assert_eq!(says(&fails, 3, ""), Answer::Passed);
        assert!(matches!(says(&fails, 0, ""), Answer::Failed(text) if text.contains("meant to fail")));
        let skipped = Passing {
            skipped_status: Some(4),
            skipped_with: texts("^SKIP"),
            will_fail: true,
            ..Passing::default()
        };
        assert_eq!(says(&skipped, 4, ""), Answer::Skipped);
        assert_eq!(skipped.says(0, true, "", "SKIP: no device"), Answer::Skipped);
        // What has to be in the output counts more than the status.
        let passes = Passing { passes_with: texts("[0-9] of 9 ok"), ..Passing::default() };
        assert_eq!(says(&passes, 1, "9 of 9 ok"), Answer::Passed);
        assert!(matches!(says(&passes, 0, "of 9 ok"), Answer::Failed(text) if text.contains("none of")));
        let both = Passing { fails_with: texts("[Ee]rror"), ..passes };
        assert!(matches!(says(&both, 0, "9 of 9 ok, Error"), Answer::Failed(text) if text.contains("has")));
        let turned = Passing { will_fail: true, ..both };
        assert_eq!(says(&turned, 0, "error"), Answer::Passed);
    }

    #[test]
    fn protocols_of_meson_decide_as_meson_does() {
        let exit = Passing {
            skipped_status: Some(77),
            broken_status: Some(99),
            will_fail: true,
            may_die: true,
            ..Passing::default()
        };
        assert_eq!(exit.says(77, false, "", ""), Answer::Skipped);
        assert_eq!(exit.says(99, false, "", ""), Answer::BadStatus);
        assert_eq!(exit.says(1, false, "", ""), Answer::Passed);
        let tap = Passing { tap: true, ..Passing::default() };
        let says = |text: &str| tap.says(0, true, text, "");
        assert_eq!(says("1..2\nok 1 - a\nnot ok 2 - b # TODO later\n"), Answer::Passed);
        assert_eq!(says("1..2\nok 1\nnot ok 2 - b\n"), Answer::Failed("not ok 2 - b".to_owned()));
    }
}
