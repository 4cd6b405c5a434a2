//! Virtual time: what the program's clocks say.
//!
//! Time stands still while the program computes, moves a little with every look at a clock (so that loops that wait for a
//! time to come do end), and jumps to the deadline of a wait that times out. A loop that does nothing but look sees time run
//! faster: two seconds would take forty million looks otherwise. Processor time is what looks took, not what jumps did.

/// A point in virtual time, in nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// A moment that does not come in any run: a wait until then ends by what it waits for, or not at all.
    pub const NEVER: Moment = Moment(u64::MAX);
}

/// Who waits for a hundred years means for ever, as the kernel does, whose own times end after 292: such a wait does not end by
/// its deadline, and a program that relies on that is right.
const FOREVER: u64 = 100 * 365 * 24 * 3600 * 1_000_000_000;
/// The kernel's last moment. What programs are shown is computed from moments, and has room for as much again.
const LAST: u64 = i64::MAX as u64;

/// One look at a clock takes this long: about what the real call takes.
const LOOK: u64 = 50;
/// Looks, with nothing changed in between, that take no longer.
const FEW: u32 = 64;
/// Then a look takes this part of the time since the first one, so that whoever waits overshoots by no more than that,
const PART: u64 = 64;
/// and no more than this: who computes and measures often should not see hours.
const LONGEST: u64 = 10_000;

/// The virtual clock of a run.
#[derive(Debug, Default)]
pub struct Clock {
    now: Moment,
    /// The part of that which looks took.
    busy: u64,
    watched: Watched,
}

/// A series of looks between which nothing changed.
#[derive(Debug, Default)]
struct Watched {
    /// What changed last before it.
    change: u64,
    since: Moment,
    looks: u32,
}

impl Clock {
    /// The time of a reader, which moves on a little. `change` is a number that is another one whenever something has
    /// changed.
    pub fn look(&mut self, change: u64) -> Moment {
        if self.watched.change != change {
            self.watched = Watched { change, since: self.now, looks: 0 };
        }
        self.watched.looks = self.watched.looks.saturating_add(1);
        let length = if self.watched.looks > FEW {
            ((self.now.0 - self.watched.since.0) / PART).clamp(LOOK, LONGEST)
        } else {
            LOOK
        };
        self.now.0 = self.now.0.saturating_add(length);
        self.busy += length;
        self.now
    }

    /// The processor time of all threads.
    pub fn busy(&self) -> u64 {
        self.busy
    }

    /// The time, which stands still for who asks this way.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Jumps forward; going back is impossible.
    pub fn advance_to(&mut self, moment: Moment) {
        self.now = self.now.max(moment);
    }

    /// The moment that lies `nanoseconds` ahead; [`Moment::NEVER`] if that is as good as for ever.
    pub fn after(&self, nanoseconds: u64) -> Moment {
        let moment = self.now.0.saturating_add(nanoseconds);
        if nanoseconds >= FOREVER || moment >= LAST { Moment::NEVER } else { Moment(moment) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_only_moves_forward() {
        let mut clock = Clock::default();
        let first = clock.look(0);
        clock.advance_to(Moment(1_000_000));
        clock.advance_to(Moment(10));
        assert!(clock.look(0) > first);
        assert!(clock.now() > Moment(1_000_000));
        for forever in [u64::MAX, i64::MAX as u64, u64::from(u32::MAX) * 1_000_000_000] {
            assert_eq!(clock.after(forever), Moment::NEVER);
        }
        clock.advance_to(Moment(LAST - 10));
        assert_eq!(clock.after(10), Moment::NEVER);
        assert_eq!(clock.after(9), Moment(LAST - 1));
        assert_eq!(clock.busy(), 2 * LOOK, "jumps are no work");
    }

    #[test]
    fn who_only_looks_sees_seconds_pass_and_overshoots_by_little() {
        for wanted in [1_000_000, 2_000_000_000] {
            let mut clock = Clock::default();
            let looks = (0..).take_while(|_| clock.look(7).0 < wanted).count();
            assert!(looks < 300_000, "{looks}");
            assert!(clock.now().0 - wanted <= (wanted / PART).min(LONGEST));
        }
        let mut clock = Clock::default();
        (0..1_000_000).for_each(|change| assert_eq!(clock.look(change).0, (change + 1) * LOOK));
    }
}
