//! 27 tests that take a known time, from 10 µs to 100 ms, each the same factor longer than the one before. They find
//! nothing: they are what a pot's fairness is measured with.
//!
//! A short wait is spent on the processor and a long one asleep, as in real tests: so more threads than cores do not
//! make the long ones longer.

use std::time::{Duration, Instant};

use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker};

/// Names and durations.
const TESTS: [(&str, &str); 27] = [
    ("timed-00", "\"10.0us\""),
    ("timed-01", "\"14.3us\""),
    ("timed-02", "\"20.3us\""),
    ("timed-03", "\"28.9us\""),
    ("timed-04", "\"41.2us\""),
    ("timed-05", "\"58.8us\""),
    ("timed-06", "\"83.8us\""),
    ("timed-07", "\"119.4us\""),
    ("timed-08", "\"170.1us\""),
    ("timed-09", "\"242.4us\""),
    ("timed-10", "\"345.5us\""),
    ("timed-11", "\"492.4us\""),
    ("timed-12", "\"701.7us\""),
    ("timed-13", "\"1000.0us\""),
    ("timed-14", "\"1425.1us\""),
    ("timed-15", "\"2030.9us\""),
    ("timed-16", "\"2894.3us\""),
    ("timed-17", "\"4124.6us\""),
    ("timed-18", "\"5878.0us\""),
    ("timed-19", "\"8376.8us\""),
    ("timed-20", "\"11937.8us\""),
    ("timed-21", "\"17012.5us\""),
    ("timed-22", "\"24244.6us\""),
    ("timed-23", "\"34551.1us\""),
    ("timed-24", "\"49238.8us\""),
    ("timed-25", "\"70170.4us\""),
    ("timed-26", "\"100000.0us\""),
];

/// Below this a sleep would take much longer than asked.
const SPUN: Duration = Duration::from_micros(300);

/// Takes its time.
pub struct Timed<const N: usize> {
    duration: Distribution<Duration>,
    factor: Distribution<f64>,
    after: Distribution<Duration>,
    began: Instant,
}

impl<const N: usize> Test for Timed<N> {
    const NAME: &'static str = TESTS[N].0;
    const ABOUT: &'static str = "nothing: it takes a known time";
    const PARAMS: &'static [Param] = &[
        Param::new("duration", TESTS[N].1).about("of one iteration"),
        Param::new("factor", "1.0").about("by which iterations are longer after a while"),
        Param::new("after", "\"0s\"").about("that while"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            duration: context.distribution("duration")?,
            factor: context.distribution("factor")?,
            after: context.distribution("after")?,
            began: Instant::now(),
        })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let mut duration = worker.draw(self.duration);
        let (factor, after) = (worker.draw(self.factor), worker.draw(self.after));
        if self.began.elapsed() >= after {
            duration = duration.mul_f64(factor.max(0.0));
        }
        let since = Instant::now();
        if duration > SPUN {
            std::thread::sleep(duration - SPUN / 3);
        }
        while since.elapsed() < duration {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

waylay_plugin::export! {
    name: "timed",
    tests: [
        Timed<0>, Timed<1>, Timed<2>, Timed<3>, Timed<4>, Timed<5>, Timed<6>, Timed<7>, Timed<8>,
        Timed<9>, Timed<10>, Timed<11>, Timed<12>, Timed<13>, Timed<14>, Timed<15>, Timed<16>, Timed<17>,
        Timed<18>, Timed<19>, Timed<20>, Timed<21>, Timed<22>, Timed<23>, Timed<24>, Timed<25>, Timed<26>,
    ],
}
