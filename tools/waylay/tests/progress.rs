//! What takes long shows how far it is on a terminal, in one line that is gone in the end, and leaves no trace in a pipe.

#![cfg(target_os = "linux")]

mod support;

use support::Workplace;
use support::small::{build, counter};
use support::terminal::OnTerminal;

const COMPARISON: &str = "title = 'small'\nworkers = 1\ntrials = 1\nruns = 50\nstrategies = ['pct:depth=2']\n\
    [[test]]\nplugin = 'waylay_zoo_c'\nname = 'order'\ndepth = 1\n";
const MIX: &str = "[[scenario]]\nname = \"failing\"\nduration = \"280s\"\n\
    [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"assert\"\nmax-failures = 1\nworkers = 1\n";

/// The commands in an order in which each finds what the ones before it left, and what is being done in each.
fn commands(program: &str) -> Vec<(Vec<&str>, &'static str)> {
    vec![
        (vec!["explore", "--seed", "7", "--runs", "200", "--", program], "exploring"),
        (vec!["replay", "1", "--times", "3"], "replaying"),
        (vec!["minimize", "1"], "minimizing"),
        (vec!["compare", "c.toml", "--out", "compared"], "comparing"),
        (vec!["merge", "part", "-o", "night"], "merging"),
        (vec!["run", "waylay.toml", "--out", "ran"], "running"),
        (vec!["replay", "1", "--out", "ran"], "running it again"),
        (vec!["verify", "1", "--out", "ran"], "verifying"),
        (
            vec!["fleet", "run", "waylay.toml", "--on", "local", "--shards", "2", "--out", "fleet"],
            "running shards",
        ),
    ]
}

fn place() -> (Workplace, String) {
    let place = Workplace::with(MIX);
    let program = build(&place, &counter("assert(n == 2);"), &[]);
    place.write("c.toml", COMPARISON);
    let part = place.waylay(&["run", "waylay.toml", "--quiet", "--out", "part", "--shard", "1/1"]);
    assert_eq!(part.code(), Some(1), "{}", part.stderr);
    (place, program)
}

#[test]
fn on_a_terminal_everything_long_has_a_line_that_is_gone_in_the_end() {
    let (place, program) = place();
    for (arguments, what) in commands(&program) {
        for colour in [true, false] {
            let mut command = place.command(&arguments);
            match colour {
                true => command.env_remove("NO_COLOR"),
                false => command.env("NO_COLOR", "1"),
            };
            // A folder has one night.
            let _ = std::fs::remove_dir_all(place.path().join("fleet"));
            let mut shown = OnTerminal::start(command);
            shown.finish();
            shown.until_said(what, |said| said.contains(&format!("\rwaylay: {what} ")));
            let left = |text: &str| text.lines().any(|line| line.starts_with(&format!("waylay: {what} ")));
            // `explore` begins with a line that stays.
            if what != "exploring" {
                shown.until("the line is taken away", |text| !left(text));
            }
            assert!(!shown.text().contains("[━"), "{}", shown.text());
            assert!(colour || !shown.said().contains("\u{1b}["), "{arguments:?}: {:?}", shown.said());
        }
    }
}

#[test]
fn in_a_pipe_nothing_is_written_over() {
    let (place, program) = place();
    for (arguments, what) in commands(&program) {
        let ran = place.waylay(&arguments);
        assert!(matches!(ran.code(), Some(0 | 1)), "{arguments:?}: {}", ran.stderr);
        let written = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!written.contains(['\r', '\u{1b}']), "{arguments:?}: {written:?}");
        let bar = format!("waylay: {what} ");
        assert!(what == "exploring" || !written.contains(&bar), "{arguments:?}: {written}");
    }
}

#[test]
fn a_terminal_that_only_has_lines_gets_lines() {
    let (place, program) = place();
    let (arguments, _) = commands(&program).swap_remove(0);
    // The helper says what kind of terminal it is; a shell in between says otherwise.
    let script = "export TERM=dumb; exec \"$0\" \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).arg(env!("CARGO_BIN_EXE_waylay")).args(arguments).current_dir(place.path());
    let mut shown = OnTerminal::start(command);
    shown.finish();
    shown.until_said("the summary", |said| said.contains("assert"));
    assert!(!shown.said().replace("\r\n", "\n").contains('\r'), "{:?}", shown.said());
}
