//! Processes that are killed, and processes that write at the same time.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::Duration;

use support::{again, campaign, entry, utc};
use waylay_history::query::Filter;
use waylay_history::sighting::Sighting;
use waylay_history::{FILE, History};

const OUT: &str = "WAYLAY_TEST_OUT";
const PREFIX: &str = "WAYLAY_TEST_PREFIX";
const NUMBER: &str = "WAYLAY_TEST_NUMBER";

fn role() -> Option<(PathBuf, String, u64)> {
    let number = std::env::var(NUMBER).ok()?.parse().ok()?;
    Some((std::env::var_os(OUT)?.into(), std::env::var(PREFIX).ok()?, number))
}

/// Writes failures one by one and says after each that it is written.
fn write(out: &Path, prefix: &str, number: u64) {
    let mut history = History::open(out).unwrap();
    let mut record = campaign(1, &[("queue", 0)]);
    record.name = format!("{}-{prefix}", record.name);
    for done in 1..=number {
        record.scenarios[0].tests[0].iterations = done;
        let sighting = Sighting::of(&entry(&format!("{prefix}-{done}"), Some("queue"), 1, record.started));
        history.put(&record, &[sighting], &utc()).unwrap();
        println!("written {done}");
    }
}

fn intact(out: &Path) {
    let connection = rusqlite::Connection::open(out.join(FILE)).unwrap();
    let word: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(word, "ok");
}

#[test]
fn a_writer_that_is_killed_at_any_moment_leaves_everything_that_it_said_is_written() {
    if let Some((out, prefix, number)) = role() {
        return write(&out, &prefix, number);
    }
    let out = tempfile::tempdir().unwrap();
    let mut sums = 0.0;
    for round in 0..6u64 {
        let prefix = format!("k{round}");
        let mut child = again(
            "a_writer_that_is_killed_at_any_moment_leaves_everything_that_it_said_is_written",
            &[(OUT, out.path().to_str().unwrap()), (PREFIX, &prefix), (NUMBER, "1000000")],
        );
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = 1 + round * 37;
        let said = |line: &str| line.strip_prefix("written ").and_then(|text| text.parse::<u64>().ok());
        let mut last = 0;
        while last < wanted {
            last = said(&lines.next().unwrap().unwrap()).unwrap_or(last);
        }
        // Somewhere within the next transactions, wherever that is.
        std::thread::sleep(Duration::from_micros(round * 700));
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines.map_while(Result::ok) {
            last = said(&line).unwrap_or(last);
        }
        let history = History::open(out.path()).unwrap();
        let filter = Filter { text: Some(format!("{prefix}-")), ..Filter::default() };
        let there = history.count_failures(&filter, 1 << 40).unwrap();
        assert!(there == last || there == last + 1, "said {last}, there are {there}");
        // What is summed up goes with what is listed, and never down.
        let sum: f64 = history
            .counters()
            .unwrap()
            .iter()
            .filter(|(name, ..)| name == "signatures")
            .map(|(.., value)| value)
            .sum();
        assert_eq!(sum, sums + there as f64);
        sums = sum;
        intact(out.path());
    }
}

#[test]
fn two_processes_that_write_at_the_same_time_both_get_everything_in() {
    if let Some((out, prefix, number)) = role() {
        return write(&out, &prefix, number);
    }
    let out = tempfile::tempdir().unwrap();
    let start = |prefix: &str| {
        again(
            "two_processes_that_write_at_the_same_time_both_get_everything_in",
            &[(OUT, out.path().to_str().unwrap()), (PREFIX, prefix), (NUMBER, "200")],
        )
    };
    for mut child in [start("a"), start("b"), start("c")] {
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success() && said.contains("written 200"), "{said}");
    }
    let history = History::open(out.path()).unwrap();
    assert_eq!(history.count_failures(&Filter::default(), 1 << 40).unwrap(), 600);
    assert_eq!(history.campaigns(0, 10).unwrap().len(), 3);
    let sum: f64 = history
        .counters()
        .unwrap()
        .iter()
        .filter(|(name, ..)| name == "iterations")
        .map(|(.., value)| value)
        .sum();
    assert_eq!(sum, 600.0);
    intact(out.path());
}

#[test]
fn any_number_of_writers_may_find_that_there_is_no_history_yet() {
    for round in 0..40 {
        let out = tempfile::tempdir().unwrap();
        let start = Barrier::new(6);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    start.wait();
                    if let Err(error) = History::open(out.path()) {
                        panic!("round {round}: {error}");
                    }
                });
            }
        });
    }
}

#[test]
fn a_database_of_a_newer_version_is_refused_in_words() {
    let out = tempfile::tempdir().unwrap();
    let connection = rusqlite::Connection::open(out.path().join(FILE)).unwrap();
    connection.pragma_update(None, "user_version", 1000).unwrap();
    let error = History::open(out.path()).unwrap_err().to_string();
    assert!(error.contains("newer waylay") && error.contains(FILE), "{error}");
}

/// Somebody cuts off the files that SQLite has mapped, in the middle of a campaign: the process lives, what it asks then is
/// an error, and what is opened next is whole again.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_cut_off_ends_nobody() {
    // In a process of its own: every history that is open in it hears of this.
    if role().is_none() {
        let place = tempfile::tempdir().unwrap();
        let roles = [(OUT, place.path().to_str().unwrap()), (PREFIX, "c"), (NUMBER, "0")];
        let output = again("a_file_that_is_cut_off_ends_nobody", &roles).wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let history = History::open(place.path()).unwrap();
    history.totals().unwrap();
    for file in ["history.sqlite-shm", "history.sqlite-wal"] {
        let path = place.path().join(file);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    }
    let asked = history.totals();
    assert!(matches!(asked, Err(waylay_history::HistoryError::CutOff { .. })), "{asked:?}");
    drop(history);
    History::open(place.path()).unwrap().totals().unwrap();
}
