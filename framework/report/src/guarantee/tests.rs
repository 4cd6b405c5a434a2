use super::*;
use crate::model::DepthPromise;

fn promise(depth: u32, per_run: f64, runs: u64) -> DepthPromise {
    DepthPromise { depth, per_run, runs, conditions: vec!["it does not need a thread to spin on".into()] }
}

fn strict(strategy: &str, promises: Vec<DepthPromise>) -> Scenario {
    let runs = promises.iter().map(|promise| promise.runs).sum::<u64>().max(1000);
    scenario(
        Mode::Strict,
        Test {
            name: "account".into(),
            iterations: runs,
            strict: Some(StrictNumbers {
                strategy: strategy.into(),
                runs,
                threads: 3,
                steps: 100,
                promises,
                schedules_per_second: 100.0,
                ..StrictNumbers::default()
            }),
            ..Test::default()
        },
    )
}

fn scenario(mode: Mode, test: Test) -> Scenario {
    Scenario { name: "s".into(), mode, seconds: 10.0, suspensions: None, tests: vec![test] }
}

fn only(scenario: &Scenario) -> TestGuarantee {
    of_all(std::slice::from_ref(scenario)).remove(0)
}

#[test]
fn runs_of_greater_depth_count_for_lesser_ones() {
    let both = only(&strict("pct:depth=auto", vec![promise(1, 0.3, 10), promise(2, 0.01, 400)]));
    // 1 − 0.7^10 · 0.99^400 and 1 − 0.99^400
    let expected = [1.0 - 0.7_f64.powi(10) * 0.99_f64.powi(400), 1.0 - 0.99_f64.powi(400)];
    for (depth, expected) in both.depths.iter().zip(expected) {
        assert!((depth.found.unwrap() - expected).abs() < 1e-9, "{depth:?}");
    }
    assert!(both.sentence.contains("a bug of depth 2 or less"), "{}", both.sentence);
    assert_eq!(both.depths[0].seconds_left, Some(0.0));
}

#[test]
fn the_time_that_is_left_follows_from_the_pace() {
    let night = only(&strict("pct:depth=2", vec![promise(2, 1.0 / 300.0, 100)]));
    // 100 of the 1000 runs aimed at depth 2, in 10 s; 95 % needs ln 0.05 / ln (299/300) = 897.2 of them.
    let left = night.depths[1].seconds_left.unwrap();
    assert!((left - (897.2 - 100.0) / 10.0).abs() < 0.1, "{left}");
    assert!(night.sentence.contains("only"), "{}", night.sentence);
}

#[test]
fn a_depth_that_nothing_aimed_at_says_what_it_would_take() {
    let night = only(&strict("pct:depth=1", vec![promise(1, 1.0 / 3.0, 1000)]));
    assert_eq!(night.depths[2].found, None);
    // 1/(3·100²) per run: 89,871 runs at 100 per second.
    assert_eq!(night.depths[2].advice.as_deref(), Some("14 min 58 s with depth = 3"));
    assert!(night.formula.iter().any(|line| line.contains("89,871 runs")), "{:?}", night.formula);
}

#[test]
fn strategies_without_a_bound_promise_nothing() {
    let random = only(&strict("random", Vec::new()));
    assert!(random.depths.iter().all(|depth| depth.found.is_none()));
    assert!(random.sentence.contains("promises nothing"), "{}", random.sentence);
    let free = only(&scenario(Mode::Free, Test { iterations: 5, ..Test::default() }));
    assert!(free.sentence.starts_with("Nothing is guaranteed"), "{}", free.sentence);
    let nothing = scenario(Mode::Free, Test::default());
    assert!(of_all(&[nothing]).is_empty(), "what did not run is not spoken of");
}

#[test]
fn suspension_has_the_bound_of_its_formula() {
    let test = Test {
        name: "queue".into(),
        iterations: 1000,
        bound: Some(SuspensionBound {
            threads: 4,
            min_test_ns: 40_000,
            per_iteration: 0.00125,
            broken_assumptions: vec!["one thread is suspended at a time".into()],
        }),
        ..Test::default()
    };
    let night = only(&scenario(Mode::Randomized, test));
    assert!((night.depths[0].found.unwrap() - 0.7138).abs() < 1e-3);
    // 1 − 0.99875^n = 0.95 at n = 2395.1, of which 1000 took 10 s.
    assert!((night.depths[0].seconds_left.unwrap() - 13.95).abs() < 0.01, "{:?}", night.depths[0]);
    assert_eq!(night.depths[1].found, None);
    assert_eq!(night.broken.len(), 1);
    assert!(night.formula[0].contains("1/(2N)"), "{:?}", night.formula);
}

#[test]
fn a_portfolio_is_named_by_its_families() {
    let text = "portfolio:pct:depth=auto+surw+stride:confidence=0.95,runs=10000,orders=1+random";
    assert_eq!(strategy_in_words(text), "a portfolio of pct, surw, stride and random");
    assert_eq!(strategy_in_words("pct:depth=3"), "pct:depth=3");
}

#[test]
fn campaigns_of_a_night_count_together() {
    let first = strict("pct:depth=auto", vec![promise(1, 0.3, 10), promise(2, 0.01, 400)]);
    let second = strict("pct:depth=auto", vec![promise(2, 0.005, 100)]);
    let other = strict("random", vec![]);
    let mut moved = second;
    moved.tests[0].plugin = "/elsewhere/libaccount.so".into();
    let mut first = first;
    first.tests[0].plugin = "/here/libaccount.so".into();
    let all = together([first, moved, other]);
    assert_eq!(all.len(), 1, "one scenario");
    let guarantees = of_all(&all);
    assert_eq!(guarantees.len(), 2, "a strategy of its own is another sentence");
    let expected = 1.0 - 0.99_f64.powi(400) * 0.995_f64.powi(100);
    assert!((guarantees[0].depths[1].found.unwrap() - expected).abs() < 1e-9, "{:?}", guarantees[0]);
    // 2,000 schedules at 100 per second each take 20 s, so the pace is still 100 per second.
    assert!(guarantees[0].sentence.contains("2,000 schedules"), "{}", guarantees[0].sentence);
    assert_eq!(guarantees[0].depths[1].per_run, Some(0.005), "the weakest is named");
}

#[test]
fn of_two_bounds_the_weaker_stands_for_both_and_what_is_broken_stays_broken() {
    let randomized = |per_iteration: f64, iterations: u64, broken: &[&str]| {
        let bound = SuspensionBound {
            threads: 4,
            min_test_ns: 1000,
            per_iteration,
            broken_assumptions: broken.iter().map(|text| (*text).to_owned()).collect(),
        };
        let test = Test { name: "map".into(), iterations, bound: Some(bound), ..Test::default() };
        scenario(Mode::Randomized, test)
    };
    let none =
        Scenario { tests: vec![Test { name: "map".into(), ..Test::default() }], ..randomized(0.1, 1, &[]) };
    let all = together([randomized(0.002, 100, &["a"]), randomized(0.001, 200, &[]), none]);
    let guarantee = only(&all[0]);
    let expected = 1.0 - 0.999_f64.powi(300);
    assert!((guarantee.depths[0].found.unwrap() - expected).abs() < 1e-9, "{guarantee:?}");
    assert_eq!(guarantee.broken, ["a"]);
}
