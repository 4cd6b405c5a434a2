//! What functions of libc do, they do under control: for every function that the library stands in front of there are
//! cases of success, errors, timeouts, signals and cancellation. Each passes freely, where the kernel and libc answer, and in every
//! schedule.

#[path = "../harness/mod.rs"]
mod harness;

use std::process::{Command, Stdio};

use harness::{BOTH, Program, parameters};
use waylay_control_protocol::{Ending, Settings, Switching, Timeouts};

fn build(family: &str) -> Program {
    Program::build_in("tests/conformance", &["case.h"], &format!("{family}.c"))
}

/// What a program says about its cases: kind, name and functions of each.
fn cases(program: &Program) -> Vec<(String, String, Vec<String>)> {
    let listed = Command::new(program.path()).arg("--list").output().expect("the program starts");
    let text = String::from_utf8(listed.stdout).expect("names are text");
    let of_line = |line: &str| {
        let (head, functions) = line.split_once(": ").expect("a name and functions");
        let (kind, name) = head.split_once(' ').expect("a kind and a name");
        let functions = functions.split_whitespace().map(str::to_owned).collect();
        (kind.to_owned(), name.to_owned(), functions)
    };
    text.lines().map(of_line).collect()
}

/// The schedules under which every program runs.
fn conditions() -> Vec<(Settings, String)> {
    let mut all = Vec::new();
    for switching in BOTH {
        for (run, strategy) in ["random", "pct", "random", "pos"].iter().enumerate() {
            let mut settings = Settings::new(switching, 7, run as u64);
            if run == 2 {
                settings.timeouts = Timeouts::Idle as u32;
            }
            all.push((settings, parameters(strategy, 4, 2000, 3)));
        }
    }
    all
}

fn conforms(family: &str) {
    let program = build(family);
    let free = Command::new(program.path()).stdin(Stdio::null()).output().expect("the program starts");
    let said = String::from_utf8_lossy(&free.stdout).into_owned();
    assert!(
        free.status.success(),
        "freely: {:?}\n{said}{}",
        free.status,
        String::from_utf8_lossy(&free.stderr)
    );
    for (settings, parameters) in conditions() {
        let outcome = program.run_with(settings, &parameters);
        let last = outcome.stderr.lines().last().unwrap_or_default();
        let clean = outcome.code == Some(0) && outcome.ending == Ending::Exited;
        assert!(
            clean,
            "{settings:?} {parameters}: {:?} {:?} {:?} in {last}\n{}{}{}",
            outcome.ending, outcome.code, outcome.signal, outcome.stdout, outcome.text, outcome.stderr
        );
    }
}

macro_rules! families {
    ($($name:ident)+) => {
        /// The programs of this folder.
        const FAMILIES: &[&str] = &[$(stringify!($name)),+];
    $(
        #[test]
        fn $name() {
            conforms(stringify!($name));
        }
    )+};
}

families! { mutex condition rwlock semaphore clock signals }

/// Cases that end their process: with the same status freely and under control.
#[test]
fn what_ends_a_process_ends_it_alike() {
    for &family in FAMILIES {
        let program = build(family);
        for (_, name, _) in cases(&program).iter().filter(|(kind, ..)| kind == "only") {
            let free =
                Command::new(program.path()).arg(name).stdin(Stdio::null()).output().expect("it starts");
            for switching in [Switching::Baton, Switching::Carrier] {
                let outcome = program.with(&[name]).run(switching, 7, 0);
                assert_eq!(outcome.code, free.status.code(), "{name}: {outcome:#?}");
                assert_eq!(outcome.stdout, String::from_utf8_lossy(&free.stdout), "{name}");
            }
        }
    }
}
