//! What a draw costs, beside the same draw made directly with `rand_distr`.
//!
//! `cargo bench -p waylay-dist` prints one table. Each row runs both sides in turn, many times in one
//! process on the same generator, and compares the quickest run of each: what is left is the cost of the
//! code, not of the machine's other work. The budget is a ratio of at most 1.30.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution, Exp, Normal, Uniform};
use waylay_dist::{Dist, Seed};

const ROUNDS: usize = 400;
const DRAWS: u64 = 4096;
const BUDGET: f64 = 1.3;

fn main() {
    println!("{:<38} {:>10} {:>10} {:>7}", "draw", "waylay ns", "direct ns", "ratio");
    let worst = [uniform(), gaussian(), exponential(), weighted()].into_iter().fold(0.0, f64::max);
    println!(
        "worst ratio {worst:.2}, budget {BUDGET:.2}: {}",
        if worst <= BUDGET { "met" } else { "MISSED" }
    );

    println!("\n{:<38} {:>10}", "generator", "ns");
    streams();
}

fn uniform() -> f64 {
    let (mut ours, mut theirs) = generators();
    let dist = dist("{ uniform = { min = 1, max = 64 } }");
    let ints = Uniform::new_inclusive(1_i64, 64).unwrap();
    let floats = Uniform::new_inclusive(1.0, 64.0).unwrap();
    let pause = self::dist("{ uniform = { min = '1us', max = '5ms' } }");
    let nanoseconds = Uniform::new_inclusive(1_000_u64, 5_000_000).unwrap();
    row("uniform int", || dist.sample_int(&mut ours), || black_box(&ints).sample(&mut theirs))
        .max(row("uniform float", || dist.sample_float(&mut ours), || black_box(&floats).sample(&mut theirs)))
        .max(row(
            "uniform duration",
            || pause.sample_duration(&mut ours),
            || Duration::from_nanos(black_box(&nanoseconds).sample(&mut theirs)),
        ))
}

fn gaussian() -> f64 {
    let (mut ours, mut theirs) = generators();
    let free = dist("{ gaussian = { mean = 100, sigma = 15 } }");
    let cut = dist("{ gaussian = { mean = 100, sigma = 15, min = 80, max = 130 } }");
    let direct = Normal::new(100_f64, 15.0).unwrap();
    row("gaussian float", || free.sample_float(&mut ours), || black_box(&direct).sample(&mut theirs))
        .max(row(
            "gaussian int",
            || free.sample_int(&mut ours),
            || black_box(&direct).sample(&mut theirs).round() as i64,
        ))
        .max(row(
            "gaussian float, cut off at both ends",
            || cut.sample_float(&mut ours),
            || until(|| black_box(&direct).sample(&mut theirs), 80.0, 130.0),
        ))
        .max(row(
            "gaussian int, cut off at both ends",
            || cut.sample_int(&mut ours),
            || until(|| black_box(&direct).sample(&mut theirs), 79.5, 130.5).round() as i64,
        ))
}

fn exponential() -> f64 {
    let (mut ours, mut theirs) = generators();
    let dist = dist("{ exponential = { min = 10, max = 1000 } }");
    let direct = Exp::new(1000_f64.ln() / 990.0).unwrap();
    row(
        "exponential float",
        || dist.sample_float(&mut ours),
        || 10.0 + until(|| black_box(&direct).sample(&mut theirs), 0.0, 990.0),
    )
    .max(row(
        "exponential int",
        || dist.sample_int(&mut ours),
        || 10 + until(|| black_box(&direct).sample(&mut theirs), 0.0, 991.0) as i64,
    ))
}

fn weighted() -> f64 {
    let (mut ours, mut theirs) = generators();
    let dist = dist(
        "{ weighted = [{ min = 0, max = 9, p = 0.7 }, { min = 100, max = 199, p = 0.2 }, \
         { min = 1000, max = 1999, p = 0.1 }] }",
    );
    let index = WeightedAliasIndex::new(vec![0.7, 0.2, 0.1]).unwrap();
    let ints = [(0, 9), (100, 199), (1000, 1999)].map(|(a, b)| Uniform::new_inclusive(a, b).unwrap());
    let floats =
        [(0.0, 9.0), (100.0, 199.0), (1000.0, 1999.0)].map(|(a, b)| Uniform::new_inclusive(a, b).unwrap());
    row(
        "weighted int, 3 intervals",
        || dist.sample_int(&mut ours),
        || -> i64 { black_box(&ints)[black_box(&index).sample(&mut theirs)].sample(&mut theirs) },
    )
    .max(row(
        "weighted float, 3 intervals",
        || dist.sample_float(&mut ours),
        || -> f64 { black_box(&floats)[black_box(&index).sample(&mut theirs)].sample(&mut theirs) },
    ))
}

fn streams() {
    let mut worker = Seed::new(1).worker("bench", 0);
    let mut iteration = 0;
    let mut time = |name: &str, draws: usize| {
        let mut quickest = Duration::MAX;
        for _ in 0..ROUNDS {
            quickest = quickest.min(timed(&mut || {
                iteration += 1;
                worker.begin(iteration);
                let mut sum = 0_u64;
                for _ in 0..draws {
                    sum = sum.wrapping_add(worker.next_u64());
                }
                sum
            }));
        }
        println!("{name:<38} {:>10.1}", per_draw(quickest));
    };
    time("iteration, no draw", 0);
    time("iteration, first draw included", 1);
    time("iteration, 8 draws", 8);
    time("iteration, 16 draws", 16);
    let mut quickest = Duration::MAX;
    let mut key = [0; 32];
    for _ in 0..ROUNDS {
        let mut fresh = ChaCha8Rng::from_seed(key);
        quickest = quickest.min(timed(&mut || {
            key[0] = key[0].wrapping_add(1);
            fresh = ChaCha8Rng::from_seed(key);
            black_box(&mut fresh).next_u64()
        }));
    }
    println!("{:<38} {:>10.1}", "(new ChaCha8Rng and its first draw)", per_draw(quickest));
}

fn dist(text: &str) -> Dist {
    black_box(Dist::new(&text.parse().unwrap()).unwrap())
}

fn generators() -> (ChaCha8Rng, ChaCha8Rng) {
    (Seed::new(1).component("bench"), Seed::new(1).component("bench"))
}

fn until(mut draw: impl FnMut() -> f64, min: f64, max: f64) -> f64 {
    loop {
        let value = draw();
        if min <= value && value <= max {
            return value;
        }
    }
}

fn row<A, B>(name: &str, mut ours: impl FnMut() -> A, mut direct: impl FnMut() -> B) -> f64 {
    let (mut a, mut b) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        a = a.min(timed(&mut ours));
        b = b.min(timed(&mut direct));
    }
    let ratio = a.as_secs_f64() / b.as_secs_f64();
    println!("{name:<38} {:>10.2} {:>10.2} {ratio:>7.2}", per_draw(a), per_draw(b));
    ratio
}

fn timed<T>(draw: &mut impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    for _ in 0..DRAWS {
        black_box(draw());
    }
    start.elapsed()
}

fn per_draw(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9 / DRAWS as f64
}
