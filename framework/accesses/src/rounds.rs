//! Recognising a loop that gives way while it waits: by `sched_yield`, a sleep or a PAUSE. Pure.
//!
//! A thread that reads a place, gives way, and reads the same place again, while it wrote nothing, waits for what it reads to
//! change. That other threads ran in between is what it wanted. Compilers write such a loop with two loads, one in front of it and
//! one at its end, so both are looks of the loop.

use waylay_schedule::ThreadId;

/// Reads of a round: a loop that waits looks at a flag or two.
const MOST_READS: usize = 8;

/// What threads did since each last gave way.
#[derive(Default)]
pub(crate) struct Rounds {
    threads: Vec<Round>,
}

#[derive(Default)]
struct Round {
    /// Code and address of what was read in the round before, if that was all.
    before: Vec<(usize, usize)>,
    now: Vec<(usize, usize)>,
    /// Something was written, or read too often.
    works: bool,
}

impl Rounds {
    /// Forgets all: a run begins.
    pub(crate) fn clear(&mut self) {
        self.threads.clear();
    }

    fn of(&mut self, thread: ThreadId) -> &mut Round {
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, Round::default);
        }
        &mut self.threads[thread.index()]
    }

    /// A thread reads; if it waits for what it reads, says which code read that in the round before.
    pub(crate) fn reads(&mut self, thread: ThreadId, code: usize, address: usize) -> Option<usize> {
        let round = self.of(thread);
        if round.works {
            return None;
        }
        if !round.now.contains(&(code, address)) {
            round.now.push((code, address));
            round.works = round.now.len() > MOST_READS;
        }
        round.before.iter().find(|before| before.1 == address).map(|before| before.0)
    }

    /// A thread writes.
    pub(crate) fn writes(&mut self, thread: ThreadId) {
        self.of(thread).works = true;
    }

    /// A thread gives way to others.
    pub(crate) fn gives_way(&mut self, thread: ThreadId) {
        let round = self.of(thread);
        let now = std::mem::take(&mut round.now);
        round.before = if round.works { Vec::new() } else { now };
        round.works = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: ThreadId = ThreadId(3);

    #[test]
    fn who_looks_again_after_giving_way_waits() {
        let mut rounds = Rounds::default();
        assert_eq!([rounds.reads(ME, 10, 64), rounds.reads(ME, 10, 64)], [None; 2], "it did not give way");
        rounds.gives_way(ME);
        assert_eq!(rounds.reads(ME, 10, 72), None, "another place");
        assert_eq!([rounds.reads(ME, 11, 64), rounds.reads(ME, 10, 64)], [Some(10); 2]);
        assert_eq!(rounds.reads(ThreadId(1), 10, 64), None, "another thread");
    }

    #[test]
    fn who_writes_or_reads_a_lot_works() {
        let mut rounds = Rounds::default();
        rounds.reads(ME, 10, 64);
        rounds.writes(ME);
        rounds.gives_way(ME);
        assert_eq!(rounds.reads(ME, 10, 64), None, "something was written in the round before");
        rounds.gives_way(ME);
        rounds.writes(ME);
        assert_eq!(rounds.reads(ME, 10, 64), None, "or in this one");
        rounds.gives_way(ME);
        (0..=MOST_READS).for_each(|word| assert_eq!(rounds.reads(ME, 10, 8 * word), None));
        rounds.gives_way(ME);
        assert_eq!(rounds.reads(ME, 10, 0), None);
    }
}
