//! The strategies as they ship, with ChaCha8, against the exact probabilities of the same strategies enumerated.
//!
//! Each frequency is taken over N independent runs and must lie within ε of the exact probability. By Hoeffding's
//! inequality that fails with probability at most 2·exp(−2Nε²) if the strategy is right; ε is chosen for 10⁻⁸ each,
//! and there are fewer than 50 of them, so the false-alarm rate of this file is below 5·10⁻⁷. Seeds are fixed all the
//! same.

mod model;

use model::enumerate::{Enumerator, probability};
use model::figures::*;
use model::{Execution, Op::*, Program, execute};
use waylay_schedule::depth::Depth;
use waylay_schedule::pct::{Pct, PctOptions};
use waylay_schedule::pos::Pos;
use waylay_schedule::priority::Rules;
use waylay_schedule::rpro::{RPro, RProOptions};
use waylay_schedule::stride::{Stride, StrideLimit};
use waylay_schedule::surw::{Selection, Surw};
use waylay_schedule::{ChaCha, RandomWalk, Run, RunParameters, Seed, Strategy};

const RUNS: u64 = 10_000;
const FALSE_ALARM: f64 = 1e-8;

fn compare<E: Strategy, P: Strategy>(
    name: &str,
    program: &Program,
    parameters: &RunParameters,
    enumerated: impl FnOnce(Enumerator) -> E,
    shipped: impl FnOnce(ChaCha) -> P,
    wanted: impl Fn(&Execution) -> bool,
) {
    let exact = probability(program, parameters, enumerated, &wanted).value();
    let mut strategy = shipped(ChaCha::new());
    let hits = (0..RUNS).filter(|&index| {
        strategy.begin(Run { seed: Seed(2026), index }, parameters);
        wanted(&execute(program, &mut strategy))
    });
    let sampled = hits.count() as f64 / RUNS as f64;
    let tolerance = ((2.0 / FALSE_ALARM).ln() / (2.0 * RUNS as f64)).sqrt();
    assert!((sampled - exact).abs() <= tolerance, "{name}: {sampled} is not within {tolerance} of {exact}");
}

#[test]
fn pct_and_rpro() {
    for depth in 1..=3 {
        let program = window_in_window(1);
        let steps = program.steps();
        let options = PctOptions { depth: Depth::Fixed(depth), steps, rules: Rules::default() };
        let parameters = RunParameters { steps, depth, ..RunParameters::of(options.to_string()) };
        let enumerated = |source| Pct::with_source(options, source);
        let shipped = |source| Pct::with_source(options, source);
        // Every order of the first steps, not the bug alone, which is rare.
        for order in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            compare("pct", &program, &parameters, enumerated, shipped, |run| run.order()[..2] == order);
        }
        let radius = 3;
        let options = RProOptions { radius, depth: Depth::Fixed(depth), steps, rules: Rules::default() };
        let parameters = RunParameters { steps, depth, ..RunParameters::of(options.to_string()) };
        let enumerated = |source| RPro::with_source(options, source);
        let shipped = |source| RPro::with_source(options, source);
        compare("rpro", &program, &parameters, enumerated, shipped, |run| run.order().ends_with(&[0]));
    }
}

#[test]
fn pct_on_three_threads_and_locks() {
    let section = |variable| vec![Lock(0), Write(variable, 1), Unlock(0), Read(1 - variable)];
    let program = Program::flat(vec![section(0), section(1), vec![Read(0), Read(1)]]);
    let steps = 8;
    let options = PctOptions { depth: Depth::Fixed(3), steps, rules: Rules::default() };
    let parameters = RunParameters { steps, depth: 3, ..RunParameters::of(options.to_string()) };
    for last in 0..3 {
        compare(
            "pct",
            &program,
            &parameters,
            |source| Pct::with_source(options, source),
            |source| Pct::with_source(options, source),
            |run| run.order().ends_with(&[last]),
        );
    }
}

#[test]
fn walks_and_strides() {
    let program = Program::flat(vec![vec![Local; 4], vec![Local; 2], vec![Local]]);
    let parameters = RunParameters { lengths: vec![4, 2, 1], ..RunParameters::default() };
    for last in 0..3 {
        let wanted = |run: &Execution| run.order().ends_with(&[last]);
        compare("random", &program, &parameters, RandomWalk::with_source, RandomWalk::with_source, wanted);
        for limit in [StrideLimit::Max(2), StrideLimit::Ratio(1.5)] {
            let enumerated = |source| Stride::with_source(limit, source);
            let shipped = |source| Stride::with_source(limit, source);
            compare("stride", &program, &parameters, enumerated, shipped, wanted);
        }
        let enumerated = |source| Surw::with_source(Selection::All, source);
        let shipped = |source| Surw::with_source(Selection::All, source);
        compare("surw", &program, &parameters, enumerated, shipped, wanted);
    }
}

#[test]
fn partial_order_sampling() {
    let program =
        Program::flat(vec![vec![Local, Write(0, 1), Read(1)], vec![Write(0, 2)], vec![Write(1, 1)]]);
    for last in 0..3 {
        let wanted = |run: &Execution| run.order().ends_with(&[last]);
        compare("pos", &program, &RunParameters::default(), Pos::with_source, Pos::with_source, wanted);
    }
}
