//! A portfolio: several strategies take turns, and those that pay get more of them.
//!
//! The rule. Runs come in pairs. The first of a pair goes round and round through the members, so each of m members
//! has at least one run in 2m whatever happens. The second goes to the member with the greatest (w+g)/(r+2), where r
//! is how many runs it had, w how many of those showed a failure that was new, and g its weight: what is known of it
//! before the first run. Among equals, it goes to the one with fewer runs, then to the earlier. A member whose space is
//! exhausted drops out.
//!
//! So until something is found each member has its weight's share of all runs, if that is one in 2m at least. What it costs
//! when the weights are wrong: a bug that only one member finds takes at most 2m times the runs that this member takes alone.
//!
//! A run counts when it is planned, so several can be planned before the first is over; whose it is stands in its
//! parameters. What is heard of runs decides then a little later, and of some runs nothing may be heard.
//!
//! So the guarantee of a member holds for its share of the runs, and at most half of the runs are spent on what
//! looked good so far.

use crate::any::AnyStrategy;
use crate::event::{Event, ThreadId};
use crate::run::{Run, RunParameters, RunReport};
use crate::strategy::Strategy;

#[derive(Debug)]
struct Member {
    strategy: AnyStrategy,
    /// As its runs name it; empty before the first.
    text: String,
    runs: u64,
    wins: u64,
    weight: u32,
    exhausted: bool,
}

/// Strategies that take turns.
#[derive(Debug)]
pub struct Portfolio {
    members: Vec<Member>,
    current: usize,
    /// Runs planned so far.
    turns: u64,
    round: usize,
}

/// What a member did so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Its runs.
    pub runs: u64,
    /// Those that showed a new failure.
    pub wins: u64,
}

impl Portfolio {
    /// A portfolio of these strategies with their weights; an empty one is exhausted from the start.
    pub fn new(members: Vec<(AnyStrategy, u32)>) -> Portfolio {
        let member = |(strategy, weight)| Member {
            strategy,
            text: String::new(),
            runs: 0,
            wins: 0,
            weight,
            exhausted: false,
        };
        Portfolio { members: members.into_iter().map(member).collect(), current: 0, turns: 0, round: 0 }
    }

    /// Runs and wins of the members, in their order.
    pub fn tallies(&self) -> impl Iterator<Item = Tally> + '_ {
        self.members.iter().map(|member| Tally { runs: member.runs, wins: member.wins })
    }

    fn choose(&mut self) -> Option<usize> {
        let left = |member: &Member| !member.exhausted;
        if self.turns.is_multiple_of(2) {
            let count = self.members.len();
            let place =
                (0..count).map(|turn| (self.round + turn) % count).find(|&i| left(&self.members[i]))?;
            self.round = (place + 1) % count;
            return Some(place);
        }
        // (w+g)/(r+2) compared by cross-multiplication, so that no rounding decides.
        let mut best: Option<usize> = None;
        for (place, member) in self.members.iter().enumerate().filter(|(_, member)| left(member)) {
            let better = best.is_none_or(|best| {
                let best = &self.members[best];
                let paid = |member: &Member| u128::from(member.wins) + u128::from(member.weight);
                let mine = paid(member) * u128::from(best.runs + 2);
                let theirs = paid(best) * u128::from(member.runs + 2);
                mine > theirs || (mine == theirs && member.runs < best.runs)
            });
            if better {
                best = Some(place);
            }
        }
        best
    }
}

impl Strategy for Portfolio {
    fn plan(&mut self, run: Run) -> Option<RunParameters> {
        loop {
            let place = self.choose()?;
            let member = &mut self.members[place];
            if let Some(parameters) = member.strategy.plan(run) {
                if member.text != parameters.strategy {
                    member.text.clone_from(&parameters.strategy);
                }
                member.runs += 1;
                self.current = place;
                self.turns += 1;
                return Some(parameters);
            }
            member.exhausted = true;
        }
    }

    /// The parameters name the member's strategy, so a stored run needs only that member to be repeated.
    fn begin(&mut self, run: Run, parameters: &RunParameters) {
        let is_of = |member: &Member| member.text == parameters.strategy;
        if !self.members.get(self.current).is_some_and(is_of)
            && let Some(place) = self.members.iter().position(is_of)
        {
            self.current = place;
        }
        if let Some(member) = self.members.get_mut(self.current) {
            member.strategy.begin(run, parameters);
        }
    }

    fn spawned(&mut self, thread: ThreadId, parent: Option<ThreadId>) {
        if let Some(member) = self.members.get_mut(self.current) {
            member.strategy.spawned(thread, parent);
        }
    }

    #[inline]
    fn ready(&mut self, thread: ThreadId, next: Event) {
        if let Some(member) = self.members.get_mut(self.current) {
            member.strategy.ready(thread, next);
        }
    }

    #[inline]
    fn blocked(&mut self, thread: ThreadId) {
        if let Some(member) = self.members.get_mut(self.current) {
            member.strategy.blocked(thread);
        }
    }

    fn finished(&mut self, thread: ThreadId) {
        if let Some(member) = self.members.get_mut(self.current) {
            member.strategy.finished(thread);
        }
    }

    #[inline]
    fn pick(&mut self) -> Option<ThreadId> {
        self.members.get_mut(self.current)?.strategy.pick()
    }

    #[inline]
    fn step(&mut self, current: ThreadId, next: Event) -> ThreadId {
        match self.members.get_mut(self.current) {
            Some(member) => member.strategy.step(current, next),
            None => current,
        }
    }

    fn end(&mut self, report: &RunReport<'_>) {
        if let Some(member) = self.members.get_mut(self.current) {
            member.strategy.end(report);
            member.wins += u64::from(report.news);
        }
    }

    fn steps_changed(&mut self) {
        self.members.iter_mut().for_each(|member| member.strategy.steps_changed());
    }

    fn reach(&self) -> u64 {
        self.members.get(self.current).map_or(0, |member| member.strategy.reach())
    }

    fn was_long(&mut self, parameters: &RunParameters, steps: u64) {
        if let Some(member) = self.members.iter_mut().find(|member| member.text == parameters.strategy) {
            member.strategy.was_long(parameters, steps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Outcome, Seed};
    use crate::spec::Spec;

    fn portfolio(texts: &[&str]) -> Portfolio {
        let build = |text: &&str| (text.parse::<Spec>().unwrap().build(), 1);
        Portfolio::new(texts.iter().map(build).collect())
    }

    fn turn(portfolio: &mut Portfolio, index: u64, wins: impl Fn(&str) -> bool) -> Option<String> {
        let run = Run { seed: Seed(1), index };
        let parameters = portfolio.plan(run)?;
        portfolio.begin(run, &parameters);
        let news = wins(&parameters.strategy);
        let outcome = if news { Outcome::Failed } else { Outcome::Passed };
        portfolio.end(&RunReport { outcome, steps: 0, lengths: &[], news });
        Some(parameters.strategy)
    }

    #[test]
    fn who_pays_gets_the_free_half() {
        let mut portfolio = portfolio(&["random", "pos", "stride:max=2"]);
        for index in 0..600 {
            turn(&mut portfolio, index, |strategy| strategy == "pos");
        }
        let tallies: Vec<Tally> = portfolio.tallies().collect();
        // 300 in turn, 100 each; of the others all but the first few go to the one that wins every time.
        assert!(tallies[1].runs >= 395, "{tallies:?}");
        assert!(tallies.iter().all(|tally| tally.runs >= 100), "{tallies:?}");
        assert_eq!(tallies[1].runs, tallies[1].wins);
    }

    /// As when several runs go on at once: what was planned is begun later, in its order.
    #[test]
    fn runs_planned_ahead_go_to_the_members_that_planned_them() {
        let mut one_by_one = portfolio(&["random", "pos", "pct:depth=2"]);
        let mut ahead = portfolio(&["random", "pos", "pct:depth=2"]);
        let apart: Vec<String> =
            (0..60).map(|index| turn(&mut one_by_one, index, |_| false).unwrap()).collect();
        let run = |index| Run { seed: Seed(1), index };
        let planned: Vec<RunParameters> = (0..60).map(|index| ahead.plan(run(index)).unwrap()).collect();
        assert_eq!(planned.iter().map(|one| one.strategy.clone()).collect::<Vec<_>>(), apart);
        for (index, parameters) in planned.iter().enumerate() {
            ahead.begin(run(index as u64), parameters);
            let news = parameters.strategy == "pos";
            let outcome = if news { Outcome::Failed } else { Outcome::Passed };
            ahead.end(&RunReport { outcome, steps: 0, lengths: &[], news });
        }
        let wins: Vec<u64> = ahead.tallies().map(|tally| tally.wins).collect();
        assert_eq!(wins, [0, 20, 0]);
    }

    #[test]
    fn without_news_all_have_the_same() {
        let mut portfolio = portfolio(&["random", "pos", "stride:max=2"]);
        for index in 0..600 {
            turn(&mut portfolio, index, |_| false);
        }
        assert!(portfolio.tallies().all(|tally| tally.runs == 200));
    }

    /// The shares are exact, not a matter of chance: by weight, and at least one run in 2m.
    #[test]
    fn without_news_runs_go_by_weight() {
        let shares = |weights: [u32; 5]| {
            let members = weights.map(|weight| (Spec::Random.build(), weight));
            let mut portfolio = Portfolio::new(members.into());
            for index in 0..1_000 {
                turn(&mut portfolio, index, |_| false);
            }
            portfolio.tallies().map(|tally| tally.runs).collect::<Vec<_>>()
        };
        let near = |runs: Vec<u64>, expected: [u64; 5]| {
            let near = runs.iter().zip(expected).all(|(&runs, expected)| runs.abs_diff(expected) <= 10);
            assert!(near, "{runs:?} instead of {expected:?}");
        };
        near(shares([2, 5, 1, 1, 1]), [200, 500, 100, 100, 100]);
        near(shares([1; 5]), [200; 5]);
        near(shares([1_000, 1, 1, 1, 1]), [600, 100, 100, 100, 100]);
    }

    #[test]
    fn the_exhausted_drop_out() {
        // A program without steps: one schedule, then the search is over.
        let mut portfolio = portfolio(&["dfs", "random"]);
        let turns: Vec<String> =
            (0..6).map(|index| turn(&mut portfolio, index, |_| false).unwrap()).collect();
        assert_eq!(turns.iter().filter(|strategy| *strategy == "dfs").count(), 1);
        let mut alone = super::tests::portfolio(&["dfs"]);
        assert!(turn(&mut alone, 0, |_| false).is_some());
        assert!(turn(&mut alone, 1, |_| false).is_none());
        assert!(Portfolio::new(Vec::new()).plan(Run::default()).is_none());
    }
}
