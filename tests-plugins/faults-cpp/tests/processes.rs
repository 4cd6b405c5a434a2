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
use waylay_faults_cpp as _;

#[test]
fn child() {
    struck::child(|| Host::with(&[("after", &[2])]));
}

#[test]
fn exceptions_that_nobody_can_catch_end_the_process() {
    assert_eq!(strike("thread-exception"), Struck::Signal(libc::SIGABRT));
    assert_eq!(strike("noexcept-exception"), Struck::Signal(libc::SIGABRT));
    assert_eq!(strike("pure-virtual"), Struck::Signal(libc::SIGABRT));
}

#[test]
fn exceptions_at_the_boundary_are_reported() {
    for (test, text) in [
        ("exception", "Unbalanced: the balance is 7"),
        ("out-of-range", "C++ exception std::out_of_range: "),
        ("number", "C++ exception int"),
        ("create-throws", "a test that cannot be made"),
        ("start-throws", "a test that does not start"),
        ("end-throws", "something is left that should not be"),
    ] {
        let Struck::Reported(messages) = strike(test) else { panic!("{test} was not reported") };
        assert!(messages.iter().any(|message| message.contains(text)), "{test}: {messages:?}");
    }
}

#[test]
fn the_deadlock_hangs() {
    assert_eq!(strike("deadlock"), Struck::AllAsleep);
}

#[test]
fn the_leak_is_silent() {
    assert_eq!(strike("memory-leak"), Struck::Nothing);
}

#[test]
fn every_default_is_a_distribution() {
    assert_eq!(defaults::check(), 8);
}
