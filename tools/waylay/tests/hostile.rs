//! Nothing that a test does hangs, kills or fools the driver: it writes over the memory that it shares with us, forges what
//! it reports, closes what is not its own, sends signals, leaves processes behind. The campaign goes on to its end, says
//! what happened, and a test beside it that has something to report is heard.

#![cfg(target_os = "linux")]

#[path = "hostile/cores.rs"]
mod cores;
#[path = "hostile/damaged.rs"]
mod damaged;
#[path = "hostile/disk.rs"]
mod disk;
#[path = "hostile/evidence.rs"]
mod evidence;
#[path = "hostile/explored.rs"]
mod explored;
#[path = "hostile/sly.rs"]
mod sly;
mod support;
#[path = "hostile/surroundings.rs"]
mod surroundings;
#[path = "hostile/temporary.rs"]
mod temporary;

use std::fs;

use serde_json::Value;
use support::{Ran, Workplace, list, number, text};

const SOURCE: &str = include_str!("hostile/hostile.c");
/// The same with more attacks.
const ATTACK_SOURCE: &str = concat!(include_str!("hostile/sly.c"), include_str!("hostile/hostile.c"));

/// Iterations of an attacker: the attack is made once, in its first process.
const ITERATIONS: u64 = 24;

/// An attack, and the kind of failure that is told of it; none when the driver need not even notice.
type Attack = (&'static str, Option<&'static str>);

const ATTACKS: [Attack; 35] = [
    ("page-zero", Some("corrupted")),
    ("page-ones", Some("corrupted")),
    ("page-random", Some("corrupted")),
    ("page-always", Some("corrupted")),
    ("page-punched", Some("corrupted")),
    ("page-truncated", None),
    ("heap-region-truncated", None),
    ("page-unmapped", Some("deadlock")),
    ("page-protected", Some("deadlock")),
    ("close-all", None),
    ("close-streams", None),
    ("event-out-of-range", Some("corrupted")),
    ("event-of-no-plugin", Some("corrupted")),
    ("event-garbage", Some("corrupted")),
    ("event-endless", Some("corrupted")),
    ("stderr-flood", None),
    ("daemon-in-group", None),
    ("daemon-in-session", None),
    ("many-children", None),
    ("stop-itself", Some("deadlock")),
    ("kill-itself", Some("crash")),
    ("terminate-parent", None),
    ("interrupt-parent", None),
    ("hang-up-parent", None),
    ("trace-itself", None),
    ("change-folder", None),
    ("tighten-limits", None),
    ("become-another", Some("exit")),
    ("leave-in-thread", Some("exit")),
    ("raise-terminate", Some("crash")),
    ("raise-every-signal", Some("crash")),
    ("block-and-wait", Some("deadlock")),
    ("ignore-everything", Some("crash")),
    ("overflow-stack", Some("crash")),
    ("take-memory", Some("crash")),
];

fn config(mode: &str, attacks: &[Attack]) -> String {
    let mut config =
        "[defaults]\nworkers = 1\nhang-timeout = \"1s\"\ncancel-timeout = \"1s\"\nleaks = false\n\
                      max-failures = 0\n"
            .to_owned();
    for (attack, _) in attacks {
        for part in [
            format!("[[scenario]]\nname = \"{attack}\"\nmode = \"{mode}\"\n"),
            format!(
                "[[scenario.test]]\nplugin = \"hostile\"\nname = \"neighbour\"\niterations = {ITERATIONS}\n"
            ),
            format!(
                "[[scenario.test]]\nplugin = \"hostile\"\nname = \"{attack}\"\niterations = {ITERATIONS}\n"
            ),
        ] {
            config.push_str(&part);
        }
    }
    config
}

fn run(place: &Workplace, mode: &str, attacks: &[Attack]) -> Ran {
    place.compile_whole("hostile", SOURCE);
    place.write("waylay.toml", &config(mode, attacks));
    let ran = place.run(1, &[]);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    ran
}

/// What a scenario's failures are, in which scenario they were seen first or again.
fn kinds_in(ran: &Ran, scenario: &str) -> Vec<String> {
    let seen = |failure: &support::Failure| {
        list(&failure.json["occurrences"]).iter().any(|seen| text(&seen["scenario"]) == scenario)
    };
    ran.failures().iter().filter(|failure| seen(failure)).map(|failure| failure.kind().to_owned()).collect()
}

fn tests_of(ran: &Ran, scenario: &str) -> Vec<Value> {
    let json = ran.json();
    let scenarios = list(&json["campaign"]["scenarios"]);
    let found = scenarios.iter().find(|found| text(&found["name"]) == scenario);
    list(&found.unwrap_or_else(|| panic!("{scenario} did not run: {}", ran.stderr))["tests"]).clone()
}

/// Every attack has a neighbour that fails once per process; nothing ends before all have had their turn.
#[test]
fn every_attack_is_survived_and_the_neighbour_is_heard() {
    let place = Workplace::new();
    let ran = run(&place, "free", &ATTACKS);
    for (attack, kind) in ATTACKS {
        let tests = tests_of(&ran, attack);
        let neighbour = number(&tests[0]["failures"]);
        assert!(neighbour >= 1, "{attack}: the neighbour was not heard\n{}", ran.stderr);
        for test in &tests {
            let iterations = number(&test["iterations"]);
            assert!(iterations <= ITERATIONS, "{attack}: {iterations} iterations of {ITERATIONS}");
        }
        let told = kinds_in(&ran, attack);
        // A process that stands still as a whole is called by whichever of its threads is looked at first.
        let hang = ["deadlock", "livelock", "slow"];
        let expected = |word: &str| {
            told.iter().any(|told| told == word || hang.contains(&word) && hang.contains(&told.as_str()))
        };
        assert!(kind.is_none_or(expected), "{attack}: {told:?} instead of {kind:?}\n{}", ran.stderr);
    }
    let problems = list(&ran.json()["campaign"]["problems"]).clone();
    for signal in ["SIGTERM", "SIGINT", "SIGHUP"] {
        let said = format!("a test sent {signal} to Waylay itself, which goes on");
        assert!(problems.iter().any(|problem| text(problem) == said), "{problems:?}");
    }
    assert!(ran.stderr.contains("a test left a process behind, which was ended"), "{}", ran.stderr);
    let left = processes_with(place.path().join("libhostile.so").to_str().expect("a plain path"));
    assert!(left.is_empty(), "{left:?} live on");
}

/// What a host says of itself has to go with what it was given to do: it is not over before its tests are, nor is a test refused
/// that runs, nor the search of one that has none.
#[test]
fn what_a_host_cannot_say_is_told() {
    let place = Workplace::new();
    let at = std::mem::offset_of!(waylay_page::layout::Header, phase);
    place.compile_whole("hostile", &format!("#define PHASE_AT {at}\n{SOURCE}"));
    for (mode, attacks) in [
        ("free", &["event-flood", "event-plugin", "phase-left", "phase-ended"][..]),
        ("strict", &["event-exhausted"]),
    ] {
        let attacks: Vec<Attack> = attacks.iter().map(|attack| (*attack, Some("corrupted"))).collect();
        place.write("waylay.toml", &config(mode, &attacks));
        let ran = place.run(1, &[]);
        for (attack, _) in attacks {
            let told = kinds_in(&ran, attack);
            assert!(told.iter().any(|told| told == "corrupted"), "{attack}: {told:?}\n{}", ran.stderr);
            assert!(number(&tests_of(&ran, attack)[0]["failures"]) >= 1, "{attack}\n{}", ran.stderr);
        }
        assert!(ran.stderr.matches("again and again").count() <= 1, "{}", ran.stderr);
    }
}

/// Processes in which that file is mapped.
fn processes_with(file: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("a list").flatten();
    let uses = |entry: &fs::DirEntry| {
        fs::read_to_string(entry.path().join("maps")).is_ok_and(|maps| maps.contains(file))
    };
    processes.filter(uses).map(|entry| entry.path().display().to_string()).collect()
}

/// The same for what a strict host shares: nothing of the garbage is taken for a schedule or for the end of a search.
#[test]
fn a_strict_host_that_writes_over_what_it_shares_is_told() {
    const STRICT: [Attack; 4] = [
        ("page-ones", Some("corrupted")),
        ("region-zero", Some("corrupted")),
        ("region-ones", Some("corrupted")),
        ("event-out-of-range", Some("corrupted")),
    ];
    let place = Workplace::new();
    let ran = run(&place, "strict", &STRICT);
    for (attack, kind) in STRICT {
        assert!(number(&tests_of(&ran, attack)[0]["failures"]) >= 1, "{attack}\n{}", ran.stderr);
        let told = kinds_in(&ran, attack);
        assert!(kind.is_none_or(|kind| told.iter().any(|told| told == kind)), "{attack}: {told:?}");
        for test in tests_of(&ran, attack) {
            let runs = number(&test["strict"]["runs"]);
            assert!(runs <= 10 * ITERATIONS, "{attack}: {runs} schedules");
        }
    }
}

const TELLTALE: &str = "static int32_t iterate(probe *self, waylay_context *worker) {\n\
    const char *token = getenv(\"NIGHTLY_API_TOKEN\"), *internal = getenv(\"INTERNAL_ADDRESS\");\n\
    fprintf(stderr, \"token %s, address %s\\n\", token, internal);\n\
    char text[200];\n\
    snprintf(text, sizeof text, \"refused with %s at %s\", token, internal);\n\
    waylay_fail(self->services, worker, text);\n\
    FILE *made = fopen(\"made-by-test\", \"w\");\n\
    fclose(made);\n\
    *(volatile int *)8 = 1;\n\
    return WAYLAY_FAILED;\n\
  }";

/// A test prints a token, says it in a failure, and crashes with it in its memory: no file holds it, and nobody else may
/// read any of them.
#[test]
fn nothing_secret_is_written_down() {
    const SECRETS: [(&str, &str); 3] = [
        ("NIGHTLY_API_TOKEN", "s3cr3t-n1ghtly-t0ken"),
        ("INTERNAL_ADDRESS", "build.internal.example"),
        ("DATABASE_PASSWORD", "pw-that-nobody-prints"),
    ];
    let place = Workplace::new();
    place.compile("telltale", TELLTALE);
    place.write(
        "waylay.toml",
        "[defaults]\nworkers = 1\nleaks = false\nmax-failures = 2\n[[scenario]]\nname = \"s\"\n[[scenario.test]]\n\
         plugin = \"telltale\"\niterations = 4\n[evidence]\nredact = [\"INTERNAL_*\"]\n\
         dump = \"full\"\ndump-format = [\"minidump\", \"core\"]\n",
    );
    let with_secrets = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.envs(SECRETS);
        // SAFETY: the closure runs between fork and exec and makes one async-signal-safe call.
        unsafe {
            std::os::unix::process::CommandExt::pre_exec(&mut command, || {
                libc::umask(0o022);
                Ok(())
            });
        }
        place.start_command(command).finish()
    };
    let ran = with_secrets(&["run", "waylay.toml", "--json"]);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    let crash = ran.failures().into_iter().find(|failure| failure.kind() == "crash").expect("a crash");
    assert!(number(&crash.json["dump_threads"]) >= 1);
    assert!(crash.folder.join("core").metadata().is_ok_and(|core| core.len() > 1 << 20), "{:#}", crash.json);
    let exported = with_secrets(&["export", crash.folder.to_str().expect("plain"), "--to", "sent.zip"]);
    assert_eq!(exported.code(), Some(0), "{}", exported.stderr);
    let unpacked = std::process::Command::new("python3")
        .args(["-c", "import zipfile; zipfile.ZipFile('sent.zip').extractall('unpacked')"])
        .current_dir(place.path())
        .status();
    assert!(unpacked.expect("python3").success());
    let mut looked_at = 0;
    for folder in ["waylay-out", "unpacked"] {
        each_file(&place.path().join(folder), &mut |path, mode| {
            looked_at += 1;
            let content = fs::read(path).expect("ours");
            for (name, secret) in SECRETS {
                let leaks = content.windows(secret.len()).any(|part| part == secret.as_bytes());
                assert!(!leaks, "{} holds {name}", path.display());
            }
            let open = mode & 0o077;
            assert!(folder == "unpacked" || open == 0, "{} is open to others: {mode:o}", path.display());
        });
    }
    assert!(looked_at >= 12, "{looked_at} files");
    assert!(!ran.stdout.contains(SECRETS[0].1) && !ran.stderr.contains(SECRETS[0].1), "{}", ran.stderr);
    assert!(crash.file("log.txt").contains("token ********************"), "{}", crash.file("log.txt"));
    // What the test itself makes is made as it would be without us.
    let made = fs::metadata(place.path().join("made-by-test")).expect("made");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&made.permissions()) & 0o777, 0o644);
}

/// Prints a token and says it in an assertion that fails in some schedules only.
const EXPLORED_TELLTALE: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
    static int n;\n\
    static void *add(void *x) {\n\
      pthread_mutex_lock(&m); int v = n; pthread_mutex_unlock(&m);\n\
      pthread_mutex_lock(&m); n = v + 1; pthread_mutex_unlock(&m);\n\
      return x;\n\
    }\n\
    int main(void) {\n\
      pthread_t t, u;\n\
      pthread_create(&t, 0, add, 0); pthread_create(&u, 0, add, 0);\n\
      pthread_join(t, 0); pthread_join(u, 0);\n\
      printf(\"token %s\\n\", getenv(\"NIGHTLY_API_TOKEN\"));\n\
      if (n == 2) return 0;\n\
      fprintf(stderr, \"a: a.c:1: main: Assertion `refused %s' failed.\\n\", getenv(\"NIGHTLY_API_TOKEN\"));\n\
      abort();\n\
    }\n";

/// The same for a program that is explored, in whatever is made of its failure afterwards.
#[test]
fn nothing_secret_of_an_explored_program_is_written_down() {
    const SECRET: &str = "s3cr3t-n1ghtly-t0ken";
    let place = Workplace::new();
    let source = place.write("telltale.c", EXPLORED_TELLTALE);
    let built = std::process::Command::new("cc")
        .args(["-pthread", "-o"])
        .args([&place.path().join("telltale"), &source])
        .status();
    assert!(built.expect("a compiler").success());
    let waylay = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("NIGHTLY_API_TOKEN", SECRET);
        // SAFETY: the closure runs between fork and exec and makes one async-signal-safe call.
        unsafe {
            std::os::unix::process::CommandExt::pre_exec(&mut command, || {
                libc::umask(0o022);
                Ok(())
            });
        }
        place.start_command(command).finish()
    };
    let explored = waylay(&["explore", "--json", "--runs", "60", "--seed", "7", "--", "./telltale"]);
    assert_eq!(explored.code(), Some(1), "{}", explored.stderr);
    let found = support::small::json(&explored)["found"][0].clone();
    let folder = text(&found["failure_dir"]);
    let replayed = waylay(&["replay", folder, "--times", "2"]);
    let minimized = waylay(&["minimize", folder]);
    let reported = waylay(&["report", "--html", "waylay-out/report.html"]);
    assert_eq!((replayed.code(), reported.code()), (Some(1), Some(0)), "{replayed:#?} {reported:#?}");
    for ran in [&explored, &replayed, &minimized, &reported] {
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{ran:#?}");
    }
    assert!(text(&found["what"]).contains("refused ********************"), "{found:#}");
    let mut looked_at = 0;
    each_file(&place.path().join("waylay-out"), &mut |path, mode| {
        looked_at += 1;
        let content = fs::read(path).expect("ours");
        let leaks = content.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        assert!(!leaks, "{} holds the token", path.display());
        assert_eq!(mode & 0o077, 0, "{} is open to others: {mode:o}", path.display());
    });
    assert!(looked_at >= 8, "{looked_at} files");
}

/// All files below a folder, with their permissions.
fn each_file(folder: &std::path::Path, look: &mut dyn FnMut(&std::path::Path, u32)) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let metadata = entry.metadata().expect("ours");
        if metadata.is_dir() {
            each_file(&entry.path(), look);
        } else {
            look(&entry.path(), std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()));
        }
    }
}

/// Fails differently before and after it has removed what is kept of failures.
const REMOVER: &str = "static int32_t iterate(probe *self, waylay_context *worker) {\n\
    static _Atomic int count;\n\
    int number = count++;\n\
    if (number == 20 && system(\"rm -rf waylay-out/*/failures\") != 0) return WAYLAY_OK;\n\
    usleep(1000);\n\
    if (number % 10 != 0) return WAYLAY_OK;\n\
    waylay_fail(self->services, worker, number < 20 ? \"before\" : \"after\");\n\
    return WAYLAY_FAILED;\n\
  }";

#[test]
fn a_folder_that_is_removed_is_made_again_and_told() {
    let place = Workplace::new();
    place.compile("remover", REMOVER);
    place.write(
        "waylay.toml",
        "[defaults]\nworkers = 1\nleaks = false\nmax-failures = 0\n[[scenario]]\nname = \"s\"\n[[scenario.test]]\n\
         plugin = \"remover\"\niterations = 60\n",
    );
    let ran = place.run(1, &[]);
    let json = ran.json();
    assert_eq!(number(&json["campaign"]["failures"]), 6, "{}", ran.stderr);
    let whats: Vec<String> =
        list(&json["failures"]).iter().map(|line| text(&line["what"]).to_owned()).collect();
    assert!(whats.contains(&"before".to_owned()) && whats.contains(&"after".to_owned()), "{whats:?}");
    let after = ran.failures().into_iter().find(|failure| failure.what() == "after").expect("on disk");
    assert_eq!(after.count(), 4);
}

/// The children of tests are programs like any other: nothing of ours is loaded into them.
#[test]
fn programs_that_tests_start_do_not_inherit_what_is_ours() {
    const STARTER: &str = "static int32_t iterate(probe *self, waylay_context *worker) {\n\
        if (system(\"env > seen-by-child\") != 0) waylay_fail(self->services, worker, \"no child\");\n\
        return WAYLAY_OK;\n\
      }";
    let place = Workplace::new();
    place.compile("starter", STARTER);
    place.write(
        "waylay.toml",
        "[defaults]\nworkers = 1\n[[scenario]]\nname = \"s\"\n[[scenario.test]]\nplugin = \"starter\"\niterations = 1\n",
    );
    place.run(0, &[]);
    let seen = fs::read_to_string(place.path().join("seen-by-child")).expect("written");
    assert!(!seen.contains("waylay_control"), "{seen}");
    // What was there before Waylay was started is the user's.
    let names = seen.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    let ours: Vec<_> = names
        .filter(|name| name.starts_with("WAYLAY_") && std::env::var_os(name).is_none())
        // Given to the command from outside, by `Workplace::command`.
        .filter(|name| *name != "WAYLAY_VERBOSE")
        .collect();
    assert_eq!(ours, [""; 0], "{seen}");
}

/// Nor do those that explored programs start: neither our library nor where it stands in for a runtime. What the user says of
/// both stays.
#[test]
fn programs_that_explored_programs_start_do_not_inherit_what_is_ours() {
    const STARTER: &str = "#include <pthread.h>\n#include <stdlib.h>\n\
        static void *nothing(void *x) { return x; }\n\
        int main(void) {\n\
          pthread_t t;\n\
          pthread_create(&t, 0, nothing, 0);\n\
          pthread_join(t, 0);\n\
          return system(\"env > seen-by-child\") != 0;\n\
        }\n";
    let place = Workplace::new();
    let source = place.write("starter.c", STARTER);
    let program = place.path().join("starter");
    // Linked with the runtime of the compilers, which is where the library stands in.
    let compile = |options: &[&str]| {
        let mut command = std::process::Command::new("gcc");
        command.args(options).args(["-pthread", "-o"]).args([&program, &source]);
        command.output().expect("a compiler").status.success()
    };
    let lists: [(&[&str], Option<&str>); 3] =
        [(&[], None), (&["-fsanitize=thread"], None), (&["-fsanitize=thread"], Some("/of/the/user"))];
    for (options, given) in lists {
        assert!(compile(options), "{options:?}");
        let mut command = place.command(&["explore", "--runs", "1", "--", "./starter"]);
        command.env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD");
        command.envs(given.map(|folder| ("LD_LIBRARY_PATH", folder)));
        let ran = place.start_command(command).finish();
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
        let seen = fs::read_to_string(place.path().join("seen-by-child")).expect("written");
        let value = |name: &str| seen.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        assert_eq!((value("LD_PRELOAD"), value("LD_LIBRARY_PATH")), (None, given), "{options:?}: {seen}");
        assert!(!seen.contains("WAYLAY_CONTROL"), "{seen}");
    }
}

/// What is told of a corrupted page: who ran, the stacks and a dump of the living process.
#[test]
fn a_corrupted_page_has_evidence() {
    let place = Workplace::new();
    place.compile_whole("hostile", SOURCE);
    place.write(
        "waylay.toml",
        "[defaults]\nworkers = 1\nleaks = false\n[[scenario]]\nname = \"s\"\n[[scenario.test]]\nplugin = \"hostile\"\n\
         name = \"page-random\"\niterations = 20\n",
    );
    let ran = place.run(1, &[]);
    let failure = ran.failure("hostile", "page-random");
    assert_eq!(failure.kind(), "corrupted");
    assert!(
        failure.what().contains("the test wrote over memory that belongs to Waylay"),
        "{}",
        failure.what()
    );
    // What it was doing is known from the look before, and nothing says how long ago that was.
    let reason = text(&failure.json["reason"]);
    assert!(
        reason.contains("running: page-random#0 in iteration") || reason.contains("seen while"),
        "{reason}"
    );
    assert!(number(&failure.json["dump_threads"]) >= 1, "{:#}", failure.json);
    assert!(number(&ran.test("hostile", "page-random")["iterations"]) <= 20);
}
