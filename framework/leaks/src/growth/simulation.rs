//! Hosts that are not there: sampled allocations of made-up sites over made-up time, for the tests of the
//! policy. One snapshot per second, as the driver takes them.

use super::{HeapWatch, LeakFinding, LeakPolicy};
use crate::region::ledger::age_class;
use crate::region::{HeapSnapshot, LiveSample, SiteId, SiteSnapshot, Tag};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) const TAG: Tag = Tag(1);
pub(super) const PERIOD: u64 = 512 * 1024;

/// How long a sample lives, in seconds, given its birth time.
type Lifetime = Box<dyn Fn(&mut ChaCha8Rng, f64) -> f64>;

/// Samples of one site: a Poisson process of births, each with a lifetime.
pub(super) struct Stream {
    /// Births per second at a time.
    rate: Box<dyn Fn(f64) -> f64>,
    /// An upper bound of `rate`.
    peak: f64,
    lifetime: Lifetime,
}

impl Stream {
    pub(super) fn new(
        peak: f64,
        rate: impl Fn(f64) -> f64 + 'static,
        lifetime: impl Fn(&mut ChaCha8Rng, f64) -> f64 + 'static,
    ) -> Stream {
        Stream { rate: Box::new(rate), peak, lifetime: Box::new(lifetime) }
    }

    /// Births at a constant rate.
    pub(super) fn steady(rate: f64, lifetime: impl Fn(&mut ChaCha8Rng, f64) -> f64 + 'static) -> Stream {
        Stream::new(rate, move |_| rate, lifetime)
    }

    /// Births at a constant rate that are never freed.
    pub(super) fn leak(rate: f64) -> Stream {
        Stream::steady(rate, |_, _| f64::INFINITY)
    }
}

/// Exponential with a mean.
pub(super) fn exponential(rng: &mut ChaCha8Rng, mean: f64) -> f64 {
    -(1.0 - rng.random::<f64>()).ln() * mean
}

/// A host with sites of several streams each.
pub(super) struct Host {
    sites: Vec<Vec<Stream>>,
    /// Iterations done at a time.
    iterations: Box<dyn Fn(f64) -> f64>,
    policy: LeakPolicy,
}

impl Host {
    /// A host whose test does 1000 iterations per second.
    pub(super) fn new(sites: Vec<Vec<Stream>>) -> Host {
        Host { sites, iterations: Box::new(|time| time * 1000.0), policy: LeakPolicy::default() }
    }

    pub(super) fn site(streams: Vec<Stream>) -> Host {
        Host::new(vec![streams])
    }

    pub(super) fn with_iterations(mut self, iterations: impl Fn(f64) -> f64 + 'static) -> Host {
        self.iterations = Box::new(iterations);
        self
    }

    pub(super) fn with_policy(mut self, policy: LeakPolicy) -> Host {
        self.policy = policy;
        self
    }

    /// Runs for some seconds and returns every finding with the second it came at.
    pub(super) fn run(&self, seed: u64, seconds: u64) -> Vec<(u64, LeakFinding)> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut watch = HeapWatch::new(self.policy);
        let mut sites: Vec<Site> = self.sites.iter().map(|streams| Site::new(streams)).collect();
        let mut findings = Vec::new();
        for second in 0..=seconds {
            let now = second as f64;
            let mut snapshot =
                HeapSnapshot { taken: at(now), period: PERIOD, owner: 1, ..HeapSnapshot::default() };
            for (number, site) in sites.iter_mut().enumerate() {
                site.advance(now, &mut rng);
                if !site.snapshot.live.is_empty() {
                    snapshot.sites.insert((TAG, SiteId(number as u32)), site.snapshot.clone());
                }
            }
            let iterations = BTreeMap::from([(TAG, (self.iterations)(now) as u64)]);
            let found = watch.observe(&snapshot, &iterations);
            findings.extend(found.into_iter().map(|finding| (second, finding)));
        }
        findings
    }
}

/// Monotonic time does not start at zero.
fn at(seconds: f64) -> Duration {
    Duration::from_secs(10_000) + Duration::from_secs_f64(seconds)
}

struct Site<'a> {
    streams: Vec<(&'a Stream, f64)>,
    /// Birth and death of each live sample, beside its entry in the snapshot.
    lives: Vec<(f64, f64)>,
    snapshot: SiteSnapshot,
}

impl<'a> Site<'a> {
    fn new(streams: &'a [Stream]) -> Site<'a> {
        let streams = streams.iter().map(|stream| (stream, 0.0)).collect();
        Site { streams, lives: Vec::new(), snapshot: SiteSnapshot::default() }
    }

    fn advance(&mut self, now: f64, rng: &mut ChaCha8Rng) {
        for (stream, next) in &mut self.streams {
            while *next < now {
                if rng.random::<f64>() * stream.peak < (stream.rate)(*next) {
                    self.lives.push((*next, *next + (stream.lifetime)(rng, *next)));
                }
                *next += exponential(rng, 1.0 / stream.peak);
            }
        }
        let deaths = &mut self.snapshot.deaths;
        self.lives.retain(|(birth, death)| {
            let dead = *death <= now;
            deaths[age_class(((death - birth).min(1e6) * 1e9) as u64)] += u32::from(dead);
            !dead
        });
        let alive =
            self.lives.iter().map(|(birth, _)| LiveSample { born: at(*birth), size: 100, weight: PERIOD });
        self.snapshot.live = alive.collect();
    }
}
