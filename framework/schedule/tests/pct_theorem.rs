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
use waylay_schedule::priority::{Phases, Rules};
use waylay_schedule::{ChaCha, Run, RunParameters, Seed, Source};

/// Bugs that are checked; the draws are seeded, so it is always the same ones.
const BUGS: usize = 3000;

fn random_ops(draw: &mut ChaCha) -> Vec<Op> {
    let mut ops = Vec::new();
    let length = 1 + draw.below(3) as usize;
    while ops.len() < length {
        let variable = draw.below(2) as u8;
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

fn random_program(draw: &mut ChaCha) -> Program {
    let threads = 2 + draw.below(2) as usize;
    let mut ops: Vec<Vec<Op>> = (0..threads).map(|_| random_ops(draw)).collect();
    // Now and then the first thread creates the others.
    if draw.one_in(4) {
        let spawns = (1..threads as u32).map(Spawn);
        ops[0] = spawns.chain(ops[0].iter().copied().take(2)).collect();
        return Program::spawning(ops);
    }
    Program { initial: threads, threads: ops, starts: true }
}

fn random_directive(draw: &mut ChaCha, program: &Program, size: usize) -> Option<Directive> {
    let labels: Vec<Label> = program
        .threads
        .iter()
        .enumerate()
        .flat_map(|(thread, ops)| (0..ops.len()).map(move |place| (thread as u32, place)))
        .collect();
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
    let mut draw = ChaCha::new();
    draw.begin(Run { seed: Seed(20100313), index: 0 });
    let mut found = [0usize; 4];
    let mut tight = 0;
    while found.iter().sum::<usize>() < BUGS {
        let program = random_program(&mut draw);
        let depth = 1 + draw.below(3) as usize;
        let Some(directive) = random_directive(&mut draw, &program, depth) else { continue };
        if !directive.guarantees_a_bug(&program) {
            continue;
        }
        let rules = if draw.one_in(2) {
            Rules { phases: Phases::None, final_wait: false, starvation: false }
        } else {
            Rules::default()
        };
        let (n, k, d) = (program.threads.len() as u128, most_counted(&program).max(1), depth as u32);
        let options = PctOptions { depth: Depth::Fixed(d), steps: k, rules };
        let parameters = RunParameters { steps: k, depth: d, ..RunParameters::of(options.to_string()) };
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
    assert!(found[1..].iter().all(|&count| count > BUGS / 20), "{found:?}");
    assert!(tight > 0);
}
