//! Beginning a run: from the settings in the region to a run whose only logical thread is the caller.

use core::sync::atomic::Ordering;

use waylay_control_protocol::{RegionMap, Switching};
use waylay_runtime::Platform;
use waylay_runtime::session::{limits_of, prepare, refuse};
use waylay_schedule::{Run as Schedule, Seed, Source};
use waylay_scheduler::{ByAddress, Planned};
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

use super::Token;
use super::logical::Logical;
use super::platform::{HOLDER, State};
use crate::interpose::{Handles, Mutexes};
use crate::me::set_me;
use crate::sys;
use crate::watch::Windows;

/// Puts the calling thread under control as the main thread of the process's only run.
///
/// # Safety
/// No run has begun in the process.
pub(crate) unsafe fn begin(region: RegionMap, planned: Planned) {
    let strategy = match planned {
        Ok(strategy) => strategy,
        Err(error) => refuse::<Windows>(&region, &error),
    };
    let settings = region.settings();
    // SAFETY: by the caller's promise.
    unsafe {
        let main = prepare::<Windows>(region, strategy, limits_of(&settings), false);
        let me = Token::held_by(main);
        Windows::watch_computing(me);
        Windows::register(me, main);
        me.run().random.begin(Schedule { seed: Seed(!settings.seed), index: settings.run });
        Windows::begin_run(me);
        set_me(main);
    }
}

/// The calling thread as the main thread of runs, and what a run has on this system only.
pub(super) fn make_ready(region: &RegionMap) -> (*mut Logical, State) {
    region.report().switching.store(Switching::Baton as u32, Ordering::Relaxed);
    sys::bind_to_one_processor();
    let main = Box::into_raw(Logical::new(None, core::ptr::null_mut()));
    let system = State {
        by_number: ByAddress::default(),
        handles: Handles::default(),
        initialising: Vec::new(),
        mutexes: Mutexes::default(),
        leaving: core::ptr::null_mut(),
    };
    // SAFETY: `main` was just made.
    unsafe {
        (*main).number = GetCurrentThreadId();
        HOLDER.store((*main).number, Ordering::Relaxed);
    }
    (main, system)
}
