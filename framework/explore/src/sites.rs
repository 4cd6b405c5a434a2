//! Which plain accesses are steps, at the memory level: those that runs have shown to touch memory in conflict.
//!
//! A run begins with none; what it shows counts from the next batch of runs on, so that what a run is given does not
//! depend on how many go on at once. Code that is reached only in rare schedules is met late, so looking never ends.

use std::collections::BTreeSet;

use waylay_control_protocol::Level;

use crate::recording::Conditions;

/// The first runs are all looked at.
const FIRST: u64 = 16;
/// Later, one run in so many is: looking makes a run some times slower.
const LATER: u64 = 16;

/// What was learned so far.
#[derive(Clone, Debug)]
pub struct Sites {
    base: Conditions,
    known: BTreeSet<u64>,
    accesses: u64,
}

impl Sites {
    /// Nothing is known; if the conditions name sites themselves, those are used and nothing is learned.
    pub fn new(conditions: &Conditions) -> Sites {
        Sites { base: conditions.clone(), known: BTreeSet::new(), accesses: 0 }
    }

    /// Whether there is something to learn at all.
    pub fn learns(&self) -> bool {
        self.base.steps.level == Level::Memory && self.base.steps.sites.is_none()
    }

    /// The conditions of the next batch of runs.
    pub fn conditions(&self) -> Conditions {
        let mut conditions = self.base.clone();
        if self.learns() {
            conditions.steps.sites = Some(self.known.iter().copied().collect());
        }
        conditions
    }

    /// Whether it is looked which accesses of a run are shared.
    pub fn looks_at(&self, run: u64) -> bool {
        self.learns() && (run < FIRST || run.is_multiple_of(LATER))
    }

    /// Takes in what a run showed: the sites in conflict, and how many accesses there were.
    pub fn learn(&mut self, conflicting: &[u64], accesses: u64) {
        self.known.extend(conflicting);
        self.accesses = self.accesses.max(accesses);
    }

    /// How many sites are steps, and how many accesses a run makes: what would be steps otherwise.
    pub fn numbers(&self) -> (usize, u64) {
        (self.known.len(), self.accesses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_conflict_is_a_step_from_the_next_batch_on() {
        let mut conditions = Conditions::default();
        assert!(!Sites::new(&conditions).looks_at(0), "atomics are steps without being learned");
        conditions.steps.level = Level::Memory;
        let mut sites = Sites::new(&conditions);
        assert!(
            sites.looks_at(0) && sites.looks_at(FIRST - 1) && sites.looks_at(320) && !sites.looks_at(321)
        );
        assert_eq!(sites.conditions().steps.sites, Some(Vec::new()));
        sites.learn(&[9, 3], 100);
        sites.learn(&[3], 50);
        assert_eq!(sites.conditions().steps.sites, Some(vec![3, 9]));
        assert_eq!(sites.numbers(), (2, 100));
    }

    #[test]
    fn what_is_given_is_not_learned() {
        let mut conditions = Conditions::default();
        conditions.steps.level = Level::Memory;
        conditions.steps.sites = Some(vec![7]);
        let sites = Sites::new(&conditions);
        assert!(!sites.looks_at(0));
        assert_eq!(sites.conditions(), conditions);
    }
}
