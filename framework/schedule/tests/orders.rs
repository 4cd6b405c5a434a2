//! Orders of events: what is counted is what there is, by enumeration of all schedules; and `idiom` tries what was not seen.

mod model;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use model::Op::*;
use model::{Machine, Op, Program, execute};
use waylay_schedule::coverage::{Coverage, OrdersSeen};
use waylay_schedule::meeting::{is_free, meet};
use waylay_schedule::orders::Place;
use waylay_schedule::{
    AnyStrategy, Event, Listener, Outcome, Overheard, Run, RunReport, Said, Seed, Spec, Strategy, ThreadId,
};

/// The definition, event by event: an order of two places was seen when an event at one was followed by one of another thread
/// at the other that meets it, and nothing between them meets both.
fn seen_by_definition(steps: &[(ThreadId, Event)]) -> BTreeSet<[Place; 2]> {
    let steps: Vec<_> = steps.iter().filter(|(_, event)| is_free(event.kind) && !event.is_local()).collect();
    let mut seen = BTreeSet::new();
    for (then, (later, b)) in steps.iter().enumerate() {
        for (first, (earlier, a)) in steps[..then].iter().enumerate() {
            let between = &steps[first + 1..then];
            let direct = !between.iter().any(|(_, other)| meet(a, other) && meet(other, b));
            if earlier != later && meet(a, b) && direct {
                seen.insert([Place::of(*earlier, a), Place::of(*later, b)]);
            }
        }
    }
    seen
}

/// The orders of all schedules of a program.
fn enumerated(program: &Program) -> BTreeSet<[Place; 2]> {
    let mut all = BTreeSet::new();
    let mut paths = vec![(Machine::new(program), Vec::new())];
    let mut schedules = 0;
    while let Some((machine, steps)) = paths.pop() {
        let enabled = machine.enabled_threads();
        if enabled.is_empty() {
            schedules += 1;
            all.extend(seen_by_definition(&steps));
        }
        for thread in enabled {
            let (mut next, mut longer) = (machine.clone(), steps.clone());
            longer.push((ThreadId(thread as u32), machine.next_event(thread)));
            next.advance(thread);
            paths.push((next, longer));
        }
    }
    assert!(schedules > 1);
    all
}

#[derive(Debug, Default, Clone)]
struct Ear(Arc<Mutex<Vec<Said>>>);

impl Listener for Ear {
    fn hear(&mut self, said: Said) {
        self.0.lock().unwrap().push(said);
    }
}

/// The coverage of the first runs of a strategy, and how many there were.
fn covered(program: &Program, spec: &str, most: u64) -> (OrdersSeen, u64) {
    let ear = Ear::default();
    let strategy = spec.parse::<Spec>().unwrap().build();
    let mut strategy: AnyStrategy = Overheard::new(strategy, Box::new(ear.clone())).into();
    let mut coverage = Coverage::default();
    for index in 0..most {
        let run = Run { seed: Seed(3), index };
        let Some(parameters) = strategy.plan(run) else { return (coverage.numbers(), index) };
        strategy.begin(run, &parameters);
        let execution = execute(program, &mut strategy);
        coverage.hear(index + 1, &std::mem::take(&mut *ear.0.lock().unwrap()));
        let (outcome, lengths) = (Outcome::Passed, &execution.lengths[..]);
        let steps = lengths.iter().sum();
        strategy.end(&RunReport { outcome, steps, lengths, news: false });
    }
    (coverage.numbers(), most)
}

fn models() -> Vec<Program> {
    let update = |variable| vec![Read(variable), Write(variable, 1)];
    vec![
        Program::flat(vec![update(0), update(0)]),
        Program::flat(vec![vec![Write(0, 1), Write(1, 1)], vec![Read(1), Read(0)], vec![Write(0, 2)]]),
        Program::flat(vec![vec![Write(0, 1), Read(1)], vec![Write(1, 1), Read(0)]]),
        Program::flat(vec![vec![Write(0, 1), Read(0), Read(0)], vec![Write(0, 2), Write(0, 3)]]),
        Program::flat(vec![
            vec![Lock(0), Lock(1), Unlock(1), Unlock(0)],
            vec![Lock(1), Lock(0), Unlock(0), Unlock(1)],
        ]),
    ]
}

/// A complete search sees what the definition says, no more and no less; and what is predicted is what is possible.
#[test]
fn coverage_is_exact_on_small_models() {
    for (number, program) in models().iter().enumerate() {
        let wanted = enumerated(program).len() as u64;
        let (numbers, runs) = covered(program, "dfs", 100_000);
        assert!(runs < 100_000, "the search comes to its end");
        assert_eq!((numbers.seen, numbers.predicted), (wanted, wanted), "model {number}");
        assert!(numbers.last_new <= runs && numbers.runs == runs);
    }
}

/// What the program settles by creating and joining threads is no order that could be the other way round.
#[test]
fn settled_orders_are_not_counted() {
    let program = Program::spawning(vec![
        vec![Write(0, 1), Spawn(1), Write(1, 1), Join(1), Write(0, 2)],
        vec![Read(0), Read(1)],
    ]);
    let (numbers, _) = covered(&program, "dfs", 10_000);
    assert_eq!((numbers.seen, numbers.predicted), (2, 2), "only variable 1 is touched at the same time");
}

/// Locks may rule out what is predicted, and never the other way round.
#[test]
fn nothing_possible_is_missing_from_what_is_predicted() {
    let locked = |variable| vec![Lock(0), Write(variable, 1), Read(variable), Unlock(0)];
    let program = Program::flat(vec![locked(0), locked(0)]);
    let wanted = enumerated(&program).len() as u64;
    let (numbers, _) = covered(&program, "dfs", 10_000);
    assert_eq!(numbers.seen, wanted);
    assert!(numbers.predicted > wanted, "{numbers:?}");
}

/// The strategy sees every order of a small model soon: each is tried by holding threads back, not left to chance.
#[test]
fn idiom_sees_every_order() {
    for (number, program) in models().iter().enumerate() {
        let wanted = enumerated(program).len() as u64;
        // Four runs that look; then at most six for each order.
        let (numbers, _) = covered(program, "idiom", 4 + 6 * wanted);
        assert_eq!(numbers.seen, wanted, "model {number}");
    }
}

/// An order that is unlikely step by step: one thread is through before the other begins to look. A random walk sees it once in
/// 2^60 runs; here it is tried as soon as both ends were seen.
#[test]
fn idiom_reaches_an_order_that_chance_does_not() {
    let mut long: Vec<Op> = vec![Local; 60];
    long.push(Write(0, 1));
    let program = Program::flat(vec![long, vec![FailIf(0, 1)], vec![Local; 60]]);
    let fails = |spec: &str, runs: u64| {
        let mut strategy = spec.parse::<Spec>().unwrap().build();
        (0..runs).find(|&index| {
            let run = Run { seed: Seed(1), index };
            model::run_once(&program, &mut strategy, run).is_some_and(|(_, execution)| execution.failed)
        })
    };
    assert_eq!(fails("random", 2000), None);
    assert!(fails("idiom", 12).is_some());
}

/// A bug that needs one thread between two accesses of another: a chain.
#[test]
fn idiom_breaks_an_atomicity() {
    let mut reader = vec![Local; 20];
    reader.extend([SkipUnless(0, 0, 1), FailIf(0, 1)]);
    let mut writer = vec![Local; 50];
    writer.push(Write(0, 1));
    let program = Program::flat(vec![reader, writer]);
    let mut strategy = "idiom".parse::<Spec>().unwrap().build();
    let found = (0..60).any(|index| {
        let run = Run { seed: Seed(1), index };
        model::run_once(&program, &mut strategy, run).is_some_and(|(_, execution)| execution.failed)
    });
    assert!(found);
}

#[test]
fn the_number_speaks() {
    let (numbers, _) = covered(&lost_update_of_two(), "dfs", 1000);
    assert_eq!(
        numbers.to_string(),
        "6 of 6 orders of conflicting places were seen in 6 schedules that were listened to, the last new one in schedule 4"
    );
}

fn lost_update_of_two() -> Program {
    Program::flat(vec![vec![Read(0), Write(0, 1)], vec![Read(0), Write(0, 1)]])
}
