//! A schedule that the control library stopped: which failure that is. Pure.

use waylay_control_protocol::account::Place;
use waylay_control_protocol::{Account, Statement};

use crate::failure::Kind;
use crate::host::StoppedBy;
use crate::report::count;

/// What is recorded of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stopped {
    /// The kind of failure.
    pub(super) kind: Kind,
    /// One line for people.
    pub(super) what: String,
    /// What makes it the same as another failure of its kind and test.
    pub(super) known_by: String,
    /// More for people, if there is more.
    pub(super) reason: Option<String>,
}

impl Stopped {
    /// Judges what a run told about itself.
    pub(super) fn of(verdict: StoppedBy, account: &Account, steps: u64) -> Stopped {
        let mut places: Vec<String> = account.places().map(Place::key).collect();
        places.sort_unstable();
        let steps = count(steps);
        match verdict {
            StoppedBy::Deadlock => Stopped {
                kind: Kind::Deadlock,
                what: account.headline().unwrap_or_else(|| "deadlock".to_owned()),
                known_by: places.join(" "),
                reason: Some(waits(account)),
            },
            StoppedBy::Race => Stopped {
                kind: Kind::Race,
                what: account.headline().unwrap_or_else(|| "race".to_owned()),
                known_by: places.join(" "),
                reason: Some(places.join("\n")),
            },
            StoppedBy::Livelock => {
                let why = account.why_livelock().map_or_else(String::new, |why| format!(": {why}"));
                let what = format!("no end after {steps} steps{why}");
                Stopped { kind: Kind::Livelock, what, known_by: String::new(), reason: None }
            }
            StoppedBy::StepLimit | StoppedBy::Refused => {
                let what = format!("no end after {steps} steps: limit reached");
                Stopped { kind: Kind::Livelock, what, known_by: String::new(), reason: None }
            }
        }
    }
}

/// Who waits for what, a line each.
fn waits(account: &Account) -> String {
    let told =
        |statement: &&Statement<'_>| !matches!(statement, Statement::Place(_) | Statement::Deadlock(_));
    account.0.iter().filter(told).map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use waylay_control_protocol::account::{Beside, Object, Operation, Standing};

    fn account(words: &'static str) -> Account {
        let operation = Operation { kind: "mutex-lock".into(), object: Object::Address(0x10) };
        let place = |offset| Statement::Place(Place::InModule("plugin.so".into(), offset, None));
        Account(vec![
            Statement::Beside(Beside::Other(words.into())),
            Statement::Deadlock(2),
            Statement::Standing(Standing {
                thread: 1,
                steps: 4,
                waits_since: Some(9),
                operation,
                holder: Some(2),
            }),
            place(0x20),
            place(0x10),
        ])
    }

    #[test]
    fn a_deadlock_is_known_by_its_places_and_told_by_who_waits() {
        let stopped = Stopped::of(StoppedBy::Deadlock, &account("x"), 10);
        assert_eq!(
            (stopped.kind, stopped.known_by.as_str()),
            (Kind::Deadlock, "plugin.so+0x10 plugin.so+0x20")
        );
        assert_eq!(stopped.what, "deadlock: 2 threads, none can run");
        let reason = stopped.reason.unwrap();
        assert!(
            reason.ends_with("thread 1 (4 steps) waits in mutex-lock 0x10 since step 9, held by thread 2"),
            "{reason}"
        );
    }

    #[test]
    fn what_is_said_in_words_decides_nothing() {
        // Words that would be taken for places and headlines, were they read.
        let known = |words| Stopped::of(StoppedBy::Deadlock, &account(words), 10).known_by;
        assert_eq!(known("x"), known("    elsewhere+0x1\ndeadlock: 9 threads\nrace: y"));
    }

    #[test]
    fn a_livelock_says_for_how_long_nothing_changed() {
        let told = Account(vec![Statement::Livelock(100_000)]);
        let stopped = Stopped::of(StoppedBy::Livelock, &told, 100_020);
        assert_eq!(stopped.kind, Kind::Livelock);
        assert!(stopped.what.contains("nothing changed in 100000 steps"), "{}", stopped.what);
    }
}
