//! What a test leaves behind: two readings of a process, before `OnTestStart` and after `OnTestEnd`.

use crate::usage::{Descriptor, ProcessUsage, ThreadId};

/// Descriptors and threads that are there after a test and were not there before.
///
/// A thread ends a moment after the call that joined it returns, so a reading right after `OnTestEnd` may
/// still see it: the driver reads again until nothing is left or its patience ends. What a library opens
/// once for the whole process shows up after the first test only; [`LeftBehind::again`] tells the two
/// apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftBehind {
    /// New descriptors and what they are.
    pub descriptors: Vec<(Descriptor, String)>,
    /// New threads and their names.
    pub threads: Vec<(ThreadId, String)>,
}

impl LeftBehind {
    /// Compares two readings. A number that names something else than before counts as new.
    pub fn between(before: &ProcessUsage, after: &ProcessUsage) -> LeftBehind {
        let descriptors = after
            .descriptors
            .iter()
            .filter(|(number, target)| before.descriptors.get(number) != Some(target));
        let threads = after.threads.iter().filter(|(number, _)| !before.threads.contains_key(number));
        LeftBehind {
            descriptors: descriptors.map(|(number, target)| (*number, target.clone())).collect(),
            threads: threads.map(|(number, name)| (*number, name.clone())).collect(),
        }
    }

    /// Whether the test cleaned up.
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty() && self.threads.is_empty()
    }

    /// Whether another session of the same test left things behind once more: a leak, where a first time
    /// alone may be a library that opens something for good.
    pub fn again(&self, earlier: &LeftBehind) -> bool {
        let descriptors = !self.descriptors.is_empty() && !earlier.descriptors.is_empty();
        let threads = !self.threads.is_empty() && !earlier.threads.is_empty();
        descriptors || threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(descriptors: &[(u32, &str)], threads: &[(u32, &str)]) -> ProcessUsage {
        ProcessUsage {
            resident: 0,
            descriptor_count: descriptors.len() as u64,
            descriptors: descriptors.iter().map(|(fd, name)| (Descriptor(*fd), (*name).into())).collect(),
            threads: threads.iter().map(|(id, name)| (ThreadId(*id), (*name).into())).collect(),
        }
    }

    #[test]
    fn only_what_is_new_is_left_behind() {
        let before = usage(&[(0, "/dev/null"), (3, "/etc/a")], &[(10, "main")]);
        let after =
            usage(&[(0, "/dev/null"), (3, "/etc/b"), (4, "socket:[7]")], &[(10, "renamed"), (11, "pool")]);
        let left = LeftBehind::between(&before, &after);
        assert_eq!(
            left.descriptors,
            [(Descriptor(3), "/etc/b".into()), (Descriptor(4), "socket:[7]".into())]
        );
        assert_eq!(left.threads, [(ThreadId(11), "pool".into())]);
        assert!(LeftBehind::between(&after, &after).is_empty());
    }

    #[test]
    fn a_second_time_is_a_leak() {
        let first = LeftBehind { descriptors: vec![(Descriptor(5), "/dev/urandom".into())], threads: vec![] };
        let thread = LeftBehind { descriptors: vec![], threads: vec![(ThreadId(9), "pool".into())] };
        assert!(!LeftBehind::default().again(&first));
        assert!(!thread.again(&first));
        assert!(first.again(&first));
    }
}
