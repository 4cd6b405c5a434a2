//! Recognising a loop that waits for another thread.
//!
//! While no other thread runs, memory changes by the running thread alone. If it comes by one place in the code again
//! and again, at one address, and finds what it found the last time, it waits. A strategy should know: it would let the
//! thread run for ever otherwise.

/// Visits that found nothing new, after which a thread waits: loops that read a value a few times are no spin loops.
const FREE: u32 = 8;
/// Places remembered: a waiting loop reads a flag or two, not many.
const PLACES: usize = 8;

/// What the running thread looked at since it runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    places: [Place; PLACES],
    next: usize,
    /// The switch after which they were noted.
    since: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    code: usize,
    address: usize,
    value: Option<u64>,
    visits: u32,
}

impl Looks {
    /// Notes a visit; says whether the thread waits. `value` reads the memory, which was accessed from the same place
    /// before; `switches` is how often the running thread changed so far.
    pub fn visit(&mut self, switches: u64, code: usize, address: usize, value: impl FnOnce() -> u64) -> bool {
        if self.since != switches {
            *self = Looks { since: switches, ..Looks::default() };
        }
        let known = self.places.iter_mut().find(|place| place.code == code && place.address == address);
        let Some(place) = known else {
            self.places[self.next] = Place { code, address, value: None, visits: 0 };
            self.next = (self.next + 1) % PLACES;
            return false;
        };
        let found = value();
        if place.value.replace(found) == Some(found) {
            place.visits += 1;
        } else {
            place.visits = 0;
        }
        place.visits > FREE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_that_does_not_change_is_waited_for() {
        let mut looks = Looks::default();
        let waits = (0..20).map(|_| looks.visit(1, 10, 100, || 0)).position(|waits| waits);
        // One visit to know the place, one to know the value.
        assert_eq!(waits, Some(FREE as usize + 2));
        assert!(!looks.visit(2, 10, 100, || 0), "another thread ran");
    }

    #[test]
    fn what_changes_or_moves_is_work() {
        let mut looks = Looks::default();
        assert!((0..100u64).all(|value| !looks.visit(1, 10, 100, || value)));
        assert!((0..100).all(|address| !looks.visit(1, 11, address, || 0)));
    }
}
