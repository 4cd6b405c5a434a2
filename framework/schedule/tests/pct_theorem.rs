//! Theorem 9 of the PCT paper on random programs and random bugs.
//!
//! A program is drawn, then a directive of size d; if going through all schedules shows that the directive guarantees a
//! bug (definition 7), the bug has depth at most d and PCT must find it with probability at least 1/(n·k^(d−1)). The
//! probability is computed exactly, over all priorities and change points, with the greatest number of counted steps
//! of any schedule as k: so this also proves the rule by which steps are counted.

mod model;

use model::Op::{self, *};
use model::directive::{Directive, Label};
use model::enumerate::{Fraction, probability};
use model::{Program, most_counted};
use waylay_schedule::depth::Depth;
use waylay_schedule::pct::{Pct, PctOptions};
use waylay_schedule::priority::Rules;
use waylay_schedule::{ChaCha, Run, RunParameters, Seed, Source};

/// Bugs that are checked; the draws are seeded, so it is always the same ones.
const BUGS: usize = 3000;

/// Whether threads wait with a deadline.
#[derive(Clone, Copy, PartialEq)]
enum Waits {
    Never,
    Often,
}

fn random_ops(draw: &mut ChaCha, waits: Waits) -> Vec<Op> {
    let mut ops = Vec::new();
    let length = 1 + draw.below(3) as usize;
    while ops.len() < length {
        let variable = draw.below(2) as u8;
        if waits == Waits::Often && draw.one_in(4) {
            ops.push(WaitFor(variable));
            continue;
        }
        match draw.below(8) {
            0 => ops.push(Local),
            1 => ops.push(Read(variable)),
            2 => ops.push(Write(variable, 1)),
            3 => ops.push(Set(draw.below(2) as u8)),
            4 => ops.push(Wait(draw.below(2) as u8)),
            5 => ops.extend([SkipUnless(variable, 1, 1), Write(1 - variable, 1)]),
            6 => ops.extend([Lock(variable), Write(variable, 1), Unlock(variable)]),
            _ => ops.extend([Lock(variable), Unlock(variable)]),
        }
    }
    ops
}

fn random_program(draw: &mut ChaCha, waits: Waits) -> Program {
    let threads = 2 + draw.below(2) as usize;
    let mut ops: Vec<Vec<Op>> = (0..threads).map(|_| random_ops(draw, waits)).collect();
    // Now and then the first thread creates the others.
    if draw.one_in(4) {
        let spawns = (1..threads as u32).map(Spawn);
        ops[0] = spawns.chain(ops[0].iter().copied().take(2)).collect();
        return Program::spawning(ops);
    }
    Program { initial: threads, threads: ops, starts: true }
}

fn random_directive(draw: &mut ChaCha, program: &Program, size: usize) -> Option<Directive> {
    let mut labels: Vec<Label> = Vec::new();
    for (thread, ops) in program.threads.iter().enumerate() {
        for (place, op) in ops.iter().enumerate() {
            labels.push((thread as u32, place));
            if matches!(op, WaitFor(_)) {
                labels.push(((thread + program.threads.len()) as u32, place));
            }
        }
    }
    let mut constraints: Vec<(Vec<Label>, Label)> = Vec::new();
    for _ in 0..size {
        let target = labels[draw.below(labels.len() as u64) as usize];
        if constraints.iter().any(|(_, other)| *other == target) {
            return None;
        }
        let sources = 1 + draw.below(2);
        let sources = (0..sources).map(|_| labels[draw.below(labels.len() as u64) as usize]);
        constraints.push((sources.filter(|source| source.0 != target.0).collect(), target));
    }
    Some(Directive { constraints })
}

#[test]
fn every_bug_of_depth_d_is_found_with_the_guaranteed_probability() {
    check_bugs(BUGS, Waits::Never);
}

/// The expiries of a thread's waits are the steps of a thread of their own.
#[test]
fn timers_are_threads_to_the_theorem() {
    check_bugs(BUGS / 4, Waits::Often);
}

fn check_bugs(bugs: usize, waits: Waits) {
    let mut draw = ChaCha::new();
    draw.begin(Run { seed: Seed(20100313), index: 0 });
    let mut found = [0usize; 4];
    let mut tight = 0;
    while found.iter().sum::<usize>() < bugs {
        let program = random_program(&mut draw, waits);
        let depth = 1 + draw.below(3) as usize;
        let Some(directive) = random_directive(&mut draw, &program, depth) else { continue };
        if !directive.guarantees_a_bug(&program) {
            continue;
        }
        // The rule against starvation is meant to disturb threads that wait and wait again.
        let usual = if waits == Waits::Never { draw.one_in(3) } else { false };
        let (rules, bare) = match draw.one_in(2) {
            _ if usual => (Rules::default(), false),
            drawn => (if drawn { Rules::default() } else { Rules::BARE }, drawn),
        };
        let timed = |ops: &&Vec<Op>| ops.iter().any(|op| matches!(op, WaitFor(_)));
        let timers = program.threads.iter().filter(timed).count();
        let n = (program.threads.len() + timers) as u128;
        let (k, d) = (most_counted(&program).max(1), depth as u32);
        let options = PctOptions { depth: Depth::Fixed(d), steps: k, rules };
        let parameters = RunParameters { steps: k, depth: d, bare, ..RunParameters::of(options.to_string()) };
        let exact = probability(
            &program,
            &parameters,
            |source| Pct::with_source(options, source),
            |execution| directive.holds_in(&program, execution),
        );
        let bound = Fraction::new(1, n * u128::from(k).pow(d - 1));
        assert!(exact >= bound, "{exact:?} < {bound:?} for {directive:?} in {program:?} with {options}");
        found[depth] += 1;
        tight += usize::from(exact == bound);
    }
    // The search must not have degenerated into one kind of bug.
    assert!(found[1..].iter().all(|&count| count > bugs / 30), "{found:?}");
    assert!(tight > 0);
}
