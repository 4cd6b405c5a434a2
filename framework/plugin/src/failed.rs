//! What an iteration returns when something is wrong: a message, and the stack of the place that noticed.

use crate::frames;
use std::error::Error;
use std::fmt;
use std::hint::black_box;
use std::panic::Location;

/// What [`Test::main`](crate::Test::main) and its companions return.
pub type Outcome = Result<(), Failed>;

/// Something is wrong. Made by `?` from any error, by [`ensure!`](crate::ensure) and by [`Failed::new`].
///
/// Deliberately no [`Error`] itself, so that every error can become one.
pub struct Failed {
    pub(crate) cause: Cause,
    message: String,
    frames: Box<[usize]>,
}

/// Who noticed the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The test itself.
    Assert,
    /// A panic reached the boundary.
    Panic,
    /// The host knows already; only the status is left to return.
    Reported,
}

impl Failed {
    /// A failure of this place.
    #[track_caller]
    #[cold]
    #[inline(never)]
    pub fn new<M: fmt::Display>(message: M) -> Self {
        // Used after the call, so that it is no tail call: `noticed` counts on this function's frame.
        black_box(noticed(format_args!("{message}"), Location::caller()))
    }

    pub(crate) fn panicked(message: String, frames: Box<[usize]>) -> Self {
        Self { cause: Cause::Panic, message, frames }
    }

    pub(crate) fn reported() -> Self {
        Self { cause: Cause::Reported, message: "already reported".to_owned(), frames: Box::default() }
    }

    /// Says what was being done: `while` in front of the message. The stack stays that of the first place.
    #[must_use]
    pub fn during(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn frames(&self) -> &[usize] {
        &self.frames
    }
}

impl<E: Error> From<E> for Failed {
    #[track_caller]
    #[cold]
    #[inline(never)]
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            message.push_str(": ");
            message.push_str(&inner.to_string());
            source = inner.source();
        }
        black_box(noticed(format_args!("{message}"), Location::caller()))
    }
}

/// A failure of the place that called the caller: [`Failed::new`] and its like leave no frame of theirs in the evidence.
#[inline(never)]
fn noticed(message: fmt::Arguments<'_>, place: &Location<'_>) -> Failed {
    let itself = noticed as fn(fmt::Arguments<'_>, &Location<'_>) -> Failed;
    let message = format!("{message} ({}:{}:{})", place.file(), place.line(), place.column());
    Failed { cause: Cause::Assert, message, frames: frames::outside_of_caller_of(itself as *const ()) }
}

impl fmt::Debug for Failed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Failed({:?}: {})", self.cause, self.message)
    }
}

/// Returns a [`Failed`] from the enclosing function unless the condition holds.
///
/// ```
/// # use waylay_plugin::{ensure, Outcome};
/// fn check(sum: u64) -> Outcome {
///     ensure!(sum == 10, "the sum is {sum}, not 10");
///     ensure!(sum > 0);
///     Ok(())
/// }
/// assert!(check(9).unwrap_err().message().starts_with("the sum is 9, not 10"));
/// ```
#[macro_export]
macro_rules! ensure {
    ($condition:expr $(,)?) => {
        if !$condition {
            return ::core::result::Result::Err($crate::Failed::new(::core::concat!(
                "does not hold: ",
                ::core::stringify!($condition)
            )));
        }
    };
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return ::core::result::Result::Err($crate::Failed::new(::core::format_args!($($message)+)));
        }
    };
}

/// Returns a [`Failed`] from the enclosing function unless both sides are equal; the message shows them.
///
/// ```
/// # use waylay_plugin::{ensure_eq, Outcome};
/// fn check(sum: u64) -> Outcome {
///     ensure_eq!(sum, 10, "after the merge");
///     Ok(())
/// }
/// assert!(check(9).unwrap_err().message().starts_with("after the merge: sum is 9, not 10"));
/// ```
#[macro_export]
macro_rules! ensure_eq {
    ($left:expr, $right:expr $(,)?) => {
        match (&$left, &$right) {
            (left, right) => $crate::ensure!(*left == *right, "{} is {left:?}, not {right:?}", ::core::stringify!($left)),
        }
    };
    ($left:expr, $right:expr, $($message:tt)+) => {
        match (&$left, &$right) {
            (left, right) => $crate::ensure!(
                *left == *right,
                "{}: {} is {left:?}, not {right:?}",
                ::core::format_args!($($message)+),
                ::core::stringify!($left)
            ),
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads() -> Result<(), Failed> {
        "x".parse::<u32>()?;
        Ok(())
    }

    #[test]
    fn the_question_mark_says_what_and_where() {
        let failed = reads().unwrap_err();
        assert!(failed.message().starts_with("invalid digit found in string"), "{failed:?}");
        assert!(failed.message().contains("failed.rs"), "{failed:?}");
        assert!(failed.frames().len() > 2);
    }

    #[derive(Debug)]
    struct Outer(std::num::ParseIntError);
    impl fmt::Display for Outer {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("no port")
        }
    }
    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn sources_are_part_of_the_message() {
        let failed = Failed::from(Outer("x".parse::<u16>().unwrap_err()));
        assert!(failed.message().starts_with("no port: invalid digit"), "{failed:?}");
    }

    #[test]
    fn during_goes_in_front() {
        let failed = Failed::new("empty").during("pop");
        assert!(failed.message().starts_with("pop: empty ("));
    }

    fn without_text(value: u32) -> Outcome {
        ensure!(value > 3 || value == 2);
        ensure_eq!(value, 4);
        Ok(())
    }

    #[test]
    fn ensure_shows_the_condition() {
        assert!(without_text(3).unwrap_err().message().starts_with("does not hold: value > 3 || value == 2"));
        assert!(without_text(2).unwrap_err().message().starts_with("value is 2, not 4"));
        assert!(without_text(4).is_ok());
    }
}
