//! What host and driver call by name, and what Windows calls.
//!
//! A host that makes schedules itself loads the library and calls the functions of
//! `waylay_control_protocol::in_process`. In a program that is explored, the first instructions of its main thread load the
//! library and call [`waylay_control_enter`]; then comes the program's own entry point.

use core::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use waylay_control_protocol::{Earlier, REGION_VARIABLE, RegionMap, RunSummary, Switching};
use waylay_scheduler::plan;
use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::DisableThreadLibraryCalls;
use windows_sys::Win32::System::SystemServices::{DLL_PROCESS_ATTACH, DLL_PROCESS_DETACH};
use windows_sys::core::BOOL;

use crate::sys::{self, say};
use crate::watch::Windows;
use crate::{access, interpose, patch, runtime};

/// The region, until the first run begins.
static REGION: Mutex<Option<RegionMap>> = Mutex::new(None);

/// Called by Windows when the library is loaded and when the process ends.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name that Windows looks for")]
extern "system" fn DllMain(module: HMODULE, reason: u32, _reserved: *mut c_void) -> BOOL {
    match reason {
        DLL_PROCESS_ATTACH => {
            // SAFETY: our own module.
            unsafe { DisableThreadLibraryCalls(module) };
            crate::me::reserve().into()
        }
        DLL_PROCESS_DETACH => {
            interpose::at_unload();
            1
        }
        _ => 1,
    }
}

/// The region that the environment names. The variable is removed, so that programs started by this one are left alone.
fn take_region() -> Option<RegionMap> {
    let number = std::env::var(REGION_VARIABLE).ok()?.parse().ok()?;
    // SAFETY: the process has one thread that runs program code, which is here.
    unsafe { std::env::remove_var(REGION_VARIABLE) };
    match RegionMap::open(number) {
        Ok(region) => Some(region),
        Err(error) => {
            say(format_args!("{error}"));
            sys::exit_now(3)
        }
    }
}

/// Puts the calling thread, which is the main thread in front of its entry point, under control.
///
/// # Safety
/// Called once, by the main thread, before any code of the program.
#[unsafe(no_mangle)]
unsafe extern "system" fn waylay_control_enter() {
    let Some(region) = take_region() else { return };
    let settings = region.settings();
    access::configure(region.level());
    // A host accounts for the heap itself, and its plugins' plain accesses are not looked at.
    interpose::configure_heap(region.level().sees_accesses() && region.instrumentation().host == 0);
    if Switching::from_code(settings.switching) != Some(Switching::Free) {
        // SAFETY: from here on the region is kept for good.
        unsafe { patch::configure(&region) };
    }
    interpose::patch_modules();
    // SAFETY: the region is kept for good, and its memory does not move.
    let report = (settings.hold != 0).then(|| unsafe { &*core::ptr::from_ref(region.report()) });
    interpose::watch_for_faults(report);
    if settings.in_process != 0 {
        *REGION.lock().unwrap_or_else(PoisonError::into_inner) = Some(region);
        return;
    }
    if Switching::from_code(settings.switching) == Some(Switching::Free) {
        return;
    }
    let planned = plan(&region);
    // SAFETY: threads that libraries started may run; they stay unmanaged. No run has begun in this process.
    unsafe { runtime::begin(region, planned) };
}

/// Begins a run on the calling thread.
///
/// # Safety
/// Called by the one thread that drives runs, and not while a run goes on.
#[unsafe(no_mangle)]
unsafe extern "C" fn waylay_control_begin_run(run: u64) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe { runtime::begin_in_process::<Windows>(|| prepare(), run) as u32 }
}

/// Makes everything ready for runs; false without a region for runs in the process, and nothing happens then.
unsafe fn prepare() -> bool {
    if runtime::is_prepared_in_process() {
        return true;
    }
    let kept = REGION.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(region) = kept.or_else(take_region) else { return false };
    if region.settings().in_process == 0 {
        return false;
    }
    access::configure(region.level());
    // SAFETY: called by the one thread that drives runs; the region is kept for good.
    unsafe {
        patch::configure(&region);
        interpose::patch_modules();
        runtime::prepare_in_process::<Windows>(region);
    }
    true
}

/// Says which runs come before the one that the process was started for.
///
/// # Safety
/// Called by the one thread that drives runs, before the first; `earlier` is writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn waylay_control_earlier_runs(earlier: *mut Earlier) {
    // SAFETY: by the caller's promise.
    unsafe {
        let recalled = if prepare() { runtime::recalled::<Windows>() } else { None };
        *earlier = recalled.unwrap_or_default();
    }
}

/// Ends the run that the calling thread began.
///
/// # Safety
/// The calling thread began the run; `summary` is null or writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn waylay_control_end_run(failed: u32, summary: *mut RunSummary) {
    // SAFETY: by the caller's promise.
    unsafe { runtime::end_in_process::<Windows>(failed != 0, summary) };
}

/// Stops the run that goes on, if one does, because of a failure of the calling thread.
///
/// # Safety
/// The process is thrown away afterwards.
#[unsafe(no_mangle)]
unsafe extern "C" fn waylay_control_stop_run() {
    if runtime::is_prepared_in_process() {
        // SAFETY: the runtime is installed.
        unsafe { runtime::stop_in_process::<Windows>() };
    }
}
