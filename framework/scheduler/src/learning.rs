//! Which plain accesses are steps in runs that are repeated inside one process: what one run shows to conflict is a step from
//! the next one on. Pure.
//!
//! Sites are only ever added, so the ones that a run had are the first of those that a later one has.

use std::sync::atomic::Ordering;

use waylay_control_protocol::instrumentation::{FIRST_LOOKS, is_looked_at};
use waylay_control_protocol::{Added, RegionMap, SiteList};
use waylay_schedule::{RunParameters, Spec};

/// What was learned so far.
#[derive(Default)]
pub(super) struct Learning {
    /// None when the sites stay as they are.
    known: Option<SiteList>,
    /// The strategy. One that goes from one schedule to the next has seen everything only if no run showed a new step: every
    /// run is looked at, and with a new step it begins again.
    spec: Option<Spec>,
    /// So many runs are looked at whatever their number: what was learned has to be learned again.
    again: u64,
    /// The last run came by code that no run had come by before: the next is looked at.
    curious: bool,
}

impl Learning {
    /// What the region asks for, in runs of the strategy that these parameters name.
    pub(super) fn of(region: &RegionMap, parameters: &RunParameters) -> Learning {
        let Some(first) = region.learns_from().filter(|_| region.level().sees_accesses()) else {
            return Learning::default();
        };
        let all = region.chosen().unwrap_or_default();
        let begun = all[..first.min(all.len())].to_vec();
        region.choose_again(&begun, false);
        let spec = parameters.strategy.parse().ok();
        Learning { known: Some(SiteList::of(&begun)), spec, ..Learning::default() }
    }

    /// A run with this number begins.
    pub(super) fn begin(&self, region: &RegionMap, run: u64) {
        if self.known.is_none() {
            return;
        }
        let searches = self.spec.as_ref().is_some_and(Spec::is_search);
        region.look_at(searches || self.curious || self.again > 0 || is_looked_at(run));
        let report = region.report();
        report.accesses.store(0, Ordering::Relaxed);
        report.conflicting.store(0, Ordering::Relaxed);
        report.limited.store(0, Ordering::Relaxed);
        report.reached.store(0, Ordering::Relaxed);
    }

    /// The run has ended: what it showed is a step from the next one on. Says whether that is new.
    pub(super) fn end(&mut self, region: &RegionMap) -> Added {
        let Some(known) = &mut self.known else { return Added::Known };
        count(region);
        self.curious = region.report().reached.load(Ordering::Relaxed) > 0;
        self.again = self.again.saturating_sub(1);
        let mut news = Added::Known;
        // What is only handed over is a step in runs of explored programs, and in none here.
        for &site in region.conflicting().iter().filter(|site| !site.is_handed()) {
            let added = known.add(site);
            if added != Added::Known {
                region.choose_also(site);
            }
            match added {
                Added::Again => (news, self.again) = (added, FIRST_LOOKS),
                Added::New if news == Added::Known => news = added,
                _ => {}
            }
        }
        news
    }

    /// The run was stopped, and what it had as steps is still of interest. Says whether it showed something new, which the
    /// process that goes on is told of.
    pub(super) fn stop(&self, region: &RegionMap) -> bool {
        let Some(known) = &self.known else { return false };
        count(region);
        region.conflicting().iter().any(|&site| !site.is_handed() && !known.contains(site))
    }

    /// The strategy that has to begin again because of news, if it has.
    pub(super) fn begin_again(&self, news: Added) -> Option<&Spec> {
        self.spec.as_ref().filter(|spec| match news {
            Added::Known | Added::Handed => false,
            Added::New => spec.is_search(),
            // What is known of lengths was learned with other steps.
            Added::Again => true,
        })
    }
}

/// Adds the run's numbers to those of the process.
fn count(region: &RegionMap) {
    let (report, tally) = (region.report(), &region.report().tally);
    let most = |of: &std::sync::atomic::AtomicU64, run: u64| {
        of.store(of.load(Ordering::Relaxed).max(run), Ordering::Relaxed);
    };
    most(&tally.accesses, report.accesses.load(Ordering::Relaxed));
    most(&tally.limited, report.limited.load(Ordering::Relaxed).into());
    if region.settings().profile != 0 {
        tally.looked_at.store(tally.looked_at.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}
