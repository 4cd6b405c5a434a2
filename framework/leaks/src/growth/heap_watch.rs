//! Watches the heap of one host over its life: feeds every snapshot to the survivor test and reports each
//! leaking site once.

use super::history::{History, Point};
use super::policy::{LeakPolicy, Looks};
use super::survivors::{Growth, sustained_growth};
use crate::region::{HeapSnapshot, SiteId, Tag};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A site whose memory keeps being left over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeakFinding {
    /// Whose memory.
    pub tag: Tag,
    /// The call stack, for [`crate::region::Region::stack`].
    pub site: SiteId,
    /// Bytes left over per iteration of the test (of all tests, for memory without a tag).
    pub bytes_per_iteration: f64,
    /// Bytes left over per second.
    pub bytes_per_second: f64,
    /// One standard error of the two slopes, as a part of them: 1/sqrt(samples).
    pub relative_error: f64,
    /// Chance of such survivors in one window of one site if nothing leaks.
    pub p_value: f64,
    /// The chance for all sites of the test and all windows of an hour: an upper bound of the false
    /// findings per hour at this p-value.
    pub false_alarms_per_hour: f64,
    /// Estimated bytes of the site that are alive, leaked or not.
    pub live_bytes: u64,
    /// Samples the finding rests on.
    pub samples: u64,
    /// The stretch of time they were born in.
    pub window: Duration,
}

/// The state of one tag: how far its test was when, and what was looked at.
#[derive(Clone, Debug, Default)]
struct Watched {
    clock: History,
    looks: Looks,
    sites: BTreeSet<SiteId>,
    reported: BTreeSet<SiteId>,
}

/// Watches one host. A restarted host has a new region and needs a new watch.
#[derive(Clone, Debug)]
pub struct HeapWatch {
    policy: LeakPolicy,
    tags: BTreeMap<Tag, Watched>,
}

impl HeapWatch {
    /// A watch that has seen nothing.
    pub fn new(policy: LeakPolicy) -> HeapWatch {
        HeapWatch { policy, tags: BTreeMap::new() }
    }

    /// Takes in a snapshot and the iterations each test has completed by then (all workers together), and
    /// returns sites found leaking now that were not reported before. Call it about once a second.
    ///
    /// Memory of a tag without iterations, as of [`Tag::NONE`], is measured against the iterations of all.
    pub fn observe(&mut self, snapshot: &HeapSnapshot, iterations: &BTreeMap<Tag, u64>) -> Vec<LeakFinding> {
        let everybody = iterations.values().fold(0u64, |sum, count| sum.saturating_add(*count));
        for (tag, site) in snapshot.sites.keys() {
            self.tags.entry(*tag).or_default().sites.insert(*site);
        }
        for tag in iterations.keys() {
            self.tags.entry(*tag).or_default();
        }
        let mut findings = Vec::new();
        for (tag, watched) in &mut self.tags {
            let iterations = iterations.get(tag).copied().unwrap_or(everybody);
            watched.clock.push(Point { time: snapshot.taken, iterations, value: 0 });
            watched.look(*tag, &self.policy, snapshot, &mut findings);
        }
        findings
    }
}

impl Watched {
    fn look(
        &mut self,
        tag: Tag,
        policy: &LeakPolicy,
        snapshot: &HeapSnapshot,
        findings: &mut Vec<LeakFinding>,
    ) {
        let Some(start) = self.clock.start() else { return };
        let significance = policy.significance(self.sites.len());
        for window in self.looks.due(policy, start, snapshot.taken) {
            // Samples without a call stack have no deaths on record, so nothing can be said about them.
            let open = |site: &SiteId| *site != SiteId::UNKNOWN && !self.reported.contains(site);
            let of_tag = snapshot.sites.range((tag, SiteId(0))..(tag, SiteId::UNKNOWN));
            let grown: Vec<(SiteId, Growth, u64)> = of_tag
                .filter(|((_, id), _)| open(id))
                .filter_map(|((_, id), site)| {
                    let growth = sustained_growth(
                        site,
                        &self.clock,
                        policy.minimum_iterations,
                        window,
                        snapshot.taken,
                    )?;
                    (growth.p_value < significance).then_some((*id, growth, site.live_bytes()))
                })
                .collect();
            for (site, growth, live_bytes) in grown {
                self.reported.insert(site);
                findings.push(LeakFinding {
                    tag,
                    site,
                    bytes_per_iteration: growth.bytes as f64 / growth.iterations,
                    bytes_per_second: growth.bytes as f64 / growth.seconds,
                    relative_error: 1.0 / (growth.samples as f64).sqrt(),
                    p_value: growth.p_value,
                    false_alarms_per_hour: growth.p_value * policy.looks_per_hour() * self.sites.len() as f64,
                    live_bytes,
                    samples: growth.samples,
                    window: Duration::from_secs_f64(growth.seconds),
                });
            }
        }
    }
}

#[cfg(test)]
#[path = "heap_watch_tests.rs"]
mod tests;
