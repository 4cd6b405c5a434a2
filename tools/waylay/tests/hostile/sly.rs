//! Attacks that look harmless, or that are aimed at what is around the driver: descriptors, groups, limits, filters, links, names,
//! and what plugins do before their first test and after their last.

use std::fs;

use crate::support::{Workplace, number, text};
use crate::{ATTACK_SOURCE, Attack, ITERATIONS, config, kinds_in, processes_with, tests_of};

/// What is told of each; none when the driver need not even notice.
const SLY: [Attack; 22] = [
    ("page-lies", None),
    ("region-lies", None),
    ("page-shifted", Some("corrupted")),
    ("over-all", None),
    ("stop-group", Some("deadlock")),
    ("join-driver", None),
    ("not-dumpable", Some("crash")),
    ("no-calls-thread", Some("deadlock")),
    ("no-calls", None),
    ("apart", None),
    ("nowhere", Some("crash")),
    ("many-descriptors", Some("crash")),
    ("many-maps", Some("crash")),
    ("lock-memory", Some("crash")),
    ("large-environment", Some("crash")),
    ("own-handlers", Some("crash")),
    ("fork-bomb", None),
    ("odd-files", None),
    ("bell", None),
    ("seal-page", None),
    ("links", None),
    ("remove-results", None),
];

fn run(place: &Workplace, mode: &str, attacks: &[Attack]) -> crate::support::Ran {
    place.compile_whole("hostile", ATTACK_SOURCE);
    let mut config = config(mode, attacks);
    if mode == "strict" {
        // It fails in every schedule there, and each costs a host.
        let often = format!("name = \"neighbour\"\niterations = {ITERATIONS}");
        config = config.replace(&often, "name = \"neighbour\"\niterations = 2");
    }
    place.write("waylay.toml", &config);
    let ran = place.run(1, &[]);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    for (attack, _) in attacks {
        let tests = tests_of(&ran, attack);
        assert!(number(&tests[0]["failures"]) >= 1, "{attack}: the neighbour was not heard\n{}", ran.stderr);
        for test in &tests {
            let iterations = number(&test["iterations"]);
            assert!(iterations <= ITERATIONS, "{attack}: {iterations} iterations of {ITERATIONS}");
        }
    }
    // Whatever was removed, the record of every failure is there.
    ran.failures();
    let library = place.path().join("libhostile.so");
    let left = processes_with(library.to_str().expect("plain"));
    assert!(left.is_empty(), "{left:?} live on");
    let outside = fs::read_dir(place.path().join("outside")).into_iter().flatten().flatten();
    let outside: Vec<_> = outside.map(|entry| entry.path()).collect();
    assert!(outside.is_empty(), "written where a link led: {outside:?}");
    ran
}

#[test]
fn every_sly_attack_is_survived_and_the_neighbour_is_heard() {
    let place = Workplace::new();
    let ran = run(&place, "free", &SLY);
    for (attack, kind) in SLY {
        let told = kinds_in(&ran, attack);
        let hang = ["deadlock", "livelock", "slow"];
        let expected = |word: &str| {
            told.iter().any(|told| told == word || hang.contains(&word) && hang.contains(&told.as_str()))
        };
        assert!(kind.is_none_or(expected), "{attack}: {told:?} instead of {kind:?}\n{}", ran.stderr);
    }
    let notes = ran.json()["campaign"]["notes"].to_string();
    assert!(notes.contains("left-behind"), "{notes}");
}

/// Those that are aimed at what other modes have.
#[test]
fn sly_attacks_are_survived_in_other_modes() {
    const RANDOMIZED: [Attack; 5] = [
        ("not-dumpable", None),
        ("stop-group", None),
        ("own-handlers", None),
        ("join-driver", None),
        ("no-calls", None),
    ];
    run(&Workplace::new(), "randomized", &RANDOMIZED);
    const STRICT: [Attack; 4] =
        [("region-lies", None), ("over-all", None), ("join-driver", None), ("links", None)];
    run(&Workplace::new(), "strict", &STRICT);
}

/// A test whose plugin does something before it is asked to or after it is over. `before` and `after` are the bodies of a
/// constructor and a destructor, `end` that of `OnTestEnd`.
fn plugin(name: &str, before: &str, after: &str, end: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <string.h>\n\
         #include <sys/prctl.h>\n#include <unistd.h>\n#include \"waylay.h\"\n\
         __attribute__((constructor)) static void before(void) {{ {before} }}\n\
         __attribute__((destructor)) static void after(void) {{ {after} }}\n\
         static waylay_instance made;\nstatic const waylay_services *services;\n\
         static int32_t iterate(waylay_instance *self, waylay_context *worker) {{\n\
           (void)self; static _Atomic int count; usleep(1000);\n\
           if (count++ != 3) return WAYLAY_OK;\n\
           waylay_fail(services, worker, \"\\033]0;x\\a<script>]]>&|`*\\r\\n\\xff\\xe2\\x80\\xae text\"); return WAYLAY_FAILED;\n\
         }}\n\
         static void on_end(waylay_instance *self) {{ (void)self; {end} }}\n\
         static waylay_test_info info = {{.size = sizeof info, .name = \"{name}\", .about = \"\\033[2J about\"}};\n\
         static const waylay_test_info *infos[] = {{&info}};\n\
         static waylay_plugin_info plugin = {{.size = sizeof plugin, .abi_version = WAYLAY_ABI_VERSION, .name = \"odd\", .tests = infos, .test_count = 1}};\n\
         const waylay_plugin_info *WaylayPlugin(void) {{ return &plugin; }}\n\
         waylay_instance *CreateInstance(const waylay_create_args *args) {{\n\
           services = args->services; made.size = sizeof made; made.TestMain = iterate; made.OnTestEnd = on_end; return &made; }}\n\
         void DestroyInstance(waylay_instance *self) {{ (void)self; }}\n"
    )
}

const DAEMON: &str = "if (fork() == 0) { setsid(); if (fork() == 0) { prctl(PR_SET_NAME, \"left-behind\"); for (;;) pause(); } _exit(0); }";

/// The failure of the test is heard whatever its plugin does around it, nobody is left, and nothing is outside.
#[test]
fn what_plugins_do_around_their_tests_is_survived() {
    let parts = [
        ("forks", DAEMON, "", ""),
        ("leaves", "", "_exit(0);", ""),
        ("stays", "", "for (;;) pause();", ""),
        ("aborts", "", "abort();", ""),
        ("stops", "", "", "raise(SIGSTOP);"),
        ("exits", "", "", "exit(5);"),
        ("../../x", "", "", ""),
        ("a/b\\nc", "", "", DAEMON),
    ];
    // Most of them wait: for limits, and for what does not end.
    std::thread::scope(|scope| {
        for (name, before, after, end) in parts {
            scope.spawn(move || survives_around(name, before, after, end));
        }
    });
}

fn survives_around(name: &str, before: &str, after: &str, end: &str) {
    let place = Workplace::new();
    place.compile_whole("odd", &plugin(name, before, after, end));
    place.write(
            "waylay.toml",
            "[defaults]\nworkers = 1\nhang-timeout = \"1s\"\ncancel-timeout = \"1s\"\nleaks = false\n[[scenario]]\n\
             name = \"s\"\n[[scenario.test]]\nplugin = \"odd\"\niterations = 20\n",
        );
    let above: Vec<_> = fs::read_dir(place.path().join("..")).expect("a folder").flatten().collect();
    let ran = place.run(1, &[]);
    let told = ran.failures().iter().any(|failure| failure.kind() == "assert");
    assert!(told, "{name}: {}", ran.stderr);
    let left = processes_with(place.path().join("libodd.so").to_str().expect("plain"));
    assert!(left.is_empty(), "{name}: {left:?} live on\n{}", ran.stderr);
    let later: Vec<_> = fs::read_dir(place.path().join("..")).expect("a folder").flatten().collect();
    let ours = |entry: &&fs::DirEntry| entry.file_name() == "x";
    assert_eq!(above.iter().filter(ours).count(), later.iter().filter(ours).count(), "{name}");
    nothing_commands_a_terminal(&place, &ran, name);
}

/// What a test says reaches people and machines in many forms; in none of them it is more than text.
fn nothing_commands_a_terminal(place: &Workplace, ran: &crate::support::Ran, name: &str) {
    let commands = |text: &str| text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    let odd = |text: &str| commands(text).or_else(|| text.chars().find(|c| *c == '\u{202e}'));
    assert_eq!(odd(&ran.stderr), None, "{name}: {:?}", ran.stderr);
    let files = ["report.html", "report.xml", "report.sarif", "report.md", "report.json"];
    let options = ["--html", "--junit", "--sarif", "--markdown", "--json-file"];
    let mut arguments = vec!["report"];
    arguments.extend(options.iter().zip(files).flat_map(|(option, file)| [*option, file]));
    let made = place.waylay(&arguments);
    assert_eq!(made.code(), Some(0), "{name}: {}", made.stderr);
    for file in files {
        let content = fs::read_to_string(place.path().join(file)).expect("written");
        // JSON is data: what is shown of it is for its reader to decide.
        let found = if file.ends_with("json") { commands(&content) } else { odd(&content) };
        assert_eq!(found, None, "{name}: {file}");
        let is_page = file.ends_with("html") || file.ends_with("xml") || file.ends_with("md");
        assert!(!is_page || !content.contains("<script>]]>"), "{name}: {file}");
    }
    for command in
        [vec!["report"], vec!["failures"], vec!["show", text(&ran.json()["failures"][0]["folder"])]]
    {
        let shown = place.waylay(&command);
        assert_eq!(odd(&shown.stdout), None, "{name}: {command:?}");
    }
}

/// A constructor that ends the process is a reason in words; what it had started is gone.
#[test]
fn a_constructor_that_ends_the_process_is_told() {
    for (before, word) in
        [("exit(0);", "exited with code 0"), ("abort();", "SIGABRT"), ("raise(SIGKILL);", "SIGKILL")]
    {
        let place = Workplace::new();
        place.compile_whole("odd", &plugin("never", &format!("{DAEMON} {before}"), "", ""));
        place.write("waylay.toml", "[[scenario]]\nname = \"s\"\n[[scenario.test]]\nplugin = \"odd\"\n");
        let ran = place.waylay(&["run", "waylay.toml"]);
        assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
        let left = processes_with(place.path().join("libodd.so").to_str().expect("plain"));
        assert!(left.is_empty(), "{before}: {left:?} live on");
    }
}

/// The file of a plugin is cut off while it runs: its host dies of it, and nobody else.
#[test]
fn a_plugin_whose_file_changes_while_it_runs_kills_its_host_alone() {
    let cut = "extern int truncate(const char *, long); truncate(FILE_OF_PLUGIN, 4096);";
    let place = Workplace::new();
    let file = place.path().join("libodd.so");
    let source = format!("#define FILE_OF_PLUGIN {file:?}\n{}", plugin("changes", "", "", cut));
    place.compile_whole("odd", &source);
    place.write(
        "waylay.toml",
        "[defaults]\nworkers = 1\nhang-timeout = \"1s\"\ncancel-timeout = \"1s\"\nleaks = false\n[[scenario]]\nname = \"s\"\n\
         [[scenario.test]]\nplugin = \"odd\"\niterations = 20\n",
    );
    let ran = place.run(1, &[]);
    assert!(ran.failures().iter().any(|failure| failure.kind() == "assert"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
}
