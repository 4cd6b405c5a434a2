//! Weighted: intervals chosen with given probabilities, uniform inside each.

use rand::Rng;

use crate::problem::ProblemKind;
use crate::quantity::Check;
use crate::spec::Interval;
use crate::uniform::UniformSampler;

/// How far from 1 the probabilities may sum: room for thirds and sevenths written in decimals.
const TOLERANCE: f64 = 1e-9;

/// Draws from weighted intervals, whole numbers and floats.
#[derive(Clone, Debug)]
pub(crate) struct WeightedSampler {
    cells: Box<[Cell]>,
    intervals: Box<[UniformSampler]>,
}

/// One cell of an alias table (A. J. Walker 1977, built as M. D. Vose 1991): a draw picks a cell, all alike,
/// and then the cell's own interval with probability `own / 2^64`, otherwise its alias.
#[derive(Clone, Copy, Debug)]
struct Cell {
    own: u64,
    alias: usize,
}

impl WeightedSampler {
    pub(crate) fn check(spec: &[Interval], check: &mut Check) -> Option<Self> {
        if spec.is_empty() {
            check.problem(None, ProblemKind::NoIntervals);
            return None;
        }
        let mut intervals = Vec::with_capacity(spec.len());
        let mut weights = Vec::with_capacity(spec.len());
        for (i, interval) in spec.iter().enumerate() {
            check.interval = Some(i);
            intervals.extend(check.range(&interval.min, &interval.max).map(UniformSampler::new));
            match check.finite("p", interval.p) {
                Some(p) if p < 0.0 => check.problem("p", ProblemKind::NegativeProbability(p)),
                p => weights.extend(p),
            }
        }
        check.interval = None;
        if weights.len() < spec.len() {
            return None;
        }
        let sum: f64 = weights.iter().sum();
        if (sum - 1.0).abs() > TOLERANCE {
            check.problem(None, ProblemKind::ProbabilitySum(sum));
            return None;
        }
        (intervals.len() == spec.len())
            .then(|| Self { cells: alias_table(&weights), intervals: intervals.into() })
    }

    #[inline]
    fn choose<R: Rng + ?Sized>(&self, rng: &mut R) -> &UniformSampler {
        // One draw serves both choices: of draw × cells, the high word is the cell and the low word is
        // uniform inside it. A cell's share is off by less than 2^-64.
        let product = u128::from(rng.next_u64()) * self.cells.len() as u128;
        let index = (product >> 64) as usize;
        let cell = &self.cells[index];
        &self.intervals[if (product as u64) < cell.own { index } else { cell.alias }]
    }

    #[inline(never)]
    pub(crate) fn int<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        self.choose(rng).int(rng)
    }

    #[inline(never)]
    pub(crate) fn float<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        self.choose(rng).float(rng)
    }
}

fn alias_table(weights: &[f64]) -> Box<[Cell]> {
    let count = weights.len() as f64;
    let sum: f64 = weights.iter().sum();
    // In units of a cell: what is below 1 is filled up from what is above.
    let mut level: Vec<f64> = weights.iter().map(|weight| weight / sum * count).collect();
    let mut cells: Vec<Cell> = (0..weights.len()).map(|i| Cell { own: u64::MAX, alias: i }).collect();
    let (mut poor, mut rich): (Vec<usize>, Vec<usize>) = (0..weights.len()).partition(|i| level[*i] < 1.0);
    while let (Some(needy), Some(&giver)) = (poor.last().copied(), rich.last()) {
        poor.pop();
        cells[needy] = Cell { own: (level[needy] * 2_f64.powi(64)) as u64, alias: giver };
        level[giver] -= 1.0 - level[needy];
        if level[giver] < 1.0 {
            rich.pop();
            poor.push(giver);
        }
    }
    // Whoever is left is full up to rounding and keeps its whole cell: except a weight of exactly zero,
    // which must never be drawn.
    for index in poor {
        if weights[index] == 0.0 {
            let heaviest = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b]));
            cells[index] = Cell { own: 0, alias: heaviest.unwrap_or(index) };
        }
    }
    cells.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_gives_every_interval_its_share() {
        for weights in [
            vec![1.0],
            vec![0.5, 0.5],
            vec![0.1, 0.2, 0.7],
            vec![0.0, 1.0, 0.0],
            vec![1e-12, 1.0 - 1e-12],
            (0..1000).map(|i| f64::from(i) / 499_500.0).collect(),
        ] {
            let cells = alias_table(&weights);
            let mut share = vec![0.0; weights.len()];
            for (i, cell) in cells.iter().enumerate() {
                let own = cell.own as f64 / 2_f64.powi(64);
                share[i] += own / weights.len() as f64;
                share[cell.alias] += (1.0 - own) / weights.len() as f64;
            }
            for (share, weight) in share.iter().zip(&weights) {
                assert!((share - weight).abs() < 1e-12, "{share} {weight}");
            }
            for (i, cell) in cells.iter().enumerate() {
                assert!(weights[cell.alias] > 0.0);
                assert!(weights[i] > 0.0 || cell.own == 0);
            }
        }
    }
}
