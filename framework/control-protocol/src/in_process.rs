//! Runs repeated inside one process: the functions that a host finds in the control library by name.
//!
//! ```text
//! begin(run)      the calling thread is the main thread of a controlled run
//!     test body   may create threads, which take part
//! end()           lets threads that are left run, tells the strategy, fills in a summary
//! ```
//!
//! Instead of `end`, any thread of the run may call `stop`: it keeps the processor for good, and no other thread of
//! the run goes on. That is how a failure is held still to be looked at; the process is thrown away afterwards. Between
//! two runs, `stop` ends the series.
//!
//! What a run leaves running: threads that are there at `end` go on under the schedule until they have ended, wait for
//! something that nobody will bring, or have taken [`LEFT_STEPS`] steps. Those that have not ended then are *left
//! behind*. That is no failure (a pool waits for work), unless one of them waits for a lock: that is a deadlock. A
//! process in which a thread was left behind begins no further run, because the thread would take part in it.
//!
//! A process hands over to the next one: when it stops, or leaves threads behind, it writes a
//! `waylay_schedule::Handover` into the region, with what the run was given and what the next run should be given.
//!
//! The first run of a process is not like the others: what is made on first use is made in it. Where
//! [`Settings::settle`](crate::Settings::settle) says so, it is made again, with the same number and the same strategy, until
//! it makes the same steps twice in a row; only the last of these counts ([`RunSummary::again`]). One that fails or leaves
//! threads behind counts at once.
//!
//! A process that follows a schedule of another process gets to where that one was by making some of its runs first
//! ([`Earlier`]). The host asks which, makes them, and then begins the run that follows the schedule.
//!
//! All calls come from one thread. Between `end` and `begin` the thread runs free. The region, given in the
//! environment with [`Settings::in_process`](crate::Settings::in_process) set, holds seed and strategy; its run
//! parameters name the strategy, which learns from run to run.

/// Name of the function of type [`BeginRun`].
pub const BEGIN_RUN: &str = "waylay_control_begin_run";
/// Name of the function of type [`EndRun`].
pub const END_RUN: &str = "waylay_control_end_run";

/// Name of the function of type [`StopRun`].
pub const STOP_RUN: &str = "waylay_control_stop_run";

/// Name of the function of type [`EarlierRuns`]. A library that does without it has no earlier runs to make.
pub const EARLIER_RUNS: &str = "waylay_control_earlier_runs";

/// Steps that threads may take after the end of a run before they count as left behind.
pub const LEFT_STEPS: u64 = 10_000;

/// Begins run number `run`; returns a code of [`Begun`].
pub type BeginRun = unsafe extern "C" fn(run: u64) -> u32;
/// Ends the run; `failed` is 1 when the test found a failure. `summary` may be null.
pub type EndRun = unsafe extern "C" fn(failed: u32, summary: *mut RunSummary);
/// Stops the run where it is, because of a failure. Safe in a signal handler of the thread that failed.
pub type StopRun = unsafe extern "C" fn();

/// Says which runs come before the one that the process was started for.
pub type EarlierRuns = unsafe extern "C" fn(earlier: *mut Earlier);

/// Runs of another process that are made again before one of its later runs is followed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Earlier {
    /// The first run of that process.
    pub first: u64,
    /// How often it is made without counting.
    pub repeats: u64,
    /// Then it and those behind it are made once, up to this one, which is not among them.
    pub through: u64,
}

impl Earlier {
    /// The numbers of all of them, in order.
    pub fn runs(self) -> impl Iterator<Item = u64> {
        (0..self.repeats).map(move |_| self.first).chain(self.first..self.through)
    }

    /// How many there are.
    pub fn count(self) -> u64 {
        self.repeats.saturating_add(self.through.saturating_sub(self.first))
    }
}

/// What [`BeginRun`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Begun {
    /// The run goes on.
    Yes = 0,
    /// A systematic strategy has seen everything: there is nothing left to run.
    Exhausted = 1,
    /// No region was given for runs in the process, a run is going on already, or one was stopped or left threads
    /// behind.
    Refused = 2,
}

/// The numbers of a run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// Choices made.
    pub steps: u64,
    /// Choices that changed the running thread.
    pub switches: u64,
    /// Stretches of the recorded schedule, in the region.
    pub stretches: u64,
    /// Threads that took part.
    pub threads: u32,
    /// 1 when something outside the library's control took part.
    pub partly_controlled: u32,
    /// Threads that were left behind; the process can make no further run then.
    pub left: u32,
    /// 1: the run does not count, and the one with the same number has to be begun next.
    pub again: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_run_is_repeated_before_it_counts() {
        let all = |first, repeats, through| {
            let earlier = Earlier { first, repeats, through };
            let runs: Vec<u64> = earlier.runs().collect();
            assert_eq!(runs.len() as u64, earlier.count());
            runs
        };
        assert_eq!(all(7, 2, 9), [7, 7, 7, 8]);
        assert_eq!(all(7, 1, 7), [7]);
        assert!(all(0, 0, 0).is_empty());
    }
}
