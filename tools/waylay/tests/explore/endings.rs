//! What the end of a run is called, and where it is placed.

use std::process::Command;

use crate::support::Workplace;
use crate::support::small::{build, counter, explore, json};

#[test]
fn an_assertion_macro_of_the_program_itself_is_an_assert() {
    let place = Workplace::new();
    let own =
        r#"if (n != 2) { fprintf(stderr, "program.c:17: MY_CHECK(n == 2) failed\n"); __builtin_abort(); }"#;
    let program = build(&place, &counter(&format!("{own} return 0;")), &[]);
    let summary = json(&explore(&place, &["--runs", "400", "--stop-on-first"], &program));
    assert_eq!(summary["kind"], "assert", "{summary}");
    let what = summary["found"][0]["what"].as_str().unwrap_or_default();
    assert!(what.contains("MY_CHECK(n == 2) failed"), "{summary}");
}

/// The pointer may be read before it is set.
const EARLY: &str = r"
use std::sync::atomic::{AtomicPtr, Ordering};
static POINTER: AtomicPtr<u32> = AtomicPtr::new(std::ptr::null_mut());
#[inline(never)]
fn user() { let pointer = POINTER.load(Ordering::SeqCst); unsafe { *pointer = 2 } } // SAFETY: none, which is the point.
fn main() {
    let thread = std::thread::spawn(user);
    POINTER.store(Box::into_raw(Box::new(1)), Ordering::SeqCst);
    thread.join().unwrap();
}";

/// The standard library of Rust handles SIGSEGV on a small stack of its own. In the first runs, in which every access is looked at,
/// its handler does not get to its end there.
#[test]
fn a_fault_of_a_rust_program_is_where_it_happened_and_not_in_the_handler() {
    let place = Workplace::new();
    let program = rust(&place, "early", EARLY);
    let summary = json(&explore(&place, &["--runs", "40"], &program));
    let found = summary["found"].as_array().expect("failures");
    assert_eq!(found.len(), 1, "{summary:#}");
    assert_eq!((&found[0]["kind"], &found[0]["confirmed"]), (&"crash".into(), &true.into()), "{summary:#}");
    assert!(found[0]["where"].to_string().contains("early::user"), "{summary:#}");
}

/// Builds a Rust program.
fn rust(place: &Workplace, name: &str, source: &str) -> String {
    let source = place.write(&format!("{name}.rs"), source);
    let program = place.path().join(name);
    let options = ["--edition=2021", "-g", "-Copt-level=1", "-Cdebug-assertions=off", "-o"];
    let built =
        Command::new("rustc").args(options).arg(&program).arg(source).output().expect("rustc is installed");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program.to_str().expect("a plain path").to_owned()
}

/// A thread panics when it comes first; the main thread panics on account of it and ends the process.
const TWO_PANICS: &str = r#"
use std::sync::atomic::{AtomicBool, Ordering};
static READY: AtomicBool = AtomicBool::new(false);
#[inline(never)]
fn hasty() { assert!(READY.load(Ordering::SeqCst), "nothing is ready"); }
fn main() {
    let thread = std::thread::spawn(hasty);
    READY.store(true, Ordering::SeqCst);
    thread.join().unwrap();
}"#;

#[test]
fn a_panic_that_ends_the_program_is_shown_where_it_happened() {
    let place = Workplace::new();
    let program = rust(&place, "two_panics", TWO_PANICS);
    let summary = json(&explore(&place, &["--runs", "40"], &program));
    let found = summary["found"].as_array().expect("failures");
    assert_eq!(found.len(), 1, "{summary:#}");
    assert_eq!((&found[0]["kind"], &found[0]["confirmed"]), (&"assert".into(), &true.into()), "{summary:#}");
    let shown = found[0]["where"].to_string();
    assert!(shown.contains("two_panics::hasty") && !shown.contains("_exit"), "{summary:#}");
}
