//! Where a panic happened. The hook runs while the panicking stack still stands; the boundary, which sees the panic
//! only after unwinding, asks here for the stack that was.
//!
//! Every plugin has a standard library and so a hook of its own. It is silent for panics that the boundary will report;
//! all others (a thread that the test started by itself) go to the hook that was there before.

use crate::failed::Failed;
use crate::frames;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

struct Site {
    text: String,
    place: String,
    frames: Box<[usize]>,
}

thread_local! {
    /// How many [`guard`]s are on this thread's stack. Apart from `LAST`, so that entering an iteration touches
    /// nothing that has a destructor.
    static GUARDS: Cell<u32> = const { Cell::new(0) };
    static LAST: RefCell<Option<Site>> = const { RefCell::new(None) };
}

/// Installs the hook; again and again is fine.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // With panic = "abort" nobody reports it later.
            if cfg!(panic = "abort") || GUARDS.get() == 0 {
                before(info);
            } else {
                note(info);
            }
        }));
    });
}

fn note(info: &PanicHookInfo<'_>) {
    let site = Site {
        text: info.payload_as_str().unwrap_or(NO_TEXT).to_owned(),
        place: info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string),
        frames: frames::here(),
    };
    LAST.with(|last| {
        // Busy only if dropping the earlier site panics; then the earlier one stays.
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = Some(site);
        }
    });
}

const NO_TEXT: &str = "a panic whose payload is no text";

/// Runs the body; a panic that leaves it comes back as a failure of the place that panicked.
pub(crate) fn guard<R>(body: impl FnOnce() -> R) -> Result<R, Failed> {
    // One look-up for both ends: in a library that is loaded late each costs a call.
    let result = GUARDS.with(|guards| {
        guards.set(guards.get() + 1);
        // Whatever the body broke by panicking, the test is reported as failed; that is what this product is for.
        let result = panic::catch_unwind(AssertUnwindSafe(body));
        guards.set(guards.get() - 1);
        result
    });
    result.map_err(describe)
}

#[cold]
fn describe(payload: Box<dyn Any + Send>) -> Failed {
    let text = payload
        .downcast_ref::<&'static str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| NO_TEXT.to_owned());
    // A payload may panic when it is dropped; then it is not dropped.
    if let Err(another) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    // `resume_unwind` passes by the hook, so what was noted last may be a panic that the test caught. The text tells.
    let site = LAST.with(RefCell::take).filter(|site| site.text == text);
    match site {
        Some(site) => Failed::panicked(format!("panicked at {}: {text}", site.place), site.frames),
        None => Failed::panicked(format!("panicked: {text}"), Box::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(body: impl FnOnce()) -> Failed {
        install();
        guard(body).unwrap_err()
    }

    #[test]
    fn a_panic_has_its_text_place_and_stack() {
        let failed = failed(|| panic!("seven of {}", 9));
        assert!(failed.message().starts_with("panicked at "), "{failed:?}");
        assert!(failed.message().contains("panic_site.rs"), "{failed:?}");
        assert!(failed.message().ends_with("seven of 9"), "{failed:?}");
        assert!(failed.frames().len() > 3);
    }

    #[test]
    fn a_caught_panic_is_none() {
        install();
        let value = guard(|| {
            assert!(panic::catch_unwind(|| panic!("caught")).is_err());
            5
        });
        assert_eq!(value.unwrap(), 5);
    }

    #[test]
    fn a_caught_panic_does_not_lend_its_stack_to_another() {
        let failed = failed(|| {
            let _ = panic::catch_unwind(|| panic!("caught"));
            panic::resume_unwind(Box::new("from elsewhere"));
        });
        assert_eq!(failed.message(), "panicked: from elsewhere");
        assert!(failed.frames().is_empty());
    }

    #[test]
    fn a_panic_caught_and_resumed_keeps_its_stack() {
        let failed = failed(|| {
            let payload = panic::catch_unwind(|| panic!("first here")).unwrap_err();
            panic::resume_unwind(payload);
        });
        assert!(!failed.frames().is_empty(), "{failed:?}");
    }

    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("the payload's own drop");
        }
    }

    #[test]
    fn a_payload_that_panics_in_drop_is_still_one_failure() {
        let failed = failed(|| panic::panic_any(Bomb));
        assert!(failed.message().ends_with(NO_TEXT), "{failed:?}");
    }
}
