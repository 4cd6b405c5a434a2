//! Keeping out of the way while somebody else looks at the target.
//!
//! Linux allows one tracer per thread, and dump writers that come second succeed silently with nothing in the
//! dump. So whoever wants to look asks first. Two words of the shared page do it:
//!
//! ```text
//!   collector                          randomizer, before each window
//!   quiesce := 1                       window_open := 1
//!   wait until window_open = 0         quiesce = 0? ── yes ─> open the window, window_open := 0 after it
//!   look                                    └── no ─> window_open := 0, wait until quiesce = 0
//!   quiesce := 0
//! ```
//!
//! Whatever attaches to a thread does so inside of a window, also what only finds out whether it may. A window is closed
//! when the kernel has let go of every thread, so that the answer means that nothing of the randomizer's is attached.
//!
//! A third word, `ending`, asks it to end in order: to close the window, write its log out and report. That needs neither a
//! signal nor a console.
//!
//! While it stays away the randomizer also writes its log out and says so in `rested`: a collector that wants to keep
//! the log waits for that ([`Words::wait_until_rested`]).
//!
//! Each side writes its word before it reads the other's, in sequentially consistent order, so at least one of them
//! sees the other: the collector never looks while a window is open. An open window ends early when `quiesce` is seen.
//! A collector that gets no answer kills the randomizer (the kernel then releases every thread), waits for its end and
//! says so with [`Quiet::after_end_of_randomizer`].

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use waylay_page::{Header, wait_until_changed, wake_all};

/// The longest single wait: a waiter whose wake was lost, or whose partner does not wake, looks again after this.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The words of the page that the two sides share.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    /// Not zero while the randomizer is to stay away; written by the collector.
    pub quiesce: &'a AtomicU32,
    /// Not zero when the randomizer is to end; written by the collector.
    pub ending: &'a AtomicU32,
    /// Not zero while the randomizer holds threads; written by the randomizer.
    pub window_open: &'a AtomicU32,
    /// Not zero while the randomizer stays away and its log is written; written by the randomizer.
    pub rested: &'a AtomicU32,
    /// Not zero while the randomizer would open windows; written by the randomizer.
    pub at_work: &'a AtomicU32,
    /// How many windows were opened; written by the randomizer.
    pub windows: &'a AtomicU64,
    /// How many suspensions there were; written by the randomizer.
    pub suspensions: &'a AtomicU64,
}

impl<'a> Words<'a> {
    /// The words of a shared page.
    pub fn of(header: &'a Header) -> Words<'a> {
        Words {
            quiesce: &header.quiesce,
            ending: &header.ending,
            window_open: &header.window_open,
            rested: &header.rested,
            at_work: &header.at_work,
            windows: &header.windows,
            suspensions: &header.suspensions,
        }
    }

    /// Randomizer: opens a window, unless it is asked to stay away.
    pub fn open(self) -> Option<OpenWindow<'a>> {
        let window = self.enter()?;
        self.windows.fetch_add(1, Ordering::Relaxed);
        Some(window)
    }

    /// Randomizer: may touch the target while the result lives, without counting as a window. None when it is asked to stay
    /// away.
    pub fn enter(self) -> Option<OpenWindow<'a>> {
        self.window_open.store(1, Ordering::SeqCst);
        let window = OpenWindow(self);
        if self.is_quiet() { None } else { Some(window) }
    }

    /// Randomizer: whether it is asked to end.
    pub fn is_to_end(self) -> bool {
        self.ending.load(Ordering::Relaxed) != 0
    }

    /// Collector: asks the randomizer to end in order.
    pub fn ask_to_end(self) {
        self.ending.store(1, Ordering::SeqCst);
        // It rests on this word.
        wake_all(self.quiesce);
    }

    /// Randomizer: says whether it stays away and has written its log.
    pub fn set_rested(self, rested: bool) {
        self.rested.store(rested.into(), Ordering::SeqCst);
        wake_all(self.rested);
    }

    /// Collector: waits until the randomizer has written its log, for at most this time; true if it has.
    pub fn wait_until_rested(self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if self.rested.load(Ordering::SeqCst) != 0 {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            wait_until_changed(self.rested, 0, Some(left.min(LOOK_AGAIN)));
        }
    }

    /// Collector: asks the randomizer to let go and waits until it has; false when it has not in time. The request
    /// stays until [`Words::release`]. [`Quiet`] does both.
    pub fn ask(self, limit: Duration) -> bool {
        self.quiesce.store(1, Ordering::SeqCst);
        wake_all(self.quiesce);
        let deadline = Instant::now() + limit;
        loop {
            let open = self.window_open.load(Ordering::SeqCst);
            if open == 0 {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            wait_until_changed(self.window_open, open, Some(left.min(LOOK_AGAIN)));
        }
    }

    /// Collector: the randomizer has ended, perhaps with a window open; the kernel has let go of its threads.
    pub fn note_end_of_randomizer(self) {
        self.window_open.store(0, Ordering::SeqCst);
        self.ending.store(0, Ordering::SeqCst);
        self.rested.store(0, Ordering::SeqCst);
        self.at_work.store(0, Ordering::SeqCst);
    }

    /// Collector: lets the randomizer take up again.
    pub fn release(self) {
        self.quiesce.store(0, Ordering::SeqCst);
        wake_all(self.quiesce);
    }

    /// Randomizer: whether it is asked to stay away.
    pub fn is_quiet(self) -> bool {
        self.quiesce.load(Ordering::SeqCst) != 0
    }

    /// Randomizer: waits for this time, or until it is asked to stay away or no longer so; may return early.
    pub fn pause(self, time: Duration) {
        let seen = self.quiesce.load(Ordering::SeqCst);
        wait_until_changed(self.quiesce, seen, Some(time.min(LOOK_AGAIN)));
    }
}

/// The randomizer may hold threads while this lives.
#[must_use]
#[derive(Debug)]
pub struct OpenWindow<'a>(Words<'a>);

impl Drop for OpenWindow<'_> {
    fn drop(&mut self) {
        // Threads may still be attached to when a panic takes this along. Who asks gets no answer, and ends us.
        if std::thread::panicking() {
            return;
        }
        self.0.window_open.store(0, Ordering::SeqCst);
        if self.0.is_quiet() {
            wake_all(self.0.window_open);
        }
    }
}

/// The collector may look while this lives: no thread is held by the randomizer.
#[must_use]
#[derive(Debug)]
pub struct Quiet<'a>(Words<'a>);

/// The randomizer did not let go in time.
#[derive(Debug)]
pub struct NoAnswer<'a> {
    words: Words<'a>,
    /// How long it had.
    pub waited: Duration,
}

impl std::fmt::Display for NoAnswer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the randomizer did not let go of the threads within {:?}", self.waited)
    }
}

impl<'a> Quiet<'a> {
    /// Collector: asks the randomizer to let go and waits until it has.
    ///
    /// # Errors
    /// When it has not in time. The request stays: kill the randomizer, wait for its end, then call
    /// [`Quiet::after_end_of_randomizer`].
    pub fn ask(words: Words<'a>, limit: Duration) -> Result<Quiet<'a>, NoAnswer<'a>> {
        if words.ask(limit) { Ok(Quiet(words)) } else { Err(NoAnswer { words, waited: limit }) }
    }

    /// Collector: goes on after a randomizer that did not answer was killed and waited for.
    pub fn after_end_of_randomizer(no_answer: NoAnswer<'a>) -> Quiet<'a> {
        no_answer.words.note_end_of_randomizer();
        Quiet(no_answer.words)
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[derive(Default)]
    struct Shared {
        quiesce: AtomicU32,
        ending: AtomicU32,
        window_open: AtomicU32,
        rested: AtomicU32,
        at_work: AtomicU32,
        windows: AtomicU64,
        suspensions: AtomicU64,
    }

    impl Shared {
        fn words(&self) -> Words<'_> {
            Words {
                quiesce: &self.quiesce,
                ending: &self.ending,
                window_open: &self.window_open,
                rested: &self.rested,
                at_work: &self.at_work,
                windows: &self.windows,
                suspensions: &self.suspensions,
            }
        }
    }

    #[test]
    fn no_window_opens_while_somebody_looks() {
        let shared = Shared::default();
        let quiet = Quiet::ask(shared.words(), Duration::from_secs(1)).expect("nobody holds threads");
        assert!(shared.words().open().is_none());
        assert_eq!(shared.window_open.load(Ordering::SeqCst), 0);
        drop(quiet);
        assert!(shared.words().open().is_some());
        assert_eq!(shared.windows.load(Ordering::SeqCst), 1, "only what was opened counts");
    }

    #[test]
    fn a_panic_is_no_answer() {
        let shared = Shared::default();
        thread::scope(|scope| {
            let panicked = scope.spawn(|| {
                let _window = shared.words().open().expect("nobody looks");
                panic!("with a window open");
            });
            assert!(panicked.join().is_err());
        });
        assert!(!shared.words().ask(Duration::from_millis(1)), "threads may still be held");
    }

    #[test]
    fn who_is_asked_to_end_rests_no_longer() {
        let shared = Shared::default();
        assert!(!shared.words().is_to_end());
        shared.words().ask_to_end();
        assert!(shared.words().is_to_end());
        shared.words().note_end_of_randomizer();
        assert!(!shared.words().is_to_end(), "the next one is not");
    }

    #[test]
    fn the_log_is_waited_for_but_not_for_ever() {
        let shared = Shared::default();
        assert!(!shared.words().wait_until_rested(Duration::from_millis(1)));
        shared.words().set_rested(true);
        assert!(shared.words().wait_until_rested(Duration::ZERO));
        shared.words().set_rested(false);
        assert!(!shared.words().wait_until_rested(Duration::ZERO));
    }

    #[test]
    fn an_open_window_is_waited_for_and_no_answer_is_an_error() {
        let shared = Shared::default();
        let window = shared.words().open().expect("nobody looks");
        let no_answer = Quiet::ask(shared.words(), Duration::from_millis(1)).expect_err("still open");
        assert!(shared.words().is_quiet(), "the request stays");
        std::mem::forget(window);
        drop(Quiet::after_end_of_randomizer(no_answer));
        assert!(shared.words().open().is_some());
    }

    #[test]
    fn the_two_never_meet() {
        // Both sides enter thousands of times; a protocol with a hole lets them meet within the first hundreds.
        let shared = Shared::default();
        let (inside, done) = (AtomicU32::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    match shared.words().open() {
                        Some(_window) => {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        }
                        None => shared.words().pause(Duration::from_millis(1)),
                    }
                }
            });
            for _ in 0..3000 {
                let quiet = Quiet::ask(shared.words(), Duration::from_secs(20)).expect("an answer");
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(quiet);
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
