//! PCT and RPro against exact probabilities: every random choice is enumerated.

mod model;

use model::directive::Directive;
use model::enumerate::{Fraction, probability};
use model::figures::*;
use model::{Execution, Program, STEP_LIMIT, most_counted};
use waylay_schedule::depth::Depth;
use waylay_schedule::pct::{Pct, PctOptions};
use waylay_schedule::priority::{Phases, Rules};
use waylay_schedule::rpro::{RPro, RProOptions};
use waylay_schedule::{Run, RunParameters, Seed, Strategy};

/// The bare algorithm of Fig. 7.
const BARE: Rules = Rules::BARE;

fn pct(
    program: &Program,
    steps: u64,
    depth: u32,
    rules: Rules,
    wanted: impl Fn(&Execution) -> bool,
) -> Fraction {
    let options = PctOptions { depth: Depth::Fixed(depth), steps, rules };
    let parameters = RunParameters { steps, depth, ..RunParameters::of(options.to_string()) };
    probability(program, &parameters, |source| Pct::with_source(options, source), wanted)
}

fn failed(execution: &Execution) -> bool {
    assert!(execution.trace.steps.len() < STEP_LIMIT);
    execution.failed
}

fn one_in(denominator: u64) -> Fraction {
    Fraction::new(1, u128::from(denominator))
}

#[test]
fn ordering_bugs_are_found_every_other_run() {
    for depth in 1..=3 {
        let exact = pct(&ordering(), 4, depth, BARE, failed);
        assert!(exact >= Fraction::new(1, 2 * 4u128.pow(depth - 1)), "{exact:?}");
    }
    assert_eq!(pct(&ordering(), 4, 1, BARE, failed), one_in(2));
}

#[test]
fn the_event_of_figure_three_does_not_change_the_depth() {
    assert_eq!(pct(&ordering_after_event(), 5, 1, BARE, failed), one_in(2));
}

#[test]
fn figure_four_is_tight() {
    for (before, after) in [(0, 0), (0, 3), (2, 0), (3, 2)] {
        let program = flag_too_early(before, after);
        for k in [program.steps(), most_counted(&program)] {
            assert_eq!(
                pct(&program, k, 2, BARE, failed),
                one_in(2 * k),
                "before={before} after={after} k={k}"
            );
        }
        assert_eq!(pct(&program, program.steps(), 1, BARE, failed), Fraction::ZERO);
    }
}

#[test]
fn figure_five_both_bugs_half_of_the_time() {
    for m in 0..6 {
        let program = two_opposite_bugs(m);
        let (k, last) = (program.steps(), m + 1);
        assert_eq!(pct(&program, k, 1, BARE, |run| run.before((0, last), (1, 0))), one_in(2));
        assert_eq!(pct(&program, k, 1, BARE, |run| run.before((1, last), (0, 0))), one_in(2));
    }
}

#[test]
fn the_example_of_the_short_proof_has_probability_one_in_two_k() {
    for r in 2..8 {
        for s in 2..8 {
            let k = (r + s) as u64;
            assert_eq!(pct(&file_handle(r, s), k, 2, BARE, failed), one_in(2 * k), "r={r} s={s}");
        }
    }
}

#[test]
fn a_window_in_a_window_is_tight_for_depth_three() {
    for tail in 0..4 {
        let program = window_in_window(tail);
        let k = program.steps();
        assert_eq!(pct(&program, k, 3, BARE, failed), one_in(2 * k * k));
        assert_eq!(pct(&program, k, 2, BARE, failed), Fraction::ZERO);
    }
}

#[test]
fn a_baton_needs_the_lowest_of_all_threads() {
    for n in 2..=6 {
        let program = baton(n);
        assert_eq!(pct(&program, program.steps(), 1, BARE, failed), one_in(u64::from(n)));
    }
}

/// Section 2.6.1 of the paper: any of several change points will do, either thread may be the one that stops, or the
/// bug is there more than once. The probabilities add up.
#[test]
fn what_can_happen_in_many_ways_exceeds_the_bound() {
    for gap in 0..6 {
        let program = deadlock(gap);
        let k = program.steps();
        let exact = pct(&program, k, 2, BARE, |run| run.deadlocked);
        // Thread 0 stops at one of gap+1 steps when it is ahead, thread 1 at one step when it is.
        assert_eq!(exact, Fraction::new(gap as u128 + 2, 2 * u128::from(k)));
        assert!(exact > one_in(2 * k));
    }
    for times in 2..5 {
        let program = flag_too_early_repeated(times);
        let k = program.steps();
        let exact = pct(&program, k, 2, BARE, failed);
        assert_eq!(exact, Fraction::new(u128::from(times), 2 * u128::from(k)));
    }
    // Fig. 1(b): thread 0 must stop between its two writes, thread 1 between test and use.
    let program = atomicity();
    assert!(pct(&program, program.steps(), 3, BARE, failed) >= one_in(2 * 16));
}

#[test]
fn change_points_fall_only_where_they_matter() {
    // Thread 1 waits until thread 0 did its sequential part, which is not counted.
    use model::Op::*;
    let sequential = vec![Local; 20];
    let first = [sequential, vec![Set(0), Write(1, 1), Write(0, 1)]].concat();
    let program = Program::flat(vec![first, vec![Wait(0), SkipUnless(1, 1, 1), FailIf(0, 0)]]);
    let k = most_counted(&program);
    assert!(k <= 5, "{k}");
    assert!(pct(&program, k, 2, BARE, failed) >= one_in(2 * k));
}

/// A step after which the thread is blocked counts even when one other thread alone is enabled: thread 0 must drop
/// just there, or it comes before the last step of thread 1 as soon as it can.
#[test]
fn a_thread_that_blocks_itself_can_drop_there() {
    use model::Op::*;
    let threads = vec![vec![Local, Wait(0), Write(0, 1)], vec![Set(0), Local]];
    let program = Program { initial: 2, threads, starts: true };
    let constraints = vec![(vec![(0, 0)], (1, 0)), (vec![(1, 1)], (0, 1))];
    let directive = Directive { constraints };
    assert!(directive.guarantees_a_bug(&program));
    let k = most_counted(&program);
    let exact = pct(&program, k, 2, BARE, |execution| directive.holds_in(&program, execution));
    assert!(exact >= one_in(2 * k), "{exact:?}");
}

#[test]
fn phases_shorten_what_change_points_are_spread_over() {
    let program = fork_join_twice();
    let in_phases = Rules { phases: Phases::Joined, ..BARE };
    // Counted steps of one phase: start, two spawns and a join of the main thread, and those of two children but the
    // last; three threads live at a time.
    let k = 8;
    let with = pct(&program, k, 2, in_phases, failed);
    assert!(with >= one_in(3 * k), "{with:?}");
    let whole = program.steps();
    let without = pct(&program, whole, 2, BARE, failed);
    assert!(without >= one_in(5 * whole), "{without:?}");
    assert!(with > without, "{with:?} against {without:?}");
}

#[test]
fn the_main_thread_waits_before_it_exits() {
    let program = exit_too_early(4);
    let waiting = Rules { final_wait: true, ..BARE };
    assert_eq!(pct(&program, 10, 1, BARE, failed), one_in(2));
    assert_eq!(pct(&program, 10, 1, waiting, failed), Fraction::ONE);
}

/// Of the runs that most rules apply to, those are bare that the strategy draws so.
fn drawn_bare(program: &Program, steps: u64, depth: u32, wanted: impl Fn(&Execution) -> bool) -> Fraction {
    let options = PctOptions { depth: Depth::Fixed(depth), steps, rules: Rules::default() };
    let parameters = RunParameters { steps, depth, bare: true, ..RunParameters::of(options.to_string()) };
    probability(program, &parameters, |source| Pct::with_source(options, source), wanted)
}

#[test]
fn a_bare_run_lets_the_main_thread_leave_early() {
    let program = exit_too_early(4);
    let left = |run: &Execution| run.before((0, 2), (1, 5));
    let waiting = Rules { final_wait: true, ..BARE };
    assert_eq!(pct(&program, 10, 1, waiting, left), Fraction::ZERO);
    assert_eq!(drawn_bare(&program, 10, 1, left), one_in(2));
}

#[test]
fn a_bare_run_finds_what_lies_in_two_phases() {
    // The first phase leaves a flag that a thread of the second must not see: it has to stop just before it writes it.
    let program = fork_join_twice();
    let k = most_counted(&program);
    let exact = drawn_bare(&program, k, 2, failed);
    assert_eq!(exact, pct(&program, k, 2, BARE, failed));
    assert!(exact >= one_in(5 * k), "{exact:?}");
}

/// The thread that spins goes on for as long as a schedule of k steps could last, and then gives way so that the run ends.
#[test]
fn a_bare_run_ends_although_a_thread_spins() {
    use model::Op::*;
    let program = Program::flat(vec![
        vec![Spin { flag: 0, polite: true }, FailIf(T, 0)],
        vec![Local, Set(0), Write(T, 1)],
    ]);
    let options = PctOptions { depth: Depth::Fixed(2), steps: 5, rules: Rules::default() };
    let mut strategy = Pct::new(options);
    let mut failures = 0;
    for index in 0..400 {
        let run = Run { seed: Seed(3), index };
        let parameters =
            RunParameters { steps: 5, depth: 2, bare: true, ..RunParameters::of(options.to_string()) };
        strategy.begin(run, &parameters);
        let execution = model::execute(&program, &mut strategy);
        assert!(execution.trace.steps.len() < 2 * 5 + 64 + 400, "{}", execution.trace.steps.len());
        failures += u32::from(execution.failed);
        model::finish(&mut strategy, &execution);
    }
    // 1/(2·5) in each: fewer than 8 of 400 has probability 2⁻³⁶.
    assert!(failures >= 8, "{failures}");
}

/// A waiter that is registered, a second thread that sees it, and the wait expires before that has done what it does then.
/// With the expiry as a step of the waiter it takes two change points: a thread that runs first gives up at once.
#[test]
fn a_wait_that_expires_in_a_window_takes_one_change_point() {
    for tail in 0..3 {
        let program = expires_in_a_window(tail);
        let k = most_counted(&program);
        // The waiter before the other thread, and that before the waiter's timer.
        assert_eq!(pct(&program, k, 2, BARE, failed), one_in(6 * k), "tail={tail}");
        assert_eq!(drawn_bare(&program, k, 2, failed), one_in(6 * k), "tail={tail}");
        assert_eq!(pct(&program, k, 1, BARE, failed), Fraction::ZERO);
    }
}

/// Expiry is a depth of its own: whether the waiter is woken or gives up is which of two threads comes first.
#[test]
fn who_comes_first_decides_whether_a_wait_expires() {
    use model::Op::*;
    let program = Program::flat(vec![vec![WaitFor(0), FailIf(T, 0)], vec![Write(T, 1), Set(0)]]);
    // The timer before the other thread: the waiter has lost its priority only if it is behind both.
    let gave_up = pct(&program, most_counted(&program), 1, BARE, failed);
    assert_eq!(gave_up, Fraction::new(1, 3), "timer and waiter before the other thread");
}

#[test]
fn rpro_spreads_later_change_points_over_the_radius_only() {
    for radius in [3, 4, 10, 500] {
        let program = window_in_window(2);
        let steps = program.steps();
        let options = RProOptions { radius, depth: Depth::Fixed(3), steps, rules: BARE };
        let parameters = RunParameters { steps, depth: 3, ..RunParameters::of(options.to_string()) };
        let exact = probability(&program, &parameters, |source| RPro::with_source(options, source), failed);
        // The second change point is two steps after the first. A radius beyond the run is the run: what is promised.
        assert_eq!(exact, one_in(2 * steps * radius.min(steps)));
    }
}

#[test]
fn rpro_with_a_radius_too_small_misses() {
    let program = window_in_window(2);
    let steps = program.steps();
    let options = RProOptions { radius: 2, depth: Depth::Fixed(3), steps, rules: BARE };
    let parameters = RunParameters { steps, depth: 3, ..RunParameters::of(options.to_string()) };
    let exact = probability(&program, &parameters, |source| RPro::with_source(options, source), failed);
    assert_eq!(exact, Fraction::ZERO);
}
