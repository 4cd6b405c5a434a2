//! Looking for leaks while a host runs and when it has ended its tests. What counts as one is decided by `waylay-leaks`.

use std::collections::BTreeMap;
use std::time::Instant;

use waylay_leaks::usage::{ThreadId, UsageCounts};
use waylay_leaks::{
    GrowthFinding, HeapWatch, LeakFinding, LeakPolicy, LeftBehind, ProcessUsage, Resource, Tag, UsageWatch,
};

use super::assignment::Assignment;
use super::curve::{Readings, of_survivors};
use crate::host::HostProcess;
use crate::report::{count, plural};
use waylay_report::model::Growth;

/// A leak, in the words of a finding.
pub(crate) struct LeakSeen {
    /// The host's index of the test to blame; none when several tests ran together and nothing tells them apart.
    pub(crate) test: Option<usize>,
    pub(crate) what: String,
    pub(crate) reason: Option<String>,
    /// What sort of leak, for the signature.
    pub(crate) label: String,
    /// Where it was allocated, when that is known.
    pub(crate) frames: Vec<u64>,
    /// Threads that were left behind.
    pub(crate) threads: Vec<u32>,
    /// How it grew, of what was seen growing.
    pub(crate) growth: Option<Growth>,
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct LeakSettings {
    /// When growth is a leak.
    pub policy: LeakPolicy,
    /// Compare open descriptors before and after, and watch their number.
    pub handles: bool,
    /// Compare threads before and after, and watch their number.
    pub threads: bool,
}

/// Watches one host.
pub(crate) struct LeakWatch {
    settings: LeakSettings,
    heap: HeapWatch,
    usage: UsageWatch,
    began: Instant,
    readings: Readings,
    before: Option<ProcessUsage>,
    /// Tests that are watched, by the host's index.
    watched: Vec<bool>,
}

impl LeakWatch {
    pub(crate) fn new(settings: &LeakSettings, watched: Vec<bool>) -> LeakWatch {
        LeakWatch {
            settings: *settings,
            heap: HeapWatch::new(settings.policy),
            usage: UsageWatch::new(settings.policy),
            began: Instant::now(),
            readings: Readings::default(),
            before: None,
            watched,
        }
    }

    /// Notes what the host had before its first test.
    pub(crate) fn note_beginning(&mut self, host: &HostProcess) {
        self.before = ProcessUsage::read(host.pid()).ok();
    }

    /// Whether memory is not measured although it should be: no library claimed the region.
    pub(crate) fn is_blind(&self, host: &HostProcess) -> bool {
        host.heap().is_some_and(|region| region.snapshot().owner == 0)
    }

    /// One look while tests run. Call about once a second.
    pub(crate) fn look(&mut self, host: &HostProcess, assignment: &Assignment) -> Vec<LeakSeen> {
        // What the host shows at this moment may be anything.
        let layout = host.believed();
        let mut iterations: BTreeMap<Tag, u64> = BTreeMap::new();
        for (slot, (test, _)) in assignment.slots.iter().enumerate() {
            let finished = layout.workers[slot].finished.load(std::sync::atomic::Ordering::Relaxed);
            let sum = iterations.entry(tag_of(*test)).or_default();
            *sum = sum.saturating_add(finished);
        }
        for test in assignment.contained() {
            let finished = layout.tests[test].runs.load(std::sync::atomic::Ordering::Relaxed);
            iterations.insert(tag_of(test), finished);
        }
        let mut seen = Vec::new();
        if let Some(region) = host.heap() {
            let snapshot = region.snapshot();
            let began = snapshot.taken.saturating_sub(self.began.elapsed());
            for finding in self.heap.observe(&snapshot, &iterations) {
                let test = test_of(finding.tag).filter(|test| *test < assignment.plans.len());
                if test.is_some_and(|test| self.watched[test]) {
                    let frames =
                        region.region().stack(finding.site).map(|stack| stack.frames).unwrap_or_default();
                    let live = snapshot.sites.get(&(finding.tag, finding.site)).map(|site| &site.live[..]);
                    let growth = of_survivors(live.unwrap_or_default(), began);
                    seen.push(LeakSeen { growth: Some(growth), ..memory(test, &finding, frames) });
                }
            }
        }
        let all = iterations.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        if let Ok(counts) = UsageCounts::read(host.pid()) {
            self.readings.push(self.began.elapsed(), counts);
            let found = self.usage.observe(self.began.elapsed(), all, &counts);
            let wanted = found.iter().filter(|finding| match finding.resource {
                // Growth of resident memory alone has no place, and a leak that has one is found by sampling.
                Resource::Memory => false,
                Resource::Descriptors => self.settings.handles,
                Resource::Threads => self.settings.threads,
            });
            seen.extend(wanted.map(|finding| {
                let curve = self.readings.curve(finding.resource, noun(finding.resource));
                LeakSeen { growth: Some(curve), ..growth(self.only_test(), finding) }
            }));
        }
        seen
    }

    /// What is there after the last test has ended and was not before.
    pub(crate) fn leftovers(&self, host: &HostProcess) -> Vec<LeakSeen> {
        let Some(before) = &self.before else { return Vec::new() };
        // A thread ends a moment after the call that joined it returns.
        let mut left = LeftBehind::default();
        for _ in 0..50 {
            let Ok(after) = ProcessUsage::read(host.pid()) else { return Vec::new() };
            left = LeftBehind::between(before, &after);
            if !self.settings.handles {
                left.descriptors.clear();
            }
            if !self.settings.threads {
                left.threads.clear();
            }
            if left.is_empty() {
                return Vec::new();
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let mut seen = left_of_descriptors(self.only_test(), &left);
        let mut by_test: BTreeMap<Option<usize>, Vec<&(ThreadId, String)>> = BTreeMap::new();
        for thread in &left.threads {
            let owner = host.layout().test_of_thread(thread.0.0).map(|test| test as usize);
            let owner = self.only_test().or(owner.filter(|test| *test < self.watched.len()));
            by_test.entry(owner).or_default().push(thread);
        }
        let is_watched = |test: &Option<usize>| test.is_none_or(|test| self.watched[test]);
        let watched = by_test.into_iter().filter(|(test, _)| is_watched(test));
        seen.extend(watched.map(|(test, threads)| left_of_threads(test, &threads)));
        seen
    }

    /// The test to blame when there is only one.
    fn only_test(&self) -> Option<usize> {
        (self.watched.len() == 1).then_some(0)
    }
}

/// The host tags a test's memory with its index, counted from one.
fn tag_of(test: usize) -> Tag {
    Tag(test as u32 + 1)
}

fn test_of(tag: Tag) -> Option<usize> {
    (tag.0 as usize).checked_sub(1)
}

fn bytes(amount: f64) -> String {
    match amount {
        a if a >= 1e9 => format!("{:.1} GB", a / 1e9),
        a if a >= 1e6 => format!("{:.1} MB", a / 1e6),
        a if a >= 1e3 => format!("{:.1} kB", a / 1e3),
        a => format!("{a:.1} bytes"),
    }
}

fn memory(test: Option<usize>, finding: &LeakFinding, frames: Vec<u64>) -> LeakSeen {
    LeakSeen {
        test,
        what: format!(
            "memory grows by {} per iteration ({}/s), {} alive from this place",
            bytes(finding.bytes_per_iteration),
            bytes(finding.bytes_per_second),
            bytes(finding.live_bytes as f64)
        ),
        reason: Some(format!(
            "{} sampled allocations of {} s were never freed (± {:.0} %); by chance that happens less than {:.0e} times an hour",
            count(finding.samples),
            finding.window.as_secs(),
            finding.relative_error * 100.0,
            finding.false_alarms_per_hour
        )),
        label: "memory leak".to_owned(),
        frames,
        threads: Vec::new(),
        growth: None,
    }
}

fn noun(resource: Resource) -> &'static str {
    match resource {
        Resource::Memory => "bytes of memory",
        Resource::Descriptors => "open descriptors",
        Resource::Threads => "threads",
    }
}

fn growth(test: Option<usize>, finding: &GrowthFinding) -> LeakSeen {
    let noun = noun(finding.resource);
    LeakSeen {
        test,
        what: format!(
            "{noun} grow: {} now, {} more in {} s ({:.3} per iteration)",
            count(finding.count),
            count(finding.growth),
            finding.window.as_secs(),
            finding.per_iteration
        ),
        reason: Some(format!(
            "by chance that happens less than {:.0e} times an hour",
            finding.false_alarms_per_hour
        )),
        label: format!("growing number of {noun}"),
        frames: Vec::new(),
        threads: Vec::new(),
        growth: None,
    }
}

/// Some names, and how many more there are.
fn some_of(names: &[&String]) -> String {
    const NAMED: usize = 5;
    let shown: Vec<&str> = names.iter().take(NAMED).map(|name| name.as_str()).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn left_of_descriptors(test: Option<usize>, left: &LeftBehind) -> Vec<LeakSeen> {
    if left.descriptors.is_empty() {
        return Vec::new();
    }
    let names: Vec<&String> = left.descriptors.iter().map(|(_, target)| target).collect();
    vec![LeakSeen {
        test,
        what: format!(
            "{} still open after OnTestEnd: {}",
            plural(names.len() as u64, "descriptor"),
            some_of(&names)
        ),
        reason: None,
        label: "descriptors left open".to_owned(),
        frames: Vec::new(),
        threads: Vec::new(),
        growth: None,
    }]
}

fn left_of_threads(test: Option<usize>, threads: &[&(ThreadId, String)]) -> LeakSeen {
    let names: Vec<&String> = threads.iter().map(|(_, name)| name).collect();
    LeakSeen {
        test,
        what: format!(
            "{} still there after OnTestEnd: {}",
            plural(names.len() as u64, "thread"),
            some_of(&names)
        ),
        reason: None,
        label: "threads left behind".to_owned(),
        frames: Vec::new(),
        threads: threads.iter().take(16).map(|(id, _)| id.0).collect(),
        growth: None,
    }
}
