//! What the other side told, in memory of our own: it cannot change any more between a look at it and its use.

use crate::account::Account;
use crate::batch::{Fate, Told};
use crate::instrumentation::Site;
use crate::report::Report;
use crate::shared::empty_report;
use crate::stretch::{Note, Stretch};

/// A run as it was told, and as it can have been.
#[derive(Debug)]
pub struct RunCopy {
    pub(crate) report: Box<Report>,
    pub(crate) schedule: Vec<Stretch>,
    pub(crate) notes: Option<Vec<Note>>,
    pub(crate) conflicting: Vec<Site>,
    pub(crate) account: Vec<u8>,
    pub(crate) reached: bool,
}

impl RunCopy {
    /// A run that told nothing.
    pub fn of_nothing() -> RunCopy {
        RunCopy {
            report: empty_report(),
            schedule: Vec::new(),
            notes: None,
            conflicting: Vec::new(),
            account: Vec::new(),
            reached: true,
        }
    }

    /// The run.
    pub fn told(&self) -> Told<'_> {
        Told {
            report: &self.report,
            schedule: &self.schedule,
            notes: self.notes.as_deref(),
            conflicting: &self.conflicting,
            account: &self.account,
            reached: self.reached,
        }
    }

    /// What the run tells about itself.
    pub fn account(&self) -> Account {
        Account::read(&self.account)
    }
}

/// The record of one run: see [`Record`](crate::Record).
#[derive(Debug)]
pub struct RecordCopy {
    /// What became of it.
    pub fate: Fate,
    /// How the program ended, as `waitpid` would say.
    pub status: i32,
    /// The run; of one that was abandoned, the account says why.
    pub told: RunCopy,
    /// What the program wrote.
    pub stdout: Vec<u8>,
    /// What it wrote to its error output.
    pub stderr: Vec<u8>,
}
