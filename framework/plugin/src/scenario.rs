//! The second usual shape of a test: groups of actions, one after the other, that pass an internal state on. Scenario
//! based = {AG_k}, AG = {O_i, A_ij, IS} in section 3.5.1 of "Testing Concurrency Runtime via a Stochastic Stress
//! Framework" (Gunal and Patil, 2010).

use crate::distribution::Distribution;
use crate::failed::Outcome;
use crate::worker::Worker;

type Run<S> = Box<dyn Fn(&mut S, &Worker<'_>) -> Outcome + Send + Sync>;

struct Action<S> {
    name: &'static str,
    run: Run<S>,
}

/// Actions on the internal state that belong together.
pub struct Group<S> {
    name: &'static str,
    pick: Option<Distribution<usize>>,
    times: Option<Distribution<usize>>,
    actions: Vec<Action<S>>,
}

impl<S> Group<S> {
    /// A group that runs all its actions once, in the order of adding.
    pub fn new(name: &'static str) -> Self {
        Self { name, pick: None, times: None, actions: Vec::new() }
    }

    /// Runs one action per round instead, drawn from `pick` and counted from 0 in the order of adding.
    #[must_use]
    pub fn pick(mut self, pick: Distribution<usize>) -> Self {
        self.pick = Some(pick);
        self
    }

    /// Draws how many rounds there are; without it, one. No further round begins after cancellation.
    #[must_use]
    pub fn times(mut self, times: Distribution<usize>) -> Self {
        self.times = Some(times);
        self
    }

    /// Adds an action.
    #[must_use]
    pub fn action<F>(mut self, name: &'static str, run: F) -> Self
    where
        F: Fn(&mut S, &Worker<'_>) -> Outcome + Send + Sync + 'static,
    {
        self.actions.push(Action { name, run: Box::new(run) });
        self
    }

    fn run(&self, state: &mut S, worker: &Worker<'_>) -> Outcome {
        let rounds = self.times.map_or(1, |times| worker.draw(times));
        for _ in 0..rounds {
            if worker.cancelled() {
                break;
            }
            match self.pick {
                Some(pick) => worker
                    .pick(pick, &self.actions)
                    .into_iter()
                    .try_for_each(|a| self.act(a, state, worker))?,
                None => self.actions.iter().try_for_each(|action| self.act(action, state, worker))?,
            }
        }
        Ok(())
    }

    fn act(&self, action: &Action<S>, state: &mut S, worker: &Worker<'_>) -> Outcome {
        (action.run)(state, worker)
            .map_err(|failed| failed.during(format_args!("{}.{}", self.name, action.name)))
    }
}

/// A fixed course of groups; each leaves the internal state to the next.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Mutex;
/// use waylay_plugin::{Context, Failed, Group, Outcome, Param, Scenario, Test, Worker, ensure_eq};
///
/// /// What one iteration remembers: its own map, and how many entries it should have.
/// #[derive(Default)]
/// struct Filled {
///     map: Mutex<BTreeMap<u64, u64>>,
///     threads: usize,
/// }
///
/// struct FillAndCount(Scenario<Filled>);
///
/// impl Test for FillAndCount {
///     const NAME: &'static str = "fill-and-count";
///     const ABOUT: &'static str = "an entry that is lost when threads fill one map";
///     const PARAMS: &'static [Param] = &[Param::new("threads", "{ uniform = { min = 1, max = 4 } }")];
///
///     fn create(context: &Context<'_>) -> Result<Self, Failed> {
///         let threads = context.distribution::<usize>("threads")?;
///         let fill = Group::new("fill").action("insert", move |filled: &mut Filled, worker| {
///             filled.threads = worker.draw(threads);
///             let map = &filled.map;
///             worker.threads(filled.threads, |thread| {
///                 map.lock()?.insert(thread.index(), thread.generator().bits());
///                 Ok(())
///             })
///         });
///         let count = Group::new("count").action("entries", |filled: &mut Filled, _| {
///             ensure_eq!(filled.map.lock()?.len(), filled.threads);
///             Ok(())
///         });
///         Ok(Self(Scenario::new().group(fill).group(count)))
///     }
///
///     fn main(&self, worker: &Worker<'_>) -> Outcome {
///         self.0.run(&mut Filled::default(), worker)
///     }
/// }
/// # waylay_plugin::export! { name: "filling", tests: [FillAndCount] }
/// # fn main() {}
/// ```
pub struct Scenario<S> {
    groups: Vec<Group<S>>,
}

impl<S> Default for Scenario<S> {
    fn default() -> Self {
        Self { groups: Vec::new() }
    }
}

impl<S> Scenario<S> {
    /// A course without groups.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a group to the end of the course.
    #[must_use]
    pub fn group(mut self, group: Group<S>) -> Self {
        self.groups.push(group);
        self
    }

    /// Runs the groups in order and reports progress after each. A failure names the group and the action. After
    /// cancellation the remaining groups do nothing, so the course still ends where it would have.
    pub fn run(&self, state: &mut S, worker: &Worker<'_>) -> Outcome {
        for group in &self.groups {
            group.run(state, worker)?;
            worker.progress();
        }
        Ok(())
    }
}
