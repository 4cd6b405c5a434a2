//! The randomizer on real processes: who is suspended, what is told of it.

#![cfg(target_os = "linux")]

mod target;

use std::time::Duration;

use target::{Randomizer, Target, Watchdog, randomizer, scratch};
use waylay_randomizer::report::{CommandEnd, Ending};
use waylay_randomizer::{NOTHING_DONE, Report};

fn suspensions(report: &Report, name: &str) -> u64 {
    report.living.iter().find(|thread| thread.name == name).map_or(0, |thread| thread.suspensions)
}

/// Fast windows over all threads for half a second.
const BUSY: [&str; 8] =
    ["--period", "0s..100us", "--suspend", "0s..200us", "--count", "1..4", "--duration", "500ms"];

#[test]
fn threads_are_suspended_and_run_on() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&["spin:s1", "spin:s2", "nap:n1", "nap:n2"]);
    let (code, report) = Randomizer::start(target.pid(), &BUSY).finish();
    assert_eq!((code, report.ending), (0, Ending::DurationOver));
    for name in ["s1", "s2", "n1", "n2", &report.living[0].name] {
        assert!(suspensions(&report, name) > 0, "{name}: {report}");
    }
    assert_eq!((report.progress.never_suspended, report.progress.counts.unstoppable), (0, 0), "{report}");
    assert_eq!(report.progress.counts.suspensions, report.living.iter().map(|t| t.suspensions).sum::<u64>());
    assert!(report.progress.suspended_s > 0.0 && report.progress.hold.max_us >= report.progress.hold.p50_us);
    target.expect_all_running();
}

#[test]
fn names_decide_and_service_threads_are_left_alone() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&["nap:w1", "nap:w2", "nap:other", "nap:waylay-watch"]);
    let choice = ["--include", "w*", "--exclude", "w2"];
    let (code, report) = Randomizer::start(target.pid(), &[&BUSY[..], &choice].concat()).finish();
    assert_eq!(code, 0);
    let hit: Vec<_> = report.living.iter().filter(|t| t.suspensions > 0).map(|t| t.name.as_str()).collect();
    assert_eq!(hit, ["w1"]);
    assert!(!report.living.iter().any(|thread| thread.name == "waylay-watch" && thread.chosen_from));
}

#[test]
fn nothing_suspended_has_an_exit_code_of_its_own() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&["nap:w1"]);
    let (code, report) = Randomizer::start(target.pid(), &["--exclude", "*", "--duration", "100ms"]).finish();
    assert_eq!(code, i32::from(NOTHING_DONE));
    assert!(!report.did_anything() && report.progress.counts.idle_windows > 0);
    assert!(report.to_string().contains("NOTHING WAS SUSPENDED"));
}

#[test]
fn a_command_is_started_disturbed_and_its_end_told() {
    let _watchdog = Watchdog::new();
    for (script, end, expected) in [
        ("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 0", CommandEnd::Code(0), 0),
        ("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 7", CommandEnd::Code(7), 1),
        ("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; kill -9 $$", CommandEnd::Signal(9), 1),
    ] {
        let output = randomizer()
            .args(["--json", "--period", "0s", "--suspend", "0s..100us", "--", "sh", "-c", script])
            .output()
            .expect("starts");
        let report: Report = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!((report.command, report.ending), (Some(end), Ending::TargetEnded), "{report}");
        assert_eq!(output.status.code(), Some(expected), "{report}");
        assert!(report.did_anything());
    }
}

#[test]
fn threads_that_come_and_go_do_not_confuse() {
    let _watchdog = Watchdog::new();
    let mut target = Target::start(&["churn:c1", "churn:c2", "nap:w1"]);
    let randomizer =
        Randomizer::start(target.pid(), &["--period", "0s", "--suspend", "0s..50us", "--count", "1..8"]);
    std::thread::sleep(Duration::from_millis(800));
    target.expect_all_running();
    target.say("quit");
    let (code, report) = randomizer.finish();
    assert_eq!((code, report.ending), (0, Ending::TargetEnded));
    assert!(target.wait().success());
    assert!(report.progress.counts.threads_seen > 4 && !report.ended.is_empty(), "{report}");
}

#[test]
fn a_thousand_threads() {
    let _watchdog = Watchdog::new();
    let names: Vec<_> = (0..1000).map(|i| format!("block:b{i}")).collect();
    let target = Target::start(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let (code, report) = Randomizer::start(
        target.pid(),
        &["--period", "0s", "--suspend", "0s", "--count", "2000", "--duration", "1s"],
    )
    .finish();
    assert_eq!(code, 0, "{report}");
    assert_eq!((report.progress.threads, report.progress.never_suspended), (1001, 0), "{report}");
}

#[test]
fn a_log_can_be_replayed() {
    let _watchdog = Watchdog::new();
    let (_directory, log) = scratch();
    let log = log.to_str().expect("a name");
    let first = Target::start(&["nap:w1", "nap:w2", "nap:w3"]);
    let arguments = [&BUSY[..], &["--include", "w*", "--seed", "0x5eed", "--log", log]].concat();
    let (_, recorded) = Randomizer::start(first.pid(), &arguments).finish();
    let text = std::fs::read_to_string(log).expect("a log");
    let count = |word: &str| text.lines().filter(|line| line.split(' ').nth(1) == Some(word)).count() as u64;
    assert_eq!(count("suspend"), count("resume"));
    assert_eq!(count("suspend"), recorded.progress.counts.suspensions);

    let second = Target::start(&["nap:w1", "nap:w2", "nap:w3"]);
    let (code, replayed) = Randomizer::start(second.pid(), &["--replay", log, "--include", "w*"]).finish();
    assert_eq!((code, replayed.ending), (0, Ending::RecordingOver));
    assert!(replayed.replayed && replayed.to_string().contains("statistically"));
    assert_eq!(replayed.seed, recorded.seed);
    assert_eq!(replayed.progress.counts.windows, recorded.progress.counts.windows);
    for name in ["w1", "w2", "w3"] {
        assert_eq!(suspensions(&replayed, name), suspensions(&recorded, name), "{name}");
    }
}

#[test]
fn the_same_seed_makes_the_same_choices_on_the_same_threads() {
    let _watchdog = Watchdog::new();
    let (_directory, log) = scratch();
    let choices = || {
        let target = Target::start(&["block:w1", "block:w2", "block:w3", "block:w4"]);
        let log_name = log.to_str().expect("a name");
        let arguments = ["--include", "w*", "--seed", "7", "--log", log_name, "--duration", "300ms"];
        Randomizer::start(
            target.pid(),
            &[&arguments[..], &["--period", "100us", "--suspend", "0s"]].concat(),
        )
        .finish();
        let text = std::fs::read_to_string(&log).expect("a log");
        text.lines()
            .filter_map(|line| line.split_once(" suspend ").map(|(_, ordinal)| ordinal.to_owned()))
            .take(100)
            .collect::<Vec<_>>()
    };
    let (first, second) = (choices(), choices());
    let common = first.len().min(second.len());
    assert!(common > 0);
    assert_eq!(first[..common], second[..common]);
}

#[test]
fn statistics_come_through_a_pipe() {
    use std::io::{BufRead, BufReader};
    use std::os::fd::AsRawFd;

    let _watchdog = Watchdog::new();
    let target = Target::start(&["nap:w1"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let fd = writer.as_raw_fd();
    let fd_text = fd.to_string();
    let randomizer =
        Randomizer::start_with(target.pid(), &[&BUSY[..], &["--stats", &fd_text]].concat(), vec![fd]);
    drop(writer);
    let lines: Vec<waylay_randomizer::statistics::Progress> = BufReader::new(reader)
        .lines()
        .map(|line| serde_json::from_str(&line.expect("readable")).expect("a line of statistics"))
        .collect();
    let (_, report) = randomizer.finish();
    assert!(lines.len() >= 2);
    assert!(lines.is_sorted_by_key(|line| line.counts.suspensions));
    assert_eq!(lines.last(), Some(&report.progress));
}
