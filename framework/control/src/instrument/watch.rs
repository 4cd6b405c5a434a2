//! What is known about a run's accesses: which are steps, and what it teaches about others.
//!
//! A run either follows a choice of code sites that was made before, or is looked at as well: every access of the program
//! is seen while more than one thread lives, within a budget of accesses, so that learning costs about the same whatever
//! the program does. The budget is counted and not timed: equal runs learn the same.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use waylay_control_protocol::instrumentation::{MOST_ACCESSES, MOST_STEPS};
use waylay_control_protocol::{Level, Pair, RegionMap, Site};
use waylay_schedule::{EventKind, ThreadId};

use super::access::Access;
use super::modules::Modules;
use super::objects::Objects;
use super::order::{Locks, Order, Way};
use super::patch::{self, Attention};
use super::progress::Found;
use super::races::{Block, Deed, Race, Races, Seen};
use super::sharing::Sharing;
use super::suspects::{Suspects, Touch};
use crate::runtime::{Logical, runtime};
use crate::sched::{ByAddress, Key, Looks};

/// Times that one patched site is looked at in a run: a loop that computes shows soon what it touches.
const MOST_LOOKS: u32 = 4096;

/// Accesses that take as long as one at a breakpoint.
const PRICE_OF_TRAP: u64 = 16;

/// What is known about the run's accesses; the holder of the token owns it.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) looks: Looks,
    pub(super) found: Found,
    sharing: Sharing,
    suspects: Suspects,
    order: Order,
    pub(super) races: Races,
    modules: Modules,
    objects: Objects,
    /// Places in code and kinds of accesses that were told of, by number.
    told: ByAddress<usize, ()>,
    level: Level,
    /// Plain accesses are looked at to learn which are worth a step.
    learning: bool,
    /// Accesses that nothing orders end the run, and so does the one with this number.
    racing: bool,
    stop_at: u64,
    /// All of them are patched for that, as soon as there are threads.
    looking: bool,
    accesses: u64,
    /// Plain accesses from elsewhere are no steps; with the steps that each made so far.
    chosen: Option<ByAddress<usize, u32>>,
    /// Of those, accesses of other kinds are none either; empty: all are.
    kinds: ByAddress<usize, ()>,
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

/// Whether it matters who allocated what.
static OBJECTS: AtomicBool = AtomicBool::new(false);

/// # Safety
/// The caller holds the token, and no borrow of the result lives across a handover.
pub(super) unsafe fn watch() -> *mut Watch {
    // SAFETY: by the caller's promise.
    unsafe { (*WATCH.0.get()).get_or_insert_default() }
}

/// Whether accesses that are steps changed some memory since this was last asked.
///
/// # Safety
/// The caller holds the token.
pub(crate) unsafe fn has_changed_memory() -> bool {
    // SAFETY: by the caller's promise.
    unsafe { (*watch()).found.has_changed() }
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
        watch.objects.clear();
        watch.told.clear();
        watch.learning = watch.level.sees_accesses() && region.settings().profile != 0;
        (watch.looking, watch.accesses) = (false, 0);
        watch.order = Order::new(Locks::Protect);
        watch.racing = watch.level.sees_accesses() && region.settings().races != 0;
        watch.stop_at = region.settings().stop_at;
        watch.races = Races::default();
        watch.find_deliberate(region);
        FOLLOWED.store(watch.learning && watch.level == Level::Auto || watch.racing, Ordering::Relaxed);
        OBJECTS.store(watch.learning || watch.racing || !watch.kinds.is_empty(), Ordering::Relaxed);
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
                    self.kinds.clear();
                    patch::turn(Attention::All, true, false);
                }
            }
            Some(sites) => {
                if !self.in_place || self.sites.as_deref() != Some(sites) {
                    self.sites = Some(sites.to_vec());
                    self.chosen = Some(ByAddress::default());
                    self.kinds = sites.iter().filter(|site| site.is_kind()).map(|site| (site.0 as usize, ())).collect();
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
        let places = sites.iter().filter(|site| !site.is_kind());
        for code in places.filter_map(|&site| modules.code(site)) {
            chosen.entry(code).or_insert(0);
        }
        codes.clear();
        codes.extend(chosen.keys());
        codes.sort_unstable();
    }

    /// Looks for the code of sites whose plain accesses are atomic.
    fn find_deliberate(&mut self, region: &RegionMap) {
        if self.racing {
            let codes = region.forgiven().1.iter().filter_map(|&site| self.modules.code(site));
            self.races.deliberate.extend(codes.map(|code| (code, ())));
        }
    }

    /// Modules were loaded during the run, from this number on: no thread is in them yet.
    pub(super) fn attend_to_new(&mut self, region: &RegionMap, first_new: usize) {
        self.find_sites();
        self.find_deliberate(region);
        let all = self.looking && (self.learning || self.racing) || self.chosen.is_none();
        let attention = if all { Attention::All } else { Attention::These(&self.codes) };
        patch::turn_new(first_new, attention, self.looking);
        patch::report(region.report());
    }

    /// Whether accesses are looked at, while so many threads live. Others that have ended without being joined may still
    /// be at work in another schedule.
    pub(super) fn learns(&self, live: u32) -> bool {
        self.learning && (live > 1 || self.order.has_unjoined())
    }

    /// Whether accesses are compared with those of others in this schedule.
    pub(super) fn races(&self, live: u32) -> bool {
        self.racing && (live > 1 || self.races.order.has_unjoined())
    }

    /// Threads that are not seen took part: what they order is not known.
    fn lose_order(&mut self) {
        self.racing = false;
    }

    /// Takes in an access that is made right now; says why the run ends, if it does.
    pub(super) fn compare(&mut self, deed: Deed, region: &RegionMap) -> Option<(Option<Race>, Seen)> {
        let Watch { races, modules, .. } = self;
        let race = races.note(deed, |one, other| {
            let mut site = |code| modules.site(code).unwrap_or(Site(0));
            region.forgiven().0.contains(&Pair::new(site(one), site(other)))
        });
        if self.races.is_over() {
            region.report().races_over.store(1, Ordering::Relaxed);
        }
        if race.is_none() && (self.stop_at == 0 || self.races.serial() != self.stop_at) {
            return None;
        }
        Some((race, self.races.seen(&deed)))
    }

    /// The place of code as others know it.
    pub(super) fn site(&mut self, code: usize) -> Site {
        self.modules.site(code).unwrap_or(Site(0))
    }

    /// Counts an access that is looked at; after too many it is over for this run.
    pub(super) fn count_access(&mut self, trapped: bool, region: &RegionMap) {
        self.accesses += if trapped { PRICE_OF_TRAP } else { 1 };
        region.report().accesses.store(self.accesses, Ordering::Relaxed);
        if self.accesses >= MOST_ACCESSES {
            (self.learning, self.racing) = (false, false);
            FOLLOWED.store(false, Ordering::Relaxed);
            if self.looking && self.chosen.is_some() {
                patch::turn(Attention::These(&self.codes), false, false);
            }
        }
    }

    /// A patched site was come by.
    pub(super) fn looked_at(&mut self, site: u32, code: usize) {
        // For an order that is missed a race would be seen where there is none.
        if self.looking && !self.racing && self.chosen.as_ref().is_some_and(|chosen| !chosen.contains_key(&code)) {
            patch::look(site, MOST_LOOKS);
        }
    }

    /// Whether a plain access of a thread is worth a step: at this place, and to this kind of memory.
    pub(super) fn is_chosen(&mut self, code: usize, address: usize, thread: ThreadId) -> bool {
        let Some(chosen) = &self.chosen else { return true };
        if !chosen.contains_key(&code) {
            return false;
        }
        let Watch { kinds, modules, objects, .. } = self;
        let Some(site) = modules.site(code).filter(|_| !kinds.is_empty()) else { return true };
        let kind = objects.kind(site, address, thread.0, || modules.known(address));
        kinds.contains_key(&(kind.0 as usize))
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

    /// Learns from an access of a thread or of handlers on it: see [`actor`].
    pub(super) fn learn(&mut self, thread: ThreadId, access: &Access, atomic: bool, region: &RegionMap) {
        let (reads, writes) = match access.kind {
            EventKind::PlainRead | EventKind::AtomicLoad => (true, false),
            EventKind::PlainWrite | EventKind::AtomicStore => (false, true),
            _ => (true, true),
        };
        let Watch { sharing, suspects, modules, order, objects, told, .. } = self;
        let learned = |code, actor: ThreadId, address| {
            let Some(site) = modules.site(code) else { return };
            let kind = objects.kind(site, address, thread_of(actor), || modules.known(address));
            for site in [site, kind] {
                if told.insert(site.0 as usize, ()).is_none() {
                    region.add_conflicting(site);
                }
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

/// Who makes an access, for whoever looks ahead to other schedules: a thread, or the handlers of signals on it, which could
/// come at any of its steps.
///
/// # Safety
/// The thread lives as long as the run.
pub(super) unsafe fn actor(thread: *mut Logical) -> ThreadId {
    // SAFETY: by the caller's promise.
    unsafe { if (*thread).handlers > 0 { handler_of(thread) } else { ThreadId((*thread).id.0 * 2) } }
}

/// The thread that an actor is, or is on.
fn thread_of(actor: ThreadId) -> u32 {
    actor.0 / 2
}

unsafe fn handler_of(thread: *mut Logical) -> ThreadId {
    // SAFETY: as for `actor`.
    unsafe { ThreadId((*thread).id.0 * 2 + 1) }
}

/// A thread is about to be created: from now on accesses can meet.
///
/// # Safety
/// The caller holds the token and is inside the library.
pub(crate) unsafe fn before_spawn() {
    // SAFETY: by the caller's promise. While one thread lives it is here, and not in code that is replaced.
    unsafe {
        let watch = &mut *watch();
        if (watch.learning || watch.racing) && !watch.looking && (*runtime()).sched.live() < 2 {
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

    /// How a thread is called by the one who follows an order.
    type Naming = unsafe fn(*mut Logical) -> ThreadId;

    unsafe fn id(thread: *mut Logical) -> ThreadId {
        // SAFETY: it lives as long as the run.
        unsafe { (*thread).id }
    }

    #[inline]
    fn with(what: impl Fn(&mut Order, Naming)) {
        if FOLLOWED.load(Ordering::Relaxed) {
            // SAFETY: the running thread has the token.
            let watch = unsafe { &mut *watch() };
            what(&mut watch.order, actor);
            what(&mut watch.races.order, id);
        }
    }

    /// `me` created a thread, which blocks the signals that `me` blocks.
    #[inline]
    pub(crate) unsafe fn spawned(me: *mut Logical, child: *mut Logical) {
        // SAFETY: both live as long as the run.
        unsafe {
            with(|order, name| order.spawned(name(me), name(child)));
            masked(child, 0, (*child).mask);
        }
    }

    /// `me` saw a thread end.
    #[inline]
    pub(crate) unsafe fn joined(me: *mut Logical, ended: *mut Logical) {
        // SAFETY: both live as long as the run.
        unsafe {
            with(|order, name| order.joined(name(me), name(ended)));
            if FOLLOWED.load(Ordering::Relaxed) {
                (*watch()).order.include(actor(me), handler_of(ended));
            }
        }
    }

    /// What stands between a thread and the handler of a signal on it: blocked by the one, at work in the other. No lock of
    /// the program's is inside our own memory.
    fn gate(thread: *mut Logical, signal: u32) -> usize {
        const { assert!(size_of::<Logical>() > 65) }
        thread as usize + signal as usize
    }

    fn each(signals: u64, mut what: impl FnMut(u32)) {
        (1..=64).filter(|signal| signals & 1 << (signal - 1) != 0).for_each(&mut what);
    }

    /// `me` sends a signal to a thread: what it did so far comes before the handler.
    #[inline]
    pub(crate) unsafe fn signals(me: *mut Logical, target: *mut Logical) {
        // SAFETY: both live as long as the run.
        with(|order, name| unsafe { order.hand_over(name(me), target as usize) });
    }

    /// `me` blocks other signals than before.
    #[inline]
    pub(crate) unsafe fn masked(me: *mut Logical, before: u64, after: u64) {
        if before != after && FOLLOWED.load(Ordering::Relaxed) {
            // SAFETY: the running thread has the token.
            unsafe {
                let order = &mut (*watch()).order;
                each(after & !before, |signal| order.locked(actor(me), gate(me, signal), Way::Exclusive));
                each(before & !after, |signal| order.unlocked(actor(me), gate(me, signal)));
            }
        }
    }

    /// `me` is in the handlers of these signals from now on.
    #[inline]
    pub(crate) unsafe fn interrupted(me: *mut Logical, signals: u64) {
        // SAFETY: the running thread has the token.
        unsafe {
            with(|order, name| order.take_over(name(me), me as usize));
            masked(me, 0, signals);
        }
    }

    /// `me` is about to leave them.
    #[inline]
    pub(crate) unsafe fn goes_on(me: *mut Logical, signals: u64) {
        // SAFETY: the running thread has the token.
        unsafe { masked(me, signals, 0) };
    }

    /// What is handed over through descriptors: which of them are two ends of one is the kernel's knowledge.
    const TALK: usize = 8;

    /// `me` is about to write to a descriptor, or to close it.
    #[inline]
    pub(crate) unsafe fn talks(me: *mut Logical) {
        if FOLLOWED.load(Ordering::Relaxed) {
            // SAFETY: the running thread has the token.
            unsafe { (*watch()).races.order.hand_over((*me).id, TALK) };
        }
    }

    /// `me` can read from a descriptor: it comes after all who wrote before, to whatever descriptor. That is more order than
    /// there is, so it does not count where other schedules are thought of.
    #[inline]
    pub(crate) unsafe fn listens(me: *mut Logical) {
        if FOLLOWED.load(Ordering::Relaxed) {
            // SAFETY: the running thread has the token.
            unsafe { (*watch()).races.order.take_over((*me).id, TALK) };
        }
    }

    /// `me` has ended and nobody will join it, or somebody did.
    #[inline]
    pub(crate) unsafe fn ended(thread: *mut Logical) {
        // SAFETY: it lives as long as the run.
        with(|order, name| unsafe { order.ended(name(thread)) });
    }

    /// A thread that is not under control took part.
    pub(crate) unsafe fn outsider() {
        if FOLLOWED.load(Ordering::Relaxed) {
            // SAFETY: the running thread has the token.
            unsafe { (*watch()).lose_order() };
        }
    }

    /// Whether [`allocated`] and [`resized`] are worth calling.
    #[inline(always)]
    pub(crate) fn follows() -> bool {
        OBJECTS.load(Ordering::Relaxed)
    }

    /// Code at `caller` was given memory.
    #[cold]
    pub(crate) fn allocated(start: usize, bytes: usize, caller: usize) {
        with_blocks(|watch, me| {
            let site = if caller == 0 { None } else { watch.modules.site(caller) };
            watch.objects.allocated(start, bytes, site, me);
            if watch.racing {
                watch.races.allocated(Block { start, bytes, thread: me, code: caller });
            }
        });
    }

    /// A block has another length now.
    #[cold]
    pub(crate) fn resized(start: usize, bytes: usize) {
        with_blocks(|watch, _| {
            watch.objects.resized(start, bytes);
            if watch.racing {
                watch.races.resized(start, bytes);
            }
        });
    }

    fn with_blocks(what: impl FnOnce(&mut Watch, u32)) {
        let me = crate::me::me();
        if me.is_null() {
            return;
        }
        let _inside = crate::me::Unmanaged::enter();
        // SAFETY: a logical thread that runs program code has the token.
        unsafe {
            what(&mut *watch(), (*me).id.0);
        }
    }

    /// `me` holds a lock.
    #[inline]
    pub(crate) unsafe fn locked(me: *mut Logical, lock: Key, way: Way) {
        // SAFETY: it lives as long as the run.
        with(|order, name| unsafe { order.locked(name(me), lock.0, way) });
    }

    /// `me` gave a lock back.
    #[inline]
    pub(crate) unsafe fn unlocked(me: *mut Logical, lock: Key) {
        // SAFETY: it lives as long as the run.
        with(|order, name| unsafe { order.unlocked(name(me), lock.0) });
    }

    /// What `me` did so far is for those who take over from the object.
    #[inline]
    pub(crate) unsafe fn hands_over(me: *mut Logical, object: Key) {
        // SAFETY: it lives as long as the run.
        with(|order, name| unsafe { order.hand_over(name(me), object.0) });
    }

    /// `me` goes on after those who handed over to the object.
    #[inline]
    pub(crate) unsafe fn takes_over(me: *mut Logical, object: Key) {
        // SAFETY: it lives as long as the run.
        with(|order, name| unsafe { order.take_over(name(me), object.0) });
    }
}
