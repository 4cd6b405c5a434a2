//! The shared region: one piece of memory, mapped by driver and program.
//!
//! The layout is `repr(C)` and versioned; large parts are sparse, so only what a run writes takes memory.

mod following;
mod sites;
mod written;

use std::sync::atomic::Ordering;

use crate::account::{Account, Statement};
use crate::batch::Batch;
use crate::encoding::Encoded;
use crate::instrumentation::{Instrumentation, SITES, Site};
use crate::race::{Pair, RACES};
use crate::report::{Ending, Report};
use crate::settings::Settings;
use crate::shared::{copied, copied_report, copied_while};
use crate::stretch::{Note, Stretch};
use crate::sys::Memory;
use crate::told::Told;

pub use crate::sizes::{ACCOUNT, NOTES, PARAMETERS, STRETCHES};

use written::Written;

/// The code of a run that is guided by orders of events, in place of forced switches.
const ORDERED: u32 = 2;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"waylayCR");
/// Version of the layout.
pub const VERSION: u32 = 18;

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
    /// What else that side wrote.
    written: Box<Written>,
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
            (&raw mut (*at).magic).write_volatile(MAGIC);
            (&raw mut (*at).version).write_volatile(VERSION);
            (&raw mut (*at).size).write_volatile(size_of::<Region>() as u32);
            (&raw mut (*at).instrumentation).write_volatile(Instrumentation::default());
        }
        Ok(RegionMap { at, memory, prepared: None, written: Box::default() })
    }

    /// The region behind a descriptor that was inherited.
    pub fn open(descriptor: i32) -> Result<RegionMap, RegionError> {
        let memory = Memory::open(descriptor, size_of::<Region>()).map_err(system("open"))?;
        let memory = memory.ok_or(RegionError::Foreign(descriptor))?;
        let at = memory.at().cast::<Region>();
        // SAFETY: the mapping is as large as a region, and the first words are plain integers.
        let (magic, version) =
            unsafe { ((&raw const (*at).magic).read_volatile(), (&raw const (*at).version).read_volatile()) };
        if magic != MAGIC || version != VERSION {
            return Err(RegionError::Foreign(descriptor));
        }
        Ok(RegionMap { at, memory, prepared: None, written: Box::default() })
    }

    /// The descriptor to pass on, on the side that created the region.
    pub fn descriptor(&self) -> Option<i32> {
        self.memory.descriptor()
    }

    /// The level of what is asked of instrumentation, without the rest, which is long.
    pub fn level(&self) -> crate::Level {
        // SAFETY: mapped for as long as `self` lives; a number is valid whatever it is.
        let code = unsafe { (&raw const (*self.at).instrumentation.level).read_volatile() };
        crate::Level::from_code(code).unwrap_or_default()
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
        self.written.instrumentation = wanted;
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
            &report.calls_over,
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
            .chain(&report.loaded)
            .for_each(|word| word.store(0, Ordering::Relaxed));
        report.delayed.words().for_each(|word| word.store(0, Ordering::Relaxed));
        report.race.words().for_each(|word| word.store(0, Ordering::Relaxed));
        report.tally.words().for_each(|word| word.store(0, Ordering::Relaxed));
        Ok(())
    }

    /// The parameters of the run, as written by the driver. For the library: while a run goes on nobody writes there.
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

    /// What the library reports, as it is now.
    pub(crate) fn report_now(&self) -> Box<Report> {
        // SAFETY: mapped for as long as `self` lives.
        unsafe { copied_report(&raw const (*self.at).report) }
    }

    /// How the run ended.
    pub fn ending(&self) -> Ending {
        Ending::from_code(self.report().ending.load(Ordering::Acquire)).unwrap_or(Ending::Unfinished)
    }

    /// What the run told about itself so far.
    pub fn account(&self) -> Account {
        Account::read(&self.account_of(self.report()))
    }

    pub(crate) fn account_of(&self, report: &Report) -> Vec<u8> {
        let len = (report.account.load(Ordering::Acquire) as usize).min(ACCOUNT);
        // SAFETY: inside the mapping, which lives as long as `self`; what lies below `len` is written before `len` is.
        unsafe { copied((&raw const (*self.at).account).cast::<u8>(), len) }
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
        // SAFETY: inside the mapping, which lives as long as `self`; what lies below `len` is written before `len` is.
        let bytes = unsafe { copied((&raw const (*self.at).handed).cast::<u8>(), len) };
        String::from_utf8_lossy(&bytes).into_owned()
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

    /// The recorded schedule, as long as `goes_on` says so.
    pub(crate) fn schedule_of(&self, report: &Report, goes_on: impl FnMut(&Stretch) -> bool) -> Vec<Stretch> {
        let len = (report.stretches.load(Ordering::Acquire) as usize).min(STRETCHES);
        // SAFETY: inside the mapping, which lives as long as `self`.
        unsafe { copied_while((&raw const (*self.at).stretches).cast::<Stretch>(), len, goes_on) }
    }

    /// The conversation, if it was kept and fitted.
    pub(crate) fn notes_of(&self, report: &Report) -> Option<Vec<Note>> {
        let len = usize::try_from(report.notes.load(Ordering::Acquire)).ok()?;
        // SAFETY: inside the mapping, which lives as long as `self`.
        (len <= NOTES).then(|| unsafe { copied((&raw const (*self.at).notes).cast::<Note>(), len) })
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
            (0..stretches)
                .map(|place| (&raw const (*first.add(place)).steps).read_volatile())
                .fold(0, u64::saturating_add)
        }
    }

    /// What the last run said of itself, where it is: for the process that made the run, and in which nobody else writes. Who
    /// is told by another process takes a [copy](RegionMap::copied).
    pub fn told(&self) -> Told<'_> {
        let report = self.report();
        let stretches = (report.stretches.load(Ordering::Acquire) as usize).min(STRETCHES);
        let account = (report.account.load(Ordering::Acquire) as usize).min(ACCOUNT);
        let notes =
            usize::try_from(report.notes.load(Ordering::Acquire)).ok().filter(|&notes| notes <= NOTES);
        // SAFETY: inside the mapping; a run that could write there is over.
        unsafe {
            Told {
                report,
                reached: true,
                schedule: core::slice::from_raw_parts(
                    (&raw const (*self.at).stretches).cast::<Stretch>(),
                    stretches,
                ),
                notes: notes.map(|notes| {
                    core::slice::from_raw_parts((&raw const (*self.at).notes).cast::<Note>(), notes)
                }),
                conflicting: self.conflicting(),
                account: core::slice::from_raw_parts((&raw const (*self.at).account).cast::<u8>(), account),
            }
        }
    }

    /// Runs that are ordered many at a time.
    pub fn batch(&self) -> &Batch {
        // SAFETY: mapped for as long as `self` lives; all of it is atomics.
        unsafe { &(*self.at).batch }
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
mod tests;
