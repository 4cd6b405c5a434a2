//! The first usual shape of a test: objects and actions on them, picked by distributions, with nothing remembered from
//! one action to the next. Stateless = {O_i, A_ij} in section 3.5.1 of "Testing Concurrency Runtime via a Stochastic
//! Stress Framework" (Gunal and Patil, 2010).

use crate::distribution::Distribution;
use crate::failed::{Failed, Outcome};
use crate::worker::Worker;

type Run<O> = Box<dyn Fn(&O, &Worker<'_>) -> Outcome + Send + Sync>;

struct Action<O> {
    name: &'static str,
    run: Run<O>,
}

/// One object under test with the actions that apply to it.
pub struct Object<O> {
    name: &'static str,
    subject: O,
    pick: Distribution<usize>,
    actions: Vec<Action<O>>,
}

impl<O: Send + Sync + 'static> Object<O> {
    /// An object; `pick` draws which of its actions comes next, counted from 0 in the order of adding.
    pub fn new(name: &'static str, subject: O, pick: Distribution<usize>) -> Self {
        Self { name, subject, pick, actions: Vec::new() }
    }

    /// Adds an action.
    #[must_use]
    pub fn action<F>(mut self, name: &'static str, run: F) -> Self
    where
        F: Fn(&O, &Worker<'_>) -> Outcome + Send + Sync + 'static,
    {
        self.actions.push(Action { name, run: Box::new(run) });
        self
    }
}

trait Actions: Send + Sync {
    fn step(&self, worker: &Worker<'_>) -> Outcome;
}

impl<O: Send + Sync + 'static> Actions for Object<O> {
    fn step(&self, worker: &Worker<'_>) -> Outcome {
        let Some(action) = worker.pick(self.pick, &self.actions) else {
            return Err(Failed::new(format_args!("object {} has no actions", self.name)));
        };
        (action.run)(&self.subject, worker)
            .map_err(|failed| failed.during(format_args!("{}.{}", self.name, action.name)))
    }
}

/// A repository of objects and their actions. All workers act on the same objects, which is where races come from.
///
/// ```
/// use std::sync::Mutex;
/// use waylay_plugin::{Context, Failed, Object, Outcome, Param, Stateless, Test, Worker, ensure};
///
/// struct Stack(Stateless);
///
/// impl Test for Stack {
///     const NAME: &'static str = "stack";
///     const ABOUT: &'static str = "a pop that returns a value nobody pushed";
///     const PARAMS: &'static [Param] = &[
///         Param::new("action", "{ weighted = [{ min = 0, max = 0, p = 0.6 }, { min = 1, max = 1, p = 0.4 }] }"),
///         Param::new("value", "{ uniform = { min = 1, max = 1000 } }"),
///     ];
///
///     fn create(context: &Context<'_>) -> Result<Self, Failed> {
///         let value = context.distribution::<i64>("value")?;
///         let stack = Object::new("stack", Mutex::new(Vec::new()), context.distribution("action")?)
///             .action("push", move |stack, worker| {
///                 stack.lock()?.push(worker.draw(value));
///                 Ok(())
///             })
///             .action("pop", |stack, _| {
///                 let popped = stack.lock()?.pop();
///                 ensure!(popped.is_none_or(|value| value > 0), "popped {popped:?}");
///                 Ok(())
///             });
///         Ok(Self(Stateless::single(stack)))
///     }
///
///     fn main(&self, worker: &Worker<'_>) -> Outcome {
///         self.0.step(worker)
///     }
/// }
/// # waylay_plugin::export! { name: "stack", tests: [Stack] }
/// # fn main() {}
/// ```
pub struct Stateless {
    pick: Option<Distribution<usize>>,
    objects: Vec<Box<dyn Actions>>,
}

impl Stateless {
    /// An empty repository; `pick` draws which object comes next, counted from 0 in the order of adding.
    pub fn new(pick: Distribution<usize>) -> Self {
        Self { pick: Some(pick), objects: Vec::new() }
    }

    /// A repository of one object.
    pub fn single<O: Send + Sync + 'static>(object: Object<O>) -> Self {
        Self { pick: None, objects: vec![Box::new(object)] }
    }

    /// Adds an object, of whatever type.
    #[must_use]
    pub fn object<O: Send + Sync + 'static>(mut self, object: Object<O>) -> Self {
        self.objects.push(Box::new(object));
        self
    }

    /// Picks an object and one of its actions, and runs it. A failure names both.
    pub fn step(&self, worker: &Worker<'_>) -> Outcome {
        let object = match self.pick {
            Some(pick) => worker.pick(pick, &self.objects),
            None => self.objects.first(),
        };
        object.ok_or_else(|| Failed::new("the test has no objects"))?.step(worker)
    }
}
