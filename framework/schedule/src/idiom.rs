//! Idiom: what was seen in one order only is tried in the other.
//!
//! After "Maple: A Coverage-Driven Testing Tool for Multithreaded Programs", Yu, Narayanasamy, Pereira and Pokam, OOPSLA 2012.
//! Runs show in which orders conflicting events of two threads came, and which of these events could have come in another order
//! ([`orders`]). Each order that is possible and was not seen is tried: threads are held back at one end until
//! another has done the other, and given up on after a bound. That is [`Ordered`], which also serves the search for a cause and
//! the search between two places. Then chains of two orders are tried: one thread's event between two of another thread that
//! touch the same thing. An order that does not come is tried a few times, each time with other steps around it and, where
//! there are several, other events at its places; then it is taken to be impossible. When nothing is left, orders and chains
//! are drawn, two at a time. No promise by depth.
//!
//! Deviations: threads are held back at an event by its thread, object and number, not at an instruction, whoever comes by, so
//! one held back is the one that was seen there. Prediction does not look at locks; what they rule out is given up after its
//! tries, where Maple remembers it between nights. Who else runs is drawn (priorities that do not change, or a random walk),
//! where Maple leaves it to an operating system with priorities. Maple's chains over two variables (idioms 4 and 5) are left to
//! the draws. Only the first events of a run are looked at ([`MOST`](crate::happened::MOST)).

use std::collections::HashMap;

use crate::event::{Event, ThreadId};
use crate::happened::History;
use crate::named::Order;
use crate::ordered::{Base, Ordered};
use crate::orders::{self, Orders};
use crate::run::{Outcome, Run, RunParameters, RunReport};
use crate::source::{ChaCha, Source};
use crate::strategy::Strategy;

/// Runs that only look which events there are.
const PROFILING_RUNS: u64 = 4;
/// Tries of an order that was not seen, after which it is taken to be impossible.
const MOST_TRIES: u32 = 6;
/// Ways to try one order: events at its places.
const MOST_WAYS: usize = 3;
/// Orders and chains that are kept.
const MOST_CANDIDATES: usize = 1 << 14;
/// Separates the draws of what is aimed at, and of who runs otherwise, from each other.
const AIM_STREAM: u64 = 3;
const BASE_STREAM: u64 = 4;

/// An order or a chain that is possible.
#[derive(Clone, Debug)]
struct Candidate {
    chain: bool,
    seen: bool,
    tries: u32,
    ways: Vec<Vec<Order>>,
}

/// Tries orders that were not seen.
#[derive(Clone, Debug)]
pub struct Idiom {
    /// In the order in which runs showed them, which does not depend on addresses.
    candidates: Vec<Candidate>,
    known: HashMap<orders::Idiom, usize>,
    runs: u64,
    history: History,
    ordered: Ordered,
}

impl Default for Idiom {
    fn default() -> Idiom {
        Idiom::new()
    }
}

impl Idiom {
    /// Nothing was seen yet.
    pub fn new() -> Idiom {
        Idiom {
            candidates: Vec::new(),
            known: HashMap::new(),
            runs: 0,
            history: History::default(),
            ordered: Ordered::new(&[], Base::Turns(Vec::new())),
        }
    }

    /// What the next run aims at: what was not seen and was tried least, orders before chains; when there is no such thing, two
    /// that are drawn.
    fn aim(&mut self, run: Run) -> Vec<Order> {
        let untried =
            self.candidates.iter().enumerate().filter(|(_, one)| !one.seen && one.tries < MOST_TRIES);
        if let Some((index, _)) = untried.min_by_key(|(index, one)| (one.tries, one.chain, *index)) {
            let candidate = &mut self.candidates[index];
            candidate.tries += 1;
            return candidate.ways[(candidate.tries - 1) as usize % candidate.ways.len()].clone();
        }
        let mut stream = ChaCha::new();
        stream.begin(run.split(AIM_STREAM));
        let mut drawn = Vec::new();
        for _ in 0..2 {
            let place = stream.below(self.candidates.len() as u64) as usize;
            if let Some(candidate) = self.candidates.get(place) {
                let way = stream.below(candidate.ways.len() as u64) as usize;
                drawn.extend(candidate.ways[way].iter().copied());
            }
        }
        drawn
    }

    fn learn(&mut self) {
        let Orders { seen, predicted } = Orders::of(&self.history.events());
        for (idiom, way) in predicted {
            let room = self.candidates.len() < MOST_CANDIDATES;
            let index = *self.known.entry(idiom).or_insert(self.candidates.len());
            if index == self.candidates.len() {
                if !room {
                    self.known.remove(&idiom);
                    continue;
                }
                let chain = matches!(idiom, orders::Idiom::Chain(_));
                self.candidates.push(Candidate { chain, seen: false, tries: 0, ways: Vec::new() });
            }
            let ways = &mut self.candidates[index].ways;
            if ways.len() < MOST_WAYS && !ways.contains(&way) {
                ways.push(way);
            }
        }
        for idiom in seen {
            if let Some(&index) = self.known.get(&idiom) {
                self.candidates[index].seen = true;
            }
        }
    }
}

impl Strategy for Idiom {
    fn plan(&mut self, run: Run) -> Option<RunParameters> {
        let mut parameters = RunParameters::of("idiom");
        parameters.profiling = self.runs < PROFILING_RUNS;
        if !parameters.profiling {
            parameters.orders = self.aim(run);
        }
        Some(parameters)
    }

    fn begin(&mut self, run: Run, parameters: &RunParameters) {
        let mut stream = ChaCha::new();
        stream.begin(run.split(BASE_STREAM));
        let base = match stream.below(2) {
            0 => Base::Priorities(stream.key()),
            _ => Base::Walk(stream.key()),
        };
        self.ordered = Ordered::new(&parameters.orders, base);
        self.ordered.begin(run, parameters);
        self.history.begin();
    }

    fn spawned(&mut self, thread: ThreadId, parent: Option<ThreadId>) {
        self.history.spawned(thread, parent);
        self.ordered.spawned(thread, parent);
    }

    fn ready(&mut self, thread: ThreadId, next: Event) {
        self.history.ready(thread, next);
        self.ordered.ready(thread, next);
    }

    fn blocked(&mut self, thread: ThreadId) {
        self.ordered.blocked(thread);
    }

    fn finished(&mut self, thread: ThreadId) {
        self.history.finished(thread);
        self.ordered.finished(thread);
    }

    fn pick(&mut self) -> Option<ThreadId> {
        let picked = self.ordered.pick()?;
        self.history.picked(picked);
        Some(picked)
    }

    fn end(&mut self, report: &RunReport<'_>) {
        // What was cut off may not be what happened.
        if report.outcome != Outcome::Cut {
            self.runs += 1;
            self.learn();
        }
    }
}
