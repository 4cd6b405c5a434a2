//! The numbers that seeds give, pinned.
//!
//! A recorded seed is a promise: when one of these fails, every seed, schedule and replay line stored so far
//! means something else. Do not edit the numbers without raising the stored format's version.

use rand::Rng;
use waylay_dist::{Dist, Seed};

const SEED: Seed = Seed::new(0x5eed);

fn draws(spec: &str) -> (Vec<i64>, Vec<f64>) {
    let dist = Dist::new(&spec.parse().expect(spec)).expect(spec);
    let mut rng = SEED.worker("golden", 0);
    let ints = (0..6).map(|_| dist.sample_int(&mut rng)).collect();
    rng.begin(1);
    let floats = (0..3).map(|_| dist.sample_float(&mut rng)).collect();
    (ints, floats)
}

/// Logarithms and exponentials may differ in the last digit between platforms' libraries.
fn assert_close(found: &[f64], expected: [f64; 3]) {
    let close = found.iter().zip(expected).all(|(found, expected)| (found / expected - 1.0).abs() < 1e-12);
    assert!(close && found.len() == 3, "left: {found:?}");
}

#[test]
fn derived_seeds() {
    let derived = [SEED.derive("host", 0), SEED.derive("host", 1), SEED.derive("scenario", 0)];
    assert_eq!(
        derived.map(|seed| seed.to_string()),
        ["0x048b1abc155e4f86", "0xc4c8ecd5b0105ece", "0x953cf2ee77965482"]
    );
}

#[test]
fn component_streams() {
    let mut rng = SEED.component("randomizer");
    assert_eq!([rng.next_u64(), rng.next_u64()], [15060625404383910534, 12247294671322734356]);
}

#[test]
fn worker_streams() {
    let first_draw = |seed: Seed, test, worker, iteration| {
        let mut rng = seed.worker(test, worker);
        rng.begin(iteration);
        rng.next_u64()
    };
    let found = [
        first_draw(SEED, "channel-mpsc", 0, 0),
        first_draw(SEED, "channel-mpsc", 0, 1),
        first_draw(SEED, "channel-mpsc", 0, 4),
        first_draw(SEED, "channel-mpsc", 1, 0),
        first_draw(SEED, "channel-spsc", 0, 0),
        first_draw(Seed::new(0), "channel-mpsc", 0, 0),
    ];
    assert_eq!(
        found,
        [
            10955860306248173537,
            7821122090994647638,
            681991790638819003,
            17308382067908959624,
            14166986895334241919,
            1832816684686732571
        ]
    );
}

#[test]
fn the_ninth_draw_of_an_iteration_opens_its_tail() {
    let mut rng = SEED.worker("channel-mpsc", 0);
    rng.begin(1_000_000);
    let found: Vec<_> = (0..10).map(|_| rng.next_u64()).skip(7).collect();
    assert_eq!(found, [13647918392507597538, 11501260539400097381, 8420051890382149439]);
    assert_eq!(rng.iteration_seed(), Seed::new(0x7e8e50598e8d0f0f));
}

#[test]
fn uniform_draws() {
    let (ints, floats) = draws("{ uniform = { min = 1, max = 64 } }");
    assert_eq!(ints, [32, 32, 35, 64, 51, 47]);
    assert_close(&floats, [53.31834907802715, 17.770703988720776, 58.81428195000384]);
}

#[test]
fn gaussian_draws() {
    let (ints, floats) = draws("{ gaussian = { mean = 100, sigma = 15 } }");
    assert_eq!(ints, [100, 99, 103, 111, 106, 113]);
    assert_close(&floats, [116.24432181230526, 89.89149298891621, 131.02767031568516]);
    let (ints, floats) = draws("{ gaussian = { mean = 100, sigma = 15, min = 150 } }");
    assert_eq!(ints, [151, 152, 155, 154, 152, 155]);
    assert_close(&floats, [156.43836439335308, 164.5858592879901, 153.28697436830083]);
}

#[test]
fn exponential_draws() {
    let (ints, floats) = draws("{ exponential = { min = 10, max = 1000 } }");
    assert_eq!(ints, [63, 221, 337, 70, 209, 533]);
    assert_close(&floats, [232.0894441986774, 67.25331185340926, 513.134831227344]);
    let (ints, floats) = draws("{ exponential = { min = 10, max = 1000, rate = 0.0001 } }");
    assert_eq!(ints, [492, 481, 536, 998, 789, 719]);
    assert_close(&floats, [825.0941339834146, 264.11603876930815, 914.7047232036992]);
}

#[test]
fn weighted_draws() {
    let (ints, floats) =
        draws("{ weighted = [{ min = 0, max = 9, p = 0.7 }, { min = 100, max = 199, p = 0.3 }] }");
    assert_eq!(ints, [4, 199, 172, 193, 3, 2]);
    assert_close(&floats, [2.3958148555315395, 4.312331462596834, 2.4857306453538004]);
}
