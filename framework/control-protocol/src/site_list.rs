//! Which sites are steps, as runs show them one after the other.
//!
//! The list only grows, so that what an earlier run had is the beginning of what a later one has. A place that waits changes
//! what is learned: what was learned before it does not count, and is learned again if it still holds.

use std::collections::BTreeSet;

use crate::instrumentation::Site;

/// Places that wait which are told apart: each of them has the rest learned again.
const MOST_WAITS: usize = 64;

/// The list.
#[derive(Clone, Debug, Default)]
pub struct SiteList {
    waits: BTreeSet<Site>,
    in_force: BTreeSet<Site>,
    handed: BTreeSet<Site>,
}

/// What became of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It was known.
    Known,
    /// It is new.
    New,
    /// It is new, and is a step only in runs with accesses to what is handed over.
    Handed,
    /// It is new, and what was there before does not count any more.
    Again,
}

impl SiteList {
    /// What a list says.
    pub fn of(sites: &[Site]) -> SiteList {
        let mut list = SiteList::default();
        for &site in sites {
            list.add(site);
        }
        list
    }

    /// Takes a site in.
    pub fn add(&mut self, site: Site) -> Added {
        if site.is_handed() {
            return if self.handed.insert(site) { Added::Handed } else { Added::Known };
        }
        if !site.is_wait() {
            return if self.in_force.insert(site) { Added::New } else { Added::Known };
        }
        if self.waits.len() >= MOST_WAITS || !self.waits.insert(site) {
            return Added::Known;
        }
        self.in_force.clear();
        self.handed.clear();
        Added::Again
    }

    /// Accesses to what is only handed over.
    pub fn handed(&self) -> impl Iterator<Item = Site> {
        self.handed.iter().copied()
    }

    /// As short a list as says the same of all but those.
    pub fn sites(&self) -> impl Iterator<Item = Site> {
        self.waits.iter().chain(&self.in_force).copied()
    }

    /// How many places are steps.
    pub fn places(&self) -> usize {
        self.in_force.iter().filter(|site| site.is_place()).count()
    }

    /// Whether a site is known.
    pub fn contains(&self, site: Site) -> bool {
        self.in_force.contains(&site) || self.waits.contains(&site) || self.handed.contains(&site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_without_a_wait_is_learned_again() {
        let [one, two, wait] = [Site(1), Site(2), Site(3).as_wait()];
        let mut list = SiteList::of(&[two, one]);
        assert_eq!(list.sites().collect::<Vec<_>>(), [one, two]);
        assert_eq!(
            [list.add(one), list.add(wait), list.add(wait)],
            [Added::Known, Added::Again, Added::Known]
        );
        assert_eq!((list.places(), list.contains(wait), list.contains(one)), (0, true, false));
        assert_eq!(list.add(two), Added::New);
        assert_eq!(list.sites().collect::<Vec<_>>(), [wait, two]);
        assert_eq!(SiteList::of(&[one, two, wait, two]).sites().collect::<Vec<_>>(), [wait, two]);
    }

    #[test]
    fn what_is_handed_over_is_kept_apart() {
        let [one, two] = [Site(1), Site(2)];
        let mut list = SiteList::of(&[one]);
        assert_eq!([list.add(two.as_handed()), list.add(two.as_handed())], [Added::Handed, Added::Known]);
        assert_eq!((list.places(), list.contains(two.as_handed()), list.contains(two)), (1, true, false));
        assert_eq!(list.sites().collect::<Vec<_>>(), [one]);
        assert_eq!(list.handed().collect::<Vec<_>>(), [two.as_handed()]);
        list.add(Site(3).as_wait());
        assert_eq!(list.handed().count(), 0, "learned again");
    }
}
