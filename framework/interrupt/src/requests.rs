//! Whether this process was asked to end, and whether more than once. Atomics only: signal handlers count here.

use std::sync::atomic::{AtomicBool, Ordering};

static ONCE: AtomicBool = AtomicBool::new(false);
static AGAIN: AtomicBool = AtomicBool::new(false);

/// Counts a request.
pub(crate) fn count() {
    if ONCE.swap(true, Ordering::AcqRel) {
        AGAIN.store(true, Ordering::Release);
    }
}

/// Whether there was more than one.
pub(crate) fn are_repeated() -> bool {
    AGAIN.load(Ordering::Acquire)
}

/// Becomes true with the first.
pub(crate) fn flag() -> &'static AtomicBool {
    &ONCE
}

/// Asks that everything ends, as the first Ctrl-C does: a service manager has other ways to say so, and may say it twice.
pub fn request() {
    ONCE.store(true, Ordering::Release);
}

/// Whether everything is to end.
pub fn requested() -> bool {
    ONCE.load(Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because there is one process to end.
    #[test]
    fn only_a_second_request_of_the_user_is_one_too_many() {
        assert!(!requested() && !are_repeated());
        request();
        request();
        assert!(requested() && !are_repeated() && flag().load(Ordering::Acquire));
        count();
        assert!(requested() && are_repeated());
    }
}
