//! Virtual time: what the program's clocks say.
//!
//! Time stands still while the program computes, moves a little with every step and every look at a clock (so that
//! loops that wait for a time to come do end), and jumps to the deadline of a wait that times out.

/// A point in virtual time, in nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

/// One look at a clock takes this long: about what the real call takes.
const LOOK: u64 = 50;

/// The virtual clock of a run.
#[derive(Debug, Default)]
pub struct Clock {
    now: Moment,
}

impl Clock {
    /// The time of a reader, which moves on a little.
    pub fn look(&mut self) -> Moment {
        self.now.0 += LOOK;
        self.now
    }

    /// The time, which stands still for who asks this way.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Jumps forward; going back is impossible.
    pub fn advance_to(&mut self, moment: Moment) {
        self.now = self.now.max(moment);
    }

    /// The moment that lies `nanoseconds` ahead.
    pub fn after(&self, nanoseconds: u64) -> Moment {
        Moment(self.now.0.saturating_add(nanoseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_only_moves_forward() {
        let mut clock = Clock::default();
        let first = clock.look();
        clock.advance_to(Moment(1_000_000));
        clock.advance_to(Moment(10));
        assert!(clock.look() > first);
        assert!(clock.now() > Moment(1_000_000));
        assert_eq!(clock.after(u64::MAX), Moment(u64::MAX));
    }
}
