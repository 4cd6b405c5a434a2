//! How many different failures per second go in, and how long it takes to ask with 100,000 failures and 10,000 campaigns
//! in the history: `cargo bench -p waylay-history`.

mod fill;
#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use waylay_driver::report::{Live, Silent};
use waylay_history::feed::{Feed, Recorded};
use waylay_history::query::{Filter, Order};
use waylay_history::{History, HistoryError};
use waylay_report::model::FailureState;

fn main() {
    ingest();
    let out = tempfile::tempdir().unwrap();
    let began = Instant::now();
    fill::fill(out.path());
    let size = std::fs::metadata(out.path().join(waylay_history::FILE)).map_or(0, |file| file.len());
    println!(
        "filled with {} campaigns and {} failures in {:.1} s, {} MiB",
        fill::CAMPAIGNS,
        fill::CAMPAIGNS * fill::NEW,
        began.elapsed().as_secs_f64(),
        size >> 20
    );
    let history = History::open_to_read(out.path()).unwrap();
    let page = |filter: Filter| Filter { limit: 50, ..filter };
    let ask = |name: &str, question: &dyn Fn() -> Result<usize, HistoryError>| {
        let mut times: Vec<Duration> = (0..20)
            .map(|_| {
                let began = Instant::now();
                question().unwrap();
                began.elapsed()
            })
            .collect();
        times.sort();
        println!("{name:<44} median {:>8.2?}, longest {:>8.2?}", times[10], times[19]);
    };
    ask("failures, last seen first", &|| Ok(history.failures(&page(Filter::default()))?.len()));
    let frequent = page(Filter { order: Order::Count, ..Filter::default() });
    ask("failures, most frequent first", &|| Ok(history.failures(&frequent)?.len()));
    let rare =
        page(Filter { states: vec![FailureState::Rare], kind: Some("deadlock".into()), ..Filter::default() });
    ask("failures, rare deadlocks", &|| Ok(history.failures(&rare)?.len()));
    let text = page(Filter { text: Some("00000000000186".into()), ..Filter::default() });
    ask("failures, a text that few have", &|| Ok(history.find(&text, 10_001)?.0.len()));
    ask("how many failures fit", &|| Ok(history.count_failures(&Filter::default(), 10_001)? as usize));
    ask("totals by state", &|| history.totals().map(|totals| totals.new as usize));
    ask("one failure", &|| Ok(history.known_failure("deadlock-00000000000185d0")?.is_some().into()));
    ask("campaigns, newest", &|| Ok(history.campaigns(0, 50)?.len()));
    ask("one campaign", &|| Ok(history.known_campaign("c-09990")?.is_some().into()));
    ask("60 nights", &|| Ok(history.nights(60)?.len()));
    ask("60 nights of a test", &|| Ok(history.test_nights("queue", 60)?.len()));
}

/// Different failures, as fast as they come, through the feed of a campaign.
fn ingest() {
    const NUMBER: u64 = 20_000;
    let out = tempfile::tempdir().unwrap();
    let record = support::campaign(1, &[("queue", 1)]);
    let entries: Vec<_> = (0..NUMBER)
        .map(|number| support::entry(&format!("deadlock-{number:016x}"), Some("queue"), 1, record.started))
        .collect();
    let began = Instant::now();
    let mut live = Recorded::new(Silent, Some(Feed::open(out.path(), support::utc()).unwrap()));
    live.campaign(&record, out.path());
    for entry in &entries {
        live.failure(entry, out.path());
    }
    let handed_over = began.elapsed();
    live.finish();
    let written = began.elapsed();
    let history = History::open_to_read(out.path()).unwrap();
    let there = history.count_failures(&Filter::default(), 1 << 40).unwrap();
    println!(
        "{NUMBER} different failures: {:.0} per second, {there} of them are there; the campaign waited {:.1} us for each",
        NUMBER as f64 / written.as_secs_f64(),
        handed_over.as_secs_f64() * 1e6 / NUMBER as f64
    );
    assert_eq!(there, NUMBER);
}
