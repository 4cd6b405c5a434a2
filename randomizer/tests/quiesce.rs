//! Evidence while the randomizer runs at full speed: every dump is complete, because the collector asks first.

#![cfg(target_os = "linux")]

mod questions;
mod target;

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use target::{Randomizer, Target, Watchdog, eventually, scratch};
use waylay_evidence::{CrashContext, DumpError, DumpLimits, ProcessId, ThreadId, minidump};
use waylay_page::{Clock, Page};
use waylay_randomizer::quiesce::{Quiet, Words};

/// Sixteen threads beside the first, as busy as two processors bear.
const THREADS: [&str; 16] = [
    "spin:s1", "spin:s2", "nap:n1", "nap:n2", "nap:n3", "nap:n4", "nap:n5", "nap:n6", "block:b1", "block:b2",
    "block:b3", "block:b4", "block:b5", "block:b6", "block:b7", "block:b8",
];
const FULL_SPEED: [&str; 6] = ["--period", "0s..100us", "--suspend", "0s..1ms", "--count", "1..17"];
/// What a collector waits before it kills the randomizer.
const PATIENCE: Duration = Duration::from_millis(200);

fn page() -> Page {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    Page::create(CLOCK.get_or_init(Clock::calibrate)).expect("a page")
}

fn start(target: &Target, page: &Page, arguments: &[&str]) -> Randomizer {
    let fd = page.handle().raw();
    let randomizer =
        Randomizer::start_with(target.pid(), &[arguments, &["--page", &fd.to_string()]].concat(), vec![fd]);
    // Evidence is only worth a test once windows open.
    let open = &page.layout().header.window_open;
    eventually("the first window", || match open.load(std::sync::atomic::Ordering::SeqCst) {
        0 => Err("closed".into()),
        _ => Ok(()),
    });
    randomizer
}

/// Asks, kills the randomizer if it does not answer, and dumps; true when it had to be killed.
fn dump(
    target: &Target,
    page: &Page,
    randomizer: &mut Randomizer,
    path: &Path,
    crash: Option<&CrashContext>,
) -> bool {
    let words = Words::of(&page.layout().header);
    let (quiet, killed) = match Quiet::ask(words, PATIENCE) {
        Ok(quiet) => (quiet, false),
        Err(no_answer) => {
            randomizer.end();
            (Quiet::after_end_of_randomizer(no_answer), true)
        }
    };
    let expected = target.states().replace('Z', "").len();
    let info = minidump(ProcessId(target.pid()), path, crash, &DumpLimits::default())
        .unwrap_or_else(|error| panic!("{error} ({})", target.states()));
    assert_eq!(info.threads, expected);
    drop(quiet);
    killed
}

#[test]
fn two_hundred_crashes() {
    let _watchdog = Watchdog::new();
    let (_directory, path) = scratch();
    let mut killed = 0;
    for _ in 0..200 {
        let mut target = Target::start(&THREADS);
        let page = page();
        let mut randomizer = start(&target, &page, &FULL_SPEED);
        target.say("segv");
        let line = target.line();
        let fields: Vec<_> = line.split(' ').collect();
        let address = |text: &str| u64::from_str_radix(text, 16).expect("an address");
        let pid = ProcessId(target.pid());
        let thread = ThreadId(fields[1].parse().expect("a number"));
        let crash =
            CrashContext::read(pid, thread, address(fields[2]), address(fields[3])).expect("readable");
        killed += u32::from(dump(&target, &page, &mut randomizer, &path, Some(&crash)));
        target.kill();
        target.wait();
        drop(randomizer);
    }
    // A machine so loaded that an answer takes longer than the patience is what the kill is for.
    eprintln!("200 crashes, 200 complete dumps, randomizer killed {killed} times");
}

#[test]
fn two_hundred_hangs() {
    let _watchdog = Watchdog::new();
    let (_directory, path) = scratch();
    for _ in 0..20 {
        let target = Target::start(&THREADS);
        let page = page();
        let mut randomizer = start(&target, &page, &FULL_SPEED);
        for _ in 0..10 {
            if dump(&target, &page, &mut randomizer, &path, None) {
                randomizer = start(&target, &page, &FULL_SPEED);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(randomizer);
        eventually("let go", || {
            let states = target.states();
            if states.contains('t') { Err(states) } else { Ok(()) }
        });
    }
}

#[test]
fn who_does_not_ask_gets_nothing_and_who_asks_everything() {
    let _watchdog = Watchdog::new();
    let (_directory, path) = scratch();
    let target = Target::start(&["nap:n1", "nap:n2"]);
    let page = page();
    let mut randomizer = start(&target, &page, &["--period", "0s", "--suspend", "10m", "--count", "9"]);
    target.expect_states("ttt");
    let refused = minidump(ProcessId(target.pid()), &path, None, &DumpLimits::default());
    assert!(matches!(refused, Err(DumpError::Incomplete { .. } | DumpError::Write { .. })), "{refused:?}");
    dump(&target, &page, &mut randomizer, &path, None);
    target.expect_states("ttt");
    randomizer.signal(libc::SIGINT);
    let (_, report) = randomizer.finish();
    assert_eq!(report.progress.counts.quiesced, 1, "{report}");
    target.expect_all_running();
}

/// The bench `answers` asks more often, beside busy loops.
#[test]
fn an_answer_means_that_nothing_is_attached() {
    let _watchdog = Watchdog::new();
    let asked = questions::ask(500);
    assert_eq!(asked.wrong, 0, "{asked:?}");
    assert_eq!(asked.answered + asked.killed, 500, "{asked:?}");
}

/// It finds out whether it may trace before its first window, and nobody had told it to keep away from that.
#[test]
fn a_randomizer_that_is_just_starting_keeps_away_as_well() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&THREADS);
    let page = page();
    let words = Words::of(&page.layout().header);
    for _ in 0..3 {
        let quiet = Quiet::ask(words, PATIENCE).expect("nobody is there");
        let fd = page.handle().raw();
        let number = fd.to_string();
        let arguments = [&FULL_SPEED[..], &["--page", &number]].concat();
        let randomizer = Randomizer::start_with(target.pid(), &arguments, vec![fd]);
        // It would look at the target as soon as it has opened the page, from a thread of its own that can be seen.
        eventually("it has the page", || {
            let maps =
                std::fs::read_to_string(format!("/proc/{}/maps", randomizer.pid())).unwrap_or_default();
            if maps.contains("memfd:") { Ok(()) } else { Err("not yet".into()) }
        });
        for _ in 0..100 {
            assert_eq!((target.traced(), tracers_of(randomizer.pid())), (0, 0));
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(quiet);
        eventually("it begins", || match tracers_of(randomizer.pid()) {
            0 => Err("not yet".into()),
            _ => Ok(()),
        });
        drop(randomizer);
        words.note_end_of_randomizer();
    }
}

/// Threads of a randomizer that could attach to others.
fn tracers_of(pid: u32) -> usize {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| name.trim_end() == "waylay-tracer").count()
}

#[test]
fn who_is_asked_through_the_page_ends_in_order() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&["nap:n1", "nap:n2"]);
    let page = page();
    let randomizer = start(&target, &page, &["--period", "0s", "--suspend", "10m", "--count", "9"]);
    target.expect_states("ttt");
    Words::of(&page.layout().header).ask_to_end();
    let (code, report) = randomizer.finish();
    assert_eq!((code, report.progress.counts.suspensions), (0, 3), "{report}");
    assert_eq!(target.traced(), 0);
    target.expect_all_running();
}

#[test]
fn a_thread_that_cannot_be_stopped_does_not_delay_the_answer_for_ever() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&["vfork:v1", "nap:n1"]);
    let page = page();
    let randomizer = start(&target, &page, &["--period", "0s", "--suspend", "10m", "--count", "9"]);
    target.expect_states("tDt");
    let quiet = Quiet::ask(Words::of(&page.layout().header), Duration::from_secs(30)).expect("an answer");
    assert!(!target.states().contains('t'), "{}", target.states());
    drop(quiet);
    drop(randomizer);
}

#[test]
fn a_randomizer_that_does_not_answer_is_killed_first() {
    let _watchdog = Watchdog::new();
    let (_directory, path) = scratch();
    let target = Target::start(&["nap:n1", "spin:s1"]);
    let page = page();
    let mut randomizer = start(&target, &page, &["--period", "0s", "--suspend", "10m", "--count", "9"]);
    target.expect_states("ttt");
    randomizer.signal(libc::SIGSTOP);
    assert!(dump(&target, &page, &mut randomizer, &path, None), "a stopped process does not answer");
    target.expect_all_running();
}

#[test]
fn the_log_is_complete_once_the_randomizer_rests() {
    let _watchdog = Watchdog::new();
    let (_directory, path) = scratch();
    let target = Target::start(&["nap:n1", "nap:n2", "spin:s1"]);
    let page = page();
    let log = path.to_str().expect("a name");
    let randomizer = start(&target, &page, &[&FULL_SPEED[..], &["--log", log]].concat());
    let words = Words::of(&page.layout().header);
    for _ in 0..20 {
        let quiet = Quiet::ask(words, Duration::from_secs(30)).expect("an answer");
        assert!(words.wait_until_rested(Duration::from_secs(30)));
        let opened = words.windows.load(std::sync::atomic::Ordering::SeqCst);
        let text = std::fs::read_to_string(&path).expect("a log");
        let mut decisions: Vec<&str> =
            text.lines().filter_map(|line| line.split_once(" suspend ").map(|(time, _)| time)).collect();
        decisions.dedup();
        // A window that was interrupted before its first thread was asked is not in the log; there is at most
        // one per request.
        assert!(decisions.len() as u64 <= opened, "{} of {opened}", decisions.len());
        assert!(decisions.len() as u64 + 20 >= opened, "{} of {opened}", decisions.len());
        assert!(text.ends_with('\n'));
        drop(quiet);
        std::thread::sleep(Duration::from_millis(3));
    }
    drop(randomizer);
}

#[test]
fn the_thread_that_the_host_names_as_its_own_is_left_alone() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&["nap:n1", "nap:n2"]);
    let page = page();
    page.layout().header.own_thread.store(target.pid(), std::sync::atomic::Ordering::SeqCst);
    let duration = ["--duration", "300ms"];
    let (code, report) = start(&target, &page, &[&FULL_SPEED[..], &duration].concat()).finish();
    assert_eq!((code, report.progress.most_to_choose_from), (0, 2), "{report}");
    let own = report.living.iter().find(|thread| thread.thread.0 == target.pid()).expect("there");
    assert_eq!((own.chosen_from, own.suspensions), (false, 0), "{report}");
    assert_eq!(report.progress.never_suspended, 0, "{report}");
}
