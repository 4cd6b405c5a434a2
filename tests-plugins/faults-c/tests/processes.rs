//! Every fault strikes in a process of its own, and ends or hangs it in the way that its name says.

#![cfg(target_os = "linux")]

#[path = "../../faults/tests/defaults/mod.rs"]
mod defaults;
#[path = "../../../framework/plugin/tests/fake_host/mod.rs"]
mod fake_host;
#[path = "../../faults/tests/struck/mod.rs"]
mod struck;

use fake_host::Host;
use struck::{Struck, strike};
use waylay_faults_c as _;

#[test]
fn child() {
    struck::child(|| Host::with(&[("after", &[2])]));
}

#[test]
fn sudden_faults_end_the_process() {
    assert_eq!(strike("crash"), Struck::Signal(libc::SIGSEGV));
    assert_eq!(strike("assert"), Struck::Signal(libc::SIGABRT));
    assert_eq!(strike("abort"), Struck::Signal(libc::SIGABRT));
    assert_eq!(strike("exit"), Struck::Exit(3));
    // Rust's runtime in the test program turns the fault into a message and an abort.
    let overflow = strike("stack-overflow");
    assert!(matches!(overflow, Struck::Signal(libc::SIGSEGV | libc::SIGABRT)), "{overflow:?}");
}

#[test]
fn noticed_faults_are_reported() {
    for (test, text) in
        [("failed", "the sum is 7, not 8"), ("start-fails", "the device under test is not there")]
    {
        let Struck::Reported(messages) = strike(test) else { panic!("{test} was not reported") };
        assert!(messages.iter().any(|message| message == text), "{test}: {messages:?}");
    }
    assert_eq!(strike("create-null"), Struck::Nothing, "null without a word");
}

#[test]
fn the_deadlock_hangs() {
    assert_eq!(strike("deadlock"), Struck::AllAsleep);
}

#[test]
fn leaks_are_left_behind() {
    assert_eq!(strike("memory-leak"), Struck::Nothing);
    let Struck::Left { files, threads: 0 } = strike("fd-leak") else { panic!("no file is left open") };
    assert!((10..=40).contains(&files), "{files}");
    assert_eq!(strike("thread-leak"), Struck::Left { files: 0, threads: 8 });
}

#[test]
fn every_default_is_a_distribution() {
    assert_eq!(defaults::check(), 12);
}
