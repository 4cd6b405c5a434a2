//! A run can be repeated: from its schedule, from its switches, and from its seed and parameters.

mod model;

use model::Op::*;
use model::figures::*;
use model::{Execution, Program, execute, run_once};
use waylay_schedule::replay::{Expected, Seen};
use waylay_schedule::{
    Divergence, EventKind, Guided, Replay, Run, RunParameters, Schedule, Seed, Segment, Spec, Strategy,
    ThreadId, Turn,
};

/// A program with some of everything: spawn, join, locks, flags, branches, politely spinning threads.
fn mixed() -> Program {
    let worker = |variable: u8| {
        vec![
            Lock(0),
            Write(variable, 1),
            Unlock(0),
            SkipUnless(variable + 1, 1, 1),
            Write(7, 1),
            Lock(1),
            Unlock(1),
            Read(7),
        ]
    };
    Program::spawning(vec![
        vec![Spawn(1), Spawn(2), Spawn(3), Set(1), Join(1), Lock(0), Unlock(0), Join(2), Join(3), Exit],
        worker(0),
        worker(1),
        vec![Spin { flag: 1, polite: true }, Write(2, 1), Wait(1), Read(0)],
    ])
}

fn follow(program: &Program, strategy: &mut impl Strategy) -> Execution {
    strategy.begin(Run::default(), &RunParameters::default());
    execute(program, strategy)
}

const SPECS: &[&str] = &[
    "random",
    "pct",
    "pct:depth=3",
    "pct:depth=2,phases=idle",
    "pct:runs=100",
    "rpro:radius=10",
    "stride",
    "stride:max=2",
    "stride:ratio=3.4",
    "pos",
    "surw",
    "surw:focus=all",
    "idiom",
    "dfs",
    "pb",
    "db",
    "noise:one-in=3",
    "portfolio",
];

#[test]
fn seed_and_parameters_repeat_the_run_in_a_fresh_strategy() {
    let program = mixed();
    for text in SPECS {
        let spec: Spec = text.parse().unwrap();
        let mut strategy = spec.build();
        for index in 0..40 {
            let run = Run { seed: Seed(99), index };
            let (parameters, execution) = run_once(&program, &mut strategy, run).expect(text);
            let stored = serde_json::to_string(&(run, parameters)).unwrap();
            let (run, parameters): (Run, RunParameters) = serde_json::from_str(&stored).unwrap();
            let mut fresh = parameters.strategy.parse::<Spec>().unwrap().build();
            fresh.begin(run, &parameters);
            let again = execute(&program, &mut fresh);
            assert_eq!(execution.trace, again.trace, "{text}, run {index}: {stored}");
        }
    }
}

#[test]
fn different_seeds_make_different_runs() {
    let program = mixed();
    for text in ["random", "pct:depth=3,steps=30", "stride:max=2", "pos", "noise:one-in=3"] {
        let mut orders = std::collections::HashSet::new();
        for seed in 0..50 {
            let mut strategy = text.parse::<Spec>().unwrap().build();
            let (_, execution) =
                run_once(&program, &mut strategy, Run { seed: Seed(seed), index: 0 }).unwrap();
            orders.insert(execution.order());
        }
        // Each has far more than 50 orders; a handful of them again and again would show a seed that is not used.
        assert!(orders.len() > 20, "{text}: {}", orders.len());
    }
}

#[test]
fn a_schedule_repeats_the_run() {
    let program = mixed();
    for text in SPECS {
        let mut strategy = text.parse::<Spec>().unwrap().build();
        for index in 0..10 {
            let run = Run { seed: Seed(5), index };
            let (_, execution) = run_once(&program, &mut strategy, run).expect(text);
            let stored = execution.schedule().encode();
            let mut replay = Replay::new(Schedule::decode(&stored).unwrap());
            let again = follow(&program, &mut replay);
            assert_eq!(replay.divergence(), None, "{text}");
            assert_eq!(replay.unfinished(), 0);
            assert_eq!(again.trace, execution.trace, "{text}");
        }
    }
}

fn recorded(program: &Program) -> Schedule {
    follow(program, &mut Guided::new(Vec::new())).schedule()
}

#[test]
fn a_program_that_went_another_way_is_found_out_at_the_step() {
    let original = Program::flat(vec![vec![Local, Write(0, 1)], vec![Read(0), Local]]);
    let schedule = recorded(&original);

    let other_event = Program::flat(vec![vec![Local, Write(0, 1)], vec![Lock(0), Unlock(0)]]);
    let mut replay = Replay::new(schedule.clone());
    let execution = follow(&other_event, &mut replay);
    let expected = Expected::Step(ThreadId(1), Some(EventKind::AtomicLoad));
    let divergence = Divergence { step: 2, expected, seen: Seen::Event(EventKind::MutexLock) };
    assert_eq!(replay.divergence(), Some(divergence));
    assert_eq!(execution.trace.steps.len(), 4, "the run goes on to its end");
    assert_eq!(
        divergence.to_string(),
        "the run left the schedule at step 2: expected thread 1 about to do atomic-load, saw it about to do mutex-lock"
    );

    let blocked = Program::flat(vec![vec![Local, Wait(0)], vec![Read(0), Set(0)]]);
    let mut replay = Replay::new(schedule.clone());
    follow(&blocked, &mut replay);
    let divergence = replay.divergence().unwrap();
    assert_eq!((divergence.step, divergence.seen), (1, Seen::NotEnabled));

    let longer = Program::flat(vec![vec![Local, Write(0, 1)], vec![Read(0), Local, Local]]);
    let mut replay = Replay::new(schedule.clone());
    follow(&longer, &mut replay);
    let divergence = replay.divergence().unwrap();
    assert_eq!((divergence.step, divergence.expected, divergence.seen), (4, Expected::End, Seen::MoreSteps));

    let shorter = Program::flat(vec![vec![Local, Write(0, 1)], vec![Read(0)]]);
    let mut replay = Replay::new(schedule);
    follow(&shorter, &mut replay);
    let divergence = replay.divergence().unwrap();
    assert_eq!((divergence.step, divergence.seen), (3, Seen::NoThread));
    assert_eq!(replay.unfinished(), 1);
}

#[test]
fn the_switches_of_a_schedule_repeat_the_run() {
    let program = mixed();
    for text in SPECS {
        let mut strategy = text.parse::<Spec>().unwrap().build();
        for index in 0..10 {
            let (_, execution) =
                run_once(&program, &mut strategy, Run { seed: Seed(17), index }).expect(text);
            let mut guided = Guided::new(execution.schedule().turns());
            let again = follow(&program, &mut guided);
            // A yielding thread that was chosen again needs no switch in the schedule but would give way by itself,
            // so runs are compared only where none of the steps is one.
            if execution.trace.steps.iter().all(|step| !step.event.kind.is_idle()) {
                assert_eq!(again.trace, execution.trace, "{text}");
            }
            assert_eq!(
                guided.skipped().iter().filter(|turn| turn.of == ThreadId(0) && turn.after < 3).count(),
                0
            );
        }
    }
}

#[test]
fn fewer_switches_still_fail() {
    // Fig. 4 needs one: thread 1 after thread 0 set the flag.
    let program = flag_too_early(2, 2);
    let mut strategy = "random".parse::<Spec>().unwrap().build();
    let failing = (0..10_000)
        .find_map(|index| {
            let (_, execution) = run_once(&program, &mut strategy, Run { seed: Seed(3), index }).unwrap();
            execution.failed.then(|| execution.schedule())
        })
        .expect("a random walk finds it with probability 2⁻⁵ in each of 10,000 runs");
    let mut switches = failing.turns();
    let mut place = 0;
    while place < switches.len() {
        let mut fewer = switches.clone();
        fewer.remove(place);
        if follow(&program, &mut Guided::new(fewer.clone())).failed {
            switches = fewer;
        } else {
            place += 1;
        }
    }
    assert_eq!(switches.len(), 1, "{switches:?}");
    assert_eq!(switches[0].to, ThreadId(1));
}

#[test]
fn equivalent_runs_are_recognised() {
    // Two threads that share nothing: all their interleavings are the same.
    let program = Program::flat(vec![vec![Write(0, 1), Read(0)], vec![Write(2, 1), Read(2)]]);
    let mut search = "dfs".parse::<Spec>().unwrap().build();
    let mut traces = Vec::new();
    while let Some((_, execution)) = run_once(&program, &mut search, Run::default()) {
        traces.push(execution.trace);
    }
    assert_eq!(traces.len(), 6);
    assert!(traces.iter().all(|trace| trace.is_equivalent_to(&traces[0])));

    // Two writes each of one variable: every order of the four is another run.
    let program = Program::flat(vec![vec![Write(0, 1); 2], vec![Write(0, 2); 2]]);
    let mut search = "dfs".parse::<Spec>().unwrap().build();
    let mut classes: Vec<waylay_schedule::Trace> = Vec::new();
    while let Some((_, execution)) = run_once(&program, &mut search, Run::default()) {
        if !classes.iter().any(|class| class.is_equivalent_to(&execution.trace)) {
            classes.push(execution.trace);
        }
    }
    assert_eq!(classes.len(), 6);
}

#[test]
fn what_pct_learns_reaches_its_parameters() {
    let program = flag_too_early(3, 3);
    let mut strategy = "pct:depth=2".parse::<Spec>().unwrap().build();
    let run = |index| Run { seed: Seed(1), index };
    let (first, execution) = run_once(&program, &mut strategy, run(0)).unwrap();
    assert_eq!((first.depth, first.steps, first.profiling), (1, 0, true));
    let (second, _) = run_once(&program, &mut strategy, run(1)).unwrap();
    assert_eq!((second.depth, second.threads, second.profiling), (2, 2, false));
    // Room for an eighth more, and the next number of a coarse scale.
    let most = program.steps() + program.steps() / 2;
    assert!((execution.counted..=most).contains(&second.steps), "{second:?}");

    // 10 steps in two threads: with k = 12 and every other run bare, depth 2 reaches 95 % in 200 runs, depth 3 does not.
    let mut confident = "pct:runs=200".parse::<Spec>().unwrap().build();
    for index in 0..10 {
        let (parameters, _) = run_once(&program, &mut confident, run(index)).unwrap();
        assert!(parameters.profiling && parameters.depth == 1);
    }
    let parameters = confident.plan(run(10)).unwrap();
    assert_eq!((parameters.depth, parameters.profiling), (2, false), "{parameters:?}");
}

#[test]
fn a_switch_keeps_its_meaning_when_others_are_left_out() {
    // Three threads that each lock two of three locks: all have to be stopped between the two.
    let pair = |first: u8, second: u8| vec![Lock(first), Lock(second), Unlock(second), Unlock(first)];
    let program = Program::flat(vec![pair(0, 1), pair(1, 2), pair(2, 0)]);
    let mut strategy = "random".parse::<Spec>().unwrap().build();
    let schedules = (0..2_000).filter_map(|index| {
        let (_, execution) = run_once(&program, &mut strategy, Run { seed: Seed(5), index }).unwrap();
        execution.deadlocked.then(|| execution.schedule())
    });
    let mut failing = 0;
    for schedule in schedules {
        failing += 1;
        let mut turns = schedule.turns();
        let mut place = 0;
        while place < turns.len() {
            let mut fewer = turns.clone();
            fewer.remove(place);
            if follow(&program, &mut Guided::new(fewer.clone())).deadlocked {
                turns = fewer;
            } else {
                place += 1;
            }
        }
        assert!(turns.len() <= 3, "{turns:?} of {schedule:?}");
    }
    assert!(failing > 0);
}

#[test]
fn a_run_that_went_another_way_is_told_where_to_turn() {
    let at = |thread, steps| Segment { thread: ThreadId(thread), first: EventKind::Fence, steps };
    let wanted = Schedule::new([at(0, 3), at(1, 2), at(0, 4)]);
    assert_eq!(wanted.correction(&wanted), None);
    let turn = |of, after, to| Turn { of: ThreadId(of), after, to: ThreadId(to) };
    let other = Schedule::new([at(0, 3), at(1, 5)]);
    assert_eq!(wanted.correction(&other), Some(turn(1, 2, 0)));
    // To go on is a choice too: a thread that yields would give way by itself.
    assert_eq!(wanted.correction(&Schedule::new([at(0, 1), at(2, 9)])), Some(turn(0, 1, 0)));
    assert_eq!(wanted.turns(), [turn(0, 3, 1), turn(1, 2, 0)]);
    assert_eq!([wanted.step_of(turn(0, 3, 1)), wanted.step_of(turn(0, 5, 1))], [Some(3), Some(7)]);
    assert_eq!(wanted.step_of(turn(1, 3, 0)), None);
}
