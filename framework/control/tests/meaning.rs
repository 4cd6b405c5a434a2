//! Under the scheduler, every call means what libc says it means; and equal seeds give equal runs.

mod harness;

use harness::{BOTH, Outcome, Program};
use waylay_control_protocol::{Settings, Switching, Timeouts};

/// Runs under baton and carrier, with both policies for timeouts: each run is clean, and the two agree.
fn runs_alike(program: &Program, runs: u64) {
    for timeouts in [Timeouts::Choice, Timeouts::Idle] {
        for run in 0..runs {
            let outcomes: Vec<Outcome> = BOTH
                .map(|switching| {
                    let mut settings = Settings::new(switching, 11, run);
                    settings.timeouts = timeouts as u32;
                    program.run_with(settings, "")
                })
                .into();
            outcomes[0].assert_clean();
            outcomes[1].assert_clean();
            assert_eq!(outcomes[0].stdout, outcomes[1].stdout, "run {run} {timeouts:?}");
            assert_eq!(outcomes[0].schedule, outcomes[1].schedule, "run {run} {timeouts:?}");
        }
    }
}

macro_rules! families {
    ($($name:ident)+) => {$(
        #[test]
        fn $name() {
            runs_alike(&Program::build("families.c").with(&[stringify!($name)]), 8);
        }
    )+};
}

families! { mutexes robust conditions rwlocks semaphores barriers spin once sleeps joins c11 }

#[test]
fn a_thread_keeps_its_identity() {
    runs_alike(&Program::build("identity.c"), 8);
}

#[test]
fn the_cpp_standard_library_works() {
    runs_alike(&Program::build("standard_library.cpp"), 6);
}

#[test]
fn the_rust_standard_library_works() {
    runs_alike(&Program::build("standard_library.rs"), 6);
}

#[test]
fn a_real_clock_can_be_asked_for() {
    let program = Program::build("families.c").with(&["mutexes"]);
    let mut settings = Settings::new(Switching::Baton, 1, 1);
    settings.clock = waylay_control_protocol::ClockSource::Real as u32;
    program.run_with(settings, "").assert_clean();
}
