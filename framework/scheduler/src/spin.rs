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

    /// Notes a write. A thread that writes where it has not written before is at work, whatever it reads again and again: the
    /// bounds of a loop, the beginning of an array.
    pub fn writes(&mut self, switches: u64, code: usize, address: usize) {
        if self.since != switches {
            *self = Looks { since: switches, ..Looks::default() };
        }
        if self.places.iter().any(|place| place.code == code && place.address == address) {
            return;
        }
        self.places.iter_mut().for_each(|place| place.visits = 0);
        self.places[self.next] = Place { code, address, value: None, visits: 0 };
        self.next = (self.next + 1) % PLACES;
    }
}

/// Rounds of a loop that waits that are no steps: more than the locks of languages look before they sleep (Rust's: 100).
const ROUNDS: u32 = 128;

/// Where a run stands: how often the running thread changed so far, and the steps that were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Changes of the running thread.
    pub switches: u64,
    /// Steps.
    pub steps: u64,
}

/// A loop that says itself that it waits, by PAUSE.
///
/// To say so is a step. What the loop looks at right behind it is none: no other step lies between the two, so whoever is
/// to run before the look can run at the PAUSE. While no other thread runs, the next rounds are like the first: their looks
/// find what they found, and are no steps either, and neither is the PAUSE of such a round. A loop that goes on for ever like
/// that gets its steps back, or nobody else would ever run.
#[derive(Clone, Debug, Default)]
pub struct Spins {
    places: [Place; PLACES],
    next: usize,
    /// The switch after which they were noted.
    since: u64,
    /// The number of steps when the loop last said that it waits: nothing was a step since if there are as many now.
    paused: Option<u64>,
    /// Nothing was looked at since.
    fresh: bool,
    rounds: u32,
    /// Code of loops that went on for too long.
    endless: Vec<usize>,
}

impl Spins {
    fn follow(&mut self, switches: u64) {
        if self.since != switches {
            (self.since, self.places, self.next) = (switches, Default::default(), 0);
            (self.paused, self.fresh, self.rounds) = (None, false, 0);
        }
    }

    /// Whether the running thread only waits: it said so, and nothing was a step since.
    pub fn waits(&mut self, now: Now) -> bool {
        self.follow(now.switches);
        self.paused == Some(now.steps)
    }

    /// The code at this address says that it waits; says whether that is a step.
    pub fn is_step(&mut self, now: Now, code: usize) -> bool {
        self.fresh = false;
        if !self.waits(now) || self.endless.contains(&code) {
            return true;
        }
        self.rounds += 1;
        if self.rounds == ROUNDS {
            self.endless.push(code);
        }
        false
    }

    /// It was one: the thread goes on now.
    pub fn paused(&mut self, now: Now) {
        self.follow(now.switches);
        (self.paused, self.fresh, self.rounds) = (Some(now.steps), true, 0);
    }

    /// The thread is about to read; says whether that is one more look of a loop that waits, and so no step. `value` reads the
    /// memory, which was accessed from the same place before.
    pub fn looks(&mut self, now: Now, code: usize, address: usize, value: impl FnOnce() -> u64) -> bool {
        let waits = self.waits(now);
        let fresh = core::mem::take(&mut self.fresh) && waits;
        let known = self.places.iter_mut().find(|place| place.code == code && place.address == address);
        let Some(place) = known else {
            self.places[self.next] = Place { code, address, value: None, visits: 0 };
            self.next = (self.next + 1) % PLACES;
            return fresh;
        };
        let found = value();
        let same = place.value.replace(found) == Some(found);
        fresh || waits && same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop with a PAUSE and one load, which others never interrupt; the steps of so many rounds.
    fn steps_of(rounds: u32, spins: &mut Spins, now: &mut Now) -> u64 {
        let before = now.steps;
        for _ in 0..rounds {
            if !spins.looks(*now, 10, 100, || 1) {
                now.steps += 1;
            }
            if spins.is_step(*now, 20) {
                now.steps += 1;
                spins.paused(*now);
            }
        }
        now.steps - before
    }

    #[test]
    fn a_loop_that_waits_is_a_look_and_a_pause() {
        let (mut spins, mut now) = (Spins::default(), Now::default());
        assert_eq!(steps_of(100, &mut spins, &mut now), 2);
        now.steps += 1;
        assert_eq!(steps_of(50, &mut spins, &mut now), 2, "something else was a step");
        now.switches += 1;
        assert_eq!(steps_of(50, &mut spins, &mut now), 2, "another thread ran");
    }

    #[test]
    fn one_that_goes_on_for_ever_makes_steps_again() {
        let (mut spins, mut now) = (Spins::default(), Now::default());
        assert_eq!(steps_of(ROUNDS + 1, &mut spins, &mut now), 2);
        assert_eq!(steps_of(50, &mut spins, &mut now), 50, "one a round");
    }

    #[test]
    fn what_changes_is_a_step_unless_it_follows_the_pause() {
        let (mut spins, mut now) = (Spins::default(), Now { switches: 1, steps: 7 });
        assert!(!spins.looks(now, 10, 100, || 1) && !spins.looks(now, 10, 100, || 1));
        assert!(!spins.looks(now, 10, 100, || 1), "nobody said that this waits");
        now.steps += 3;
        assert!(spins.is_step(now, 20));
        spins.paused(now);
        assert!(
            spins.looks(now, 10, 100, || 2) && !spins.looks(now, 11, 108, || 0),
            "the first and no other"
        );
        assert!(!spins.looks(now, 10, 100, || 3), "its own thread may have written");
    }

    #[test]
    fn a_flag_that_does_not_change_is_waited_for() {
        let mut looks = Looks::default();
        let waits = (0..20).map(|_| looks.visit(1, 10, 100, || 0)).position(|waits| waits);
        // One visit to know the place, one to know the value.
        assert_eq!(waits, Some(FREE as usize + 2));
        assert!(!looks.visit(2, 10, 100, || 0), "another thread ran");
    }

    #[test]
    fn who_fills_an_array_works_and_who_counts_looks_may_wait() {
        let mut looks = Looks::default();
        let fills = |looks: &mut Looks, index: usize| {
            looks.writes(1, 12, 4096 + 4 * index);
            looks.visit(1, 10, 100, || 7)
        };
        assert!((0..100).all(|index| !fills(&mut looks, index)));
        let counts = |looks: &mut Looks| {
            looks.writes(2, 12, 4096);
            looks.visit(2, 10, 100, || 7)
        };
        assert!((0..100).any(|_| counts(&mut looks)));
    }

    #[test]
    fn what_changes_or_moves_is_work() {
        let mut looks = Looks::default();
        assert!((0..100u64).all(|value| !looks.visit(1, 10, 100, || value)));
        assert!((0..100).all(|address| !looks.visit(1, 11, address, || 0)));
    }
}
