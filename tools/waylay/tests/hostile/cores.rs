//! Cores of a campaign's failures, as gdb sees them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Failure, Workplace, list, number, text};

const WAYS: &str = r#"
volatile int telltale = 1;
__attribute__((noinline)) static void goes_wrong(void) { *(volatile int *)8 = 1; __asm__ volatile(""); }
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) static void never_comes_back(void) {
  pthread_mutex_lock(&lock);
  pthread_mutex_lock(&lock);
  __asm__ volatile("");
}
static int32_t iterate(probe *self, waylay_context *worker) {
  (void)self; (void)worker;
  telltale = 271828;
  if (WAY) never_comes_back();
  goes_wrong();
  return WAYLAY_OK;
}"#;

fn config(more: &str) -> String {
    format!(
        "[defaults]\nworkers = 2\nleaks = false\nmax-failures = 1\nhang-timeout = \"1s\"\n[[scenario]]\nname = \"s\"\n\
         {more}[[scenario.test]]\nplugin = \"ways\"\niterations = 4\n[evidence]\n\
         dump-format = [\"minidump\", \"core\"]\n"
    )
}

/// Whether gdb is here; where it has to be, its absence fails the test.
fn has_gdb() -> bool {
    let found = Command::new("gdb").arg("--version").output().is_ok();
    assert!(found || std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_none(), "gdb is not installed");
    if !found {
        eprintln!("gdb is not installed: nothing was tested");
    }
    found
}

/// What gdb says when it is started as `waylay open` would start it.
fn opened(place: &Workplace, failure: &Failure) -> String {
    let printed = place.waylay(&["open", failure.folder.to_str().expect("plain"), "--print", "--json"]);
    assert_eq!(printed.code(), Some(0), "{}", printed.stderr);
    let words: serde_json::Value = serde_json::from_str(&printed.stdout).expect("json");
    let words: Vec<&str> = list(&words["command"]).iter().map(text).collect();
    let mut command = Command::new(words[0]);
    command.args(["-batch", "-nx", "-ex", "set debuginfod enabled off"]).env("DEBUGINFOD_URLS", "");
    command.args(&words[1..]).args([
        "-ex",
        "thread apply all bt",
        "-ex",
        "set language c",
        "-ex",
        "print telltale",
    ]);
    let output = command.output().expect("gdb runs");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn gdb_sees_in_a_core_what_the_stacks_show() {
    if !has_gdb() {
        return;
    }
    let strict = "mode = \"strict\"\nruns = 3\n";
    for (way, kind, mode) in [("0", "crash", ""), ("1", "deadlock", ""), ("1", "deadlock", strict)] {
        let place = Workplace::new();
        place.compile("ways", &format!("#define WAY {way}\n{WAYS}"));
        place.write("waylay.toml", &config(&format!("{mode}dump = \"heap\"\n")));
        let ran = place.waylay(&["run", "waylay.toml", "--json"]);
        let failure = ran.failures().into_iter().find(|failure| failure.kind() == kind).expect(kind);
        assert_eq!(list(&failure.json["gaps"]).len(), 0, "{:#}", failure.json);
        let core = failure.folder.join("core");
        assert_eq!(fs::metadata(&core).expect("a core").permissions().mode() & 0o777, 0o600);
        let said = opened(&place, &failure);
        assert!(said.contains("= 271828"), "{said}");
        let stacks = list(&failure.json["stacks"]);
        assert_eq!(
            said.matches("(LWP ").count(),
            stacks.len() + said.matches("Current thread").count(),
            "{said}"
        );
        assert_eq!(number(&failure.json["dump_threads"]) as usize, stacks.len());
        for stack in stacks {
            let from =
                said.find(&format!("(LWP {})):\n", number(&stack["id"]))).unwrap_or_else(|| panic!("{said}"));
            let part = said[from..].split("\nThread ").next().unwrap_or_default();
            for function in ["goes_wrong", "never_comes_back", "iterate"] {
                let shown = list(&stack["frames"]).iter().any(|frame| frame["function"] == function);
                assert_eq!(part.contains(&format!(" {function} (")), shown, "{function}: {part}\n{stack:#}");
            }
        }
        let first = number(&stacks[0]["id"]);
        assert!(said.contains(&format!("(LWP {first}))]")), "the thread to blame comes first: {said}");
    }
}

#[test]
fn no_dump_is_written_where_none_is_wanted_and_open_says_how_to_get_one() {
    let place = Workplace::new();
    place.compile("ways", &format!("#define WAY 0\n{WAYS}"));
    place.write("waylay.toml", &config("dump = \"none\"\n"));
    let ran = place.waylay(&["run", "waylay.toml", "--json"]);
    let failure = ran.failures().into_iter().find(|failure| failure.kind() == "crash").expect("a crash");
    assert!(!failure.folder.join("core").exists() && !failure.folder.join("dump.dmp").exists());
    assert_eq!(list(&failure.json["gaps"]).len(), 0, "it was not wanted: {:#}", failure.json);
    let opened = place.waylay(&["open", failure.folder.to_str().expect("plain"), "--print"]);
    assert_eq!(opened.code(), Some(2), "{}", opened.stderr);
    assert!(opened.stderr.contains("dump-format = [\"minidump\", \"core\"]"), "{}", opened.stderr);
}

#[test]
fn a_plugin_that_was_built_anew_is_not_opened_with_the_old_core() {
    let place = Workplace::new();
    place.compile("ways", &format!("#define WAY 0\n{WAYS}"));
    place.write("waylay.toml", &config(""));
    let ran = place.waylay(&["run", "waylay.toml", "--json"]);
    let failure = ran.failures().into_iter().find(|failure| failure.kind() == "crash").expect("a crash");
    place.compile("ways", &format!("#define WAY 1\n{WAYS}"));
    let opened = place.waylay(&["open", failure.folder.to_str().expect("plain"), "--print"]);
    assert_eq!(opened.code(), Some(2), "{}", opened.stderr);
    assert!(opened.stderr.contains("ways") && opened.stderr.contains("changed since"), "{}", opened.stderr);
}
