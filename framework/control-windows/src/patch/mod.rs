//! Steps in code that no compiler was asked to report: its instructions are replaced by jumps, in memory, before the
//! program's entry point, before the first run of a host, and when a library is loaded later.
//!
//! What can be replaced safely is decided by `waylay-patch`, which is pure; here it is carried out.
//!
//! - [`loaded`]: the modules of the process, and which of them are left alone
//! - [`module`]: a plan becomes code
//! - [`demand`]: plain accesses, which are replaced only while they matter
//! - [`memory`]: room for code within reach of a jump
//! - [`stub`]: what the code calls: keeps every register
//! - [`site`]: a site becomes a step
//! - [`table`]: what is known about the sites of each module
//! - [`fault`]: breakpoints, where no jump fits, and faults in moved code
//!
//! A site in a thread that is not under control, or inside the library, makes no step: the identity is null there. The
//! library's own code is never patched, nor what it calls.

mod demand;
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

use waylay_accesses::Attention;
use waylay_control_protocol::{Instrumentation, Level, RegionMap, Report};
use waylay_scheduler::ByAddress;
use windows_sys::Win32::Foundation::HMODULE;

use demand::OnDemand;
pub(crate) use fault::stay_in_front;
use loaded::Loaded;
pub(crate) use stub::can_save_all;
use stub::{frame, site_of};
use table::Patched;

struct State {
    /// Where plans are kept between processes.
    cache: Option<PathBuf>,
    wanted: Instrumentation,
    /// Where to say what was done.
    report: &'static Report,
    /// Modules that have been dealt with.
    modules: Vec<Known>,
    /// How many ever were.
    count: usize,
    /// How often each site was looked at in this run.
    hits: ByAddress<usize, u32>,
}

struct Known {
    base: usize,
    /// Its place among all that were ever dealt with.
    number: usize,
    accesses: Option<OnDemand>,
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
    // SAFETY: by the caller's promise; what is mapped does not move.
    let report = unsafe { &*core::ptr::from_ref(region.report()) };
    fault::install();
    let cache = wanted.cache();
    let hits = ByAddress::default();
    *state = Some(State { cache, wanted, report, modules: Vec::new(), count: 0, hits });
}

/// The code of those of these modules that are not left alone: begin and end of each piece.
pub(crate) fn code_of(modules: &[usize], host: bool) -> Vec<(usize, usize)> {
    // SAFETY: a library that is unloaded meanwhile is one whose code nobody runs; its first page is gone only with it.
    let loaded = modules.iter().filter_map(|&module| unsafe { Loaded::new(module as HMODULE) });
    loaded.filter(|loaded| !loaded.is_left_alone(host)).flat_map(|loaded| loaded.code).collect()
}

/// Patches those of the program's modules that have not been dealt with; says which is the first of them, if there are any.
///
/// # Safety
/// These modules are loaded, and no thread is in the middle of code of new ones.
pub(crate) unsafe fn attend(modules: &[HMODULE]) -> Option<usize> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let state = state.as_mut()?;
    let before = state.count;
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
            .filter(|loaded| !loaded.is_left_alone(state.wanted.host != 0))
            .and_then(|loaded| {
                let wanted = loaded.wanted(&state.wanted);
                // SAFETY: by the caller's promise.
                unsafe { module::patch(loaded, wanted, state.cache.as_deref()) }
            });
        let (patched, accesses) = patched.unzip();
        let (base, accesses) = (module as usize, accesses.flatten());
        state.modules.push(Known { base, number: state.count, accesses, patched });
        state.count += 1;
    }
    state.tell();
    (state.count > before).then_some(before)
}

impl State {
    /// Tells the driver what was done.
    fn tell(&self) {
        let refused = |patched: &Patched| patched.sites_refused.load(Ordering::Relaxed);
        let modules =
            || self.modules.iter().filter_map(|known| Some((known.patched?, known.accesses.as_ref())));
        let later = |accesses: Option<&OnDemand>| accesses.map_or(0, OnDemand::sites);
        let patched = modules().map(|(patched, accesses)| patched.sites_patched + later(accesses)).sum();
        self.report.patched.store(patched, Ordering::Relaxed);
        let refused =
            modules().map(|(patched, accesses)| refused(patched) + accesses.map_or(0, OnDemand::impossible));
        self.report.refused.store(refused.sum(), Ordering::Relaxed);
    }

    fn take_away(&mut self, code: usize) {
        for accesses in self.modules.iter_mut().filter_map(|known| known.accesses.as_mut()) {
            // SAFETY: its module is loaded, as a thread came by the code; the lock is held.
            if unsafe { accesses.take_away(code) } {
                return;
            }
        }
    }
}

fn with_state(what: impl FnOnce(&mut State)) {
    if let Some(state) = &mut *STATE.lock().unwrap_or_else(PoisonError::into_inner) {
        what(state);
    }
}

/// Looks at these plain accesses of modules from this number on, and at no others. `more`: no thread can be in code that would
/// be replaced; otherwise accesses are only dismissed.
pub(crate) fn turn(attention: Attention<'_>, more: bool, first: usize) {
    with_state(|state| {
        for known in state.modules.iter_mut().filter(|known| known.number >= first) {
            if let Some(accesses) = &mut known.accesses {
                // SAFETY: modules in the list are loaded; the lock is held.
                unsafe { accesses.turn(attention, more) };
            }
        }
    });
}

/// No site has been looked at so far.
pub(crate) fn forget_hits() {
    with_state(|state| state.hits.clear());
}

/// Counts a look at a site, and after `most` of them dismisses it.
pub(crate) fn look(site: u32, most: u32) -> bool {
    let mut over = false;
    with_state(|state| {
        let hits = state.hits.entry(site as usize).or_insert(0);
        *hits += 1;
        over = *hits >= most;
        if over && let Some(entry) = table::entry(site) {
            state.take_away(entry.code);
        }
    });
    over
}

/// Does not look at a site again in this run.
pub(crate) fn dismiss(site: u32) {
    with_state(|state| {
        if let Some(entry) = table::entry(site) {
            state.take_away(entry.code);
        }
    });
}

/// The registers by which the stack at a site is walked: RSP and RBP; those that are 0 are not known, and Windows does without.
/// The program's own code is put back there, because whoever walks the stack looks at it.
///
/// # Safety
/// `saved` is what a stub passed on, and the site is not left any more.
pub(crate) unsafe fn program_registers(saved: usize) -> [usize; 7] {
    // SAFETY: by the caller's promise.
    let (site, [stack, frame]) = unsafe { (site_of(saved), frame(saved)) };
    dismiss(site);
    [stack, frame, 0, 0, 0, 0, 0]
}

/// Tells the driver what was done.
pub(crate) fn report() {
    with_state(|state| state.tell());
}

/// Whether a thread at this address must not stay there: what leads to our code may be taken away meanwhile.
pub(crate) fn is_on_the_way(at: usize) -> bool {
    table::is_on_the_way(at)
}

/// The module that begins there, for whoever names places in it.
pub(crate) fn extent_of(base: usize) -> Option<waylay_accesses::Module> {
    // SAFETY: a library that is unloaded meanwhile is one whose code nobody runs; its first page is gone only with it.
    let loaded = unsafe { Loaded::new(base as HMODULE) }?;
    let (end, name) = (base + loaded.size, loaded.name());
    let orders = waylay_patch::scope::synchronises(&name);
    Some(waylay_accesses::Module { base, start: base, end, name, orders })
}
