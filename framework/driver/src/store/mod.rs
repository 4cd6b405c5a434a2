//! The campaign directory: everything that a campaign leaves behind, written so that kill -9 at any moment loses at
//! most the last second and never harms what was there.
//!
//! ```text
//! waylay-out/
//!   .running/<campaign>     locked while the campaign's driver lives: how an interrupted one is noticed
//!   <campaign>/
//!     campaign.json         state, counters per test, environment
//!     config.toml           the effective configuration
//!     series.json           the same counters over time (limited)
//!     host.log              what the hosts printed (limited)
//!     randomizer.log        what the last randomizer did (limited)
//!     failures/<signature>/ failure.json, occurrences.jsonl, stacks.txt, log.txt, dump.dmp, core, randomizer.log,
//!                           timeline.svg, replay.sh (Windows: replay.cmd)
//!     failures/undecided-…/ the same, while it may still turn out to be something else
//! ```

pub(crate) mod atomic;
mod averages;
mod campaign;
mod failures;
pub(crate) mod firm;
mod marker;
pub mod owed;
mod retention;
mod series;

pub use atomic::WriteError;
pub(crate) use atomic::take_made_again;
pub(crate) use averages::Averages;
pub use campaign::{Campaign, InterruptedCampaign};
pub(crate) use failures::FURTHER_OCCURRENCES;
pub use failures::{CORE_FILE, Dumped, FailureStore, Recorded, Shelved};
pub(crate) use firm::remove_link;
pub use marker::is_at_work;
pub use retention::{Keep, Retention};
pub(crate) use series::FILE as SERIES_FILE;

pub use crate::record::{
    BoundRecord, CAMPAIGN_FORMAT, CampaignRecord, CampaignState, Outcomes, PluginBuild, PotShare,
    RandomizerRecord, ScenarioRecord, ShardRecord, StrictNumbers, SuspendedThreads, TestRecord, Unit,
};
/// What a store keeps.
pub use waylay_findings::load_failure;
