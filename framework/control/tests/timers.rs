//! Timers of the program count virtual time: an hour is over at once, and the schedule decides when.

mod harness;

use harness::{BOTH, Program};
use waylay_control_protocol::{ClockSource, Ending, Settings, Switching};

/// Clean and under full control; equal schedules under both ways to switch if the kernel has no say.
fn runs(case: &str, exact: bool) {
    let program = Program::build("timers.c").with(&[case]);
    for run in 0..10 {
        let outcomes = BOTH.map(|switching| program.run(switching, 5, run));
        for outcome in &outcomes {
            outcome.assert_clean();
            assert_eq!(outcome.stdout, "end\n", "{case}, run {run}: {outcome:#?}");
        }
        let [baton, carrier] = outcomes;
        assert!(!exact || baton.schedule == carrier.schedule, "{case}, run {run}");
    }
}

#[test]
fn an_alarm_of_an_hour_ends_a_pause_at_once() {
    runs("alarmed", false);
}

#[test]
fn an_interval_timer_comes_again_until_it_is_stopped() {
    runs("interval", false);
}

#[test]
fn a_posix_timer_brings_its_value_and_can_be_set_anew() {
    runs("posix", false);
}

#[test]
fn a_timer_that_calls_a_function_takes_part_in_the_schedule() {
    runs("thread", true);
}

#[test]
fn a_timer_descriptor_is_read_and_polled_in_virtual_time() {
    runs("descriptor", true);
}

#[test]
fn a_signal_that_everybody_blocks_goes_to_the_one_who_waits() {
    runs("waited", false);
}

#[test]
fn a_watchdog_never_ends_a_program_that_ends_by_itself() {
    runs("watchdog", true);
    runs("handled_late", false);
}

#[test]
fn waiting_for_a_watchdog_is_a_deadlock() {
    let program = Program::build("timers.c").with(&["bitten"]);
    for switching in BOTH {
        let outcome = program.run(switching, 5, 0);
        assert_eq!(outcome.ending, Ending::Deadlock, "{outcome:#?}");
    }
}

/// That signals were sent before does not mean that another is on its way.
#[test]
fn waiting_for_a_signal_that_was_lost_is_a_deadlock() {
    for case in ["lost_pause", "lost_suspend", "lost_wait"] {
        let program = Program::build("timers.c").with(&[case]);
        for switching in BOTH {
            let outcome = program.run(switching, 5, 0);
            assert_eq!(outcome.ending, Ending::Deadlock, "{case}: {outcome:#?}");
            assert!(!outcome.partly_controlled, "{case}: {outcome:#?}");
        }
    }
}

/// With real clocks a timer is the kernel's, and the run says that something outside the schedule takes part.
#[test]
fn a_timer_of_the_kernel_is_said_to_be_one() {
    let program = Program::build("timers.c").with(&["none"]);
    let mut settings = Settings::new(Switching::Baton, 5, 0);
    settings.clock = ClockSource::Real as u32;
    assert!(!program.run_with(settings, "").partly_controlled);
    let program = Program::build("timers.c").with(&["stopped"]);
    let outcome = program.run_with(settings, "");
    assert!(outcome.partly_controlled, "{outcome:#?}");
}
