//! How runs of `waylay explore` begin: restored from a snapshot or forked, they are the same runs.
//!
//! Runs are a pure function of the seed, which is fixed, so these tests cannot fail by chance.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::Workplace;
use support::small::{LOCKS, build, counter, explore, json};

/// Everything that an exploration found, without what depends on the clock or on how runs began.
fn what_was_found(summary: &Value) -> Value {
    let keys =
        ["runs", "failures", "first_failure_run", "kind", "signature", "threads", "steps", "guarantee"];
    assert!(summary["runs"].is_u64(), "{summary:#}");
    keys.iter().map(|key| summary[key].clone()).collect()
}

#[test]
fn restored_runs_find_what_forked_ones_find() {
    let place = Workplace::new();
    for source in [LOCKS.to_owned(), counter("printf(\"%d\\n\", n); assert(n == 2); return 0;")] {
        let program = build(&place, &source, &[]);
        let options = ["--runs", "700", "--patch", "none"];
        let forked = json(&explore(&place, &options, &program));
        for jobs in ["1", "2"] {
            let more = [&options[..], &["--restart", "snapshot", "--jobs", jobs]].concat();
            let restored = json(&explore(&place, &more, &program));
            assert_eq!(restored["fell_back"], 0, "{restored:#}");
            assert_eq!(what_was_found(&restored), what_was_found(&forked), "{jobs} jobs");
            assert_eq!(
                (restored["restart"].as_str(), restored["restored"].as_u64()),
                (Some("snapshot"), Some(700))
            );
            // The first hundred, every 256th of the rest, and some failing ones, but for those that single out an object: up
            // to two of the five strategies' runs.
            assert!(restored["compared"].as_u64() >= Some(60), "{restored:#}");
        }
    }
}

/// Root starts it as nobody, from an installation that everybody may read; others are unprivileged anyway.
#[test]
fn nobody_needs_privileges() {
    let place = Workplace::new();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    open(place.path());
    let program = build(&place, &counter("assert(n == 2); return 0;"), &[]);
    let installed = place.path().join("bin");
    fs::create_dir(&installed).unwrap();
    let ours = Path::new(env!("CARGO_BIN_EXE_waylay"));
    for file in ["waylay", "deps/libwaylay_control.so"] {
        let from = ours.parent().unwrap().join(file);
        let to = installed.join(from.file_name().unwrap());
        fs::copy(from, &to).unwrap();
        open(&to);
    }
    let mut command = Command::new(installed.join("waylay"));
    command
        .args([
            "explore",
            "--json",
            "--seed",
            "7",
            "--runs",
            "700",
            "--restart",
            "snapshot",
            "--patch",
            "none",
            "--",
        ])
        .arg(&program)
        .current_dir(place.path())
        .env("HOME", place.path());
    // SAFETY: the call has no conditions.
    if unsafe { libc::getuid() } == 0 {
        command.uid(65534).gid(65534);
    }
    let ran = place.start_command(command).finish();
    let found = json(&ran);
    assert_eq!(
        (ran.code(), &found["kind"], &found["found"][0]["confirmed"]),
        (Some(1), &"assert".into(), &true.into())
    );
    assert_eq!(found["restored"], 700, "{found:#}");
    assert_eq!(
        what_was_found(&found),
        what_was_found(&json(&explore(&place, &["--runs", "700", "--patch", "none"], &program)))
    );
}

#[test]
fn what_cannot_be_restored_goes_to_the_fork_server_by_itself() {
    let place = Workplace::new();
    let program =
        build(&place, &counter("fork(); return n != 2;").replacen('#', "#include <unistd.h>\n#", 1), &[]);
    let options = ["--runs", "60", "--patch", "none"];
    let forked = json(&explore(&place, &options, &program));
    for way in ["snapshot", "auto"] {
        let summary = json(&explore(&place, &[&options[..], &["--restart", way]].concat(), &program));
        assert_eq!(what_was_found(&summary), what_was_found(&forked), "{way}");
        assert_eq!(summary["restart"], "fork");
        assert!(summary["fell_back"].as_u64() > Some(0), "{summary:#}");
        let notes = summary["notes"].to_string();
        assert!(notes.contains("starts a process"), "{notes}");
    }
}

#[test]
fn several_jobs_keep_their_processes_while_they_grow() {
    // More threads than are made in advance at first, so that each worker starts its process again.
    const MANY: &str = r"
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n;
static void *add(void *x) { pthread_mutex_lock(&m); n++; pthread_mutex_unlock(&m); return x; }
int main(void) {
    pthread_t t[7];
    for (int i = 0; i < 7; i++) pthread_create(&t[i], 0, add, 0);
    for (int i = 0; i < 7; i++) pthread_join(t[i], 0);
    return n != 7;
}";
    let place = Workplace::new();
    let program = build(&place, MANY, &[]);
    let options = ["--runs", "300", "--jobs", "2", "--restart", "snapshot", "--patch", "none"];
    let summary = json(&explore(&place, &options, &program));
    assert_eq!((&summary["restored"], &summary["fell_back"]), (&300.into(), &0.into()), "{summary:#}");
}

/// Objects on the heap lie elsewhere in a process that has its threads in advance: a strategy that singles one out by its
/// address decides otherwise there, which is no fault of restoring.
#[test]
fn objects_of_the_heap_do_not_make_restored_runs_differ() {
    const OBJECT: &str = r"
#include <pthread.h>
#include <stdlib.h>
struct object { pthread_mutex_t m; int n; };
static pthread_mutex_t g = PTHREAD_MUTEX_INITIALIZER;
static void *idle(void *x) { pthread_mutex_lock(&g); pthread_mutex_unlock(&g); return x; }
static void *use(void *x) {
    struct object *o = x;
    for (int i = 0; i < 3; i++) { pthread_mutex_lock(&o->m); o->n++; pthread_mutex_unlock(&o->m); }
    return x;
}
int main(void) {
    pthread_t t[3];
    pthread_create(&t[0], 0, idle, 0);
    struct object *o = malloc(sizeof *o);
    pthread_mutex_init(&o->m, 0);
    o->n = 0;
    for (int i = 1; i < 3; i++) pthread_create(&t[i], 0, use, o);
    for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
    return o->n != 6;
}";
    let place = Workplace::new();
    let program = build(&place, OBJECT, &[]);
    let options = ["--runs", "300", "--strategy", "surw", "--restart", "snapshot", "--patch", "none"];
    let summary = json(&explore(&place, &options, &program));
    assert_eq!(
        (&summary["restored"], &summary["notes"].to_string().contains("FAULT")),
        (&300.into(), &false),
        "{summary:#}"
    );
    assert!(summary["compared"].as_u64() > Some(0), "{summary:#}");
}

/// The heap is as large as it is without the library, under patched code too: nothing lies behind it.
#[test]
fn the_heap_of_a_patched_program_can_grow() {
    const GROWS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int shared;
static void *touch(void *x) { shared++; return x; }
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, touch, 0);
    pthread_create(&u, 0, touch, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    char *before = sbrk(0);
    for (int i = 0; i < 400; i++) if (!malloc(60000)) return 1;
    return (char *)sbrk(0) - before < 20 << 20;
}"#;
    let place = Workplace::new();
    let program = build(&place, GROWS, &[]);
    for way in ["fork", "snapshot"] {
        let summary = json(&explore(&place, &["--runs", "60", "--restart", way], &program));
        assert_eq!(
            (&summary["failures"], &summary["fell_back"]),
            (&0.into(), &0.into()),
            "{way}: {summary:#}"
        );
    }
}

/// Memory of a process that has its threads in advance lies elsewhere: a program that depends on it is told apart from one
/// whose restored runs are wrong.
#[test]
fn a_program_that_depends_on_addresses_is_forked() {
    let place = Workplace::new();
    let program = build(
        &place,
        r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *says(void *x) { printf("%p\n", malloc(100)); return x; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, says, 0);
    printf("%p\n", malloc(100));
    pthread_join(t, 0);
    return 0;
}"#,
        &[],
    );
    let summary =
        json(&explore(&place, &["--runs", "40", "--level", "sync", "--restart", "snapshot"], &program));
    assert_eq!(summary["restart"], "fork", "{summary}");
    let notes = summary["notes"].to_string();
    assert!(notes.contains("depends on where its memory lies"), "{notes}");
}

/// The same where one address in a million matters, so that no other place would show it: a restored run is the same as the first
/// of a new process, so nothing is wrong with it.
#[test]
fn a_program_that_depends_on_one_address_is_no_fault() {
    const ONE: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *wanted;
static void *says(void *x) {
    void *here = malloc(100);
    printf("%d\n", here == wanted);
    FILE *seen = fopen("seen", "a");
    fprintf(seen, "%p\n", here);
    fclose(seen);
    return x;
}
int main(int count, char **arguments) {
    wanted = (void *)strtoul(arguments[count - 1], 0, 16);
    pthread_t t;
    pthread_create(&t, 0, says, 0);
    pthread_join(t, 0);
    return 0;
}"#;
    let place = Workplace::new();
    let program = build(&place, ONE, &[]);
    let explore = |address: &str| {
        let options = ["explore", "--json", "--quiet", "--seed", "1", "--runs", "20", "--level", "sync"];
        let ran = place.waylay(&[&options[..], &["--restart", "snapshot", "--", &program, address]].concat());
        json(&ran)
    };
    explore("0x0");
    let seen = fs::read_to_string(place.path().join("seen")).expect("what the program wrote");
    let restored = seen.lines().next().expect("the first run is a restored one");
    let summary = explore(restored);
    let notes = summary["notes"].to_string();
    assert!(notes.contains("depends on where its memory lies") && !notes.contains("FAULT"), "{notes}");
}

/// What a run loads and patches goes away with it, and so does that it closed its output.
#[test]
fn a_program_that_loads_a_library_and_closes_its_output_is_restored() {
    const LIBRARY: &str =
        "int total;\nint add(int n) { return __atomic_add_fetch(&total, n, __ATOMIC_SEQ_CST); }\n";
    const LOADS: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int (*add)(int);
static void *adds(void *x) { add(1); add(2); return x; }
int main(int count, char **arguments) {
    add = (int (*)(int))dlsym(dlopen(arguments[1], RTLD_NOW), "add");
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, adds, 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    printf("%d\n", add(0));
    if (fclose(stdout) != 0) return 1;
    return write(1, "x", 1) != -1 || close(1) != -1;
}"#;
    let place = Workplace::new();
    place.write("library.c", LIBRARY);
    let library = place.path().join("library.so");
    let compiled = Command::new("gcc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(place.path().join("library.c"))
        .status();
    assert!(compiled.expect("a compiler").success());
    place.write("expected", "6\n");
    let program = build(&place, LOADS, &["-ldl"]);
    let library = library.to_str().expect("a plain path");
    let ran = place.waylay(&[
        "explore",
        "--json",
        "--quiet",
        "--seed",
        "1",
        "--runs",
        "200",
        "--restart",
        "snapshot",
        "--level",
        "atomics",
        "--expect-stdout",
        "expected",
        "--",
        &program,
        library,
    ]);
    let summary = json(&ran);
    assert_eq!((&summary["failures"], &summary["fell_back"]), (&0.into(), &0.into()), "{summary:#}");
    assert_eq!(summary["restored"], 200, "{summary:#}");
    assert!(summary["steps"].as_u64() >= Some(6), "what was loaded makes steps: {summary:#}");
}

/// The first 16 runs are looked at, and those are forked: a bug that one of them shows is not to wait for a second process.
#[test]
fn the_process_for_snapshots_is_started_when_a_run_needs_it() {
    let place = Workplace::new();
    let starts = place.path().join("starts");
    let constructor = format!(
        r#"
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void begins(void) {{
    int to = open("{}", O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (write(to, "x", 1) != 1) _exit(9);
    close(to);
}}
"#,
        starts.display()
    );
    let program = build(&place, &(constructor + &counter("return 0;")), &[]);
    for (runs, expected) in [("3", 1), ("40", 2)] {
        let summary = json(&explore(&place, &["--runs", runs, "--restart", "snapshot"], &program));
        assert_eq!(summary["failures"], 0, "{summary:#}");
        assert_eq!(fs::read(&starts).expect("it was started").len(), expected, "{summary:#}");
        fs::remove_file(&starts).expect("it is there");
    }
}
