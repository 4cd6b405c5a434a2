//! Whoever makes runs of a program, each in a process of its own, and what the last one left. How processes are started is
//! the system's part: `sys::server`.

use waylay_control_protocol::Settings;
use waylay_schedule::{Said, Schedule};

pub(crate) use crate::guide::doing;
pub use crate::guide::{Guide, RunError};
use crate::observed::{conversation, to_schedule};
use crate::recording::Conditions;
pub use crate::sys::server::Server;
pub(crate) use crate::sys::server::{cpu_time, kill};

impl Server {
    /// The settings of a run under the given conditions.
    pub fn settings(&mut self, conditions: &Conditions, seed: u64, run: u64) -> Settings {
        conditions.settings_in(&mut self.region, seed, run)
    }

    /// The code sites that the last run found to access memory that threads share.
    pub fn conflicting(&self) -> Vec<u64> {
        self.told.iter().flat_map(|told| told.told().conflicting).map(|site| site.0).collect()
    }

    /// The schedule of the last run.
    pub fn schedule(&self) -> Option<Schedule> {
        to_schedule(self.told.as_ref()?.told().schedule)
    }

    /// What was said between scheduler and strategy in the last run, if it was kept and could be read.
    pub fn conversation(&self) -> Option<Vec<Said>> {
        conversation(&self.told.as_ref()?.told())
    }
}
