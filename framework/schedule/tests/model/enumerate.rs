//! Exact probabilities: a source that goes through all its outcomes, and fractions to add them up.

use std::sync::{Arc, Mutex};

use waylay_schedule::{Run, RunParameters, Source, Strategy};

use super::{Execution, Program, execute, finish};

/// A fraction in lowest terms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fraction {
    pub numerator: u128,
    pub denominator: u128,
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Fraction {
    pub const ZERO: Fraction = Fraction { numerator: 0, denominator: 1 };
    pub const ONE: Fraction = Fraction { numerator: 1, denominator: 1 };

    pub fn new(numerator: u128, denominator: u128) -> Fraction {
        let divisor = gcd(numerator, denominator);
        Fraction { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    pub fn plus(self, other: Fraction) -> Fraction {
        let shared = gcd(self.denominator, other.denominator);
        let denominator = self.denominator / shared * other.denominator;
        let left = self.numerator * (denominator / self.denominator);
        Fraction::new(left + other.numerator * (denominator / other.denominator), denominator)
    }

    pub fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<std::cmp::Ordering> {
        Some((self.numerator * other.denominator).cmp(&(other.numerator * self.denominator)))
    }
}

impl std::fmt::Debug for Fraction {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.numerator, self.denominator)
    }
}

#[derive(Debug, Default)]
struct State {
    /// The draws of this path: outcome and number of outcomes.
    path: Vec<(u64, u64)>,
    place: usize,
    /// The keys drawn in this run, in order of size.
    keys: Vec<u64>,
}

/// A source whose runs go through all outcomes of all draws, depth first.
#[derive(Clone, Debug, Default)]
pub struct Enumerator {
    state: Arc<Mutex<State>>,
}

impl Enumerator {
    /// The probability of the path just taken.
    fn weight(&self) -> Fraction {
        let state = self.state.lock().unwrap();
        let outcomes = state.path.iter().map(|&(_, outcomes)| u128::from(outcomes)).product();
        Fraction { numerator: 1, denominator: outcomes }
    }

    /// Goes to the next path; false when all were taken.
    fn advance(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        // A path may be shorter than the one before it.
        let taken = state.place;
        state.path.truncate(taken);
        while let Some((outcome, outcomes)) = state.path.pop() {
            if outcome + 1 < outcomes {
                state.path.push((outcome + 1, outcomes));
                return true;
            }
        }
        false
    }
}

impl Source for Enumerator {
    fn begin(&mut self, _run: Run) {
        let mut state = self.state.lock().unwrap();
        state.place = 0;
        state.keys.clear();
    }

    fn below(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        let mut state = self.state.lock().unwrap();
        let place = state.place;
        state.place += 1;
        if place == state.path.len() {
            state.path.push((0, bound));
        }
        assert_eq!(state.path[place].1, bound, "a strategy drew from something else than its source");
        state.path[place].0
    }

    /// Independent uniform keys have a uniform rank among all keys drawn before them.
    fn key(&mut self) -> u64 {
        let drawn = self.state.lock().unwrap().keys.len();
        let rank = self.below(drawn as u64 + 1) as usize;
        let mut state = self.state.lock().unwrap();
        let low = if rank == 0 { 0 } else { state.keys[rank - 1] };
        let high = state.keys.get(rank).copied().unwrap_or(u64::MAX);
        let key = low + (high - low) / 2;
        assert!(high - key > 4 && key - low > 4, "too many keys to tell apart");
        state.keys.insert(rank, key);
        key
    }
}

/// Every execution of a strategy with its probability.
pub fn executions<S: Strategy>(
    program: &Program,
    parameters: &RunParameters,
    strategy: impl FnOnce(Enumerator) -> S,
    mut each: impl FnMut(&Execution, Fraction),
) {
    let source = Enumerator::default();
    let mut strategy = strategy(source.clone());
    loop {
        strategy.begin(Run::default(), parameters);
        let execution = execute(program, &mut strategy);
        finish(&mut strategy, &execution);
        each(&execution, source.weight());
        if !source.advance() {
            return;
        }
    }
}

/// The exact probability of executions that are `wanted`.
pub fn probability<S: Strategy>(
    program: &Program,
    parameters: &RunParameters,
    strategy: impl FnOnce(Enumerator) -> S,
    wanted: impl Fn(&Execution) -> bool,
) -> Fraction {
    let (mut sum, mut total) = (Fraction::ZERO, Fraction::ZERO);
    executions(program, parameters, strategy, |execution, weight| {
        total = total.plus(weight);
        if wanted(execution) {
            sum = sum.plus(weight);
        }
    });
    assert_eq!(total, Fraction::ONE, "the probabilities do not add up");
    sum
}
