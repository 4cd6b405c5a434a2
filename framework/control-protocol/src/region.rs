//! The shared region: one piece of memory, mapped by driver and program.
//!
//! The layout is `repr(C)` and versioned; large parts are sparse, so only what a run writes takes memory.

use std::sync::atomic::Ordering;

use crate::account::{Account, Statement};
use crate::batch::{Batch, Told};
use crate::encoding::Encoded;
use crate::in_process::Earlier;
use crate::instrumentation::{Instrumentation, SITES, Site};
use crate::race::{Pair, RACES};
use crate::report::{Ending, Report};
use crate::settings::Settings;
use crate::stretch::{Note, Stretch};
use crate::sys::{self, Memory};

/// The code of a run that is guided by orders of events, in place of forced switches.
const ORDERED: u32 = 2;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"waylayCR");
/// Version of the layout.
pub const VERSION: u32 = 16;
/// Bytes for the parameters of a run, as JSON.
pub const PARAMETERS: usize = 1 << 20;
/// Bytes for what a run tells about itself.
pub const ACCOUNT: usize = 1 << 18;
/// Entries of a schedule, recorded or to be followed.
pub const STRETCHES: usize = sys::STRETCHES;
/// Sentences of the conversation with the strategy that are kept.
pub const NOTES: usize = sys::NOTES;

/// Why a region could not be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The kernel refused.
    #[error("cannot {what} the control region: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// The memory is not a region of this version.
    #[error(
        "descriptor {0} holds no control region of version {VERSION}: driver and library must be of one build"
    )]
    Foreign(i32),
    /// The parameters do not fit.
    #[error("run parameters of {0} bytes are too long: at most {PARAMETERS}")]
    TooLong(usize),
    /// The schedule does not fit.
    #[error("a schedule of {0} switches is too long to follow: at most {STRETCHES}")]
    TooManySwitches(usize),
}

/// The whole region, as it lies in memory.
#[repr(C)]
pub struct Region {
    pub(crate) magic: u64,
    pub(crate) version: u32,
    pub(crate) size: u32,
    /// From the driver.
    pub settings: Settings,
    /// From the driver, for the whole life of the process.
    instrumentation: Instrumentation,
    /// From the library.
    pub report: Report,
    parameters: [u8; PARAMETERS],
    handed: [u8; PARAMETERS],
    account: [u8; ACCOUNT],
    stretches: [Stretch; STRETCHES],
    replay: [Stretch; STRETCHES],
    notes: [Note; NOTES],
    chosen: [Site; SITES],
    conflicting: [Site; SITES],
    forgiven: [Pair; RACES],
    deliberate: [Site; SITES],
    batch: Batch,
}

/// A mapping of a region.
#[derive(Debug)]
pub struct RegionMap {
    pub(crate) at: *mut Region,
    memory: Memory,
    /// What was prepared, on the side that did.
    pub(crate) prepared: Option<Settings>,
}

// SAFETY: the mapping belongs to the process, not to a thread; shared access goes through atomics or is ordered by
// the messages that start and end a run.
unsafe impl Send for RegionMap {}

impl RegionMap {
    /// A new region. Its descriptor is inherited by processes that are started.
    pub fn create() -> Result<RegionMap, RegionError> {
        let memory = Memory::create(size_of::<Region>()).map_err(system("create"))?;
        let at = memory.at().cast::<Region>();
        // SAFETY: the mapping is writable, and a region of zeroes is valid.
        unsafe {
            (*at).magic = MAGIC;
            (*at).version = VERSION;
            (*at).size = size_of::<Region>() as u32;
            (*at).instrumentation = Instrumentation::default();
        }
        Ok(RegionMap { at, memory, prepared: None })
    }

    /// The region behind a descriptor that was inherited.
    pub fn open(descriptor: i32) -> Result<RegionMap, RegionError> {
        let memory = Memory::open(descriptor, size_of::<Region>()).map_err(system("open"))?;
        let memory = memory.ok_or(RegionError::Foreign(descriptor))?;
        let at = memory.at().cast::<Region>();
        // SAFETY: the mapping is as large as a region, and the first words are plain integers.
        let (magic, version) = unsafe { ((*at).magic, (*at).version) };
        if magic != MAGIC || version != VERSION {
            return Err(RegionError::Foreign(descriptor));
        }
        Ok(RegionMap { at, memory, prepared: None })
    }

    /// The descriptor to pass on, on the side that created the region.
    pub fn descriptor(&self) -> Option<i32> {
        self.memory.descriptor()
    }

    /// The level of what is asked of instrumentation, without the rest, which is long.
    pub fn level(&self) -> crate::Level {
        // SAFETY: inside the mapping; the driver writes it while no run goes on.
        unsafe { (*self.at).instrumentation.level() }
    }

    /// What is a step in the process that uses the region.
    pub fn instrumentation(&self) -> Instrumentation {
        // SAFETY: mapped for as long as `self` lives; written only before the process starts.
        unsafe { (&raw const (*self.at).instrumentation).read_volatile() }
    }

    /// Settles what is a step. Call before the process starts.
    pub fn set_instrumentation(&mut self, wanted: Instrumentation) {
        // SAFETY: no process uses the region yet.
        unsafe { (&raw mut (*self.at).instrumentation).write_volatile(wanted) };
    }

    /// Chooses the code sites that are steps in runs whose settings were made with `choose`; as many as fit.
    pub fn choose(&mut self, settings: &mut Settings, sites: &[Site]) {
        let count = sites.len().min(SITES);
        settings.chosen = count as u32 + 1;
        // SAFETY: no run is going on, so nobody else touches the region; the count was checked.
        unsafe {
            let to = (&raw mut (*self.at).chosen).cast::<Site>();
            to.copy_from_nonoverlapping(sites.as_ptr(), count);
        }
    }

    /// The sites chosen; none when all are steps.
    pub fn chosen(&self) -> Option<&[Site]> {
        let count = (self.settings().chosen as usize).checked_sub(1)?.min(SITES);
        // SAFETY: inside the mapping; constant during a run.
        Some(unsafe { core::slice::from_raw_parts((&raw const (*self.at).chosen).cast::<Site>(), count) })
    }

    /// Has runs that are repeated in the process learn which sites are steps: they begin with the first so many of those
    /// chosen, and each adds what it shows.
    pub fn learn(&mut self, settings: &mut Settings, first: usize) {
        settings.learn = first.min(SITES) as u32 + 1;
    }

    /// With how many of the chosen sites runs begin that learn; none when they do not.
    pub fn learns_from(&self) -> Option<usize> {
        (self.settings().learn as usize).checked_sub(1)
    }

    /// Chooses the sites of the next run, and whether it is looked at. For the library, between runs that it repeats.
    pub fn choose_again(&self, sites: &[Site], looked_at: bool) {
        let count = sites.len().min(SITES);
        // SAFETY: inside the mapping; no run goes on, and of both sides only the library writes meanwhile. The driver may read:
        // the count is written last.
        unsafe {
            let to = (&raw mut (*self.at).chosen).cast::<Site>();
            to.copy_from_nonoverlapping(sites.as_ptr(), count);
            (&raw mut (*self.at).settings.chosen).write_volatile(count as u32 + 1);
        }
        self.look_at(looked_at);
    }

    /// Adds a site to those chosen, as far as there is room. For the library, between runs that it repeats.
    pub fn choose_also(&self, site: Site) {
        let count = self.chosen().map_or(0, <[Site]>::len);
        if count < SITES {
            // SAFETY: as in `choose_again`.
            unsafe {
                (&raw mut (*self.at).chosen).cast::<Site>().add(count).write(site);
                (&raw mut (*self.at).settings.chosen).write_volatile(count as u32 + 2);
            }
        }
    }

    /// Says whether the next run is looked at. For the library, between runs that it repeats.
    pub fn look_at(&self, looked_at: bool) {
        self.make(looked_at, false);
    }

    /// The same, and whether accesses to what is handed over are steps in it.
    pub fn make(&self, looked_at: bool, handed: bool) {
        let mut settings = self.settings();
        settings.set_profile(looked_at, handed);
        // SAFETY: as in `choose_again`.
        unsafe { (&raw mut (*self.at).settings.profile).write_volatile(settings.profile) };
    }

    /// Names races that do not end runs whose settings were made with this call, and sites whose plain accesses are atomic
    /// ones in a form that does not show it; as many as fit.
    pub fn forgive(&mut self, settings: &mut Settings, races: &[Pair], deliberate: &[Site]) {
        let (pairs, sites) = (races.len().min(RACES), deliberate.len().min(SITES));
        (settings.forgiven, settings.deliberate) = (pairs as u32, sites as u32);
        // SAFETY: no run is going on, so nobody else touches the region; the counts were checked.
        unsafe {
            (&raw mut (*self.at).forgiven).cast::<Pair>().copy_from_nonoverlapping(races.as_ptr(), pairs);
            (&raw mut (*self.at).deliberate)
                .cast::<Site>()
                .copy_from_nonoverlapping(deliberate.as_ptr(), sites);
        }
    }

    /// What was named by [`forgive`](RegionMap::forgive).
    pub fn forgiven(&self) -> (&[Pair], &[Site]) {
        let settings = self.settings();
        let (pairs, sites) =
            ((settings.forgiven as usize).min(RACES), (settings.deliberate as usize).min(SITES));
        // SAFETY: inside the mapping; constant during a run.
        unsafe {
            (
                core::slice::from_raw_parts((&raw const (*self.at).forgiven).cast::<Pair>(), pairs),
                core::slice::from_raw_parts((&raw const (*self.at).deliberate).cast::<Site>(), sites),
            )
        }
    }

    /// The sites that the last run found to access shared memory.
    pub fn conflicting(&self) -> &[Site] {
        let count = (self.report().conflicting.load(Ordering::Acquire) as usize).min(SITES);
        // SAFETY: inside the mapping; what lies below the count is written before the count is.
        unsafe { core::slice::from_raw_parts((&raw const (*self.at).conflicting).cast::<Site>(), count) }
    }

    /// Adds a site that accesses shared memory, as far as there is room.
    pub fn add_conflicting(&self, site: Site) {
        let count = &self.report().conflicting;
        let place = count.load(Ordering::Relaxed) as usize;
        if place < SITES {
            // SAFETY: inside the array; only the library writes there.
            unsafe { (&raw mut (*self.at).conflicting).cast::<Site>().add(place).write(site) };
        }
        count.store(place as u32 + 1, Ordering::Release);
    }

    /// The settings of the next run.
    pub fn settings(&self) -> Settings {
        // SAFETY: mapped for as long as `self` lives; written only between runs.
        unsafe { (&raw const (*self.at).settings).read_volatile() }
    }

    /// Sets what the next run is to do, and clears what the last one reported.
    pub fn prepare(&mut self, mut settings: Settings, parameters: &str) -> Result<(), RegionError> {
        if parameters.len() > PARAMETERS {
            return Err(RegionError::TooLong(parameters.len()));
        }
        settings.parameters = parameters.len() as u32;
        // SAFETY: no run is going on, so nobody else touches the region; the length was checked.
        unsafe {
            let to = (&raw mut (*self.at).parameters).cast::<u8>();
            to.copy_from_nonoverlapping(parameters.as_ptr(), parameters.len());
            (&raw mut (*self.at).settings).write_volatile(settings);
        }
        self.prepared = Some(settings);
        let report = self.report();
        for word in [
            &report.steps,
            &report.reach,
            &report.switches,
            &report.stretches,
            &report.virtual_ns,
            &report.diverged,
            &report.notes,
            &report.accesses,
            &report.moved,
            &report.moved_count,
        ] {
            word.store(0, Ordering::Relaxed);
        }
        for word in [
            &report.ending,
            &report.threads,
            &report.limited,
            &report.reached,
            &report.overlooked,
            &report.races_over,
            &report.held,
            &report.cut,
            &report.partly_controlled,
            &report.switching,
            &report.account,
            &report.excursions,
            &report.handed,
            &report.tally.threads,
            &report.tally.left,
            &report.conflicting,
            &report.patched,
            &report.refused,
        ] {
            word.store(0, Ordering::Relaxed);
        }
        report
            .limited_sites
            .iter()
            .chain(&report.overlooked_sites)
            .chain(&report.refused_sites)
            .for_each(|word| word.store(0, Ordering::Relaxed));
        report.delayed.words().for_each(|word| word.store(0, Ordering::Relaxed));
        report.race.words().for_each(|word| word.store(0, Ordering::Relaxed));
        report.tally.words().for_each(|word| word.store(0, Ordering::Relaxed));
        Ok(())
    }

    /// Sets what the next run is to do: follow this schedule.
    pub fn prepare_replay(
        &mut self,
        mut settings: Settings,
        schedule: &[Stretch],
    ) -> Result<(), RegionError> {
        if schedule.len() > STRETCHES {
            return Err(RegionError::TooManySwitches(schedule.len()));
        }
        settings.replay = schedule.len() as u64;
        settings.guided = 0;
        self.follow(settings, schedule)
    }

    /// Sets what the next run is to do: these switches, each a thread that runs, the one it takes over from, and how many
    /// steps that one has made; and no other preemption.
    pub fn prepare_guided(
        &mut self,
        mut settings: Settings,
        switches: &[(u32, u32, u64)],
    ) -> Result<(), RegionError> {
        if switches.len() > STRETCHES {
            return Err(RegionError::TooManySwitches(switches.len()));
        }
        settings.replay = switches.len() as u64;
        settings.guided = 1;
        let stretch = |&(thread, first, steps): &(u32, u32, u64)| Stretch { thread, first, steps };
        self.follow(settings, &switches.iter().map(stretch).collect::<Vec<_>>())
    }

    /// Sets what the next run is to do: what these pairs of words say to who makes its strategy.
    pub fn prepare_ordered(&mut self, mut settings: Settings, words: &[[u64; 2]]) -> Result<(), RegionError> {
        if words.len() > STRETCHES {
            return Err(RegionError::TooManySwitches(words.len()));
        }
        settings.replay = words.len() as u64;
        settings.guided = ORDERED;
        let stretch = |&[one, other]: &[u64; 2]| Stretch {
            thread: one as u32,
            first: (one >> 32) as u32,
            steps: other,
        };
        self.follow(settings, &words.iter().map(stretch).collect::<Vec<_>>())
    }

    /// The words that were given to [`RegionMap::prepare_ordered`], if the run is made by some.
    pub fn ordered(&self) -> Option<Vec<[u64; 2]>> {
        let words =
            |stretch: &Stretch| [u64::from(stretch.thread) | u64::from(stretch.first) << 32, stretch.steps];
        (self.settings().guided == ORDERED).then(|| self.followed().iter().map(words).collect())
    }

    /// Has these runs made before one that follows a schedule, if its settings are made with this call: by the strategy
    /// that these parameters name, from them on. What does not fit is not recalled at all.
    pub fn recall(&mut self, settings: &mut Settings, earlier: Earlier, parameters: &str) {
        if parameters.is_empty() || parameters.len() > PARAMETERS || earlier.count() == 0 {
            return;
        }
        (settings.past, settings.earlier) = (parameters.len() as u32, earlier);
        // SAFETY: no run is going on, so nobody else touches the region; the length was checked. A run that follows a schedule
        // has no parameters of its own.
        unsafe {
            let to = (&raw mut (*self.at).parameters).cast::<u8>();
            to.copy_from_nonoverlapping(parameters.as_ptr(), parameters.len());
        }
    }

    /// What was named by [`recall`](RegionMap::recall), with the parameters.
    pub fn recalled(&self) -> Option<(Earlier, &str)> {
        let settings = self.settings();
        (settings.past != 0).then(|| (settings.earlier, self.text_of_parameters(settings.past)))
    }

    fn follow(&mut self, settings: Settings, schedule: &[Stretch]) -> Result<(), RegionError> {
        // SAFETY: no run is going on, so nobody else touches the region; the length was checked.
        unsafe {
            let to = (&raw mut (*self.at).replay).cast::<Stretch>();
            to.copy_from_nonoverlapping(schedule.as_ptr(), schedule.len());
        }
        self.prepare(settings, "")
    }

    /// The switches to make, if the run is guided by some: as they were given to [`RegionMap::prepare_guided`]. Of a run whose
    /// events are [ordered](RegionMap::ordered) this says only that it is guided, too.
    pub fn guidance(&self) -> Option<impl Iterator<Item = (u32, u32, u64)> + '_> {
        let turn = |stretch: &Stretch| (stretch.thread, stretch.first, stretch.steps);
        (self.settings().guided != 0).then(|| self.followed().iter().map(turn))
    }

    /// The schedule to follow, if there is one.
    pub fn replay(&self) -> Option<&[Stretch]> {
        Some(self.followed()).filter(|all| self.settings().guided == 0 && !all.is_empty())
    }

    fn followed(&self) -> &[Stretch] {
        let len = (self.settings().replay as usize).min(STRETCHES);
        // SAFETY: inside the mapping; constant during a run.
        unsafe { core::slice::from_raw_parts((&raw const (*self.at).replay).cast::<Stretch>(), len) }
    }

    /// The parameters of the run, as written by the driver.
    pub fn parameters(&self) -> &str {
        self.text_of_parameters(self.settings().parameters)
    }

    fn text_of_parameters(&self, len: u32) -> &str {
        let len = (len as usize).min(PARAMETERS);
        // SAFETY: inside the mapping; constant during a run.
        let bytes =
            unsafe { core::slice::from_raw_parts((&raw const (*self.at).parameters).cast::<u8>(), len) };
        core::str::from_utf8(bytes).unwrap_or("")
    }

    /// What the library reports.
    pub fn report(&self) -> &Report {
        // SAFETY: mapped for as long as `self` lives; all fields are atomics.
        unsafe { &(*self.at).report }
    }

    /// How the run ended.
    pub fn ending(&self) -> Ending {
        Ending::from_code(self.report().ending.load(Ordering::Acquire)).unwrap_or(Ending::Unfinished)
    }

    /// What the run told about itself so far.
    pub fn account(&self) -> Account {
        let len = (self.report().account.load(Ordering::Acquire) as usize).min(ACCOUNT);
        // SAFETY: inside the mapping; what lies below `len` is written before `len` is.
        let bytes = unsafe { core::slice::from_raw_parts((&raw const (*self.at).account).cast::<u8>(), len) };
        Account::read(bytes)
    }

    /// The same in words, for people.
    pub fn text(&self) -> String {
        self.account().text()
    }

    /// Adds a statement, if there is room.
    pub fn tell(&self, statement: &Statement<'_>) {
        let encoded = Encoded::of(statement);
        let (report, bytes) = (self.report(), encoded.bytes());
        let used = (report.account.load(Ordering::Relaxed) as usize).min(ACCOUNT);
        if bytes.len() > ACCOUNT - used {
            return;
        }
        // SAFETY: the range lies inside the account, and only the library writes there.
        unsafe {
            let to = (&raw mut (*self.at).account).cast::<u8>().add(used);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        report.account.store((used + bytes.len()) as u32, Ordering::Release);
    }

    /// Takes back what the run told about itself.
    pub fn take_back(&self) {
        self.report().account.store(0, Ordering::Release);
    }

    /// What the process handed over to the next one; empty when it did not.
    pub fn handed(&self) -> String {
        let len = (self.report().handed.load(Ordering::Acquire) as usize).min(PARAMETERS);
        // SAFETY: inside the mapping; what lies below `len` is written before `len` is.
        let bytes = unsafe { core::slice::from_raw_parts((&raw const (*self.at).handed).cast::<u8>(), len) };
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Leaves a text for the process that goes on after this one; what does not fit is not left at all.
    pub fn hand_over(&self, text: &str) {
        if text.len() <= PARAMETERS {
            // SAFETY: the range lies inside the area, and only the library writes there.
            unsafe {
                let to = (&raw mut (*self.at).handed).cast::<u8>();
                to.copy_from_nonoverlapping(text.as_ptr(), text.len());
            }
            self.report().handed.store(text.len() as u32, Ordering::Release);
        }
    }

    /// The recorded schedule. After a run that died, the last stretch is what was counted until then.
    pub fn schedule(&self) -> Vec<Stretch> {
        let len = (self.report().stretches.load(Ordering::Acquire) as usize).min(STRETCHES);
        // SAFETY: inside the mapping; a run that could write there is over.
        unsafe { core::slice::from_raw_parts((&raw const (*self.at).stretches).cast::<Stretch>(), len) }
            .to_vec()
    }

    /// The conversation, if it was kept and fitted.
    pub fn notes(&self) -> Option<&[Note]> {
        let len = self.report().notes.load(Ordering::Acquire) as usize;
        if len > NOTES {
            return None;
        }
        // SAFETY: inside the mapping; a run that could write there is over.
        Some(unsafe { core::slice::from_raw_parts((&raw const (*self.at).notes).cast::<Note>(), len) })
    }

    /// Who writes the conversation down.
    ///
    /// # Safety
    /// The region stays mapped for as long as the writer is used, and there is one writer.
    pub unsafe fn note_writer(&self) -> NoteWriter {
        NoteWriter { region: self.at }
    }

    /// How many steps the run that may still go on has taken by itself so far: a loop without a step is interrupted again and
    /// again, and what it does then is not its own.
    pub fn own_steps_so_far(&self) -> u64 {
        self.steps_so_far().saturating_sub(self.report().forced.load(Ordering::Acquire))
    }

    /// Whether the run has gone on by itself since it had taken so many own steps. What is too long to be recorded has come far.
    pub fn has_gone_on_since(&self, own_steps: u64) -> bool {
        let full = self.report().stretches.load(Ordering::Acquire) as usize >= STRETCHES;
        full || self.own_steps_so_far() > own_steps
    }

    /// How many steps the run that may still go on has recorded so far.
    fn steps_so_far(&self) -> u64 {
        let stretches = (self.report().stretches.load(Ordering::Acquire) as usize).min(STRETCHES);
        // SAFETY: inside the mapping. The run may write at the same time: each number is read as one word, whose value of this
        // or the last moment is as good.
        unsafe {
            let first = (&raw const (*self.at).stretches).cast::<Stretch>();
            (0..stretches).map(|place| (&raw const (*first.add(place)).steps).read_volatile()).sum()
        }
    }

    /// What the last run said of itself.
    pub fn told(&self) -> Told<'_> {
        let report = self.report();
        let stretches = (report.stretches.load(Ordering::Acquire) as usize).min(STRETCHES);
        let account = (report.account.load(Ordering::Acquire) as usize).min(ACCOUNT);
        let begun = report.tally.runs.load(Ordering::Relaxed) + report.tally.repeats.load(Ordering::Relaxed);
        // SAFETY: inside the mapping; a run that could write there is over.
        unsafe {
            Told {
                report,
                reached: self.recalled().is_none_or(|(earlier, _)| begun > earlier.count()),
                schedule: core::slice::from_raw_parts(
                    (&raw const (*self.at).stretches).cast::<Stretch>(),
                    stretches,
                ),
                notes: self.notes(),
                conflicting: self.conflicting(),
                account: core::slice::from_raw_parts((&raw const (*self.at).account).cast::<u8>(), account),
            }
        }
    }

    /// Runs that are ordered many at a time.
    pub fn batch(&self) -> &Batch {
        // SAFETY: mapped for as long as `self` lives; what both sides write are atomics, and what lies behind their
        // counts is written before they are.
        unsafe { &(*self.at).batch }
    }

    /// The same, for the side that orders. Call between batches.
    pub fn batch_mut(&mut self) -> &mut Batch {
        // SAFETY: mapped for as long as `self` lives; between batches the library does not look.
        unsafe { &mut (*self.at).batch }
    }

    /// Where the library writes the schedule, and how many entries fit.
    pub fn schedule_memory(&self) -> (*mut Stretch, usize) {
        // SAFETY: only forms an address inside the mapping.
        (unsafe { (&raw mut (*self.at).stretches).cast::<Stretch>() }, STRETCHES)
    }
}

/// Writes the conversation between scheduler and strategy into the region.
#[derive(Debug)]
pub struct NoteWriter {
    region: *mut Region,
}

// SAFETY: a pointer to shared memory that only the holder of the writer writes to.
unsafe impl Send for NoteWriter {}

impl NoteWriter {
    /// Adds a sentence, as far as there is room.
    pub fn write(&mut self, note: Note) {
        // SAFETY: mapped, by the promise of `note_writer`; the place lies inside the array, and nobody else writes there.
        unsafe {
            let count = &(*self.region).report.notes;
            let place = count.load(Ordering::Relaxed);
            if (place as usize) < NOTES {
                (&raw mut (*self.region).notes).cast::<Note>().add(place as usize).write(note);
            }
            count.store(place + 1, Ordering::Release);
        }
    }
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> RegionError {
    move |source| RegionError::System { what, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Switching;

    #[test]
    fn both_sides_see_one_region() {
        let mut driver = RegionMap::create().unwrap();
        let library = RegionMap::open(driver.descriptor().unwrap()).unwrap();
        driver.prepare(Settings::new(Switching::Baton, 7, 3), "{\"a\":1}").unwrap();
        assert_eq!(library.settings().run, 3);
        assert_eq!(library.parameters(), "{\"a\":1}");
        library.tell(&Statement::Deadlock(2));
        library.tell(&Statement::Refusal("two".into()));
        assert_eq!(driver.account().deadlock(), Some(2));
        assert_eq!(driver.text(), "deadlock: 2 threads, none can run\ntwo");
        library.hand_over("next");
        library.report().tally.aimed[2].store(5, Ordering::Relaxed);
        assert_eq!(driver.handed(), "next");
        library.hand_over(&"x".repeat(PARAMETERS + 1));
        assert_eq!(driver.handed(), "next");
        driver.prepare(Settings::new(Switching::Carrier, 7, 4), "").unwrap();
        assert_eq!(driver.text(), "");
        assert_eq!(
            (driver.handed().as_str(), driver.report().tally.aimed[2].load(Ordering::Relaxed)),
            ("", 0)
        );
        assert_eq!(library.parameters(), "");
    }

    #[test]
    fn sites_go_both_ways() {
        let mut driver = RegionMap::create().unwrap();
        let library = RegionMap::open(driver.descriptor().unwrap()).unwrap();
        assert_eq!(library.instrumentation().level(), crate::Level::Atomics);
        driver.set_instrumentation(Instrumentation::new(crate::Level::Memory, true));
        assert_eq!(library.instrumentation().level(), crate::Level::Memory);
        let mut settings = Settings::new(Switching::Baton, 7, 3);
        driver.prepare(settings, "").unwrap();
        assert_eq!(library.chosen(), None);
        driver.choose(&mut settings, &[Site(3), Site(5)]);
        driver.prepare(settings, "").unwrap();
        assert_eq!(library.chosen(), Some(&[Site(3), Site(5)][..]));
        library.add_conflicting(Site(9));
        assert_eq!(driver.conflicting(), [Site(9)]);
        driver.prepare(settings, "").unwrap();
        assert!(driver.conflicting().is_empty());
        assert_eq!(library.learns_from(), None);
    }

    #[test]
    fn a_process_that_repeats_runs_chooses_sites_itself() {
        let mut driver = RegionMap::create().unwrap();
        let library = RegionMap::open(driver.descriptor().unwrap()).unwrap();
        let mut settings = Settings::new(Switching::Carrier, 7, 0);
        driver.choose(&mut settings, &[Site(3), Site(5)]);
        driver.learn(&mut settings, 1);
        driver.prepare(settings, "").unwrap();
        assert_eq!(library.learns_from(), Some(1));
        library.choose_again(&[Site(3)], true);
        assert_eq!((driver.chosen(), driver.settings().profile), (Some(&[Site(3)][..]), 1));
        library.choose_also(Site(8));
        library.look_at(false);
        assert_eq!((driver.chosen(), driver.settings().profile), (Some(&[Site(3), Site(8)][..]), 0));
    }

    #[test]
    fn what_is_known_of_races_goes_in_and_what_is_found_comes_out() {
        let mut driver = RegionMap::create().unwrap();
        let library = RegionMap::open(driver.descriptor().unwrap()).unwrap();
        let mut settings = Settings::new(Switching::Baton, 7, 3);
        let pair = Pair::new(Site(9), Site(4));
        driver.forgive(&mut settings, &[pair], &[Site(5)]);
        driver.prepare(settings, "").unwrap();
        assert_eq!(library.forgiven(), (&[Pair::new(Site(4), Site(9))][..], &[Site(5)][..]));
        library.report().race.address.store(64, Ordering::Relaxed);
        library.report().race.second.locks[1].store(8, Ordering::Relaxed);
        assert_eq!(driver.report().race.address.load(Ordering::Relaxed), 64);
        driver.prepare(Settings::new(Switching::Baton, 7, 4), "").unwrap();
        assert_eq!(driver.report().race.second.locks[1].load(Ordering::Relaxed), 0);
        assert_eq!(library.forgiven(), (&[][..], &[][..]));
    }

    #[test]
    fn earlier_runs_are_recalled_with_a_schedule_to_follow() {
        let mut driver = RegionMap::create().unwrap();
        let library = RegionMap::open(driver.descriptor().unwrap()).unwrap();
        let mut settings = Settings::new(Switching::Baton, 7, 12);
        let earlier = Earlier { first: 4, repeats: 2, through: 5 };
        driver.recall(&mut settings, earlier, "{\"b\":2}");
        driver.prepare_replay(settings, &[Stretch { thread: 0, first: 1, steps: 9 }]).unwrap();
        assert_eq!(library.recalled(), Some((earlier, "{\"b\":2}")));
        assert_eq!((library.parameters(), library.replay().unwrap().len()), ("", 1));
        driver.prepare(Settings::new(Switching::Baton, 7, 13), "{}").unwrap();
        assert_eq!(library.recalled(), None);
    }

    #[test]
    fn anything_else_is_refused() {
        let other = Memory::create(1 << 16).unwrap();
        assert!(matches!(RegionMap::open(other.descriptor().unwrap()), Err(RegionError::Foreign(_))));
        let mut driver = RegionMap::create().unwrap();
        let long = "x".repeat(PARAMETERS + 1);
        let refused = driver.prepare(Settings::new(Switching::Free, 0, 0), &long);
        assert!(matches!(refused, Err(RegionError::TooLong(_))));
    }
}
