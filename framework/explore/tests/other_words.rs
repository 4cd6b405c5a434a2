//! No verdict depends on a word: every word that is made of what a run tells about itself is changed, and every verdict stays.
//!
//! A file of its own, because the words are changed for the whole process.

use std::process::ExitStatus;
use std::time::Duration;

use waylay_control_protocol::account::{
    Beside, Departure, Object, Operation, Place, Standing, Touch, Touched,
};
use waylay_control_protocol::{Account, Ending, Statement, words};
use waylay_explore::observed::{Hang, Observed};
use waylay_explore::oracle::{Expected, Verdict, judge};

fn standing(thread: u32, kind: &'static str, object: Object, holder: Option<u32>) -> Statement<'static> {
    let operation = Operation { kind: kind.into(), object };
    Statement::Standing(Standing { thread, steps: 3, waits_since: Some(7), operation, holder })
}

fn place(module: &'static str, offset: u64) -> Statement<'static> {
    Statement::Place(Place::InModule(module.into(), offset, Some("main".into())))
}

fn deadlock() -> Vec<Statement<'static>> {
    vec![
        Statement::Beside(Beside::Other("fork starts a process".into())),
        Statement::Hurried,
        Statement::Deadlock(2),
        standing(0, "thread-join", Object::Thread(1), None),
        place("/bin/program", 0x10),
        standing(1, "mutex-lock", Object::Address(0x5080), Some(2)),
        place("/bin/program", 0x20),
        Statement::Outsiders(1),
        Statement::InKernel(1),
        Statement::Allocated(24, Some((0, 3))),
    ]
}

fn race() -> Vec<Statement<'static>> {
    let touched = |how, thread| Touched { how, bytes: 4, thread };
    vec![
        Statement::Race(touched(Touch::Write, 1), touched(Touch::Free, 2)),
        place("/bin/program", 0x30),
        place("/bin/program", 0x40),
    ]
}

fn left() -> Vec<Statement<'static>> {
    vec![
        Statement::Beside(Beside::BeforeMain),
        Statement::Left(3, Departure::Otherwise("thread 1".into(), "further steps".into())),
        Statement::Left(3, Departure::Early(2)),
        Statement::Left(0, Departure::Before),
        Statement::Refusal("cannot be done".into()),
    ]
}

fn observed(ending: Ending, statements: Vec<Statement<'static>>, hung: bool) -> Observed {
    let hang = Hang { limit: Duration::from_secs(10), cpu: Duration::ZERO, at_work: false };
    Observed {
        status: ExitStatus::default(),
        ending,
        account: Account(statements),
        steps: 100_000,
        reach: 0,
        switches: 5,
        threads: 3,
        partly_controlled: false,
        awaits: false,
        diverged: None,
        reached: true,
        cut: false,
        accesses: 0,
        limited: 0,
        limited_places: Vec::new(),
        overlooked: false,
        overlooked_places: Vec::new(),
        loaded: Vec::new(),
        refused_places: Vec::new(),
        races_over: false,
        calls_over: false,
        store_buffers: 0,
        corrupted: None,
        delayed: Vec::new(),
        patched: (0, 0),
        race: None,
        hung: hung.then_some(hang),
        stdout: Vec::new(),
        stderr: Vec::new(),
    }
}

/// What a verdict consists of, but for the line that people read.
fn essence(verdict: Verdict) -> Option<(String, String, String)> {
    match verdict {
        Verdict::Failed(failure) => Some((failure.kind.to_string(), failure.key, failure.cause)),
        Verdict::Passed => None,
        Verdict::Unfinished => Some(Default::default()),
    }
}

#[test]
fn no_verdict_changes_with_the_words() {
    let expected = Expected { limit_is_failure: true, ..Expected::default() };
    let runs = [
        observed(Ending::Deadlock, deadlock(), false),
        observed(Ending::Livelock, vec![Statement::Livelock(100_000)], false),
        observed(Ending::Race, race(), false),
        observed(Ending::StepLimit, Vec::new(), false),
        observed(Ending::Exited, left(), false),
        observed(Ending::Unfinished, left(), true),
    ];
    let judge_all = || runs.iter().map(|run| essence(judge(run, &expected))).collect::<Vec<_>>();
    let texts = || {
        let lines = runs.iter().flat_map(|run| run.account.0.iter().map(ToString::to_string));
        lines.collect::<Vec<_>>()
    };
    let (before, said) = (judge_all(), texts());
    assert_eq!(before.iter().filter(|verdict| verdict.is_some()).count(), 5, "{before:?}");
    words::change_every_word();
    for (now, before) in texts().iter().zip(&said) {
        let same =
            before.split(' ').filter(|word| word.chars().any(char::is_alphabetic) && now.contains(word));
        assert_eq!(same.collect::<Vec<_>>(), Vec::<&str>::new(), "{before:?} is still in {now:?}");
    }
    assert_eq!(judge_all(), before);
}
