//! Whether a run failed: a pure function of what was observed and what is expected.
//!
//! Asked in this order, because the first that applies says most: a region that was written over, the library's own verdicts
//! (deadlock, step limit, race), a run that had to be killed, a fatal signal, a sanitizer's report, the exit status, the error
//! output, the output.

use serde::{Deserialize, Serialize};
use waylay_control_protocol::account::Place;
use waylay_control_protocol::{Account, Ending, TEST_FAILED_STATUS};
use waylay_driver::failure::Kind;
use waylay_driver::last_words::{LastWords, last_words, own_assertion};
use waylay_driver::secrets::{clean, clean_text};
use waylay_evidence::signature::normal_message;

use crate::observed::Observed;
use crate::suite::message::{Message, message};
use crate::suite::passing::{Answer, Passing};
use crate::sys::{SILENT, death};

/// What a good run looks like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// Exit statuses that are good.
    pub statuses: Vec<i32>,
    /// Texts that must not be in the error output.
    pub stderr: Vec<String>,
    /// What the output must be.
    pub stdout: Option<Vec<u8>>,
    /// A run that reaches the limit of steps has failed.
    #[serde(default)]
    pub limit_is_failure: bool,
    /// The program is a case of a suite: what its framework printed says what failed, and where.
    #[serde(default)]
    pub case: bool,
    /// What CTest or Meson says of when it passes, if that is more than its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passing: Option<Passing>,
}

impl Default for Expected {
    fn default() -> Expected {
        Expected {
            statuses: vec![0],
            stderr: Vec::new(),
            stdout: None,
            limit_is_failure: false,
            case: false,
            passing: None,
        }
    }
}

/// The cause of a failure that consists in not ending. Whether the limit of steps or of time was reached first says
/// something about the machine, not about the program.
pub const NO_END: &str = "no end";

/// Why a run that waited is a limit and no deadlock: what it waited for may come later.
const AWAITS: &str = "it waits for something outside the schedule";

/// The cause of a failure that consists in writing over what is ours.
const OURS: &str = "memory of Waylay";

/// The exit status of a Rust program that panicked.
const PANICKED: i32 = 101;

/// What is wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind, in the words of the store.
    pub kind: Kind,
    /// One line for people.
    pub what: String,
    /// What the program said about it.
    pub message: Option<String>,
    /// The signal, the exit status, or what else gave it away; free of what differs from run to run.
    pub cause: String,
    /// `file:line` of the assertion of a test case, if its framework said so.
    pub place: Option<String>,
    /// Failures with different keys are different; those with equal keys may be the same.
    pub key: String,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing wrong.
    Passed,
    /// It was stopped at the limit of steps or of time, before it could be judged.
    Unfinished,
    /// Something wrong.
    Failed(Failure),
}

/// Judges a run.
pub fn judge(run: &Observed, expected: &Expected) -> Verdict {
    match failure(run, expected) {
        Some(failure) => Verdict::Failed(failure),
        None if run.is_cut_off() => Verdict::Unfinished,
        None => Verdict::Passed,
    }
}

fn failure(run: &Observed, expected: &Expected) -> Option<Failure> {
    if let Some(why) = &run.corrupted {
        let what = format!("the test wrote over memory that belongs to Waylay: {why}; {}", end_of(run));
        return Some(failed(Kind::Corrupted, what, None, OURS));
    }
    match run.ending {
        Ending::Deadlock => {
            let what = run.account.headline().unwrap_or_else(|| "deadlock".to_owned());
            return Some(failed(Kind::Deadlock, what, None, &places(&run.account)));
        }
        Ending::StepLimit => {
            let what = format!("no end after {} steps: limit reached", run.steps);
            return expected.limit_is_failure.then(|| failed(Kind::Livelock, what, None, NO_END));
        }
        Ending::Livelock => {
            let why = run.account.why_livelock().map_or_else(String::new, |why| format!(": {why}"));
            let what = format!("no end after {} steps{why}", run.steps);
            return Some(failed(Kind::Livelock, what, None, NO_END));
        }
        Ending::Race => {
            let what = run.account.headline().unwrap_or_else(|| "race".to_owned());
            let cause = run.race.as_ref().map_or_else(String::new, |race| {
                let [one, other] = race.pair().sites();
                format!("{:016x} {:016x}", one.0, other.0)
            });
            return Some(failed(Kind::Race, what, None, &cause));
        }
        Ending::Awaiting => {
            let what = format!("no end after {} steps: {AWAITS}", run.steps);
            return expected.limit_is_failure.then(|| failed(Kind::Livelock, what, None, NO_END));
        }
        Ending::Unfinished | Ending::Exited | Ending::Refused => {}
    }
    if let Some(hang) = run.hung {
        let (how, is_limit) = match hang.at_work {
            true => ("limit reached", true),
            false if run.waited_for_the_outside() => (AWAITS, true),
            false => ("it is still computing", false),
        };
        let what = format!("no end within {:?}, after {} steps: {how}", hang.limit, run.steps);
        return (!is_limit || expected.limit_is_failure).then(|| failed(Kind::Livelock, what, None, NO_END));
    }
    let stderr = run.stderr_text();
    let passing = expected.passing.as_ref();
    if passing.is_some_and(|passing| passing.will_fail && passing.may_die) && death(run.status).is_some() {
        return None;
    }
    if let Some(death) = death(run.status) {
        let name = death.name;
        let said = said(&stderr);
        if let Some(misuse) = run.account.misuse().filter(|_| said.is_none()) {
            let words = misuse.to_string();
            let mut failure = failed(Kind::Crash, format!("{name}: {words}"), Some(words), &name);
            failure.key = key(Kind::Crash, &name, &misuse.key());
            return Some(failure);
        }
        let (kind, message) = match said {
            Some(LastWords::Assertion(text)) if death.is_abort => (Kind::Assert, Some(text)),
            Some(LastWords::Exception(text)) if death.is_abort => (Kind::Exception, Some(text)),
            Some(words) => (Kind::Crash, Some(words.text().to_owned())),
            None => match (heap_complaint(&stderr), own_assertion(&stderr).filter(|_| death.is_abort)) {
                (None, Some(text)) => (Kind::Assert, Some(text)),
                (complaint, _) => (Kind::Crash, complaint),
            },
        };
        let what = message
            .clone()
            .map_or_else(|| format!("killed by {name}"), |message| format!("{name}: {message}"));
        return Some(failed(kind, what, message, &name));
    }
    if let Some(report) = sanitizer_report(&stderr) {
        return Some(failed(Kind::Crash, report.clone(), Some(report), "sanitizer"));
    }
    let code = run.status.code().unwrap_or(-1);
    let is_good = expected.statuses.contains(&code);
    let stdout = || String::from_utf8_lossy(&run.stdout);
    let answer = match passing {
        Some(passing) => passing.says(code, is_good, &stdout(), &stderr),
        None if is_good => Answer::Passed,
        None => Answer::BadStatus,
    };
    if let Answer::Failed(why) = &answer {
        let said = expected.case.then(|| message(&stdout(), &stderr)).flatten().filter(|_| !is_good);
        return Some(match said {
            Some(said) => failed_case(&said, code),
            None => failed(Kind::Assert, why.clone(), Some(why.clone()), "output"),
        });
    }
    if answer == Answer::BadStatus {
        if let Some(said) =
            expected.case.then(|| message(&String::from_utf8_lossy(&run.stdout), &stderr)).flatten()
        {
            return Some(failed_case(&said, code));
        }
        // What a harness of Rust tests caught of a panic, it prints to its output.
        let caught =
            || (code == PANICKED).then(|| last_words(&String::from_utf8_lossy(&run.stdout))).flatten();
        let words = said(&stderr).or_else(caught);
        let kind = match &words {
            Some(LastWords::Assertion(_)) => Kind::Assert,
            Some(LastWords::Exception(_)) => Kind::Exception,
            None if code == TEST_FAILED_STATUS => Kind::Assert,
            Some(LastWords::Terminated(_)) | None => Kind::Exit,
        };
        let message = words.map(|words| words.text().to_owned());
        let what = match &message {
            Some(message) if code == TEST_FAILED_STATUS => message.clone(),
            Some(message) => format!("exited with status {code}: {message}"),
            None => format!("exited with status {code}"),
        };
        let cause = if kind == Kind::Exit { format!("status {code}") } else { format!("exit {code}") };
        return Some(failed(kind, what, message, &cause));
    }
    if let Some(text) = expected.stderr.iter().find(|text| stderr.contains(text.as_str())) {
        let line = stderr.lines().find(|line| line.contains(text.as_str())).unwrap_or(text).trim().to_owned();
        return Some(failed(Kind::Assert, format!("wrote {line:?}"), Some(line), &format!("stderr {text}")));
    }
    if let Some(reference) = expected.stdout.as_ref().filter(|reference| **reference != run.stdout) {
        return Some(failed(Kind::Assert, difference(&run.stdout, reference), None, "output"));
    }
    None
}

/// How a run ended, as the kernel saw it.
fn end_of(run: &Observed) -> String {
    match (run.hung, death(run.status)) {
        (Some(hang), _) => format!("it did not end within {:?}", hang.limit),
        (None, Some(death)) => format!("it was killed by {}", death.name),
        (None, None) => format!("it exited with status {}", run.status.code().unwrap_or(-1)),
    }
}

/// What a program said goes into files, onto screens and into the key by which failures are told apart: nothing of it is secret.
fn failed(kind: Kind, mut what: String, mut message: Option<String>, cause: &str) -> Failure {
    message.iter_mut().chain([&mut what]).for_each(clean_text);
    Failure {
        kind,
        key: key(kind, cause, message.as_deref().unwrap_or_default()),
        what,
        message,
        cause: cause.to_owned(),
        place: None,
    }
}

fn key(kind: Kind, cause: &str, message: &str) -> String {
    format!("{kind} {cause} {}", normal_message(message))
}

/// What a framework said of a case that ended with that status.
fn failed_case(said: &Message, code: i32) -> Failure {
    let cause = format!("exit {code}");
    let mut failure = failed(said.kind, said.line(), Some(said.text.clone()), &cause);
    let mut place = said.place.clone();
    place.iter_mut().for_each(clean_text);
    if let Some(place) = &place {
        failure.key = format!("{} {cause} {place}", said.kind);
    }
    failure.place = place;
    failure
}

/// The code places in the library's report of a deadlock, in an order that does not depend on the threads'.
fn places(account: &Account) -> String {
    // The C library and the host of plugin tests are on every stack, and change with every build of theirs.
    let mut places: Vec<String> = account
        .places()
        .map(Place::key)
        .filter(|place| !SILENT.iter().any(|module| place.contains(module)))
        .collect();
    places.sort_unstable();
    places.join(" ")
}

/// What the host of a plugin test said that its test failed of, or what an assertion, a panic or the C++ runtime said.
fn said(stderr: &str) -> Option<LastWords> {
    let of_test = stderr.lines().find_map(|line| line.strip_prefix("waylay: the test failed: "));
    of_test.map(|said| LastWords::Assertion(said.trim().to_owned())).or_else(|| last_words(stderr))
}

/// What libc said about the heap or the stack before it gave up.
fn heap_complaint(stderr: &str) -> Option<String> {
    const LIBC: [&str; 11] = [
        "*** ",
        "free(): ",
        "malloc(): ",
        "realloc(): ",
        "munmap_chunk(): ",
        "corrupted ",
        "double free or corruption",
        "malloc_consolidate(): ",
        "sysmalloc: ",
        "Fatal glibc error: ",
        "tcache_thread_shutdown(): ",
    ];
    let mut lines = stderr.lines().map(str::trim);
    lines.find(|line| LIBC.iter().any(|start| line.starts_with(start))).map(str::to_owned)
}

/// The first line of a report by one of the compilers' sanitizers.
fn sanitizer_report(stderr: &str) -> Option<String> {
    const MARKS: [&str; 3] = ["ERROR: AddressSanitizer", "WARNING: ThreadSanitizer", "ERROR: LeakSanitizer"];
    let is_report = |line: &&str| {
        MARKS.iter().any(|mark| line.contains(mark))
            || line.contains("MemorySanitizer: ")
            || (line.contains(": runtime error: ") && line.split(':').count() > 3)
    };
    let line = stderr.lines().find(is_report)?;
    Some(line.trim_start_matches(['=', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']).trim().to_owned())
}

/// Characters of a line that are shown.
const SHOWN: usize = 200;

fn difference(output: &[u8], reference: &[u8]) -> String {
    // Before they are cut: half of a secret is not looked for.
    let [output, reference] = [output, reference].map(|bytes| {
        let mut bytes = bytes.to_vec();
        clean(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let (mut ours, mut theirs) = (output.lines(), reference.lines());
    for number in 1.. {
        match (ours.next(), theirs.next()) {
            (None, None) => break,
            (ours, theirs) if ours == theirs => {}
            (ours, theirs) => {
                // A line of a file that is no text may be as long as the file.
                let begin = |line: &str| line.chars().take(SHOWN).collect::<String>();
                let shown = |line: Option<&str>| {
                    line.map_or("the end".to_owned(), |line| format!("{:?}", begin(line)))
                };
                return format!(
                    "output differs in line {number}: {} instead of {}",
                    shown(ours),
                    shown(theirs)
                );
            }
        }
    }
    "output differs in its line ends".to_owned()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Duration;

    use super::*;
    use crate::observed::Hang;
    use waylay_control_protocol::Statement;
    use waylay_control_protocol::account::Misuse;

    fn run(status: i32, ending: Ending, stderr: &str) -> Observed {
        Observed {
            status: ExitStatus::from_raw(status),
            ending,
            account: Account::default(),
            steps: 12,
            reach: 0,
            switches: 3,
            threads: 2,
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
            delayed: Vec::new(),
            patched: (0, 0),
            race: None,
            hung: None,
            corrupted: None,
            stdout: b"one\ntwo\n".to_vec(),
            stderr: stderr.as_bytes().to_vec(),
        }
    }

    fn what(run: &Observed, expected: &Expected) -> Option<(Kind, String)> {
        match judge(run, expected) {
            Verdict::Passed | Verdict::Unfinished => None,
            Verdict::Failed(failure) => Some((failure.kind, failure.what)),
        }
    }

    /// Stored failures have keys that were made of the sentence that the library then wrote.
    #[test]
    fn a_misuse_of_the_heap_is_what_it_was_when_it_was_read_from_a_sentence() {
        let mut freed = run(6, Ending::Unfinished, "");
        let misuse = Misuse::FreedTwice(24, Some((1, 7)), Some((2, 9)));
        freed.account = Account(vec![Statement::Misuse(misuse)]);
        let Verdict::Failed(failure) = judge(&freed, &Expected::default()) else { panic!() };
        let sentence = "double free of 24 bytes: thread 1 (at step 7) freed them, thread 2 (at step 9) again";
        assert_eq!((failure.kind, failure.message.as_deref()), (Kind::Crash, Some(sentence)));
        assert_eq!(failure.key, format!("crash SIGABRT {}", normal_message(sentence)));
    }

    #[test]
    fn the_first_that_applies_is_the_verdict() {
        let plain = Expected::default();
        let kind = |run: &Observed| what(run, &plain).map(|(kind, _)| kind);
        assert_eq!(kind(&run(0, Ending::Exited, "")), None);
        assert_eq!(kind(&run(86 << 8, Ending::Deadlock, "")), Some(Kind::Deadlock));
        assert_eq!(kind(&run(87 << 8, Ending::Livelock, "")), Some(Kind::Livelock));
        assert_eq!(kind(&run(11, Ending::Unfinished, "")), Some(Kind::Crash));
        assert_eq!(kind(&run(6, Ending::Unfinished, "")), Some(Kind::Crash));
        let assert = "a: a.c:3: main: Assertion `x == 1' failed.\n";
        assert_eq!(kind(&run(6, Ending::Unfinished, assert)), Some(Kind::Assert));
        assert_eq!(kind(&run(3 << 8, Ending::Exited, "")), Some(Kind::Exit));
        let thrown = "terminate called after throwing an instance of 'int'\n";
        assert_eq!(kind(&run(6, Ending::Unfinished, thrown)), Some(Kind::Exception));
        let own = "CHECK(n == 2) failed in counter.c:9\n";
        assert_eq!(kind(&run(6, Ending::Unfinished, own)), Some(Kind::Assert));
        assert_eq!(
            kind(&run(11, Ending::Unfinished, own)),
            Some(Kind::Crash),
            "nothing that it said killed it"
        );
        assert_eq!(kind(&run(6, Ending::Unfinished, "free(): invalid pointer\n")), Some(Kind::Crash));
        let asan = "==17==ERROR: AddressSanitizer: heap-use-after-free on address 0x1\n";
        assert_eq!(kind(&run(1 << 8, Ending::Exited, asan)), Some(Kind::Crash));
        let panic = "\nthread 'main' panicked at src/main.rs:3:5:\nindex out of bounds\n";
        let failed = "waylay: the test failed: a plain sum is 3\n";
        let (_, text) = what(&run(TEST_FAILED_STATUS << 8, Ending::Exited, failed), &plain).unwrap();
        assert_eq!(text, "a plain sum is 3");
        let (kind, text) = what(&run(101 << 8, Ending::Exited, panic), &plain).unwrap();
        assert_eq!(kind, Kind::Assert);
        assert_eq!(text, "exited with status 101: panicked at src/main.rs:3:5: index out of bounds");
    }

    #[test]
    fn it_does_not_matter_which_limit_ends_a_run_that_computes_for_ever() {
        let steps = run(87 << 8, Ending::Livelock, "");
        let mut time = run(9, Ending::Unfinished, "");
        time.hung = Some(Hang { limit: Duration::from_secs(4), cpu: Duration::from_secs(4), at_work: false });
        let key = |run: &Observed| match judge(run, &Expected::default()) {
            Verdict::Failed(failure) => failure.key,
            Verdict::Passed | Verdict::Unfinished => panic!("it failed"),
        };
        assert_eq!(key(&steps), key(&time));
    }

    #[test]
    fn a_limit_is_a_failure_only_if_that_is_asked_for() {
        let limited = run(87 << 8, Ending::StepLimit, "");
        assert_eq!(judge(&limited, &Expected::default()), Verdict::Unfinished);
        let strict = Expected { limit_is_failure: true, ..Expected::default() };
        let expected = (Kind::Livelock, "no end after 12 steps: limit reached".to_owned());
        assert_eq!(what(&limited, &strict), Some(expected));
        let mut slow = run(9, Ending::Unfinished, "");
        slow.hung = Some(Hang { limit: Duration::from_secs(4), cpu: Duration::from_secs(4), at_work: true });
        assert_eq!(judge(&slow, &Expected::default()), Verdict::Unfinished);
        let expected = (Kind::Livelock, "no end within 4s, after 12 steps: limit reached".to_owned());
        assert_eq!(what(&slow, &strict), Some(expected));
    }

    #[test]
    fn what_is_expected_can_be_said() {
        let ok = |expected: &Expected, run: &Observed| what(run, expected).is_none();
        let seven = Expected { statuses: vec![0, 7], ..Expected::default() };
        assert!(ok(&seven, &run(7 << 8, Ending::Exited, "")));
        let quiet = Expected { stderr: vec!["lost".to_owned()], ..Expected::default() };
        assert!(!ok(&quiet, &run(0, Ending::Exited, "2 lost\n")));
        assert!(ok(&quiet, &run(0, Ending::Exited, "fine\n")));
        let same = Expected { stdout: Some(b"one\ntwo\n".to_vec()), ..Expected::default() };
        assert!(ok(&same, &run(0, Ending::Exited, "")));
        let other = Expected { stdout: Some(b"one\nthree\n".to_vec()), ..Expected::default() };
        let (_, text) = what(&run(0, Ending::Exited, ""), &other).unwrap();
        assert_eq!(text, "output differs in line 2: \"two\" instead of \"three\"");
    }

    #[test]
    fn what_a_build_tool_says_of_its_test_counts() {
        let ctest = Passing { will_fail: true, ..Passing::default() };
        let of = |passing: &Passing| Expected { passing: Some(passing.clone()), ..Expected::default() };
        assert_eq!(what(&run(1 << 8, Ending::Exited, ""), &of(&ctest)), None);
        let (kind, text) = what(&run(0, Ending::Exited, ""), &of(&ctest)).unwrap();
        assert_eq!((kind, text.as_str()), (Kind::Assert, "exited with status 0, but is meant to fail"));
        // Dying is no way to fail as it is meant to, where CTest decides; where Meson does, it is.
        assert_eq!(what(&run(11, Ending::Unfinished, ""), &of(&ctest)).unwrap().0, Kind::Crash);
        let meson = Passing { may_die: true, ..ctest };
        assert_eq!(what(&run(11, Ending::Unfinished, ""), &of(&meson)), None);
        // A deadlock is one whatever a test is meant to do.
        let locked = run(86 << 8, Ending::Deadlock, "");
        assert_eq!(what(&locked, &of(&meson)).unwrap().0, Kind::Deadlock);
    }

    #[test]
    fn a_run_that_was_killed_while_it_waits_for_the_world_is_at_a_limit() {
        let mut late = run(9, Ending::Unfinished, "");
        let limit = Duration::from_secs(1);
        let strict = Expected { limit_is_failure: true, ..Expected::default() };
        let waits = "no end within 1s, after 12 steps: it waits for something outside the schedule";
        // Who computes while nobody under control can run is a thread that is not under control.
        for (cpu, awaits, fails) in [(0, false, false), (900, true, false), (900, false, true)] {
            late.hung = Some(Hang { limit, cpu: Duration::from_millis(cpu), at_work: false });
            late.awaits = awaits;
            let verdict = judge(&late, &Expected::default());
            assert_eq!(what(&late, &Expected::default()).is_some(), fails, "{verdict:?}");
            assert_eq!(verdict == Verdict::Unfinished, !fails);
            let (kind, text) = what(&late, &strict).unwrap();
            assert_eq!((kind, text == waits), (Kind::Livelock, !fails));
        }
        let gave_up = run(87 << 8, Ending::Awaiting, "");
        assert_eq!(judge(&gave_up, &Expected::default()), Verdict::Unfinished);
        assert!(what(&gave_up, &strict).is_some());
    }
}
