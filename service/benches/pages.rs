//! How long pages take with 100,000 failures and 10,000 campaigns in the history, from the request to the last byte:
//! `cargo bench -p waylay-service`. With a browser on the machine, also until it has loaded them; `-- answers` leaves that
//! out. Processor time is what a page costs on a machine that is busy with other things, too.

#[path = "../../framework/history/benches/fill/mod.rs"]
mod fill;
#[path = "../tests/support/mod.rs"]
mod served;
use served::nights as support;

use std::time::Instant;

use served::Served;
use served::chromium::{self, Chromium};

/// The last night is the 1,000th from the first of January 2024 on.
const PAGES: [(&str, &str); 15] = [
    ("live", "/"),
    ("failures", "/failures"),
    ("failures, most frequent", "/failures?order=count"),
    ("failures, rare deadlocks", "/failures?state=rare&kind=deadlock"),
    ("failures of one test", "/failures?test=map"),
    ("failures, page 150", "/failures?page=150"),
    ("a search that few fit", "/failures?q=deadlock-00000000000185"),
    ("a search that all fit", "/failures?q=happened"),
    ("a search that none fits", "/failures?q=nobody+has+this"),
    ("one failure", "/failure/deadlock-00000000000185d0"),
    ("campaigns", "/campaigns"),
    ("one campaign", "/campaign/c-09990"),
    ("one night", "/night/2026-09-26"),
    ("trends", "/trends"),
    ("trends of one test", "/trends?test=map"),
];

fn main() {
    let served = Served::new(fill::fill, "");
    let _campaign = served.at_work(3600);
    for (name, path) in PAGES {
        let before = processor_ms();
        let mut times: Vec<f64> = (0..15)
            .map(|_| {
                let began = Instant::now();
                assert_eq!(served.get(path).0, 200);
                began.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!(
            "{name:<28} answered in {:>6.1} ms (median), {:>6.1} ms (longest), {:>6.1} ms of processor time",
            times[7],
            times[14],
            (processor_ms() - before) / 15.0
        );
        // The limit on requests per address is not what is measured.
        std::thread::sleep(std::time::Duration::from_millis(400));
    }
    if std::env::args().any(|argument| argument == "answers") {
        return;
    }
    let Some(program) = chromium::program() else { return };
    let mut browser = Chromium::start(program);
    browser.dress(1280, 900, false);
    for (name, path) in PAGES {
        let mut times: Vec<f64> = (0..7)
            .map(|_| {
                browser.open(&served.url(path));
                std::thread::sleep(std::time::Duration::from_millis(100));
                let load = "performance.getEntriesByType('navigation')[0].loadEventEnd";
                browser.ask(load).as_f64().unwrap()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!(
            "{name:<28} loaded in   {:>6.1} ms (median), {:>6.1} ms (longest), Chromium",
            times[3], times[6]
        );
    }
}

/// Processor time of all threads of this process so far; 0 where the system does not tell it in a file.
fn processor_ms() -> f64 {
    /// Ticks per second of these numbers, on every Linux that this runs on.
    const TICK_MS: f64 = 10.0;
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may have blanks in it; behind it, the 12th and 13th are user and system time.
    let behind = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    behind.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>()
        * TICK_MS
}
