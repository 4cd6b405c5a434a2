//! Temporary files of tests and programs that are killed: each process that runs tests has a folder for them, which is removed
//! with it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Ran, Workplace, list, number, text};

/// Leaves a file where temporary files belong, and dies.
const LITTERS: &str = "static int32_t iterate(probe *self, waylay_context *worker) {\n\
    char path[400];\n\
    snprintf(path, sizeof path, \"%s/litter-XXXXXX\", getenv(\"TMPDIR\"));\n\
    int fd = mkstemp(path);\n\
    if (fd < 0) waylay_fail(self->services, worker, path);\n\
    raise(SIGKILL);\n\
    return WAYLAY_OK;\n\
  }";

/// The same, and fails before: what fails in strict mode is run again, and can be replayed.
const FAILS_AND_LITTERS: &str = "static int32_t iterate(probe *self, waylay_context *worker) {\n\
    char path[400];\n\
    snprintf(path, sizeof path, \"%s/litter-XXXXXX\", getenv(\"TMPDIR\"));\n\
    waylay_fail(self->services, worker, mkstemp(path) < 0 ? \"no file\" : \"as ever\");\n\
    return WAYLAY_FAILED;\n\
  }";

/// Leaves a file in every run, and fails in some.
const PROGRAM: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <assert.h>\n\
    static int n;\n\
    static void *add(void *unused) { int before = n; n = before + 1; return unused; }\n\
    int main(void) {\n\
      char path[400];\n\
      snprintf(path, sizeof path, \"%s/litter-XXXXXX\", getenv(\"TMPDIR\"));\n\
      if (mkstemp(path) < 0) return 77;\n\
      pthread_t a, b;\n\
      pthread_create(&a, 0, add, 0); pthread_create(&b, 0, add, 0);\n\
      pthread_join(a, 0); pthread_join(b, 0);\n\
      assert(n == 2);\n\
      return 0;\n\
    }\n";

/// A place with a folder of its own for the temporary files of everybody.
fn place_with(source: &str, mode: &str) -> (Workplace, PathBuf) {
    let place = Workplace::new();
    place.compile("probe", source);
    place.write(
        "waylay.toml",
        &format!(
            "[defaults]\nworkers = 1\nleaks = false\nmax-failures = 3\n[[scenario]]\nname = \"s\"\nmode = \"{mode}\"\n\
             duration = \"3s\"\n[[scenario.test]]\nplugin = \"probe\"\n"
        ),
    );
    let folder = place.path().join("temporary");
    fs::create_dir(&folder).expect("ours");
    (place, folder)
}

fn waylay(place: &Workplace, temporary: &Path, arguments: &[&str]) -> Ran {
    let mut command = place.command(arguments);
    command.env("TMPDIR", temporary);
    place.start_command(command).finish()
}

fn assert_empty(folder: &Path, after: &str) {
    let left: Vec<_> = fs::read_dir(folder).expect("ours").flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{after}: {left:?}");
}

#[test]
fn temporary_files_of_killed_hosts_are_removed() {
    for mode in ["free", "strict"] {
        let (place, temporary) = place_with(LITTERS, mode);
        let ran = waylay(&place, &temporary, &["run", "waylay.toml", "--json"]);
        assert!(number(&ran.json()["campaign"]["hosts"]) >= 1, "{}", ran.stderr);
        let failed = list(&ran.json()["failures"]).iter().any(|line| text(&line["kind"]) == "assert");
        assert!(!failed, "{mode}: no file could be made: {}", ran.stderr);
        assert_empty(&temporary, mode);
    }
}

#[test]
fn temporary_files_of_schedules_that_are_run_again_are_removed() {
    let (place, temporary) = place_with(FAILS_AND_LITTERS, "strict");
    let ran = waylay(&place, &temporary, &["run", "waylay.toml", "--json"]);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    assert_empty(&temporary, "run");
    let failure = ran.failures().remove(0);
    assert_eq!(failure.what().lines().next(), Some("as ever"), "{}", ran.stderr);
    let folder = failure.folder.to_str().expect("plain");
    for (command, code) in [("replay", 0), ("minimize", 0)] {
        let again = waylay(&place, &temporary, &[command, folder]);
        assert!(again.code().is_some_and(|found| found <= code + 1), "{command}: {}", again.stderr);
        assert_empty(&temporary, command);
    }
}

#[test]
fn temporary_files_of_explored_programs_are_removed() {
    let (place, temporary) = place_with(LITTERS, "free");
    let source = place.write("program.c", PROGRAM);
    let program = place.path().join("program");
    let built =
        std::process::Command::new("gcc").args(["-g", "-pthread", "-o"]).arg(&program).arg(source).status();
    assert!(built.expect("a compiler").success());
    let program = program.to_str().expect("plain");
    let ran =
        waylay(&place, &temporary, &["explore", "--seed", "7", "--runs", "200", "--json", "--", program]);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    let json = ran.json();
    assert!(list(&json["found"]).iter().all(|found| found["confirmed"] == true), "{json:#}");
    assert!(
        list(&json["found"]).iter().all(|found| found["kind"] == "assert"),
        "no file could be made: {json:#}"
    );
    assert_empty(&temporary, "explore");
}
