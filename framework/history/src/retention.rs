//! Which evidence goes: a pure function of what is there. By number, size and age of campaigns, oldest first, and never
//! the only copy of the evidence of a failure that is open.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

/// The limits; what is none has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Campaigns whose folder is kept.
    pub campaigns: Option<u64>,
    /// Bytes of all folders together.
    pub bytes: Option<u64>,
    /// The beginning of the time that is kept.
    pub since: Option<Timestamp>,
}

/// A campaign whose folder, or a part of it, is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// When it began.
    pub started: Timestamp,
    /// What its folder takes, apart from the failures below.
    pub bytes: u64,
    /// It is at work: it is never touched.
    pub running: bool,
    /// Its failures whose folders are there.
    pub failures: Vec<KeptFailure>,
}

/// The folder of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFailure {
    /// The signature.
    pub signature: String,
    /// What it takes.
    pub bytes: u64,
    /// New, ongoing or rare.
    pub open: bool,
}

/// What is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The campaign.
    pub campaign: String,
    /// Failures that stay; everything else goes, and the folder itself when none stays.
    pub except: Vec<String>,
}

/// Decides. `kept` is in any order.
pub fn decide(kept: &[Kept], limits: &Limits) -> Vec<Removal> {
    let mut copies: BTreeMap<&str, u64> = BTreeMap::new();
    for failure in kept.iter().flat_map(|campaign| &campaign.failures) {
        *copies.entry(&failure.signature).or_default() += 1;
    }
    let mut oldest_first: Vec<&Kept> = kept.iter().collect();
    oldest_first.sort_by(|a, b| (a.started, &a.name).cmp(&(b.started, &b.name)));
    let mut number = kept.len() as u64;
    let mut bytes: u64 = kept.iter().map(Kept::size).sum();
    let mut removals = Vec::new();
    for campaign in oldest_first {
        let too_many = limits.campaigns.is_some_and(|most| number > most);
        let too_large = limits.bytes.is_some_and(|most| bytes > most);
        let too_old = limits.since.is_some_and(|since| campaign.started < since);
        if !(too_many || too_large || too_old) || campaign.running {
            continue;
        }
        let mut except = BTreeSet::new();
        let mut stays = 0;
        for failure in &campaign.failures {
            let left = copies.get_mut(failure.signature.as_str()).expect("counted above");
            if failure.open && *left == 1 {
                except.insert(failure.signature.clone());
                stays += failure.bytes;
            } else {
                *left -= 1;
            }
        }
        // What is left of it counts no longer as a campaign: it could not go if it did.
        number -= 1;
        let goes = campaign.size() - stays;
        bytes -= goes;
        // A campaign that was trimmed before and has nothing else is left alone.
        if goes > 0 || except.is_empty() {
            removals.push(Removal { campaign: campaign.name.clone(), except: except.into_iter().collect() });
        }
    }
    removals
}

impl Kept {
    fn size(&self) -> u64 {
        self.bytes + self.failures.iter().map(|failure| failure.bytes).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(number: i64, failures: &[(&str, bool)]) -> Kept {
        let failure = |(signature, open): &(&str, bool)| KeptFailure {
            signature: (*signature).to_owned(),
            bytes: 10,
            open: *open,
        };
        Kept {
            name: format!("c{number}"),
            started: Timestamp::from_second(number * 1000).unwrap(),
            bytes: 100,
            running: false,
            failures: failures.iter().map(failure).collect(),
        }
    }

    fn removal(campaign: &str, except: &[&str]) -> Removal {
        Removal {
            campaign: campaign.to_owned(),
            except: except.iter().map(|one| (*one).to_owned()).collect(),
        }
    }

    #[test]
    fn nothing_goes_within_the_limits() {
        let all = [kept(1, &[("a", true)]), kept(2, &[])];
        assert_eq!(decide(&all, &Limits::default()), []);
        assert_eq!(decide(&all, &Limits { campaigns: Some(2), bytes: Some(210), since: None }), []);
    }

    #[test]
    fn the_oldest_go_by_number_size_and_age() {
        let all = [kept(3, &[]), kept(1, &[]), kept(2, &[])];
        let by = |limits| decide(&all, &limits);
        assert_eq!(by(Limits { campaigns: Some(2), ..Limits::default() }), [removal("c1", &[])]);
        assert_eq!(by(Limits { bytes: Some(299), ..Limits::default() }), [removal("c1", &[])]);
        let since = Timestamp::from_second(2500).unwrap();
        let old = by(Limits { since: Some(since), ..Limits::default() });
        assert_eq!(old, [removal("c1", &[]), removal("c2", &[])]);
    }

    #[test]
    fn the_only_copy_of_an_open_failure_stays_and_other_copies_go() {
        let all = [kept(1, &[("open", true), ("closed", false)]), kept(2, &[("open", true)]), kept(3, &[])];
        let none = Limits { campaigns: Some(0), ..Limits::default() };
        assert_eq!(decide(&all, &none), [removal("c1", &[]), removal("c2", &["open"]), removal("c3", &[])]);
    }

    #[test]
    fn a_campaign_at_work_is_never_touched() {
        let all = [Kept { running: true, ..kept(1, &[]) }];
        assert_eq!(decide(&all, &Limits { campaigns: Some(0), bytes: Some(0), since: None }), []);
    }

    #[test]
    fn what_is_left_of_a_trimmed_campaign_is_not_removed_again_and_again() {
        let trimmed = Kept { bytes: 0, ..kept(1, &[("open", true)]) };
        assert_eq!(decide(&[trimmed], &Limits { campaigns: Some(0), ..Limits::default() }), []);
    }

    proptest! {
        #[test]
        fn every_open_failure_keeps_a_copy(
            campaigns in prop::collection::vec(
                (0i64..20, prop::collection::vec((0u8..6, 0u64..50), 0..4)), 0..12),
            open in prop::collection::vec(any::<bool>(), 6),
            most in 0u64..6, bytes in 0u64..800,
        ) {
            let all: Vec<Kept> = campaigns.iter().enumerate().map(|(place, (at, failures))| {
                let mut failures: Vec<KeptFailure> = failures.iter().map(|(signature, bytes)| KeptFailure {
                    signature: signature.to_string(), bytes: *bytes, open: open[usize::from(*signature)],
                }).collect();
                failures.sort_by(|a, b| a.signature.cmp(&b.signature));
                failures.dedup_by(|a, b| a.signature == b.signature);
                Kept { name: format!("c{place}"), failures, ..kept(*at, &[]) }
            }).collect();
            let removals = decide(&all, &Limits { campaigns: Some(most), bytes: Some(bytes), since: None });
            let stays = |campaign: &Kept, signature: &str| {
                removals.iter().find(|removal| removal.campaign == campaign.name)
                    .is_none_or(|removal| removal.except.iter().any(|one| one == signature))
            };
            for signature in all.iter().flat_map(|campaign| &campaign.failures).filter(|failure| failure.open) {
                prop_assert!(all.iter().any(|campaign|
                    campaign.failures.iter().any(|one| one.signature == signature.signature)
                        && stays(campaign, &signature.signature)));
            }
            // And the limits hold for all that may go.
            let whole = all.iter().filter(|campaign| !removals.iter().any(|one| one.campaign == campaign.name));
            prop_assert!(whole.count() as u64 <= most);
        }
    }
}
