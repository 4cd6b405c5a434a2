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
//! Each side writes its word before it reads the other's, in sequentially consistent order, so at least one of them
//! sees the other: the collector never looks while a window is open. An open window ends early when `quiesce` is seen.
//! A collector that gets no answer kills the randomizer (the kernel then releases every thread), waits for its end and
//! says so with [`Quiet::after_end_of_randomizer`].

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use waylay_page::{Header, wait_until_changed, wake_all};

/// The longest single wait: a waiter whose wake was lost, or whose partner does not wake, looks again after this.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The two words.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    /// Not zero while the randomizer is to stay away; written by the collector.
    pub quiesce: &'a AtomicU32,
    /// Not zero while the randomizer holds threads; written by the randomizer.
    pub window_open: &'a AtomicU32,
}

impl<'a> Words<'a> {
    /// The words of a shared page.
    pub fn of(header: &'a Header) -> Words<'a> {
        Words { quiesce: &header.quiesce, window_open: &header.window_open }
    }

    /// Randomizer: opens a window, unless it is asked to stay away.
    pub fn open(self) -> Option<OpenWindow<'a>> {
        self.window_open.store(1, Ordering::SeqCst);
        let window = OpenWindow(self);
        if self.is_quiet() { None } else { Some(window) }
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
        words.quiesce.store(1, Ordering::SeqCst);
        wake_all(words.quiesce);
        let deadline = Instant::now() + limit;
        loop {
            let open = words.window_open.load(Ordering::SeqCst);
            if open == 0 {
                return Ok(Quiet(words));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NoAnswer { words, waited: limit });
            }
            wait_until_changed(words.window_open, open, Some(left.min(LOOK_AGAIN)));
        }
    }

    /// Collector: goes on after a randomizer that did not answer was killed and waited for.
    pub fn after_end_of_randomizer(no_answer: NoAnswer<'a>) -> Quiet<'a> {
        no_answer.words.window_open.store(0, Ordering::SeqCst);
        Quiet(no_answer.words)
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        self.0.quiesce.store(0, Ordering::SeqCst);
        wake_all(self.0.quiesce);
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
        window_open: AtomicU32,
    }

    impl Shared {
        fn words(&self) -> Words<'_> {
            Words { quiesce: &self.quiesce, window_open: &self.window_open }
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
