//! What is known about a run's accesses: which are steps, and what it teaches about others.
//!
//! A run either follows a choice of code sites that was made before, or is looked at as well: every access of the program
//! is seen while more than one thread lives, within a budget of accesses, so that learning costs about the same whatever
//! the program does. The budget is counted and not timed: equal runs learn the same.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};

use waylay_control_protocol::instrumentation::{MOST_ACCESSES, MOST_STEPS};
use waylay_control_protocol::{Level, Memory, Pair, RegionMap, Site};
use waylay_schedule::{EventKind, ThreadId};
use waylay_scheduler::{ByAddress, Looks, Spins};

use crate::access::Access;
use crate::blocks::Block;
use crate::delayed;
use crate::files::Files;
use crate::modules::Modules;
use crate::objects::Objects;
use crate::order::{Locks, Order, Promise, Way};
use crate::process::{Attention, Process, Who};
use crate::progress::Found;
use crate::races::{Deed, Race, Races, Seen};
use crate::rounds::Rounds;
use crate::sharing::Sharing;
use crate::suspects::{Orders, Settled, Suspects, Touch};

/// Times that one patched site is looked at for each thread of a run: a loop that computes shows soon what it touches.
const MOST_LOOKS: u32 = 4096;

/// Times that it is looked at in runs that come later: what they show beyond the first ones is another order, which shows in fewer rounds.
const FEWER_LOOKS: u32 = 512;

/// Runs of an exploration that look long.
const LONG_RUNS: u64 = 4;

/// Accesses of a run that are all looked at, however few places make them: some milliseconds.
const LOOKED_AT_IN_ANY_CASE: u64 = 32_768;

/// What is known about the run's accesses; the holder of the token owns it.
#[derive(Default)]
pub struct Watch<P> {
    pub(crate) looks: Looks,
    pub(crate) spins: Spins,
    pub(crate) found: Found,
    rounds: Rounds,
    /// Code that waits for another thread to change what it reads.
    waiting: ByAddress<usize, ()>,
    sharing: Sharing,
    suspects: Suspects,
    order: Order,
    /// The same by what every run has: a hand-over may go to another thread in the next one.
    forced: Order,
    pub(crate) races: Races,
    modules: Modules,
    objects: Objects,
    files: Files,
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
    /// Sites were dismissed because a thread came by too often; threads that had their looks at them.
    dismissed: bool,
    served: Vec<ThreadId>,
    /// Plain accesses from elsewhere are no steps; with the steps that each made so far.
    chosen: Option<ByAddress<usize, u32>>,
    /// Of those, accesses of other kinds are none either; empty: all are.
    kinds: ByAddress<usize, ()>,
    /// Some of them call functions that copy.
    copies_chosen: bool,
    /// Code that was seen to call such a function.
    copies: ByAddress<usize, ()>,
    /// What `chosen` was made from, and the same in order.
    sites: Option<Vec<Site>>,
    codes: Vec<usize>,
    /// Accesses to what is handed over are steps.
    handed: bool,
    /// The code of the process is as `chosen` wants it.
    in_place: bool,
    /// Stores may wait, so that all of them are looked at: one that is not seen must not overtake them.
    delaying: bool,
    process: PhantomData<P>,
}

/// Whether the order of what threads do is followed.
static FOLLOWED: AtomicBool = AtomicBool::new(false);

/// Whether it matters who allocated what.
static OBJECTS: AtomicBool = AtomicBool::new(false);

/// Whether threads that go on may want sites back.
static IN_WANT: AtomicBool = AtomicBool::new(false);

/// Whether [`Watch::resumed`] is worth calling.
#[inline(always)]
pub fn is_in_want() -> bool {
    IN_WANT.load(Ordering::Relaxed)
}

/// Whether what orders threads is worth telling: [`Watch::spawned`] and its like.
#[inline(always)]
pub fn follows_order() -> bool {
    FOLLOWED.load(Ordering::Relaxed)
}

/// Whether [`Watch::allocated`] and [`Watch::resized`] are worth calling.
#[inline(always)]
pub fn follows_objects() -> bool {
    OBJECTS.load(Ordering::Relaxed)
}

impl<P: Process> Watch<P> {
    /// Prepares for a run. The caller is the only thread that takes part so far.
    pub fn begin_run(&mut self, region: &RegionMap) {
        self.level = region.level();
        self.choose(region);
        // SAFETY: as this is called.
        unsafe { delayed::begin_run(region) };
        self.chosen.iter_mut().flat_map(ByAddress::values_mut).for_each(|steps| *steps = 0);
        self.looks = Looks::default();
        self.spins = Spins::default();
        self.found = Found::default();
        self.rounds.clear();
        self.dismissed = false;
        self.served.clear();
        IN_WANT.store(false, Ordering::Relaxed);
        self.copies.clear();
        self.sharing.clear();
        self.suspects.clear();
        self.objects.clear();
        self.told.clear();
        self.learning = self.level.sees_accesses() && region.settings().is_looked_at();
        (self.looking, self.accesses) = (false, 0);
        (self.order, self.forced) = (Order::new(Locks::Protect), Order::new(Locks::Protect));
        self.racing = self.level.sees_accesses() && region.settings().races != 0;
        self.stop_at = region.settings().stop_at;
        self.races = Races::default();
        self.find_deliberate(region);
        FOLLOWED.store(self.learning && self.level == Level::Auto || self.racing, Ordering::Relaxed);
        OBJECTS.store(self.learning || self.racing || !self.kinds.is_empty(), Ordering::Relaxed);
        self.tell_of_copies(false);
        P::report(region.report());
    }

    /// A thread is about to be created, while so many live: from now on accesses can meet. While one thread lives it is in
    /// the library, and not in code that is replaced.
    pub fn before_spawn(&mut self, live: u32, region: &RegionMap) {
        if (self.learning || self.racing) && !self.looking && live < 2 {
            // SAFETY: a run goes on, and its only thread is here.
            if !unsafe { P::is_alone() } {
                (self.learning, self.racing) = (false, false);
                FOLLOWED.store(false, Ordering::Relaxed);
                region.report().partly_controlled.store(1, Ordering::Relaxed);
                return;
            }
            (self.looking, self.in_place) = (true, false);
            P::forget_hits();
            P::turn(Attention::All, true, true);
            self.tell_of_copies(true);
            P::report(region.report());
        }
    }

    /// Takes over which accesses are steps, ahead of a run.
    pub fn choose(&mut self, region: &RegionMap) {
        if !region.level().sees_accesses() {
            return;
        }
        let delaying = region.settings().memory == Memory::Tso as u32;
        self.in_place &= core::mem::replace(&mut self.delaying, delaying) == delaying;
        let handed = region.settings().has_handed();
        self.in_place &= core::mem::replace(&mut self.handed, handed) == handed;
        match region.chosen() {
            None => {
                if !self.in_place || self.sites.is_some() {
                    (self.chosen, self.sites) = (None, None);
                    self.kinds.clear();
                    self.waiting.clear();
                    self.in_place = self.put_in_place(region);
                }
            }
            Some(sites) => {
                if !self.in_place || self.sites.as_deref() != Some(sites) {
                    self.sites = Some(sites.to_vec());
                    self.chosen = Some(ByAddress::default());
                    self.kinds = Site::steps_of(sites, handed)
                        .filter(|site| site.is_kind())
                        .map(|site| (site.0 as usize, ()))
                        .collect();
                    self.find_sites();
                    self.in_place = self.put_in_place(region);
                }
            }
        }
    }

    /// Has exactly those accesses looked at that are steps; false when some could not be, because threads that are not under
    /// control may be in their code.
    fn put_in_place(&self, region: &RegionMap) -> bool {
        // SAFETY: no run goes on but the one that begins, whose only thread is here.
        let alone = unsafe { P::is_alone() };
        if !alone {
            region.report().partly_controlled.store(1, Ordering::Relaxed);
        }
        let attention = if self.chosen.is_none() || self.delaying {
            Attention::All
        } else {
            Attention::These(&self.codes)
        };
        P::turn(attention, alone, false);
        alone
    }

    /// Looks for the code of sites, which may be in modules that are not loaded yet.
    fn find_sites(&mut self) {
        let Watch { sites: Some(sites), chosen: Some(chosen), modules, codes, handed, .. } = self else {
            return;
        };
        let places = Site::steps_of(sites, *handed).filter(|site| site.is_place());
        self.copies_chosen = places.clone().any(|site| site.is_copy());
        let waits = sites.iter().filter(|site| site.is_wait());
        self.waiting =
            waits.filter_map(|&site| modules.code(site, P::modules)).map(|code| (code, ())).collect();
        for code in places.filter_map(|site| modules.code(site, P::modules)) {
            chosen.entry(code).or_insert(0);
        }
        codes.clear();
        codes.extend(chosen.keys());
        codes.sort_unstable();
    }

    /// Looks for the code of sites whose plain accesses are atomic.
    fn find_deliberate(&mut self, region: &RegionMap) {
        if self.racing {
            let codes = region.forgiven().1.iter().filter_map(|&site| self.modules.code(site, P::modules));
            self.races.deliberate.extend(codes.map(|code| (code, ())));
            self.races.deliberate.extend(self.waiting.keys().map(|&code| (code, ())));
        }
    }

    /// Modules were loaded during the run, from this number on: no thread is in them yet.
    pub fn attend_to_new(&mut self, region: &RegionMap, first_new: usize) {
        self.find_sites();
        self.find_deliberate(region);
        let all = self.looking && (self.learning || self.racing) || self.chosen.is_none() || self.delaying;
        let attention = if all { Attention::All } else { Attention::These(&self.codes) };
        P::turn_new(first_new, attention, self.looking);
        P::report(region.report());
    }

    /// Whether accesses are looked at, while so many threads live. Others that have ended without being joined may still
    /// be at work in another schedule.
    pub(crate) fn learns(&self, live: u32) -> bool {
        self.learning && (live > 1 || self.order.has_unjoined())
    }

    /// Whether accesses are compared with those of others in this schedule.
    pub(crate) fn races(&self, live: u32) -> bool {
        self.racing && (live > 1 || self.races.order.has_unjoined())
    }

    /// A thread executes a fence that a compiler reports.
    pub(crate) fn fences(&mut self, thread: ThreadId, promise: Promise) {
        self.races.order.fences(thread, promise);
    }

    /// Takes in an access that is made right now; says why the run ends, if it does.
    pub(crate) fn compare(&mut self, deed: Deed, region: &RegionMap) -> Option<(Option<Race>, Seen)> {
        let Watch { races, modules, .. } = self;
        let is_known = |one, other| {
            let mut site = |code| modules.site(code, P::modules).unwrap_or(Site(0));
            let pair = Pair::new(site(one), site(other));
            // What a runtime does to its own memory is its own affair: the program is not wrong there.
            modules.orders(one) && modules.orders(other) || region.forgiven().0.contains(&pair)
        };
        let race = if deed.frees { races.free(deed, is_known) } else { races.note(deed, is_known) };
        if self.races.is_over() {
            region.report().races_over.store(1, Ordering::Relaxed);
        }
        if race.is_none() && (self.stop_at == 0 || self.races.serial() != self.stop_at) {
            return None;
        }
        Some((race, self.races.seen(&deed)))
    }

    /// The place of code as others know it.
    pub(crate) fn site(&mut self, code: usize) -> Site {
        self.modules.site(code, P::modules).unwrap_or(Site(0))
    }

    /// Counts an access that is looked at; after too many it is over for this run.
    pub(crate) fn count_access(&mut self, price: u64, region: &RegionMap) {
        self.accesses += price;
        region.report().accesses.store(self.accesses, Ordering::Relaxed);
        if self.accesses >= MOST_ACCESSES {
            (self.learning, self.racing) = (false, false);
            FOLLOWED.store(false, Ordering::Relaxed);
            if self.looking && self.chosen.is_some() && !self.delaying {
                P::turn(Attention::These(&self.codes), false, false);
            }
            self.tell_of_copies(false);
        }
    }

    /// Counts a copy that is looked at, which takes as long as a word of it after the other.
    pub(crate) fn count_copy(&mut self, range: &Access, region: &RegionMap) {
        self.copies.insert(range.code, ());
        self.count_access(range.bytes.div_ceil(size_of::<u64>()) as u64, region);
    }

    /// Has copies told of if some of them are steps, or all are looked at.
    fn tell_of_copies(&self, looking: bool) {
        let steps = self.chosen.is_none() || self.copies_chosen || self.delaying;
        P::tell_of_copies(self.level.sees_accesses() && (looking || steps));
    }

    /// A patched site was come by, by a thread.
    pub(crate) fn looked_at(&mut self, site: u32, code: usize, thread: ThreadId, region: &RegionMap) {
        // For an order that is missed a race would be seen where there is none.
        if self.looking
            && !self.racing
            && !self.delaying
            && self.chosen.as_ref().is_some_and(|chosen| !chosen.contains_key(&code))
        {
            let most = match region.settings().run {
                _ if self.accesses < LOOKED_AT_IN_ANY_CASE => u32::MAX,
                run if run < LONG_RUNS => MOST_LOOKS,
                _ => FEWER_LOOKS,
            };
            if P::look(site, most) {
                let place = self.modules.site(code, P::modules).unwrap_or(Site(0));
                region.report().add_overlooked(place.0);
                self.dismissed = true;
                self.served.push(thread);
                IN_WANT.store(true, Ordering::Relaxed);
            }
        }
    }

    /// A thread goes on, for the first time or after others ran: what was dismissed because of another is looked at again. No
    /// thread is in code that is replaced, unless something outside the schedule stopped it there.
    pub fn resumed(&mut self, thread: ThreadId, region: &RegionMap) {
        let outside = region.report().partly_controlled.load(Ordering::Relaxed) != 0;
        // SAFETY: the token is here, as for every call of this type.
        let safe = !outside && unsafe { P::is_alone() };
        if self.dismissed && self.learning && safe && !self.served.contains(&thread) {
            self.served.push(thread);
            self.dismissed = false;
            P::forget_hits();
            P::turn(Attention::All, true, true);
        }
    }

    /// Whether an access is of no interest at all: its site lay in wait for somebody to come by, in a run that is not looked at.
    pub(crate) fn passes(&mut self, access: &Access, region: &RegionMap) -> bool {
        let lies_in_wait = !self.looking && self.chosen.is_some() && !self.delaying;
        let Some(site) = access.site.filter(|_| lies_in_wait) else { return false };
        let passes = P::comes_by(site);
        if passes {
            region.report().reached.fetch_add(1, Ordering::Relaxed);
        }
        passes
    }

    /// Whether a plain access of a thread is worth a step: at this place, and to this kind of memory.
    pub(crate) fn is_chosen(&mut self, code: usize, address: usize, thread: ThreadId) -> bool {
        let Some(chosen) = &self.chosen else { return true };
        if !chosen.contains_key(&code) {
            return false;
        }
        let Watch { kinds, modules, objects, .. } = self;
        let Some(site) = modules.site(code, P::modules).filter(|_| !kinds.is_empty()) else { return true };
        let kind = objects.kind(site, address, thread.0, || modules.known(address));
        kinds.contains_key(&(kind.0 as usize))
    }

    /// Whether accesses of code to some memory are worth a step, whatever that is.
    pub(crate) fn is_place(&self, code: usize) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.contains_key(&code))
    }

    /// Whether code was seen to free what others use, so that it is worth a step where it is none by itself.
    pub(crate) fn is_seen_to_free(&mut self, code: usize, address: usize, thread: ThreadId) -> bool {
        self.chosen.is_some() && self.is_chosen(code, address, thread)
    }

    /// Counts a step of a place that is worth steps; false when it had its share.
    pub(crate) fn has_steps_left(&mut self, code: usize, site: Option<u32>, region: &RegionMap) -> bool {
        let Some(steps) = self.chosen.as_mut().and_then(|chosen| chosen.get_mut(&code)) else { return true };
        *steps += 1;
        if *steps == MOST_STEPS {
            let place = self.modules.site(code, P::modules).unwrap_or(Site(0));
            // What is promised is about runs without the steps at what is handed over.
            if !self.handed {
                region.report().add_limited(place.0);
            }
            if !self.delaying {
                self.in_place = false;
                site.into_iter().for_each(P::dismiss);
            }
        }
        *steps < MOST_STEPS
    }

    /// A thread reads or writes; where it waits for what it reads, that is told of. `own`: it is in the thread's own frames.
    pub(crate) fn note_round(&mut self, thread: ThreadId, access: &Access, own: bool, region: &RegionMap) {
        if access.kind != EventKind::PlainRead {
            if !own {
                self.rounds.writes(thread);
            }
        } else if let Some(before) = self.rounds.reads(thread, access.code, access.address) {
            self.waits_at(before, region);
            self.waits_at(access.code, region);
        }
    }

    /// Code waits for another thread to change what it reads: so whoever changes that hands over.
    pub(crate) fn waits_at(&mut self, code: usize, region: &RegionMap) {
        if self.waiting.insert(code, ()).is_some() {
            return;
        }
        self.races.deliberate.insert(code, ());
        if self.level == Level::Auto
            && let Some(site) = self.modules.site(code, P::modules)
        {
            // What was told before was learned without this, and is to be told again.
            self.told.clear();
            region.add_conflicting(site.as_wait());
        }
    }

    /// A thread gives way to others: it yields, or sleeps.
    pub fn gives_way(&mut self, thread: Who) {
        if self.learning {
            self.rounds.gives_way(thread.id);
        }
    }

    /// Learns from an access of a thread or of what interrupts it: see [`Who::actor`].
    pub(crate) fn learn(&mut self, thread: ThreadId, access: &Access, atomic: bool, region: &RegionMap) {
        let (reads, writes) = match access.kind {
            EventKind::PlainRead | EventKind::AtomicLoad => (true, false),
            EventKind::PlainWrite | EventKind::AtomicStore => (false, true),
            _ => (true, true),
        };
        let Watch { sharing, suspects, modules, order, forced, objects, told, copies, .. } = self;
        let mut learned = |settled, code, actor: ThreadId, address| {
            tell::<P>(modules, objects, (told, copies), region, (settled, code, actor, address));
        };
        let whole = if self.level == Level::Auto {
            let Access { bytes, code, .. } = *access;
            let address = self.files.place(access.address);
            let waits = self.waiting.contains_key(&code);
            suspects.note(
                Orders { seen: order, forced },
                Touch { thread, code, address, bytes, reads, writes, atomic, waits },
                learned,
            )
        } else {
            let learned = |code, actor, address| learned(Settled::Not, code, actor, address);
            let place = self.files.place(access.address);
            sharing.note(thread, access.code, (place, access.bytes), writes, learned)
        };
        if !whole {
            region.report().overlooked.store(1, Ordering::Relaxed);
        }
    }

    /// Learns from a free of a thread: what conflicts with it, and that code at `code` is worth a step, if that is given.
    pub(crate) fn learn_free(
        &mut self,
        who: Who,
        block: (usize, usize),
        code: Option<usize>,
        region: &RegionMap,
    ) {
        let Watch { sharing, suspects, modules, order, forced, objects, files, told, copies, .. } = self;
        let block = (files.place(block.0), block.1);
        let mut learned = |settled, code, actor: ThreadId, address| {
            tell::<P>(modules, objects, (told, copies), region, (settled, code, actor, address));
        };
        if self.level == Level::Auto {
            suspects.free(Orders { seen: order, forced }, who.actor, block, code, learned);
        } else {
            let learned = |code, actor, address| learned(Settled::Not, code, actor, address);
            sharing.free(who.actor, block, code, learned);
        }
    }

    /// The length of a block that was given to the program.
    pub fn length_of(&self, start: usize) -> Option<usize> {
        self.objects.length(start)
    }

    /// What comes before what, for whoever looks ahead to other schedules.
    pub fn order_ahead(&mut self) -> &mut Order {
        &mut self.order
    }

    /// What comes before what in this schedule.
    pub fn order_now(&mut self) -> &mut Order {
        &mut self.races.order
    }

    /// Whether accesses that are steps changed some memory since this was last asked.
    pub fn has_changed_memory(&mut self) -> bool {
        self.found.has_changed()
    }

    /// Tells all orders of what a thread does, by its name in each.
    fn follow(&mut self, mut what: impl FnMut(&mut Order, fn(Who) -> ThreadId)) {
        what(&mut self.forced, |who| who.actor);
        self.follow_chance(what);
    }

    /// The same of what may go to another thread in another run: no run has to have it.
    fn follow_chance(&mut self, mut what: impl FnMut(&mut Order, fn(Who) -> ThreadId)) {
        what(&mut self.order, |who| who.actor);
        what(&mut self.races.order, |who| who.id);
    }

    /// A thread created another.
    pub fn spawned(&mut self, me: Who, child: Who) {
        self.follow(|order, name| order.spawned(name(me), name(child)));
    }

    /// A thread saw another end.
    pub fn joined(&mut self, me: Who, ended: Who) {
        self.follow(|order, name| order.joined(name(me), name(ended)));
        self.order.include(me.actor, Who::interrupted(ended.id).actor);
        self.forced.include(me.actor, Who::interrupted(ended.id).actor);
    }

    /// A thread saw that another has ended, which somebody had seen before.
    pub fn includes(&mut self, me: Who, ended: Who) {
        self.follow(|order, name| order.include(name(me), name(ended)));
    }

    /// A thread has ended and nobody will join it, or somebody did.
    pub fn ended(&mut self, thread: Who) {
        self.follow(|order, name| order.ended(name(thread)));
    }

    /// A thread holds a lock.
    pub fn locked(&mut self, me: Who, lock: usize, way: Way) {
        self.follow(|order, name| order.locked(name(me), lock, way));
    }

    /// A thread gave a lock back.
    pub fn unlocked(&mut self, me: Who, lock: usize) {
        self.follow(|order, name| order.unlocked(name(me), lock));
    }

    /// What a thread did so far is for those who take over from the object.
    pub fn hands_over(&mut self, me: Who, object: usize) {
        self.follow(|order, name| order.hand_over(name(me), object));
    }

    /// A thread goes on after those who handed over to the object.
    pub fn takes_over(&mut self, me: Who, object: usize) {
        self.follow(|order, name| order.take_over(name(me), object));
    }

    /// What a thread did so far is for one of those who take from the object: which, may be another one in the next run.
    pub fn gives(&mut self, me: Who, object: usize) {
        self.follow_chance(|order, name| order.hand_over(name(me), object));
    }

    /// A thread goes on after those who gave to the object.
    pub fn takes(&mut self, me: Who, object: usize) {
        self.follow_chance(|order, name| order.take_over(name(me), object));
    }

    /// Threads that are not seen took part: what they order is not known.
    pub fn lose_order(&mut self) {
        self.racing = false;
    }

    /// Code at `caller` was given memory, on behalf of a thread.
    pub fn allocated(&mut self, start: usize, bytes: usize, caller: usize, thread: ThreadId) {
        let site = if caller == 0 { None } else { self.modules.site(caller, P::modules) };
        self.objects.allocated(start, bytes, site, thread.0);
        if self.learning {
            self.suspects.allocated(start, bytes);
            self.sharing.allocated(start, bytes);
        }
        if P::ONE_HEAP && self.learning {
            self.suspects.forget(start, bytes);
            self.sharing.forget(start, bytes);
        }
        if self.racing {
            self.races.allocated(Block { start, bytes, thread: thread.0, code: caller });
        }
    }

    /// A part of a file is at these addresses from now on, which others may have at other addresses.
    pub fn mapped_file(&mut self, block: (usize, usize), file: (u64, u64), offset: u64) {
        let place = self.files.mapped(block, file, offset);
        if self.learning {
            self.suspects.allocated(place, block.1);
            self.sharing.allocated(place, block.1);
        }
    }

    /// Memory that was unmapped is mapped again: it is nobody's who had it before.
    pub fn mapped(&mut self, start: usize, bytes: usize) {
        self.files.unmapped((start, bytes));
        if self.learning {
            self.suspects.allocated(start, bytes);
            self.sharing.allocated(start, bytes);
        }
        if self.racing {
            self.races.given(start, bytes);
        }
    }

    /// Memory is given to a thread as its stack: what others did there has nothing to do with it.
    pub fn given_stack(&mut self, start: usize, bytes: usize) {
        if self.learning {
            self.suspects.allocated(start, bytes);
            self.sharing.allocated(start, bytes);
            self.suspects.forget(start, bytes);
            self.sharing.forget(start, bytes);
        }
        if self.racing {
            self.races.given(start, bytes);
        }
    }

    /// A block has another length now.
    pub fn resized(&mut self, start: usize, bytes: usize) {
        if P::ONE_HEAP
            && let Some(more) = self.objects.growth(start, bytes)
        {
            self.suspects.forget(start + bytes - more, more);
            self.sharing.forget(start + bytes - more, more);
            self.races.given(start + bytes - more, more);
        }
        self.objects.resized(start, bytes);
        if self.racing {
            self.races.resized(start, bytes);
        }
    }
}

/// Tells, once, of code that conflicts with others: its place, and the kind of memory that `actor` accesses there.
fn tell<P: Process>(
    modules: &mut Modules,
    objects: &Objects,
    (told, copies): (&mut ByAddress<usize, ()>, &ByAddress<usize, ()>),
    region: &RegionMap,
    (settled, code, actor, address): (Settled, usize, ThreadId, usize),
) {
    let Some(site) = modules.site(code, P::modules) else { return };
    let kind = objects.kind(site, address, Who::thread_of(actor), || modules.known(address));
    let site = if copies.contains_key(&code) { site.as_copy() } else { site };
    for site in [site, kind] {
        let site = if settled == Settled::ByHandOver { site.as_handed() } else { site };
        if told.insert(site.0 as usize, ()).is_none() {
            region.add_conflicting(site);
        }
    }
}
