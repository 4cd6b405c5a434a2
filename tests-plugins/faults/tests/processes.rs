//! Every fault strikes in a process of its own, and ends or hangs it in the way that its name says.

#![cfg(target_os = "linux")]

mod defaults;
#[path = "../../../framework/plugin/tests/fake_host/mod.rs"]
mod fake_host;
mod struck;

use fake_host::Host;
use struck::{Struck, strike};
use waylay_faults as _;

/// What the distributions of the faults give.
fn host() -> Host {
    Host::with(&[
        ("after", &[2]),
        ("work", &[20_000_000]),
        ("size", &[64, 512]),
        ("pause", &[0]),
        ("most", &[5]),
    ])
}

#[test]
fn child() {
    struck::child(host);
}

#[test]
fn sudden_faults_end_the_process() {
    assert_eq!(strike("crash"), Struck::Signal(libc::SIGSEGV));
    assert_eq!(strike("abort"), Struck::Signal(libc::SIGABRT));
    assert_eq!(strike("exit"), Struck::Exit(0));
    // The plugin's standard library may turn the fault into a message and an abort, if it is also the program's.
    let overflow = strike("stack-overflow");
    assert!(matches!(overflow, Struck::Signal(libc::SIGSEGV | libc::SIGABRT)), "{overflow:?}");
}

#[test]
fn noticed_faults_are_reported() {
    for (test, text) in [
        ("panic", "an entry that should be there"),
        ("thread-panic", "index out of bounds"),
        ("assert", "a sum of two parts: sum is 7, not 8"),
        ("fail-alike", "the same again"),
        ("fail-differently", "the end of a path"),
        ("create-fails", "nothing to test here"),
        ("create-panics", "a test that cannot be made"),
        ("start-fails", "the service under test is not there"),
        ("end-panics", "something is left that should not be"),
        ("drop-panics", "a destructor that fails"),
    ] {
        let Struck::Reported(messages) = strike(test) else { panic!("{test} was not reported") };
        assert!(messages.iter().any(|message| message.contains(text)), "{test}: {messages:?}");
    }
}

#[test]
fn hanging_faults_hang() {
    assert_eq!(strike("deadlock"), Struck::AllAsleep);
    assert_eq!(strike("livelock"), Struck::Busy);
    assert_eq!(strike("cancel-hangs"), Struck::AllAsleep);
}

#[test]
fn slow_and_starved_come_back_without_a_report() {
    assert_eq!(strike("slow"), Struck::Nothing);
    assert_eq!(strike("nothing"), Struck::Nothing);
    assert_eq!(strike("starvation"), Struck::Starved);
}

#[test]
fn leaks_are_left_behind() {
    assert_eq!(strike("fd-leak"), Struck::Left { files: 5, threads: 0 });
    assert_eq!(strike("thread-leak"), Struck::Left { files: 0, threads: 5 });
    assert_eq!(strike("memory-leak"), Struck::Nothing);
}

#[test]
fn every_default_is_a_distribution() {
    assert_eq!(defaults::check(), 13);
}
