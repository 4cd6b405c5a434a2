//! What a campaign counted, as plain data that is kept on disk and shown: no files, no clocks.

mod campaign;
mod randomizer;
mod shard;
mod test;

pub use campaign::{CampaignRecord, CampaignState, ScenarioRecord};
pub use randomizer::{BoundRecord, RandomizerRecord, SuspendedThreads};
pub use shard::{Outcomes, ShardRecord, Unit};
pub use test::{PotShare, StrictNumbers, TestRecord};
