//! Handing failures over through the records of the page: which record a host takes, and which ones wait for the driver.

use crate::layout::Layout;
use crate::record::{FailureRecord, Pending, Report};

impl Layout {
    /// Host: hands a failure over and waits until the driver has looked. Never allocates, safe in a signal handler.
    ///
    /// While all records are taken it waits for one; the driver always drains them.
    pub fn report(&self, report: &Report<'_>) {
        let record = self.claim();
        record.hand_over(report);
        self.ring();
        record.await_release();
    }

    fn claim(&self) -> &FailureRecord {
        loop {
            if let Some(record) = self.records.iter().find(|record| record.claim()) {
                return record;
            }
            // No word tells that any record became free, so look again soon; this is the rate limit of a test that
            // fails on more threads at once than there are records.
            crate::sys::pause_briefly();
        }
    }

    /// Driver: whether a record is on its way, in whichever direction.
    pub fn any_record_in_use(&self) -> bool {
        self.records.iter().any(FailureRecord::is_in_use)
    }

    /// Driver: what a record says that no host can mean, when it runs so many tests and workers.
    pub fn impossible_record(&self, tests: usize, workers: usize) -> Option<String> {
        self.records.iter().find_map(|record| record.impossible(tests, workers))
    }

    /// Driver: the failures that wait, oldest slot first.
    pub fn pending(&self) -> impl Iterator<Item = Pending<'_>> {
        self.records.iter().filter_map(FailureRecord::take)
    }
}
