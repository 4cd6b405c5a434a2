//! What a campaign left behind, made into reports by the real command.

mod support;

use std::time::{Duration, Instant};

use support::{PATIENCE, Workplace, list, number, text};

const MIX: &str = "[[scenario]]\nname = \"failing\"\nduration = \"280s\"\n\
                   [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"assert\"\nmax-failures = 1\nworkers = 1\n\
                   [[scenario]]\nname = \"schedules\"\nmode = \"strict\"\nduration = \"280s\"\nruns = 200\n\
                   [[scenario.test]]\nplugin = \"waylay_schedules_c\"\nname = \"deadlock\"\nmax-failures = 1\n";

#[test]
fn every_kind_of_report_is_made_from_what_was_kept() {
    let place = Workplace::with(MIX);
    place.run(1, &["--quiet"]);
    let files = [
        "--html",
        "r.html",
        "--junit",
        "r.xml",
        "--sarif",
        "r.sarif",
        "--markdown",
        "r.md",
        "--json",
        "r.json",
    ];
    let ran = place.waylay(&[&["report"], &files[..]].concat());
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).expect(name);
    assert!(read("r.html").contains("data:image/svg+xml;base64,"), "the deadlock has a timeline");
    assert!(read("r.xml").contains("type=\"deadlock\"") && read("r.xml").contains("type=\"assert\""));
    let sarif: serde_json::Value = serde_json::from_str(&read("r.sarif")).expect("JSON");
    let results = list(&sarif["runs"][0]["results"]);
    assert_eq!(results.len(), 2);
    assert!(
        results.iter().all(|one| number(&one["locations"][0]["physicalLocation"]["region"]["startLine"]) > 0)
    );
    assert!(read("r.md").contains("failed"));
    let night: serde_json::Value = serde_json::from_str(&read("r.json")).expect("JSON");
    assert_eq!(list(&night["failures"]).len(), 2);
    assert!(!list(&night["campaign"]["series"]).is_empty());
    assert_eq!(place.waylay(&["report", "--json"]).json()["failures"], night["failures"]);
    shows_the_page(&place);
    // What somebody suppressed, and only until the last day of that, is marked and makes nothing red.
    let suppress = |until: &str| {
        let rule = |kind: &str| {
            format!("[[suppression]]\nreason = 'ticket 7'\nuntil = '{until}'\nkind = '{kind}'\n")
        };
        let all = format!("[[mix]]\nname = 'a'\nconfig = 'a.toml'\n{}{}", rule("assert"), rule("deadlock"));
        place.write("night.toml", &all);
        place.waylay(&["report", "--suppressions", "night.toml"]).stdout
    };
    let told = suppress("2999-12-31");
    assert!(told.contains(": CLEAN: no failure in ") && told.contains("; 2 suppressed"), "{told}");
    assert_eq!(told.matches("\nsuppressed ").count(), 2, "{told}");
    place.waylay(&["report", "--suppressions", "night.toml", "--junit", "quiet.xml"]);
    assert!(read("quiet.xml").contains("<skipped message=\"suppressed: ticket 7, until 2999-12-31\"/>"));
    assert!(suppress("2026-01-01").contains(": FAILED: 2 different failures"));
    // A second campaign without the strict scenario: the assert went on, of the deadlock nothing is known.
    place.run(1, &["--quiet", "--scenario", "failing"]);
    let ran = place.waylay(&["failures", "--json"]);
    let states: Vec<String> =
        list(&ran.json()["failures"]).iter().map(|failure| text(&failure["state"]).to_owned()).collect();
    assert_eq!(states, ["ongoing"]);
    for usage in [
        &["report", "no-such-campaign"][..],
        &["show", "nothing"],
        &["export", "nothing"],
        &["verify", "nothing"],
    ] {
        assert_eq!(place.waylay(usage).code(), Some(2), "{usage:?}");
    }
}

#[test]
fn a_failure_is_shown_packed_traced_and_verified() {
    let place = Workplace::with(MIX);
    place.run(1, &["--quiet", "--scenario", "schedules"]);
    let shown = place.waylay(&["show", "deadlock", "--trace", "trace.json", "--json"]);
    assert_eq!(shown.code(), Some(0), "{}", shown.stderr);
    let failure = shown.json();
    assert_eq!(failure["schedule"]["confirmed"], true);
    let trace = std::fs::read_to_string(place.path().join("trace.json")).expect("a trace");
    let trace: serde_json::Value = serde_json::from_str(&trace).expect("JSON");
    let events = list(&trace["traceEvents"]);
    let has = |phase: &str, category: &str| events.iter().any(|e| e["ph"] == phase && e["cat"] == category);
    assert!(has("X", "running") && has("X", "blocked"), "who ran and who waited: {trace}");
    assert!(has("b", "lock") && has("i", "failure"), "locks and the failing moment: {trace}");
    let picture = std::path::Path::new(text(&failure["folder"])).join("timeline.svg");
    let picture = std::fs::read_to_string(place.path().join(picture)).expect("a picture");
    assert!(picture.contains("lock B held") && picture.contains("waits: mutex-lock"), "{picture}");

    let packed = place.waylay(&["export", "deadlock", "--to", "bundle.zip"]);
    assert_eq!(packed.code(), Some(0), "{}", packed.stderr);
    assert_eq!(
        place.waylay(&["export", "deadlock", "--to", "bundle.zip"]).code(),
        Some(2),
        "it is there already"
    );
    let zip = std::fs::read(place.path().join("bundle.zip")).expect("a zip");
    assert!(zip.starts_with(b"PK"));

    let planned = place.waylay(&["verify", "deadlock", "--dry-run", "--json"]);
    assert_eq!(planned.code(), Some(0), "{}", planned.stderr);
    assert!(number(&planned.json()["needed"]) > 0);
    let back = place.waylay(&["verify", "deadlock", "--json", "--duration", "280s"]);
    assert_eq!(back.code(), Some(1), "nothing was fixed: {}", back.stderr);
    assert_eq!(back.json()["reproduced"], true);
    assert_eq!(place.waylay(&["failures", "--json"]).json()["failures"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_campaign_whose_driver_was_killed_is_reported() {
    let place = Workplace::with(
        "[[scenario]]\nname = \"failing\"\nduration = \"280s\"\n\
         [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"assert\"\nmax-failures = 0\nworkers = 1\n",
    );
    let mut running = place.start(&["run", "waylay.toml", "--quiet"]);
    let until = Instant::now() + PATIENCE;
    let kept = || {
        let campaigns = std::fs::read_dir(place.path().join("waylay-out")).into_iter().flatten().flatten();
        let mut failures =
            campaigns.filter_map(|one| std::fs::read_dir(one.path().join("failures")).ok()).flatten();
        failures.any(|one| one.is_ok_and(|one| one.path().join("failure.json").is_file()))
    };
    while !kept() {
        assert!(Instant::now() < until, "no failure was kept");
        std::thread::sleep(Duration::from_millis(20));
    }
    running.child.kill().expect("it is there");
    running.child.wait().expect("it ends");
    let ran = place.waylay(&["report", "--json"]);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let night = ran.json();
    assert_eq!(night["campaign"]["state"], "interrupted");
    assert_eq!(list(&night["failures"]).len(), 1);
}

#[test]
fn the_command_line_describes_itself() {
    let place = Workplace::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let ran = place.waylay(&["completions", shell]);
        assert!(ran.code() == Some(0) && ran.stdout.contains("verify"), "{shell}: {}", ran.stderr);
    }
    let ran = place.waylay(&["man", "--into", "pages"]);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let page = std::fs::read_to_string(place.path().join("pages/waylay-report.1")).expect("a page");
    assert!(page.contains(".TH") && page.contains("\\-\\-junit"), "{page}");
    let schema = place.waylay(&["config", "schema"]).json();
    assert!(schema["properties"]["scenario"].is_object());
}

/// What opens pages here writes down what it was given, or is not there.
#[cfg(target_os = "linux")]
fn shows_the_page(place: &Workplace) {
    use std::os::unix::fs::PermissionsExt;

    let folder = place.path().join("browser");
    std::fs::create_dir_all(&folder).expect("a folder");
    let show = || {
        let mut command = place.command(&["report", "--open"]);
        command.env("PATH", &folder);
        place.start_command(command).finish()
    };
    let none = show();
    assert_eq!(none.code(), Some(2), "{none:#?}");
    assert!(none.stderr.contains("xdg-open is not installed; the page is /"), "{none:#?}");
    let fake = folder.join("xdg-open");
    let install = |script: &str| {
        std::fs::write(&fake, format!("#!/bin/sh\n{script}\n")).expect("a script");
        std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    };
    install("exit 3");
    let refused = show();
    assert_eq!(refused.code(), Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("xdg-open finds no browser (exit status: 3)"), "{refused:#?}");
    let seen = place.path().join("seen");
    install(&format!("echo \"$1\" > {}", seen.display()));
    let shown = show();
    assert_eq!(shown.code(), Some(0), "{shown:#?}");
    let page = std::fs::read_to_string(seen).expect("what was opened");
    assert!(page.trim().ends_with("/report.html"), "{page}");
    let page = std::fs::read_to_string(page.trim()).expect("the page");
    assert!(page.contains("data:image/svg+xml;base64,"), "the deadlock has a timeline");
}

#[cfg(not(target_os = "linux"))]
fn shows_the_page(_: &Workplace) {}
