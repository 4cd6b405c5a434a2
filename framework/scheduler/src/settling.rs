//! When the first run of a process counts: what a program makes on first use (a lazily initialised variable, a lock that is
//! set up when it is taken first) is steps in that run and in no later one. So the run is made again, with the same
//! strategy and seed, until it makes the same steps twice in a row. Pure.

use std::hash::{DefaultHasher, Hash, Hasher};

use waylay_control_protocol::Stretch;

/// How often the first run is still made again.
#[derive(Debug, Default)]
pub(super) struct Settling {
    left: u64,
    /// What the last one did, if it matters.
    last: Option<u64>,
    compares: bool,
}

impl Settling {
    /// At most so often, until two in a row make the same steps.
    pub(super) fn at_most(repeats: u64) -> Settling {
        Settling { left: repeats, last: None, compares: true }
    }

    /// So often, whatever they do: another process found that to be enough.
    pub(super) fn exactly(repeats: u64) -> Settling {
        Settling { left: repeats, last: None, compares: false }
    }

    /// Whether the run that ended is made again; `course` says who ran when, if it matters.
    pub(super) fn again<'a>(&mut self, course: impl FnOnce() -> &'a [Stretch]) -> bool {
        if self.left == 0 {
            return false;
        }
        if self.compares {
            let seen = Some(print_of(course()));
            if std::mem::replace(&mut self.last, seen) == seen {
                self.left = 0;
                return false;
            }
        }
        self.left -= 1;
        true
    }

    /// The run counts as it is, and so do all that follow.
    pub(super) fn is_over(&mut self) {
        self.left = 0;
    }
}

fn print_of(course: &[Stretch]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for &Stretch { thread, first, steps } in course {
        (thread, first, steps).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(settling: &mut Settling, steps: u64) -> bool {
        let course = [Stretch { thread: 0, first: 1, steps }, Stretch { thread: 1, first: 2, steps: 3 }];
        settling.again(|| &course)
    }

    #[test]
    fn a_run_counts_once_it_repeats_itself() {
        let mut settling = Settling::at_most(8);
        assert!(ends(&mut settling, 40));
        assert!(ends(&mut settling, 7));
        assert!(!ends(&mut settling, 7));
        assert!(!ends(&mut settling, 9), "that of a later run is nobody's business");
    }

    #[test]
    fn a_run_that_never_repeats_itself_counts_in_the_end() {
        let mut settling = Settling::at_most(3);
        assert_eq!([1, 2, 3, 4, 5].map(|steps| ends(&mut settling, steps)), [true, true, true, false, false]);
        assert!(!ends(&mut Settling::at_most(0), 1));
    }

    #[test]
    fn another_process_may_have_found_out_how_often() {
        let mut settling = Settling::exactly(2);
        assert_eq!([4, 4, 4].map(|steps| ends(&mut settling, steps)), [true, true, false]);
        let mut settling = Settling::at_most(2);
        settling.is_over();
        assert!(!ends(&mut settling, 1));
    }
}
