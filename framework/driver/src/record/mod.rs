//! What a campaign counted, as plain data that is kept on disk and shown: no files, no clocks.

mod campaign;
mod randomizer;
mod shard;

pub use campaign::{CAMPAIGN_FORMAT, CampaignRecord, CampaignState, PluginBuild, ScenarioRecord};
pub use randomizer::{RandomizerRecord, SuspendedThreads};
pub use shard::{Outcomes, ShardRecord, Unit};
pub use waylay_findings::test::{BoundRecord, PotShare, StrictNumbers, TestRecord};
