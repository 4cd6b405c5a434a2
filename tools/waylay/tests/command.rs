//! The command itself: exit codes, machine-readable answers, and what people see.

mod support;

use std::process::Stdio;

use support::{DEBUGGER, DOCTOR_CHECKS, DOCTOR_WORDS, Workplace, is_alive, kill, list, number, text};

const HEALTHY: &str = "[[scenario]]\nname = \"healthy\"\nduration = \"280s\"\n\
                       [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"nothing\"\niterations = 1000\n";
const FAILING: &str = "[[scenario]]\nname = \"failing\"\nduration = \"280s\"\n\
                       [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"assert\"\nmax-failures = 1\nworkers = 1\n";

#[test]
fn exit_codes_say_how_it_went() {
    let clean = Workplace::with(HEALTHY);
    let ran = clean.run(0, &[]);
    assert!(ran.stderr.contains("clean:"), "{}", ran.stderr);
    assert_eq!(number(&ran.json()["exit_code"]), 0);

    let failing = Workplace::with(FAILING);
    let ran = failing.run(1, &[]);
    assert!(ran.stderr.contains("FAILED: 1 failure"), "{}", ran.stderr);
    assert_eq!(number(&ran.json()["exit_code"]), 1);

    for usage in [
        &["run", "no-such-file.toml"][..],
        &["run", "waylay.toml", "--no-such-option"],
        &["run", "waylay.toml", "--duration", "soon"],
        &["run", "waylay.toml", "--test", "no-such-test"],
        &["no-such-command"],
        &["list", "no_such_plugin"],
        &["replay", "no-such-folder"],
        &["doctor", "./no-such-plugin.so"],
    ] {
        let ran = clean.waylay(usage);
        assert_eq!(ran.code(), Some(2), "{usage:?}: {}", ran.stderr);
    }
}

// Names folders of Linux; `windows/refusals.rs` has its twin.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_our_own_failure_and_names_the_path() {
    let place = Workplace::with(HEALTHY);
    place.write("a-file", "");
    for out in ["/proc/nowhere", "a-file/below", "/dev/full/below"] {
        let ran = place.waylay(&["run", "waylay.toml", "--out", out]);
        assert_eq!(ran.code(), Some(3), "{out}: {}", ran.stderr);
        assert!(ran.stderr.contains(out) && !ran.stderr.contains("panicked"), "{out}: {}", ran.stderr);
    }
}

#[test]
fn every_command_answers_with_one_object() {
    let place = Workplace::with(FAILING);
    let ran = place.run(1, &["--quiet"]);
    let failure = text(&ran.json()["failures"][0]["folder"]).to_owned();
    let object = |arguments: &[&str], code: i32| {
        let ran = place.waylay(&[arguments, &["--json"]].concat());
        assert_eq!(ran.code(), Some(code), "{arguments:?}: {}", ran.stderr);
        let json = ran.json();
        assert!(json.is_object(), "{arguments:?}: {json}");
        json
    };
    assert_eq!(object(&["check", "waylay.toml"], 0)["ok"], true);
    assert!(object(&["list"], 0)["plugins"].as_object().is_some_and(|plugins| plugins.len() >= 4));
    assert!(object(&["list", "waylay_faults_c"], 0)["plugins"].is_object());
    assert!(object(&["list", "waylay.toml"], 0)["plugins"].is_object());
    assert!(list(&object(&["doctor"], 0)["checks"]).len() >= DOCTOR_CHECKS);
    assert_eq!(object(&["doctor", "waylay_faults"], 0)["checks"][0]["health"], "good");
    assert_eq!(object(&["replay", &failure, "--duration", "280s"], 1)["reproduced"], 1);
    let bound = object(&["bound", "pct", "-n", "4", "-k", "100", "-d", "2"], 0);
    assert!((bound["per_run"].as_f64().expect("a number") - 1.0 / 400.0).abs() < 1e-12, "{bound}");
    let times = ["--min-test", "40us", "--max-period", "3ms", "--max-suspend", "1ms"];
    let randomizer = |threads: &str, more: &[&str], code: i32| {
        object(&[&["bound", "randomizer", "--threads", threads], &times[..], more].concat(), code)
    };
    let bound = randomizer("4", &["--iterations", "1000"], 0);
    // 1/(2·4) of 40 us in 4 ms, and 1 - (1 - p)^1000.
    assert!((bound["per_run"].as_f64().expect("a number") - 0.00125).abs() < 1e-15, "{bound}");
    assert!((bound["after_iterations"].as_f64().expect("a number") - 0.713_77).abs() < 1e-4, "{bound}");
    assert_eq!(
        (number(&bound["iterations_needed"]), list(&bound["assumptions"]).len()),
        (2396, 6),
        "{bound}"
    );
    assert!(text(&randomizer("1", &[], 2)["error"]).contains("at least 2"));
    assert!(text(&randomizer("2", &["--confidence", "1"], 2)["error"]).contains("between 0 and 1"));
    assert!(text(&object(&["config", "default"], 0)["config"]).contains("[[scenario]]"));
    assert!(text(&object(&["config", "show", "waylay.toml"], 0)["config"]).contains("max-failures = 1"));
    let made = object(&["new", "bank", "--lang", "c"], 0);
    assert!(list(&made["files"]).len() > 2 && place.path().join("bank").is_dir(), "{made}");
    assert!(text(&object(&["run", "no-such-file.toml"], 2)["error"]).contains("no-such-file.toml"));
    assert!(text(&object(&["chek", "--quiet"], 2)["error"]).contains("did you mean `check`?"));
    // Also when the arguments themselves are not understood.
    for wrong in
        [&["no-such-command"][..], &["run", "--no-such-option"], &["new"], &["run", "--duration", "soon"]]
    {
        let answer = object(wrong, 2);
        assert!(!text(&answer["error"]).is_empty() && number(&answer["exit_code"]) == 2, "{answer}");
    }
}

#[test]
fn what_is_printed_for_people_says_what_there_is() {
    let place = Workplace::with(HEALTHY);
    let listed = place.waylay(&["list"]);
    for words in ["deadlock", "channel", "two threads wait for each other", "after = { uniform"] {
        assert!(listed.stdout.contains(words), "{words}:\n{}", listed.stdout);
    }
    let checked = place.waylay(&["check", "waylay.toml"]);
    assert!(
        checked.stdout.contains("1 scenario") && checked.stdout.contains("nothing wrong"),
        "{}",
        checked.stdout
    );
    let doctor = place.waylay(&["doctor"]);
    for words in DOCTOR_WORDS {
        assert!(doctor.stdout.contains(words), "{words}:\n{}", doctor.stdout);
    }
    let shown = place.waylay(&["config", "show", "waylay.toml"]).stdout;
    assert!(shown.contains("# waylay.toml:") && shown.contains("# default"), "{shown}");
    place.write("again.toml", &shown);
    let again = place.waylay(&["config", "show", "again.toml"]).stdout;
    let values = |text: &str| {
        let values = text.lines().map(|line| line.split("  # ").next().unwrap_or_default().trim_end());
        values.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(values(&again), values(&shown), "it reads back as it is");
}

#[test]
fn the_version_names_the_build_and_every_format() {
    let place = Workplace::new();
    let said = place.waylay(&["--version"]);
    assert_eq!(said.code(), Some(0), "{}", said.stderr);
    for word in
        ["waylay 0.", "commit", "build", "plugin ABI", "schedule", "strict.json", "failure.json", "history"]
    {
        assert!(said.stdout.contains(word), "{word}:\n{}", said.stdout);
    }
    assert_eq!(place.waylay(&["-V"]).stdout.lines().count(), 1, "the short one is a line");
}

// `tools/windows/test.sh` runs the whole of the default mix.
#[cfg(target_os = "linux")]
#[test]
fn without_arguments_the_default_mix_runs_and_finds_its_bugs() {
    let place = Workplace::new();
    let ran = place.waylay(&["--duration", "8s", "--json"]);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    let json = ran.json();
    let names: Vec<&str> =
        list(&json["campaign"]["scenarios"]).iter().map(|scenario| text(&scenario["name"])).collect();
    // On a busy machine the first ones may take all of the time; what did not run is then told.
    let all = ["libraries", "seeded-bugs", "late-threads", "schedules", "melting-pot", "two-tests"];
    assert!(names.len() >= 2 && all.starts_with(&names), "{json:#}");
    for missing in &all[names.len()..] {
        assert!(ran.stderr.contains(&format!("did not run: scenario {missing}: ")), "{}", ran.stderr);
    }
    assert!(!list(&json["failures"]).is_empty());
    let test =
        |name: &str| list(&json["campaign"]["scenarios"][0]["tests"]).iter().any(|test| test["name"] == name);
    assert!(test("channel"), "{json:#}");
}

/// The one iteration of the first scenario takes longer than the whole campaign may.
// Compiles what it runs.
#[cfg(target_os = "linux")]
#[test]
fn a_scenario_for_which_no_time_is_left_is_told_and_not_clean() {
    let place = Workplace::new();
    place.compile(
        "lasting",
        "static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker; sleep(9); return WAYLAY_DONE; }",
    );
    let scenario = |name: &str| {
        format!(
            "[[scenario]]\nname = \"{name}\"\n[[scenario.test]]\nplugin = \"lasting\"\nhang-timeout = \"280s\"\n"
        )
    };
    place
        .write("waylay.toml", &("duration = \"8s\"\n".to_owned() + &scenario("first") + &scenario("second")));
    let ran = place.run(2, &[]);
    assert!(
        ran.stderr.contains("did not run: scenario second: the campaign's time was over"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("INCOMPLETE"), "{}", ran.stderr);
}

/// Plugins beside the configuration, with a relative path: run, and replayed from another folder.
// Compiles what it runs.
#[cfg(target_os = "linux")]
#[test]
fn relative_plugins_are_found_from_the_config_and_by_a_replay() {
    let place = Workplace::new();
    place.compile(
        "mine",
        "static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker; usleep(100); return WAYLAY_FAILED; }",
    );
    for plugin in ["libmine.so", "./libmine.so", "mine"] {
        place.write(
            "waylay.toml",
            &format!("[[scenario]]\nname = \"s\"\nduration = \"280s\"\n[[scenario.test]]\nplugin = \"{plugin}\"\nworkers = 1\niterations = 3\nmax-failures = 0\n"),
        );
        let ran = place.run(1, &[]);
        let failure = ran.failure("mine", "probe");
        assert_eq!(
            failure.count(),
            3,
            "{plugin}: an iteration that returns FAILED without a word has failed"
        );
        assert!(failure.what().contains("without a message"), "{}", failure.what());
        let elsewhere = Workplace::new();
        let replayed = elsewhere.waylay(&[
            "replay",
            &failure.folder.display().to_string(),
            "--duration",
            "280s",
            "--json",
        ]);
        assert_eq!(replayed.code(), Some(1), "{plugin}: {}", replayed.stderr);
        assert!(number(&replayed.json()["reproduced"]) > 0);
    }
}

#[test]
fn a_hung_process_is_kept_for_a_debugger() {
    let place = Workplace::with(
        "[defaults]\nhang-timeout = \"300ms\"\nmax-failures = 1\n[[scenario]]\nname = \"hang\"\nduration = \"280s\"\n\
         [[scenario.test]]\nplugin = \"waylay_faults_c\"\nname = \"deadlock\"\n",
    );
    let ran = place.run(1, &["--keep-hung"]);
    let json = ran.json();
    let kept: Vec<i32> = list(&json["kept_hosts"]).iter().map(|pid| number(pid) as i32).collect();
    assert_eq!(kept.len(), 1, "{json:#}");
    // Longer than the host's own looks at its parent.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let alive = is_alive(kept[0]);
    kill(kept[0]);
    assert!(alive, "the kept process is gone:\n{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("{DEBUGGER} -p {}", kept[0])), "{}", ran.stderr);
    assert_eq!(number(&ran.failures()[0].json["occurrences"][0]["pid"]) as i32, kept[0]);
}

/// A reader that goes away, as `head` does, does not break a campaign.
#[test]
fn a_closed_terminal_is_no_reason_to_fail() {
    let place = Workplace::with(FAILING);
    for json in [false, true] {
        let mut command = place.command(&["run", "waylay.toml"]);
        if json {
            command.arg("--json");
        }
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let status = command
            .stdout(Stdio::from(writer.try_clone().expect("a pipe")))
            .stderr(Stdio::from(writer))
            .status()
            .expect("it starts");
        assert_eq!(status.code(), Some(1), "{status}");
    }
    for campaign in place.campaigns("waylay-out") {
        let record = std::fs::read_to_string(campaign.join("campaign.json")).expect("a record");
        assert!(record.contains("\"finished\""), "{record}");
    }
}

// Makes a terminal.
#[cfg(target_os = "linux")]
#[test]
fn progress_is_a_line_that_is_written_over_on_a_terminal_and_lines_without_one() {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{FromRawFd, OwnedFd};

    let place = Workplace::with(&HEALTHY.replace("280s", "8s").replace("iterations = 1000\n", ""));
    let without = place.start(&["run", "waylay.toml"]);
    let (mut master, mut slave) = (0, 0);
    let nothing = std::ptr::null_mut();
    // SAFETY: two places for the answer; the rest may be null.
    let made = unsafe { libc::openpty(&mut master, &mut slave, nothing, nothing.cast(), nothing.cast()) };
    assert_eq!(made, 0, "a terminal");
    // SAFETY: both descriptors were just made and have no other owner.
    let (mut master, slave) = unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    let mut child = place.command(&["run", "waylay.toml"]).stderr(slave).spawn().expect("it starts");
    let mut shown = Vec::new();
    // A terminal that nobody writes to any more ends in an error.
    let _ = master.read_to_end(&mut shown);
    assert_eq!(child.wait().expect("our child").code(), Some(0));
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("waylay: running [") && shown.contains("healthy: "), "{shown}");
    let shown = without.finish().stderr;
    let line = shown.lines().find(|line| line.starts_with("[00:0")).unwrap_or_else(|| panic!("{shown}"));
    assert!(line.contains("healthy: ") && line.contains("/s), 0 failures"), "{line}");
}

/// The numbers of an iteration are those of its draws and of its seed, from which threads that it starts draw.
// Compiles what it runs.
#[cfg(target_os = "linux")]
#[test]
fn a_replay_repeats_the_seed_of_the_iteration_that_failed() {
    let place = Workplace::new();
    place.compile(
        "unlucky",
        "static int32_t iterate(probe *self, waylay_context *worker) {\n\
           usleep(100);\n\
           if (self->services->seed(worker) % 16 != 3) return WAYLAY_OK;\n\
           waylay_fail(self->services, worker, \"unlucky\");\n\
           return WAYLAY_FAILED;\n\
         }",
    );
    place.write(
        "waylay.toml",
        "seed = 5\n[[scenario]]\nname = \"s\"\nduration = \"280s\"\n\
         [[scenario.test]]\nplugin = \"unlucky\"\nworkers = 1\nmax-failures = 1\n",
    );
    let failure = place.run(1, &[]).failure("unlucky", "probe");
    let folder = failure.folder.display().to_string();
    let replayed = place.waylay(&["replay", &folder, "--times", "5", "--duration", "280s", "--json"]);
    assert_eq!(replayed.code(), Some(1), "{}", replayed.stderr);
    let json = replayed.json();
    assert_eq!((number(&json["reproduced"]), number(&json["iterations"])), (5, 5), "{}", replayed.stderr);
    // The next who reads of it knows how often it came back, in all replays together.
    place.waylay(&["replay", &folder, "--times", "2", "--duration", "280s"]);
    let shown = place.waylay(&["show", &folder]).stdout;
    assert!(shown.contains("   again     came back 7 of 7 times\n"), "{shown}");
    // What the replay found can be replayed in turn.
    let again = std::path::PathBuf::from(text(&json["folder"])).join("failures").join(failure.signature());
    for occurrence in list(&support::Failure::read(&again).json["occurrences"]) {
        for what in ["iteration", "seed"] {
            assert_eq!(occurrence[what], failure.json["occurrences"][0][what], "{what}");
        }
    }
}

// Holds another process by ptrace; `windows/commands.rs` has its twin.
#[cfg(target_os = "linux")]
#[test]
fn doctor_says_whether_a_process_can_be_suspended_and_who_is_in_the_way() {
    let place = Workplace::new();
    let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("sleep starts");
    let pid = child.id().to_string();
    let free = place.waylay(&["doctor", "--pid", &pid]);
    // SAFETY: the request takes no memory.
    let traced = unsafe { libc::ptrace(libc::PTRACE_SEIZE, child.id() as i32, 0_usize, 0_usize) };
    let held = place.waylay(&["doctor", "--pid", &pid]);
    let own = place.waylay(&["doctor", "--pid", &std::process::id().to_string()]);
    let nobody = place.waylay(&["doctor", "--pid", "1073741822"]);
    child.kill().expect("our child");
    child.wait().expect("our child");
    assert_eq!((free.code(), traced), (Some(0), 0), "{}", free.stdout);
    assert!(free.stdout.contains("can be traced") && free.stdout.contains("ptrace scope"), "{}", free.stdout);
    assert_eq!((held.code(), own.code(), nobody.code()), (Some(2), Some(2), Some(2)));
    let us = format!("(process {})", std::process::id());
    assert!(held.stdout.contains("is traced by") && held.stdout.contains(&us), "{}", held.stdout);
    assert!(own.stdout.contains("is an ancestor"), "{}", own.stdout);
    assert!(nobody.stdout.contains("there is no process"), "{}", nobody.stdout);
}

/// What happens is told while it happens, and every line is an object of its own.
#[test]
fn a_campaign_tells_in_lines_what_happens() {
    let place = Workplace::with(FAILING);
    let ran = place.waylay(&["run", "waylay.toml", "--json-lines"]);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    let lines: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let event = |name: &str| lines.iter().filter(|line| line["event"] == name).collect::<Vec<_>>();
    assert_eq!(text(&lines[0]["event"]), "began", "{}", ran.stdout);
    assert!(!event("progress").is_empty(), "{}", ran.stdout);
    let failure = event("failure")[0];
    assert!(std::path::Path::new(text(&failure["folder"])).join("failure.json").is_file(), "{failure:#}");
    assert!(text(&failure["replay"]).starts_with("waylay replay "), "{failure:#}");
    let last = lines.last().expect("a last line");
    assert_eq!((text(&last["event"]), number(&last["exit_code"])), ("over", 1));
    assert_eq!(last["failures"][0]["signature"]["id"], failure["signature"]);

    // A reader that leaves is no reason to fail: the lines go nowhere.
    let mut command = place.command(&["run", "waylay.toml", "--json-lines", "--quiet"]);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(place.waylay(&["run", "waylay.toml", "--json-lines", "--json"]).code(), Some(2));
}
