//! What a run told: where the library wrote it, or in memory of our own. A copy cannot change any more between a look at it and
//! its use.

use crate::account::Account;
use crate::instrumentation::Site;
use crate::report::Report;
use crate::shared::empty_report;
use crate::stretch::{Note, Stretch};

/// One run as it is told, whether it is told by the region or by a record.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// The numbers.
    pub report: &'a Report,
    /// The schedule. After a run that died, the last stretch is what was counted until then.
    pub schedule: &'a [Stretch],
    /// The conversation, if it was kept and fitted.
    pub notes: Option<&'a [Note]>,
    /// Code that was found to access memory that threads share.
    pub conflicting: &'a [Site],
    /// What the run tells about itself, as bytes: see [`Told::account`].
    pub account: &'a [u8],
    /// The run began: none that came before it in its process ended that.
    pub reached: bool,
}

impl Told<'_> {
    /// What the run tells about itself.
    pub fn account(&self) -> Account {
        Account::read(self.account)
    }
}

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
