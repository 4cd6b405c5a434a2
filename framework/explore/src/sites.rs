//! Which plain accesses are steps, from the memory level on: those that runs have shown to conflict.
//!
//! A run begins with none; what it shows counts from the next batch of runs on, so that what a run is given does not
//! depend on how many go on at once. Code that is reached only in rare schedules is met late, so looking never ends.

use std::collections::BTreeSet;

use waylay_control_protocol::instrumentation::{FIRST_LOOKS, is_looked_at};
use waylay_control_protocol::{Added, Level, Pair, Site, SiteList, Turns};

use crate::recording::Conditions;

/// What was learned so far.
#[derive(Clone, Debug)]
pub struct Sites {
    base: Conditions,
    /// Every run is looked at.
    always: bool,
    known: SiteList,
    /// Runs from which on all is learned again: so many behind each are looked at.
    again: Vec<u64>,
    accesses: u64,
    limited: u64,
    /// Races that were seen, and places whose plain accesses are atomic.
    races: BTreeSet<Pair>,
    atomic: BTreeSet<u64>,
    /// Sites that only runs that failed have shown to conflict.
    failing: BTreeSet<u64>,
    /// Which runs have accesses to what is handed over as steps.
    turns: Option<Turns>,
}

/// What a run taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taught {
    /// Whether a site is new.
    pub news: Added,
    /// What is promised is about bugs that show in a run that did not fail before. So accesses that conflict only where a run
    /// fails anyway, such as those of a panic, are steps from now on and leave the runs before their worth; true when others
    /// conflict that were no steps.
    pub void: bool,
}

impl Sites {
    /// Nothing is known; if the conditions name sites themselves, those are used and nothing is learned. `always`: every
    /// run is looked at, because a search is complete only if none of its runs shows anything new.
    pub fn new(conditions: &Conditions, always: bool) -> Sites {
        Sites {
            base: conditions.clone(),
            always,
            known: SiteList::default(),
            again: Vec::new(),
            accesses: 0,
            limited: 0,
            races: BTreeSet::new(),
            atomic: BTreeSet::new(),
            failing: BTreeSet::new(),
            turns: None,
        }
    }

    /// Whether some runs have accesses to what is handed over as steps. A search has them in no run: what it says of all schedules
    /// is about one choice of steps.
    pub fn taking_turns(mut self, some: bool) -> Sites {
        let learns = self.learns() && self.base.run.level == Level::Auto;
        self.turns = (some && learns).then(Turns::default);
        self
    }

    /// Whether there is something to learn at all.
    pub fn learns(&self) -> bool {
        self.base.run.level.sees_accesses() && self.base.steps.sites.is_none()
    }

    /// The conditions of the next batch of runs.
    pub fn conditions(&self) -> Conditions {
        let mut conditions = self.base.clone();
        if self.learns() {
            conditions.steps.sites = Some(self.known.sites().map(|site| site.0).collect());
            if conditions.steps.handed {
                self.add_handed(&mut conditions);
            }
        }
        if self.base.run.races {
            conditions
                .steps
                .known_races
                .extend(self.races.iter().map(|pair| pair.sites().map(|site| site.0)));
            conditions.steps.atomic_sites.extend(&self.atomic);
        }
        conditions
    }

    /// Whether the run with this number has accesses to what is handed over as steps.
    pub fn is_handed(&self, run: u64) -> bool {
        self.turns().is_some_and(|turns| turns.is_handed(run))
    }

    /// How many runs from this one on are of the same sort in that.
    pub fn same(&self, run: u64) -> u64 {
        self.turns().map_or(u64::MAX, |turns| turns.same(run))
    }

    fn turns(&self) -> Option<&Turns> {
        self.turns.as_ref().filter(|_| self.known.handed().next().is_some())
    }

    /// A run that every shard makes, and that came to its end, had so many steps.
    pub fn measure(&mut self, handed: bool, steps: u64) {
        self.turns.iter_mut().for_each(|turns| turns.measure(handed, steps));
    }

    /// The conditions of the next batch of runs, with accesses to what is handed over as steps.
    pub fn conditions_of_handed(&self) -> Conditions {
        let mut conditions = self.conditions();
        if !std::mem::replace(&mut conditions.steps.handed, true) {
            self.add_handed(&mut conditions);
        }
        conditions
    }

    fn add_handed(&self, conditions: &mut Conditions) {
        let sites = conditions.steps.sites.iter_mut();
        sites.for_each(|sites| sites.extend(self.known.handed().map(|site| site.0)));
    }

    /// The conditions of one run of a batch.
    pub fn conditions_of(&self, batch: &Conditions, run: u64) -> Conditions {
        let mut conditions = batch.clone();
        conditions.steps.profiled = self.looks_at(run);
        conditions
    }

    /// Whether it is looked which accesses of a run are shared.
    pub fn looks_at(&self, run: u64) -> bool {
        let again = || self.again.iter().any(|&first| (first..first + FIRST_LOOKS).contains(&run));
        self.learns() && (self.always || again() || is_looked_at(run))
    }

    /// Takes in what a run showed: the sites in conflict, how many accesses there were, and how many sites had more steps than a
    /// run gives to one. `next` is the first run for which that can count; `failed` says whether the run did.
    pub fn learn(
        &mut self,
        next: u64,
        conflicting: &[u64],
        (accesses, limited): (u64, u32),
        failed: bool,
    ) -> Taught {
        self.accesses = self.accesses.max(accesses);
        self.limited = self.limited.max(u64::from(limited));
        let mut taught = Taught { news: Added::Known, void: false };
        for &site in conflicting {
            match self.known.add(Site(site)) {
                Added::Again => {
                    taught = Taught { news: Added::Again, void: true };
                    if self.again.last() != Some(&next) {
                        self.again.push(next);
                    }
                }
                Added::New => {
                    if taught.news == Added::Known {
                        taught.news = Added::New;
                    }
                    if failed {
                        self.failing.insert(site);
                    }
                    taught.void |= !failed;
                }
                Added::Handed => {}
                Added::Known => taught.void |= !failed && self.failing.remove(&site),
            }
        }
        taught
    }

    /// A race that does not end runs of the next batches.
    pub fn know_race(&mut self, pair: Pair) {
        self.races.insert(pair);
    }

    /// Places whose plain accesses are atomic from the next batch on: races that were seen there are none, and are told
    /// again if something else is the matter with them.
    pub fn know_atomic(&mut self, sites: &[u64]) {
        self.atomic.extend(sites);
    }

    /// How many sites are steps, and how many accesses a run makes: what would be steps otherwise.
    pub fn numbers(&self) -> (usize, u64) {
        (self.known.places(), self.accesses)
    }

    /// Names what is a step: equal for equal sites.
    pub fn digest(&self) -> String {
        let mut sites: Vec<u64> = self.known.sites().map(|site| site.0).collect();
        sites.sort_unstable();
        let hash = sites
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, site| (hash ^ site).wrapping_mul(0x0100_0000_01b3));
        format!("{}-{hash:016x}", sites.len())
    }

    /// The most sites of a run whose later accesses were no steps.
    pub fn limited(&self) -> u64 {
        self.limited
    }
}

#[cfg(test)]
mod tests {
    use waylay_control_protocol::Level;

    use super::*;

    #[test]
    fn what_is_in_conflict_is_a_step_from_the_next_batch_on() {
        let mut conditions = Conditions::default();
        assert!(!Sites::new(&conditions, false).looks_at(0), "atomics are steps without being learned");
        conditions.run.level = Level::Memory;
        let mut sites = Sites::new(&conditions, false);
        assert!(sites.looks_at(0) && sites.looks_at(15) && sites.looks_at(320) && !sites.looks_at(321));
        assert_eq!(sites.conditions().steps.sites, Some(Vec::new()));
        let news = |news, void| Taught { news, void };
        assert_eq!(sites.learn(0, &[9, 3], (100, 0), false), news(Added::New, true));
        assert_eq!(sites.learn(1, &[3], (50, 1), false), news(Added::Known, false));
        assert_eq!(sites.conditions().steps.sites, Some(vec![3, 9]));
        assert_eq!((sites.numbers(), sites.limited()), ((2, 100), 1));
        let kind = sites.learn(2, &[Site::of_kind(3).0], (50, 0), false);
        assert_eq!(kind, news(Added::New, true), "another kind of memory");
        assert_eq!(sites.numbers().0, 2);
        let wait = Site(9).as_wait();
        assert_eq!(sites.learn(100, &[4, wait.0, 3], (50, 0), false), news(Added::Again, true));
        assert_eq!(sites.conditions().steps.sites, Some(vec![wait.0, 3]));
        assert!(
            sites.looks_at(101) && !sites.looks_at(99) && !sites.looks_at(117),
            "what was learned is learned again"
        );
        assert!(Sites::new(&conditions, true).looks_at(321), "a search looks at every run");
    }

    #[test]
    fn what_conflicts_only_where_a_run_fails_makes_nothing_worthless_until_one_that_passes_shows_it() {
        let mut conditions = Conditions::default();
        conditions.run.level = Level::Auto;
        let mut sites = Sites::new(&conditions, false);
        let mut learn = |site: u64, failed| {
            let Taught { news, void } = sites.learn(0, &[site], (1, 0), failed);
            (news, void)
        };
        assert_eq!(learn(3, true), (Added::New, false));
        assert_eq!(learn(3, true), (Added::Known, false));
        assert_eq!(learn(4, false), (Added::New, true));
        assert_eq!(learn(3, false), (Added::Known, true), "the runs before could not have shown a bug there");
        assert_eq!(learn(3, false), (Added::Known, false));
        assert_eq!(sites.conditions().steps.sites, Some(vec![3, 4]));
    }

    #[test]
    fn what_is_handed_over_is_a_step_in_runs_for_that_and_makes_nothing_worthless() {
        let mut conditions = Conditions::default();
        conditions.run.level = Level::Auto;
        let mut sites = Sites::new(&conditions, false).taking_turns(true);
        assert!(!sites.is_handed(64) && sites.same(64) == u64::MAX, "there is nothing of that kind");
        let handed = Site(7).as_handed().0;
        let taught = sites.learn(1, &[3, handed], (10, 0), false);
        assert_eq!(taught, Taught { news: Added::New, void: true });
        let taught = sites.learn(2, &[handed, Site(8).as_handed().0], (10, 0), false);
        assert_eq!(taught, Taught { news: Added::Known, void: false });
        assert!(sites.is_handed(64) && !sites.is_handed(63) && !sites.is_handed(72));
        assert_eq!((sites.same(0), sites.same(64), sites.same(70)), (64, 8, 2));
        assert_eq!(sites.conditions().steps.sites, Some(vec![3]));
        let of_handed = sites.conditions_of_handed();
        assert_eq!(of_handed.steps.sites, Some(vec![3, handed, Site(8).as_handed().0]));
        assert!(of_handed.steps.handed && !sites.conditions().steps.handed);
        (0..4).for_each(|run| sites.measure(run == 3, if run == 3 { 8_000 } else { 100 }));
        assert!(
            !sites.is_handed(64) && sites.is_handed(2048),
            "one in 256, because they are 80 times as long"
        );
        let mut search = Sites::new(&conditions, false).taking_turns(false);
        search.learn(1, &[handed], (10, 0), false);
        assert!(!search.is_handed(64));
        conditions.steps.handed = true;
        let mut again = Sites::new(&conditions, true);
        again.learn(1, &[handed], (10, 0), false);
        assert_eq!(
            again.conditions().steps.sites,
            Some(vec![handed]),
            "a failure of such a run, in another build"
        );
    }

    #[test]
    fn what_is_given_is_not_learned() {
        let mut conditions = Conditions::default();
        conditions.run.level = Level::Memory;
        conditions.steps.sites = Some(vec![7]);
        let sites = Sites::new(&conditions, false);
        assert!(!sites.looks_at(0));
        assert_eq!(sites.conditions(), conditions);
    }
}
