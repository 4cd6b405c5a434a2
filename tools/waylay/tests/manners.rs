//! Tests that misuse the process they run in: its standard streams, its descriptors, its children.

#![cfg(target_os = "linux")]

mod support;

use std::time::{Duration, Instant};

use support::{Ran, Workplace, is_alive, number, size_of_folder};

/// Runs one test whose iteration is this body, for that many iterations on one worker.
fn run(code: i32, body: &str, iterations: u32, more: &str) -> (Workplace, Ran) {
    let place = Workplace::new();
    let source = format!(
        "static int32_t iterate(probe *self, waylay_context *worker) {{ (void)self; (void)worker; {body} return WAYLAY_OK; }}"
    );
    place.compile("manners", &source);
    place.write(
        "waylay.toml",
        &format!(
            "[[scenario]]\nname = \"s\"\nduration = \"280s\"\n[[scenario.test]]\nplugin = \"manners\"\nworkers = 1\n\
             iterations = {iterations}\nhang-timeout = \"10s\"\n{more}\n"
        ),
    );
    let ran = place.run(code, &[]);
    (place, ran)
}

#[test]
fn standard_input_is_empty_and_standard_output_goes_to_the_log() {
    let body = "printf(\"read %d\\n\", getchar()); fflush(stdout); fprintf(stderr, \"to stderr\\n\");";
    let (_place, ran) = run(0, body, 3, "");
    let log = ran.host_log();
    assert_eq!(log.matches("read -1").count(), 3, "{log}");
    assert_eq!(log.matches("to stderr").count(), 3, "{log}");
    assert!(!ran.stdout.contains("read -1") && !ran.stderr.contains("to stderr"));
}

#[test]
fn what_is_not_flushed_is_in_the_log_at_the_end() {
    let (_place, ran) = run(0, "printf(\"buffered\\n\");", 3, "");
    assert_eq!(ran.host_log().matches("buffered").count(), 3);
}

#[test]
fn a_child_that_crashes_or_exits_is_not_the_host() {
    let body = "for (int how = 0; how < 6; how++) {\n\
        pid_t child = fork();\n\
        if (child == 0) {\n\
          if (how == 0) *(volatile int *)8 = 1;\n\
          if (how == 1) abort();\n\
          if (how == 2) exit(5);\n\
          if (how == 3) _exit(6);\n\
          raise(how == 4 ? SIGTERM : SIGFPE);\n\
          _exit(7);\n\
        }\n\
        int status = 0;\n\
        waitpid(child, &status, 0);\n\
        printf(\"child %d: signal %d, code %d\\n\", how, WTERMSIG(status), WEXITSTATUS(status));\n\
        fflush(stdout);\n\
      }";
    let (_place, ran) = run(0, body, 2, "");
    let log = ran.host_log();
    for words in [
        "child 0: signal 11",
        "child 1: signal 6",
        "child 2: signal 0, code 5",
        "child 3: signal 0, code 6",
        "child 4: signal 15",
        "child 5: signal 8",
    ] {
        assert_eq!(log.matches(words).count(), 2, "{words}:\n{log}");
    }
    assert_eq!(number(&ran.json()["campaign"]["hosts"]), 1);
}

#[test]
fn a_child_that_stays_behind_ends_with_the_host() {
    let body = "pid_t child = fork(); if (child == 0) { for (;;) pause(); } printf(\"child %d\\n\", child);";
    let (_place, ran) = run(0, body, 1, "");
    let log = ran.host_log();
    let pid: i32 =
        log.split("child ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok()).expect("its number");
    let began = Instant::now();
    while is_alive(pid) {
        assert!(began.elapsed() < Duration::from_secs(10), "process {pid} is left behind");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Everything from descriptor 3 on: the host's own are among them. Whoever opens files afterwards gets their numbers.
#[test]
fn a_test_that_closes_every_descriptor_breaks_only_itself() {
    let body = "for (int fd = 3; fd < 1024; fd++) close(fd);\n\
                FILE *mine = fopen(\"/dev/null\", \"r\"); usleep(1000); fclose(mine);";
    let (_place, ran) = run(0, body, 200, "");
    assert_eq!(number(&ran.test("manners", "probe")["iterations"]), 200);

    let all = "for (int fd = 0; fd < 1024; fd++) close(fd); usleep(1000);";
    let (_place, ran) = run(0, all, 200, "");
    assert_eq!(number(&ran.test("manners", "probe")["iterations"]), 200);

    let crashing = "for (int fd = 0; fd < 1024; fd++) close(fd); *(volatile int *)8 = 1;";
    let (_place, ran) = run(1, crashing, 5, "max-failures = 2");
    let failure = ran.failure("manners", "probe");
    assert_eq!((failure.kind(), failure.count()), ("crash", 2));
    assert!(failure.first_stack().iter().any(|function| function == "iterate"), "{:#}", failure.json);
}

#[test]
fn a_test_that_prints_without_end_fills_no_disk() {
    let body = "static char line[1 << 20]; if (!line[0]) memset(line, 'x', sizeof line - 1), line[sizeof line - 2] = '\\n';\n\
                fputs(line, stdout); fflush(stdout);";
    let (_place, ran) = run(0, body, 100, "[evidence]\nlog-limit = \"1MiB\"");
    assert_eq!(number(&ran.test("manners", "probe")["iterations"]), 100);
    let size = size_of_folder(&ran.folder());
    assert!(size < 3 << 20, "{size} bytes");
    // The two streams come through two pipes: the last words of one are near the end, not at it.
    let older = std::fs::read(ran.folder().join("host.log.1")).expect("the log was full more than once");
    let log = String::from_utf8_lossy(&older).into_owned() + &ran.host_log();
    assert!(log.contains("[info probe] ended\n"), "the newest lines are kept");
}

#[test]
fn a_worker_that_is_done_is_not_called_again() {
    let body = "static _Atomic int calls; if (++calls > 5) { printf(\"called again\\n\"); } if (calls == 5) return WAYLAY_DONE;";
    let place = Workplace::new();
    place.compile(
        "done",
        &format!("static int32_t iterate(probe *self, waylay_context *worker) {{ (void)self; (void)worker; {body} return WAYLAY_OK; }}"),
    );
    // Without a duration: the scenario is over when its only test is.
    place.write(
        "waylay.toml",
        "[[scenario]]\nname = \"s\"\n[[scenario.test]]\nplugin = \"done\"\nworkers = 1\n",
    );
    let ran = place.run(0, &[]);
    assert_eq!(number(&ran.test("done", "probe")["iterations"]), 5);
    assert_eq!(number(&ran.json()["campaign"]["hosts"]), 1);
    assert!(!ran.host_log().contains("called again"));
}

/// Whatever a signal's name is: if it would end the process, there is evidence from the thread that got it.
#[test]
fn every_signal_that_would_end_the_process_is_a_crash_with_evidence() {
    let signals =
        ["FPE", "ILL", "BUS", "TRAP", "SYS", "ALRM", "USR1", "USR2", "XCPU", "PROF", "TERM", "QUIT"];
    let place = Workplace::new();
    let mut config = "[defaults]\nworkers = 1\nmax-failures = 1\n".to_owned();
    for signal in signals {
        let name = format!("by_{}", signal.to_lowercase());
        place.compile(
            &name,
            &format!(
                "static int32_t iterate(probe *self, waylay_context *worker) {{ (void)self; (void)worker; raise(SIG{signal}); return WAYLAY_OK; }}"
            ),
        );
        config += &format!(
            "[[scenario]]\nname = \"{signal}\"\nduration = \"280s\"\n[[scenario.test]]\nplugin = \"{name}\"\n"
        );
    }
    place.write("waylay.toml", &config);
    let ran = place.run(1, &[]);
    for signal in signals {
        let failure = ran.failure(&format!("by_{}", signal.to_lowercase()), "probe");
        assert_eq!(failure.kind(), "crash");
        assert!(failure.what().starts_with(&format!("SIG{signal} was raised")), "{}", failure.what());
        assert!(failure.first_stack().iter().any(|function| function == "iterate"), "{:#}", failure.json);
        assert!(number(&failure.json["dump_threads"]) > 0, "{:#}", failure.json);
    }
    // A division by zero is not sent by anybody.
    let body = "static volatile int seven = 7, zero; seven = seven / zero;";
    let (_place, ran) = run(1, body, 5, "max-failures = 1");
    let failure = ran.failure("manners", "probe");
    assert!(failure.what().starts_with("SIGFPE at address 0x"), "{}", failure.what());
}

/// No handler sees `_exit`; the only test of the host is to blame.
#[test]
fn a_test_that_leaves_without_a_word_is_blamed_when_it_is_alone() {
    let (_place, ran) = run(1, "usleep(1000); _exit(7);", 5, "max-failures = 2");
    let failure = ran.failure("manners", "probe");
    assert_eq!((failure.kind(), failure.count()), ("exit", 2));
    assert!(failure.what().contains("exited with code 7"), "{}", failure.what());
}

/// A host that is stopped as a whole does nothing and answers nothing: it is late like any other.
#[test]
fn a_test_that_stops_the_process_is_a_hang() {
    let place = Workplace::new();
    place.compile(
        "stops",
        "static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker; raise(SIGSTOP); return WAYLAY_OK; }",
    );
    place.write(
        "waylay.toml",
        "[[scenario]]\nname = \"s\"\nduration = \"280s\"\n[[scenario.test]]\nplugin = \"stops\"\nhang-timeout = \"400ms\"\nmax-failures = 1\n",
    );
    let ran = place.run(1, &[]);
    let failure = ran.failure("stops", "probe");
    assert!(failure.what().contains("TestMain has not returned"), "{}", failure.what());
    assert!(failure.file("stacks.txt").contains("iterate"), "{}", failure.file("stacks.txt"));
}

/// A thread that the test started in C has no signal stack of its own making.
#[test]
fn a_stack_overflow_on_a_thread_of_the_test_is_told_as_one() {
    let place = Workplace::new();
    place.compile(
        "deep",
        "static volatile int for_ever = 1;\n\
         static int descend(int depth) { volatile char here[512]; here[0] = (char)depth; return for_ever ? descend(depth + 1) + here[0] : 0; }\n\
         static void *begin(void *argument) { (void)argument; descend(0); return NULL; }\n\
         static int32_t iterate(probe *self, waylay_context *worker) {\n\
           (void)self; (void)worker; pthread_t thread; pthread_create(&thread, NULL, begin, NULL); pthread_join(thread, NULL); return WAYLAY_OK;\n\
         }",
    );
    place.write(
        "waylay.toml",
        "[[scenario]]\nname = \"s\"\nduration = \"280s\"\n[[scenario.test]]\nplugin = \"deep\"\nmax-failures = 1\n",
    );
    let ran = place.run(1, &[]);
    let failure = ran.failure("deep", "probe");
    assert!(failure.what().contains("stack overflow"), "{}", failure.what());
    assert!(failure.first_stack().iter().any(|function| function == "descend"), "{:#}", failure.json);
}

/// A name, a description, a message and a thread's name that a terminal would obey, and that pass for lines of ours.
#[test]
fn nothing_that_a_plugin_says_commands_a_terminal() {
    const HOSTILE: &str = "a\\033[2Jb\\033]0;owned\\007\\r\\nclean: all is well";
    let place = Workplace::new();
    let beginning = support::C_BEGINNING.replace(
        ".name = \"probe\", .about = \"a probe\"",
        &format!(".name = \"{HOSTILE}\", .about = \"{HOSTILE}\""),
    );
    assert_ne!(beginning, support::C_BEGINNING);
    place.compile_whole(
        "hostile",
        &format!(
            "{beginning}\nstatic int32_t iterate(probe *self, waylay_context *worker) {{\n\
             pthread_setname_np(pthread_self(), \"t\\033[2J\\n\"); usleep(1000);\n\
             static int calls; if (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) % 40) return WAYLAY_OK;\n\
             waylay_fail(self->services, worker, \"{HOSTILE}\"); return WAYLAY_OK; }}\n"
        ),
    );
    place.write(
        "waylay.toml",
        "[[scenario]]\nname = \"alone\"\nduration = \"280s\"\n[[scenario.test]]\nplugin = \"hostile\"\nmax-failures = 1\n\
         [[scenario]]\nname = \"pot\"\nduration = \"280s\"\n[[scenario.test]]\nplugin = \"waylay_melting_pot\"\nworkers = 1\n\
         max-failures = 1\n[[scenario.test.contains]]\nplugin = \"hostile\"\n",
    );
    let ran = place.run(1, &[]);
    let listed = place.waylay(&["list", "waylay.toml"]);
    let failures = place.waylay(&["failures"]);
    for (what, text) in [
        ("run", &ran.stderr),
        ("list", &listed.stdout),
        ("list", &listed.stderr),
        ("failures", &failures.stdout),
        ("failures", &failures.stderr),
    ] {
        let obeyed = text.chars().find(|c| c.is_control() && *c != '\n' && *c != '\t');
        assert_eq!(obeyed, None, "waylay {what}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("clean: all is well")), "waylay {what}:\n{text}");
    }
    // All of it was there to be shown: a row of the table and one of the pot, and the list.
    assert!(ran.stderr.matches("a⟨U+001B⟩[2Jb⟨U+001B⟩]0;owned⟨U+0007⟩").count() >= 3, "{}", ran.stderr);
    assert!(listed.stdout.contains("⟨U+001B⟩[2Jb"), "{}", listed.stdout);
    // Machines get the name as it is.
    let named = |text: &str| text.contains("\\u001b[2Jb");
    assert!(named(&ran.stdout), "{}", ran.stdout);
}

/// All four fail at once, so more failures are on their way when the second retires the test: what is said adds up.
#[test]
fn failures_that_come_after_the_last_permitted_one_are_told() {
    let place = Workplace::new();
    place.compile(
        "crowd",
        "static pthread_barrier_t all; static pthread_once_t once = PTHREAD_ONCE_INIT;\n\
         static void make(void) { pthread_barrier_init(&all, 0, 4); }\n\
         static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker;\n\
         pthread_once(&once, make); pthread_barrier_wait(&all); return WAYLAY_FAILED; }",
    );
    place.write(
        "waylay.toml",
        "[[scenario]]\nname = 's'\nduration = '280s'\n[[scenario.test]]\nplugin = 'crowd'\nworkers = 4\n\
         iterations = 4\nmax-failures = 2\n",
    );
    let ran = place.run(1, &[]);
    let test = ran.test("crowd", "probe");
    let failures = number(&test["failures"]);
    let said = match failures.saturating_sub(2) {
        0 => "retired after 2 failures".to_owned(),
        more => format!("retired after 2 failures; {more} more came before it stopped"),
    };
    assert_eq!(test["retired"], said, "{test:#}");
}
