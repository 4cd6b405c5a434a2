//! Steps in code that no compiler was asked to report: its instructions are replaced by jumps, in memory, before `main`
//! and when a library is loaded later.
//!
//! What can be replaced safely is decided by `waylay-patch`, which is pure; here it is carried out.
//!
//! - [`loaded`]: the modules of the process, and which of them are left alone
//! - [`module`]: a plan becomes code: what is replaced, and when
//! - [`memory`]: room for code within reach of a jump
//! - [`stub`]: what the code calls: keeps every register
//! - [`trap`]: breakpoints, where no jump fits
//! - [`counter`]: what the processor's counter shows
//! - [`kernel`]: calls of the kernel without libc
//! - [`fault`]: faults in moved code, for debuggers
//! - [`table`]: what is known about each site
//! - [`silence`]: calls that compilers put into code, where nobody wants to know
//! - [`load`]: libraries that are loaded later

mod counter;
mod fault;
mod kernel;
mod load;
mod loaded;
mod memory;
mod module;
mod silence;
mod stub;
mod table;
pub(crate) mod trap;

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};

use waylay_accesses::Attention;
use waylay_control_protocol::{Instrumentation, Level, Report, Site};
use waylay_patch::scope;

pub(super) use loaded::Loaded;
use module::Module;

use super::copies;
use super::outward;

pub(super) use stub::program_registers;

/// Whether anything is patched at all.
static ON: AtomicBool = AtomicBool::new(false);

struct Wish(UnsafeCell<Option<State>>);

// SAFETY: touched before `main`, by the only thread, and then by whoever loads a library or holds the token.
unsafe impl Sync for Wish {}

static STATE: Wish = Wish(UnsafeCell::new(None));

struct State {
    wanted: Instrumentation,
    /// The program's file.
    program: String,
    /// Start addresses of modules that have been dealt with.
    seen: Vec<usize>,
    modules: Vec<Module>,
    /// Libraries of the system that were loaded by name: their plain accesses are no steps.
    loaded: Vec<Site>,
}

fn state() -> Option<&'static mut State> {
    // SAFETY: see `Wish`; no reference is kept by those who call this.
    unsafe { (*STATE.0.get()).as_mut() }
}

/// Patches what is loaded so far. Called once, before `main`. `debugged`: a debugger looks on.
pub(crate) fn begin(wanted: &Instrumentation, debugged: bool) {
    if !wanted.level().sees_accesses() && wanted.keep_reports == 0 {
        let cache = wanted.cache();
        for module in Loaded::all() {
            silence::silence(&module, wanted.level(), cache.as_deref());
        }
    }
    if wanted.patch == 0 || wanted.level() == Level::Sync {
        return;
    }
    let program = std::fs::read_link("/proc/self/exe").ok();
    let program = program.and_then(|path| path.to_str().map(str::to_owned)).unwrap_or_default();
    // SAFETY: the main thread is the only one that runs program code.
    unsafe {
        *STATE.0.get() = Some(State { wanted: *wanted, program, seen: Vec::new(), modules: Vec::new(), loaded: Vec::new() });
    }
    ON.store(true, Ordering::Relaxed);
    trap::install(debugged);
    patch_new_modules(None);
}

/// Patches modules that were not there before; says which is the first of them, if there are any. `asked`: the file that a
/// host was asked to load.
fn patch_new_modules(asked: Option<&CStr>) -> Option<usize> {
    let state = state()?;
    let before = state.modules.len();
    let later = !state.seen.is_empty();
    let mut all_own = Vec::new();
    let asked = asked.filter(|_| state.wanted.host != 0).and_then(|file| file.to_str().ok());
    for module in Loaded::all() {
        if state.seen.contains(&module.base) {
            continue;
        }
        state.seen.push(module.base);
        let mut own = false;
        if state.wanted.host != 0 && module.is_program() {
            continue;
        }
        let number = state.modules.len() as u16;
        let cache = state.wanted.cache();
        if later && state.wanted.keep_reports == 0 {
            silence::silence(&module, state.wanted.level(), cache.as_deref());
        }
        if state.wanted.level().sees_accesses() && !scope::is_left_alone(&module.path) {
            let asked = asked == Some(&*module.path);
            let close = module.is_close(&state.wanted, &state.program, asked);
            copies::see(&module, close);
            if later && !close {
                state.loaded.push(Site::new(module.name(), 0));
            }
            own = module.is_own(&state.wanted, &state.program, asked);
        }
        let patched = module
            .wanted(&state.wanted, &state.program, asked == Some(&*module.path))
            .and_then(|wanted| {
                Module::patch(&module, wanted, cache.as_deref(), number, module.orders(&state.wanted))
            });
        state.modules.extend(patched);
        if own {
            outward::sees_stores_of(&module);
            all_own.push(module);
        }
    }
    if state.wanted.delays != 0 {
        // Last, because calls among them need nothing.
        all_own.iter().for_each(outward::see);
    }
    table::publish();
    (state.modules.len() > before).then_some(before)
}

/// Looks at these plain accesses and at no others. `more`: no thread can be in code that would be replaced; otherwise
/// accesses are only dismissed. `stay_open`: some will be dismissed one by one.
pub(super) fn turn(attention: Attention<'_>, more: bool, stay_open: bool) {
    let Some(state) = state() else { return };
    for module in &mut state.modules {
        module.turn(attention, more, stay_open, state.wanted.host != 0);
    }
    table::publish();
}

/// Makes the code for all plain accesses, so that processes forked from this one need not.
pub(super) fn get_ready() {
    let Some(state) = state() else { return };
    for module in &mut state.modules {
        module.get_ready();
    }
    table::publish();
}

/// Looks at these plain accesses of modules that were just loaded.
pub(super) fn turn_new(first: usize, attention: Attention<'_>, stay_open: bool) {
    let Some(state) = state() else { return };
    for module in state.modules.iter_mut().skip(first) {
        module.turn(attention, true, stay_open, false);
    }
    table::publish();
}

/// No site has been looked at so far. Those that are made later are not counted.
pub(super) fn forget_hits() {
    table::forget_hits();
}

/// Counts a look at a site, and after `most` of them dismisses it. Says whether it did.
pub(super) fn look(site: u32, most: u32) -> bool {
    let (hits, Some(place)) = table::hit(site) else { return false };
    if hits == 1 {
        with_module(place, |module| module.reach(place.window));
    }
    if hits >= most {
        with_module(place, |module| module.take_away(place.window));
    }
    hits >= most
}

/// A thread came by a site in a run that is not looked at; says whether it only lay in wait, and is gone.
pub(super) fn comes_by(site: u32) -> bool {
    let mut waited = false;
    // Elsewhere nothing does, and every step comes by here.
    if state().is_some_and(|state| state.wanted.host != 0)
        && let Some(place) = table::place(site)
    {
        with_module(place, |module| waited = module.comes_by(place.window));
    }
    waited
}

/// Does not look at a site again in this run.
pub(super) fn dismiss(site: u32) {
    if let Some(place) = table::place(site) {
        with_module(place, |module| module.take_away(place.window));
    }
}

fn with_module(place: table::Place, what: impl FnOnce(&mut Module)) {
    if let Some(module) = state().and_then(|state| state.modules.get_mut(usize::from(place.module))) {
        what(module);
    }
}

/// Makes faults in moved code happen where the program has it.
pub(super) fn show_faults() {
    if ON.load(Ordering::Relaxed) {
        fault::install();
    }
}

/// Puts the program's own code back around an address; false when it is not replaced there.
fn put_back(at: usize) -> bool {
    state().is_some_and(|state| state.modules.iter_mut().any(|module| module.put_back(at)))
}

/// Tells the driver what was done, and where moved instructions came from.
pub(super) fn report(report: &Report) {
    let Some(state) = state() else { return };
    let (moved, count) = table::moved();
    report.moved.store(moved as u64, Ordering::Relaxed);
    report.moved_count.store(count as u64, Ordering::Relaxed);
    report.patched.store(state.modules.iter().map(|module| module.patched).sum(), Ordering::Relaxed);
    for site in state.modules.iter().flat_map(|module| &module.refused_sites) {
        report.add_refused(site.0);
    }
    state.loaded.iter().for_each(|site| report.add_loaded(site.0));
    report.refused.store(state.modules.iter().map(|module| module.refused).sum(), Ordering::Relaxed);
}
