//! What functions of libc do, they do under control: for every function that the library stands in front of there are
//! cases of success, errors, timeouts, signals and cancellation. Each passes freely, where the kernel and libc answer, and in every
//! schedule.

#[path = "../harness/mod.rs"]
mod harness;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use harness::{BOTH, Program, library, parameters};
use object::{Object, ObjectSymbol};
use waylay_control_protocol::{Ending, Settings, Switching, Timeouts};

/// Functions of libc that the library stands in front of but that no program calls by itself, with the reason.
const NO_CASE: [(&str, &str); 2] = [
    ("__libc_start_main", "every program begins with it"),
    ("pthread_yield", "only programs that were linked long ago have it: it is sched_yield"),
];

/// Fewer cases than this would mean that a list was not read.
const AT_LEAST: usize = 400;

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

fn symbols(file: &Path) -> BTreeSet<String> {
    let data = std::fs::read(file).expect("a library");
    let file = object::File::parse(&*data).expect("a library");
    let defined = file.dynamic_symbols().filter(|symbol| !symbol.is_undefined());
    defined.filter_map(|symbol| symbol.name().ok()).map(str::to_owned).collect()
}

fn libc_symbols() -> BTreeSet<String> {
    let mapped = std::fs::read_to_string("/proc/self/maps").expect("our own mappings");
    let libc = mapped
        .lines()
        .find_map(|line| line.find("/").map(|at| &line[at..]).filter(|path| path.contains("/libc.so")));
    symbols(Path::new(libc.expect("libc is loaded")))
}

/// Functions of libc that ours come before.
fn interposed() -> BTreeSet<String> {
    symbols(&library()).intersection(&libc_symbols()).cloned().collect()
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

families! { mutex condition rwlock semaphore clock signals faults descriptor thread calls ending notify timeout whole processes }

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

/// Names under which libc has a function a second time: for programs whose compiler checks lengths, and for files beyond 2 GiB.
/// A program calls them without saying so. (Names that begin with `_` or end in `_nocancel` and that no header has are libc's own.)
fn twins_of(function: &str) -> [String; 6] {
    let plain = function.trim_start_matches('_').trim_end_matches("64");
    [
        format!("{plain}64"),
        format!("__{plain}_chk"),
        format!("__{plain}64_chk"),
        format!("__{plain}_2"),
        format!("__{plain}64_2"),
        format!("{plain}_time64"),
    ]
}

/// Twins that are none of ours, with the reason.
const NO_TWIN: [&str; 3] = ["stat64", "fstat64", "lstat64"]; // They never wait, and Rust's library calls them for every file.

#[test]
fn no_twin_of_a_function_is_forgotten() {
    let (libc, ours) = (libc_symbols(), interposed());
    let twins: BTreeSet<String> = ours.iter().flat_map(|function| twins_of(function)).collect();
    let known = |twin: &&String| ours.contains(*twin) || NO_TWIN.contains(&twin.as_str());
    let forgotten: Vec<_> = twins.intersection(&libc).filter(|twin| !known(twin)).collect();
    assert!(forgotten.is_empty(), "{forgotten:?}");
    // Two calls of several messages, beside those of one.
    assert!(["recvmmsg", "sendmmsg"].iter().all(|&function| ours.contains(function)));
}

/// A table of all functions and the number of their cases, left beside the programs; none is without.
#[test]
fn every_function_has_a_case() {
    let mut numbers: BTreeMap<String, usize> = interposed().into_iter().map(|name| (name, 0)).collect();
    let mut all = 0;
    for &family in FAMILIES {
        for (_, name, functions) in cases(&build(family)) {
            all += 1;
            for function in functions {
                let number = numbers.get_mut(&function);
                *number.unwrap_or_else(|| panic!("{name}: {function} is not one of ours")) += 1;
            }
        }
    }
    let table: String = numbers.iter().map(|(name, number)| format!("{number:4}  {name}\n")).collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance.txt");
    std::fs::write(&file, &table).expect("a folder of ours");
    let without =
        |(name, number): &(&String, &usize)| **number == 0 && !NO_CASE.iter().any(|(known, _)| known == name);
    let without: Vec<_> = numbers.iter().filter(without).map(|(name, _)| name.as_str()).collect();
    assert!(without.is_empty(), "{} functions without a case: {}", without.len(), without.join(" "));
    assert!(all >= AT_LEAST, "{all} cases in {}", file.display());
}
