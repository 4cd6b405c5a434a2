//! How much evidence to keep: a pure function of what is there already. A campaign that fails ten thousand times, each
//! time alike or each time differently, must not fill the disk.

use serde::{Deserialize, Serialize};

/// The limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Occurrences of one signature whose evidence is kept in full.
    pub evidence_per_signature: u64,
    /// Dumps of a whole campaign.
    pub dumps_per_campaign: u64,
    /// Different signatures that get a folder; further ones are only counted.
    pub signatures: u64,
}

/// What is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Occurrences of this signature, not counting this one.
    pub occurrences: u64,
    /// Signatures with a folder.
    pub signatures: u64,
    /// Dumps written.
    pub dumps: u64,
}

/// What to keep of one more occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: there are too many different failures.
    CountOnly,
    /// It adds to the count and the times of its entry.
    Count,
    /// Stacks and log.
    Stacks,
    /// Stacks, log and dump.
    Everything,
}

impl Retention {
    /// Decides about one more occurrence.
    pub fn decide(&self, kept: Kept) -> Keep {
        if kept.occurrences == 0 && kept.signatures >= self.signatures {
            Keep::CountOnly
        } else if kept.occurrences >= self.evidence_per_signature.max(1) {
            Keep::Count
        } else if kept.dumps >= self.dumps_per_campaign {
            Keep::Stacks
        } else {
            Keep::Everything
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Retention = Retention { evidence_per_signature: 3, dumps_per_campaign: 10, signatures: 5 };

    #[test]
    fn the_first_occurrences_are_kept_in_full_and_later_ones_counted() {
        let kept = |occurrences| Kept { occurrences, signatures: 1, dumps: occurrences };
        let decisions: Vec<Keep> = (0..5).map(|n| LIMITS.decide(kept(n))).collect();
        assert_eq!(
            decisions,
            [Keep::Everything, Keep::Everything, Keep::Everything, Keep::Count, Keep::Count]
        );
    }

    #[test]
    fn dumps_run_out_before_stacks_do() {
        assert_eq!(LIMITS.decide(Kept { occurrences: 0, signatures: 4, dumps: 10 }), Keep::Stacks);
    }

    #[test]
    fn too_many_different_failures_are_only_counted_but_known_ones_go_on() {
        assert_eq!(LIMITS.decide(Kept { occurrences: 0, signatures: 5, dumps: 0 }), Keep::CountOnly);
        assert_eq!(LIMITS.decide(Kept { occurrences: 1, signatures: 5, dumps: 0 }), Keep::Everything);
    }

    #[test]
    fn at_least_the_first_occurrence_has_evidence() {
        let none = Retention { evidence_per_signature: 0, ..LIMITS };
        assert_eq!(none.decide(Kept { occurrences: 0, signatures: 0, dumps: 0 }), Keep::Everything);
    }
}
