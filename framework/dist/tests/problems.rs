//! What is wrong with a distribution is said, all of it, with its place.

use waylay_dist::{ApproximationError, Dist, Spec, Unit, approximate};

fn problems(text: &str) -> Vec<String> {
    let spec: Spec = text.parse().expect(text);
    match Dist::new(&spec) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn ranges() {
    assert_eq!(problems("{ uniform = { min = 5, max = 1 } }"), ["min: min 5 is greater than max 1"]);
    assert_eq!(problems("{ uniform = { min = 0.2, max = 0 } }"), ["min: min 0.2 is greater than max 0"]);
    assert_eq!(
        problems("{ uniform = { min = nan, max = inf } }"),
        ["min: NaN is not a finite number", "max: inf is not a finite number"]
    );
    assert_eq!(
        problems("{ uniform = { min = -1.7e308, max = 1.7e308 } }"),
        ["max: the range is too wide to compute with"]
    );
    assert_eq!(
        problems("{ exponential = { min = '2s', max = '1s' } }"),
        ["min: min \"2s\" is greater than max \"1s\""]
    );
    // Exact where doubles are not: 2^53 and its successor.
    assert_eq!(problems("{ uniform = { min = 9007199254740993, max = 9007199254740992 } }").len(), 1);
    assert!(problems("{ uniform = { min = -9223372036854775808, max = 9223372036854775807 } }").is_empty());
}

#[test]
fn durations_and_units() {
    assert_eq!(
        problems("{ uniform = { min = '5 parsecs', max = '' } }"),
        [
            "min: `5 parsecs` has no unit: write ns, us, ms, s, m, h or d after the number",
            "max: a duration is empty: write a number and a unit, such as \"5ms\"",
        ]
    );
    assert_eq!(
        problems("{ uniform = { min = '5ms', max = 10 } }"),
        ["max: a number among durations: a distribution is all numbers or all durations"]
    );
    assert_eq!(
        problems("{ weighted = [{ min = 1, max = 2, p = 0.5 }, { min = '1s', max = '2s', p = 0.5 }] }").len(),
        2
    );
    assert_eq!(
        problems("{ uniform = { min = '1s', max = '300y' } }"),
        ["max: `y` is not a unit of time: use ns, us, ms, s, m, h or d"]
    );
    assert_eq!(
        problems("{ uniform = { min = '1s', max = '200000d' } }"),
        ["max: `200000d` is too long: at most 106751 days"]
    );
}

#[test]
fn gaussian_parameters() {
    assert_eq!(problems("{ gaussian = { mean = 0, sigma = 0 } }"), ["sigma: sigma 0 must be greater than 0"]);
    assert_eq!(
        problems("{ gaussian = { mean = inf, sigma = -1.5, min = 3, max = 2 } }"),
        [
            "mean: inf is not a finite number",
            "sigma: sigma -1.5 must be greater than 0",
            "min: min 3 is greater than max 2"
        ]
    );
    assert_eq!(
        problems("{ gaussian = { mean = 0, sigma = 1e308 } }"),
        ["sigma: the range is too wide to compute with"]
    );
    assert_eq!(
        problems("{ gaussian = { mean = '1s', sigma = '0s' } }"),
        ["sigma: sigma \"0s\" must be greater than 0"]
    );
}

#[test]
fn exponential_parameters() {
    let text = |more: &str| format!("{{ exponential = {{ min = 0, max = 10, {more} }} }}");
    assert_eq!(problems(&text("rate = 0.0")), ["rate: rate 0 must be greater than 0"]);
    assert_eq!(problems(&text("rate = nan")), ["rate: NaN is not a finite number"]);
    assert_eq!(
        problems(&text("rate = 1.0, mean = 2")),
        ["rate: mean and rate both say how steep the curve is: give one of them"]
    );
    for mean in ["0", "5", "7", "-1"] {
        assert_eq!(
            problems(&text(&format!("mean = {mean}"))),
            [format!(
                "mean: mean {mean} cannot be reached: a decreasing curve has it above min and below the middle, 5.0"
            )]
        );
    }
    assert_eq!(
        problems("{ exponential = { min = '1s', max = '2s', mean = '3s' } }"),
        [
            "mean: mean \"3s\" cannot be reached: a decreasing curve has it above min and below the middle, \"1s500ms\""
        ]
    );
}

#[test]
fn weighted_parameters() {
    assert_eq!(
        problems("{ weighted = [] }"),
        ["distribution: a weighted distribution needs at least one interval"]
    );
    assert_eq!(
        problems("{ weighted = [{ min = 0, max = 1, p = 0.5 }, { min = 3, max = 2, p = -0.5 }] }"),
        ["interval 1, min: min 3 is greater than max 2", "interval 1, p: probability -0.5 is negative"]
    );
    assert_eq!(
        problems("{ weighted = [{ min = 0, max = 1, p = 0.5 }, { min = 3, max = 4, p = 0.4 }] }"),
        ["distribution: the probabilities sum to 0.9, they must sum to 1"]
    );
    assert_eq!(
        problems("{ weighted = [{ min = 0, max = 1, p = nan }] }"),
        ["interval 0, p: NaN is not a finite number"]
    );
    let thirds = "{ min = 0, max = 1, p = 0.3333333333 }";
    assert!(problems(&format!("{{ weighted = [{thirds}, {thirds}, {thirds}] }}")).is_empty());
    assert_eq!(problems(&format!("{{ weighted = [{thirds}, {thirds}] }}")).len(), 1);
}

#[test]
fn texts_that_are_no_distribution() {
    for (text, expected) in [
        ("{ unifrom = { min = 1, max = 2 } }", "unknown variant `unifrom`"),
        ("{}", "no distribution"),
        ("{ uniform = { min = 1 } }", "missing field `max`"),
        ("{ uniform = { min = 1, max = 2, p = 1 } }", "unknown field `p`"),
        ("{ uniform = { min = 1, max = 2 }, gaussian = { mean = 0, sigma = 1 } }", "name one distribution"),
        ("{ uniform = { min = true, max = 2 } }", "invalid type"),
        ("{ uniform = { min = 1, max = 99999999999999999999 } }", ""),
        ("[1]", "invalid type"),
        ("", ""),
        ("{ uniform = ", ""),
    ] {
        let error = text.parse::<Spec>().expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn the_unit_is_known() {
    let unit = |text: &str| Dist::new(&text.parse().expect(text)).expect(text).unit();
    assert_eq!(unit("5"), Unit::Number);
    assert_eq!(unit("'5ms'"), Unit::Duration);
    assert_eq!(unit("{ weighted = [{ min = '0s', max = '1s', p = 1 }] }"), Unit::Duration);
}

#[test]
fn densities_that_cannot_be_approximated() {
    let flat = |_: f64| 1.0;
    assert_eq!(approximate(flat, 1.0, 1.0, 0.1), Err(ApproximationError::Range { min: 1.0, max: 1.0 }));
    assert!(approximate(flat, 0.0, f64::INFINITY, 0.1).is_err());
    assert_eq!(approximate(flat, 0.0, 1.0, 0.0), Err(ApproximationError::Threshold(0.0)));
    assert_eq!(approximate(|_| 0.0, 0.0, 1.0, 0.1), Err(ApproximationError::Nothing));
    assert_eq!(
        approximate(|x| x - 0.5, 0.0, 1.0, 0.1),
        Err(ApproximationError::Density { at: 0.0, density: -0.5 })
    );
    let step = |x: f64| if x < 0.3 { 0.0 } else { 1.0 };
    let Err(ApproximationError::Jump { at }) = approximate(step, 0.0, 1.0, 0.5) else { panic!("no jump") };
    assert!((at - 0.3).abs() < 1e-9);
    assert!(approximate(flat, 0.0, 1.0, 0.1).is_ok_and(|spec| Dist::new(&spec).is_ok()));
}
