//! Whether threads that could run only look at what others have to change. Pure.
//!
//! That nothing has changed for a while says so only of threads that ran meanwhile. One that could run and was not chosen, or
//! not often, may be about to do what the others look for.

/// Steps without a change after which a thread is taken to look: more than what lies between two changes of a thread that works.
const LOOKS: u64 = 16;

/// What threads had done when it was first asked after the last change.
#[derive(Debug, Default)]
pub struct Looking {
    /// Steps of the run when something changed last.
    since: Option<u64>,
    /// Steps by thread.
    steps: Vec<u64>,
}

impl Looking {
    /// Whether every thread that could run has only looked since the last change, as far as that is seen: never when it is first
    /// asked. `steps` are the steps of each thread so far, `ready` are the threads that could run, but for the one that does.
    pub fn all(
        &mut self,
        last_change: u64,
        steps: impl Iterator<Item = u64>,
        mut ready: impl Iterator<Item = usize>,
    ) -> bool {
        if self.since != Some(last_change) {
            self.since = Some(last_change);
            self.steps.clear();
            self.steps.extend(steps);
            return false;
        }
        let now: Vec<u64> = steps.collect();
        ready.all(|thread| {
            let before = self.steps.get(thread).copied().unwrap_or(0);
            now.get(thread).is_some_and(|now| now.saturating_sub(before) >= LOOKS)
        })
    }

    /// Time has passed: what was seen before says nothing any more.
    pub fn forget(&mut self) {
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_ran_has_looked() {
        let mut looking = Looking::default();
        let mut ask = |change, steps: [u64; 3], ready: &[usize]| {
            looking.all(change, steps.into_iter(), ready.iter().copied())
        };
        assert!(!ask(5, [10, 0, 7], &[1]), "nothing is known when it is first asked");
        assert!(!ask(5, [1_000, 3, 7], &[1]), "it began, and may have something to do");
        assert!(!ask(5, [1_000, 16, 7], &[1, 2]), "one of two ran");
        assert!(ask(5, [1_000, 16, 7], &[1]), "it looks, and the other cannot run");
        assert!(ask(5, [1_000, 16, 7], &[]), "nobody else could");
        assert!(!ask(6, [2_000, 99, 7], &[1]), "something changed");
        assert!(ask(6, [2_000, 115, 7], &[1]));
        looking.forget();
        assert!(!looking.all(6, [1, 2].into_iter(), [0].into_iter()));
    }
}
