//! Every draw lies inside its range, whatever the range.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use waylay_dist::spec::{Exponential, Gaussian, Interval, Uniform};
use waylay_dist::{Dist, Seed, Spec, Value};

const DRAWS: usize = 50;

fn ordered_ints() -> impl Strategy<Value = (i64, i64)> {
    let end = prop_oneof![
        any::<i64>(),
        -10_i64..10,
        Just(i64::MIN),
        Just(i64::MAX),
        Just(i64::MAX - 1),
        Just(1 << 53)
    ];
    (end.clone(), end).prop_map(|(a, b)| (a.min(b), a.max(b)))
}

fn ordered_floats() -> impl Strategy<Value = (f64, f64)> {
    let end = prop_oneof![-1e300..1e300_f64, -10.0..10.0_f64, Just(0.0), Just(5e-324), Just(1e-300)];
    (end.clone(), end).prop_map(|(a, b)| (a.min(b), a.max(b)))
}

fn check(spec: Spec, ints: Option<(i64, i64)>, floats: (f64, f64), seed: u64) -> Result<(), TestCaseError> {
    let dist = Dist::new(&spec).map_err(|problems| TestCaseError::fail(format!("{spec}: {problems}")))?;
    let mut rng = Seed::new(seed).component("ranges");
    for _ in 0..DRAWS {
        let int = dist.sample_int(&mut rng);
        if let Some((min, max)) = ints {
            prop_assert!(min <= int && int <= max, "{spec}: {int}");
        }
        let float = dist.sample_float(&mut rng);
        prop_assert!(floats.0 <= float && float <= floats.1, "{spec}: {float}");
        let index = dist.sample_index(&mut rng, 7);
        prop_assert!(index.is_some_and(|index| index < 7), "{spec}: {index:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn ints_of_every_shape((min, max) in ordered_ints(), mean: i64, sigma in 1..i64::MAX, p in 0.0..=1.0, seed: u64) {
        let (a, b) = (Value::Int(min), Value::Int(max));
        let ends = (min as f64, max as f64);
        let specs = [
            Spec::Uniform(Uniform { min: a.clone(), max: b.clone() }),
            Spec::Gaussian(Gaussian {
                mean: Value::Int(mean),
                sigma: Value::Int(sigma),
                min: Some(a.clone()),
                max: Some(b.clone()),
            }),
            Spec::Exponential(Exponential { min: a.clone(), max: b.clone(), mean: None, rate: None }),
            Spec::Weighted(vec![
                Interval { min: a.clone(), max: b.clone(), p },
                Interval { min: b, max: Value::Int(max), p: 1.0 - p },
            ]),
        ];
        for spec in specs {
            check(spec, Some((min, max)), ends, seed)?;
        }
    }

    #[test]
    fn floats_of_every_shape((min, max) in ordered_floats(), mean in -1e300..1e300_f64, sigma in 1e-300..1e300_f64, seed: u64) {
        let (a, b) = (Value::Float(min), Value::Float(max));
        let specs = [
            Spec::Uniform(Uniform { min: a.clone(), max: b.clone() }),
            Spec::Gaussian(Gaussian {
                mean: Value::Float(mean),
                sigma: Value::Float(sigma),
                min: Some(a.clone()),
                max: Some(b.clone()),
            }),
            Spec::Exponential(Exponential { min: a, max: b, mean: None, rate: None }),
        ];
        for spec in specs {
            check(spec, None, (min, max), seed)?;
        }
    }

    /// Far tails, narrow windows and tiny sigmas end in a draw, at the end of the window next to the mean.
    #[test]
    fn gaussian_windows_anywhere(distance in 0.0..1e6_f64, width in 0.0..100.0_f64, exponent in -300..10_i32, up: bool, seed: u64) {
        let sigma = 10_f64.powi(exponent);
        let (min, max) = if up { (distance, distance + width) } else { (-distance - width, -distance) };
        let spec = Spec::Gaussian(Gaussian {
            mean: Value::Int(0),
            sigma: Value::Float(sigma),
            min: Some(Value::Float(min)),
            max: Some(Value::Float(max)),
        });
        check(spec, None, (min, max), seed)?;
    }

    #[test]
    fn exponential_of_any_rate(width in 0.0..1e9_f64, exponent in -320..300_i32, share in 1e-6..0.499_f64, seed: u64) {
        let rate = 10_f64.powi(exponent).max(5e-324);
        let ends = (Value::Float(-1.0), Value::Float(width));
        let steep = Exponential { min: ends.0.clone(), max: ends.1.clone(), mean: None, rate: Some(rate) };
        check(Spec::Exponential(steep), None, (-1.0, width), seed)?;
        let mean = -1.0 + (width + 1.0) * share;
        let meant = Exponential { min: ends.0, max: ends.1, mean: Some(Value::Float(mean)), rate: None };
        check(Spec::Exponential(meant), None, (-1.0, width), seed)?;
    }

    #[test]
    fn one_value_is_always_drawn(value: i64, seed: u64) {
        for text in [
            format!("{value}"),
            format!("{{ uniform = {{ min = {value}, max = {value} }} }}"),
            format!("{{ gaussian = {{ mean = 0, sigma = 3, min = {value}, max = {value} }} }}"),
            format!("{{ exponential = {{ min = {value}, max = {value} }} }}"),
            format!("{{ weighted = [{{ min = {value}, max = {value}, p = 1.0 }}] }}"),
        ] {
            let dist = Dist::new(&text.parse().expect("a spec")).expect("a distribution");
            let mut rng = Seed::new(seed).component("ranges");
            for _ in 0..5 {
                prop_assert_eq!(dist.sample_int(&mut rng), value);
                prop_assert_eq!(dist.sample_float(&mut rng), value as f64);
                prop_assert_eq!(dist.sample_duration(&mut rng).as_nanos(), value.max(0) as u128);
            }
        }
    }

    /// What a spec prints is TOML that reads back as the same spec.
    #[test]
    fn a_spec_reads_back((min, max) in ordered_floats(), int: i64, p in 0.0..1.0_f64) {
        let (a, b) = (Value::Float(min), Value::Float(max));
        for spec in [
            Spec::fixed(Value::Int(int)),
            Spec::fixed(Value::Text("5ms".to_owned())),
            Spec::Gaussian(Gaussian { mean: a.clone(), sigma: Value::Int(int), min: None, max: Some(b.clone()) }),
            Spec::Gaussian(Gaussian { mean: a.clone(), sigma: b.clone(), min: Some(a.clone()), max: None }),
            Spec::Exponential(Exponential { min: a.clone(), max: b.clone(), mean: None, rate: Some(p) }),
            Spec::Exponential(Exponential { min: a.clone(), max: b.clone(), mean: Some(a.clone()), rate: None }),
            Spec::Weighted(vec![Interval { min: a.clone(), max: b.clone(), p }, Interval { min: a, max: b, p: 1.0 }]),
        ] {
            prop_assert_eq!(spec.to_string().parse(), Ok(spec.clone()));
            let document = toml::to_string(&std::collections::BTreeMap::from([("it", &spec)])).expect("toml");
            let table: std::collections::BTreeMap<String, Spec> = toml::from_str(&document).expect(&document);
            prop_assert_eq!(&table["it"], &spec);
        }
    }
}

#[test]
fn a_range_without_whole_numbers_gives_the_nearest() {
    let dist =
        Dist::new(&"{ uniform = { min = 0.6, max = 0.9 } }".parse().expect("a spec")).expect("checked");
    assert_eq!(dist.sample_int(&mut Seed::new(1).component("ranges")), 1);
}

#[test]
fn durations_never_go_below_zero() {
    let dist = Dist::new(&"{ gaussian = { mean = '1ms', sigma = '5ms' } }".parse().expect("a spec"))
        .expect("checked");
    let mut rng = Seed::new(1).component("ranges");
    assert!((0..1000).all(|_| dist.sample_int(&mut rng) >= 0));
}
