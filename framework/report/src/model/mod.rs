//! What a report is about, as plain data: a night, its campaign, tests and failures, and numbers over time.
//!
//! Everything that is stored somewhere, in a campaign's folder or in the history, is turned into this first; everything
//! that people read is made from this alone. All text may come from a program under test and is hostile until it is
//! escaped, which every renderer does.

mod builds;
mod campaign;
mod failure;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use builds::{BuildRange, BuiltFile, CleanBuild};
pub use campaign::{
    Campaign, CampaignState, DepthPromise, Environment, Mode, Sample, Scenario, Share, StrictNumbers,
    SuspensionBound, Suspensions, Test,
};
pub use failure::{
    EvidenceFile, Failure, FailureState, ForcedSwitch, Frame, Growth, ModeRate, Occurrence, Origin,
    Reproduction, ScheduleFacts, Stack, Worker, side_by_side,
};

/// Format of [`Night`] as JSON; changes when a reader of the old form would misunderstand.
pub const FORMAT: u32 = 1;

/// One report: a campaign with its failures, and what is known of the nights before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Night {
    /// [`FORMAT`].
    pub format: u32,
    /// When the report was made.
    pub made: Timestamp,
    /// What ran.
    pub campaign: Campaign,
    /// What broke, one entry per signature; those of earlier nights that did not come back too, as
    /// [`FailureState::Resolved`].
    pub failures: Vec<Failure>,
    /// The campaign that the states of failures compare with; none when there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub compared_with: Option<String>,
    /// This night and those before, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub trend: Vec<NightPoint>,
}

/// What came of it, in one word: what exit codes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything ran and nothing broke.
    Clean,
    /// Something broke.
    Failed,
    /// Nothing broke, but not everything could run.
    Incomplete,
    /// Not one iteration was made.
    NothingRan,
}

/// One night in a row of nights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NightPoint {
    /// The campaign.
    pub campaign: String,
    /// When it began.
    pub started: Timestamp,
    /// Seconds that it ran.
    pub seconds: f64,
    /// Finished iterations.
    pub iterations: u64,
    /// Failures.
    pub failures: u64,
    /// Different failures.
    pub signatures: u64,
    /// Different failures that were new.
    pub new_signatures: u64,
}

impl Night {
    /// What came of it. A failure of an earlier night that did not come back is none, nor is a suppressed one.
    pub fn verdict(&self) -> Verdict {
        let broke = self.failures.iter().any(|failure| failure.is_here() && failure.suppressed.is_none());
        match (broke, self.campaign.iterations(), self.campaign.problems.is_empty()) {
            (true, _, _) => Verdict::Failed,
            (false, 0, _) => Verdict::NothingRan,
            (false, _, false) => Verdict::Incomplete,
            (false, _, true) => Verdict::Clean,
        }
    }

    /// Failures that were seen in this night.
    pub fn here(&self) -> impl Iterator<Item = &Failure> {
        self.failures.iter().filter(|failure| failure.is_here())
    }
}
