//! Watches the counts of one host: resident memory, descriptors, threads.
//!
//! These belong to the process, not to a test: the driver names the test only when it ran alone.

use super::history::{History, Point};
use super::policy::{LeakPolicy, Looks};
use super::trend::{Trend, rising};
use crate::usage::UsageCounts;
use std::time::Duration;

/// What a process can have ever more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// Resident memory, in bytes.
    Memory,
    /// Open descriptors.
    Descriptors,
    /// Threads.
    Threads,
}

impl Resource {
    /// All of them.
    pub const ALL: [Resource; 3] = [Resource::Memory, Resource::Descriptors, Resource::Threads];

    /// Growth within a window that is worth a word. Memory comes in pages and arenas, so the allocator
    /// itself may creep; a descriptor or thread more per block is already a leak.
    fn noticeable(self) -> u64 {
        match self {
            Resource::Memory => 1 << 20,
            Resource::Descriptors | Resource::Threads => 8,
        }
    }

    fn count(self, counts: &UsageCounts) -> u64 {
        match self {
            Resource::Memory => counts.resident,
            Resource::Descriptors => counts.descriptors,
            Resource::Threads => counts.threads,
        }
    }
}

/// A resource whose minimum keeps rising.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrowthFinding {
    /// What grows.
    pub resource: Resource,
    /// By how much per iteration.
    pub per_iteration: f64,
    /// By how much per second.
    pub per_second: f64,
    /// Chance of such a rise in one window if the minima are in random order.
    pub p_value: f64,
    /// How many such rises all windows of an hour show if the minima are in random order.
    pub false_alarms_per_hour: f64,
    /// The count now.
    pub count: u64,
    /// How much it grew within the window.
    pub growth: u64,
    /// The window.
    pub window: Duration,
}

/// The state of one resource.
#[derive(Clone, Debug, Default)]
struct Watched {
    history: History,
    looks: Looks,
    reported: bool,
}

/// Watches one process. A restarted host needs a new watch.
#[derive(Clone, Debug)]
pub struct UsageWatch {
    policy: LeakPolicy,
    watched: [Watched; Resource::ALL.len()],
}

impl UsageWatch {
    /// A watch that has seen nothing.
    pub fn new(policy: LeakPolicy) -> UsageWatch {
        UsageWatch { policy, watched: Default::default() }
    }

    /// Takes in a reading and the iterations completed by then, and returns resources found growing now
    /// that were not reported before. Call it about once a second; a window needs a reading per block, so
    /// at least one every two seconds with the default policy.
    pub fn observe(&mut self, time: Duration, iterations: u64, counts: &UsageCounts) -> Vec<GrowthFinding> {
        let significance = self.policy.significance(Resource::ALL.len());
        let mut findings = Vec::new();
        for (resource, watched) in Resource::ALL.into_iter().zip(&mut self.watched) {
            let value = resource.count(counts);
            watched.history.push(Point { time, iterations, value });
            let Some(start) = watched.history.start().filter(|_| !watched.reported) else { continue };
            for window in watched.looks.due(&self.policy, start, time) {
                let (earlier, points) = watched.history.split_at(time.saturating_sub(window));
                let Some(trend) = rising(earlier, points, self.policy.minimum_iterations) else { continue };
                if trend.p_value < significance && trend.growth >= resource.noticeable() && !watched.reported
                {
                    watched.reported = true;
                    findings.push(finding(resource, &trend, value, window, &self.policy));
                }
            }
        }
        findings
    }
}

fn finding(
    resource: Resource,
    trend: &Trend,
    count: u64,
    window: Duration,
    policy: &LeakPolicy,
) -> GrowthFinding {
    GrowthFinding {
        resource,
        per_iteration: trend.per_iteration,
        per_second: trend.per_second,
        p_value: trend.p_value,
        false_alarms_per_hour: trend.p_value * policy.looks_per_hour() * Resource::ALL.len() as f64,
        count,
        growth: trend.growth,
        window,
    }
}

#[cfg(test)]
#[path = "usage_watch_tests.rs"]
mod tests;
