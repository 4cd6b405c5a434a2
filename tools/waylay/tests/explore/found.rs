//! Bugs in released libraries, found again from the programs that docs/found.md names.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Workplace;
use crate::support::small::{explore, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests-plugins/found")
}

/// A line of a program's head.
fn head<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    source.lines().find_map(|line| line.strip_prefix("//! ")?.strip_prefix(name)?.strip_prefix(": "))
}

/// Builds a program; nothing, with a sentence, where the library cannot be had.
fn built(name: &str) -> Option<String> {
    let mut build = Command::new("bash");
    build.arg(folder().join("build.sh")).arg(name).env("WAYLAY", env!("CARGO_BIN_EXE_waylay"));
    let output = build.output().expect("bash runs");
    if output.status.success() {
        return Some(String::from_utf8(output.stdout).expect("a path").trim_end().to_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(
        std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_none(),
        "{name} cannot be built, and this machine has to: {why}"
    );
    println!(
        "{name} was left out: its library cannot be had here: {}",
        why.lines().next().unwrap_or_default()
    );
    None
}

/// Those that fail in the newest version; what was found in old ones is checked by `tests-plugins/found/check.sh`.
#[test]
fn bugs_of_released_libraries_are_found_within_their_schedules() {
    let sources = std::fs::read_dir(folder()).expect("the programs are there");
    let mut names: Vec<_> = sources
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    names.sort();
    let mut looked_at = 0;
    for path in names {
        let source = std::fs::read_to_string(&path).expect("a source file");
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a plain name").to_owned();
        assert!(source.lines().count() <= 60, "{name} is longer than 60 lines");
        let (kinds, within) =
            head(&source, "finds").and_then(|line| line.split_once(" within ")).expect("finds");
        looked_at += 1;
        if head(&source, "fixed").is_some() {
            continue;
        }
        let Some(program) = built(&name) else { continue };
        let place = Workplace::new();
        let mut options = vec!["--runs", within, "--seed", "1", "--stop-on-first", "--minimize", "off"];
        options.extend(head(&source, "asks").map(|_| "--races"));
        let summary = json(&explore(&place, &options, &program));
        let found = &summary["found"][0];
        assert!(kinds.split(" or ").any(|kind| found["kind"] == kind), "{name}: {summary:#}");
        assert_eq!(found["confirmed"], true, "{name}: {summary:#}");
    }
    assert!(looked_at >= 26, "only {looked_at} programs are there");
}
