//! Where earlier processes of the same shard ended: one that was preempted or killed goes on from there, and what was counted is
//! not counted again.

use std::path::Path;

use waylay_driver::archive;
use waylay_driver::store::ShardRecord;
use waylay_schedule::Shard;

/// Where to go on.
#[derive(Clone, Debug, PartialEq)]
pub enum Resume {
    /// With this schedule, counted from 0; with the first when nothing was done.
    From(u64),
    /// Nowhere: it is done.
    Done,
}

/// Where that part of that night goes on, from what its campaigns below `out` say.
pub fn resume(out: &Path, night: &str, part: Shard) -> Resume {
    let records = archive::campaigns(out)
        .into_iter()
        .filter_map(|folder| archive::read_record(&folder).ok()?.shard)
        .filter(|record| record.night == night && record.part == part);
    follow(&records.collect::<Vec<_>>())
}

fn follow(records: &[ShardRecord]) -> Resume {
    let mut reached = 0;
    loop {
        let here = || records.iter().filter(|record| record.from <= reached);
        if here().any(|record| record.done) {
            return Resume::Done;
        }
        match here().map(|record| record.to).filter(|to| *to > reached).max() {
            Some(to) => reached = to,
            None => return Resume::From(reached),
        }
    }
}
