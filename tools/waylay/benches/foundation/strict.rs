//! How many schedules of a plugin test a strict host runs, and what the host adds to the scheduler.

use crate::Line;
use crate::campaign::Campaign;

/// Attempts; the best counts, because everything else that a machine does can only make one slower.
const ATTEMPTS: u32 = 3;

pub(crate) fn measure() -> Vec<Line> {
    ["pct:depth=2", "random"]
        .into_iter()
        .map(|strategy| {
            let attempts = (0..ATTEMPTS).map(|_| schedules(strategy));
            let (rate, nanos, steps) = attempts.fold(
                (0.0, 0.0, 0),
                |best: (f64, f64, u64), now| {
                    if now.0 > best.0 { now } else { best }
                },
            );
            Line {
                what: format!("strict schedules of a C test, 2 workers, {steps} steps, {strategy}"),
                measured: format!("{rate:.0}/s ({:.2} µs each)", nanos / 1e3),
                promised: "at least 100,000/s",
                holds: rate >= 100_000.0,
            }
        })
        .collect()
}

/// Schedules per second of wall time, nanoseconds of one, steps of one.
fn schedules(strategy: &str) -> (f64, f64, u64) {
    let config = format!(
        "[[scenario]]\nname = 'pair'\nmode = 'strict'\nminimize = 'off'\nduration = '2s'\nstrategy = '{strategy}'\n[[scenario.test]]\n\
         plugin = 'waylay_schedules_c'\nname = 'pair'\n"
    );
    let campaign = Campaign::run(&config);
    let test = campaign.test("pair");
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let strict = &test["strict"];
    let (rate, steps_rate) = (number(&strict["schedules_per_second"]), number(&strict["steps_per_second"]));
    (rate, number(&test["average_ns"]), (steps_rate / rate).round() as u64)
}
