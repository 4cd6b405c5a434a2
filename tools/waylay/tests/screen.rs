//! The full-screen view and "what is running now", on a real terminal. Nothing drawn, a terminal left in disorder, or
//! stacks that are not there fail these tests.

#![cfg(target_os = "linux")]

mod support;

use std::time::{Duration, Instant};

use support::terminal::OnTerminal;
use support::{PATIENCE, Workplace};

/// One test that works, one that waits for ever in a function of its own, and one that failed at once.
fn place(mode: &str) -> Workplace {
    let place = Workplace::new();
    place.compile(
        "waits",
        "static void wait_for_nobody(void) { for (;;) pause(); }\n\
         static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker; wait_for_nobody(); return WAYLAY_OK; }",
    );
    place.write(
        "waylay.toml",
        &format!(
            "[[scenario]]\nname = \"mixed\"\nmode = \"{mode}\"\nduration = \"280s\"\n\
             [[scenario.test]]\nplugin = \"waits\"\nworkers = 2\nhang-timeout = \"290s\"\n\
             [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"nothing\"\nworkers = 1\n\
             [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"assert\"\nworkers = 1\nmax-failures = 1\n"
        ),
    );
    place
}

fn shown(place: &Workplace, arguments: &[&str]) -> OnTerminal {
    OnTerminal::start(place.command(&[&["run", "waylay.toml"], arguments].concat()))
}

#[test]
fn the_screen_shows_the_campaign_and_what_is_running_and_is_given_back_in_the_end() {
    let place = place("free");
    let mut shown = shown(&place, &["--tui"]);
    shown.until("the numbers", |text| {
        text.contains("waylay.toml")
            && text.contains("scenario mixed (free)")
            && text.contains("iterations (")
    });
    shown.until("the tests and the failure", |text| {
        text.contains("probe") && text.contains("nothing") && text.contains("1 different failure")
    });
    assert!(shown.fills_the_screen(), "{}", shown.text());

    shown.press(b"w");
    shown.until("a stack", |text| {
        text.contains("wait_for_nobody")
            && text.contains("probe#0  in iteration 0")
            && text.contains("the same stack as probe#0")
    });
    shown.press(b"f");
    shown.until("the failure in full", |text| text.contains("━━ assert in test assert ━━"));
    shown.press(b"\x1b");
    shown.until("the overview again", |text| text.contains("q end in order   w what is running now"));

    // `probe` never comes back; in the end that is a hang, and the second wish ends it at once.
    shown.press(b"q");
    shown.until("the wish is seen", |text| text.contains("ending"));
    shown.press(b"\x03");
    assert_eq!(shown.finish().code(), Some(130));
}

#[test]
fn ctrl_c_ends_the_screen_in_order_and_the_summary_follows() {
    let place = Workplace::with(
        "[[scenario]]\nname = \"quick\"\nduration = \"280s\"\n[[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"nothing\"\n",
    );
    for end in ["key", "signal"] {
        let mut shown = shown(&place, &["--tui"]);
        shown.until("iterations", |text| text.contains("nothing") && text.contains("iterations ("));
        match end {
            "key" => shown.press(b"\x03"),
            _ => shown.signal(libc::SIGTERM),
        }
        assert_eq!(shown.finish().code(), Some(0), "{}", shown.text());
        shown.until("the summary", |text| text.contains("clean: ") && text.contains("scenario quick (free"));
    }
}

#[test]
fn signals_that_end_it_at_once_give_the_terminal_back() {
    let place = place("free");
    let mut shown = shown(&place, &["--tui"]);
    shown.until("the screen", |text| text.contains("scenario mixed"));
    shown.signal(libc::SIGTERM);
    shown.until("the first is noted", |text| text.contains("ending"));
    // In no time two are one.
    std::thread::sleep(Duration::from_millis(700));
    shown.signal(libc::SIGTERM);
    assert_eq!(shown.finish().code(), Some(130));
}

#[test]
fn without_a_terminal_there_are_lines() {
    let place = Workplace::with(
        "[[scenario]]\nname = \"quick\"\nduration = \"280s\"\n[[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"nothing\"\niterations = 10\n",
    );
    let ran = place.waylay(&["run", "waylay.toml", "--tui"]);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("lines instead of the whole screen: standard error is no terminal"));
    assert!(ran.stderr.contains("clean: ") && !ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
}

/// In lines Ctrl-\ is the key. The randomizer holds threads while it is asked, and lets go of them first.
#[test]
fn lines_say_what_is_running_and_the_randomizer_goes_on_afterwards() {
    let place = place("randomized");
    let mut shown = shown(&place, &[]);
    shown.until_said("suspensions", |text| text.contains(" suspensions/s"));
    for time in 1..=3 {
        shown.press(b"\x1c");
        shown.until_said("an answer", |text| text.matches("running now").count() >= time);
    }
    shown.until_said("a stack", |text| text.contains("wait_for_nobody"));
    assert!(!shown.said().contains("no stacks"), "{}", shown.said());
    // The next words count suspensions since the last ones. The line that they stand in is drawn more often than they change.
    let words = |text: &str| -> Vec<String> {
        let drawn = text.split(['\r', '\n']).filter(|line| line.contains(" suspensions/s"));
        let mut words: Vec<String> = drawn
            .filter_map(|line| line.split_once("mixed: "))
            .map(|(_, words)| words.trim_end().to_owned())
            .collect();
        words.dedup();
        words
    };
    let before = words(&shown.said()).len();
    shown.until_said("it goes on", |text| words(text).len() > before + 1);
    let last = words(&shown.said()).pop().expect("a line");
    assert!(!last.contains(" 0 suspensions/s"), "{last}");
    shown.press_until_over(b"\x03");
    assert_eq!(shown.finish().code(), Some(130));
}

#[test]
fn a_signal_asks_too_and_quiet_campaigns_answer() {
    let place = place("free");
    let running = place.start(&["run", "waylay.toml", "--quiet"]);
    running.until("a host", |running| !running.hosts().is_empty());
    let asked = Instant::now();
    while !running.stderr().contains("wait_for_nobody") {
        assert!(asked.elapsed() < PATIENCE, "no answer:\n{}", running.stderr());
        running.signal(libc::SIGUSR1);
        std::thread::sleep(Duration::from_millis(200));
    }
    let text = running.stderr();
    assert!(text.contains("━━ running now ━━ scenario mixed"), "{text}");
    assert!(text.contains("nothing#0") && text.contains("waits for input"), "{text}");
}

/// Whatever is coloured on a terminal is plain when the user says so, or when nobody looks.
#[test]
fn colours_are_for_terminals_whose_users_want_them() {
    let place = Workplace::with("[[scenarioo]]\nname = 1\n");
    let mut coloured = place.command(&["check", "waylay.toml"]);
    coloured.env_remove("NO_COLOR");
    for (command, expected) in [(coloured, true), (place.command(&["check", "waylay.toml"]), false)] {
        let mut shown = OnTerminal::start(command);
        assert_eq!(shown.finish().code(), Some(2));
        shown.until("the problem", |text| text.contains("did you mean"));
        assert_eq!(shown.is_coloured(), expected, "{}", shown.text());
    }
    assert!(!place.waylay(&["check", "waylay.toml"]).stderr.contains('\u{1b}'));
}
