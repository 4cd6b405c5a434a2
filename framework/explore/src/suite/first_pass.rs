//! Which cases of a suite start threads: the others have one schedule each, and are not explored.
//!
//! The whole suite is run once, freely, as its users run it. A case during which a thread began has threads. One during which
//! only threads were there that earlier cases had started says nothing: a pool that lives on would be started by each case
//! alone, and a thread that was forgotten would not. Such a case is looked at by itself, which costs a start of the binary;
//! so is what this pass does not reach, because a case crashes or does not end.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::iter;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use waylay_driver::interrupt;

use super::binary::command;
use super::passing::Answer;
use super::{Case, Suite, SuiteKind};
use crate::sys::census::{MOST_OUTPUT, census};
use crate::sys::empty_file;

/// The number of threads changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Bytes of output by then.
    pub(crate) at: usize,
    /// Threads that are there since, without the harness's own.
    pub(crate) threads: usize,
}

/// How long a suite may be at one case. Output alone is no sign that it gets on: a case may write for ever.
pub(crate) struct Patience<'a> {
    pub(crate) time: Duration,
    /// How many cases a part of the output, which begins with a line, says have begun.
    pub(crate) begun: &'a (dyn Fn(&str) -> usize + Sync),
}

/// What was seen of a run.
#[derive(Clone, Debug)]
pub(crate) struct Census {
    pub(crate) moments: Vec<Moment>,
    /// It ended by itself.
    pub(crate) ended: bool,
    /// How.
    pub(crate) status: Option<ExitStatus>,
}

/// What is known of a case's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// It had some, or it could not be seen that it has none.
    Maybe,
    /// It has none of its own.
    None,
    /// It has none, and does not end.
    NoneAndNoEnd,
    /// It says that it was skipped.
    Skipped,
}

/// Looks at every chosen case of a suite; `patience` is for each. A case that does not end by then is told at once, by its name, and
/// the others are looked at all the same. Answers in the order of the cases.
pub fn first_pass(
    suite: &Suite,
    chosen: &[Case],
    patience: Duration,
    told: &mut dyn FnMut(&str),
) -> Vec<Threads> {
    let mut known = BTreeMap::new();
    if let SuiteKind::Binary(framework, program) = &suite.kind
        && chosen.len() > 1
        && chosen.len() * 2 > suite.cases.len()
    {
        let command = command(program, framework.run_all(&program.arguments));
        let harness = framework.own_threads() > 1;
        let counted = |output: &str| framework.begun(output).len();
        let limit = Patience { time: patience, begun: &counted };
        if let Ok((Some(census), output)) = watched(command, harness, &limit, false) {
            let begun = framework.begun(&output);
            known = attributed(&begun, &census);
            if let Some((_, last)) = begun.last().filter(|_| !census.ended && !interrupt::requested()) {
                told(&format!(
                    "{}::{last} does not end within {patience:?} when all run: each that was not reached runs alone",
                    suite.name
                ));
            }
        }
    }
    let mut alone = |case: &Case| {
        if interrupt::requested() {
            return Threads::Maybe;
        }
        let command = command(&case.program, case.program.arguments.clone());
        let limit = Patience { time: patience, begun: &|_| 0 };
        match watched(command, case.own_threads > 1, &limit, true) {
            Ok((Some(census), output)) if is_skipped(case, &census, &output) => Threads::Skipped,
            Ok((Some(census), _)) if !census.moments.is_empty() => Threads::Maybe,
            Ok((Some(census), _)) if census.ended => Threads::None,
            Ok((Some(_), _)) => {
                if !interrupt::requested() {
                    told(&format!("{} does not end within {patience:?}", case.program.subject()));
                }
                Threads::NoneAndNoEnd
            }
            // It cannot be watched here: its own first run will tell.
            Ok((None, _)) | Err(_) => Threads::Maybe,
        }
    };
    chosen
        .iter()
        .map(|case| match known.get(&case.name) {
            Some(true) => Threads::Maybe,
            Some(false) => Threads::None,
            None => alone(case),
        })
        .collect()
}

/// Whether each case that began has threads of its own; nothing of one that only had those of others, or may not have ended.
fn attributed(begun: &[(usize, String)], census: &Census) -> BTreeMap<String, bool> {
    let mut known = BTreeMap::new();
    for (place, (begin, name)) in begun.iter().enumerate() {
        let end = begun.get(place + 1).map_or(usize::MAX, |(next, _)| *next);
        let before = census.moments.iter().rev().find(|moment| moment.at <= *begin);
        let inherited = before.map_or(0, |moment| moment.threads);
        let within = census.moments.iter().filter(|moment| moment.at > *begin && moment.at <= end);
        let counts: Vec<usize> = iter::once(inherited).chain(within.map(|moment| moment.threads)).collect();
        let started = counts.windows(2).any(|two| two[1] > two[0]);
        let is_last = place + 1 == begun.len();
        if started || (inherited == 0 && (!is_last || census.ended)) {
            known.insert(name.clone(), started);
        }
    }
    known
}

/// Whether a case says that it did nothing.
fn is_skipped(case: &Case, census: &Census, output: &str) -> bool {
    let Some(status) = census.status.and_then(|status| status.code()) else { return false };
    case.passing
        .as_ref()
        .is_some_and(|passing| passing.says(status, status == 0, output, "") == Answer::Skipped)
}

/// Runs a command and watches it; `all` output is read, not only what says which case is at work.
fn watched(
    mut command: std::process::Command,
    harness: bool,
    patience: &Patience<'_>,
    all: bool,
) -> io::Result<(Option<Census>, String)> {
    let mut output: File = empty_file(c"waylay-suite")?;
    command.stdout(output.try_clone()?);
    command.stderr(if all { output.try_clone()?.into() } else { Stdio::null() });
    let census = census(command, &output, harness, patience)?;
    let mut bytes = Vec::new();
    output.rewind()?;
    // What is written between two looks can be more than is looked at.
    output.take(MOST_OUTPUT).read_to_end(&mut bytes)?;
    Ok((census, String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(list: &[(usize, usize)], ended: bool) -> Census {
        Census {
            moments: list.iter().map(|&(at, threads)| Moment { at, threads }).collect(),
            ended,
            status: None,
        }
    }

    fn begun(names: &[(usize, &str)]) -> Vec<(usize, String)> {
        names.iter().map(|&(at, name)| (at, name.to_owned())).collect()
    }

    #[test]
    fn threads_belong_to_the_case_that_was_at_work() {
        let cases = begun(&[(0, "a"), (20, "b"), (40, "c")]);
        let known = attributed(&cases, &moments(&[(30, 1), (30, 2), (30, 1), (40, 0)], true));
        assert_eq!(known.into_values().collect::<Vec<_>>(), [false, true, false]);
    }

    #[test]
    fn a_thread_that_lives_on_says_nothing_of_those_that_come_later() {
        let cases = begun(&[(0, "a"), (20, "b"), (40, "c"), (60, "d"), (80, "e")]);
        let known = attributed(&cases, &moments(&[(30, 1), (70, 2), (75, 0)], true));
        let known: Vec<(&str, bool)> = known.iter().map(|(name, had)| (name.as_str(), *had)).collect();
        // `c` is looked at by itself; `d` started one beside the one that lives on.
        assert_eq!(known, [("a", false), ("b", true), ("d", true), ("e", false)]);
    }

    #[test]
    fn nothing_is_known_of_a_case_that_did_not_end() {
        let cases = begun(&[(0, "a"), (20, "b")]);
        let known = attributed(&cases, &moments(&[], false));
        assert_eq!(known.into_iter().collect::<Vec<_>>(), [("a".to_owned(), false)]);
        let known = attributed(&cases, &moments(&[(30, 1)], false));
        assert_eq!(known.get("b"), Some(&true));
    }
}
