//! How long pages take with 100,000 failures and 10,000 campaigns in the history, from the request to the last byte:
//! `cargo bench -p waylay-service`. With a browser on the machine, also until it has loaded them.

#[path = "../../framework/history/benches/fill/mod.rs"]
mod fill;
#[path = "../tests/support/mod.rs"]
mod served;
use served::nights as support;

use std::time::Instant;

use served::Served;
use served::chromium::{self, Chromium};

const PAGES: [(&str, &str); 8] = [
    ("live", "/"),
    ("failures", "/failures"),
    ("failures, most frequent", "/failures?order=count"),
    ("failures, a search", "/failures?q=deadlock-00000000000185"),
    ("one failure", "/failure/deadlock-00000000000185d0"),
    ("campaigns", "/campaigns"),
    ("one campaign", "/campaign/c-09990"),
    ("trends", "/trends"),
];

fn main() {
    let served = Served::new(fill::fill, "");
    let _campaign = served.at_work(3600);
    for (name, path) in PAGES {
        let mut times: Vec<f64> = (0..15)
            .map(|_| {
                let began = Instant::now();
                assert_eq!(served.get(path).0, 200);
                began.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{name:<28} answered in {:>6.1} ms (median), {:>6.1} ms (longest)", times[7], times[14]);
        // The limit on requests per address is not what is measured.
        std::thread::sleep(std::time::Duration::from_millis(400));
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
