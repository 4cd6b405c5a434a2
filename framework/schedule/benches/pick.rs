//! What a choice costs: nanoseconds per pick, against the limits the crate sets itself.
//!
//! Two workloads. "contended": every step the running thread announces another event on one of 64 objects and stays
//! enabled, and now and then it blocks and another thread comes back; this is what the limits are about. "alone": the
//! running thread goes on, the fast path of the strategies that seldom switch. What it takes to make up the events is
//! measured by itself and taken off. All threads end up at the same event there, which for POS is the worst case: every
//! step races with every pending one, and all their priorities are drawn anew.

use std::hint::black_box;
use std::time::Instant;

use waylay_schedule::{Event, EventKind, Outcome, Run, RunReport, Seed, Spec, Strategy, ThreadId};

/// Steps of one measurement: short enough to fit a time slice, so that the best of many is undisturbed by other work.
const STEPS: u64 = 50_000;
const MEASUREMENTS: u32 = 30;
const LIMITS: [(u32, f64); 2] = [(4, 25.0), (1000, 1000.0)];
const STRATEGIES: [(&str, bool); 10] = [
    ("pct:depth=3", true),
    ("random", true),
    ("stride", true),
    ("stride:max=2", true),
    ("pos", true),
    ("rpro", false),
    ("surw", false),
    ("surw:focus=all", false),
    ("idiom", false),
    ("noise", false),
];

/// Events as a program with 64 shared objects makes them, from a cheap generator.
struct Events(u64);

impl Events {
    fn next(&mut self) -> Event {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = self.0 >> 33;
        // Without branches, whose mispredictions would be charged to the strategy.
        let (kind, extent) = KINDS[(bits >> 6 & 3) as usize];
        Event::access(kind, 0x1000 + 64 * (bits & 63), extent)
    }
}

const KINDS: [(EventKind, u32); 4] = [
    (EventKind::MutexLock, 1),
    (EventKind::AtomicLoad, 8),
    (EventKind::AtomicStore, 8),
    (EventKind::AtomicRmw, 4),
];

fn begin(strategy: &mut impl Strategy, run: Run, threads: u32, events: &mut Events) -> ThreadId {
    let parameters = strategy.plan(run).expect("these strategies do not run out");
    strategy.begin(run, &parameters);
    for thread in (0..threads).map(ThreadId) {
        strategy.spawned(thread, (thread.0 > 0).then_some(ThreadId::MAIN));
        strategy.ready(thread, events.next());
    }
    strategy.pick().expect("threads are ready")
}

/// Nanoseconds per choice.
fn contended(spec: &Spec, threads: u32) -> f64 {
    let mut strategy = spec.build();
    let mut events = Events(1);
    // Enough short runs first to get past profiling.
    for index in 0..12 {
        let mut current = begin(&mut strategy, Run { seed: Seed(1), index }, threads, &mut events);
        for _ in 0..4 * threads {
            current = strategy.step(current, events.next());
        }
        let lengths = vec![4; threads as usize];
        let steps = u64::from(4 * threads);
        strategy.end(&RunReport { outcome: Outcome::Passed, steps, lengths: &lengths, news: false });
    }
    let mut current = begin(&mut strategy, Run { seed: Seed(1), index: 12 }, threads, &mut events);
    let start = Instant::now();
    for step in 0..STEPS {
        if step % 16 == 0 {
            strategy.blocked(current);
            let next = strategy.pick().expect("others are ready");
            strategy.ready(current, events.next());
            current = next;
        } else {
            current = black_box(strategy.step(current, events.next()));
        }
    }
    start.elapsed().as_nanos() as f64 / STEPS as f64
}

/// Nanoseconds per choice when the running thread goes on.
fn alone(spec: &Spec, threads: u32) -> f64 {
    let mut strategy = spec.build();
    let mut events = Events(1);
    let mut current = begin(&mut strategy, Run::default(), threads, &mut events);
    let event = Event::access(EventKind::AtomicRmw, 0x1000, 8);
    let start = Instant::now();
    for _ in 0..STEPS {
        current = strategy.step(black_box(current), black_box(event));
    }
    start.elapsed().as_nanos() as f64 / STEPS as f64
}

/// Nanoseconds to make up an event.
fn generation() -> f64 {
    let mut events = Events(1);
    let start = Instant::now();
    for _ in 0..STEPS {
        black_box(events.next());
    }
    start.elapsed().as_nanos() as f64 / STEPS as f64
}

/// The best of many: other work on the machine only ever adds.
fn best(measure: impl Fn() -> f64) -> f64 {
    (0..MEASUREMENTS).map(|_| measure()).fold(f64::MAX, f64::min)
}

fn main() -> std::process::ExitCode {
    let generation = best(generation);
    println!(
        "{:<16} {:>8} {:>14} {:>10} {:>10}",
        "strategy", "threads", "contended ns", "alone ns", "limit ns"
    );
    let mut within = true;
    for (text, limited) in STRATEGIES {
        let spec: Spec = text.parse().expect("a known strategy");
        for (threads, limit) in LIMITS {
            let mixed = best(|| contended(&spec, threads)) - generation;
            let fast = best(|| alone(&spec, threads));
            let verdict = match limited {
                false => "-".to_owned(),
                true if mixed <= limit => format!("{limit}"),
                true => format!("{limit} !"),
            };
            within &= !limited || mixed <= limit;
            println!("{text:<16} {threads:>8} {mixed:>14.1} {fast:>10.1} {verdict:>10}");
        }
    }
    println!("{}", if within { "all within their limits" } else { "some exceed their limits (!)" });
    if within { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
