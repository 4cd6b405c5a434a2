//! rayon: a tree is built, walked by every parallel construct that rayon has, and changed, each group leaving the tree to
//! the next; what the walks find is compared with what one thread finds. Thread pools come from the melting pot, where
//! there is one, so that trees and sorts of other iterations run on the same threads.

use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use waylay_plugin::{
    Context, Distribution, Failed, Generator, Group, Kind, Outcome, Param, Scenario, Shared, Test, Worker,
    ensure, ensure_eq,
};

/// A pool of threads that several tests give work to.
pub struct ThreadPool(rayon::ThreadPool);

// SAFETY: the kind is provided and taken in this plugin only, so all mean this type.
unsafe impl Shared for ThreadPool {
    const KIND: &'static str = "rayon-pool";
}

impl Kind for ThreadPool {
    const ABOUT: &'static str = "a rayon thread pool of three threads";

    fn create() -> Result<Self, Failed> {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(3).thread_name(|i| format!("rayon-{i}"));
        threads.build().map(Self).map_err(Failed::new)
    }
}

/// Runs the body on a shared pool, or on rayon's own when nobody lends one.
pub(crate) fn on_pool<T: Send>(worker: &Worker<'_>, body: impl FnOnce() -> T + Send) -> T {
    match worker.acquire::<ThreadPool>() {
        Some(pool) => pool.0.install(body),
        None => body(),
    }
}

struct Node {
    value: u64,
    children: Vec<Node>,
}

/// What the groups pass on.
#[derive(Default)]
struct Grown {
    root: Option<Node>,
    /// What one thread finds: number of nodes, sum, largest value.
    expected: (u64, u64, u64),
}

/// Scenario: grow, walk, change, walk again.
pub struct Tree(Scenario<Grown>);

impl Test for Tree {
    const NAME: &'static str = "tree";
    const ABOUT: &'static str =
        "a branch that is lost, walked twice or seen half changed by rayon's parallel constructs";
    const PARAMS: &'static [Param] = &[
        Param::new("nodes", "{ exponential = { min = 1, max = 4000 } }").about("nodes of a tree"),
        Param::new("breadth", "{ uniform = { min = 1, max = 6 } }").about("most children of a node"),
        Param::new("value", "{ uniform = { min = 0, max = 1000000 } }").about("largest value of a node"),
        Param::new("walk", "{ uniform = { min = 0, max = 3 } }")
            .about("0: join, 1: scope, 2: parallel iterator, 3: fold"),
        Param::new("walks", "{ uniform = { min = 1, max = 4 } }").about("walks before and after the change"),
        Param::new("grain", "{ exponential = { min = 1, max = 200 } }")
            .about("nodes below which a walk is not divided"),
    ];
    const TAKES: &'static [&'static str] = &[ThreadPool::KIND];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        let nodes = context.distribution::<usize>("nodes")?;
        let breadth = context.distribution::<u64>("breadth")?;
        let value = context.distribution::<u64>("value")?;
        let (walk, walks) = (context.distribution("walk")?, context.distribution("walks")?);
        let grain = context.distribution::<usize>("grain")?;
        let grow = Group::new("grow").action("tree", move |grown: &mut Grown, worker| {
            let mut left = worker.draw(nodes).max(1);
            let mut generator = worker.generator(0);
            let root = grow(&mut left, worker.draw(breadth).max(1), worker.draw(value) + 1, &mut generator);
            grown.expected = alone(&root);
            grown.root = Some(root);
            Ok(())
        });
        let change = Group::new("change").action("double", |grown: &mut Grown, worker| {
            if let Some(root) = &mut grown.root {
                on_pool(worker, || double(root));
                let (nodes, sum, largest) = grown.expected;
                grown.expected = (nodes, 2 * sum, 2 * largest);
                ensure_eq!(alone(root), grown.expected, "the tree after it was doubled");
            }
            Ok(())
        });
        let course = Scenario::new()
            .group(grow)
            .group(walking("walk", walk, walks, grain))
            .group(change)
            .group(walking("walk-again", walk, walks, grain));
        Ok(Self(course))
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        self.0.run(&mut Grown::default(), worker)
    }
}

fn walking(
    name: &'static str,
    walk: Distribution<usize>,
    walks: Distribution<usize>,
    grain: Distribution<usize>,
) -> Group<Grown> {
    let check = |grown: &Grown, worker: &Worker<'_>, walk: &(dyn Fn(&Node) -> (u64, u64, u64) + Sync)| {
        let Some(root) = &grown.root else { return Ok(()) };
        ensure_eq!(on_pool(worker, || walk(root)), grown.expected, "nodes, sum and largest value");
        Ok(())
    };
    Group::new(name)
        .pick(walk)
        .times(walks)
        .action("join", move |grown: &mut Grown, worker| {
            let grain = worker.draw(grain);
            check(grown, worker, &|root| by_join(std::slice::from_ref(root), grain))
        })
        .action("scope", move |grown, worker| check(grown, worker, &by_scope))
        .action("iterator", move |grown, worker| check(grown, worker, &by_iterator))
        .action("fold", move |grown, worker| check(grown, worker, &by_fold))
}

/// A tree of at most `left` nodes; what is left over afterwards did not fit.
fn grow(left: &mut usize, breadth: u64, values: u64, generator: &mut Generator) -> Node {
    *left -= 1;
    let mut node = Node { value: generator.below(values), children: Vec::new() };
    let wanted = generator.below(breadth + 1).max(1);
    for _ in 0..wanted {
        if *left == 0 {
            break;
        }
        // A child may use up to half of what is left, so that the tree is deep but not a list.
        let mut part = 1 + generator.below((*left as u64).div_ceil(2)) as usize;
        let before = part;
        node.children.push(grow(&mut part, breadth, values, generator));
        *left -= before - part;
    }
    node
}

fn both(a: (u64, u64, u64), b: (u64, u64, u64)) -> (u64, u64, u64) {
    (a.0 + b.0, a.1 + b.1, a.2.max(b.2))
}

fn alone(node: &Node) -> (u64, u64, u64) {
    node.children.iter().map(alone).fold((1, node.value, node.value), both)
}

fn by_join(nodes: &[Node], grain: usize) -> (u64, u64, u64) {
    match nodes {
        [] => (0, 0, 0),
        [node] => both((1, node.value, node.value), by_join(&node.children, grain)),
        _ if nodes.len() <= grain / 64 => nodes.iter().map(alone).fold((0, 0, 0), both),
        _ => {
            let (left, right) = nodes.split_at(nodes.len() / 2);
            let (left, right) = rayon::join(|| by_join(left, grain), || by_join(right, grain));
            both(left, right)
        }
    }
}

fn by_scope(root: &Node) -> (u64, u64, u64) {
    let (nodes, sum, largest) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    fn visit<'s>(scope: &rayon::Scope<'s>, node: &'s Node, into: [&'s AtomicU64; 3]) {
        into[0].fetch_add(1, Ordering::Relaxed);
        into[1].fetch_add(node.value, Ordering::Relaxed);
        into[2].fetch_max(node.value, Ordering::Relaxed);
        for child in &node.children {
            scope.spawn(move |scope| visit(scope, child, into));
        }
    }
    rayon::scope(|scope| visit(scope, root, [&nodes, &sum, &largest]));
    (nodes.into_inner(), sum.into_inner(), largest.into_inner())
}

fn by_iterator(node: &Node) -> (u64, u64, u64) {
    let below = node.children.par_iter().map(by_iterator).reduce(|| (0, 0, 0), both);
    both((1, node.value, node.value), below)
}

fn by_fold(node: &Node) -> (u64, u64, u64) {
    let below = node
        .children
        .par_iter()
        .fold(|| (0, 0, 0), |so_far, child| both(so_far, by_fold(child)))
        .reduce(|| (0, 0, 0), both);
    both((1, node.value, node.value), below)
}

fn double(node: &mut Node) {
    node.value *= 2;
    node.children.par_iter_mut().for_each(double);
}

/// rayon's sorts, on the same pools.
pub struct Sort {
    size: Distribution<usize>,
    values: Distribution<u64>,
    stable: Distribution<usize>,
    chunk: Distribution<usize>,
}

impl Test for Sort {
    const NAME: &'static str = "sort";
    const ABOUT: &'static str = "an element that is lost, doubled or out of order after a parallel sort";
    const PARAMS: &'static [Param] = &[
        Param::new("size", "{ exponential = { min = 0, max = 30000 } }").about("elements"),
        Param::new("values", "{ exponential = { min = 1, max = 100000 } }").about("different values"),
        Param::new("stable", "{ uniform = { min = 0, max = 1 } }")
            .about("1: equal elements keep their order"),
        Param::new("chunk", "{ exponential = { min = 1, max = 4000 } }")
            .about("elements that are summed at once"),
    ];
    const TAKES: &'static [&'static str] = &[ThreadPool::KIND];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            size: context.distribution("size")?,
            values: context.distribution("values")?,
            stable: context.distribution("stable")?,
            chunk: context.distribution("chunk")?,
        })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let (size, values) = (worker.draw(self.size), worker.draw(self.values).max(1));
        let (stable, chunk) = (worker.draw(self.stable) == 1, worker.draw(self.chunk).max(1));
        let mut generator = worker.generator(0);
        let mut list: Vec<(u64, usize)> = (0..size).map(|place| (generator.below(values), place)).collect();
        let sum: u64 = list.iter().map(|(value, _)| value).sum();
        let list = on_pool(worker, || {
            if stable {
                list.par_sort_by_key(|(value, _)| *value);
            } else {
                list.par_sort_unstable();
            }
            list
        });
        ensure!(list.is_sorted(), "out of order");
        let after: u64 = on_pool(worker, || {
            list.par_chunks(chunk).map(|part| part.iter().map(|(value, _)| value).sum::<u64>()).sum()
        });
        ensure_eq!((after, list.len()), (sum, size), "sum and number of elements");
        Ok(())
    }
}
