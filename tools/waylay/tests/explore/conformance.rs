//! What the control library promises of libc's functions, the command keeps: the programs of its conformance cases
//! (`framework/control/tests/conformance`) do what is documented in every schedule, so none of them fails, also by default, with
//! plain accesses as steps, and when time passes only where nothing else can.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Workplace;
use crate::support::small::explore;

/// Where the programs are.
fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../framework/control/tests/conformance")
}

/// Compiles one of them.
fn build(place: &Workplace, source: &Path) -> String {
    let program = place.path().join(source.file_stem().expect("a name"));
    let built = Command::new("gcc")
        .args(["-std=gnu17", "-w", "-g", "-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .args(["-lrt", "-ldl"])
        .output()
        .expect("gcc is installed");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program.to_str().expect("a plain path").to_owned()
}

/// Each case of a program is a statement about every schedule; a few of each are made here, of one seed.
fn keeps(name: impl Fn(&str) -> bool) {
    let place = Workplace::new();
    let listed = std::fs::read_dir(programs()).expect("the folder of the cases");
    let mut sources: Vec<PathBuf> = listed.map(|entry| entry.expect("an entry").path()).collect();
    sources.retain(|path| path.extension().is_some_and(|is| is == "c"));
    sources.sort();
    assert!(sources.len() >= 14, "{sources:?}");
    for source in sources {
        let family = source.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        if !name(family) {
            continue;
        }
        let program = build(&place, &source);
        // A wake-up that a cancellation took away was lost in run 26.
        let runs = if family == "condition" { "30" } else { "4" };
        for options in [&["--runs", runs][..], &["--runs", "1", "--idle-timeouts"]] {
            let ran = explore(&place, &[&["--seed", "8", "--minimize", "off"], options].concat(), &program);
            assert_eq!(ran.code(), Some(0), "{family} {options:?}: {ran:#?}");
        }
    }
}

#[test]
fn programs_that_do_as_documented_pass() {
    keeps(|family| family < "n");
}

#[test]
fn further_programs_that_do_as_documented_pass() {
    keeps(|family| family >= "n");
}
