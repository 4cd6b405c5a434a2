//! The rule at work without threads: a simulation with virtual time. Seeds are fixed, so nothing here can flake.

use super::*;
use waylay_plugin::Generator;

/// A thread without a barrier: when it is free again, and what it then settles (test, iterations, seconds).
type Thread = (f64, Option<(usize, u64, f64)>);

/// A pot in virtual time.
struct Simulation {
    ledger: Ledger,
    /// Seconds of one iteration of each test.
    durations: Vec<f64>,
    /// How much a single iteration's duration varies: 0 not at all, 1 exponentially.
    spread: f64,
    generator: Generator,
    now: f64,
    rounds: usize,
    threads: Vec<Thread>,
    busy: f64,
}

impl Simulation {
    fn new(policy: Policy, durations: &[f64], seed: u64) -> Simulation {
        let mut ledger = Ledger::new(policy);
        ledger.accounts = durations.iter().map(|_| Account::default()).collect();
        Simulation {
            ledger,
            durations: durations.to_vec(),
            spread: 0.1,
            generator: Generator::new(seed, 0),
            now: 0.0,
            rounds: 0,
            threads: Vec::new(),
            busy: 0.0,
        }
    }

    fn draw(&mut self, count: usize) -> Vec<Draw> {
        let drawn = self.ledger.draw(count, &mut || self.generator.unit());
        self.ledger.begin(&drawn);
        drawn
    }

    /// Iterations and seconds of a turn, as the host would run it.
    fn run(&mut self, draw: Draw) -> (u64, f64) {
        let average = self.durations[draw.test];
        let limit = draw.limit.map_or(f64::INFINITY, |limit| limit.as_secs_f64());
        // Many short iterations are as good as their mean.
        if draw.times > 50 {
            let times = draw.times.min((limit / average).ceil() as u64).max(1);
            return (times, times as f64 * average);
        }
        let (mut times, mut seconds) = (0, 0.0);
        while times < draw.times && (times == 0 || seconds < limit) {
            let exponential = -(1.0 - self.generator.unit()).ln();
            seconds += average * (1.0 - self.spread + self.spread * exponential);
            times += 1;
        }
        (times, seconds)
    }

    fn round(&mut self, threads: usize) {
        let drawn = self.draw(threads);
        let mut longest = 0.0f64;
        for draw in drawn {
            let (times, seconds) = self.run(draw);
            self.ledger.settle(draw.test, times, seconds);
            longest = longest.max(seconds);
            self.busy += seconds;
        }
        self.now += longest;
        self.rounds += 1;
    }

    fn rounds_until(&mut self, threads: usize, end: f64) {
        while self.now < end {
            self.round(threads);
        }
    }

    fn free_until(&mut self, threads: usize, end: f64) {
        self.threads.resize(threads, (0.0, None));
        while self.now < end {
            let next = (0..threads).min_by(|a, b| self.threads[*a].0.total_cmp(&self.threads[*b].0)).unwrap();
            self.now = self.threads[next].0;
            if let Some((test, times, seconds)) = self.threads[next].1.take() {
                self.ledger.settle(test, times, seconds);
                self.busy += seconds;
            }
            let draw = self.draw(1)[0];
            let (times, seconds) = self.run(draw);
            self.threads[next] = (self.now + seconds, Some((draw.test, times, seconds)));
        }
    }

    /// Coefficient of variation of the given times.
    fn variation(&self) -> f64 {
        let given: Vec<f64> = self.ledger.accounts.iter().map(|account| account.given).collect();
        let mean = given.iter().sum::<f64>() / given.len() as f64;
        let variance = given.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / given.len() as f64;
        variance.sqrt() / mean
    }
}

/// 27 durations from 10 µs to 100 ms, each the same factor longer than the one before.
fn paper() -> Vec<f64> {
    (0..27).map(|test| 10e-6 * 10_000f64.powf(f64::from(test) / 26.0)).collect()
}

const SEEDS: std::ops::Range<u64> = 0..4;

#[test]
fn total_times_converge_in_rounds() {
    for seed in SEEDS {
        let mut pot = Simulation::new(Policy::default(), &paper(), seed);
        pot.rounds_until(4, 10.0);
        assert!(pot.variation() < 0.10, "seed {seed}: {} after 10 s", pot.variation());
        pot.rounds_until(4, 60.0);
        assert!(pot.variation() < 0.02, "seed {seed}: {} after 60 s", pot.variation());
    }
}

#[test]
fn total_times_converge_without_rounds_and_no_thread_is_idle() {
    for seed in SEEDS {
        let mut pot = Simulation::new(Policy::default(), &paper(), seed);
        pot.free_until(4, 10.0);
        assert!(pot.variation() < 0.10, "seed {seed}: {} after 10 s", pot.variation());
        pot.free_until(4, 60.0);
        assert!(pot.variation() < 0.02, "seed {seed}: {} after 60 s", pot.variation());
        assert!(pot.busy > 0.99 * 4.0 * pot.now);
    }
}

#[test]
fn durations_that_vary_exponentially_cost_little_fairness() {
    for seed in SEEDS {
        let mut pot = Simulation::new(Policy::default(), &paper(), seed);
        pot.spread = 1.0;
        pot.rounds_until(4, 60.0);
        // A single iteration of the longest test then deviates by as much as it lasts, and the length of all turns with it.
        assert!(pot.variation() < 0.06, "seed {seed}: {}", pot.variation());
    }
}

/// The derivation's claim about the paper's text: corrected twice, the short tests get almost everything.
#[test]
fn the_literal_rule_gives_time_in_proportion_to_one_over_the_average() {
    let policy = Policy { rule: Rule::Literal, ..Policy::default() };
    let mut pot = Simulation::new(policy, &paper(), 1);
    pot.rounds_until(4, 60.0);
    assert!(pot.variation() > 1.0, "{}", pot.variation());

    // One at a time nothing is distinct about it: the expected time is proportional to 1/a exactly. 2000 rounds of 1 ms
    // with P = 0.8 and 0.2 give the first test 80 % with a standard deviation of 0.9 %.
    let mut pair = Simulation::new(policy, &[0.25e-3, 1e-3], 2);
    (0..2000).for_each(|_| pair.round(1));
    let first =
        pair.ledger.accounts[0].given / (pair.ledger.accounts[0].given + pair.ledger.accounts[1].given);
    assert!((first - 0.8).abs() < 0.05, "{first}");
}

/// A test that becomes a hundred times longer or shorter: within ten rounds nobody is further off than before.
#[test]
fn fairness_is_back_within_ten_rounds_of_a_change_by_a_hundred_times() {
    for seed in SEEDS {
        for (test, factor) in [(13, 100.0), (26, 0.01)] {
            let mut pot = Simulation::new(Policy::default(), &paper(), seed);
            pot.rounds_until(4, 30.0);
            pot.durations[test] *= factor;
            (0..10).for_each(|_| pot.round(4));
            let after = pot.variation();
            assert!(after < 0.02, "seed {seed}, times {factor}: {after} ten rounds after the change");
        }
    }
}

#[test]
fn shares_are_kept() {
    let mut pot = Simulation::new(Policy::default(), &[1e-3, 5e-3, 20e-3, 1e-4], 3);
    pot.ledger.accounts[1].share = 3.0;
    pot.rounds_until(2, 60.0);
    let total: f64 = pot.ledger.accounts.iter().map(|account| account.given).sum();
    for (test, account) in pot.ledger.accounts.iter().enumerate() {
        let (asked, got) = (pot.ledger.asked(test), account.given / total);
        assert!((got / asked - 1.0).abs() < 0.03, "test {test}: asked {asked}, got {got}");
    }
}

#[test]
fn the_first_rounds_measure_every_test_once() {
    let mut pot = Simulation::new(Policy::default(), &paper(), 4);
    let mut seen = Vec::new();
    for _ in 0..7 {
        let drawn = pot.draw(4);
        let known = |draw: &Draw| pot.ledger.accounts[draw.test].average.is_some();
        assert!(drawn.iter().filter(|draw| !known(draw)).all(|draw| draw.times == 1));
        seen.extend(drawn.iter().filter(|draw| !known(draw)).map(|draw| draw.test));
        drawn.iter().for_each(|draw| pot.ledger.settle(draw.test, draw.times, 1e-3));
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..27).collect::<Vec<_>>());
}

#[test]
fn a_round_holds_distinct_tests_as_long_as_there_are_so_many() {
    let mut pot = Simulation::new(Policy::default(), &paper(), 5);
    for _ in 0..200 {
        let mut tests: Vec<usize> = pot.draw(27).iter().map(|draw| draw.test).collect();
        pot.ledger.accounts.iter_mut().for_each(|account| account.running = 0);
        tests.sort_unstable();
        tests.dedup();
        assert_eq!(tests.len(), 27);
    }
    // Five threads, two tests left: no thread is idle, and both tests run.
    pot.ledger.accounts.iter_mut().skip(2).for_each(|account| account.retired = true);
    let mut tests: Vec<usize> = pot.draw(5).iter().map(|draw| draw.test).collect();
    tests.sort_unstable();
    assert!(tests == [0, 0, 0, 1, 1] || tests == [0, 0, 1, 1, 1], "{tests:?}");
    pot.ledger.accounts.iter_mut().for_each(|account| account.retired = true);
    assert!(pot.draw(5).is_empty());
}

#[test]
fn as_many_threads_as_tests_still_share_the_time() {
    // Every round holds every test; only the number of repeats can even out what rounding does.
    let mut pot = Simulation::new(Policy::default(), &[10e-3, 7e-3, 3e-3, 1e-6], 6);
    pot.rounds_until(4, 30.0);
    assert!(pot.variation() < 0.02, "{}", pot.variation());
}

#[test]
fn a_test_without_duration_does_not_take_the_pot_with_it() {
    let mut pot = Simulation::new(Policy::default(), &[0.0, 1e-3, 10e-3], 7);
    for _ in 0..2000 {
        let drawn = pot.draw(1);
        for draw in drawn {
            assert!(draw.times >= 1 && draw.times <= MOST_REPEATS as u64);
            let seconds = pot.durations[draw.test] * draw.times as f64;
            pot.ledger.settle(draw.test, draw.times, seconds);
        }
    }
    let given: Vec<f64> = pot.ledger.accounts.iter().map(|account| account.given).collect();
    assert!((given[1] / given[2] - 1.0).abs() < 0.1, "{given:?}");
}

#[test]
fn a_test_longer_than_any_turn_runs_once_and_rarely() {
    let mut pot = Simulation::new(Policy::default(), &[30.0, 1e-3, 1e-2, 0.1], 8);
    pot.free_until(2, 1200.0);
    // 600 s each, in steps of 30 s: half a step is 2.5 %.
    assert!(pot.variation() < 0.04, "{}", pot.variation());
}

#[test]
fn what_was_known_before_a_restart_is_used() {
    let mut ledger = Ledger::new(Policy::default());
    ledger.accounts = vec![Account::new(1.0, Some(10e-3), 5.0), Account::new(1.0, Some(1e-3), 1.0)];
    let mut generator = Generator::new(9, 0);
    let drawn = ledger.draw(1, &mut || generator.unit());
    // Four seconds behind is as far as counts: e^(2·8) against e^(2·-200) leaves no doubt.
    assert_eq!((drawn[0].test, drawn[0].times), (1, 10));
}

#[test]
fn the_choice_stays_random() {
    // Among tests that are even the draw is uniform: 27 tests, 27,000 draws, 1000 each with a standard deviation of 31.
    // Seven of them, for any of 27, is a false alarm of less than 1e-10.
    let mut ledger = Ledger::new(Policy::default());
    ledger.accounts = paper().iter().map(|average| Account::new(1.0, Some(*average), 3.0)).collect();
    let mut generator = Generator::new(10, 0);
    let mut counts = [0u32; 27];
    for _ in 0..27_000 {
        counts[ledger.draw(1, &mut || generator.unit())[0].test] += 1;
    }
    assert!(counts.iter().all(|count| count.abs_diff(1000) < 220), "{counts:?}");
}
