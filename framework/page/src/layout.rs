//! The structs of the page. All fields are atomics: either side may look at any moment, also at a frozen or dead host.
//!
//! Each word has one writer, named in its comment. Relaxed order suffices for all but the words that hand something
//! over (`command`, `doorbell`, a record's `state`), because everything else is only observed, never acted upon by the
//! other side without a second look.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::record::FailureRecord;

/// Marks a page as ours.
pub const MAGIC: u64 = u64::from_le_bytes(*b"waylay\0p");
/// Changes with any change of a struct in this module.
pub const VERSION: u32 = 5;

/// Most worker threads of one host.
pub const MAX_WORKERS: usize = 4096;
/// Most tests of one host.
pub const MAX_TESTS: usize = 1024;
/// How many failures can wait for the driver at a time; a further one waits in the host.
pub const RECORDS: usize = 64;
/// Places for the owners of threads that tests started. A place is found by the thread's number, and the last one to
/// come gets it: numbers of threads that live together are close, so they rarely meet.
pub const THREAD_PLACES: usize = 4096;

/// Declares an enum whose numbers are stored in the page; reading an unknown number gives the first variant.
macro_rules! stored {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $number:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum $name { $($(#[$vmeta])* $variant = $number),* }

        impl $name {
            /// Reads the stored number.
            pub fn load(from: &AtomicU32) -> $name {
                match from.load(Ordering::Acquire) {
                    $($number => $name::$variant,)*
                    _ => $name::FIRST,
                }
            }

            /// Whether the stored number is one of these.
            pub fn is_known(at: &AtomicU32) -> bool {
                [$($number),*].contains(&at.load(Ordering::Acquire))
            }

            /// Stores the number.
            pub fn store(self, to: &AtomicU32) {
                to.store(self as u32, Ordering::Release);
            }
        }
    };
}

stored! {
    /// What the driver wants of the host.
    Command {
        /// Go on.
        Run = 0,
        /// Cancel all tests and end them.
        Cancel = 1,
        /// Everything was looked at: exit.
        Leave = 2,
    }
}
impl Command {
    const FIRST: Command = Command::Run;
}

stored! {
    /// How far the host is.
    HostPhase {
        /// Not yet attached to the page.
        Born = 0,
        /// Loading plugins; `Header::loading` says which.
        Loading = 1,
        /// Plugins are loaded, `go` not yet seen; then creating and starting tests.
        Starting = 2,
        /// Workers run.
        Running = 3,
        /// All tests are being cancelled and ended.
        Cancelling = 4,
        /// Every test was ended; the driver looks what they left behind, then says [`Command::Leave`].
        Ended = 5,
        /// The host exits now.
        Left = 6,
    }
}
impl HostPhase {
    const FIRST: HostPhase = HostPhase::Born;
}

stored! {
    /// How far one test is.
    TestPhase {
        /// Not created yet.
        Absent = 0,
        /// In CreateInstance.
        Creating = 1,
        /// In OnTestStart.
        Starting = 2,
        /// Its workers run.
        Running = 3,
        /// In OnTestCancelled.
        Cancelling = 4,
        /// OnTestCancelled returned; workers finish their iterations.
        Draining = 5,
        /// In OnTestEnd.
        Ending = 6,
        /// In DestroyInstance.
        Destroying = 7,
        /// Over.
        Ended = 8,
        /// Could not be created or started; the host reported why.
        Refused = 9,
    }
}
impl TestPhase {
    const FIRST: TestPhase = TestPhase::Absent;
}

stored! {
    /// What a worker thread is doing.
    WorkerState {
        /// No thread, or not started yet.
        Idle = 0,
        /// Between iterations (for nanoseconds) or inside TestMain: `entered_at` says since when.
        Running = 1,
        /// Waits until the driver has looked at its failure.
        Held = 2,
        /// Done: cancelled or out of iterations.
        Done = 3,
        /// Done for good: the test said that there is nothing more to do.
        Finished = 4,
        /// A combiner's worker that waits for other workers of the combiner; never late.
        Waiting = 5,
    }
}
impl WorkerState {
    const FIRST: WorkerState = WorkerState::Idle;
}

/// The words that concern the whole host.
#[repr(C, align(128))]
pub struct Header {
    /// [`MAGIC`]; driver, before the host exists.
    pub magic: AtomicU64,
    /// [`VERSION`]; driver.
    pub version: AtomicU32,
    /// `size_of::<Layout>()`; driver.
    pub size: AtomicU32,
    /// A [`crate::clock::Source`]; driver.
    pub clock: AtomicU32,
    /// A [`Command`]; driver.
    pub command: AtomicU32,
    /// Not zero once the driver has seen the host before its first test; the host waits for it; driver.
    pub go: AtomicU32,
    /// Counts up, and is woken, when the driver should look before its next regular turn; host and randomizer.
    pub doorbell: AtomicU32,
    /// A [`HostPhase`]; host.
    pub phase: AtomicU32,
    /// While loading: index of the plugin being loaded; host.
    pub loading: AtomicU32,
    /// Not zero when this host hangs and is kept for a debugger: it then outlives the driver; driver.
    pub kept: AtomicU32,
    /// The randomizer lets all threads go and stays away while this is not zero; driver.
    pub quiesce: AtomicU32,
    /// Not zero when the randomizer is to end in order; driver.
    pub ending: AtomicU32,
    /// Not zero while the randomizer holds threads; randomizer.
    pub window_open: AtomicU32,
    /// Not zero while the randomizer stays away and all that it did before is in its log; randomizer.
    pub rested: AtomicU32,
    /// The host's own thread, which waits for commands: the randomizer leaves it alone; 0 when not known; host.
    pub own_thread: AtomicU32,
    /// Not zero while there is a randomizer that would open windows; randomizer.
    pub at_work: AtomicU32,
    /// Windows that the randomizer has opened so far; randomizer.
    pub windows: AtomicU64,
    /// Threads that it has seen to stand still, added over all windows; randomizer.
    pub suspensions: AtomicU64,
}

/// One test.
#[repr(C, align(128))]
pub struct TestSlot {
    /// A [`TestPhase`]; host.
    pub phase: AtomicU32,
    /// Thread that runs the phase (a kernel thread id); host.
    pub tid: AtomicU32,
    /// A [`Command`] for this test alone; driver.
    pub command: AtomicU32,
    /// Not zero while the thread that runs the phase waits for the driver to look at its failure; host.
    pub held: AtomicU32,
    /// When the phase began, in ticks; host.
    pub phase_at: AtomicU64,
    /// Failures reported by this test through `fail`; host.
    pub failures: AtomicU64,
    /// Contained in another test: number of its next iteration, counted over all hosts of the scenario; host.
    pub next_iteration: AtomicU64,
    /// Contained: iterations finished by this host process; host.
    pub runs: AtomicU64,
    /// Contained: iterations that failed; host.
    pub failed_runs: AtomicU64,
    /// Contained: ticks spent inside its TestMain by finished iterations; host.
    pub busy: AtomicU64,
    /// Contained: sum of the squares of those ticks, an `f64` as its bits; host.
    pub squares: AtomicU64,
    /// Contained: shortest finished iteration in ticks with all bits inverted, so that 0 means none; host.
    pub shortest_inverted: AtomicU64,
    /// Contained: longest finished iteration in ticks; host.
    pub longest: AtomicU64,
    /// Contained: the share of the time that its combiner means to give it, an `f64` as its bits; host.
    pub asked: AtomicU64,
}

/// Most shared objects of one worker that the page shows.
pub const OBJECTS_SHOWN: usize = 6;

/// The number of a shared object in the page: its kind (counted from 0) and its number within the kind (from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectNumber {
    /// The kind, in the order in which the host announced them.
    pub kind: u8,
    /// Which object of the kind.
    pub number: u32,
}

impl ObjectNumber {
    /// As it stands in the page. Numbers begin again after 16 million objects.
    pub fn to_word(self) -> u32 {
        u32::from(self.kind) << 24 | (self.number & 0xff_ffff).max(1)
    }

    /// The object of a word; 0 is none.
    pub fn from_word(word: u32) -> Option<ObjectNumber> {
        (word != 0).then_some(ObjectNumber { kind: (word >> 24) as u8, number: word & 0xff_ffff })
    }
}

/// One worker thread. 128 bytes, so that no two workers share a cache line or its prefetched neighbour.
#[repr(C, align(128))]
pub struct WorkerSlot {
    /// A [`WorkerState`]; host.
    pub state: AtomicU32,
    /// Index of the test that the worker runs; host.
    pub test: AtomicU32,
    /// Kernel thread id; host.
    pub tid: AtomicU32,
    /// A combiner's worker: index of the contained test that it runs, plus one; 0 when none; host.
    pub contained: AtomicU32,
    /// Number of the iteration that is running, counted over all hosts of the scenario; host.
    pub iteration: AtomicU64,
    /// When this iteration began, in ticks; with a contained test, when that one's iteration did; host.
    pub entered_at: AtomicU64,
    /// Iterations finished by this host process; host.
    pub finished: AtomicU64,
    /// Moves when the iteration says that it makes progress; host.
    pub progress: AtomicU64,
    /// Ticks spent inside TestMain by finished iterations; host.
    pub busy: AtomicU64,
    /// Shortest finished iteration in ticks, 0 when none; host.
    pub shortest: AtomicU64,
    /// Longest finished iteration in ticks; host.
    pub longest: AtomicU64,
    /// Number of the contained test's iteration; host.
    pub contained_iteration: AtomicU64,
    /// The contained test that ran here last, running or over, numbered as in `contained`; host.
    pub last_contained: AtomicU32,
    /// Zero; for later.
    pub reserved: AtomicU32,
    /// Shared objects that the iteration was lent, as [`ObjectNumber`]s; host.
    pub objects: [AtomicU32; OBJECTS_SHOWN],
}

/// Words between the parts of the page that nobody writes after the driver has made it: whoever writes beyond the end
/// of something changes them.
#[repr(C, align(128))]
pub struct Guard([AtomicU64; SLOT_WORDS]);

/// Words of a slot.
const SLOT_WORDS: usize = 16;

impl Guard {
    fn expected(&self, place: usize) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let value = move |word: usize| MAGIC.rotate_left((place * SLOT_WORDS + word) as u32 % 64);
        self.0.iter().enumerate().map(move |(word, at)| (at, value(word)))
    }

    fn set(&self, place: usize) {
        self.expected(place).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    fn is_intact(&self, place: usize) -> bool {
        self.expected(place).all(|(word, value)| word.load(Ordering::Relaxed) == value)
    }
}

/// The whole page.
#[repr(C)]
pub struct Layout {
    /// Words about the host.
    pub header: Header,
    before_tests: Guard,
    /// By test index.
    pub tests: [TestSlot; MAX_TESTS],
    before_workers: Guard,
    /// By worker index.
    pub workers: [WorkerSlot; MAX_WORKERS],
    before_records: Guard,
    /// Failures on their way to the driver.
    pub records: [FailureRecord; RECORDS],
    before_threads: Guard,
    /// Threads that tests started: thread id in the upper half, index of the test plus one in the lower; host.
    pub threads: [AtomicU64; THREAD_PLACES],
    at_the_end: Guard,
}

/// Declares how a slot is copied as it is, word by word.
macro_rules! copied {
    ($slot:ident) => {
        impl $slot {
            fn words(&self) -> &[AtomicU64; SLOT_WORDS] {
                // SAFETY: a slot is 128 bytes of atomics without padding, aligned for the largest of them (asserted
                // below), and any bytes are valid ones.
                unsafe { &*std::ptr::from_ref(self).cast() }
            }

            /// Takes over what another slot shows now.
            pub fn copy_from(&self, other: &$slot) {
                for (to, from) in self.words().iter().zip(other.words()) {
                    to.store(from.load(Ordering::Acquire), Ordering::Relaxed);
                }
            }
        }
    };
}
copied!(TestSlot);
copied!(WorkerSlot);

impl WorkerSlot {
    /// The test that runs on this worker now, and the number of its iteration: a contained one, or the worker's own.
    pub fn running(&self) -> (u32, u64) {
        match self.contained.load(Ordering::Acquire).checked_sub(1) {
            Some(test) => (test, self.contained_iteration.load(Ordering::Acquire)),
            None => (self.test.load(Ordering::Relaxed), self.iteration.load(Ordering::Acquire)),
        }
    }
}

impl WorkerSlot {
    /// The contained test that runs on this worker or ran on it last, its iteration, and whether it is over.
    pub fn contained(&self) -> Option<(u32, u64, bool)> {
        let iteration = self.contained_iteration.load(Ordering::Acquire);
        let (now, last) =
            (self.contained.load(Ordering::Acquire), self.last_contained.load(Ordering::Acquire));
        let test = if now != 0 { now } else { last };
        Some((test.checked_sub(1)?, iteration, now == 0))
    }
}

impl Layout {
    /// Makes the words that nobody writes any more.
    pub(crate) fn set_guards(&self) {
        self.guards().into_iter().enumerate().for_each(|(place, guard)| guard.set(place));
    }

    /// Whether those words are as they were made.
    pub fn guards_are_intact(&self) -> bool {
        self.guards().into_iter().enumerate().all(|(place, guard)| guard.is_intact(place))
    }

    fn guards(&self) -> [&Guard; 5] {
        [
            &self.before_tests,
            &self.before_workers,
            &self.before_records,
            &self.before_threads,
            &self.at_the_end,
        ]
    }

    /// Asks the driver to look now.
    pub fn ring(&self) {
        self.header.doorbell.fetch_add(1, Ordering::Release);
        crate::sys::wake_all(&self.header.doorbell);
    }

    /// Notes that a test started that thread.
    pub fn note_thread(&self, tid: u32, test: u32) {
        let entry = u64::from(tid) << 32 | u64::from(test + 1);
        self.threads[tid as usize % THREAD_PLACES].store(entry, Ordering::Relaxed);
    }

    /// The test that started that thread, if it is known.
    pub fn test_of_thread(&self, tid: u32) -> Option<u32> {
        let entry = self.threads[tid as usize % THREAD_PLACES].load(Ordering::Relaxed);
        if entry >> 32 == u64::from(tid) { (entry as u32).checked_sub(1) } else { None }
    }
}

const _: () = assert!(size_of::<WorkerSlot>() == 8 * SLOT_WORDS && size_of::<TestSlot>() == 8 * SLOT_WORDS);
