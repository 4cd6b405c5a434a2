//! Where priorities change: points counted in steps, drawn once for each phase.

use super::LEVEL;
use crate::source::Source;

/// How many change points, and where they may lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// d: one more than the change points.
    pub depth: u32,
    /// k: the first change point is uniform in `1..=steps`; 0 means no change points at all.
    pub steps: u64,
    /// The later ones are uniform in this many steps from the first on; `None`: anywhere in `1..=steps`.
    pub radius: Option<u64>,
}

/// At this step, the thread that made it drops to this priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangePoint {
    pub(super) step: u64,
    pub(super) priority: u64,
}

/// The change points of a phase in the order they take effect.
#[derive(Clone, Debug, Default)]
pub(super) struct Points {
    points: Vec<ChangePoint>,
    passed: usize,
}

impl Points {
    pub(super) fn draw(&mut self, changes: Changes, source: &mut impl Source) {
        self.passed = 0;
        self.points.clear();
        let Changes { depth, steps, radius } = changes;
        if steps == 0 {
            return;
        }
        let mut first = 0;
        for i in 1..depth {
            let step = match radius {
                // Beyond the length of a run nothing changes, and the bound does not count it.
                Some(radius) if i > 1 => first + source.below(radius.min(steps).max(1)),
                _ => 1 + source.below(steps),
            };
            if i == 1 {
                first = step;
            }
            self.points.push(ChangePoint { step, priority: LEVEL + u64::from(depth - i) });
        }
        // Stable, so of two points at one step the later has the last word, as in Fig. 7.
        self.points.sort_by_key(|point| point.step);
    }

    /// The step of the next one.
    pub(super) fn next_step(&self) -> u64 {
        self.points.get(self.passed).map_or(u64::MAX, |point| point.step)
    }

    /// The next one, once so many steps were counted; then it is passed.
    pub(super) fn pass(&mut self, counted: u64) -> Option<ChangePoint> {
        let point = *self.points.get(self.passed)?;
        (point.step <= counted).then(|| {
            self.passed += 1;
            point
        })
    }
}
