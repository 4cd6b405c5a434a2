//! Something kills the host, or the driver, or the user stops: nothing that was recorded is lost, nobody is left behind,
//! and the campaign's folder can be read.

#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Failure, Running, Workplace, hosts_of, is_alive, kill, list, number, text};

/// How often a host is killed.
const HOST_KILLS: u32 = 100;
/// How often a driver is killed, each at another moment of its life.
const DRIVER_KILLS: u64 = 20;

/// Fails in every hundredth iteration, about a hundred times a second.
const FAILING_NOW_AND_THEN: &str = "static int32_t iterate(probe *self, waylay_context *worker) {\n\
    static _Atomic unsigned count;\n\
    usleep(100);\n\
    if (++count % 100 != 0) return WAYLAY_OK;\n\
    waylay_fail(self->services, worker, \"now and then\");\n\
    return WAYLAY_FAILED;\n\
  }";

fn place_with(plugin: &str, source: &str, more: &str) -> Workplace {
    let place = Workplace::new();
    place.compile(plugin, source);
    place.write(
        "waylay.toml",
        &format!("[defaults]\nmax-failures = 0\n{more}\n[[scenario]]\nname = \"s\"\n[[scenario.test]]\nplugin = \"{plugin}\"\n"),
    );
    place
}

/// A different pause each time, spread over the range: moments that no clock in the driver is in step with.
fn pause(number: u64, most: Duration) {
    let golden = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64;
    std::thread::sleep(most.mul_f64(golden));
}

#[test]
fn a_host_that_is_killed_again_and_again_loses_no_failure() {
    let place = place_with("now_and_then", FAILING_NOW_AND_THEN, "");
    let running = place.start(&["run", "waylay.toml", "--json"]);
    // The first processes only say what is inside a plugin.
    running.until("a campaign", |_| !place.campaigns("waylay-out").is_empty());
    let mut killed = 0;
    while killed < HOST_KILLS {
        running.until("a host", |running| !running.hosts().is_empty());
        pause(u64::from(killed), Duration::from_millis(150));
        for host in running.hosts() {
            kill(host);
            killed += 1;
            running.until("the next host", |running| !running.hosts().contains(&host));
        }
    }
    // One that is not killed, so that there is certainly something to count.
    let campaign = place.campaigns("waylay-out").remove(0);
    running.until("a recorded failure", |_| !failures_in(&campaign).is_empty());
    running.until("a host", |running| !running.hosts().is_empty());
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    let json = ran.json();
    let failures = ran.failures();
    // Two entries: killed while tests ran, and killed before that.
    let vanished: Vec<&Failure> = failures.iter().filter(|failure| failure.json["test"].is_null()).collect();
    assert!(vanished.iter().all(|failure| failure.kind() == "crash" && failure.what().contains("SIGKILL")));
    assert_eq!(
        vanished.iter().map(|failure| failure.count()).sum::<u64>(),
        u64::from(killed),
        "{}",
        ran.stderr
    );
    let own = ran.failure("now_and_then", "probe");
    assert_eq!(own.count(), number(&ran.test("now_and_then", "probe")["failures"]));
    let on_disk: u64 = failures.iter().map(Failure::count).sum();
    assert_eq!(on_disk, number(&json["campaign"]["failures"]), "{json:#}");
    let reported: u64 = list(&json["failures"]).iter().map(|failure| number(&failure["count"])).sum();
    assert_eq!(on_disk, reported);
    assert!(number(&json["campaign"]["hosts"]) > u64::from(killed));
    assert_eq!(json["campaign"]["state"], "stopped");
}

fn failures_in(campaign: &Path) -> Vec<Failure> {
    let Ok(entries) = fs::read_dir(campaign.join("failures")) else { return Vec::new() };
    let folders = entries.map(|entry| entry.expect("readable").path());
    folders
        .filter(|folder| folder.join("failure.json").exists())
        .map(|folder| Failure::read(&folder))
        .collect()
}

fn gone(hosts: &[i32]) {
    let began = Instant::now();
    while let Some(host) = hosts.iter().find(|host| is_alive(**host)) {
        assert!(began.elapsed() < Duration::from_secs(20), "host {host} outlives its driver");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_driver_that_is_killed_leaves_no_host_and_a_folder_that_can_be_read() {
    let place = place_with("now_and_then", FAILING_NOW_AND_THEN, "");
    let mut failures = 0;
    for number in 0..DRIVER_KILLS {
        let before = place.campaigns("waylay-out").len();
        let running = place.start(&["run", "waylay.toml"]);
        // From the first moments, before there is a folder, to long after the first failures; the last one certainly
        // after a failure, however slow the machine is.
        pause(number, Duration::from_millis(1200));
        let began = Instant::now();
        let failed = || {
            place
                .campaigns("waylay-out")
                .iter()
                .skip(before)
                .any(|campaign| !failures_in(campaign).is_empty())
        };
        while number + 1 == DRIVER_KILLS && !failed() && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let hosts = running.hosts();
        running.signal(libc::SIGKILL);
        let ran = running.finish();
        assert_eq!(ran.code(), None, "{}", ran.stderr);
        gone(&hosts);
        let interrupted = ran.stderr.matches("was interrupted").count();
        let campaigns = place.campaigns("waylay-out");
        if campaigns.len() > before {
            assert!(interrupted <= 1, "each interrupted campaign is told once:\n{}", ran.stderr);
        }
        for campaign in &campaigns {
            let record = fs::read_to_string(campaign.join("campaign.json"));
            if let Ok(record) = record {
                let record: Value = serde_json::from_str(&record).expect("a whole record");
                assert!(["running", "interrupted"].contains(&text(&record["state"])), "{record:#}");
            }
        }
        failures = campaigns.iter().map(|campaign| failures_in(campaign).len()).sum();
    }
    assert!(failures > 0, "no campaign came as far as a failure");

    // The last one is killed at work.
    let before = place.campaigns("waylay-out").len();
    let running = place.start(&["run", "waylay.toml"]);
    running.until("a host of a new campaign", |running| {
        place.campaigns("waylay-out").len() > before && !running.hosts().is_empty()
    });
    running.signal(libc::SIGKILL);
    running.finish();

    // The next start says what was interrupted, and where its failures are; the one after does not say it again.
    let told = place.waylay(&["run", "waylay.toml", "--duration", "300ms", "--quiet"]);
    assert!(told.stderr.contains("was interrupted"), "{}", told.stderr);
    let again = place.waylay(&["run", "waylay.toml", "--duration", "300ms", "--quiet"]);
    assert!(!again.stderr.contains("was interrupted"), "{}", again.stderr);
}

/// A hang that may still come back is not lost with the driver.
#[test]
fn evidence_that_waits_for_a_decision_survives_the_driver() {
    let place = Workplace::with(
        "[[scenario]]\nname = \"s\"\n[[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"livelock\"\nhang-timeout = \"4s\"\n",
    );
    let running = place.start(&["run", "waylay.toml"]);
    running.until("a suspect", |running| running.stderr().contains("watching whether it comes back"));
    let campaign = place.campaigns("waylay-out").remove(0);
    running.until("its evidence", |_| !failures_in(&campaign).is_empty());
    running.signal(libc::SIGKILL);
    let ran = running.finish();
    let kept = failures_in(&campaign);
    assert_eq!(kept.len(), 1, "{}", ran.stderr);
    assert_eq!(kept[0].kind(), "livelock");
    assert!(kept[0].file("stacks.txt").contains("pass"));
    assert!(kept[0].folder.join("dump.dmp").exists());
}

/// Logs its life; an iteration takes a moment.
const IDLE: &str = "static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker; usleep(1000); return WAYLAY_OK; }";

/// One iteration at least: a campaign in which nothing ran is not clean.
fn until_it_runs(running: &Running, place: &Workplace) {
    running.until("a test that runs", |_| {
        place.campaigns("waylay-out").first().is_some_and(|campaign| iterations_in(campaign) > 0)
    });
}

/// What the campaign has written about its first test so far.
fn iterations_in(campaign: &Path) -> u64 {
    let record = fs::read_to_string(campaign.join("campaign.json")).unwrap_or_default();
    let record: Value = serde_json::from_str(&record).unwrap_or_default();
    record["scenarios"][0]["tests"][0]["iterations"].as_u64().unwrap_or(0)
}

#[test]
fn a_signal_ends_the_campaign_in_order() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let place = place_with("idle", IDLE, "");
        let running = place.start(&["run", "waylay.toml", "--json"]);
        until_it_runs(&running, &place);
        running.signal(signal);
        let ran = running.finish();
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
        let json = ran.json();
        assert_eq!(json["campaign"]["state"], "stopped");
        assert!(ran.stderr.contains("clean:"), "{}", ran.stderr);
        let log = ran.host_log();
        let place_of = |words: &str| log.find(words).unwrap_or_else(|| panic!("{words} is not in\n{log}"));
        assert!(
            place_of("] started") < place_of("] cancelled") && place_of("] cancelled") < place_of("] ended")
        );
        assert!(!place.waylay(&["run", "waylay.toml", "--duration", "200ms"]).stderr.contains("interrupted"));
    }
}

/// A service manager asks all processes of a service to end, the hosts too: that is no failure of the tests.
#[test]
fn a_signal_to_everybody_ends_the_campaign_in_order() {
    let place = place_with("idle", IDLE, "");
    let running = place.start(&["run", "waylay.toml", "--json"]);
    until_it_runs(&running, &place);
    for host in running.hosts() {
        // SAFETY: a plain call.
        unsafe { libc::kill(host, libc::SIGTERM) };
    }
    running.signal(libc::SIGTERM);
    let ran = running.finish();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    assert_eq!(number(&ran.json()["campaign"]["hosts"]), 1, "{}", ran.stderr);
    assert!(ran.host_log().contains("] ended"), "{}", ran.host_log());
}

/// `timeout` asks the process to end and then its whole group, so that the process is asked twice in no time.
#[test]
fn two_signals_in_no_time_are_one() {
    let place = place_with("idle", IDLE, "");
    let running = place.start(&["run", "waylay.toml", "--json"]);
    until_it_runs(&running, &place);
    for _ in 0..2 {
        running.signal(libc::SIGTERM);
        std::thread::sleep(Duration::from_millis(20));
    }
    let ran = running.finish();
    assert_eq!(
        (ran.code(), &ran.json()["campaign"]["state"]),
        (Some(0), &"stopped".into()),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_second_signal_ends_it_at_once() {
    // The first signal alone would take as long as the test takes to be cancelled, which is for ever.
    let place = Workplace::with(
        "[defaults]\ncancel-timeout = \"1h\"\nhang-timeout = \"1h\"\n[[scenario]]\nname = \"s\"\n\
         [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"cancel-hangs\"\n",
    );
    let running = place.start(&["run", "waylay.toml"]);
    running.until("a campaign", |_| !place.campaigns("waylay-out").is_empty());
    let campaign = place.campaigns("waylay-out").remove(0);
    running.until("progress", |_| iterations_in(&campaign) > 0);
    let hosts = hosts_of(running.pid());
    running.signal(libc::SIGINT);
    std::thread::sleep(Duration::from_millis(700));
    assert!(is_alive(running.pid()), "the first ends it in order");
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!(ran.code(), Some(130), "{}", ran.stderr);
    gone(&hosts);
}
