//! Which tests run next, and how often: every test gets the time that it is meant to get, long or short, and which ones
//! meet stays a matter of chance. Pure: averages, times and random numbers in, draws out. No clock and no thread.
//!
//! # Where it comes from
//!
//! "Testing Concurrency Runtime via a Stochastic Stress Framework" (Gunal and Patil, 2010), section 4.3.1: from the
//! average duration a_i of each test, N distinct tests are drawn with P_i proportional to 1/a_i; each runs on a thread
//! of its own C_i = max(a)/a_i times; statistics are updated; again. Its goal is that all tests get the same time.
//!
//! # What that gives, read literally
//!
//! One draw of test i takes C_i·a_i = max(a), whatever i. So with P_i proportional to 1/a_i the expected time of test
//! i per draw is proportional to max(a)/a_i: the short test, which repeating already made as long as the others, is
//! also drawn more often. With durations from 10 µs to 100 ms the times differ by 10,000 times. Drawing *distinct*
//! tests softens that (a test is in a round at most once) and no more: the simulation below has a coefficient of
//! variation of about 160 %. That rule is [`Rule::Literal`], for comparison.
//!
//! # What converges
//!
//! Take the paper's average over what a draw really runs: the turn, with its repeats, of length L_i = C_i·a_i. Then P_i
//! proportional to 1/L_i gives every test the same expected time per draw, P_i·L_i = const. Where C_i = max(a)/a_i all
//! L_i are equal and the draw is uniform; where C_i is bounded the long turns are drawn less often.
//!
//! Equal expectations are not enough. After n turns of about τ each, the time of a test drawn independently deviates
//! by τ·√n: with 27 tests up to 100 ms, 4 threads and 60 s, n ≈ 89 and the coefficient of variation is 1/√89 ≈ 11 %,
//! falling only with the square root of time. Distinct draws, rounding, averages that lag and durations that change add
//! bias that never falls. So the weights are corrected by the time already given. With G_i the time that test i
//! got, s_i its share and d_i = s_i·ΣG/Σs − G_i what it is owed:
//!
//! ```text
//! w_i = s_i / L_i · exp(β · d_i / τ)
//! ```
//!
//! A test that is one turn ahead is e^β times less likely than one that is even. Linearised around d = 0 the number of
//! turns that a test is ahead is a random walk pulled back with strength β, whose stationary variance is 1/(2β) turns:
//! it does not grow with time, so the coefficient of variation falls as 1/t. With [`EAGERNESS`] β = 2 the deviation is
//! half a turn; for the numbers above that is 50 ms of 8.9 s, about 0.6 %, and 3.4 % after 10 s. The simulation below
//! agrees (0.7 % and 4 %). The choice stays random: among tests that are even it is uniform, and every test can be
//! drawn at any time.
//!
//! # Decisions
//!
//! - **First round.** A test without an average is drawn before all that have one, uniformly, for a single iteration.
//! - **Length of a turn.** τ = max(a), within `shortest_turn` and `longest_turn`: below, drawing would cost more than
//!   running; above, a single long test would make all others' turns as long. C_i = τ/a_i, rounded up or down at
//!   random so that the expected length is exact. A test that is longer than τ runs once.
//! - **Cap.** A turn ends after twice its planned length, whatever C_i says, and C_i is at most [`MOST_REPEATS`]. The
//!   host looks between iterations, so a cancel waits for one iteration and never for a turn.
//! - **Durations that vary.** The average follows the last turns; a change of more than [`BELIEVED`] times is believed
//!   at once. What a wrong average costs is paid back through d_i. A test of no duration counts as [`LEAST_AVERAGE`].
//! - **More threads than tests** (some were retired): tests are drawn again, those that run on the fewest threads
//!   first, so that no thread is idle and none of them runs alone.
//! - **Retired tests** are neither drawn nor counted: the others share the time.
//! - **A test that is far behind** (added late, or never drawn for long) catches up with the weight of one that is
//!   [`MOST_OWED`] turns behind, so that it does not push all others out.
//! - **Restart.** Averages and given times are the caller's to keep; an [`Account`] begins with them.

/// Which rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Every test gets its share of the time.
    Fair,
    /// As the paper's text says.
    Literal,
}

/// What does not change during a campaign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// The rule.
    pub rule: Rule,
    /// Seconds that a turn lasts at least, by repeating short tests.
    pub shortest_turn: f64,
    /// Seconds that a turn of repeated tests lasts at most.
    pub longest_turn: f64,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { rule: Rule::Fair, shortest_turn: 0.010, longest_turn: 1.0 }
    }
}

/// β: how strongly what a test is owed changes its chance. Larger is fairer and less random.
pub const EAGERNESS: f64 = 2.0;
/// Turns that a test can be behind with effect.
pub const MOST_OWED: f64 = 8.0;
/// Most iterations of one turn.
pub const MOST_REPEATS: f64 = 10_000_000.0;
/// Seconds that a test counts as at least: a clock may not see less.
pub const LEAST_AVERAGE: f64 = 20e-9;
/// Factor by which a turn's average may differ from the known one and still be noise.
pub const BELIEVED: f64 = 4.0;
/// Part of the difference that one turn within [`BELIEVED`] moves the average.
const LEARNED: f64 = 0.3;

/// One test.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Its share of the time, relative to the others.
    pub share: f64,
    /// Seconds of one iteration, when it is known.
    pub average: Option<f64>,
    /// Seconds that it was given.
    pub given: f64,
    /// Turns of it that are drawn and not settled.
    pub running: u32,
    /// Not to be drawn.
    pub retired: bool,
    /// Iterations and seconds since the ledger began, for the literal rule's plain average.
    whole: (u64, f64),
}

impl Default for Account {
    fn default() -> Account {
        Account { share: 1.0, average: None, given: 0.0, running: 0, retired: false, whole: (0, 0.0) }
    }
}

impl Account {
    /// A test with that share and what is known of it from before.
    pub fn new(share: f64, average: Option<f64>, given: f64) -> Account {
        Account { share, average, given, ..Account::default() }
    }
}

/// One turn: a test, to be run so often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// The test's place in the ledger.
    pub test: usize,
    /// How many iterations.
    pub times: u64,
    /// No iteration begins later than this into the turn.
    pub limit: Option<std::time::Duration>,
}

/// All tests of a pot.
#[derive(Clone, Debug)]
pub struct Ledger {
    policy: Policy,
    /// By test.
    pub accounts: Vec<Account>,
}

impl Ledger {
    /// A ledger without tests.
    pub fn new(policy: Policy) -> Ledger {
        Ledger { policy, accounts: Vec::new() }
    }

    /// Draws `count` turns, of distinct tests as long as there are so many; none when no test is left. `random` gives
    /// numbers in [0, 1).
    pub fn draw(&self, count: usize, random: &mut dyn FnMut() -> f64) -> Vec<Draw> {
        let mut drawn: Vec<Draw> = Vec::with_capacity(count);
        let mut busy: Vec<u32> = self.accounts.iter().map(|account| account.running).collect();
        let turn = self.turn_length();
        // Drawing changes neither averages nor times, so the weights are the same for the whole round.
        let logs = self.log_weights(turn);
        for _ in 0..count {
            let Some(test) = self.choose(&busy, &logs, random) else { break };
            busy[test] += 1;
            drawn.push(self.plan(test, turn, random));
        }
        drawn
    }

    /// Notes that turns were drawn and will be run.
    pub fn begin(&mut self, drawn: &[Draw]) {
        drawn.iter().for_each(|draw| self.accounts[draw.test].running += 1);
    }

    /// Writes down what a turn took.
    pub fn settle(&mut self, test: usize, times: u64, seconds: f64) {
        let account = &mut self.accounts[test];
        account.running = account.running.saturating_sub(1);
        // Time that no clock saw is still time: else a test of no duration would be owed for ever.
        account.given += seconds.max(times as f64 * LEAST_AVERAGE);
        if times == 0 {
            return;
        }
        account.whole = (account.whole.0 + times, account.whole.1 + seconds);
        let seen = (seconds / times as f64).max(LEAST_AVERAGE);
        account.average = Some(match account.average {
            Some(known) if seen < known * BELIEVED && known < seen * BELIEVED => {
                known + LEARNED * (seen - known)
            }
            _ => seen,
        });
    }

    /// The part of the time that a test is meant to get.
    pub fn asked(&self, test: usize) -> f64 {
        let total: f64 = self.active().map(|(_, account)| account.share).sum();
        let account = &self.accounts[test];
        if account.retired || total == 0.0 { 0.0 } else { account.share / total }
    }

    fn active(&self) -> impl Iterator<Item = (usize, &Account)> {
        self.accounts.iter().enumerate().filter(|(_, account)| !account.retired)
    }

    /// τ: seconds that a turn is meant to last.
    pub fn turn_length(&self) -> f64 {
        let longest = self.active().filter_map(|(_, account)| account.average).fold(0.0, f64::max);
        longest.clamp(self.policy.shortest_turn, self.policy.longest_turn.max(self.policy.shortest_turn))
    }

    fn choose(&self, busy: &[u32], logs: &[f64], random: &mut dyn FnMut() -> f64) -> Option<usize> {
        let least = self.active().map(|(test, _)| busy[test]).min()?;
        let mut candidates: Vec<usize> =
            self.active().filter(|(test, _)| busy[*test] == least).map(|(test, _)| test).collect();
        let unknown = |test: &usize| self.accounts[*test].average.is_none();
        if candidates.iter().any(unknown) {
            candidates.retain(unknown);
        }
        // Relative to the largest, so that none overflows and at least one is not zero.
        let largest = candidates.iter().map(|test| logs[*test]).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = candidates.iter().map(|test| (logs[*test] - largest).exp()).collect();
        let mut left = random() * weights.iter().sum::<f64>();
        for (test, weight) in candidates.iter().zip(&weights) {
            left -= weight;
            if left < 0.0 {
                return Some(*test);
            }
        }
        candidates.last().copied()
    }

    /// Logarithm of each test's weight among those that can be drawn; 0 for one without an average.
    fn log_weights(&self, turn: f64) -> Vec<f64> {
        let shares: f64 = self.active().map(|(_, account)| account.share).sum();
        let given: f64 = self.active().map(|(_, account)| account.given).sum();
        let weight = |account: &Account| {
            let Some(average) = account.average else { return 0.0 };
            match self.policy.rule {
                Rule::Literal => -self.plain_average(account).ln(),
                Rule::Fair => {
                    let owed = account.share / shares * given - account.given;
                    account.share.ln() - average.max(turn).ln() + EAGERNESS * (owed / turn).min(MOST_OWED)
                }
            }
        };
        self.accounts.iter().map(weight).collect()
    }

    fn plan(&self, test: usize, turn: f64, random: &mut dyn FnMut() -> f64) -> Draw {
        let account = &self.accounts[test];
        let Some(average) = account.average else { return Draw { test, times: 1, limit: None } };
        match self.policy.rule {
            Rule::Literal => {
                let longest =
                    self.active().map(|(_, account)| self.plain_average(account)).fold(0.0, f64::max);
                let times = (longest / self.plain_average(account)).clamp(1.0, MOST_REPEATS);
                Draw { test, times: times.round() as u64, limit: None }
            }
            Rule::Fair => {
                let exact = (turn / average.max(LEAST_AVERAGE)).clamp(1.0, MOST_REPEATS);
                let times = exact.floor() + f64::from(random() < exact.fract());
                let limit = std::time::Duration::from_secs_f64(2.0 * turn);
                Draw { test, times: times as u64, limit: Some(limit) }
            }
        }
    }

    /// The paper's AverageTestDuration: over everything that ran.
    fn plain_average(&self, account: &Account) -> f64 {
        let (times, seconds) = account.whole;
        let plain = if times == 0 { account.average.unwrap_or(0.0) } else { seconds / times as f64 };
        plain.max(LEAST_AVERAGE)
    }
}

#[cfg(test)]
mod tests;
