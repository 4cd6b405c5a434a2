//! A program under `waylay explore` writes over the memory that it shares with the driver, in every way that once ended the driver,
//! held it up or made it see a clean program.

use std::mem::offset_of;
use std::process::Command;

use waylay_control_protocol::region::{ACCOUNT, PARAMETERS, STRETCHES};
use waylay_control_protocol::{Region, Report, Stretch};

use crate::processes_with;
use crate::support::small::json;
use crate::support::{Ran, Workplace, list, text};

const SOURCE: &str = include_str!("explored.c");

/// Each ends with a failure of kind `corrupted`.
const MODES: [&str; 14] = [
    "zero",
    "ones",
    "random",
    "behind-the-head",
    "head",
    "settings",
    "counts",
    "ending",
    "refused",
    "threads",
    "steps",
    "events",
    "flips",
    "last-of-all",
];

/// Builds the program.
fn compile(place: &Workplace) {
    let source = place.write("explored.c", SOURCE);
    let file = place.path().join("explored");
    let built = Command::new("cc").args(["-g", "-O1", "-pthread", "-o"]).arg(&file).arg(source).output();
    let built = built.expect("a compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// Where in the region lies what it is to write over.
fn places() -> [String; 4] {
    let report = offset_of!(Region, report);
    let parameters = report + size_of::<Report>();
    let schedule = (parameters + 2 * PARAMETERS + ACCOUNT).next_multiple_of(align_of::<Stretch>());
    // The schedule that is to be followed lies between.
    let conversation = schedule + 2 * STRETCHES * size_of::<Stretch>();
    [report, parameters, schedule, conversation].map(|place| place.to_string())
}

fn explore(place: &Workplace, options: &[&str], mode: &str) -> Ran {
    let (file, places) = (place.path().join("explored"), places());
    let mut arguments = vec!["explore", "--json", "--seed", "7", "--timeout", "2s"];
    arguments.extend(options);
    arguments.extend(["--", file.to_str().expect("a plain path"), mode]);
    arguments.extend(places.iter().map(String::as_str));
    let ran = place.start_command(place.command(&arguments)).finish();
    assert!(!ran.stderr.contains("panicked"), "{mode}: {}", ran.stderr);
    ran
}

/// In runs from a snapshot first, and then in a process each: the records of both are read.
#[test]
fn whatever_an_explored_program_writes_over_is_told() {
    let place = Workplace::new();
    compile(&place);
    for mode in MODES {
        let ran = explore(&place, &["--runs", "2", "--level", "sync", "--restart", "snapshot"], mode);
        assert_eq!(ran.code(), Some(1), "{mode}: {}", ran.stderr);
        let found = &json(&ran)["found"];
        assert_eq!((list(found).len(), text(&found[0]["kind"])), (1, "corrupted"), "{mode}: {found:#}");
        let what = text(&found[0]["what"]);
        let (whose, how) = ("the test wrote over memory that belongs to Waylay: ", "; it ");
        assert!(what.starts_with(whose) && what.contains(how), "{mode}: {what}");
        // What is kept of it shows it again.
        let again = place.waylay(&["replay", text(&found[0]["failure_dir"]), "--times", "1"]);
        let shown = found[0]["confirmed"] == true;
        assert!(shown && again.code() == Some(1), "{mode}: {}", again.stderr);
    }
    let left = processes_with(place.path().join("explored").to_str().expect("a plain path"));
    assert!(left.is_empty(), "{left:?} live on");
}
