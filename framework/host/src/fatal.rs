//! A fatal signal or a call of `exit` inside a test becomes a record in the page before the process is gone.
//!
//! Everything here may run inside a signal handler on a thread that holds any lock: no allocation, no lock, only the
//! page, thread-locals without destructors and system calls. The driver looks from outside while the thread waits,
//! then kills the process.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use waylay_page::record::{NO_TEST, NO_WORKER, Report, Sort};
use waylay_page::{HostPhase, Layout};

use crate::context::{CallContext, RunMode};
use crate::sys;

static PAGE: AtomicPtr<Layout> = AtomicPtr::new(std::ptr::null_mut());
static REPORTED: AtomicBool = AtomicBool::new(false);
static STRICT: AtomicBool = AtomicBool::new(false);
/// The host's process number: a process that a test forked has our handlers and our page, but is not the host.
static HOST: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static BLAMED: Cell<Option<&'static CallContext>> = const { Cell::new(None) };
}

/// While it lives, what goes wrong on this thread is its context's doing. Memory is charged to its test, too.
pub(crate) struct Blame {
    before: Option<&'static CallContext>,
    tag_before: u32,
}

impl Blame {
    pub(crate) fn on(context: &'static CallContext) -> Blame {
        if context.test.run_mode != RunMode::Free {
            return Blame::without_tag(context);
        }
        Blame {
            before: BLAMED.replace(Some(context)),
            tag_before: sys::set_heap_tag(tag_of_test(context.test.index)),
        }
    }
}

impl Blame {
    /// Without charging memory: strict mode does not count it, and threads with a tag take longer to start.
    pub(crate) fn without_tag(context: &'static CallContext) -> Blame {
        Blame { before: BLAMED.replace(Some(context)), tag_before: sys::NO_TAG }
    }
}

impl Drop for Blame {
    fn drop(&mut self) {
        BLAMED.set(self.before);
        if self.tag_before != sys::NO_TAG {
            sys::set_heap_tag(self.tag_before);
        }
    }
}

/// The heap tag of a test: its index, with 0 left for what belongs to no test.
fn tag_of_test(index: u32) -> u32 {
    index + 1
}

/// Begins to watch for fatal signals and calls of `exit`. In strict mode there is one test, and whatever happens is its
/// doing; its threads have no signal stacks of their own, because they run on the carrier's.
pub(crate) fn install(layout: &'static Layout, strict: bool) {
    STRICT.store(strict, Ordering::Release);
    HOST.store(std::process::id(), Ordering::Release);
    PAGE.store(std::ptr::from_ref(layout).cast_mut(), Ordering::Release);
    sys::install_fatal_handlers();
    sys::prepare_thread();
    if !strict {
        sys::prepare_threads_of_tests();
    }
    watch_for_exit();
}

/// Threads that may call `exit` at the same time. Each call takes a handler off the C library's list, and only a call
/// that finds one is held here: with a single handler the second caller would end the process under the driver's eyes.
const EXITS_AT_ONCE: usize = 128;

/// Holds whoever calls `exit` from now on. Handlers run in the opposite order of their registration, so this is done
/// again when plugins were loaded: else their destructors would run first, on objects that other threads still use.
pub(crate) fn watch_for_exit() {
    for _ in 0..EXITS_AT_ONCE {
        sys::at_exit(on_exit);
    }
}

/// A test that calls `exit` in a process without a driver has failed, whatever status it gives.
pub(crate) fn watch_for_exit_alone() {
    extern "C" fn exited() {
        sys::stop_run();
        sys::fail_alone(b"a test called exit()");
    }
    sys::at_exit(exited);
}

/// What a signal handler knows.
pub(crate) struct FatalSignal<'a> {
    pub(crate) signal: u32,
    /// The process that sent it; none when an instruction or a timer caused it.
    pub(crate) sender: Option<u32>,
    /// Whether it is one by which programs are asked to end.
    pub(crate) is_request: bool,
    pub(crate) address: u64,
    pub(crate) message: &'a [u8],
    pub(crate) siginfo: &'a [u8],
    pub(crate) machine: &'a [u8],
}

/// Reports a fatal signal and waits for the end: the process is the driver's now. Returns when it was a request that
/// somebody else made, and in a process that a test forked, where the signal has its default action again.
pub(crate) fn on_fatal_signal(signal: &FatalSignal<'_>) {
    let host = HOST.load(Ordering::Acquire);
    if std::process::id() != host {
        sys::take_default_action(signal);
        return;
    }
    if signal.is_request && signal.sender != Some(host) {
        return;
    }
    report(Report {
        signal: signal.signal,
        address: signal.address,
        message: signal.message,
        siginfo: signal.siginfo,
        machine: signal.machine,
        ..blamed(Sort::Fatal)
    });
}

extern "C" fn on_exit() {
    exit_was_called(b"the test called exit()");
}

/// Somebody ends this process, and not because everything is over. Returns when that is as it should be.
pub(crate) fn exit_was_called(message: &'static [u8]) {
    let Some(layout) = page() else { return };
    if std::process::id() != HOST.load(Ordering::Acquire) {
        return;
    }
    // The host itself leaves without running exit handlers, so whoever got here called `exit`.
    if HostPhase::load(&layout.header.phase) != HostPhase::Left {
        report(Report { message, ..blamed(Sort::Exit) });
    }
}

/// Notes whose thread the calling one is: a thread that a test started inherits the test's heap tag.
pub(crate) fn note_thread_of_test() {
    if let (Some(layout), Some(test)) = (page(), sys::heap_tag().checked_sub(1)) {
        layout.note_thread(sys::thread_id(), test);
    }
}

fn page() -> Option<&'static Layout> {
    // SAFETY: the pointer is null or came from a `&'static Layout`.
    unsafe { PAGE.load(Ordering::Acquire).as_ref() }
}

/// Reports the first fatal event of the process; later ones are its echo. None returns: the process stays as it is
/// until the driver has looked and kills it.
fn report(report: Report<'_>) {
    if let Some(layout) = page() {
        if STRICT.load(Ordering::Acquire) {
            sys::stop_run();
        }
        if !REPORTED.swap(true, Ordering::AcqRel) {
            layout.report(&report);
        }
        sys::wait_for_the_end();
    }
}

fn blamed(sort: Sort) -> Report<'static> {
    match BLAMED.get() {
        Some(context) => context.report(sort, &[], &[]),
        None => Report {
            sort,
            // A thread that a test started inherits the test's heap tag.
            test: match STRICT.load(Ordering::Acquire) {
                true => 0,
                false => sys::heap_tag().checked_sub(1).unwrap_or(NO_TEST),
            },
            worker: NO_WORKER,
            tid: sys::thread_id(),
            iteration: 0,
            seed: 0,
            signal: 0,
            address: 0,
            message: &[],
            frames: &[],
            siginfo: &[],
            machine: &[],
        },
    }
}
