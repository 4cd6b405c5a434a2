//! Steps in code that no compiler was asked to report: its instructions are replaced by jumps, in memory, before the
//! program's entry point, before the first run of a host, and when a library is loaded later.
//!
//! What can be replaced safely is decided by `waylay-patch`, which is pure; here it is carried out.
//!
//! - [`loaded`]: the modules of the process, and which of them are left alone
//! - [`module`]: a plan becomes code
//! - [`memory`]: room for code within reach of a jump
//! - [`stub`]: what the code calls: keeps every register
//! - [`site`]: a site becomes a step
//! - [`table`]: what is known about the sites of each module
//! - [`fault`]: breakpoints, where no jump fits, and faults in moved code
//!
//! A site in a thread that is not under control, or inside the library, makes no step: the identity is null there. The
//! library's own code is never patched, nor what it calls.

mod fault;
mod loaded;
mod memory;
mod module;
mod site;
mod stub;
mod table;

use core::sync::atomic::Ordering;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use waylay_control_protocol::{Level, RegionMap, Report};
use windows_sys::Win32::Foundation::HMODULE;

pub(crate) use fault::stay_in_front;
use loaded::Loaded;
pub(crate) use stub::{ALL_REGISTERS, can_save_all};
use table::Patched;

struct State {
    /// Where plans are kept between processes.
    cache: Option<PathBuf>,
    /// The program itself is ours, and only what it loads is the user's.
    host: bool,
    /// Where to say what was done.
    report: &'static Report,
    /// Modules that have been dealt with.
    modules: Vec<Known>,
}

struct Known {
    base: usize,
    /// What was done with it; none if it is left alone.
    patched: Option<&'static Patched>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Settles whether code is patched, for the life of the process. Before modules are looked at.
///
/// # Safety
/// The region is kept for good.
pub(crate) unsafe fn configure(region: &RegionMap) {
    let wanted = region.instrumentation();
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if wanted.patch == 0 || wanted.level() < Level::Atomics || state.is_some() {
        return;
    }
    let host = wanted.host != 0;
    // SAFETY: by the caller's promise; what is mapped does not move.
    let report = unsafe { &*core::ptr::from_ref(region.report()) };
    fault::install();
    *state = Some(State { cache: wanted.cache(), host, report, modules: Vec::new() });
}

/// The code of those of these modules that are not left alone: begin and end of each piece.
pub(crate) fn code_of(modules: &[usize], host: bool) -> Vec<(usize, usize)> {
    // SAFETY: a library that is unloaded meanwhile is one whose code nobody runs; its first page is gone only with it.
    let loaded = modules.iter().filter_map(|&module| unsafe { Loaded::new(module as HMODULE) });
    loaded.filter(|loaded| !loaded.is_left_alone(host)).flat_map(|loaded| loaded.code).collect()
}

/// Patches those of the program's modules that have not been dealt with.
///
/// # Safety
/// These modules are loaded, and no thread is in the middle of code of new ones.
pub(crate) unsafe fn attend(modules: &[HMODULE]) {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(state) = &mut *state else { return };
    // A library that was unloaded meanwhile may be back, at the same place: its code is as the file has it.
    state.modules.retain(|known| {
        let there = modules.contains(&(known.base as HMODULE));
        there && known.patched.is_none_or(|patched| patched.is_in_place())
    });
    for &module in modules {
        if state.modules.iter().any(|known| known.base == module as usize) {
            continue;
        }
        // SAFETY: by the caller's promise.
        let patched = unsafe { Loaded::new(module) }
            .filter(|loaded| !loaded.is_left_alone(state.host))
            // SAFETY: by the caller's promise.
            .and_then(|loaded| unsafe { module::patch(&loaded, state.cache.as_deref()) });
        state.modules.push(Known { base: module as usize, patched });
    }
    let sum = |number: fn(&Patched) -> u32| {
        state.modules.iter().filter_map(|known| known.patched).map(number).sum::<u32>()
    };
    state.report.patched.store(sum(|patched| patched.sites_patched), Ordering::Relaxed);
    state.report.refused.store(sum(|patched| patched.sites_refused), Ordering::Relaxed);
}
