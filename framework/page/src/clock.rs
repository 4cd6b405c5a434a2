//! Ticks: time that host and driver read alike and that costs a few nanoseconds.
//!
//! On x86-64 with an invariant time stamp counter a tick is one count of it; elsewhere it is a nanosecond of the
//! monotonic clock. The driver chooses once, stores the choice in the page, and converts; the host only stores ticks.

use std::time::{Duration, Instant};

/// A moment, in units that only a [`Clock`] can turn into time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u64);

impl Ticks {
    /// Ticks that passed since `earlier`; zero when `earlier` is later (another core's counter may be slightly ahead).
    pub fn since(self, earlier: Ticks) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Where ticks come from. The numbers are part of the page's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Source {
    /// Nanoseconds of the monotonic clock.
    Monotonic = 1,
    /// The processor's time stamp counter.
    Tsc = 2,
}

impl Source {
    /// The source with that number, if it is one and this machine has it.
    pub fn from_number(number: u32) -> Option<Source> {
        match number {
            1 => Some(Source::Monotonic),
            2 if cfg!(target_arch = "x86_64") => Some(Source::Tsc),
            _ => None,
        }
    }

    /// Reads the source.
    #[inline(always)]
    pub fn now(self) -> Ticks {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: rdtsc exists on every x86-64 processor and touches no memory.
            Source::Tsc => Ticks(unsafe { core::arch::x86_64::_rdtsc() }),
            _ => Ticks(crate::sys::monotonic_nanos()),
        }
    }
}

/// Turns ticks into time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    ticks_per_second: f64,
}

impl Clock {
    /// Chooses the best source of this machine and measures its rate (takes about 20 ms for the counter).
    pub fn calibrate() -> Clock {
        if !crate::sys::has_invariant_tsc() {
            return Clock::monotonic();
        }
        // The reading of the slower clock may be preempted; the fastest of three brackets is the least disturbed.
        let bracket = || {
            (0..3)
                .map(|_| {
                    let before = Source::Tsc.now();
                    let instant = Instant::now();
                    let after = Source::Tsc.now();
                    (after.since(before), before.0 + after.since(before) / 2, instant)
                })
                .min_by_key(|(width, _, _)| *width)
                .map(|(_, ticks, instant)| (ticks, instant))
                .expect("three samples were taken")
        };
        let (ticks_begin, begin) = bracket();
        std::thread::sleep(Duration::from_millis(20));
        let (ticks_end, end) = bracket();
        let seconds = end.duration_since(begin).as_secs_f64();
        Clock { source: Source::Tsc, ticks_per_second: (ticks_end - ticks_begin) as f64 / seconds }
    }

    /// The monotonic clock, which needs no measuring.
    pub fn monotonic() -> Clock {
        Clock { source: Source::Monotonic, ticks_per_second: 1e9 }
    }

    /// Where this clock's ticks come from.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Now, in ticks.
    pub fn now(&self) -> Ticks {
        self.source.now()
    }

    /// How long so many ticks are.
    pub fn duration(&self, ticks: u64) -> Duration {
        Duration::from_secs_f64(ticks as f64 / self.ticks_per_second)
    }

    /// How many nanoseconds so many ticks are, with fractions.
    pub fn nanos(&self, ticks: f64) -> f64 {
        ticks / self.ticks_per_second * 1e9
    }

    /// How many ticks that is.
    pub fn ticks(&self, duration: Duration) -> u64 {
        (duration.as_secs_f64() * self.ticks_per_second) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibrated_clock_agrees_with_the_monotonic_clock_within_one_per_cent() {
        // A reading that is preempted on a loaded machine is off by milliseconds; a wrong rate is off every time.
        let agrees = |_| {
            let clock = Clock::calibrate();
            let (ticks, instant) = (clock.now(), Instant::now());
            std::thread::sleep(Duration::from_millis(20));
            let (measured, real) = (clock.duration(clock.now().since(ticks)), instant.elapsed());
            measured.abs_diff(real) < real / 100
        };
        assert!((0..50).any(agrees));
    }

    #[test]
    fn ticks_never_run_backwards_in_since() {
        assert_eq!(Ticks(5).since(Ticks(9)), 0);
        assert_eq!(Ticks(9).since(Ticks(5)), 4);
    }
}
