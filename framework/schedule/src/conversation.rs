//! What a strategy was told during a run, as data, so that another instance of it can learn from that run.
//!
//! A program's runs happen in processes of their own, and what a strategy learns there is lost with the process.
//! [`Overheard`] passes the conversation on to a [`Listener`], who keeps it; [`retell`] repeats it to a strategy of the
//! same kind elsewhere, which then knows what it would know had it been there.

use crate::any::AnyStrategy;
use crate::event::{Event, EventKind, ObjectId, ThreadId};
use crate::run::{Run, RunParameters, RunReport};
use crate::strategy::Strategy;

/// One sentence of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// A thread exists.
    Spawned(ThreadId, Option<ThreadId>),
    /// A thread is enabled and about to do this.
    Ready(ThreadId, Event),
    /// A thread is not enabled any more.
    Blocked(ThreadId),
    /// A thread is gone.
    Finished(ThreadId),
    /// The strategy was asked, and this was its answer.
    Picked(Option<ThreadId>),
}

/// The answer that no thread is enabled, in place of a thread's number.
const NOBODY: u64 = u32::MAX as u64;

impl Said {
    /// The sentence in four words, for memory that two processes share.
    pub fn to_words(self) -> [u64; 4] {
        let first = |code: u64, thread: u64| code | thread << 32;
        match self {
            Said::Spawned(thread, parent) => {
                [first(1, thread.0.into()), parent.map_or(NOBODY, |parent| parent.0.into()), 0, 0]
            }
            Said::Ready(thread, Event { object, also, extent, kind, place }) => {
                let event = u64::from(kind.code()) | u64::from(place) << 8 | u64::from(extent) << 32;
                [first(2, thread.0.into()), event, object.0, also.0]
            }
            Said::Blocked(thread) => [first(3, thread.0.into()), 0, 0, 0],
            Said::Finished(thread) => [first(4, thread.0.into()), 0, 0, 0],
            Said::Picked(thread) => [first(5, thread.map_or(NOBODY, |thread| thread.0.into())), 0, 0, 0],
        }
    }

    /// The sentence behind these words.
    pub fn from_words([first, second, object, also]: [u64; 4]) -> Option<Said> {
        let somebody = |number: u64| (number != NOBODY).then_some(ThreadId(number as u32));
        let thread = ThreadId((first >> 32) as u32);
        Some(match first as u32 {
            1 => Said::Spawned(thread, somebody(second)),
            2 => {
                let kind = EventKind::from_code(second as u8)?;
                let (object, also) = (ObjectId(object), ObjectId(also));
                let (extent, place) = ((second >> 32) as u32, (second >> 8) as u16);
                Said::Ready(thread, Event { object, also, extent, kind, place })
            }
            3 => Said::Blocked(thread),
            4 => Said::Finished(thread),
            5 => Said::Picked(somebody(first >> 32)),
            _ => return None,
        })
    }
}

/// Who keeps a conversation.
pub trait Listener: Send + std::fmt::Debug {
    /// One more sentence.
    fn hear(&mut self, said: Said);
}

/// A strategy whose conversation is listened to.
#[derive(Debug)]
pub struct Overheard {
    inner: Box<AnyStrategy>,
    listener: Box<dyn Listener>,
}

impl Overheard {
    /// The strategy, with somebody who listens.
    pub fn new(inner: AnyStrategy, listener: Box<dyn Listener>) -> Overheard {
        Overheard { inner: Box::new(inner), listener }
    }

    /// The strategy alone.
    pub fn into_inner(self) -> AnyStrategy {
        *self.inner
    }

    /// Who is listened to.
    pub fn inner(&self) -> &AnyStrategy {
        &self.inner
    }
}

impl Strategy for Overheard {
    fn plan(&mut self, run: Run) -> Option<RunParameters> {
        self.inner.plan(run)
    }
    fn begin(&mut self, run: Run, parameters: &RunParameters) {
        self.inner.begin(run, parameters);
    }
    fn spawned(&mut self, thread: ThreadId, parent: Option<ThreadId>) {
        self.listener.hear(Said::Spawned(thread, parent));
        self.inner.spawned(thread, parent);
    }
    fn ready(&mut self, thread: ThreadId, next: Event) {
        self.listener.hear(Said::Ready(thread, next));
        self.inner.ready(thread, next);
    }
    fn blocked(&mut self, thread: ThreadId) {
        self.listener.hear(Said::Blocked(thread));
        self.inner.blocked(thread);
    }
    fn finished(&mut self, thread: ThreadId) {
        self.listener.hear(Said::Finished(thread));
        self.inner.finished(thread);
    }
    fn pick(&mut self) -> Option<ThreadId> {
        let picked = self.inner.pick();
        self.listener.hear(Said::Picked(picked));
        picked
    }
    fn end(&mut self, report: &RunReport<'_>) {
        self.inner.end(report);
    }
    fn steps_changed(&mut self) {
        self.inner.steps_changed();
    }

    fn reach(&self) -> u64 {
        self.inner.reach()
    }

    fn was_long(&mut self, parameters: &RunParameters, steps: u64) {
        self.inner.was_long(parameters, steps);
    }
}

/// The teller and the told do not agree: they are not the same strategy, or were not given the same parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "at step {step} the run went on with {picked:?}, a strategy that learns from it would have picked {would:?}"
)]
pub struct Disagreement {
    /// The step, 0 being the first.
    pub step: u64,
    /// Who ran.
    pub picked: Option<ThreadId>,
    /// Who would have run.
    pub would: Option<ThreadId>,
}

/// What is wrong with a conversation that no scheduler can have had, if something is: threads are numbered in the order in
/// which they begin, none is spoken of before that, and none is gone twice. For those who are told it by a stranger.
pub fn impossible(conversation: &[Said]) -> Option<String> {
    let mut gone: Vec<bool> = Vec::new();
    for said in conversation {
        let begun = gone.len();
        let known = |thread: ThreadId| thread.index() < begun;
        let possible = match *said {
            Said::Spawned(thread, parent) => {
                let possible = thread.index() == begun && parent.is_none_or(known);
                gone.push(false);
                possible
            }
            Said::Finished(thread) => {
                let living = gone.get_mut(thread.index()).filter(|gone| !**gone);
                living.map(|gone| *gone = true).is_some()
            }
            Said::Ready(thread, _) | Said::Blocked(thread) | Said::Picked(Some(thread)) => known(thread),
            Said::Picked(None) => true,
        };
        if !possible {
            return Some(format!("{said:?} was said when {begun} threads had begun"));
        }
    }
    None
}

/// Repeats a conversation to a strategy for which the same run was begun. It is left in the middle of the run when
/// they disagree.
pub fn retell(
    strategy: &mut AnyStrategy,
    conversation: impl IntoIterator<Item = Said>,
) -> Result<(), Disagreement> {
    let mut step = 0;
    for said in conversation {
        match said {
            Said::Spawned(thread, parent) => strategy.spawned(thread, parent),
            Said::Ready(thread, event) => strategy.ready(thread, event),
            Said::Blocked(thread) => strategy.blocked(thread),
            Said::Finished(thread) => strategy.finished(thread),
            Said::Picked(picked) => {
                let would = strategy.pick();
                if would != picked {
                    return Err(Disagreement { step, picked, would });
                }
                step += 1;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::run::{Outcome, Seed};
    use crate::spec::Spec;

    #[derive(Clone, Debug, Default)]
    struct Ear(Arc<Mutex<Vec<Said>>>);

    impl Listener for Ear {
        fn hear(&mut self, said: Said) {
            self.0.lock().unwrap().push(said);
        }
    }

    /// Two threads of five steps each.
    fn converse(strategy: &mut AnyStrategy) {
        let work = Event::local(EventKind::Fence);
        let mut left = [5, 5];
        for thread in [ThreadId(0), ThreadId(1)] {
            strategy.spawned(thread, (thread.0 > 0).then_some(ThreadId(0)));
            strategy.ready(thread, work);
        }
        while let Some(thread) = strategy.pick() {
            left[thread.index()] -= 1;
            match left[thread.index()] {
                0 => strategy.finished(thread),
                _ => strategy.ready(thread, work),
            }
        }
    }

    fn report() -> RunReport<'static> {
        RunReport { outcome: Outcome::Passed, steps: 10, lengths: &[5, 5], news: false }
    }

    #[test]
    fn who_is_told_knows_as_much_as_who_was_there() {
        for text in ["pct:depth=3", "rpro", "stride", "surw", "pos", "dfs", "pb", "db"] {
            let spec: Spec = text.parse().unwrap();
            let (mut there, mut told) = (spec.build(), spec.build());
            for index in 0..20 {
                let run = Run { seed: Seed(5), index };
                let Some(parameters) = there.plan(run) else { break };
                assert_eq!(told.plan(run).as_ref(), Some(&parameters), "{text}");
                let ear = Ear::default();
                let mut apart: AnyStrategy = Overheard::new(
                    parameters.strategy.parse::<Spec>().unwrap().build(),
                    Box::new(ear.clone()),
                )
                .into();
                apart.begin(run, &parameters);
                converse(&mut apart);
                there.begin(run, &parameters);
                converse(&mut there);
                there.end(&report());
                told.begin(run, &parameters);
                let said = ear.0.lock().unwrap().clone();
                for said in &said {
                    assert_eq!(Said::from_words(said.to_words()), Some(*said));
                }
                retell(&mut told, said).unwrap();
                told.end(&report());
            }
        }
    }

    #[test]
    fn what_no_scheduler_says_is_noticed() {
        let [first, second] = [ThreadId(0), ThreadId(1)];
        let ready = |thread| Said::Ready(thread, Event::local(EventKind::Fence));
        let begun = Said::Spawned(first, None);
        let possible: &[&[Said]] =
            &[&[begun, ready(first), Said::Picked(Some(first)), Said::Spawned(second, Some(first))], &[]];
        assert!(possible.iter().all(|said| impossible(said).is_none()));
        let never: &[&[Said]] = &[
            &[Said::Spawned(ThreadId(u32::MAX), None)],
            &[begun, begun],
            &[Said::Spawned(first, Some(second))],
            &[ready(first)],
            &[begun, Said::Blocked(second)],
            &[begun, Said::Picked(Some(second))],
            &[begun, Said::Finished(first), Said::Finished(first)],
        ];
        for said in never {
            assert!(impossible(said).is_some(), "{said:?}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

        /// Words of a stranger, as far as they are believed: they end in a disagreement, or are learned from.
        #[test]
        fn no_possible_conversation_ends_who_is_told_it(
            words in proptest::collection::vec((0..6u32, 0..6u32, 0..60u8, 0..4u64), 0..80),
        ) {
            let mut said = Vec::new();
            for (what, thread, kind, object) in words {
                let thread = ThreadId(thread);
                let kind = EventKind::from_code(kind).unwrap_or(EventKind::Yield);
                let event = Event { extent: 8, place: thread.0 as u16, ..Event::new(kind, ObjectId(object)) };
                said.push(match what {
                    0 => Said::Spawned(thread, (thread.0 > 0).then_some(ThreadId(thread.0 / 2))),
                    1 | 2 => Said::Ready(thread, event),
                    3 => Said::Blocked(thread),
                    4 => Said::Finished(thread),
                    _ => Said::Picked(Some(thread)),
                });
                if impossible(&said).is_some() {
                    said.pop();
                }
            }
            let mut coverage = crate::coverage::Coverage::default();
            coverage.hear(1, &said);
            for text in ["random", "noise", "pct:depth=3", "rpro", "stride", "surw", "pos", "dfs", "pb", "db", "portfolio"] {
                let spec: Spec = text.parse().unwrap();
                let mut strategy = spec.build();
                for index in 0..4 {
                    let run = Run { seed: Seed(5), index };
                    let Some(parameters) = strategy.plan(run) else { break };
                    strategy.begin(run, &parameters);
                    // Whom the strategy picks itself it is told as well, so that more than the first step is looked at.
                    for &one in &said {
                        let picked = matches!(one, Said::Picked(_));
                        let _ = if picked { strategy.pick().map_or(Ok(()), |_| Ok(())) } else { retell(&mut strategy, [one]) };
                    }
                    let lengths = [said.len() as u64; 6];
                    strategy.end(&RunReport { outcome: Outcome::Passed, steps: said.len() as u64, lengths: &lengths, news: index == 1 });
                }
            }
        }
    }

    #[test]
    fn another_strategy_is_noticed() {
        let mut strategy = "dfs".parse::<Spec>().unwrap().build();
        strategy.begin(Run::default(), &RunParameters::of("dfs"));
        let said = [
            Said::Spawned(ThreadId(0), None),
            Said::Ready(ThreadId(0), Event::local(EventKind::Fence)),
            Said::Picked(Some(ThreadId(1))),
        ];
        let disagreement = retell(&mut strategy, said).unwrap_err();
        assert_eq!((disagreement.step, disagreement.would), (0, Some(ThreadId(0))));
    }
}
