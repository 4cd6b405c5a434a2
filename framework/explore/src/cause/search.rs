//! Which orders of events a failure needs: experiments with one order turned round, everything else as near as possible.
//!
//! 1. Every pair of events that meet in the failing run is turned round alone. Where the failure stays, that order does
//!    not matter, and the pairs next to it that ask for less are tried.
//! 2. What is left is reduced: an order is left out when it cannot be turned round while the others are kept (they
//!    imply it), or when the failure stays.
//! 3. The rest has to be enough: with these orders kept, runs fail whatever else is chosen. When one passes, orders that it
//!    broke are sought and added.
//! 4. Each is turned round again, many times, with the others kept: the proof. Where the failure then comes in another way, by
//!    another thread that does the same or in another round of a loop, it is turned round with all else as near to the failing
//!    run as possible. A cause without a proof is none.
//!
//! Delta debugging over the order of events ("Isolating Failure-Inducing Thread Schedules", Choi and Zeller, ISSTA 2002,
//! does it over switches); that a set of ordering constraints is what a bug is, and its size the depth, is PCT's ("A
//! Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010).

use std::collections::{HashSet, VecDeque};

use waylay_schedule::Turn;
use waylay_schedule::ordered::{Base, Order};

use super::trace::{Meetings, Pair, Trace};

/// Runs in which each order is turned round, and in which all are kept.
pub(crate) const PROOFS: u64 = 20;
/// Runs that are made for those at most: not every one comes out with the orders that it was asked for.
const MOST_ATTEMPTS: u64 = 2 * PROOFS;
/// Pairs that are turned round alone, and steps from a pair to those that ask for less.
const MOST_PAIRS: usize = 800;
const MOST_LOOSENED: u32 = 8;
/// Orders that are weighed against each other: more would not be understood, and cost as many runs for each.
const MOST_WEIGHED: usize = 48;
/// Times that something is added because what there was is not enough.
const MOST_ADDED: usize = 4;

/// Orders of the failing run that are kept as far as possible where all else is to be as it was.
const MOST_CONTEXT: usize = 64;

/// Times that an order is mended or left out because turning it round does not help after all.
const MOST_REFUTED: usize = 6;

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The failure.
    Same,
    /// Another one.
    Other,
    /// None.
    Passed,
}

/// Makes runs.
pub(crate) trait Laboratory {
    /// Why no further run can be made.
    type Error;
    /// A run in which these orders are kept as far as possible. None when the budget is spent.
    fn run(&mut self, orders: &[Order], base: &Base) -> Result<Option<(Outcome, Trace)>, Self::Error>;
}

/// Runs of a kind, and how many of them showed the failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) runs: u64,
    pub(crate) same: u64,
    pub(crate) other: u64,
}

impl Count {
    fn with(self, other: &Count) -> Count {
        let Count { runs, same, other: elsewhere } = *other;
        Count { runs: self.runs + runs, same: self.same + same, other: self.other + elsewhere }
    }

    fn add(&mut self, outcome: Outcome) {
        self.runs += 1;
        self.same += u64::from(outcome == Outcome::Same);
        self.other += u64::from(outcome == Outcome::Other);
    }
}

/// Orders that are enough, and of which none can be left out.
#[derive(Clone, Debug)]
pub(crate) struct Proved {
    pub(crate) orders: Vec<Order>,
    /// Runs with one of them reversed.
    pub(crate) flipped: Count,
    /// The fewest runs that any of them was reversed in.
    pub(crate) each: u64,
    /// Runs with all of them kept.
    pub(crate) kept: Count,
    /// Whether all else was kept near to the failing run when orders were reversed.
    pub(crate) near: bool,
    pub(crate) failing: Trace,
    pub(crate) passing: Trace,
    /// The switches of the passing run's base.
    pub(crate) passing_base: Base,
}

/// Looks for the cause. `Err` in the inner result: why none was found, in words.
pub(crate) fn search<L: Laboratory>(lab: &mut L, turns: &[Turn]) -> Result<Result<Proved, String>, L::Error> {
    match Search::begin(lab, turns)? {
        Ok(mut search) => search.go(lab),
        Err(reason) => Ok(Err(reason)),
    }
}

const SPENT: &str = "the budget was spent before an order was proved to decide";

struct Search {
    near: Base,
    failing: Trace,
    passing: Trace,
    passing_base: Base,
    meetings: Meetings,
}

/// What turning an order round came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turned {
    /// It cannot be, or not while the others are kept.
    Impossible,
    /// The failure stays.
    Fails,
    /// It fails in another way, which may hide what would have come.
    Other,
    /// The failure is gone.
    Gone,
}

/// What is held back for what.
fn held(pairs: &[Pair]) -> Vec<Order> {
    pairs.iter().map(|pair| pair.held).collect()
}

/// When an order counts as kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// When its second event did not come without the first.
    Strict,
    /// Also when its first event never came: what another order decides is whether it comes at all.
    Lenient,
}

fn is_kept(trace: &Trace, order: &Pair, rule: Rule) -> bool {
    match rule {
        Rule::Strict => trace.keeps(order),
        Rule::Lenient => !trace.breaks(order),
    }
}

/// Runs with an order reversed, and the first of them that failed all the same.
type Proof = (Count, Option<Trace>);

/// Ends the search when the budget is spent.
macro_rules! spend {
    ($run:expr) => {
        match $run? {
            Some(result) => result,
            None => return Ok(Err(SPENT.to_owned())),
        }
    };
}

impl Search {
    fn begin<L: Laboratory>(lab: &mut L, turns: &[Turn]) -> Result<Result<Search, String>, L::Error> {
        let near = Base::Turns(turns.to_vec());
        let (outcome, failing) = spend!(lab.run(&[], &near));
        if outcome != Outcome::Same {
            return Ok(Err("the failure does not come back when events are listened to".to_owned()));
        }
        let bases =
            (0..PROOFS).map(|seed| if seed % 2 == 0 { Base::Walk(seed) } else { Base::Priorities(seed) });
        let mut fewest = Some(Base::Turns(Vec::new())).filter(|_| !turns.is_empty()).into_iter().chain(bases);
        loop {
            let Some(base) = fewest.next() else {
                let every = format!("it failed in each of {PROOFS} schedules that were drawn at random");
                return Ok(Err(format!("no order decides: {every}")));
            };
            let (outcome, passing) = spend!(lab.run(&[], &base));
            if outcome == Outcome::Passed {
                let meetings = Meetings::new(&failing, &passing);
                return Ok(Ok(Search { near, failing, passing, passing_base: base, meetings }));
            }
        }
    }

    fn go<L: Laboratory>(&mut self, lab: &mut L) -> Result<Result<Proved, String>, L::Error> {
        let mut orders = spend!(self.alone(lab));
        if orders.is_empty() {
            let why = "no order of two events decides alone: with each pair that was tried the other way round it still fails";
            return Ok(Err(why.to_owned()));
        }
        let mut rule = Rule::Strict;
        spend!(self.reduce(lab, &mut orders, rule));
        let mut refuted = 0;
        let mut first = None;
        let sum = |counts: &[Proof]| counts.iter().fold(Count::default(), |sum, (count, _)| sum.with(count));
        let fewest = |counts: &[Proof]| counts.iter().map(|(count, _)| count.runs).min().unwrap_or(0);
        let (kept, flipped, each, near) = loop {
            let kept = match spend!(self.complete(lab, &mut orders, &mut rule)) {
                Ok(kept) => kept,
                Err(reason) => return Ok(Err(reason)),
            };
            let counts = spend!(self.prove_all(lab, &orders, rule, &[]));
            let (flipped, each) = (sum(&counts), fewest(&counts));
            if flipped.same == 0 && each > 0 {
                break (kept, flipped, each, false);
            }
            first.get_or_insert((orders.clone(), rule, kept));
            refuted += 1;
            if refuted > MOST_REFUTED || !self.refute(&mut orders, &counts) {
                // What was enough at first is turned round with all else as it was.
                let (enough, rule, kept) = first.take().unwrap_or((orders.clone(), rule, kept));
                let context = self.context(&enough);
                let counts = spend!(self.prove_all(lab, &enough, rule, &context));
                if sum(&counts).same == 0 && fewest(&counts) > 0 {
                    orders = enough;
                    break (kept, sum(&counts), fewest(&counts), true);
                }
                let (runs, failed) = (flipped.runs, flipped.same);
                return Ok(Err(format!(
                    "no order is proved to decide: with one of {} reversed it still failed in {failed} of {runs} schedules",
                    orders.len()
                )));
            }
        };
        // In the order in which they happen.
        orders.sort_by_key(|order| {
            (self.failing.place(&order.shown.first), self.failing.place(&order.shown.then))
        });
        let (failing, passing) = (std::mem::take(&mut self.failing), std::mem::take(&mut self.passing));
        let passing_base = self.passing_base.clone();
        let orders = orders.into_iter().map(|pair| pair.shown).collect();
        Ok(Ok(Proved { orders, flipped, each, kept, near, failing, passing, passing_base }))
    }

    /// Sees whether orders are enough, and adds what is missing. `Err` in the inner result: why they are not.
    fn complete<L: Laboratory>(
        &self,
        lab: &mut L,
        orders: &mut Vec<Pair>,
        rule: &mut Rule,
    ) -> Result<Option<Result<Count, String>>, L::Error> {
        let mut added = 0;
        loop {
            let Some((kept, broken)) = self.keep(lab, orders)? else { return Ok(None) };
            let Some((trace, base)) = broken else {
                let nothing = "the orders that it needs could not be kept in another schedule";
                return Ok(Some(if kept.runs == 0 { Err(nothing.to_owned()) } else { Ok(kept) }));
            };
            added += 1;
            let more = if added > MOST_ADDED { Some(false) } else { self.add(lab, orders, &trace, &base)? };
            match more {
                None => return Ok(None),
                Some(true) => {}
                Some(false) => {
                    let (runs, failed) = (kept.runs, kept.same);
                    return Ok(Some(Err(format!(
                        "the orders that it needs are not enough: with them it failed in {failed} of {runs} schedules"
                    ))));
                }
            }
            *rule = Rule::Lenient;
            if self.reduce(lab, orders, *rule)?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Mends orders of which some run fails that has them the other way round: one that asks for less and holds there, too, takes
    /// its place; one of which most runs say that it makes no difference is left out. False when neither can be done.
    fn refute(&self, orders: &mut Vec<Pair>, proofs: &[Proof]) -> bool {
        for (place, (count, against)) in proofs.iter().enumerate() {
            let Some(against) = against else { continue };
            let mut waiting: VecDeque<(Pair, u32)> = VecDeque::from([(orders[place], 0)]);
            while let Some((pair, loosened)) = waiting.pop_front() {
                if against.shows(&pair) && self.failing.shows(&pair) && !orders.contains(&pair) {
                    orders[place] = pair;
                    return true;
                }
                if loosened < MOST_LOOSENED / 2 {
                    waiting.extend(self.meetings.looser(&pair).into_iter().map(|pair| (pair, loosened + 1)));
                }
            }
            if count.same * 2 > count.runs && orders.len() > 1 {
                orders.remove(place);
                return true;
            }
        }
        match proofs.iter().position(|(count, _)| count.runs == 0).filter(|_| orders.len() > 1) {
            Some(place) => {
                orders.remove(place);
                true
            }
            None => false,
        }
    }

    /// Turns each of the orders round, many times.
    fn prove_all<L: Laboratory>(
        &self,
        lab: &mut L,
        orders: &[Pair],
        rule: Rule,
        context: &[Pair],
    ) -> Result<Option<Vec<Proof>>, L::Error> {
        let mut counts = Vec::new();
        for place in 0..orders.len() {
            match self.prove(lab, orders, place, (rule, context))? {
                Some(count) => counts.push(count),
                None => return Ok(None),
            }
        }
        Ok(Some(counts))
    }

    /// Turns one order round, with others kept, and sees what becomes of it; the bases are tried until it can be.
    fn turn<L: Laboratory>(
        &self,
        lab: &mut L,
        order: &Pair,
        (others, rule): (&[Pair], Rule),
        bases: &[Base],
    ) -> Result<Option<Turned>, L::Error> {
        let orders: Vec<Pair> = std::iter::once(order.reversed()).chain(others.iter().copied()).collect();
        let mut turned = Turned::Impossible;
        for base in bases {
            let Some((outcome, trace)) = lab.run(&held(&orders), base)? else { return Ok(None) };
            if trace.shows(&orders[0]) && others.iter().all(|other| is_kept(&trace, other, rule)) {
                match outcome {
                    Outcome::Same => return Ok(Some(Turned::Fails)),
                    Outcome::Passed => return Ok(Some(Turned::Gone)),
                    Outcome::Other => turned = Turned::Other,
                }
            }
        }
        Ok(Some(turned))
    }

    /// The orders without which, one at a time, the failure is gone.
    fn alone<L: Laboratory>(&self, lab: &mut L) -> Result<Option<Vec<Pair>>, L::Error> {
        let mut closest = self.meetings.closest();
        // Those that a run which passes breaks are the first to ask.
        closest.sort_by_key(|order| self.passing.keeps(order));
        closest.truncate(MOST_PAIRS);
        let mut known: HashSet<Pair> = closest.iter().copied().collect();
        let mut waiting: VecDeque<(Pair, u32)> = closest.into_iter().map(|order| (order, 0)).collect();
        let (mut needed, mut doubtful, mut asked) = (Vec::new(), Vec::new(), 0);
        let bases = [self.near.clone()];
        while let Some((order, loosened)) = waiting.pop_front() {
            asked += 1;
            if asked > MOST_PAIRS || needed.len() == MOST_WEIGHED {
                break;
            }
            match self.turn(lab, &order, (&[], Rule::Strict), &bases)? {
                None => return Ok(None),
                Some(Turned::Gone) => needed.push(order),
                Some(Turned::Other) => doubtful.push(order),
                Some(_) if loosened < MOST_LOOSENED => {
                    for looser in self.meetings.looser(&order) {
                        if known.insert(looser) && self.failing.shows(&looser) {
                            waiting.push_front((looser, loosened + 1));
                        }
                    }
                }
                Some(_) => {}
            }
        }
        if needed.is_empty() {
            doubtful.truncate(MOST_WEIGHED);
            return Ok(Some(doubtful));
        }
        Ok(Some(needed))
    }

    /// Leaves out what the others imply, and what makes no difference. What was found last goes first.
    fn reduce<L: Laboratory>(
        &self,
        lab: &mut L,
        orders: &mut Vec<Pair>,
        rule: Rule,
    ) -> Result<Option<()>, L::Error> {
        let bases = [self.near.clone(), Base::Priorities(1), Base::Priorities(2), Base::Priorities(3)];
        for place in (0..orders.len()).rev() {
            let order = orders.remove(place);
            match self.turn(lab, &order, (orders, rule), &bases)? {
                None => return Ok(None),
                Some(Turned::Gone | Turned::Other) => orders.insert(place, order),
                Some(Turned::Impossible | Turned::Fails) => {}
            }
        }
        Ok(Some(()))
    }

    /// Keeps all orders in schedules of every kind. Also the first that passed although they were kept.
    #[allow(clippy::type_complexity)] // a count, and what speaks against it
    fn keep<L: Laboratory>(
        &self,
        lab: &mut L,
        orders: &[Pair],
    ) -> Result<Option<(Count, Option<(Trace, Base)>)>, L::Error> {
        let mut count = Count::default();
        let mut broken = None;
        for seed in 0..MOST_ATTEMPTS {
            if count.runs == PROOFS {
                break;
            }
            let base = if seed % 2 == 0 { Base::Priorities(seed) } else { Base::Walk(seed) };
            let Some((outcome, trace)) = lab.run(&held(orders), &base)? else { return Ok(None) };
            // A run that fails in another way before it comes to them says nothing. One that passes because an event did not
            // come at all says that something else decides that.
            if outcome == Outcome::Other || orders.iter().any(|order| trace.breaks(order)) {
                continue;
            }
            count.add(outcome);
            if outcome == Outcome::Passed && broken.is_none() {
                broken = Some((trace, base));
            }
        }
        Ok(Some((count, broken)))
    }

    /// Adds an order that a passing run broke and with which it fails. False when there is none.
    fn add<L: Laboratory>(
        &self,
        lab: &mut L,
        orders: &mut Vec<Pair>,
        passed: &Trace,
        base: &Base,
    ) -> Result<Option<bool>, L::Error> {
        let mut waiting: VecDeque<(Pair, u32)> =
            self.meetings.closest().into_iter().map(|o| (o, 0)).collect();
        let mut known: HashSet<Pair> = waiting.iter().map(|(order, _)| *order).collect();
        let (mut asked, mut broken) = (0, Vec::new());
        while let Some((order, loosened)) = waiting.pop_front() {
            if loosened < MOST_LOOSENED {
                let looser = self.meetings.looser(&order).into_iter();
                let looser = looser.filter(|looser| self.failing.shows(looser) && known.insert(*looser));
                waiting.extend(looser.map(|looser| (looser, loosened + 1)));
            }
            if orders.contains(&order) || !passed.breaks(&order) {
                continue;
            }
            asked += 1;
            if asked > MOST_PAIRS / 4 {
                break;
            }
            if loosened == 0 {
                broken.push(order);
            }
            let more: Vec<Pair> = orders.iter().copied().chain([order]).collect();
            let Some((outcome, trace)) = lab.run(&held(&more), base)? else { return Ok(None) };
            if outcome == Outcome::Same && more.iter().all(|order| trace.shows(order)) {
                orders.push(order);
                return Ok(Some(true));
            }
        }
        self.add_some(lab, orders, broken, base)
    }

    /// Adds several orders that a passing run broke and with which it fails, where one alone does not do.
    fn add_some<L: Laboratory>(
        &self,
        lab: &mut L,
        orders: &mut Vec<Pair>,
        mut broken: Vec<Pair>,
        base: &Base,
    ) -> Result<Option<bool>, L::Error> {
        broken.truncate(MOST_WEIGHED);
        let mut fails = |more: &[Pair]| -> Result<Option<bool>, L::Error> {
            let all = [orders.as_slice(), more].concat();
            let Some((outcome, trace)) = lab.run(&held(&all), base)? else { return Ok(None) };
            Ok(Some(outcome == Outcome::Same && all.iter().all(|order| !trace.breaks(order))))
        };
        match fails(&broken)? {
            Some(true) => {}
            other => return Ok(other),
        }
        for place in (0..broken.len()).rev() {
            let order = broken.remove(place);
            match fails(&broken)? {
                None => return Ok(None),
                Some(true) => {}
                Some(false) => broken.insert(place, order),
            }
        }
        let more = !broken.is_empty();
        orders.extend(broken);
        Ok(Some(more))
    }

    /// The other orders of the failing run, to be kept as far as that goes.
    fn context(&self, orders: &[Pair]) -> Vec<Pair> {
        let others = self.meetings.closest().into_iter();
        others.filter(|pair| !orders.contains(pair) && self.failing.shows(pair)).take(MOST_CONTEXT).collect()
    }

    /// Turns one of the orders round in many schedules, with the others kept.
    fn prove<L: Laboratory>(
        &self,
        lab: &mut L,
        orders: &[Pair],
        place: usize,
        (rule, context): (Rule, &[Pair]),
    ) -> Result<Option<Proof>, L::Error> {
        let reversed = orders[place].reversed();
        let others = orders.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, order)| *order);
        let wanted: Vec<Pair> = std::iter::once(reversed).chain(others).collect();
        let (mut count, mut against) = (Count::default(), None);
        for seed in 0..MOST_ATTEMPTS {
            if count.runs == PROOFS {
                break;
            }
            let base = if seed == 0 { self.near.clone() } else { Base::Priorities(seed) };
            // Orders that come last are the first to be given up.
            let asked = [held(&wanted), held(context)].concat();
            let Some((outcome, trace)) = lab.run(&asked, &base)? else { return Ok(None) };
            if trace.shows(&wanted[0]) && wanted[1..].iter().all(|order| is_kept(&trace, order, rule)) {
                count.add(outcome);
                if outcome == Outcome::Same {
                    against = against.or(Some(trace));
                }
            }
        }
        Ok(Some((count, against)))
    }
}
