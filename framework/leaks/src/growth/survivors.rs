//! The test for one site and one window: are the survivors spread over the whole window?
//!
//! Module `growth` says why; this file is the arithmetic. The p-value is the larger one of four exact
//! binomial tails (older half and newer half, samples and occupied bins), so each of the four null
//! hypotheses is rejected on its own.

use super::binomial::{lower_tail, upper_tail};
use super::history::History;
use super::policy::MINOR_SHARE;
use crate::region::{AGE_CLASSES, LiveSample, SiteSnapshot};
use std::time::Duration;

/// Deaths beyond the cut age, over all time, that are tolerated per survivor in the window. With steady
/// turnover at least nine in ten of those that reach the cut would have to outlive the window.
const DEATHS_PER_SURVIVOR: f64 = 0.1;

/// Bins a window is divided into. All samples of one bin may come from one burst and count once there.
const BINS: usize = 256;

/// A newer half with this share of the survivors is not slow, however sure we are that it is below one
/// half. A fill passes only while its time constant is above 1.2 windows.
const STEADY_HALF: f64 = 0.4;

/// A newest quarter with this share of the survivors is not slow. It refuses a linear fill that ended more than an eighth of the window
/// ago.
const STEADY_QUARTER: f64 = 0.15;

/// Survivors per iteration just before the window, as a multiple of those within it, that betray the tail
/// of a fill. It refuses fills with time constants up to 1.4 windows, whatever is left of them.
const FILLING: f64 = 2.0;

/// Below this probability of so few survivors the shortage is taken for real.
const SHORTAGE: f64 = 0.01;

/// Growth that passed every condition but the significance level, which is the caller's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    pub(super) p_value: f64,
    pub(super) samples: u64,
    pub(super) bytes: u64,
    pub(super) iterations: f64,
    pub(super) seconds: f64,
}

/// Looks at the survivors of `site` born in a window of length `window` that ends as late as the deaths
/// of the site allow. None when the window would begin before `clock` does, or the shape is not a leak's.
pub(super) fn sustained_growth(
    site: &SiteSnapshot,
    clock: &History,
    minimum_iterations: u64,
    window: Duration,
    now: Duration,
) -> Option<Growth> {
    let first = clock.start()?;
    for class in 0..AGE_CLASSES {
        let end = now.saturating_sub(SiteSnapshot::age_bound(class));
        let start = end.checked_sub(window).filter(|start| *start >= first)?;
        let survivors = born_between(&site.live, start, end);
        let deaths: u64 = site.deaths[class..].iter().map(|count| u64::from(*count)).sum();
        if deaths as f64 > DEATHS_PER_SURVIVOR * survivors.clone().count() as f64 {
            continue;
        }
        let before = start.saturating_sub(window).max(first);
        let earlier = born_between(&site.live, before, start).count() as u64;
        let growth = spread(survivors, clock, minimum_iterations, start, end)?;
        let iterations_before = clock.iterations_at(start) - clock.iterations_at(before);
        return (!is_tail(earlier, iterations_before, &growth)).then_some(growth);
    }
    None
}

fn born_between(
    live: &[LiveSample],
    start: Duration,
    end: Duration,
) -> impl Iterator<Item = &LiveSample> + Clone {
    live.iter().filter(move |sample| start <= sample.born && sample.born < end)
}

/// Whether clearly more survivors per iteration come from before the window.
fn is_tail(earlier: u64, iterations: f64, growth: &Growth) -> bool {
    let all = earlier + growth.samples;
    let even = iterations / (iterations + growth.iterations);
    let filling = FILLING * growth.samples as f64 / growth.iterations;
    earlier as f64 > filling * iterations && upper_tail(all, earlier, even) < SHORTAGE
}

fn spread<'a>(
    survivors: impl Iterator<Item = &'a LiveSample>,
    clock: &History,
    minimum_iterations: u64,
    start: Duration,
    end: Duration,
) -> Option<Growth> {
    let origin = clock.iterations_at(start);
    let iterations = clock.iterations_at(end) - origin;
    if iterations < minimum_iterations.max(1) as f64 {
        return None;
    }
    let mut bins = [0u64; BINS];
    let mut bytes = 0u64;
    for sample in survivors {
        let position = (clock.iterations_at(sample.born) - origin) / iterations;
        bins[((position * BINS as f64) as usize).min(BINS - 1)] += 1;
        bytes = bytes.saturating_add(sample.weight);
    }
    let (older, newer) = bins.split_at(BINS / 2);
    let samples: u64 = bins.iter().sum();
    if is_short(samples, newer.iter().sum(), 0.5, STEADY_HALF)
        || is_short(samples, bins[BINS * 3 / 4..].iter().sum(), 0.25, STEADY_QUARTER)
    {
        return None;
    }
    let p_value = [older, newer].into_iter().map(|half| half_p_value(&bins, half)).fold(0.0, f64::max);
    Some(Growth { p_value, samples, bytes, iterations, seconds: (end - start).as_secs_f64() })
}

/// The chance of so many survivors in a half that gets only the minor share of them.
fn half_p_value(all: &[u64], half: &[u64]) -> f64 {
    let occupied = |bins: &[u64]| bins.iter().filter(|count| **count > 0).count() as u64;
    let by_sample = upper_tail(all.iter().sum(), half.iter().sum(), MINOR_SHARE);
    let by_bin = upper_tail(occupied(all), occupied(half), MINOR_SHARE);
    by_sample.max(by_bin)
}

/// Whether a part of the window that should hold `share` of all survivors holds clearly fewer.
fn is_short(all: u64, part: u64, share: f64, steady: f64) -> bool {
    (part as f64) < steady * all as f64 && lower_tail(all, part, share) < SHORTAGE
}

#[cfg(test)]
#[path = "survivors_tests.rs"]
mod tests;
