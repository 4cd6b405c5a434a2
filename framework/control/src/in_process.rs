//! The exported functions by which a host repeats runs; see `waylay_control_protocol::in_process`.

use waylay_control_protocol::{Earlier, RunSummary};

use crate::instrument::Linux;
use crate::{interpose, runtime};

/// Begins a run on the calling thread.
///
/// # Safety
/// Called by the one thread that drives runs, and not while a run goes on.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn waylay_control_begin_run(run: u64) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe { runtime::begin_in_process::<Linux>(|| prepare(), run) as u32 }
}

/// Makes everything ready for runs; false without a region for runs in the process, and nothing happens then.
unsafe fn prepare() -> bool {
    // SAFETY: called by the one thread that drives runs.
    unsafe {
        if let Some(region) = interpose::take_region_for_host() {
            runtime::prepare_in_process::<Linux>(region);
        }
    }
    runtime::is_prepared_in_process()
}

/// Says which runs come before the one that the process was started for.
///
/// # Safety
/// Called by the one thread that drives runs, before the first; `earlier` is writable.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn waylay_control_earlier_runs(earlier: *mut Earlier) {
    // SAFETY: by the caller's promise.
    unsafe {
        let recalled = if prepare() { runtime::recalled::<Linux>() } else { None };
        *earlier = recalled.unwrap_or_default();
    }
}

/// Ends the run that the calling thread began.
///
/// # Safety
/// The calling thread began the run; `summary` is null or writable.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn waylay_control_end_run(failed: u32, summary: *mut RunSummary) {
    // SAFETY: by the caller's promise.
    unsafe { runtime::end_in_process::<Linux>(failed != 0, summary) };
}

/// Stops the run that goes on, if one does, because of a failure of the calling thread.
///
/// # Safety
/// The process is thrown away afterwards.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn waylay_control_stop_run() {
    if runtime::is_prepared_in_process() {
        // SAFETY: the runtime is installed.
        unsafe { runtime::stop_in_process::<Linux>() };
    }
}
