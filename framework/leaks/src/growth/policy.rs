//! The settings of the policy and the constants derived from them.

use std::time::Duration;

/// Under the null hypothesis at most this share of the survivors lies in one of the two halves of a window.
///
/// A fill with time constant w puts 1 / (1 + exp(T / 2w)) of its survivors into the newer half of a window
/// of length T: 9.5 % for T = [`WINDOW_PER_WARM_UP`] · w.
pub const MINOR_SHARE: f64 = 0.1;

/// Length of the shortest window, in warm-ups.
pub const WINDOW_PER_WARM_UP: f64 = 4.5;

/// A window of length T is looked at again after T divided by this.
pub const LOOKS_PER_WINDOW: u32 = 8;

/// What counts as a leak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeakPolicy {
    /// How long a test may take to fill its caches: their time constant. The shortest window is 4.5 times
    /// as long, so nothing is found before that.
    pub warm_up: Duration,
    /// Iterations a window must hold. What lives as long as an iteration is not left over.
    pub minimum_iterations: u64,
    /// Accepted false findings per test and hour.
    pub false_alarms_per_hour: f64,
}

impl Default for LeakPolicy {
    /// A warm-up of 8 seconds puts the first finding at 36 seconds plus the age of what still dies: within
    /// a minute.
    fn default() -> LeakPolicy {
        LeakPolicy { warm_up: Duration::from_secs(8), minimum_iterations: 32, false_alarms_per_hour: 1e-6 }
    }
}

impl LeakPolicy {
    /// Length of the windows of a level; each level doubles it.
    pub fn window(&self, level: u32) -> Duration {
        let shortest = self.warm_up.max(Duration::from_millis(1)).mul_f64(WINDOW_PER_WARM_UP);
        shortest.saturating_mul(1u32.checked_shl(level).unwrap_or(u32::MAX))
    }

    /// How long after one look at a level the next one is due.
    pub fn pause(&self, level: u32) -> Duration {
        self.window(level) / LOOKS_PER_WINDOW
    }

    /// Looks per hour over all levels: those of the shortest window, and half as many for every doubling.
    pub fn looks_per_hour(&self) -> f64 {
        2.0 * 3600.0 / self.pause(0).as_secs_f64()
    }

    /// The p-value one look at one of `candidates` must stay below.
    pub fn significance(&self, candidates: usize) -> f64 {
        self.false_alarms_per_hour / (self.looks_per_hour() * candidates.max(1) as f64)
    }
}

/// Which levels are due for a look: the part of the policy that has a memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks {
    last: Vec<Duration>,
}

impl Looks {
    /// The window lengths to look at now, given observation since `start`. Each is due again a pause later.
    pub(super) fn due(&mut self, policy: &LeakPolicy, start: Duration, now: Duration) -> Vec<Duration> {
        let mut windows = Vec::new();
        for level in 0..u32::BITS {
            let window = policy.window(level);
            if now.saturating_sub(start) < window {
                break;
            }
            let level = level as usize;
            if self.last.len() <= level {
                self.last.push(now);
            } else if now.saturating_sub(self.last[level]) < policy.pause(level as u32) {
                continue;
            }
            self.last[level] = now;
            windows.push(window);
        }
        windows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_a_fill_is_below_the_minor_share() {
        let late = 1.0 / (1.0 + (WINDOW_PER_WARM_UP / 2.0_f64).exp());
        assert!(late < MINOR_SHARE, "{late}");
    }

    #[test]
    fn an_hour_has_no_more_looks_than_the_budget_divides_by() {
        let policy = LeakPolicy::default();
        let mut looks = Looks::default();
        let mut count = 0;
        for tenth in 0..36_000 {
            count += looks.due(&policy, Duration::ZERO, Duration::from_millis(tenth * 100)).len();
        }
        assert!(count as f64 <= policy.looks_per_hour(), "{count}");
        assert!(count > 500, "{count}");
    }

    #[test]
    fn the_first_look_is_within_a_minute() {
        assert!(LeakPolicy::default().window(0) <= Duration::from_secs(36));
    }
}
