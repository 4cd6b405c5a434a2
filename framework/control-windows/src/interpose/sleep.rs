//! Sleeping: costs no real time, and ends when the strategy says so.

use waylay_schedule::{Event, EventKind};
use waylay_scheduler::{Key, Shares};
use windows_sys::Win32::System::Threading as real;
use windows_sys::core::BOOL;

use super::{deadline, interpose};
use crate::runtime::{Token, Waited, sleep as sleep_until, step, wait};

/// What nobody ever brings: an address that no object has.
const FOR_EVER: Key = Key(3);

fn sleep(me: &mut Token, milliseconds: u32) {
    match deadline(me, milliseconds) {
        _ if milliseconds == 0 => step(me, Event::local(EventKind::Yield)),
        Some(moment) => {
            sleep_until(me, moment);
        }
        // For ever: nobody can end it.
        None => {
            while wait(me, Event::local(EventKind::Sleep), FOR_EVER, Shares::ALL, None, None)
                != Waited::TimedOut
            {}
        }
    }
}

interpose! {
    fn Sleep(milliseconds: u32) -> () = real::Sleep(milliseconds), |me| { sleep(me, milliseconds) }

    fn SleepEx(milliseconds: u32, alertable: BOOL) -> u32 = real::SleepEx(milliseconds, alertable), |me| {
        if alertable != 0 {
            // Calls that were queued to the thread run here, if there are any.
            let called = real::SleepEx(0, alertable);
            if called != 0 {
                return called;
            }
            me.run().note_uncontrolled();
        }
        sleep(me, milliseconds);
        0
    }

    fn SwitchToThread() -> BOOL = real::SwitchToThread(), |me| {
        step(me, Event::local(EventKind::Yield));
        1
    }
}
