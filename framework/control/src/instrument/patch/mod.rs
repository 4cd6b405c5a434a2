//! Steps in code that no compiler was asked to report: its instructions are replaced by jumps, in memory, before `main`
//! and when a library is loaded later.
//!
//! What can be replaced safely is decided by `waylay-patch`, which is pure; here it is carried out.
//!
//! - [`loaded`]: the modules of the process, and which of them are left alone
//! - [`apply`]: a plan becomes code
//! - [`stub`]: what the code calls: keeps every register
//! - [`trap`]: breakpoints, where no jump fits
//! - [`table`]: what is known about each site
//! - [`load`]: libraries that are loaded later

mod apply;
mod load;
mod loaded;
mod stub;
mod table;
mod trap;

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use waylay_control_protocol::{Instrumentation, Level, Report};

use loaded::Loaded;

/// Whether anything is patched at all.
static ON: AtomicBool = AtomicBool::new(false);

struct Wish(UnsafeCell<Option<State>>);

// SAFETY: touched before `main`, by the only thread, and then by whoever loads a library, one at a time.
unsafe impl Sync for Wish {}

static STATE: Wish = Wish(UnsafeCell::new(None));

struct State {
    wanted: Instrumentation,
    /// Start addresses of modules that have been dealt with.
    seen: Vec<usize>,
    patched: u32,
    refused: u32,
}

/// Patches what is loaded so far. Called once, before `main`.
pub(crate) fn begin(wanted: &Instrumentation) {
    if wanted.patch == 0 || wanted.level() == Level::Sync {
        return;
    }
    // SAFETY: the main thread is the only one that runs program code.
    unsafe {
        *STATE.0.get() = Some(State { wanted: *wanted, seen: Vec::new(), patched: 0, refused: 0 });
    }
    ON.store(true, Ordering::Relaxed);
    trap::install();
    patch_new_modules();
}

/// Patches modules that were not there before.
fn patch_new_modules() {
    // SAFETY: see `Wish`.
    let Some(state) = (unsafe { (*STATE.0.get()).as_mut() }) else { return };
    for module in Loaded::all() {
        if state.seen.contains(&module.base) {
            continue;
        }
        state.seen.push(module.base);
        if let Some((patched, refused)) = module.wanted(&state.wanted).and_then(|want| apply::apply(&module, want, state)) {
            state.patched += patched;
            state.refused += refused;
        }
    }
    table::publish();
}

/// Tells the driver what was done, and where moved instructions came from.
pub(super) fn report(report: &Report) {
    // SAFETY: see `Wish`.
    let Some(state) = (unsafe { (*STATE.0.get()).as_ref() }) else { return };
    let (moved, count) = table::moved();
    report.moved.store(moved as u64, Ordering::Relaxed);
    report.moved_count.store(count as u64, Ordering::Relaxed);
    report.patched.store(state.patched, Ordering::Relaxed);
    report.refused.store(state.refused, Ordering::Relaxed);
}
