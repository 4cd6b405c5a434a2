//! What is known about a run's accesses: which are steps, and what it teaches about others.
//!
//! A run either follows a choice of code sites that was made before, or is looked at as well: every access of the program
//! is seen while more than one thread lives, within a budget of accesses, so that learning costs about the same whatever
//! the program does. The budget is counted and not timed: equal runs learn the same.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use waylay_control_protocol::instrumentation::{MOST_ACCESSES, MOST_STEPS};
use waylay_control_protocol::{Level, RegionMap, Site};
use waylay_schedule::{EventKind, ThreadId};

use super::access::Access;
use super::modules::Modules;
use super::order::{Locks, Order, Way};
use super::patch::{self, Attention};
use super::progress::Found;
use super::sharing::Sharing;
use super::spin::Looks;
use super::suspects::{Suspects, Touch};
use crate::runtime::{Logical, runtime};
use crate::sched::{ByAddress, Key};

/// Times that one patched site is looked at in a run: a loop that computes shows soon what it touches.
const MOST_LOOKS: u32 = 4096;

/// What is known about the run's accesses; the holder of the token owns it.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) looks: Looks,
    pub(super) found: Found,
    sharing: Sharing,
    suspects: Suspects,
    order: Order,
    modules: Modules,
    level: Level,
    /// Plain accesses are looked at to learn which are worth a step.
    learning: bool,
    /// All of them are patched for that, as soon as there are threads.
    looking: bool,
    accesses: u64,
    /// Plain accesses from elsewhere are no steps; with the steps that each made so far.
    chosen: Option<ByAddress<usize, u32>>,
    /// What `chosen` was made from, and the same in order.
    sites: Option<Vec<Site>>,
    codes: Vec<usize>,
    /// The code of the process is as `chosen` wants it.
    in_place: bool,
}

struct Slot(UnsafeCell<Option<Watch>>);

// SAFETY: only the holder of the token looks inside; in front of `main` that is the only thread.
unsafe impl Sync for Slot {}

static WATCH: Slot = Slot(UnsafeCell::new(None));

/// Whether the order of what threads do is followed.
static FOLLOWED: AtomicBool = AtomicBool::new(false);

/// # Safety
/// The caller holds the token, and no borrow of the result lives across a handover.
pub(super) unsafe fn watch() -> *mut Watch {
    // SAFETY: by the caller's promise.
    unsafe { (*WATCH.0.get()).get_or_insert_default() }
}

/// Takes over which accesses are steps, ahead of a run: processes that are forked from this one have it done.
///
/// # Safety
/// No thread takes part in a run.
pub(crate) unsafe fn prepare(region: &RegionMap) {
    // SAFETY: by the caller's promise.
    unsafe { (*watch()).choose(region) };
    if region.settings().profile != 0 {
        patch::get_ready();
    }
}

/// Prepares for a run.
///
/// # Safety
/// The runtime is installed, and the caller is the only thread that takes part so far.
pub(crate) unsafe fn begin_run() {
    // SAFETY: by the caller's promise.
    unsafe {
        let watch = &mut *watch();
        let region = &(*runtime()).region;
        watch.level = region.level();
        watch.choose(region);
        watch.chosen.iter_mut().flat_map(ByAddress::values_mut).for_each(|steps| *steps = 0);
        watch.looks = Looks::default();
        watch.found = Found::default();
        watch.sharing.clear();
        watch.suspects.clear();
        watch.learning = watch.level.sees_accesses() && region.settings().profile != 0;
        (watch.looking, watch.accesses) = (false, 0);
        watch.order = Order::new(Locks::Protect);
        FOLLOWED.store(watch.learning && watch.level == Level::Auto, Ordering::Relaxed);
        patch::report(region.report());
        if region.settings().debugged != 0 {
            patch::show_faults();
        }
    }
}

impl Watch {
    fn choose(&mut self, region: &RegionMap) {
        if !region.level().sees_accesses() {
            return;
        }
        match region.chosen() {
            None => {
                if !self.in_place || self.sites.is_some() {
                    (self.chosen, self.sites) = (None, None);
                    patch::turn(Attention::All, true, false);
                }
            }
            Some(sites) => {
                if !self.in_place || self.sites.as_deref() != Some(sites) {
                    self.sites = Some(sites.to_vec());
                    self.chosen = Some(ByAddress::default());
                    self.find_sites();
                    patch::turn(Attention::These(&self.codes), true, false);
                }
            }
        }
        self.in_place = true;
    }

    /// Looks for the code of sites, which may be in modules that are not loaded yet.
    fn find_sites(&mut self) {
        let Watch { sites: Some(sites), chosen: Some(chosen), modules, codes, .. } = self else { return };
        for code in sites.iter().filter_map(|&site| modules.code(site)) {
            chosen.entry(code).or_insert(0);
        }
        codes.clear();
        codes.extend(chosen.keys());
        codes.sort_unstable();
    }

    /// Modules were loaded during the run, from this number on: no thread is in them yet.
    pub(super) fn attend_to_new(&mut self, region: &RegionMap, first_new: usize) {
        self.find_sites();
        let all = self.looking && self.learning || self.chosen.is_none();
        let attention = if all { Attention::All } else { Attention::These(&self.codes) };
        patch::turn_new(first_new, attention, self.looking);
        patch::report(region.report());
    }

    /// Whether accesses are looked at, while so many threads live. Others that have ended without being joined may still
    /// be at work in another schedule.
    pub(super) fn learns(&self, live: u32) -> bool {
        self.learning && (live > 1 || self.order.has_unjoined())
    }

    /// Counts an access that is looked at; after too many it is over for this run.
    pub(super) fn count_access(&mut self, region: &RegionMap) {
        self.accesses += 1;
        region.report().accesses.store(self.accesses, Ordering::Relaxed);
        if self.accesses >= MOST_ACCESSES {
            self.learning = false;
            FOLLOWED.store(false, Ordering::Relaxed);
            if self.looking && self.chosen.is_some() {
                patch::turn(Attention::These(&self.codes), false, false);
            }
        }
    }

    /// A patched site was come by.
    pub(super) fn looked_at(&mut self, site: u32, code: usize) {
        if self.looking && self.chosen.as_ref().is_some_and(|chosen| !chosen.contains_key(&code)) {
            patch::look(site, MOST_LOOKS);
        }
    }

    /// Whether plain accesses from this place are worth a step.
    pub(super) fn is_chosen(&self, code: usize) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.contains_key(&code))
    }

    /// Counts a step of a place that is worth steps; false when it had its share.
    pub(super) fn has_steps_left(&mut self, code: usize, site: Option<u32>, region: &RegionMap) -> bool {
        let Some(steps) = self.chosen.as_mut().and_then(|chosen| chosen.get_mut(&code)) else { return true };
        *steps += 1;
        if *steps == MOST_STEPS {
            region.report().limited.fetch_add(1, Ordering::Relaxed);
            self.in_place = false;
            site.into_iter().for_each(patch::dismiss);
        }
        *steps < MOST_STEPS
    }

    /// Learns from an access.
    pub(super) fn learn(&mut self, thread: ThreadId, access: &Access, atomic: bool, region: &RegionMap) {
        let (reads, writes) = match access.kind {
            EventKind::PlainRead | EventKind::AtomicLoad => (true, false),
            EventKind::PlainWrite | EventKind::AtomicStore => (false, true),
            _ => (true, true),
        };
        let Watch { sharing, suspects, modules, order, .. } = self;
        let learned = |code| {
            if let Some(site) = modules.site(code) {
                region.add_conflicting(site);
            }
        };
        if self.level == Level::Auto {
            let Access { address, bytes, code, .. } = *access;
            suspects.note(order, Touch { thread, code, address, bytes, reads, writes, atomic }, learned);
        } else {
            sharing.note(thread, access.code, (access.address, access.bytes), writes, learned);
        }
    }
}

/// A thread is about to be created: from now on accesses can meet.
///
/// # Safety
/// The caller holds the token and is inside the library.
pub(crate) unsafe fn before_spawn() {
    // SAFETY: by the caller's promise. While one thread lives it is here, and not in code that is replaced.
    unsafe {
        let watch = &mut *watch();
        if watch.learning && !watch.looking && (*runtime()).sched.live() < 2 {
            (watch.looking, watch.in_place) = (true, false);
            patch::forget_hits();
            patch::turn(Attention::All, true, true);
            patch::report((*runtime()).region.report());
        }
    }
}

/// What orders the threads of a run, told by those who do it. Costs a look at one word while nobody wants to know.
///
/// All of them are called by the running thread, which is inside the library.
pub(crate) mod edge {
    use super::*;

    #[inline]
    fn with(what: impl FnOnce(&mut Order)) {
        if FOLLOWED.load(Ordering::Relaxed) {
            // SAFETY: the running thread has the token.
            what(unsafe { &mut (*watch()).order });
        }
    }

    /// `me` created a thread.
    #[inline]
    pub(crate) unsafe fn spawned(me: *mut Logical, child: *mut Logical) {
        // SAFETY: both live as long as the run.
        with(|order| unsafe { order.spawned((*me).id, (*child).id) });
    }

    /// `me` saw a thread end.
    #[inline]
    pub(crate) unsafe fn joined(me: *mut Logical, ended: *mut Logical) {
        // SAFETY: both live as long as the run.
        with(|order| unsafe { order.joined((*me).id, (*ended).id) });
    }

    /// `me` holds a lock.
    #[inline]
    pub(crate) unsafe fn locked(me: *mut Logical, lock: Key, way: Way) {
        // SAFETY: it lives as long as the run.
        with(|order| unsafe { order.locked((*me).id, lock.0, way) });
    }

    /// `me` gave a lock back.
    #[inline]
    pub(crate) unsafe fn unlocked(me: *mut Logical, lock: Key) {
        // SAFETY: it lives as long as the run.
        with(|order| unsafe { order.unlocked((*me).id, lock.0) });
    }

    /// What `me` did so far is for those who take over from the object.
    #[inline]
    pub(crate) unsafe fn hands_over(me: *mut Logical, object: Key) {
        // SAFETY: it lives as long as the run.
        with(|order| unsafe { order.hand_over((*me).id, object.0) });
    }

    /// `me` goes on after those who handed over to the object.
    #[inline]
    pub(crate) unsafe fn takes_over(me: *mut Logical, object: Key) {
        // SAFETY: it lives as long as the run.
        with(|order| unsafe { order.take_over((*me).id, object.0) });
    }
}
