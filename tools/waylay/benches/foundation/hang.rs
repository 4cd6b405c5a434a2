//! How soon a hang is reported after its timeout, and how complete its evidence is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::Line;
use crate::campaign::Campaign;

const TIMEOUT_MS: u64 = 1000;

pub(crate) fn measure() -> Vec<Line> {
    let mut lines = Vec::new();
    // Eight workers that wait for two threads of their own each: 24 threads, all inside libc.
    for (language, plugin) in [("C", "waylay_faults_c"), ("Rust", "waylay_faults")] {
        let config = format!(
            "duration = '20s'\n[[scenario]]\nname = 'hang'\n[[scenario.test]]\nplugin = '{plugin}'\nname = 'deadlock'\n\
             workers = 8\nhang-timeout = '{TIMEOUT_MS}ms'\nmax-failures = 1\n"
        );
        let campaign = Campaign::run(&config);
        let (record, complete) = campaign.failure("deadlock");
        let occurrence = &record["occurrences"][0];
        // The worker that was late first: how long it had been in its iteration when the two samples were taken.
        let reported = longest_ms(occurrence).saturating_sub(TIMEOUT_MS);
        let seen = occurrence["at"].as_str().expect("time").parse::<jiff::Timestamp>().expect("time");
        let written = since(seen, complete) + Duration::from_millis(reported);
        let stacks = record["stacks"].as_array().expect("stacks");
        let whole =
            stacks.iter().filter(|stack| stack["frames"].as_array().is_some_and(|f| !f.is_empty())).count();
        lines.push(Line {
            what: format!("deadlock in {language}: classified after its timeout"),
            measured: format!("{reported} ms"),
            promised: "at most 300 ms",
            holds: reported <= 300,
        });
        lines.push(Line {
            what: format!("deadlock in {language}, 16 threads and more: all evidence on disk"),
            measured: format!("{} ms, {whole} stacks", written.as_millis()),
            promised: "2 s, 16 stacks",
            holds: written <= Duration::from_secs(2) && whole >= 16,
        });
        let dumped = record["dump_threads"].as_u64().unwrap_or(0);
        lines.push(Line {
            what: format!("deadlock in {language}: threads in the dump"),
            measured: format!("{dumped}"),
            promised: "all (at least 16)",
            holds: dumped >= 16,
        });
    }
    lines
}

fn longest_ms(occurrence: &Value) -> u64 {
    let workers = occurrence["workers"].as_array().expect("workers");
    workers.iter().filter_map(|worker| worker["for_ms"].as_u64()).max().expect("a worker")
}

fn since(earlier: jiff::Timestamp, later: SystemTime) -> Duration {
    let later = later.duration_since(UNIX_EPOCH).expect("after 1970");
    later.saturating_sub(Duration::from_nanos(earlier.as_nanosecond() as u64))
}
