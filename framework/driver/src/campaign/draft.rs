//! Findings that are not recorded yet: whose they are, and what else is needed to write them down.

use waylay_evidence::signature::Signature as EvidenceSignature;
use waylay_evidence::{CrashContext, Standstill, ThreadStack};

use crate::failure::{Finding, Kind, Signature};
use crate::store::Shelved;

/// A finding that is not recorded yet.
pub(crate) struct Draft {
    pub(crate) finding: Finding,
    /// For the dump: what the signal handler was given.
    pub(crate) crash: Option<CrashContext>,
    /// The host's index of the test to blame.
    pub(crate) test: Option<usize>,
    /// Whether the process can still be dumped.
    pub(crate) alive: bool,
    /// Its evidence on disk, when it waits for a decision.
    pub(crate) shelved: Option<Shelved>,
    /// The stop in which the stacks were taken, for the dump.
    pub(crate) still: Option<Standstill>,
}

impl Draft {
    /// The test's name, or the host.
    pub(crate) fn name(&self) -> &str {
        self.finding.test.as_deref().unwrap_or("the host")
    }

    /// What it is when it came back in the end.
    pub(crate) fn into_slow(mut self) -> Draft {
        let name = self.name().to_owned();
        let own: Vec<&ThreadStack> = self.finding.stacks.iter().take(1).collect();
        self.finding.signature = Signature::new(Kind::Slow, EvidenceSignature::of_hang("slow", &name, own));
        self.finding.kind = Kind::Slow;
        let before = self.finding.reason.take().unwrap_or_default();
        self.finding.reason = Some(format!("it came back in the end; when it was late, {before}"));
        self
    }
}

/// Why there is no dump.
pub(super) const GONE: &str = "the process was gone";

/// Something that one of several tests left behind, and nothing tells which.
pub(crate) struct Unattributed {
    pub(super) draft: Draft,
    /// The scenario's tests that ran in that host.
    pub(super) among: Vec<usize>,
}
