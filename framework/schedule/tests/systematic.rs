//! Systematic searches see what they should, once, and say when they are done.

mod model;

use std::collections::HashSet;

use model::Op::*;
use model::figures::*;
use model::{Execution, Program, run_once};
use waylay_schedule::systematic::{Bounding, Systematic};
use waylay_schedule::{Run, Shard, Strategy};

/// All executions of a search, with the bound each was made under.
fn search(program: &Program, bounding: Bounding, limit: Option<u32>) -> Vec<(u32, Execution)> {
    let mut strategy = Systematic::new(bounding, limit);
    let mut executions = Vec::new();
    while let Some((parameters, execution)) = run_once(program, &mut strategy, Run::default()) {
        executions.push((parameters.depth, execution));
        assert!(executions.len() < 100_000);
    }
    assert!(strategy.exhausted() && strategy.plan(Run::default()).is_none());
    executions
}

fn orders(executions: &[(u32, Execution)]) -> HashSet<Vec<u32>> {
    executions.iter().map(|(_, execution)| execution.order()).collect()
}

/// Switches away from a thread that could have gone on.
fn preemptions(program: &Program, order: &[u32]) -> u32 {
    let mut machine = model::Machine::new(program);
    let mut count = 0;
    for (place, &thread) in order.iter().enumerate() {
        let previous = place.checked_sub(1).map(|place| order[place]);
        if previous.is_some_and(|previous| previous != thread && machine.enabled(previous as usize)) {
            count += 1;
        }
        machine.advance(thread as usize);
    }
    count
}

#[test]
fn depth_first_search_sees_every_interleaving_once() {
    let program = Program::flat(vec![vec![Local; 3], vec![Local; 4]]);
    let executions = search(&program, Bounding::None, None);
    assert_eq!(executions.len(), 35);
    assert_eq!(orders(&executions).len(), 35);
    let program = Program::flat(vec![vec![Local; 2], vec![Local; 2], vec![Local; 2]]);
    assert_eq!(orders(&search(&program, Bounding::None, None)).len(), 90);
}

#[test]
fn the_first_schedule_does_not_preempt() {
    let program = Program::flat(vec![vec![Local; 3], vec![Local; 4]]);
    let (_, first) = &search(&program, Bounding::None, None)[0];
    assert_eq!(first.order(), [0, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn preemption_bounding_sees_all_schedules_of_each_bound_in_turn() {
    let program =
        Program::flat(vec![vec![Lock(0), Local, Unlock(0)], vec![Lock(0), Unlock(0)], vec![Local; 2]]);
    let everything = orders(&search(&program, Bounding::None, None));
    for limit in 0..=3 {
        let seen = orders(&search(&program, Bounding::Preemptions, Some(limit)));
        let expected: HashSet<Vec<u32>> =
            everything.iter().filter(|order| preemptions(&program, order) <= limit).cloned().collect();
        assert_eq!(seen, expected, "limit {limit}");
    }
    let unlimited = search(&program, Bounding::Preemptions, None);
    assert_eq!(orders(&unlimited), everything);
    assert!(unlimited.is_sorted_by_key(|&(bound, _)| bound));
    assert!(unlimited.iter().all(|(bound, execution)| preemptions(&program, &execution.order()) <= *bound));
}

#[test]
fn delay_bounding_starts_with_one_schedule_and_ends_with_all() {
    let program = Program::flat(vec![vec![Local; 2], vec![Local; 2], vec![Local; 1]]);
    assert_eq!(search(&program, Bounding::Delays, Some(0)).len(), 1);
    let everything = orders(&search(&program, Bounding::None, None));
    assert_eq!(orders(&search(&program, Bounding::Delays, None)), everything);
    // One delay: any of the steps at which another thread is enabled, besides the schedule without delays.
    let once = search(&program, Bounding::Delays, Some(1));
    assert_eq!(orders(&once).len(), 5);
}

/// Fig. 3 of the PCT paper has depth 1 but needs a preemption.
#[test]
fn figure_three_needs_one_preemption() {
    let program = ordering_after_event();
    let fails = |limit| {
        search(&program, Bounding::Preemptions, Some(limit)).iter().any(|(_, execution)| execution.failed)
    };
    assert!(!fails(0));
    assert!(fails(1));
}

#[test]
fn deadlocks_are_found_with_one_preemption() {
    let deadlocks = |limit| {
        let executions = search(&deadlock(2), Bounding::Preemptions, Some(limit));
        executions.iter().filter(|(_, execution)| execution.deadlocked).count()
    };
    assert_eq!(deadlocks(0), 0);
    assert!(deadlocks(1) > 0);
}

/// A thread that waits without showing it gives way after a while: the search does not stay in one run.
#[test]
fn busy_spinning_does_not_hold_a_bounded_search_up() {
    let program = Program::flat(vec![vec![SpinBusy(0)], vec![Local, Set(0)]]);
    for bounding in [Bounding::None, Bounding::Preemptions, Bounding::Delays] {
        let mut strategy = Systematic::new(bounding, Some(1));
        for _ in 0..3 {
            let (_, execution) = run_once(&program, &mut strategy, Run::default()).unwrap();
            assert!(!execution.cut && !execution.deadlocked, "{bounding:?}");
        }
    }
}

/// A thread about to yield is passed over for free, so a search over a polite spin loop ends under every bound.
#[test]
fn polite_spinning_does_not_hold_a_bounded_search_up() {
    let program = Program::flat(vec![vec![Spin { flag: 0, polite: true }], vec![Local, Set(0)]]);
    for bound in 0..=2 {
        let executions = search(&program, Bounding::Preemptions, Some(bound));
        assert!(executions.iter().any(|(_, execution)| !execution.cut));
    }
}

/// All parts of a search see together what one search sees; what each of them has under a bound, no other has.
#[test]
fn the_parts_of_a_search_make_up_the_whole() {
    let program = Program::flat(vec![vec![Local; 4], vec![Local; 4], vec![Local; 2]]);
    for (bounding, limit) in
        [(Bounding::None, None), (Bounding::Preemptions, Some(2)), (Bounding::Delays, Some(3))]
    {
        let whole = orders(&search(&program, bounding, limit));
        for of in [1, 2, 4, 16] {
            let mut together = HashSet::new();
            let mut most = 0;
            for number in 1..=of {
                let shard = Shard::new(number, of).unwrap();
                let mut strategy = Systematic::new(bounding, limit);
                strategy.divide(shard);
                let mut own = HashSet::new();
                let mut made = 0;
                while let Some((parameters, execution)) = run_once(&program, &mut strategy, Run::default()) {
                    made += 1;
                    if shard.has_choices(&parameters.choices) {
                        own.insert((parameters.depth, execution.order()));
                    }
                }
                assert!(strategy.exhausted());
                most = most.max(made);
                for order in own {
                    assert!(together.insert(order), "{bounding:?} {shard}: another part has it, too");
                }
            }
            let seen: HashSet<Vec<u32>> = together.into_iter().map(|(_, order)| order).collect();
            assert_eq!(seen, whole, "{bounding:?} in {of} parts");
            if bounding == Bounding::None && of == 4 {
                assert!(most < whole.len(), "a part makes fewer than all: {most} of {}", whole.len());
            }
        }
    }
}
