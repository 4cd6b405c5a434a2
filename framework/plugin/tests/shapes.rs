//! Stateless and scenario-based tests, shared objects, threads inside an iteration, and handles that cannot be misused.

mod fake_host;

use fake_host::Host;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use waylay_abi as abi;
use waylay_plugin::{
    Context, Distribution, Failed, Group, Kind, Object, Outcome, Scenario, Shared, Stateless, Test, Worker,
    ensure, ensure_eq,
};

static STEPS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn step(text: impl Into<String>) -> Outcome {
    STEPS.lock().unwrap().push(text.into());
    Ok(())
}

/// The steps of one test at a time: the list is one for the whole file.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    STEPS.lock().unwrap().clear();
    alone
}

struct Picks(Stateless);
impl Test for Picks {
    const NAME: &'static str = "picks";
    const ABOUT: &'static str = "which action comes";
    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        let number = Object::new("number", 41_u32, context.distribution("action")?)
            .action("show", |number, _| step(format!("number {number}")))
            .action("refuse", |_, _| Err(Failed::new("no")));
        let word = Object::new("word", "w".to_owned(), context.distribution("action")?)
            .action("show", |word, _| step(format!("word {word}")))
            .action("other", |word, _| step(format!("other {word}")));
        Ok(Self(Stateless::new(context.distribution("object")?).object(number).object(word)))
    }
    fn main(&self, worker: &Worker<'_>) -> Outcome {
        self.0.step(worker)
    }
}

struct Course(Scenario<Vec<u32>>);
impl Test for Course {
    const NAME: &'static str = "course";
    const ABOUT: &'static str = "in which order groups run";
    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        let grow = Group::new("grow")
            .pick(context.distribution("action")?)
            .times(context.distribution("times")?)
            .action("one", |state: &mut Vec<u32>, _| {
                state.push(1);
                Ok(())
            })
            .action("two", |state: &mut Vec<u32>, _| {
                state.push(2);
                Ok(())
            });
        let check = Group::new("check")
            .action("show", |state: &mut Vec<u32>, _| step(format!("{state:?}")))
            .action("length", |state: &mut Vec<u32>, _| {
                ensure!(state.len() < 5, "{} is too long", state.len());
                Ok(())
            });
        Ok(Self(Scenario::new().group(grow).group(check)))
    }
    fn main(&self, worker: &Worker<'_>) -> Outcome {
        self.0.run(&mut Vec::new(), worker)
    }
}

#[repr(C)]
struct Counter(AtomicU64);
// SAFETY: repr(C), and only this file speaks of the kind.
unsafe impl Shared for Counter {
    const KIND: &'static str = "counter";
}
impl Kind for Counter {
    const ABOUT: &'static str = "a number";
    fn create() -> Result<Self, Failed> {
        Ok(Self(AtomicU64::new(5)))
    }
}
struct Refused;
// SAFETY: never made, so never lent.
unsafe impl Shared for Refused {
    const KIND: &'static str = "refused";
}
impl Kind for Refused {
    const ABOUT: &'static str = "cannot be made";
    fn create() -> Result<Self, Failed> {
        panic!("never")
    }
}

struct Takes;
impl Test for Takes {
    const NAME: &'static str = "takes";
    const ABOUT: &'static str = "what acquire lends";
    const TAKES: &'static [&'static str] = &["counter"];
    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }
    fn main(&self, worker: &Worker<'_>) -> Outcome {
        ensure!(worker.acquire::<Refused>().is_none());
        let counter = worker.acquire::<Counter>().ok_or_else(|| Failed::new("no counter"))?;
        let number = &counter.0;
        worker.threads(4, |_| {
            number.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })?;
        ensure_eq!(counter.0.load(Ordering::Relaxed), 9);
        Ok(())
    }
}

/// Leaves its distribution behind for the next instance.
static LEFT: Mutex<Option<Distribution<i64>>> = Mutex::new(None);
struct Leaves;
impl Test for Leaves {
    const NAME: &'static str = "leaves";
    const ABOUT: &'static str = "a handle that outlives its instance";
    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        let mut left = LEFT.lock()?;
        if left.is_none() {
            *left = Some(context.distribution("action")?);
        }
        Ok(Self)
    }
    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let left = (*LEFT.lock()?).ok_or_else(|| Failed::new("nothing left"))?;
        worker.draw(left);
        Ok(())
    }
}

struct Spreads;
impl Test for Spreads {
    const NAME: &'static str = "spreads";
    const ABOUT: &'static str = "what threads of an iteration draw";
    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }
    fn main(&self, worker: &Worker<'_>) -> Outcome {
        worker.threads(3, |thread| {
            let drawn = thread.generator().bits();
            step(format!("{} {drawn}", thread.index()))
        })?;
        worker.scope(|scope| {
            scope.spawn(|_| Err(Failed::new("left")))?;
            scope.spawn(|_| Err(Failed::new("right")))
        })
    }
}

waylay_plugin::export! {
    name: "shapes",
    tests: [Picks, Course, Takes, Leaves, Spreads],
    kinds: [Counter, Refused],
}

#[test]
fn stateless_picks_object_then_action_and_names_both_in_a_failure() {
    let _alone = alone();
    let host = Host::with(&[("object", &[0, 1, 7, 0]), ("action", &[0, 1, 0, 1])]);
    let live = host.create("picks").unwrap();
    assert_eq!([(); 4].map(|()| live.main()), [0, 0, 0, abi::STATUS_FAILED]);
    assert_eq!(*STEPS.lock().unwrap(), ["number 41", "other w", "word w"]);
    assert!(host.failures()[0].message.starts_with("number.refuse: no ("));
}

#[test]
fn a_scenario_passes_its_state_on() {
    let _alone = alone();
    let host = Host::with(&[("action", &[0, 1]), ("times", &[3, 6])]);
    let live = host.create("course").unwrap();
    assert_eq!(live.main(), abi::STATUS_OK);
    assert_eq!(live.main(), abi::STATUS_FAILED);
    assert_eq!(*STEPS.lock().unwrap(), ["[1, 2, 1]", "[2, 1, 2, 1, 2, 1]"]);
    assert!(host.failures()[0].message.starts_with("check.length: 6 is too long ("));
    assert_eq!(host.progressed.load(Ordering::Relaxed), 3, "after each group that ended well");
}

#[test]
fn a_cancelled_scenario_does_nothing_more() {
    let _alone = alone();
    let host = Host::with(&[("action", &[0]), ("times", &[1000])]);
    host.cancelled.store(true, Ordering::Relaxed);
    assert_eq!(host.create("course").unwrap().main(), abi::STATUS_OK);
    assert!(STEPS.lock().unwrap().is_empty());
}

#[test]
fn shared_objects_are_made_lent_given_back_and_dropped() {
    // SAFETY: the plugin's own description; the kinds are used as the contract says.
    unsafe {
        let info = &*fake_host::WaylayPlugin();
        let [counter, refused] = [&**info.kinds, &**info.kinds.add(1)];
        assert!(refused.create.unwrap()().is_null());
        let object = counter.create.unwrap()();
        let host = Host::default();
        host.objects.lock().unwrap().insert("counter".to_owned(), object as usize);
        let live = host.create("takes").unwrap();
        assert_eq!(live.main(), abi::STATUS_OK, "{:?}", host.failures());
        assert_eq!(*host.released.lock().unwrap(), [object as usize]);
        counter.destroy.unwrap()(object);
    }
}

#[test]
fn a_distribution_of_another_instance_is_refused() {
    let host = Host::with(&[("action", &[0])]);
    let first = host.create("leaves").unwrap();
    assert_eq!(first.main(), abi::STATUS_OK);
    drop(first);
    assert_eq!(host.create("leaves").unwrap().main(), abi::STATUS_FAILED);
    assert!(host.failures()[0].message.ends_with("a distribution of another test instance"));
}

#[test]
fn threads_draw_by_seed_and_index_and_fail_one_by_one() {
    let _alone = alone();
    let host = Host::default();
    host.seed.store(1, Ordering::Relaxed);
    let live = host.create("spreads").unwrap();
    assert_eq!(live.main(), abi::STATUS_FAILED);
    let mut steps = STEPS.lock().unwrap().clone();
    steps.sort();
    let expected: Vec<_> =
        (0..3).map(|i| format!("{i} {}", waylay_plugin::Generator::new(1, i).bits())).collect();
    assert_eq!(steps, expected);
    let mut messages: Vec<_> =
        host.failures().iter().map(|f| f.message.split(' ').next().unwrap().to_owned()).collect();
    messages.sort();
    assert_eq!(messages, ["left", "right"]);
}
