//! Random walk, stride, POS and SURW against exact probabilities: every random choice is enumerated.

mod model;

use std::collections::HashMap;

use model::Op::*;
use model::enumerate::{Fraction, executions, probability};
use model::figures::two_opposite_bugs;
use model::{Op, Program};
use waylay_schedule::bound;
use waylay_schedule::pos::Pos;
use waylay_schedule::stride::{Stride, StrideLimit};
use waylay_schedule::surw::{Selection, Surw};
use waylay_schedule::{Focus, ObjectId, RandomWalk, RunParameters};

fn nothing_learned() -> RunParameters {
    RunParameters::default()
}

fn two_threads(a: usize, b: usize) -> Program {
    Program::flat(vec![vec![Local; a], vec![Local; b]])
}

fn close(exact: Fraction, expected: bound::Chance) {
    assert!(
        (exact.value() - expected.value()).abs() <= 1e-12 * expected.value(),
        "{exact:?} against {expected:?}"
    );
}

#[test]
fn a_random_walk_has_the_secondary_orders_of_equation_three() {
    for a in 1..=5 {
        for b in a..=6 {
            let program = two_threads(a, b);
            let secondary = probability(&program, &nothing_learned(), RandomWalk::with_source, |run| {
                run.before((1, b - 1), (0, a - 1))
            });
            close(secondary, bound::secondary_order(a as u64, b as u64));
        }
    }
}

#[test]
fn other_threads_do_not_change_the_order_of_two() {
    let program = Program::flat(vec![vec![Local; 2], vec![Local; 3], vec![Local; 2]]);
    let exact =
        probability(&program, &nothing_learned(), RandomWalk::with_source, |run| run.before((1, 2), (0, 1)));
    close(exact, bound::secondary_order(2, 3));
}

#[test]
fn figure_five_defeats_the_coin() {
    for m in 0..5 {
        let program = two_opposite_bugs(m);
        let exact = probability(&program, &nothing_learned(), RandomWalk::with_source, |run| {
            run.before((0, m + 1), (1, 0))
        });
        assert_eq!(exact, Fraction::new(1, 1 << (m + 2)));
    }
}

#[test]
fn the_least_likely_order_under_strides() {
    for s_max in 1..=4 {
        for length in 1..=6_u64 {
            let program = two_threads(length as usize, 2);
            let make = |source| Stride::with_source(StrideLimit::Max(s_max), source);
            let exact = probability(&program, &nothing_learned(), make, |run| {
                run.before((0, length as usize - 1), (1, 0))
            });
            close(exact, bound::stride::least_likely_order_exact(length, s_max));
        }
    }
}

#[test]
fn strides_follow_the_learned_lengths() {
    // Lengths 6 and 2 at ratio 2: strides up to 3 for the first thread and 1 for the second.
    let parameters = RunParameters { lengths: vec![6, 2], ..RunParameters::default() };
    let make = |source| Stride::with_source(StrideLimit::Ratio(2.0), source);
    let program = two_threads(6, 2);
    let long_first = probability(&program, &parameters, make, |run| run.before((0, 5), (1, 0)));
    close(long_first, bound::stride::least_likely_order_exact(6, 3));
    let short_first = probability(&program, &parameters, make, |run| run.before((1, 1), (0, 0)));
    assert_eq!(short_first, Fraction::new(1, 4));
}

#[test]
fn a_stride_of_one_is_a_random_walk() {
    let program = two_threads(3, 4);
    let orders = |wanted: (u32, usize), other: (u32, usize)| {
        let make = |source| Stride::with_source(StrideLimit::Max(1), source);
        let stride = probability(&program, &nothing_learned(), make, |run| run.before(wanted, other));
        let walk = probability(&program, &nothing_learned(), RandomWalk::with_source, |run| {
            run.before(wanted, other)
        });
        assert_eq!(stride, walk);
    };
    orders((0, 2), (1, 1));
    orders((1, 3), (0, 0));
}

/// POS: the pending write of thread 1 keeps its priority while thread 0 does steps that commute with it, so thread 0
/// comes first exactly when its m+1 priorities all exceed the one of thread 1.
#[test]
fn commuting_steps_cost_partial_order_sampling_little() {
    for m in 0..6 {
        let first: Vec<Op> = [vec![Local; m], vec![Write(0, 1)]].concat();
        let program = Program::flat(vec![first, vec![Write(0, 2)]]);
        let exact =
            probability(&program, &nothing_learned(), Pos::with_source, |run| run.before((0, m), (1, 0)));
        assert_eq!(exact, Fraction::new(1, m as u128 + 2));
        let walk = probability(&program, &nothing_learned(), RandomWalk::with_source, |run| {
            run.before((0, m), (1, 0))
        });
        assert_eq!(walk, Fraction::new(1, 1 << (m + 1)));
    }
}

/// Racing events have their priorities drawn anew, so a sequence of l races is l fair coins. Without this rule the one
/// pending write would have to be the lowest of l+1.
#[test]
fn racing_events_draw_again() {
    for l in 1..5 {
        let program = Program::flat(vec![vec![Write(0, 1); l], vec![Write(0, 2)]]);
        let exact =
            probability(&program, &nothing_learned(), Pos::with_source, |run| run.before((0, l - 1), (1, 0)));
        assert_eq!(exact, Fraction::new(1, 1 << l));
    }
    // Reads do not race with each other.
    let program = Program::flat(vec![vec![Read(0); 3], vec![Read(0)]]);
    let exact = probability(&program, &nothing_learned(), Pos::with_source, |run| run.before((0, 2), (1, 0)));
    assert_eq!(exact, Fraction::new(1, 4));
}

/// A blocked thread draws when it is enabled again: the lock goes to either with the same probability.
#[test]
fn contended_locks_are_fair_under_partial_order_sampling() {
    let section = vec![Lock(0), Write(0, 1), Unlock(0)];
    let program = Program::flat(vec![section.clone(), section]);
    let exact = probability(&program, &nothing_learned(), Pos::with_source, |run| run.before((0, 0), (1, 0)));
    assert_eq!(exact, Fraction::new(1, 2));
}

/// The probability of each order of steps.
fn distribution(
    program: &Program,
    parameters: &RunParameters,
    of: impl Fn(&model::Execution) -> Vec<u32>,
) -> HashMap<Vec<u32>, Fraction> {
    let mut orders: HashMap<Vec<u32>, Fraction> = HashMap::new();
    let make = |source| Surw::with_source(Selection::All, source);
    executions(program, parameters, make, |execution, weight| {
        let sum = orders.entry(of(execution)).or_insert(Fraction::ZERO);
        *sum = sum.plus(weight);
    });
    orders
}

fn assert_uniform(orders: &HashMap<Vec<u32>, Fraction>, count: usize) {
    assert_eq!(orders.len(), count);
    for (order, &weight) in orders {
        assert_eq!(weight, Fraction::new(1, count as u128), "{order:?}");
    }
}

#[test]
fn a_uniform_walk_is_uniform_over_interleavings() {
    let parameters = RunParameters { lengths: vec![2, 3], ..RunParameters::default() };
    assert_uniform(&distribution(&two_threads(2, 3), &parameters, model::Execution::order), 10);
    let program = Program::flat(vec![vec![Local; 2], vec![Local; 1], vec![Local; 2]]);
    let parameters = RunParameters { lengths: vec![2, 1, 2], ..RunParameters::default() };
    assert_uniform(&distribution(&program, &parameters, model::Execution::order), 30);
}

/// Thread 0 creates 1, which creates 2: what children will do counts for their parents until they exist.
#[test]
fn a_uniform_walk_is_uniform_over_trees_of_threads() {
    let program = Program {
        threads: vec![vec![Spawn(1), Local, Local], vec![Spawn(2), Local], vec![Local, Local]],
        initial: 1,
        starts: false,
    };
    let parameters =
        RunParameters { lengths: vec![3, 2, 2], parents: vec![0, 0, 1], ..RunParameters::default() };
    // After the spawn of 1: two steps of 0 among the four others in C(6,2) ways; after the spawn of 2: one step of 1
    // among two of 2 in 3 ways.
    assert_uniform(&distribution(&program, &parameters, model::Execution::order), 15 * 3);
}

/// Interesting are the writes to variable 0: their orders are equally likely whatever else the threads do, and nothing
/// becomes impossible.
#[test]
fn a_selective_walk_is_uniform_over_the_interesting_events() {
    let program = Program::flat(vec![vec![Local, Local, Write(0, 1), Write(0, 1)], vec![Write(0, 2), Local]]);
    let focus = Focus::Object(ObjectId(0x1000));
    let parameters = RunParameters { lengths: vec![2, 1], focus: Some(focus), ..RunParameters::default() };
    let interesting = |execution: &model::Execution| {
        let steps = execution.trace.steps.iter().filter(|step| step.event.object == ObjectId(0x1000));
        steps.map(|step| step.thread.0).collect()
    };
    assert_uniform(&distribution(&program, &parameters, interesting), 3);
    assert_eq!(distribution(&program, &parameters, model::Execution::order).len(), 15);
}
