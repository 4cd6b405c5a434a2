//! Beginning runs: from the settings in the region to a run whose only logical thread is the caller.

use core::sync::atomic::{AtomicBool, Ordering};

use waylay_control_protocol::{Earlier, Ending, RegionMap, Settings, Statement, Timeouts};
use waylay_schedule::AnyStrategy;
use waylay_scheduler::{Limits, Series};

use crate::platform::Platform;
use crate::run::Run;
use crate::token::Token;

static IN_PROCESS: AtomicBool = AtomicBool::new(false);

/// Makes everything ready for runs in this process, which the calling thread drives.
///
/// # Safety
/// No run has begun in the process. Other threads may run as long as they stay out of the runs.
pub unsafe fn prepare_in_process<P: Platform>(region: RegionMap) {
    let mut limits = limits_of(&region.settings());
    let (series, strategy) = match Series::of(&region, &mut limits) {
        Ok(found) => found,
        Err(error) => refuse::<P>(&region, &error),
    };
    // SAFETY: by the caller's promise.
    unsafe {
        let main = Token::held_by(prepare::<P>(region, strategy, limits, true));
        main.run().series = series;
        P::watch_computing(main);
    }
    IN_PROCESS.store(true, Ordering::Relaxed);
}

/// Fills the slot with a run whose main thread is the caller.
///
/// # Safety
/// No run has begun in the process.
pub unsafe fn prepare<P: Platform>(
    region: RegionMap,
    strategy: AnyStrategy,
    limits: Limits,
    repeats: bool,
) -> *mut P::Logical {
    // SAFETY: by the caller's promise.
    unsafe {
        let (main, system) = P::make_ready(&region);
        P::slot().fill(Run::new(region, strategy, limits, main, repeats, system));
        main
    }
}

/// Whether [`prepare_in_process`] was called.
pub fn is_prepared_in_process() -> bool {
    IN_PROCESS.load(Ordering::Relaxed)
}

/// The runs that come before the one that follows a schedule.
///
/// # Safety
/// [`prepare_in_process`] was called, and no run goes on.
pub unsafe fn recalled<P: Platform>() -> Option<Earlier> {
    // SAFETY: by the caller's promise.
    unsafe { waylay_scheduler::recalled(&(*P::slot().get()).region) }
}

/// When a run with these settings has gone on for long enough.
pub fn limits_of(settings: &Settings) -> Limits {
    let limits = Limits::of(settings.max_steps).or_when_quiet();
    if settings.timeouts == Timeouts::Idle as u32 { limits.asking_for_time() } else { limits }
}

/// Ends a process whose settings cannot be carried out: to go on in a weaker way would be a lie.
pub fn refuse<P: Platform>(region: &RegionMap, why: &str) -> ! {
    /// Waylay itself failed.
    const STATUS: i32 = 3;
    P::say(format_args!("{why}"));
    region.tell(&Statement::Refusal(why.into()));
    region.report().ending.store(Ending::Refused as u32, Ordering::Release);
    P::before_exit(STATUS);
    P::exit_now(STATUS)
}
