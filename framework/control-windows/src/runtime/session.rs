//! Beginning a run: from the settings in the region to a runtime whose only logical thread is the caller.

use core::sync::atomic::{AtomicBool, Ordering};

use waylay_control_protocol::{Earlier, Ending, RegionMap, Switching};
use waylay_schedule::{AnyStrategy, ChaCha, Run, Seed, Source};
use waylay_scheduler::{ByAddress, Limits, Planned, Scheduler, Series};
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

use super::logical::Logical;
use super::{Runtime, SHARED, install, lifecycle, outside, preempt, runtime};
use crate::interpose::{Handles, Mutexes};
use crate::me::{set_me, watch_end};
use crate::sys::{self, say};
use crate::watch;

/// Puts the calling thread under control as the main thread of the process's only run.
///
/// # Safety
/// No run has begun in the process.
pub(crate) unsafe fn begin(region: RegionMap, planned: Planned) {
    let strategy = match planned {
        Ok(strategy) => strategy,
        Err(error) => refuse(&region, &error),
    };
    let limits = Limits::of(region.settings().max_steps);
    // SAFETY: by the caller's promise.
    unsafe {
        prepare(region, strategy, limits, false);
        preempt::start((*runtime()).settings.preempt_ms, false);
        let main = (*runtime()).main;
        lifecycle::register(main);
        let (seed, index) = ((*runtime()).settings.seed, (*runtime()).settings.run);
        (*runtime()).random.begin(Run { seed: Seed(!seed), index });
        watch::begin_run();
        outside::set_running(true);
        watch_end();
        set_me(main);
    }
}

static IN_PROCESS: AtomicBool = AtomicBool::new(false);

/// Makes everything ready for runs in this process, which the calling thread drives.
///
/// # Safety
/// As for [`begin`]; other threads may run as long as they stay out of the runs.
pub(crate) unsafe fn prepare_in_process(region: RegionMap) {
    let mut limits = Limits::of(region.settings().max_steps);
    let (series, strategy) = match Series::of(&region, &mut limits) {
        Ok(found) => found,
        Err(error) => refuse(&region, &error),
    };
    // SAFETY: by the caller's promise.
    unsafe {
        prepare(region, strategy, limits, true);
        (*runtime()).series = series;
        preempt::start((*runtime()).settings.preempt_ms, true);
    }
    IN_PROCESS.store(true, Ordering::Relaxed);
}

/// The runs that come before the one that follows a schedule.
///
/// # Safety
/// [`prepare_in_process`] was called, and no run goes on.
pub(crate) unsafe fn recalled() -> Option<Earlier> {
    // SAFETY: by the caller's promise.
    unsafe { waylay_scheduler::recalled(&(*runtime()).region) }
}

/// Whether [`prepare_in_process`] was called.
pub(crate) fn is_prepared_in_process() -> bool {
    IN_PROCESS.load(Ordering::Relaxed)
}

unsafe fn prepare(region: RegionMap, strategy: AnyStrategy, limits: Limits, repeating: bool) {
    let settings = region.settings();
    region.report().switching.store(Switching::Baton as u32, Ordering::Relaxed);
    sys::bind_to_one_processor();
    let main = Box::into_raw(Logical::new(None, core::ptr::null_mut()));
    // SAFETY: the caller vouches that no run has begun; `main` was just made.
    unsafe {
        (*main).number = GetCurrentThreadId();
        SHARED.holder.store((*main).number, Ordering::Relaxed);
        install(Runtime {
            sched: Scheduler::recording_into(&region, &settings, strategy),
            region,
            settings,
            limits,
            logicals: Vec::new(),
            by_number: ByAddress::default(),
            handles: Handles::default(),
            initialising: Vec::new(),
            mutexes: Mutexes::default(),
            random: ChaCha::new(),
            looks: 0,
            main,
            repeating,
            series: Series::default(),
            leaving: core::ptr::null_mut(),
        });
    }
}

/// Ends a process whose settings cannot be carried out: to go on in a weaker way would be a lie.
fn refuse(region: &RegionMap, why: &str) -> ! {
    say(format_args!("{why}"));
    region.append_text(why);
    region.report().ending.store(Ending::Refused as u32, Ordering::Release);
    sys::exit_now(3)
}
