//! The test for a series of counts: do the minima keep rising?
//!
//! The window is cut into [`BLOCKS`] parts of equal iterations, and only the minimum of each part is kept:
//! what goes up and down within a part leaves no trace. Mann and Kendall's test asks how many pairs of
//! minima are out of order (H. B. Mann, Econometrica 13, 1945; M. G. Kendall, Biometrika 30, 1938). Its
//! null hypothesis is that the minima are exchangeable, its distribution (the number of inversions of a
//! random permutation) is computed exactly, and a tie counts against growth, which only makes the p-value
//! larger. The slope is Theil and Sen's median of pairwise slopes (P. K. Sen, JASA 63, 1968).

use super::history::Point;

/// Parts of a window. 16! is 2·10^13, so up to four pairs out of order remain below 2·10^-10.
const BLOCKS: usize = 16;

/// Growth over the newest quarter, as part of the growth over the oldest, below which the series is
/// filling up and not growing. A fill passes only while its time constant is above 0.7 windows.
const STEADY: f64 = 0.5;

/// A series that rises, per iteration and per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    pub(super) p_value: f64,
    pub(super) per_iteration: f64,
    pub(super) per_second: f64,
    pub(super) growth: u64,
}

/// Tests the points of one window. None when there are too few for every block to have one, or the minima
/// do not rise steadily, or rise only to where they have been before: `earlier` is what came before the
/// window, and a long saw-tooth has been there.
pub(super) fn rising(earlier: &[Point], points: &[Point], minimum_iterations: u64) -> Option<Trend> {
    let minima = block_minima(points, minimum_iterations)?;
    let values: Vec<f64> = minima.iter().map(|point| point.value as f64).collect();
    let quarter = |index: usize| {
        let part = &values[index * BLOCKS / 4..(index + 1) * BLOCKS / 4];
        part.iter().sum::<f64>() / part.len() as f64
    };
    let (early, late) = (quarter(1) - quarter(0), quarter(3) - quarter(2));
    if late <= 0.0 || late < STEADY * early {
        return None;
    }
    let block = (minima[BLOCKS - 1].iterations - minima[0].iterations) / BLOCKS as u64;
    if quarter(3) <= highest_minimum(earlier, block) {
        return None;
    }
    let disordered = pairs(&values).filter(|(earlier, later)| earlier.1 >= later.1).count();
    let slope = |x: fn(&Point) -> f64| {
        let ratios = pairs(&minima).filter_map(|((_, earlier), (_, later))| {
            let run = x(later) - x(earlier);
            (run > 0.0).then(|| (later.value as f64 - earlier.value as f64) / run)
        });
        median(ratios.collect())
    };
    Some(Trend {
        p_value: at_most_inversions(disordered),
        per_iteration: slope(|point| point.iterations as f64),
        per_second: slope(|point| point.time.as_secs_f64()),
        growth: minima[BLOCKS - 1].value.saturating_sub(minima[0].value),
    })
}

/// The lowest point of each block, in order.
fn block_minima(points: &[Point], minimum_iterations: u64) -> Option<Vec<Point>> {
    let (first, last) = (points.first()?, points.last()?);
    let iterations = last.iterations - first.iterations;
    if iterations < minimum_iterations.max(BLOCKS as u64) {
        return None;
    }
    let mut minima: [Option<Point>; BLOCKS] = [None; BLOCKS];
    for point in points {
        let passed = u128::from(point.iterations - first.iterations);
        let block = (passed * BLOCKS as u128 / u128::from(iterations)) as usize;
        let lowest = &mut minima[block.min(BLOCKS - 1)];
        if lowest.is_none_or(|lowest| point.value < lowest.value) {
            *lowest = Some(*point);
        }
    }
    minima.into_iter().collect()
}

/// The highest of the minima of blocks of so many iterations. A peak shorter than a block leaves no trace.
fn highest_minimum(points: &[Point], block: u64) -> f64 {
    let same_block =
        |one: &Point, other: &Point| one.iterations / block.max(1) == other.iterations / block.max(1);
    let minima = points.chunk_by(same_block).filter_map(|block| block.iter().map(|point| point.value).min());
    minima.max().map_or(f64::NEG_INFINITY, |highest| highest as f64)
}

/// All pairs of entries in order, with their indices.
fn pairs<T>(entries: &[T]) -> impl Iterator<Item = ((usize, &T), (usize, &T))> {
    let later = |index: usize| entries.iter().enumerate().skip(index + 1);
    entries.iter().enumerate().flat_map(move |earlier| later(earlier.0).map(move |later| (earlier, later)))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// P(a random order of [`BLOCKS`] values has at most so many inversions). Adding one value to a
/// permutation of m adds 0 to m inversions, each equally likely.
fn at_most_inversions(limit: usize) -> f64 {
    let mut probability = vec![0.0; BLOCKS * (BLOCKS - 1) / 2 + 1];
    probability[0] = 1.0;
    for size in 2..=BLOCKS {
        let before = probability.clone();
        for (inversions, chance) in probability.iter_mut().enumerate() {
            let from = inversions.saturating_sub(size - 1);
            *chance = before[from..=inversions].iter().sum::<f64>() / size as f64;
        }
    }
    probability.iter().take(limit + 1).sum()
}

#[cfg(test)]
#[path = "trend_tests.rs"]
mod tests;
