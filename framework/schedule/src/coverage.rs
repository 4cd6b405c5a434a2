//! How much of what can come in two orders was seen in both.
//!
//! Orders of two places in the code ([`orders`](crate::orders)), those that runs showed of those that runs say are possible. A
//! number between runs, not a promise: what is possible is known only as far as runs came by it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::conversation::Said;
use crate::happened::History;
use crate::orders::{Idiom, Orders, Place};

/// Orders that are kept: some megabytes.
const MOST: usize = 1 << 16;

/// Orders seen of orders predicted, as reports have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrdersSeen {
    /// Orders of two places that were seen.
    pub seen: u64,
    /// Orders that are possible as far as runs showed; those that were seen are among them.
    pub predicted: u64,
    /// Runs that were listened to.
    pub runs: u64,
    /// The last run that showed an order for the first time, from 1; 0 when none did.
    pub last_new: u64,
}

impl OrdersSeen {
    /// Takes in what another process saw. Which orders they were is not known any more, so the better of the two counts.
    pub fn join(&mut self, other: &OrdersSeen) {
        let runs = self.runs + other.runs;
        if (other.seen, other.predicted) > (self.seen, self.predicted) {
            *self = *other;
        }
        self.runs = runs;
    }
}

impl std::fmt::Display for OrdersSeen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let OrdersSeen { seen, predicted, runs, last_new } = self;
        write!(
            f,
            "{seen} of {predicted} orders of conflicting places were seen in {runs} schedules that were listened to"
        )?;
        if *last_new > 0 { write!(f, ", the last new one in schedule {last_new}") } else { Ok(()) }
    }
}

/// The orders of many runs.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// Whether each was seen.
    known: HashMap<[Place; 2], bool>,
    history: History,
    numbers: OrdersSeen,
}

impl Coverage {
    /// Takes in what was said in a run, which is the `number`-th, counted from 1. Says whether it showed an order for the first
    /// time.
    pub fn hear(&mut self, number: u64, said: &[Said]) -> bool {
        let mut history = std::mem::take(&mut self.history);
        history.hear(said);
        let news = self.take(number, &history);
        self.history = history;
        news
    }

    /// The same of a run that was listened to.
    pub fn take(&mut self, number: u64, history: &History) -> bool {
        let Orders { seen, predicted } = Orders::of(&history.events());
        let mut possible = |[first, then]: [Place; 2]| {
            for places in [[first, then], [then, first]] {
                if self.known.len() < MOST {
                    self.known.entry(places).or_insert(false);
                }
            }
        };
        for idiom in predicted.iter().map(|(idiom, _)| idiom).chain(&seen) {
            if let Idiom::Pair(places) = idiom {
                possible(*places);
            }
        }
        let mut news = false;
        for idiom in seen {
            if let Idiom::Pair(places) = idiom
                && let Some(known) = self.known.get_mut(&places)
                && !std::mem::replace(known, true)
            {
                (news, self.numbers.last_new) = (true, number);
                self.numbers.seen += 1;
            }
        }
        self.numbers.runs += 1;
        self.numbers.predicted = self.known.len() as u64;
        news
    }

    /// The numbers so far.
    pub fn numbers(&self) -> OrdersSeen {
        self.numbers
    }

    /// Whether so many runs before this one, counted from 1, showed no new order.
    pub fn is_quiet(&self, number: u64, most: u64) -> bool {
        self.numbers.runs > 0 && number.saturating_sub(self.numbers.last_new) >= most
    }
}
